/**
 * The way from a tool to the run that called it.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { Store } from "./AgentState.ts"
import type { Json } from "./Json.ts"
import type { Message } from "./Message.ts"
import type { Run } from "./Run.ts"

/**
 * The run, as one tool call sees it. It is there inside `execute` and nowhere else; `Agent.make` takes it out of what
 * the agent needs.
 *
 * `path` is the lineage of agent names from the root. `emit` sends a `ToolProgress` event. `messages` is a snapshot of
 * the conversation up to the call.
 *
 * @category services
 * @since 0.1.0
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
  }
>()("effect-deepagents/ToolContext") {}
