/**
 * Middleware: plain values that wrap the model and tool calls of an agent.
 *
 * The first registered is the outermost. For A and B registered in that order: `beforeAgent` A, B; `beforeModel` A, B;
 * `wrapModelCall` A > B > model > B > A; `afterModel` B, A; `rulings` A, B; `wrapToolCall` A > B > tool > B > A;
 * `afterAgent` B, A. The failures and requirements of a middleware appear in the agent's type.
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { Middleware } from "effect-deepagents"
 *
 * const polite = Middleware.make({
 *   name: "polite",
 *   prompt: "Always say please.",
 *   wrapModelCall: (request, next) => next({ ...request, parameters: { ...request.parameters, temperature: 0 } }),
 *   beforeModel: (run) => Effect.logDebug(`after ${run.round} rounds`)
 * })
 * ```
 */
import type * as Cause from "effect/Cause"
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import { tunnelled } from "../support/effect/tunnel.ts"
import { didYouMean, normaliseName } from "../support/text/names.ts"
import type { AnySlot } from "./AgentState.ts"
import type { ModelRequest, TurnPart } from "./ChatModel.ts"
import type { JsonObject } from "./Json.ts"
import type { AiMessage, HumanMessage } from "./Message.ts"
import type { ModelError } from "./ModelError.ts"
import type { Allow, Refuse, Ruling } from "./Ruling.ts"
import type { Run } from "./Run.ts"
import type { StopReason } from "./StopReason.ts"
import type { Annotations, Tool } from "./Tool.ts"
import type { ToolError } from "./ToolError.ts"
import type { ToolOutput } from "./ToolOutput.ts"

/**
 * A tool call after its name was resolved and its arguments decoded.
 *
 * - `name`: the tool's own spelling
 * - `arguments`: the model's arguments, with mistakes in form mended
 * - `given`: returns the arguments that the tool runs with: decoded by its schema, with defaults, and encoded as JSON.
 *   A rule about arguments should check both
 * - `parent`: the id of the outer call, if a tool made this one. The result goes to that tool, not to the model
 * - `toolDigest`: the digest of the tool's definition, as in a request for a decision
 */
export interface PreparedCall {
  readonly id: string
  readonly name: string
  readonly arguments: JsonObject
  readonly given: () => JsonObject
  readonly annotations: Annotations
  readonly toolDigest: () => string
  readonly parent?: string | undefined
  /** True for a call that an earlier run began: it is made again, or its outcome is looked for. */
  readonly wasBegun?: boolean | undefined
  /** Describes the call to a person who decides on it, if the tool can. */
  readonly describe?: (() => string) | undefined
}

/**
 * A hook's directive to the loop instead of letting it continue: end the run now (with a message as the answer, if one is
 * given); have the model called once more without tools, so that there is an answer; or continue with a message of the
 * middleware's own (after a turn that called tools, its calls are answered as not executed first).
 */
export type Directive =
  | { readonly _tag: "End"; readonly stopReason: StopReason; readonly answer?: AiMessage | undefined }
  | { readonly _tag: "ForceFinalAnswer"; readonly stopReason: StopReason }
  | { readonly _tag: "Continue"; readonly message: HumanMessage }

/** Ends the run. */
export const end = (stopReason: StopReason, answer?: AiMessage): Directive =>
  answer === undefined ? { _tag: "End", stopReason } : { _tag: "End", stopReason, answer }

/** Has the model answer once more, without tools, and ends the run. */
export const forceFinalAnswer = (stopReason: StopReason): Directive => ({ _tag: "ForceFinalAnswer", stopReason })

/** Has the model answer a message, since its last answer is not final. Give the reason in the message's `source`. */
export const continueWith = (message: HumanMessage): Directive => ({ _tag: "Continue", message })

/** The end of an agent's run, as `afterAgent` sees it. */
export interface Outcome {
  readonly stopReason: StopReason
  readonly text: string
}

/**
 * The parts of a middleware, for `make`. Every hook is optional.
 *
 * `next` of `wrapModelCall` fails with `ModelError` only, that of `wrapToolCall` with `ToolError` only: failures of
 * inner middleware pass outer middleware unseen, and end the run.
 */
export interface Parts<out E = never, out R = never> {
  /** The name of the middleware, in errors and for `Agent.without`. */
  readonly name: string
  /** Makes sub-agents run under it too, outside of their own middleware. */
  readonly inherit?: boolean | undefined
  /**
   * True when its rulings or its tools may ask a person. Where `Approvals` is in the run's context, that is asked while
   * the run waits. Elsewhere the run is suspended, so the agent's `output` may be `undefined`; see `Agent.attended`.
   */
  readonly asks?: boolean | undefined
  /** Stores each turn before its calls begin, also where all of them only read: for what counts calls. */
  readonly counts?: boolean | undefined
  /**
   * Gives the reason that keeps an agent from running (its runs fail with `InvalidAgent`). It gets the names of the
   * agent's tools, these with the tools of sub-agents, and whether a tool has `needsApproval`.
   */
  readonly check?:
    | ((tools: ReadonlySet<string>, reach: ReadonlySet<string>, asks: boolean) => string | undefined)
    | undefined
  /** Slots that a resumed run decodes at its start. */
  readonly state?: ReadonlyArray<AnySlot> | undefined
  /**
   * Tools offered like the agent's own. An effect is asked before each round, and `check` does not see its tools; the
   * same array as before means that nothing changed.
   */
  readonly tools?: ReadonlyArray<Tool<R>> | ((run: Run) => Effect.Effect<ReadonlyArray<Tool<R>>, E, R>) | undefined
  /** A section of the system prompt, made once a run, after `beforeAgent`. */
  readonly prompt?: string | ((run: Run) => Effect.Effect<string, E, R>) | undefined
  /** Runs once, before the first round. A directive ends the run or forces an answer. */
  readonly beforeAgent?: ((run: Run) => Effect.Effect<Directive | void, E, R>) | undefined
  /** Runs once, after the last round. */
  readonly afterAgent?: ((run: Run, outcome: Outcome) => Effect.Effect<void, E, R>) | undefined
  /** Runs before each round. A directive ends the run or forces an answer. */
  readonly beforeModel?: ((run: Run) => Effect.Effect<Directive | void, E, R>) | undefined
  /** Runs after each turn of the model. A directive ends the run or sends the model another message. */
  readonly afterModel?: ((run: Run, message: AiMessage) => Effect.Effect<Directive | void, E, R>) | undefined
  /**
   * Gives calls other arguments before any source rules on them: for each call the new ones, which are decoded, or
   * `undefined`.
   */
  readonly rewriteArguments?:
    | ((run: Run, calls: ReadonlyArray<PreparedCall>) => Effect.Effect<ReadonlyArray<JsonObject | undefined>, E, R>)
    | undefined
  /**
   * Rules on all calls of a round before one of them runs: one ruling for each call, in their order. `undefined` says
   * nothing on a call. Calls that an outer source refused are left out.
   */
  readonly rulings?:
    | ((run: Run, calls: ReadonlyArray<PreparedCall>) => Effect.Effect<ReadonlyArray<Ruling | undefined>, E, R>)
    | undefined
  /**
   * Changes the request, answers without `next`, or calls `next` again (say `TurnRestarted` first if parts went out). A
   * tool that it takes out of the request can't be called in that round.
   */
  readonly wrapModelCall?:
    | ((
        request: ModelRequest,
        next: (request: ModelRequest) => Stream.Stream<TurnPart, ModelError>,
        run: Run
      ) => Stream.Stream<TurnPart, ModelError | E, R>)
    | undefined
  /** Changes a call, answers without `next`, or calls `next` again. */
  readonly wrapToolCall?:
    | ((
        call: PreparedCall,
        next: (call: PreparedCall) => Effect.Effect<ToolOutput, ToolError>,
        run: Run
      ) => Effect.Effect<ToolOutput, ToolError | E, R>)
    | undefined
}

const TypeId = "~effect-deepagents/Middleware"

/** A middleware that can fail with `E` and needs `R`. Made by {@link make}. */
export interface Middleware<out E = never, out R = never> extends Parts<E, R> {
  readonly [TypeId]: typeof TypeId
}

/**
 * A middleware that may ask a person. An agent that has one may end without an answer, and its type says so: `output`
 * may be `undefined` (then `stopReason` is `"suspended"`, and `pending` lists the open requests).
 */
export interface AskingMiddleware<out E = never, out R = never> extends Middleware<E, R> {
  readonly asks: true
}

/** `undefined` for a middleware that may ask a person, else `never`. */
export type Suspension<M> = M extends { readonly asks: true } ? undefined : never

/** The failures that a middleware adds to an agent's. */
export type Error<M> = M extends Middleware<infer E, infer _R> ? E : never

/** The services that a middleware needs. */
export type Services<M> = M extends Middleware<infer _E, infer R> ? R : never

/** Finds the tool that a model means by a name: the exact name, else the only name that differs by case, `-` or `_`. */
export const findTool = (tools: ReadonlySet<string>, name: string): string | undefined => {
  if (tools.has(name)) return name
  const key = normaliseName(name)
  const matches = [...tools].filter((tool) => normaliseName(tool) === key)
  return matches.length === 1 ? matches[0] : undefined
}

/**
 * Tells whether one of these names means a tool: for `wrapModelCall` and gates, which may be inherited by any agent.
 */
export const names = (list: ReadonlyArray<string>, tool: string): boolean =>
  list.includes(tool) || list.some((name) => normaliseName(name) === normaliseName(tool))

const byReaches = " If only another tool calls this tool, name it in the `reaches` of that tool."

/**
 * Describes the names that no tool has, for a middleware's `check`: a misspelt name would protect nothing. `who` is the
 * middleware. `undefined` if all names are known.
 */
export const unknownTool = (who: string, names: Iterable<string>, tools: ReadonlySet<string>): string | undefined => {
  for (const name of names) {
    if (findTool(tools, name) === undefined) {
      return `${who} ${JSON.stringify(name)}, which is not a tool of the agent (${[...tools].join(", ")}); correct the name, or remove it.${didYouMean(name, tools) || byReaches}`
    }
  }
  return undefined
}

/**
 * Finds the failure of an inner middleware in the cause that an outer one sees (in a `Stream.onExit`, say). There it
 * looks like a defect. `undefined` for any other cause.
 */
export const failureOf: (cause: Cause.Cause<unknown>) => { readonly error: unknown } | undefined = tunnelled

const mark = <M extends object>(parts: M): M & { readonly [TypeId]: typeof TypeId } => ({ ...parts, [TypeId]: TypeId })

type AnyParts = Parts<unknown, unknown>

/** The failures of one hook, without the failures that every surrounding hook knows. */
type HookError<Name, Hook> = Hook extends (...args: never) => Effect.Effect<infer _A, infer E, infer _R>
  ? Name extends "wrapToolCall"
    ? Exclude<E, ToolError>
    : E
  : Hook extends (...args: never) => Stream.Stream<infer _A, infer E, infer _R>
    ? Exclude<E, ModelError>
    : never

type ToolServices<Tools> = Tools extends ReadonlyArray<infer One> ? (One extends Tool<infer R> ? R : never) : never

type HookServices<Name, Hook> = Hook extends (...args: never) => Effect.Effect<infer A, infer _E, infer R>
  ? R | (Name extends "tools" ? ToolServices<A> : never)
  : Hook extends (...args: never) => Stream.Stream<infer _A, infer _E, infer R>
    ? R
    : Name extends "tools"
      ? ToolServices<Hook>
      : never

/** The failures of all hooks, and their needs: the union over all of them. */
type ErrorOf<M> = { [Name in keyof M]: HookError<Name, M[Name]> }[keyof M]
type ServicesOf<M> = { [Name in keyof M]: HookServices<Name, M[Name]> }[keyof M]

/** A hook that there is not is a misspelt one. */
type KnownHooks<M> = { readonly [Key in Exclude<keyof M, keyof AnyParts>]: never }

/** Parts whose rulings ask nobody. */
type Quiet<E = never, R = never> = Omit<Parts<E, R>, "asks" | "rulings"> & {
  /** Never: these rulings ask nobody. */
  readonly asks?: undefined
  /** Rules on all calls of a round, in their order. `undefined` says nothing on a call. */
  readonly rulings?:
    | ((run: Run, calls: ReadonlyArray<PreparedCall>) => Effect.Effect<ReadonlyArray<Allow | Refuse | undefined>, E, R>)
    | undefined
}

/** Parts that say that they may ask. */
export interface AskingParts<out E = never, out R = never> extends Parts<E, R> {
  readonly asks: true
}

/**
 * Makes a middleware. It has the failures and requirements of its hooks and tools. (The overloads without type
 * parameters are for `Agent.make`, which would infer the others. The last overload is for hooks with different
 * requirements.)
 */
export const make: {
  (parts: AskingParts): AskingMiddleware
  (parts: Quiet): Middleware
  <E = never, R = never>(parts: AskingParts<E, R>): AskingMiddleware<E, R>
  <E = never, R = never>(parts: Quiet<E, R>): Middleware<E, R>
  <const M extends Quiet<unknown, unknown>>(parts: M & KnownHooks<M>): Middleware<ErrorOf<M>, ServicesOf<M>>
} = mark

/**
 * Lets the questions of its tools (`ToolContext.ask`), and the pending requests of its sub-agents, suspend an agent.
 */
export const suspendable: AskingMiddleware = make({ name: "suspendable", inherit: true, asks: true })
