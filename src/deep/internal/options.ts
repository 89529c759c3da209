/** Options of a deep agent and its sub-agents; public by `DeepAgent`. */
import type * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Schema from "effect/Schema"
import type * as FileTools from "../../backends/FileTools.ts"
import type { ChatModel } from "../../core/ChatModel.ts"
import type { JsonObject } from "../../core/Json.ts"
import type * as Middleware from "../../core/Middleware.ts"
import type { StandardSchema } from "../../core/schema/standard.ts"
import type * as StopWhen from "../../core/StopWhen.ts"
import type * as Tool from "../../core/Tool.ts"
import type * as BackgroundSubagents from "../../middleware/BackgroundSubagents.ts"
import type * as Filesystem from "../../middleware/Filesystem.ts"
import type * as HumanInTheLoop from "../../middleware/HumanInTheLoop.ts"
import type * as Subagents from "../../middleware/Subagents.ts"
import type * as Summarization from "../../middleware/Summarization.ts"
import type { HarnessProfile } from "../../profiles/HarnessProfile.ts"

/** Options of summaries: see `Summarization.Options`. */
export interface SummaryOptions extends Pick<
  Summarization.Options,
  "trigger" | "tail" | "contextWindowTokens" | "counter" | "background"
> {
  readonly model?: Layer.Layer<ChatModel, unknown, unknown> | undefined
}

/**
 * Options of a sub-agent, which a deep agent has too.
 *
 * - `prompt`: comes first; the profile's and the middleware's sections follow
 * - `tools`: tools beside the file tools
 * - `files`: the file tools (default: all)
 * - `documents`: formats that `read_file` reads as text (`Documents.formats` of `effect-deepagents/documents`)
 * - `execute`: adds `execute`, which needs a `Sandbox`: its time limit, or `true`
 * - `middleware`: your own; a part's name (`parts`) replaces the part
 * - `todos`: whether there is a todo list (default `true`)
 * - `memory`, `skills`: their places in the backend
 * - `agentId`: also reads memory and skills from `/agent` (the user's own folder for this agent, where
 *   `AgentHome.layer` mounts it), `/.deepagents` and `/AGENTS.md` of the project
 * - `summarization`, `largeResults`: options, or `false` to turn them off
 * - `profiles`: model profiles, the built-in ones by default
 * - `output`: the schema of the answer, if it is no text
 * - `maxRounds`: 200 by default
 * - `toolConcurrency`, `stopWhen`, `parameters`: as for `Agent.make`
 */
export interface SubagentOptions {
  readonly name: string
  readonly description?: string | undefined
  readonly prompt: string | Effect.Effect<string, unknown, unknown>
  readonly tools?: ReadonlyArray<Tool.Tool<unknown>> | undefined
  readonly files?: FileTools.Options["only"] | undefined
  readonly documents?: FileTools.Options["documents"]
  readonly execute?: boolean | FileTools.ExecuteOptions | undefined
  readonly middleware?: ReadonlyArray<Middleware.Middleware<unknown, unknown>> | undefined
  readonly todos?: boolean | undefined
  readonly memory?: ReadonlyArray<string> | undefined
  readonly skills?: ReadonlyArray<string> | undefined
  readonly agentId?: string | undefined
  readonly summarization?: SummaryOptions | false | undefined
  readonly largeResults?: Filesystem.Options | false | undefined
  readonly profiles?: ReadonlyArray<HarnessProfile> | undefined
  readonly output?: Schema.ConstraintCodec<unknown, unknown> | StandardSchema | undefined
  readonly parameters?: JsonObject | undefined
  readonly maxRounds?: number | undefined
  readonly toolConcurrency?: number | undefined
  readonly stopWhen?: ReadonlyArray<StopWhen.StopWhen<unknown, unknown>> | undefined
}

/**
 * A deep agent: the options of a sub-agent, and
 *
 * - `subagents`: agents for `task` (`DeepAgent.subagent`, or any `Agent`), which waits for them
 * - `backgroundSubagents`: agents for `start_task`, which does not wait. They need `BackgroundTasks`, and may be on
 *   servers
 * - `generalPurpose`: the sub-agent with this agent's tools and skills; `false` for none, or another description and
 *   prompt. An agent with its name in `subagents` replaces it
 * - `maxDepth`: the deepest nesting of agents (3)
 * - `approvals`: the calls that need an approval, in sub-agents too
 */
export interface Options extends SubagentOptions {
  readonly subagents?: Parameters<typeof Subagents.make>[0]["agents"] | undefined
  readonly backgroundSubagents?: Parameters<typeof BackgroundSubagents.make>[0]["agents"] | undefined
  readonly generalPurpose?:
    | false
    | { readonly description?: string | undefined; readonly prompt?: string | undefined }
    | undefined
  readonly maxDepth?: number | undefined
  readonly approvals?: HumanInTheLoop.Options | undefined
}
