/** The way from a tool to the run that called it. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type { Store } from "./AgentState.ts"
import type { Json, JsonObject } from "./Json.ts"
import type { Message } from "./Message.ts"
import type { Question, RehearsedCall } from "./Question.ts"
import type { Run } from "./Run.ts"
import type { Takes, Tool } from "./Tool.ts"
import type { ToolError } from "./ToolError.ts"
import type { ToolOutput } from "./ToolOutput.ts"

/**
 * The outcome of a rehearsed call. `output` is the output of the call: a result that was read, an error of the call,
 * or the promise of its tool (`rehearse` of `Tool.make`). Without it, only the call itself can tell.
 */
export interface Rehearsal {
  readonly call: RehearsedCall
  readonly output: ToolOutput | undefined
}

/**
 * The run, as one tool call sees it. It exists inside `execute` alone; `Agent.make` removes it from the agent's needs.
 *
 * - `path`: the agent names from the root
 * - `emit`: sends a `ToolProgress` event
 * - `messages`: a snapshot of the conversation up to the call
 * - `call`: calls another tool of the run, by name or by value, through decoding, gates, middleware and events like a
 *   call of the model. Events have this call as `parent`. The result is whole, errors (`isError`) included. A tool that
 *   the run does not offer is `UnknownTool`. A failure of middleware ends the run
 * - `ask`: asks a person, and returns the decoded answer. A run that can be suspended ends, and runs the tool again
 *   with the answer: `call`, `ask`, `Agent.step` and `Agent.delegate` then return their stored results, other effects
 *   run again. Otherwise the tool waits for `Approvals`. Without anybody to ask, or when the person declines, it fails
 *   with `Rejected`. Waiting is not working time
 * - `rehearsal`: begins a rehearsal, and returns the function that rehearses calls in it. Rules refuse a rehearsed call as
 *   they refuse a call, and ask nobody. A call that only reads is done, unless a rule asks about it. Other calls do not
 *   act. Changes of the state of the run are seen in the rehearsal alone. Nothing is recorded
 * - `step`: runs work once (see `Agent.step`)
 * - `working`: runs work that belongs to the call, such as a wait for a worker that computes its next calls. Until the
 *   work ends, a pending question of the call does not suspend the run
 *
 * These functions die when the call has ended.
 */
export class ToolContext extends Context.Service<
  ToolContext,
  {
    readonly agent: string
    readonly path: ReadonlyArray<string>
    readonly runId: string
    readonly threadId: string | undefined
    readonly callId: string
    readonly toolName: string
    readonly state: Store
    readonly emit: (progress: Json) => Effect.Effect<void>
    readonly messages: Effect.Effect<ReadonlyArray<Message>>
    readonly run: Run
    readonly call: {
      <R, Args extends JsonObject>(
        tool: Tool<R> & Takes<Args>,
        args: NoInfer<Args>
      ): Effect.Effect<ToolOutput, ToolError, Exclude<R, ToolContext>>
      (tool: string, args: JsonObject): Effect.Effect<ToolOutput, ToolError>
    }
    readonly ask: <A>(question: Question<A>) => Effect.Effect<A, ToolError>
    readonly rehearsal: Effect.Effect<(tool: string, args: JsonObject) => Effect.Effect<Rehearsal, ToolError>>
    readonly step: <A, I, E, R>(
      name: string,
      work: Effect.Effect<A, E, R>,
      schema: Schema.Codec<A, I>
    ) => Effect.Effect<A, E, R>
    readonly working: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  }
>()("effect-deepagents/ToolContext") {}
