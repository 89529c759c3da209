/**
 * Middleware: plain values that transform what an agent does around its model and tool calls.
 *
 * The first registered is the outermost. For A and B registered in that order: `beforeAgent` A, B; `beforeModel` A, B;
 * `wrapModelCall` A > B > model > B > A; `afterModel` B, A; `gateToolCalls` A, B; `wrapToolCall` A > B > tool > B > A;
 * `afterAgent` B, A. What a middleware can fail with and what it needs appear in the agent's type.
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
import type { Approvals, Choice, Decision } from "./Approval.ts"
import type { ModelRequest, TurnPart } from "./ChatModel.ts"
import type { JsonObject } from "./Json.ts"
import type { AiMessage, HumanMessage } from "./Message.ts"
import type { ModelError } from "./ModelError.ts"
import type { Run } from "./Run.ts"
import type { StopReason } from "./StopReason.ts"
import type { Annotations, Tool } from "./Tool.ts"
import type { ToolError } from "./ToolError.ts"
import { make as makeOutput, type ToolOutput } from "./ToolOutput.ts"

/**
 * A tool call that was resolved and decoded. `name` is the tool's own spelling, `arguments` what the model gave, with its
 * form mended. `given` gives the arguments that the tool runs with: decoded by its schema, with the defaults of that, and
 * written back as JSON. A rule about arguments should look at both.
 * `parent` is the id of the call inside of which a tool made this one: its result goes to that tool, not to the model.
 * `toolDigest` says what the tool promises, as in a request for a decision: an approval for good holds for that.
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
  /** Says what it does, to a person who decides on it, where its tool can. */
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

/** Has the model answer a message: what it said is not the answer yet. Say why in the message's `source`. */
export const continueWith = (message: HumanMessage): Directive => ({ _tag: "Continue", message })

/**
 * A gate's answer on one call of a round, before any call of it runs: let it run (`decided`: as if somebody had decided
 * so); answer in its place (a refusal is an answer with `isError`); or run it with other arguments, which are decoded
 * again. Made by {@link allow}, {@link approve}, {@link answer}, {@link refuse} and {@link edit}.
 */
export type Gate =
  | { readonly _tag: "Allow"; readonly decided?: boolean | undefined; readonly isCounted?: boolean | undefined }
  | { readonly _tag: "Answer"; readonly output: ToolOutput }
  | { readonly _tag: "Edit"; readonly arguments: JsonObject }

/**
 * Terms of a question to a person: `allow` is what may be decided (default: everything), `expiresAt` the milliseconds
 * since the epoch after which a decision counts no more, and `onDecision` is given what was decided. `rule` is the name
 * of the rule that asks, and `deciders` are who may decide (default: anybody), `byPerson` whether no program may; see
 * `Approval.Request`.
 */
export interface Terms {
  readonly allow?: ReadonlyArray<Choice> | undefined
  readonly expiresAt?: number | undefined
  readonly rule?: string | undefined
  readonly deciders?: ReadonlyArray<string> | undefined
  readonly byPerson?: boolean | undefined
  readonly onDecision?: ((decision: Decision) => Effect.Effect<void>) | undefined
}

/** The answer of a gate that waits until somebody has decided. Made by {@link suspend}. */
export interface Suspend extends Terms {
  readonly _tag: "Suspend"
  readonly description: string
}

/**
 * An answer of a gate that may ask a person, as those of {@link asking} and {@link suspending} middleware do. Nothing of a
 * round runs before all of it is decided.
 */
export type AskingGate = Gate | Suspend

/** The gate that lets a call run, as far as this middleware goes: a tool with `needsApproval` asks. */
export const allow: Gate = { _tag: "Allow" }

/**
 * The gate that lets a call run as if somebody had decided so: for rules that take the place of a tool's own question.
 */
export const approve: Gate = { _tag: "Allow", decided: true }

/**
 * The gate that lets a call run and counts it: the turn is stored before the call begins, also where all calls of the
 * turn only read.
 */
export const allowCounted: Gate = { _tag: "Allow", isCounted: true }

/** The gate that answers a call in its place. */
export const answer = (output: ToolOutput | string): Gate => ({
  _tag: "Answer",
  output: typeof output === "string" ? makeOutput(output) : output
})

/** The gate that refuses a call: the model reads the reason as the call's failure. */
export const refuse = (reason: string): Gate => ({ _tag: "Answer", output: makeOutput(reason, { isError: true }) })

/** The gate that runs a call with other arguments. */
export const edit = (args: JsonObject): Gate => ({ _tag: "Edit", arguments: args })

/** The gate that waits until somebody has decided: for {@link asking} and {@link suspending} middleware. */
export const suspend = (description: string, terms?: Terms): Suspend => ({ _tag: "Suspend", description, ...terms })

/** The end of an agent's run, as `afterAgent` sees it. */
export interface Outcome {
  readonly stopReason: StopReason
  readonly text: string
}

/**
 * The parts of a middleware, for `make`. Every hook is optional.
 *
 * `inherit` makes sub-agents run under it too, outside of their own: for what must not be escaped by delegating.
 * `check` is given the names of all tools of the agent it is put into, then these with those of its sub-agents, then
 * whether a tool of the agent has `needsApproval`. It says what keeps the agent from running (its runs fail with
 * `InvalidAgent`), or nothing. `prompt` adds a section to the system prompt, made once a run, after `beforeAgent`.
 * `tools` are offered like the agent's own; as an effect they are asked for before each round (the array of last time
 * says that nothing changed), and `check` does not see them. `state` declares slots, so that a resumed run decodes them
 * at its start.
 *
 * `gateToolCalls` sees all calls of a round at once and answers for each, in the same order. `wrapModelCall` may change
 * the request, answer without `next`, or call `next` again (say `TurnRestarted` first if parts went out). A tool that
 * it takes out of the request can't be dispatched in that round. `next` fails with `ModelError` only: what inner
 * middleware fails with passes by outer middleware unseen and ends the run; the same holds for `wrapToolCall` and
 * `ToolError`.
 */
export interface Parts<out E = never, out R = never, out G extends AskingGate = Gate> {
  readonly name: string
  readonly inherit?: boolean | undefined
  readonly check?:
    | ((tools: ReadonlySet<string>, reach: ReadonlySet<string>, asks: boolean) => string | undefined)
    | undefined
  readonly state?: ReadonlyArray<AnySlot> | undefined
  readonly tools?: ReadonlyArray<Tool<R>> | ((run: Run) => Effect.Effect<ReadonlyArray<Tool<R>>, E, R>) | undefined
  readonly prompt?: string | ((run: Run) => Effect.Effect<string, E, R>) | undefined
  readonly beforeAgent?: ((run: Run) => Effect.Effect<Directive | void, E, R>) | undefined
  readonly afterAgent?: ((run: Run, outcome: Outcome) => Effect.Effect<void, E, R>) | undefined
  readonly beforeModel?: ((run: Run) => Effect.Effect<Directive | void, E, R>) | undefined
  readonly afterModel?: ((run: Run, message: AiMessage) => Effect.Effect<Directive | void, E, R>) | undefined
  readonly gateToolCalls?:
    | ((run: Run, calls: ReadonlyArray<PreparedCall>) => Effect.Effect<ReadonlyArray<G>, E, R>)
    | undefined
  readonly wrapModelCall?:
    | ((
        request: ModelRequest,
        next: (request: ModelRequest) => Stream.Stream<TurnPart, ModelError>,
        run: Run
      ) => Stream.Stream<TurnPart, ModelError | E, R>)
    | undefined
  readonly wrapToolCall?:
    | ((
        call: PreparedCall,
        next: (call: PreparedCall) => Effect.Effect<ToolOutput, ToolError>,
        run: Run
      ) => Effect.Effect<ToolOutput, ToolError | E, R>)
    | undefined
}

const TypeId = "~effect-deepagents/Middleware"

/**
 * A middleware that can fail with `E` and needs `R`. Values of this type are made by `make`, `asking` and `suspending`.
 */
export interface Middleware<out E = never, out R = never> extends Parts<E, R, AskingGate> {
  readonly [TypeId]: typeof TypeId
}

/**
 * A middleware whose gate may suspend the run. An agent that has one may end without an answer, and its type says so:
 * `output` may be `undefined` (then `stopReason` is `"suspended"` and `pending` lists what it waits for).
 */
export interface Suspending<out E = never, out R = never> extends Middleware<E, R> {
  readonly suspends: true
}

/** `undefined` for a middleware that may suspend a run, else `never`. */
export type Suspension<M> = M extends { readonly suspends: true } ? undefined : never

/** The failures that a middleware adds to those of an agent. */
export type Error<M> = M extends Middleware<infer E, infer _R> ? E : never

/** The services that a middleware needs. */
export type Services<M> = M extends Middleware<infer _E, infer R> ? R : never

/**
 * The tool that a name means, as models may spell it: the exact name, else the only one that differs by case, `-` or
 * `_`.
 */
export const findTool = (tools: ReadonlySet<string>, name: string): string | undefined => {
  if (tools.has(name)) return name
  const key = normaliseName(name)
  const meant = [...tools].filter((tool) => normaliseName(tool) === key)
  return meant.length === 1 ? meant[0] : undefined
}

/**
 * Tells whether one of these names means a tool: for `wrapModelCall` and gates, which may be inherited by any agent.
 */
export const names = (list: ReadonlyArray<string>, tool: string): boolean =>
  list.includes(tool) || list.some((name) => normaliseName(name) === normaliseName(tool))

const byReaches = " A tool that only another tool calls is named by the `reaches` of that tool."

/**
 * Says what is wrong with names of tools that nobody has, for a middleware's `check`: a misspelt one would protect
 * nothing. `who` is who speaks of them. Nothing if all are there.
 */
export const unknownTool = (who: string, names: Iterable<string>, tools: ReadonlySet<string>): string | undefined => {
  for (const name of names) {
    if (findTool(tools, name) === undefined) {
      return `${who} ${JSON.stringify(name)}, which is none of ${[...tools].join(", ")}; correct its name, or take it out.${didYouMean(name, tools) || byReaches}`
    }
  }
  return undefined
}

/**
 * Gives what a middleware failed with, in a cause that passes an outer middleware (in a `Stream.onExit`, say): there it
 * looks like a defect, since it is none of the outer one's business. `undefined` if that is not what the cause is.
 */
export const failureOf: (cause: Cause.Cause<unknown>) => { readonly error: unknown } | undefined = tunnelled

const mark = <M extends object>(parts: M): M & { readonly [TypeId]: typeof TypeId } => ({ ...parts, [TypeId]: TypeId })

type AnyParts<G extends AskingGate = Gate> = Parts<unknown, unknown, G>

/** The failures of one hook, beside those that every hook around it knows. */
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
type Known<M> = { readonly [Key in Exclude<keyof M, keyof AnyParts>]: never }

/**
 * Makes a middleware whose gate asks nobody. It fails with what its hooks and tools fail with, and needs what they
 * need: all of them together. (The first form is for one without hooks that fail or need something: written inside
 * `Agent.make`, it would otherwise be inferred from there. The last is for hooks that differ in what they need.)
 */
export const make: {
  (parts: Parts): Middleware
  <E = never, R = never>(parts: Parts<E, R>): Middleware<E, R>
  <const M extends AnyParts>(parts: M & Known<M>): Middleware<ErrorOf<M>, ServicesOf<M>>
} = mark

/**
 * Makes a middleware whose gate may ask a person while the run waits: the agent needs the `Approvals` service, which
 * decides on each {@link suspend}.
 */
export const asking: {
  (parts: Parts<never, never, AskingGate>): Middleware<never, Approvals>
  <E = never, R = never>(parts: Parts<E, R, AskingGate>): Middleware<E, R | Approvals>
} = mark

const markSuspending = <M extends object>(parts: M): M & Pick<Suspending, typeof TypeId | "suspends"> => ({
  ...mark(parts),
  suspends: true
})

/**
 * Makes a middleware whose gate may suspend the run: a {@link suspend} ends it, unless the decision is there already
 * (`Agent.resume`).
 */
export const suspending: {
  (parts: Parts<never, never, AskingGate>): Suspending
  <E = never, R = never>(parts: Parts<E, R, AskingGate>): Suspending<E, R>
} = markSuspending

/**
 * Lets an agent be suspended by what its tools ask (`ToolContext.ask`) and by what waits in its sub-agents, though none
 * of its gates suspends it.
 */
export const suspendable: Suspending = suspending({ name: "suspendable", inherit: true })
