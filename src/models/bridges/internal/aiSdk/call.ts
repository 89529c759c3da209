/** The settings of a call to a model of the AI SDK. A request's settings win over its layer's. */
import type { LanguageModelV4ProviderTool } from "@ai-sdk/provider"
import * as Result from "effect/Result"
import { isObject, type Json, type JsonObject } from "../../../../core/Json.ts"
import { effortOf, type ThinkingLevel, withThinking } from "../../../internal/turn/thinking.ts"
import { merge } from "../../../internal/wire/read.ts"

/** Settings with a name in the AI SDK. Unset ones are not sent. */
export interface Settings {
  /** The longest answer in tokens. Default: the provider's own. */
  readonly maxOutputTokens?: number | undefined
  /** The randomness of the answer. Default: the provider's own. */
  readonly temperature?: number | undefined
  /** Samples from the likeliest tokens with this share of probability. Default: the provider's own. */
  readonly topP?: number | undefined
  /** Samples from this many likeliest tokens. Default: the provider's own. */
  readonly topK?: number | undefined
  /** Makes tokens that occurred less likely. Default: the provider's own. */
  readonly presencePenalty?: number | undefined
  /** Makes tokens less likely by how often they occurred. Default: the provider's own. */
  readonly frequencyPenalty?: number | undefined
  /** Texts that end the answer. Default: none. */
  readonly stopSequences?: ReadonlyArray<string> | undefined
  /** The seed of the sampling. Default: random. */
  readonly seed?: number | undefined
  /**
   * Amount of thinking before an answer. Models of the specification V3 can't be told. Default: the provider's own.
   */
  readonly thinking?: ThinkingLevel | undefined
  /**
   * Options that only one provider understands, by its name: `{ anthropic: { thinking: { type: "adaptive" } } }`.
   * Default: none.
   */
  readonly providerOptions?: { readonly [provider: string]: JsonObject } | undefined
}

/** The settings as JSON, and the parameters of a request that the AI SDK does not know. */
export interface Overlaid {
  readonly settings: JsonObject
  readonly unknown: ReadonlyArray<string>
}

const names = new Set([
  "maxOutputTokens",
  "temperature",
  "topP",
  "topK",
  "presencePenalty",
  "frequencyPenalty",
  "stopSequences",
  "seed",
  "reasoning",
  "providerOptions"
])

const reserved = new Set([
  "prompt",
  "tools",
  "toolChoice",
  "responseFormat",
  "abortSignal",
  "includeRawChunks",
  "headers"
])

/** Objects are joined two levels deep: the options of one provider, key by key. */
const join = (before: Json | undefined, after: Json, depth = 2): Json =>
  depth > 0 && isObject(before) && isObject(after)
    ? Object.entries(after).reduce(
        (all, [key, value]) => merge(all, { [key]: join(all[key], value, depth - 1) }),
        before
      )
    : after

const isJson = (value: unknown): value is Json => value !== undefined && typeof value !== "function"

/** Picks the settings out of a layer's options. */
export const settingsOf = (options: object): JsonObject =>
  Object.fromEntries(
    Object.entries(options).flatMap(([name, value]: readonly [string, unknown]) =>
      (names.has(name) || name === "thinking") && isJson(value) ? [[name, value]] : []
    )
  )

/**
 * Merges the parameters of a request into the settings; `null` removes one. Fails with the name of a reserved
 * parameter.
 */
export const overlay = (settings: JsonObject, parameters: JsonObject): Result.Result<Overlaid, string> => {
  const unknown: Array<string> = []
  const all: Record<string, Json> = {}
  const layers = withThinking([settings, parameters], (level) => ({ reasoning: effortOf(level) ?? "none" }))
  for (const [name, value] of layers.flatMap((layer) => Object.entries(layer))) {
    if (reserved.has(name)) return Result.fail(name)
    if (!names.has(name)) unknown.push(name)
    else if (value === null) delete all[name]
    else all[name] = join(all[name], value)
  }
  return Result.succeed({ settings: all, unknown })
}

/**
 * A provider's own tool, as its package makes it: `anthropic.tools.webSearch_20260209()`. With `isProviderExecuted:
 * false` it replaces the agent's tool of the same name.
 */
export interface ProviderTool {
  readonly id: LanguageModelV4ProviderTool["id"]
  readonly args: { readonly [name: string]: unknown }
  readonly isProviderExecuted?: boolean | undefined
}
