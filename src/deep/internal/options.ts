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
 * A sub-agent, and what a deep agent has in common with one.
 *
 * - `prompt`: comes first; what fits the model, and what the middlewares say, comes after it
 * - `tools`: beside the file tools
 * - `files`: which file tools (default: all)
 * - `documents`: formats that `read_file` gives as text (`Documents.formats` of `effect-deepagents/documents`)
 * - `execute`: also `execute`, which needs a `Sandbox`; how long a command may run, or `true`
 * - `middleware`: your own; one with the name of one of the `parts` takes its place
 * - `todos`: whether there is a list of todos (default `true`)
 * - `memory`, `skills`: where they are read from, in the backend
 * - `agentId`: reads memory and skills from `/agent` (the user's own folder for this agent, where `AgentHome.layer`
 *   mounts it), `/.deepagents` and `/AGENTS.md` of the project too
 * - `summarization`, `largeResults`: options, or `false` for none
 * - `profiles`: what fits the agent to its model, the built-in ones by default
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
 * A deep agent: what a sub-agent can be told, and
 *
 * - `subagents`: agents for `task` (`DeepAgent.subagent`, or any `Agent`), which waits for them
 * - `backgroundSubagents`: agents for `start_task`, which does not: they need `BackgroundTasks`, and may be on servers
 * - `generalPurpose`: the sub-agent that has this agent's tools and skills; `false` for none, or other words for it.
 *   One of `subagents` with its name takes its place
 * - `maxDepth`: how deep agents may be nested (3)
 * - `approvals`: which calls a person is asked about, in sub-agents too
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
