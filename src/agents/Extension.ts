/**
 * Extensions of the program `deepagents`: tools, middleware, commands, hooks, providers of models and colours, as one
 * value. It is the default export of a file or of a package.
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { Tool } from "effect-deepagents"
 * import { Extension } from "effect-deepagents/agents"
 *
 * const ticket = Tool.make("ticket", {
 *   description: "Reads a ticket",
 *   parameters: { id: Schema.String },
 *   annotations: { readOnly: true },
 *   execute: ({ id }) => Effect.succeed(`Ticket ${id}: the door is stuck`)
 * })
 *
 * export default Extension.make({
 *   name: "house",
 *   tools: [ticket],
 *   commands: [{ name: "ticket", description: "a ticket", run: (id) => Effect.succeed({ send: `Mend ticket ${id}` }) }]
 * })
 * ```
 */
import type * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import type { Approvals } from "../core/Approval.ts"
import type { Backend } from "../core/Backend.ts"
import type { ChatModel } from "../core/ChatModel.ts"
import type { Middleware } from "../core/Middleware.ts"
import type { Sandbox } from "../core/Sandbox.ts"
import type { Tool } from "../core/Tool.ts"
import type { ToolContext } from "../core/ToolContext.ts"
import type { Hook } from "../middleware/Hooks.ts"
import type { Provider } from "../models/ChatModels.ts"
import { check } from "../support/options/check.ts"
import * as shapes from "./internal/shapes.ts"

const TypeId = "~effect-deepagents/Extension"

/** The services that the program gives to tools and middleware. All others have to come from {@link provide}. */
export type Services = Backend | Sandbox | ChatModel | HttpClient.HttpClient | ToolContext | Approvals

/** The outcome of a slash command: Markdown for the person, or a message to the agent. */
export type Reply = { readonly show: string } | { readonly send: string }

/** A slash command of the chat. */
export interface Command<out R = never> {
  /** The name behind the slash. */
  readonly name: string
  /** A line for the menu. */
  readonly description: string
  /** Names the text behind the command in the menu. Default: none. */
  readonly argument?: string | undefined
  /** Does the work, with the text behind the command. */
  readonly run: (argument: string) => Effect.Effect<Reply, { readonly message: string }, R>
}

/** The colours of a theme: codes of the terminal, such as `36` or `38;5;208`. A colour without a code is plain text. */
export type Theme = {
  readonly [C in "red" | "green" | "yellow" | "blue" | "magenta" | "cyan"]?: number | string | undefined
}

/** The additions of an extension. */
export interface Options<out R = never> {
  /** The name: small letters, digits and hyphens. */
  readonly name: string
  /** Tools of all agents. A name that is taken is left out, and said. Default: none. */
  readonly tools?: ReadonlyArray<Tool<R>> | undefined
  /** Middleware of all agents, inside of the program's own. Default: none. */
  readonly middleware?: ReadonlyArray<Middleware<never, R>> | undefined
  /** Slash commands of the chat. Default: none. */
  readonly commands?: ReadonlyArray<Command<R>> | undefined
  /** Hooks, beside the hooks of settings. Default: none. */
  readonly hooks?: ReadonlyArray<Hook> | undefined
  /** Providers of models, chosen as `name:model`. Default: none. */
  readonly providers?: ReadonlyArray<Provider> | undefined
  /** Themes of the chat, chosen as `extension:theme`. Default: none. */
  readonly themes?: { readonly [name: string]: Theme } | undefined
}

/** An extension. `R` are the services that it still needs. */
export interface Extension<out R = never> extends Options<R> {
  readonly [TypeId]: {
    /** The services of its parts. */
    readonly layer: Layer.Layer<never, { readonly message: string }>
    /** The problem in its options. The program leaves such an extension out. */
    readonly problem: string | undefined
  }
}

const checkMake = check(shapes.extensionMake)

/** Makes an extension. */
export const make = <R = never>(options: Options<R>): Extension<R> => ({
  ...options,
  [TypeId]: { layer: Layer.empty, problem: checkMake(options) }
})

/**
 * Gives an extension services that its tools, middleware and commands need. They are made once a session, and released
 * with it.
 */
export const provide =
  <ROut>(layer: Layer.Layer<ROut, { readonly message: string }>) =>
  <R>(extension: Extension<R>): Extension<Exclude<R, ROut>> => {
    const { layer: inner, problem } = extension[TypeId]
    const parts: Options<unknown> = extension
    // The program provides the layer to the parts, whose types no longer name its services.
    return { ...(parts as Options<Exclude<R, ROut>>), [TypeId]: { layer: Layer.merge(inner, layer), problem } }
  }

/** The services of an extension. */
export const layerOf = <R>(extension: Extension<R>): Layer.Layer<never, { readonly message: string }> =>
  extension[TypeId].layer

/** The problem in the options of an extension. */
export const problemOf = <R>(extension: Extension<R>): string | undefined => extension[TypeId].problem

/** Tells whether a value, such as a default export, is an extension for the program. */
export const isExtension = (value: unknown): value is Extension<Services> => Predicate.hasProperty(value, TypeId)
