/**
 * Runs tasks in the background under one supervisor. They continue after the run that started them.
 *
 * `layer` is the supervisor, and its scope owns the tasks: provide it around all runs of a thread, and close it when
 * the process ends. `BackgroundSubagents` gives a model the tools for tasks. A program inspects the same tasks, and
 * answers their pending requests, by this service.
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
import type { AnySlot } from "../core/AgentState.ts"
import type { Json } from "../core/Json.ts"
import type * as Tool from "../core/Tool.ts"
import type { ToolContext } from "../core/ToolContext.ts"
import { makeLayerCheck } from "../support/options/check.ts"
import { background } from "./internal/background/state.ts"
import { make } from "./internal/background/supervisor.ts"
import type { Service, Session } from "./internal/background/task.ts"
import { countProblem, timeOf, timeProblem } from "./internal/limits.ts"
import * as shapes from "./internal/shapes.ts"

export { isOpen, Reason, Status, Task, TaskError } from "./internal/background/task.ts"
export type { Ask, TaskEnd, Service, Session } from "./internal/background/task.ts"

/**
 * A worker for background tasks. `BackgroundSubagents` makes one of an `Agent`, `RemoteAgents` of an agent on a server.
 * `open` starts a new task. `reopen` resumes a task of another process, if the worker can.
 */
export interface Worker<out R = never> {
  readonly name: string
  /** A configuration problem of the worker. Agents with such a worker are rejected. */
  readonly problem?: string | undefined
  readonly description: string
  /**
   * The parameters of a worker whose task is data: a tool of the worker's name starts it in place of `start_task`, and
   * the task is the JSON of its arguments. Default: the task is a text.
   */
  readonly parameters?: Tool.Parameters | undefined
  readonly open: Effect.Effect<Session, never, R | ToolContext>
  readonly reopen: ((kept: Json) => Effect.Effect<Session | undefined, never, R>) | undefined
}

/** The slot of a thread's tasks, whose changes are `StateChanged` events. */
export const slot: AnySlot = background

/** The supervisor of background tasks. */
export class BackgroundTasks extends Context.Service<BackgroundTasks, Service>()("effect-deepagents/BackgroundTasks") {}

/** Limits of background tasks. */
export interface Options {
  /** The most running tasks of one group. Default: 8. */
  readonly maxRunning?: number | undefined
  /** The most running tasks of all groups. Default: 64. */
  readonly maxTotal?: number | undefined
  /** The time after which a task is stopped and fails. Default: 1 hour. */
  readonly maxDuration?: Duration.Input | undefined
  /** The most finished tasks that are kept; the oldest are dropped first. Default: 64. */
  readonly keep?: number | undefined
}

const refuseLayer = makeLayerCheck("BackgroundTasks.layer", shapes.backgroundTasksLayer)

/**
 * Makes the supervisor. Closing the layer interrupts its tasks. A remote agent continues then, and the next process
 * resumes its task. An invalid limit is a defect of the layer.
 */
export const layer = (options?: Options): Layer.Layer<BackgroundTasks> =>
  refuseLayer(options) ??
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
