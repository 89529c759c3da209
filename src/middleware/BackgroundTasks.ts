/**
 * Tasks in the background: work that goes on after the run that began it, under one supervisor.
 *
 * `layer` is the supervisor. What it runs lives in the scope of the layer: provide it around all runs of a thread, and
 * close it when the process ends. `BackgroundSubagents` gives a model the tools for it; a program looks at the same
 * tasks, and decides what they wait for, by this service.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { BackgroundTasks } from "effect-deepagents/middleware"
 *
 * const running = Effect.map(
 *   BackgroundTasks.BackgroundTasks.use((tasks) => tasks.list()),
 *   (tasks) => tasks.filter(({ status }) => status === "running").length
 * )
 * ```
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Json } from "../core/Json.ts"
import type { ToolContext } from "../core/ToolContext.ts"
import { make } from "./internal/background/supervisor.ts"
import type { Service, Session } from "./internal/background/task.ts"
import { countProblem, timeOf, timeProblem } from "./internal/limits.ts"

export { isOpen, Reason, Status, Task, TaskError } from "./internal/background/task.ts"
export type { Ask, Ending, Service, Session } from "./internal/background/task.ts"

/**
 * A worker for tasks in the background: an `Agent` is made one by `BackgroundSubagents`, an agent on a server by
 * `RemoteAgents`. `open` is for a new task, `reopen` for one that another process began, where that is possible.
 */
export interface Worker<out R = never> {
  readonly name: string
  /** A problem that keeps it from working at all: agents that have it are refused. */
  readonly problem?: string | undefined
  readonly description: string
  readonly open: Effect.Effect<Session, never, R | ToolContext>
  readonly reopen: ((kept: Json) => Effect.Effect<Session | undefined, never, R>) | undefined
}

/** The supervisor of tasks in the background. */
export class BackgroundTasks extends Context.Service<BackgroundTasks, Service>()("effect-deepagents/BackgroundTasks") {}

/**
 * - `maxRunning`: how many tasks of one group run at once (8)
 * - `maxTotal`: how many run at once in all (64)
 * - `maxDuration`: how long one may run before it is stopped and fails (1 hour)
 * - `keep`: how many that do not run are kept, the oldest go first (64)
 */
interface Options {
  readonly maxRunning?: number | undefined
  readonly maxTotal?: number | undefined
  readonly maxDuration?: Duration.Input | undefined
  readonly keep?: number | undefined
}

/**
 * The supervisor. What runs is interrupted when the layer closes; a remote agent goes on then, and is taken up again by
 * the next process. A limit that is no number is a defect of the program: the layer dies of it.
 */
export const layer = (options?: Options): Layer.Layer<BackgroundTasks> =>
  Layer.effect(
    BackgroundTasks,
    Effect.suspend(() => {
      const { keep = 64, maxDuration = "1 hour", maxRunning = 8, maxTotal = 64 } = options ?? {}
      const problem =
        countProblem("BackgroundTasks", { maxRunning, maxTotal }, 1) ??
        countProblem("BackgroundTasks", { keep }) ??
        timeProblem("BackgroundTasks", { maxDuration })
      return problem === undefined
        ? make({ maxRunning, maxTotal, maxDuration: Duration.toMillis(timeOf(maxDuration)), keep })
        : Effect.die(new RangeError(problem))
    })
  )
