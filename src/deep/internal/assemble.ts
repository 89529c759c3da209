/** Makes the parts of a deep agent's stack, and the agent of them. */
import * as Effect from "effect/Effect"
import * as FileTools from "../../backends/FileTools.ts"
import * as Processes from "../../backends/Processes.ts"
import * as Agent from "../../core/Agent.ts"
import { make } from "../../core/Middleware.ts"
import { nameIn } from "../../core/schema/invalid.ts"
import * as Filesystem from "../../middleware/Filesystem.ts"
import * as Memory from "../../middleware/Memory.ts"
import * as ModelRetry from "../../middleware/ModelRetry.ts"
import * as ModelTimeout from "../../middleware/ModelTimeout.ts"
import * as PromptCaching from "../../middleware/PromptCaching.ts"
import * as Skills from "../../middleware/Skills.ts"
import * as Summarization from "../../middleware/Summarization.ts"
import * as Todos from "../../middleware/Todos.ts"
import { builtIn } from "../../profiles/HarnessProfile.ts"
import { once } from "../../support/effect/once.ts"
import { harness } from "./harness.ts"
import type { SubagentOptions, SummaryOptions } from "./options.ts"
import type { AnyMiddleware } from "./stack.ts"

/** Keeps the open todos in a summary. */
const keepTodos: NonNullable<Summarization.Options["keep"]> = (run) =>
  Effect.map(run.state.get(Todos.todos), (list) => {
    const open = Todos.open(list)
    return open.length === 0 ? "" : `Todos that are open:\n${Todos.render(open)}`
  })

/** Paths of an agent with an id in its backend: the user's folder for it, and the project's. */
const home = (agentId: string | undefined) =>
  agentId === undefined
    ? { memory: [], skills: [] }
    : {
        memory: ["/agent/agent.md", "/.deepagents/agent.md", "/AGENTS.md"],
        skills: ["/agent/skills", "/.deepagents/skills"]
      }

/** Lists the places of an agent's skills. */
export const skillsOf = (options: SubagentOptions): ReadonlyArray<string> => [
  ...home(options.agentId).skills,
  ...(options.skills ?? [])
]

const summaries = (options: SummaryOptions | undefined, todos: boolean) =>
  Summarization.make({ ...options, offload: true, tool: true, keep: todos ? keepTodos : undefined })

/**
 * Parts without options, which all agents share: a part keeps its data by run. Inherited parts are made for each agent,
 * since an agent does not inherit a part that it has itself.
 */
const usual = {
  harness: once(() => harness(builtIn)),
  todos: once(Todos.make),
  summaries: { with: once(() => summaries(undefined, true)), without: once(() => summaries(undefined, false)) },
  // The limit is per try: a hanging call is retried, and waiting for a retry is not silence.
  last: once(() => [ModelRetry.make(), ModelTimeout.make()])
}

const startsProcesses = ({ execute }: SubagentOptions): boolean =>
  typeof execute === "object" && execute.background === true

/** The parts that an agent and its sub-agents share: before the user's own middleware, and after it. */
export const layers = (options: SubagentOptions) => {
  const skills = skillsOf(options)
  const memory = [...home(options.agentId).memory, ...(options.memory ?? [])]
  const todos = options.todos !== false
  const { largeResults, profiles, summarization } = options
  return {
    first: [
      profiles === undefined ? usual.harness() : harness(profiles),
      ...(todos ? [usual.todos()] : []),
      ...(skills.length === 0 ? [] : [Skills.make({ sources: skills })]),
      ...(largeResults === false ? [] : [Filesystem.make(largeResults)]),
      ...(startsProcesses(options) ? [Processes.notices()] : [])
    ],
    summary:
      summarization === false
        ? []
        : summarization === undefined
          ? [usual.summaries[todos ? "with" : "without"]()]
          : [summaries(summarization, todos)],
    tail: [PromptCaching.make(), ...(memory.length === 0 ? [] : [Memory.make({ sources: memory })])],
    last: usual.last()
  }
}

const toolsOf = ({
  documents,
  execute = false,
  files: only,
  tools = []
}: SubagentOptions): SubagentOptions["tools"] => [
  ...(execute === false ? FileTools.make({ documents, only }) : FileTools.make({ documents, only, execute })),
  ...tools
]

/** An agent whose options are wrong. */
export const invalid = (options: unknown, problem: string): Agent.Agent<never, never, never> =>
  // Its runs fail before it says or needs anything.
  Agent.make({
    name: nameIn(options),
    prompt: "",
    middleware: [make({ name: "Options", check: () => problem })]
  }) as Agent.Agent<unknown, unknown, unknown> as Agent.Agent<never, never, never>

/** Makes the agent of these options with this middleware. */
export const assemble = (options: SubagentOptions, middleware: ReadonlyArray<AnyMiddleware>) =>
  Agent.make({
    name: options.name,
    prompt: options.prompt,
    tools: toolsOf(options) ?? [],
    middleware,
    maxRounds: options.maxRounds ?? 200,
    stopWhen: options.stopWhen ?? [],
    description: options.description,
    parameters: options.parameters,
    toolConcurrency: options.toolConcurrency,
    output: options.output
  })
