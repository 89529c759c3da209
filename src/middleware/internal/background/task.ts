/** A task in the background, as its worker and its supervisor know it; public by `BackgroundTasks`. */
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type Decision, Request } from "../../../core/Approval.ts"
import { Json } from "../../../core/Json.ts"
import { Usage } from "../../../core/Usage.ts"

/**
 * The status of a task. `suspended` waits for a decision of a person; `lost` was begun, and nobody can say how it ended
 * (its process is gone, or its server can't be reached).
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
 * A task. `key` names it everywhere and can't be guessed. `text` is its answer, why it failed or what it waits for, cut
 * to 20,000 characters. `turn` counts how often it was asked: the task, then each follow-up. Times are milliseconds
 * since the epoch. `pending` are the requests of a suspended one. `kept` is what another process needs to go on with
 * it.
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
 * - `TooMany`: so many tasks run already; wait for one, or cancel one
 * - `NotPossible`: it can't be done in the state that the task is in
 * - `Unavailable`: who does the work (a remote server) could not be asked
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

/** Something could not be done with a task. The task is as it was. */
export class TaskError extends Schema.TaggedError<TaskError>()("TaskError", { reason: Reason }) {
  override get message(): string {
    return explain(this.reason)
  }
}

/** A request to a worker: a task, a message in it, decisions, or to resume where another process stopped. */
export type Ask =
  | { readonly _tag: "Start"; readonly description: string }
  | { readonly _tag: "Message"; readonly text: string }
  | { readonly _tag: "Decisions"; readonly decisions: ReadonlyArray<Decision> }
  | { readonly _tag: "Resume" }

/** The end of a task's turn. */
export interface Ending {
  readonly status: Exclude<Status, "running">
  readonly text: string
  readonly pending?: ReadonlyArray<Request> | undefined
}

/**
 * One task, as its worker does it. `begin` returns as soon as the work is accepted, and gives what waits for its end;
 * interrupting that stops what runs in this process. `steer` says something while it runs: it was `told`, it `ended`
 * meanwhile, or it has to be `begun` again with the message. `cancel` stops what does not run in this process. `usage`
 * and `kept` are as they stand.
 */
export interface Session {
  readonly begin: (ask: Ask) => Effect.Effect<Effect.Effect<Ending, TaskError>, TaskError>
  readonly steer: (message: string) => Effect.Effect<"told" | "ended" | "begin">
  readonly cancel: Effect.Effect<void, TaskError>
  readonly usage: () => Usage | undefined
  readonly kept: () => Json | undefined
}

/** The supervisor. A task belongs to a `group`: those of one thread, which are bounded together. */
export interface Service {
  readonly start: (request: {
    readonly group: string
    readonly agent: string
    readonly description: string
    readonly session: Session
  }) => Effect.Effect<Task, TaskError>
  /** Takes up a task that another process began, under its key. */
  readonly adopt: (task: Task, session: Session) => Effect.Effect<Task, TaskError>
  /** Gives a task as it stands; with `wait`, once it is over or so many milliseconds have passed. */
  readonly check: (key: string, wait?: number) => Effect.Effect<Task, TaskError>
  /** Says something to a task that runs, or goes on with one that is completed. */
  readonly update: (key: string, message: string) => Effect.Effect<Task, TaskError>
  readonly cancel: (key: string) => Effect.Effect<Task, TaskError>
  /** Decides what a suspended task waits for, some of it or all. It is for people: no tool of a model does it. */
  readonly decide: (key: string, decisions: ReadonlyArray<Decision>) => Effect.Effect<Task, TaskError>
  /** The tasks of a group, or all, in the order in which they were begun. */
  readonly list: (group?: string) => Effect.Effect<ReadonlyArray<Task>>
}
