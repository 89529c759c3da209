/** Tasks in the state of a thread: their records, and their results in slots beside them. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as AgentState from "../../../core/AgentState.ts"
import { IdGenerator } from "../../../core/IdGenerator.ts"
import { canonical } from "../../../core/schema/jsonTree.ts"
import { defined } from "../../../support/json/defined.ts"
import { isOpen, lasting, type Task } from "./task.ts"

/** The most tasks that a thread remembers; the oldest finished one is dropped first. */
const maxRecords = 64

/** Characters of a task's description that a thread remembers. */
const maxDescription = 300

/**
 * A task's record in its thread. `id` is its name for the model, `place` the slot of its text. `told` is true if the
 * model knows this status; `notice` is the id of the announcement.
 */
export const Record = Schema.Struct({
  ...lasting,
  id: Schema.String,
  place: Schema.Finite,
  told: Schema.Boolean,
  notice: Schema.optionalKey(Schema.String)
})
export type Record = typeof Record.Type

const Known = Schema.Struct({ group: Schema.String, next: Schema.Finite, tasks: Schema.Array(Record) })
export type TaskList = typeof Known.Type

/** The tasks of a thread: an agent's own, and in each checkpoint. `null` before the first. */
export const background = AgentState.slot<TaskList | null, unknown>("backgroundTasks", {
  schema: Schema.NullOr(Known),
  initial: null
})

/** The result of a task by its place: a slot each, so that a change of one task does not store all texts again. */
export const textAt = AgentState.family("backgroundTasks.", { schema: Schema.String, initial: "" })

type Store = AgentState.Store

/** The group of a thread's tasks, created with the first task. */
export const groupOf = Effect.fnUntraced(function* (state: Store) {
  const makeId = yield* IdGenerator
  const group = makeId()
  yield* state.update(background, (current) => current ?? { group, next: 1, tasks: [] })
  return (yield* state.get(background))?.group ?? group
})

/** The task with an id. */
export const find = (state: Store, id: string): Effect.Effect<Record | undefined> =>
  Effect.map(state.get(background), (current) => current?.tasks.find((record) => record.id === id))

const edit = (state: Store, f: (current: TaskList) => TaskList): Effect.Effect<void> =>
  state.update(background, (current) => (current === null ? null : f(current)))

/** Changes the record of one task. */
export const change = (state: Store, id: string, f: (record: Record) => Record): Effect.Effect<void> =>
  edit(state, (current) => ({ ...current, tasks: current.tasks.map((one) => (one.id === id ? f(one) : one)) }))

/** The first free place. */
const freePlace = (tasks: ReadonlyArray<Record>): number => {
  const used = new Set(tasks.map(({ place }) => place))
  let place = 0
  while (used.has(place)) place++
  return place
}

const parts = ({ kept, usage }: Pick<Task, "kept" | "usage">) => defined({ usage, kept })

/** Records a new task and returns its id. */
export const remember = Effect.fnUntraced(function* (state: Store, task: Task) {
  let record: Record | undefined
  yield* edit(state, (current) => {
    const oldest = current.tasks.length < maxRecords ? undefined : current.tasks.find((one) => !isOpen(one.status))
    const tasks = current.tasks.filter((one) => one !== oldest)
    const { group: _group, pending: _pending, text: _text, ...rest } = task
    const description = task.description.slice(0, maxDescription)
    record = { ...rest, id: `task-${current.next}`, place: freePlace(tasks), description, told: true }
    return { ...current, next: current.next + 1, tasks: [...tasks, record] }
  })
  if (record !== undefined) yield* state.set(textAt(String(record.place)), "")
  return record?.id ?? ""
})

const same = (record: Record, task: Task): boolean =>
  record.status === task.status &&
  record.turn === task.turn &&
  record.updatedAt === task.updatedAt &&
  canonical(parts(record)) === canonical(parts(task))

/**
 * Copies a task's status to its record. An unknown status needs an announcement, unless `seen`: a result announces it.
 * Returns whether the task ended or stopped since.
 */
export const absorb = Effect.fnUntraced(function* (state: Store, record: Record, task: Task, isSeen: boolean) {
  const isNew = task.status !== record.status || task.turn !== record.turn
  if (same(record, task) && (record.told || !isSeen)) return false
  if (task.status !== "running" && (isNew || task.updatedAt !== record.updatedAt)) {
    yield* state.set(textAt(String(record.place)), task.text)
  }
  const isTold = isSeen || task.status === "running" || (record.told && !isNew)
  yield* change(state, record.id, ({ notice, ...rest }) => ({
    ...rest,
    status: task.status,
    turn: task.turn,
    updatedAt: task.updatedAt,
    ...parts(task),
    told: isTold,
    ...(notice === undefined || isTold || isNew ? {} : { notice })
  }))
  return isNew && task.status !== "running"
})
