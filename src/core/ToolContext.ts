/** The way from a tool to the run that called it. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type { Store } from "./AgentState.ts"
import type { Json, JsonObject } from "./Json.ts"
import type { Message } from "./Message.ts"
import type { Question } from "./Question.ts"
import type { Run } from "./Run.ts"
import type { Takes, Tool } from "./Tool.ts"
import type { ToolError } from "./ToolError.ts"
import type { ToolOutput } from "./ToolOutput.ts"

/**
 * The run, as one tool call sees it. It is there inside `execute` and nowhere else; `Agent.make` takes it out of what
 * the agent needs.
 *
 * `path` is the lineage of agent names from the root. `emit` sends a `ToolProgress` event. `messages` is a snapshot of
 * the conversation up to the call.
 *
 * `call` calls another tool of the run, by its name or by the value that the agent has: through decoding, gates,
 * middleware and events like a call of the model's, with the events' `parent` naming this call. The result comes whole,
 * also one that is an error (`isError`); what the tool fails with is the failure. A tool that the run does not have, or
 * that was taken out of the request, is `UnknownTool`. What a middleware fails with ends the run.
 *
 * `ask` asks a person, and gives the decoded answer. Where the run can be suspended it ends, and the tool is run again
 * with the answer, up to which point `call`, `ask`, `Agent.step` and `Agent.delegate` give what they gave before; other
 * effects are done again. Else the `Approvals` of the context is asked, and the tool waits; where there is nobody, and
 * where the question is turned down, it fails with `Rejected`. Time that passes in waiting is not working time.
 *
 * `step` does something once (see `Agent.step`).
 *
 * Nothing of these outlives the call: once it has ended, each of them dies.
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
    readonly step: <A, I, E, R>(
      name: string,
      work: Effect.Effect<A, E, R>,
      schema: Schema.Codec<A, I>
    ) => Effect.Effect<A, E, R>
  }
>()("effect-deepagents/ToolContext") {}
