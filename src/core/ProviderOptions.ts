/**
 * Options of one provider on a tool or a message, by the name of the provider. Each adapter reads its own and ignores
 * the others, so a tool may carry options of several providers.
 *
 * `anthropic` is read wherever Claude's Messages API is served, `openai` by the Responses API.
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { Tool } from "effect-deepagents"
 *
 * const refund = Tool.make("refund", {
 *   description: "Refunds an order",
 *   parameters: { orderId: Schema.String },
 *   providerOptions: { anthropic: { deferLoading: true }, openai: { deferLoading: true } },
 *   execute: ({ orderId }) => Effect.succeed(`refunded ${orderId}`)
 * })
 * ```
 */
import { check } from "../support/options/check.ts"
import type { JsonObject } from "./Json.ts"
import * as shapes from "./schema/shapes.ts"

/** A lifetime of Claude's prompt cache. */
type Lifetime = "5m" | "1h"

/** Options of a tool. */
export interface ToolOptions {
  /** Options for Claude. Default: none. */
  readonly anthropic?:
    | {
        /** Loads the schema only when Claude's tool search finds the tool. Default: `false`. */
        readonly deferLoading?: boolean | undefined
        /** The callers: Claude itself, or code that it runs. Default: `["direct"]`. */
        readonly allowedCallers?: ReadonlyArray<"direct" | "code_execution"> | undefined
        /** Streams arguments while they are written, before they are known to be JSON. Default: the API's own. */
        readonly eagerInputStreaming?: boolean | undefined
        /** Sets a cache mark on the tool. Default: none. */
        readonly cacheControl?:
          | {
              /** The lifetime of the cache. Default: `"5m"`. */
              readonly ttl?: Lifetime | undefined
            }
          | undefined
        /** Examples of arguments. Default: none. */
        readonly inputExamples?: ReadonlyArray<JsonObject> | undefined
      }
    | undefined
  /** Options for OpenAI's Responses API. Default: none. */
  readonly openai?:
    | {
        /** Loads the schema only when the model's tool search finds the tool. Default: `false`. */
        readonly deferLoading?: boolean | undefined
        /** A set of tools to which the tool belongs: the model sees it under one description. Default: none. */
        readonly namespace?:
          | {
              /** The name of the set, such as `crm`. */
              readonly name: string
              /** Tells the model what the set is for. */
              readonly description: string
            }
          | undefined
        /** The callers: the model itself, or a program that it writes. Default: `["direct"]`. */
        readonly allowedCallers?: ReadonlyArray<"direct" | "programmatic"> | undefined
        /** Lets the model go on before the result is there. Default: `false`. */
        readonly async?: boolean | undefined
        /** The JSON Schema of results that are JSON. Default: none. */
        readonly outputSchema?: JsonObject | undefined
      }
    | undefined
}

/** Options of a message. */
export interface MessageOptions {
  /** Options for Claude. Default: none. */
  readonly anthropic?:
    | {
        /** Sets a cache mark at the end of the message, before the automatic ones. Default: none. */
        readonly cacheControl?:
          | {
              /** The lifetime of the cache. Default: `"5m"`. */
              readonly ttl?: Lifetime | undefined
            }
          | undefined
        /** Lets Claude cite the documents of the message. Default: `false`. */
        readonly citations?: boolean | undefined
      }
    | undefined
  /** Options for OpenAI's Responses API. Default: none. */
  readonly openai?:
    | {
        /** Sets a cache mark at the end of the message. Default: none. */
        readonly cacheBreakpoint?:
          | {
              /** The lifetime of the cache. Default: that of the request. */
              readonly ttl?: "30m" | "12h" | undefined
            }
          | undefined
        /** The detail in which the model sees the images of the message. Default: `"auto"`. */
        readonly imageDetail?: "auto" | "low" | "high" | "original" | undefined
      }
    | undefined
}

const checkTool = check(shapes.providerOptionsFindToolProblem)
const checkMessage = check(shapes.providerOptionsFindMessageProblem)

/** Describes the problem in options of a tool, such as a misspelt name. An agent with such a tool does not run. */
export const findToolProblem = (options: ToolOptions): string | undefined => checkTool(options)

/** Describes the problem in options of a message. Adapters refuse a request with such a message. */
export const findMessageProblem = (options: MessageOptions): string | undefined => checkMessage(options)
