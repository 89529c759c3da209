/**
 * Sub-agents in the background: `start_task` returns at once, and the model is told when the task is over.
 *
 * Five tools: `start_task`, `check_task`, `update_task`, `cancel_task` and `list_tasks`. Tasks continue after the run that
 * started them, in the scope of the supervisor (`BackgroundTasks.layer`); the thread's state records their status. Local
 * agents and agents on servers (`RemoteAgents`) work the same way.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { BackgroundSubagents, BackgroundTasks } from "effect-deepagents/middleware"
 *
 * const researcher = Agent.make({ name: "researcher", description: "Answers one question", prompt: "You search." })
 *
 * const lead = Agent.make({
 *   name: "lead",
 *   prompt: "You answer by sources.",
 *   middleware: [BackgroundSubagents.make({ agents: [researcher] })]
 * })
 *
 * const chat = Effect.gen(function* () {
 *   yield* Agent.run(lead, "Find out who invented the zip", { threadId: "ada" })
 *   return yield* Agent.run(lead, "And?", { threadId: "ada" })
 * }).pipe(Effect.provide(BackgroundTasks.layer()))
 * ```
 */
import * as Result from "effect/Result"
import * as Agent from "../core/Agent.ts"
import * as AgentState from "../core/AgentState.ts"
import * as Middleware from "../core/Middleware.ts"
import type { InvalidEncoding } from "../core/schema/encoding.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import type { ToolContext } from "../core/ToolContext.ts"
import type { BackgroundTasks, Worker } from "./BackgroundTasks.ts"
import { local } from "./internal/background/local.ts"
import { seam, type Settings, source } from "./internal/background/seam.ts"
import { background, type Record as TaskRecord } from "./internal/background/state.ts"
import { makeTools, toolNames } from "./internal/background/tools.ts"
import { countProblem } from "./internal/limits.ts"
import { twoOfOneName } from "./internal/names.ts"
import * as shapes from "./internal/shapes.ts"
import { defaultMaxDepth, type Fork, type Services as SubagentServices } from "./Subagents.ts"

export {
  /** The `source` of the messages that report finished tasks to the model. */
  source,
  /** The names of the tools. */
  toolNames
}

const name = "BackgroundSubagents"

type AnyAgent = Agent.Agent<unknown, unknown, unknown>

type Entry = AnyAgent | Fork<AnyAgent> | Worker<unknown>

/** Services that sub-agents in the background need. */
export type Services<T> = T extends Worker<infer R> ? R : SubagentServices<T>

const prompt = `Tasks that take long can be done in the background: ${toolNames.start} returns at once, and you are told when the task is over. What was said of a task before may be out of date: ${toolNames.list} and ${toolNames.check} say how it stands now. Don't ask again and again; if you can't go on without it, use ${toolNames.check} with wait_seconds.`

const workerOf = (entry: Entry): Worker<unknown> => ("open" in entry ? entry : local(entry))

const refuseMake = makeMiddlewareCheck(name, shapes.backgroundSubagentsMake)

/**
 * Offers the five tools for these agents: any `Agent`, one that begins with the conversation (`Subagents.fork`), or one
 * on a server (`RemoteAgents.make`). `maxDepth` (3) bounds how deep agents are nested.
 *
 * A local agent has a run of its own: with the services of the task's start, the middleware that sub-agents inherit, and
 * the budget of the starting run. It must not depend on resources that end with the parent's run.
 */
export const make = <const Agents extends ReadonlyArray<Entry>>(options: {
  /**
   * The agents: any `Agent`, a fork of the conversation (`Subagents.fork`), or an agent on a server
   * (`RemoteAgents.make`).
   */
  readonly agents: Agents
  /** The deepest nesting of agents. Default: 3. */
  readonly maxDepth?: number | undefined
}): Middleware.Middleware<never, Services<Agents[number]> | BackgroundTasks | ToolContext> => {
  const refused = refuseMake(options)
  if (refused !== undefined) return refused
  type R = Services<Agents[number]> | BackgroundTasks | ToolContext
  const workers = options.agents.map(workerOf)
  const settings: Settings = {
    workers: new Map(workers.map((worker) => [worker.name, worker])),
    maxDepth: options.maxDepth ?? defaultMaxDepth,
    // Remote agents have no known tools: inherited middleware does not reach them.
    reaches: new Set(
      options.agents.flatMap((one) => ("open" in one ? [] : [...Agent.toolNames("fork" in one ? one.fork : one)]))
    )
  }
  // The types of the agents have the requirements of the workers, which this restores.
  return workers.length === 0
    ? Middleware.make<never, R>({ name })
    : (Middleware.make({
        name,
        check: () =>
          twoOfOneName("sub-agents in the background", workers) ??
          workers.map(({ problem }) => problem).find((problem) => problem !== undefined) ??
          countProblem(name, { maxDepth: options.maxDepth }),
        state: [background],
        prompt,
        tools: makeTools(settings),
        beforeModel: seam(settings)
      }) as Middleware.Middleware<never, R>)
}

/** Reads the tasks of a thread from the state of a result, in the order in which they began. */
export const tasks = (
  state: AgentState.Snapshot
): Result.Result<ReadonlyArray<typeof TaskRecord.Type>, InvalidEncoding> =>
  Result.map(AgentState.read(state, background), (current) => current?.tasks ?? [])
