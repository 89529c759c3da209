/** Synchronises the thread's tasks with the supervisor's before each round. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { IdGenerator } from "../../../core/IdGenerator.ts"
import * as Message from "../../../core/Message.ts"
import * as Middleware from "../../../core/Middleware.ts"
import type { Run } from "../../../core/Run.ts"
import { defined } from "../../../support/json/defined.ts"
import { BackgroundTasks, isOpen, type Task, type Worker } from "../../BackgroundTasks.ts"
import { absorb, background, change, type TaskList, type Record } from "./state.ts"

/** The `source` of the message that reports finished tasks. */
export const source = "background-tasks"

/** The name of the custom event for a task that started, ended or stopped. */
const eventName = "background-task"

/** Workers by name, and the greatest depth of nested agents. */
export interface Settings {
  readonly workers: ReadonlyMap<string, Worker<unknown>>
  readonly maxDepth: number
  /** The names of the tools of local workers. */
  readonly reaches: ReadonlySet<string>
}

/** Emits the status of a task as an event. */
export const report = (run: Run, id: string, task: Pick<Task, "agent" | "status" | "usage">): Effect.Effect<void> =>
  run.custom(eventName, defined({ id, agent: task.agent, status: task.status, usage: task.usage && { ...task.usage } }))

const lostText = "Its process is gone. Whether it came to an end, and what it did until then, is not known."

/** The thread's record of a task, as a task. */
const fromRecord = (
  group: string,
  { id: _id, notice: _notice, place: _place, told: _told, ...task }: Record
): Task => ({ ...task, group, text: "", pending: [] })

/** Makes the supervisor resume a task of an earlier process, if its worker can. */
const adopt = Effect.fnUntraced(function* (settings: Settings, group: string, record: Record) {
  const reopen = settings.workers.get(record.agent)?.reopen
  if (reopen === undefined || record.kept === undefined) return undefined
  const session = yield* reopen(record.kept)
  if (session === undefined) return undefined
  const tasks = yield* BackgroundTasks
  // A task that can't be resumed now (too many run) stays unchanged for the next attempt.
  return yield* Effect.catch(tasks.adopt(fromRecord(group, record), session), () =>
    Effect.succeed(fromRecord(group, record))
  )
})

/** Time (milliseconds) for a resumed task to report. */
const hearing = 5_000

/**
 * Finds the state of a task: from the supervisor, else a server. Returns `undefined` if the thread's record is best.
 * `wait` is in milliseconds; `revive` also resumes tasks that are lost, over or waiting.
 */
export const look = Effect.fnUntraced(function* (
  settings: Settings,
  group: string,
  record: Record,
  options?: { readonly wait?: number | undefined; readonly revive?: boolean | undefined }
) {
  const tasks = yield* BackgroundTasks
  const revive = options?.revive === true
  const check = (wait: number | undefined) =>
    Effect.catch(tasks.check(record.key, wait), () => Effect.succeed(undefined))
  const task = yield* check(options?.wait)
  if (task !== undefined && (!revive || (task.status !== "lost" && task.status !== "suspended"))) return task
  if (task === undefined && !isOpen(record.status) && !revive) return undefined
  const adopted = yield* adopt(settings, group, record)
  if (adopted !== undefined) {
    return revive ? ((yield* check(Math.max(options?.wait ?? 0, hearing))) ?? adopted) : adopted
  }
  if (task !== undefined || !isOpen(record.status)) return task
  const updatedAt = yield* Clock.currentTimeMillis
  return { ...fromRecord(group, record), status: "lost" as const, text: lostText, updatedAt }
})

/** Updates the thread's records of its open tasks. */
export const refresh = Effect.fnUntraced(function* (settings: Settings, run: Run, current: TaskList) {
  for (const record of current.tasks) {
    if (!isOpen(record.status)) continue
    const task = yield* look(settings, current.group, record)
    if (task !== undefined && (yield* absorb(run.state, record, task, false))) yield* report(run, record.id, task)
  }
})

const hints: { readonly [status in Task["status"]]: string } = {
  running: "",
  completed: "check_task gives its answer.",
  failed: "check_task says why.",
  cancelled: "It was not you who cancelled it.",
  suspended: "It waits for a decision of a person. check_task says on what.",
  lost: "check_task says more."
}

/** The announcement has no text of sub-agents: that comes as a tool result, not in the user's place. */
const words = (due: ReadonlyArray<Record>): string =>
  [
    "This is said by the system, not by the user. Of your tasks in the background:",
    ...due.map(({ agent, id, status }) => `- ${id} (${agent}) is ${status}. ${hints[status]}`)
  ].join("\n")

/**
 * Before each round: polls the open tasks, and announces the ended or stopped ones to the model once. An announcement
 * counts when it is in the transcript, so an interruption before that loses nothing.
 */
export const seam = (settings: Settings) =>
  Effect.fnUntraced(function* (run: Run) {
    const current = yield* run.state.get(background)
    if (current === null) return undefined
    yield* refresh(settings, run, current)
    const due: Array<Record> = []
    for (const record of (yield* run.state.get(background))?.tasks ?? []) {
      if (record.told) continue
      const isSaid =
        record.notice !== undefined && run.messages.findLast(({ id }) => id === record.notice) !== undefined
      if (isSaid) yield* change(run.state, record.id, ({ notice: _notice, ...rest }) => ({ ...rest, told: true }))
      else due.push(record)
    }
    if (due.length === 0) return undefined
    const makeId = yield* IdGenerator
    const notice = makeId()
    for (const { id } of due) yield* change(run.state, id, (record) => ({ ...record, notice }))
    return Middleware.continueWith(Message.human(words(due), { id: notice, source }))
  })
