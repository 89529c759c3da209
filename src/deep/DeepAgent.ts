/**
 * An agent for long work: it plans, works on files, has sub-agents do parts, and keeps its conversation within the model's
 * window. One function stacks what the middlewares of this library do, in the order that fits.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { MemoryBackend } from "effect-deepagents/backends"
 * import { DeepAgent } from "effect-deepagents/deep"
 *
 * const researcher = DeepAgent.make({
 *   name: "researcher",
 *   prompt: "You answer questions by reading the documents, and name your sources."
 * })
 *
 * const answer = Agent.run(researcher, "What changed in version 4?").pipe(Effect.provide(MemoryBackend.layer()))
 * ```
 *
 * From the outside in: what fits the agent to its model (`HarnessProfile`), todos, skills, large results to files,
 * sub-agents, summarization, your own middleware, cache marks, memory, approvals, time-outs and retries. One of yours
 * with the name of one of these takes its place.
 */
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import * as FileTools from "../backends/FileTools.ts"
import * as Agent from "../core/Agent.ts"
import type { Approvals } from "../core/Approval.ts"
import type { Backend } from "../core/Backend.ts"
import type { ChatModel } from "../core/ChatModel.ts"
import type { JsonObject } from "../core/Json.ts"
import type * as Middleware from "../core/Middleware.ts"
import type { ModelError } from "../core/ModelError.ts"
import type { Sandbox } from "../core/Sandbox.ts"
import type * as StopWhen from "../core/StopWhen.ts"
import type * as Tool from "../core/Tool.ts"
import type { ToolContext } from "../core/ToolContext.ts"
import * as Filesystem from "../middleware/Filesystem.ts"
import * as HumanInTheLoop from "../middleware/HumanInTheLoop.ts"
import * as Memory from "../middleware/Memory.ts"
import * as ModelRetry from "../middleware/ModelRetry.ts"
import * as ModelTimeout from "../middleware/ModelTimeout.ts"
import * as PromptCaching from "../middleware/PromptCaching.ts"
import * as Skills from "../middleware/Skills.ts"
import * as Subagents from "../middleware/Subagents.ts"
import * as Summarization from "../middleware/Summarization.ts"
import * as Todos from "../middleware/Todos.ts"
import { builtIn, type HarnessProfile } from "../profiles/HarnessProfile.ts"
import { harness } from "./internal/harness.ts"
import { home } from "./internal/home.ts"
import { type AnyMiddleware, stack } from "./internal/stack.ts"

/** The name of the sub-agent for whatever needs a context of its own. */
export const generalPurpose = "general-purpose"

/** What can be said of summaries here. */
export type SummaryOptions = Pick<Summarization.Options, "trigger" | "tail" | "contextWindowTokens" | "counter">

/**
 * What deep agents and their sub-agents have in common.
 *
 * - `prompt`: comes first; what fits the model, and what the middlewares say, comes after it
 * - `tools`: beside the file tools
 * - `files`: which file tools (default: all)
 * - `execute`: also `execute`, which needs a `Sandbox`
 * - `middleware`: your own; one with the name of one of ours takes its place
 * - `todos`: whether there is a list of todos (default `true`)
 * - `memory`, `skills`: where they are read from, in the backend
 * - `agentId`: reads memory and skills from `/agent` (the user's own folder for this agent, where `AgentHome.layer` mounts
 *   it), `/.deepagents` and `/AGENTS.md` of the project too
 * - `summarization`, `largeResults`: options, or `false` for none. Give a `Summarization.make` of your own to `middleware`
 *   for what is not here (another model for the summaries)
 * - `profiles`: what fits the agent to its model, the built-in ones by default
 * - `maxIterations`: 200 by default
 */
export interface Common<Tools, Stack, Execute> {
  readonly name: string
  readonly description?: string
  readonly prompt: string | Effect.Effect<string>
  readonly tools?: Tools
  readonly files?: ReadonlyArray<FileTools.Name>
  readonly execute?: Execute
  readonly middleware?: Stack
  readonly todos?: boolean
  readonly memory?: ReadonlyArray<string>
  readonly skills?: ReadonlyArray<string>
  readonly agentId?: string
  readonly summarization?: SummaryOptions | false
  readonly largeResults?: Filesystem.Options | false
  readonly profiles?: ReadonlyArray<HarnessProfile>
  readonly parameters?: JsonObject
  readonly maxIterations?: number
  readonly toolConcurrency?: number
}

type AnyTools = ReadonlyArray<Tool.Tool<unknown>>
type AnyStack = ReadonlyArray<Middleware.Middleware<unknown, unknown>>
type AnySubagents = Parameters<typeof Subagents.make>[0]["agents"]

/** What the tools, the middleware and the file tools of an agent need. */
type Needs<Tools extends AnyTools, Stack extends AnyStack, Execute> =
  | ChatModel
  | Backend
  | Exclude<Tool.Services<Tools[number]> | Middleware.Services<Stack[number]>, ToolContext>
  | (Execute extends true ? Sandbox : never)

/** What is still open of the todos is not lost in a summary. */
const keepTodos: NonNullable<Summarization.Options["keep"]> = (run) =>
  Effect.map(run.state.get(Todos.todos), (list) => {
    const open = Todos.open(list)
    return open.length === 0 ? "" : `Todos that are open:\n${Todos.render(open)}`
  })

/** The layers of the stack that an agent and its sub-agents share: what comes before the user's own, and what after. */
const layers = (options: Common<AnyTools, AnyStack, boolean>) => {
  const at = home(options.agentId)
  const skills = [...at.skills, ...(options.skills ?? [])]
  const memory = [...at.memory, ...(options.memory ?? [])]
  const todos = options.todos !== false
  const { summarization } = options
  return {
    first: [
      harness(options.profiles ?? builtIn),
      ...(todos ? [Todos.make()] : []),
      ...(skills.length === 0 ? [] : [Skills.make({ sources: skills })]),
      ...(options.largeResults === false ? [] : [Filesystem.make(options.largeResults)])
    ],
    summary:
      summarization === false
        ? []
        : [
            Summarization.make({
              ...summarization,
              offload: true,
              tool: true,
              ...(todos ? { keep: keepTodos } : {})
            })
          ],
    tail: [PromptCaching.make(), ...(memory.length === 0 ? [] : [Memory.make({ sources: memory })])],
    last: [ModelTimeout.make(), ModelRetry.make()]
  }
}

const toolsOf = (options: Common<AnyTools, AnyStack, boolean>): AnyTools => {
  const only = options.files === undefined ? {} : { only: options.files }
  return [
    ...(options.execute === true ? FileTools.make({ ...only, execute: true }) : FileTools.make(only)),
    ...(options.tools ?? [])
  ]
}

const rest = (options: Common<AnyTools, AnyStack, boolean>) => ({
  ...(options.description === undefined ? {} : { description: options.description }),
  ...(options.parameters === undefined ? {} : { parameters: options.parameters }),
  ...(options.toolConcurrency === undefined ? {} : { toolConcurrency: options.toolConcurrency }),
  maxIterations: options.maxIterations ?? 200
})

/**
 * Makes a sub-agent with the stack of a deep agent, for its `subagents`: file tools, todos, large results to files,
 * summaries. `Agent.provide` gives it a model of its own. Any other `Agent` does as well.
 */
export const subagent = <
  const Tools extends AnyTools = readonly [],
  const Stack extends AnyStack = readonly [],
  const Execute extends boolean = false,
  Output = string
>(
  options: Common<Tools, Stack, Execute> & { readonly output?: Schema.ConstraintCodec<Output, unknown> }
): Agent.Agent<
  Output | Middleware.Suspension<Stack[number]>,
  ModelError | Middleware.Error<Stack[number]>,
  Needs<Tools, Stack, Execute>
> => {
  const { first, last, summary, tail } = layers(options)
  // The parts were put together by names; the type sums up what they are made of.
  return Agent.make({
    name: options.name,
    prompt: options.prompt,
    ...rest(options),
    tools: toolsOf(options),
    middleware: stack([...first, ...summary], options.middleware ?? [], [...tail, ...last]),
    ...(options.output === undefined ? {} : { output: options.output })
  }) as Agent.Agent<never, never, never>
}

/** Who is asked: the `Approvals` service while the run waits, or whoever resumes the run that is suspended. */
export type ApprovalMode = "ask" | "suspend"

/** Which calls are asked about, and how. */
export interface ApprovalOptions<Mode extends ApprovalMode> extends HumanInTheLoop.Options {
  readonly mode: Mode
}

const approvalsOf = (options: ApprovalOptions<ApprovalMode> | undefined): ReadonlyArray<AnyMiddleware> =>
  options === undefined
    ? []
    : [options.mode === "ask" ? HumanInTheLoop.make(options) : HumanInTheLoop.suspending(options)]

const generalPrompt =
  "You do one task for another agent, in full, with the tools that you have. Nobody can answer questions. Your last message is all that the other agent sees: give it what it asked for, with the paths of the files that you wrote."

const generalDescription =
  "Does any task that needs several steps, with the same tools as you have. For searching and reading much to learn little, and for work beside other work."

/**
 * What is added for the agent at the top.
 *
 * - `subagents`: agents for `task` (`DeepAgent.subagent`, or any `Agent`)
 * - `generalPurpose`: the sub-agent that has this agent's tools; `false` for none, or other words for it
 * - `maxDepth`: how deep agents may be nested (3)
 * - `approvals`: which calls a person is asked about, in sub-agents too
 * - `output`: the schema of the answer
 */
export interface Options<Tools, Stack, Execute, Subs, Mode extends ApprovalMode, Output> extends Common<
  Tools,
  Stack,
  Execute
> {
  readonly subagents?: Subs
  readonly generalPurpose?: false | { readonly description?: string; readonly prompt?: string }
  readonly maxDepth?: number
  readonly approvals?: ApprovalOptions<Mode>
  readonly output?: Schema.ConstraintCodec<Output, unknown>
  readonly stopWhen?: ReadonlyArray<StopWhen.StopWhen>
}

/**
 * Makes a deep agent. Two tools of one name, and whatever else can't run, fail its runs with `AgentError`
 * (`InvalidAgent`), which names them. Its files are where the `Backend` in context has them.
 */
export const make = <
  const Tools extends AnyTools = readonly [],
  const Stack extends AnyStack = readonly [],
  const Execute extends boolean = false,
  const Subs extends AnySubagents = readonly [],
  const Mode extends ApprovalMode = never,
  Output = string
>(
  options: Options<Tools, Stack, Execute, Subs, Mode, Output>
): Agent.Agent<
  Output | Middleware.Suspension<Stack[number]> | ("suspend" extends Mode ? undefined : never),
  ModelError | Middleware.Error<Stack[number]>,
  Needs<Tools, Stack, Execute> | Subagents.Services<Subs[number]> | ("ask" extends Mode ? Approvals : never)
> => {
  const { first, last, summary, tail } = layers(options)
  // What is not inherited of the middleware is this agent's own, and so is its memory.
  const { agentId: _agentId, memory: _memory, middleware: _middleware, output: _output, ...shared } = options
  const { description, prompt } = options.generalPurpose === false ? {} : (options.generalPurpose ?? {})
  const general =
    options.generalPurpose === false
      ? []
      : [
          subagent({
            ...shared,
            name: generalPurpose,
            description: description ?? generalDescription,
            prompt: prompt ?? generalPrompt
          })
        ]
  const agents = [...general, ...(options.subagents ?? [])]
  const subagents =
    agents.length === 0
      ? []
      : [Subagents.make({ agents, ...(options.maxDepth === undefined ? {} : { maxDepth: options.maxDepth }) })]
  // The parts were put together by names; the type sums up what they are made of.
  return Agent.make({
    name: options.name,
    prompt: options.prompt,
    ...rest(options),
    tools: toolsOf(options),
    middleware: stack([...first, ...subagents, ...summary], options.middleware ?? [], [
      ...tail,
      ...approvalsOf(options.approvals),
      ...last
    ]),
    stopWhen: options.stopWhen ?? [],
    ...(options.output === undefined ? {} : { output: options.output })
  }) as Agent.Agent<never, never, never>
}
