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
import type * as Memory from "../../middleware/Memory.ts"
import type * as Subagents from "../../middleware/Subagents.ts"
import type * as Summarization from "../../middleware/Summarization.ts"
import type { HarnessProfile } from "../../profiles/HarnessProfile.ts"
import type * as Facts from "../Facts.ts"

/** Options of summaries: see `Summarization.Options`. */
export interface SummaryOptions extends Pick<
  Summarization.Options,
  "trigger" | "tail" | "contextWindowTokens" | "counter" | "background"
> {
  /** The model that writes summaries. Default: the agent's model. */
  readonly model?: Layer.Layer<ChatModel, unknown, unknown> | undefined
}

/** Options of a sub-agent, which a deep agent has too. */
export interface SubagentOptions {
  /** The name of the agent, in events, errors and traces. */
  readonly name: string
  /** Tells the parent when to choose this agent. Default: empty. */
  readonly description?: string | undefined
  /** The beginning of the system prompt; sections of the profile and of middleware follow. */
  readonly prompt: string | Effect.Effect<string, unknown, unknown>
  /** Tools besides the file tools. Default: none. */
  readonly tools?: ReadonlyArray<Tool.Tool<unknown>> | undefined
  /** The file tools that the agent gets. Default: all of them. */
  readonly files?: FileTools.Options["only"] | undefined
  /**
   * Formats that `read_file` reads as text, such as `Documents.formats` of `effect-deepagents/documents`. Default:
   * none.
   */
  readonly documents?: FileTools.Options["documents"]
  /** Adds the tool `execute`, which needs a `Sandbox`: `true`, or its options. Default: `false`. */
  readonly execute?: boolean | FileTools.ExecuteOptions | undefined
  /** Your own middleware. A middleware with the name of a part (`parts`) replaces the part. Default: none. */
  readonly middleware?: ReadonlyArray<Middleware.Middleware<unknown, unknown>> | undefined
  /** Adds a todo list. Default: `true`. */
  readonly todos?: boolean | undefined
  /** Memory files, as paths in the backend or with their texts. Default: none. */
  readonly memory?: Memory.Options["sources"] | undefined
  /** Folders of skills in the backend. Default: none. */
  readonly skills?: ReadonlyArray<string> | undefined
  /**
   * Also reads memory and skills from `/agent` (the user's folder for this agent, which `AgentHome.layer` mounts),
   * `/.deepagents` and `/AGENTS.md`. Default: no id.
   */
  readonly agentId?: string | undefined
  /** Options of summaries; `false` turns them off. Default: on. */
  readonly summarization?: SummaryOptions | false | undefined
  /** Options of large results in files; `false` turns this off. Default: on. */
  readonly largeResults?: Filesystem.Options | false | undefined
  /** Setups for models. Default: the built-in ones. */
  readonly profiles?: ReadonlyArray<HarnessProfile> | undefined
  /** The schema of the answer. Default: text. */
  readonly output?: Schema.ConstraintCodec<unknown, unknown> | StandardSchema | undefined
  /** Parameters that each request sends to the provider. Default: none. */
  readonly parameters?: JsonObject | undefined
  /** The most rounds of a run. After them the model answers once more without tools. Default: 200. */
  readonly maxRounds?: number | undefined
  /** The most tools that run at once. Default: 8. */
  readonly toolConcurrency?: number | undefined
  /** Conditions that end the run after a round of tools. Default: none. */
  readonly stopWhen?: ReadonlyArray<StopWhen.StopWhen<unknown, unknown>> | undefined
}

/** Options of a deep agent, besides those of a sub-agent. */
export interface Options extends SubagentOptions {
  /** Agents for the tool `task`, which waits for their answer: `DeepAgent.subagent`, or any `Agent`. Default: none. */
  readonly subagents?: Parameters<typeof Subagents.make>[0]["agents"] | undefined
  /**
   * Agents for the tool `start_task`, which does not wait. They need `BackgroundTasks`, and may run on servers.
   * Default: none.
   */
  readonly backgroundSubagents?: Parameters<typeof BackgroundSubagents.make>[0]["agents"] | undefined
  /**
   * The sub-agent with this agent's tools and skills: another description and prompt, or `false` for none. An agent
   * of its name in `subagents` replaces it. Default: on.
   */
  readonly generalPurpose?:
    | false
    | {
        /** Tells the agent when to choose it. Default: a built-in text. */
        readonly description?: string | undefined
        /** Its system prompt. Default: a built-in text. */
        readonly prompt?: string | undefined
      }
    | undefined
  /** The deepest nesting of agents. Default: 3. */
  readonly maxDepth?: number | undefined
  /** Criteria in words, by which each answer is graded. An insufficient answer is sent back. Default: none. */
  readonly verify?: string | undefined
  /**
   * The criteria by which the work is done. Each has to be shown by words of the answer or of a tool's result. Default:
   * none.
   */
  readonly goal?: ReadonlyArray<string> | undefined
  /** Sends answers back whose quality is below this, from 0 to 1; `true` is 0.8. Default: `false`. */
  readonly reflect?: boolean | number | undefined
  /** Recalls facts of earlier conversations, and keeps new ones after a run, in a `MemoryStore`. Default: none. */
  readonly facts?: Facts.Options | undefined
  /** The calls that need an approval, in sub-agents too. Default: none. */
  readonly approvals?: HumanInTheLoop.Options | undefined
}
