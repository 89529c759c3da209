/** A background task, as its worker and its supervisor know it; public by `BackgroundTasks`. */
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Stream from "effect/Stream"
import { type Decision, Request } from "../../../core/Approval.ts"
import { Json } from "../../../core/Json.ts"
import { Usage } from "../../../core/Usage.ts"
import { TaggedError } from "../../../support/effect/taggedError.ts"

/**
 * The status of a task. `suspended` waits for a person's decision. The end of a `lost` task is unknown: its process is
 * gone, or its server unreachable.
 */
export const Status = Schema.Literals(["running", "completed", "failed", "cancelled", "suspended", "lost"])
export type Status = typeof Status.Type

/** Reports whether a task with this status may still continue, by itself or by a decision. */
export const isOpen = (status: Status): boolean => status === "running" || status === "suspended"

/** The parts of a task that its thread keeps too. */
export const lasting = {
  key: Schema.String,
  agent: Schema.String,
  description: Schema.String,
  status: Status,
  turn: Schema.Finite,
  startedAt: Schema.Finite,
  updatedAt: Schema.Finite,
  usage: Schema.optionalKey(Usage),
  kept: Schema.optionalKey(Json)
}

/**
 * A task. `key` is its global name and can't be guessed. `text` is its answer, its failure or its question, cut to
 * 20,000 characters. `turn` counts its inputs: the task, then each follow-up. Times are milliseconds since the epoch.
 * `pending` are the requests of a suspended one. `kept` is the data for another process to continue it.
 */
export const Task = Schema.Struct({
  ...lasting,
  group: Schema.String,
  text: Schema.String,
  pending: Schema.Array(Request)
})
export type Task = typeof Task.Type

/**
 * - `NotFound`: there is no such task here (its process is gone, or it ended long ago)
 * - `TooMany`: too many tasks run already; wait for one, or cancel one
 * - `NotPossible`: the task's status does not allow it
 * - `Unavailable`: the worker (a remote server) could not be reached
 */
export const Reason = Schema.Union([
  Schema.TaggedStruct("NotFound", {}),
  Schema.TaggedStruct("TooMany", { max: Schema.Finite }),
  Schema.TaggedStruct("NotPossible", { problem: Schema.String }),
  Schema.TaggedStruct("Unavailable", { problem: Schema.String })
])
export type Reason = typeof Reason.Type

const explain = (reason: Reason): string => {
  switch (reason._tag) {
    case "NotFound":
      return "There is no such task here. Start a new one."
    case "TooMany":
      return `${reason.max} tasks run already. Wait for one of them to end, or cancel one.`
    case "NotPossible":
    case "Unavailable":
      return reason.problem
  }
}

/** An operation on a task failed. The task is unchanged. */
export class TaskError extends TaggedError<TaskError>()("TaskError", { reason: Reason }) {
  override get message(): string {
    return explain(this.reason)
  }
}

/** A request to a worker: a task, a message in it, decisions, or to resume another process's task. */
export type Ask =
  | { readonly _tag: "Start"; readonly description: string }
  | { readonly _tag: "Message"; readonly text: string }
  | { readonly _tag: "Decisions"; readonly decisions: ReadonlyArray<Decision> }
  | { readonly _tag: "Resume" }

/** The end of a task's turn. */
export interface TaskEnd {
  readonly status: Exclude<Status, "running">
  readonly text: string
  readonly pending?: ReadonlyArray<Request> | undefined
}

/**
 * One task at its worker. `begin` returns when the work is accepted, with an effect that waits for its end;
 * interrupting that stops the work of this process. `steer` sends a message to running work: it was `told`, it had
 * `ended`, or it must be `begun` again with the message. `cancel` stops work elsewhere. `usage` and `kept` are current
 * values.
 */
export interface Session {
  readonly begin: (ask: Ask) => Effect.Effect<Effect.Effect<TaskEnd, TaskError>, TaskError>
  readonly steer: (message: string) => Effect.Effect<"told" | "ended" | "begin">
  readonly cancel: Effect.Effect<void, TaskError>
  readonly usage: () => Usage | undefined
  readonly kept: () => Json | undefined
  /** True if a message continues it after a failure: its finished work is kept. Default: `false`. */
  readonly keepsWork?: boolean | undefined
  /** The time after which a turn of it is stopped; infinite for work with limits of its own. Default: the service's. */
  readonly maxDuration?: Duration.Input | undefined
}

/** The supervisor. A task belongs to a `group`: the tasks of one thread, with a common limit. */
export interface Service {
  readonly start: (request: {
    readonly group: string
    readonly agent: string
    readonly description: string
    readonly session: Session
  }) => Effect.Effect<Task, TaskError>
  /** Resumes another process's task under its key. */
  readonly adopt: (task: Task, session: Session) => Effect.Effect<Task, TaskError>
  /** Returns a task; with `wait`, at its end or after so many milliseconds. */
  readonly check: (key: string, wait?: number) => Effect.Effect<Task, TaskError>
  /** Sends a message to a running task, or continues a completed one. A failed one continues if it keeps its work. */
  readonly update: (key: string, message: string) => Effect.Effect<Task, TaskError>
  readonly cancel: (key: string) => Effect.Effect<Task, TaskError>
  /** Decides some or all pending requests of a suspended task. It is for people: no tool of a model does it. */
  readonly decide: (key: string, decisions: ReadonlyArray<Decision>) => Effect.Effect<Task, TaskError>
  /** The tasks of a group, or all, in the order of their start. */
  readonly list: (group?: string) => Effect.Effect<ReadonlyArray<Task>>
  /** Each task whose turn ends from now on, with how it stands. */
  readonly ended: Stream.Stream<Task>
}
