/** The five tools with which a model handles background tasks. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import type { Run } from "../../../core/Run.ts"
import * as Tool from "../../../core/Tool.ts"
import { ToolContext } from "../../../core/ToolContext.ts"
import * as ToolError from "../../../core/ToolError.ts"
import { oneLine } from "../../../support/text/untrusted.ts"
import { BackgroundTasks, Status, type Task, type TaskError, type Worker } from "../../BackgroundTasks.ts"
import { Depth } from "./local.ts"
import { look, refresh, report, type Settings } from "./seam.ts"
import { absorb, background, find, groupOf, type Record, remember, textAt } from "./state.ts"

/** The names of the tools. */
export const toolNames = {
  start: "start_task",
  check: "check_task",
  update: "update_task",
  cancel: "cancel_task",
  list: "list_tasks"
} as const

/** The longest that `check_task` waits, in seconds. */
const maxWait = 600

type Needs = ToolContext | BackgroundTasks

const tell = (error: TaskError) => Effect.fail(ToolError.make(error.message))

const taskId = Schema.String.annotate({ description: "The id of the task, as start_task gave it." })

/** Finds the task that a model names. */
const recordOf = Effect.fnUntraced(function* (run: Run, id: string) {
  const record = yield* find(run.state, id.trim())
  if (record !== undefined) return record
  const ids = (yield* run.state.get(background))?.tasks.map((one) => one.id) ?? []
  const there = ids.length === 0 ? "There are none yet." : `There are: ${ids.join(", ")}.`
  return yield* Effect.fail(ToolError.make(`There is no task "${oneLine(id).slice(0, 80)}". ${there}`))
})

const group = (run: Run) => Effect.map(run.state.get(background), (current) => current?.group ?? "")

/** Records a task's status, which the model's next result reports. */
const recordStatus = Effect.fnUntraced(function* (run: Run, record: Record, task: Task) {
  if (yield* absorb(run.state, record, task, true)) yield* report(run, record.id, task)
})

/** Reports whether nobody can ask for a task after this run. */
const isNested = (run: Run) => Effect.map(Depth, (depth) => depth + run.depth > 0)

/** Starts a task of a worker. `names` lists the workers of the tool. */
const starting = (settings: Settings, names: string) =>
  Effect.fnUntraced(function* (description: string, type: string) {
    const { run } = yield* ToolContext
    const tasks = yield* BackgroundTasks
    const worker = settings.workers.get(type)
    if (worker === undefined) {
      return yield* Effect.fail(
        ToolError.make(`There is no sub-agent "${oneLine(type).slice(0, 80)}". There are: ${names}.`)
      )
    }
    if ((yield* Depth) + run.depth + 1 > settings.maxDepth) {
      return yield* Effect.fail(
        ToolError.make(
          `Sub-agents can't be nested deeper than ${settings.maxDepth}. Do this part of the work yourself.`
        )
      )
    }
    const nested = yield* isNested(run)
    const session = yield* worker.open
    const id = yield* Effect.uninterruptibleMask(
      Effect.fnUntraced(function* (restore) {
        const request = { group: yield* groupOf(run.state), agent: type, description, session }
        const task = yield* Effect.catch(restore(tasks.start(request)), tell)
        const cancel = Effect.ignore(tasks.cancel(task.key))
        if (nested) yield* Scope.addFinalizer(run.scope, cancel)
        const noted = Effect.tap(remember(run.state, task), (recordId) => report(run, recordId, task))
        // Nobody could ask for an unrecorded task.
        return yield* Effect.onInterrupt(restore(noted), () => cancel)
      })
    )
    const end = nested
      ? `It is stopped when you give your answer: wait for it by ${toolNames.check} before.`
      : "You are told when it is over: go on with something else, or end your turn."
    return `Started ${id} (${type}). It works beside you. ${end}`
  })

const startTask = (settings: Settings, workers: ReadonlyArray<Worker<unknown>>): Tool.Tool<Needs> => {
  const names = workers.map(({ name }) => name).join(", ")
  const agents = workers.map(({ description, name }) => `- ${name}: ${description}`).join("\n")
  const start = starting(settings, names)
  return Tool.make(toolNames.start, {
    description: `Has a sub-agent do a task in the background, while you go on. It returns at once, with the id of the task. Start several for parts that don't need each other. There are:\n${agents}`,
    parameters: {
      description: Schema.String.annotate({
        description: "The task, in full: what to do, what is known, what to give back. It sees nothing else."
      }),
      subagent_type: Schema.String.annotate({ description: `One of: ${names}` })
    },
    annotations: { delegates: true, untrusted: true },
    reaches: settings.reaches,
    // `make` of the middleware restores the workers' requirements, which their types had.
    execute: ({ description, subagent_type }) =>
      start(description, subagent_type) as Effect.Effect<string, ToolError.ToolError, Needs>
  })
}

/** Makes the tool of a worker whose task is data. */
const startWith = (settings: Settings, { description, name }: Worker<unknown>, parameters: Tool.Parameters) => {
  const start = starting(settings, name)
  return Tool.make(name, {
    description: `${description}\nIt works in the background, and the call returns at once, with the id of the task.`,
    parameters,
    annotations: { delegates: true, untrusted: true },
    reaches: settings.reaches,
    execute: (args) => start(JSON.stringify(args), name) as Effect.Effect<string, ToolError.ToolError, Needs>
  })
}

/** Reports whether a task may have continued out of sight. */
const isStuck = (status: Task["status"]): boolean => status === "lost" || status === "suspended"

const checkTask = (settings: Settings): Tool.Tool<Needs> => {
  const check = Effect.fnUntraced(function* (id: string, seconds: number) {
    const { run } = yield* ToolContext
    const record = yield* recordOf(run, id)
    const wait = Math.min(Math.max(0, seconds), maxWait) * 1000
    const task = yield* look(settings, yield* group(run), record, { wait, revive: isStuck(record.status) })
    if (task !== undefined) yield* recordStatus(run, record, task)
    else if (!record.told) yield* recordStatus(run, record, { ...record, group: "", text: "", pending: [] })
    const status = task?.status ?? record.status
    const text = task?.text ?? (yield* run.state.get(textAt(String(record.place))))
    const heading = `${record.id} (${record.agent}): ${status}`
    return status === "running"
      ? `${heading}. You are told when it is over; ${toolNames.check} with a larger wait_seconds waits for it.`
      : `${heading}\n\n${text}`
  })
  return Tool.make(toolNames.check, {
    description:
      "Says how a task in the background stands, and what it came to. With wait_seconds it waits for its end that long.",
    parameters: {
      task_id: taskId,
      wait_seconds: Schema.optionalKey(
        Schema.Finite.annotate({ description: `Up to ${maxWait}. Without it, the answer comes at once.` })
      )
    },
    annotations: { readOnly: true, volatile: true, untrusted: true },
    execute: ({ task_id, wait_seconds }) =>
      check(task_id, wait_seconds ?? 0) as Effect.Effect<string, ToolError.ToolError, Needs>
  })
}

/** Makes a tool that changes one task of the supervisor. */
const change = Effect.fnUntraced(function* (
  settings: Settings,
  id: string,
  revive: (status: Task["status"]) => boolean,
  act: (key: string) => Effect.Effect<Task, TaskError>
) {
  const { run } = yield* ToolContext
  const record = yield* recordOf(run, id)
  // A task of another process is resumed first.
  yield* look(settings, yield* group(run), record, { revive: revive(record.status) })
  const task = yield* Effect.catch(act(record.key), tell)
  yield* recordStatus(run, record, task)
  return { record, task }
})

/** Reports whether a message can resume a completed task of an earlier process. */
const isRevived = (status: Task["status"]): boolean => status === "completed" || status === "lost"

const updateTask = (settings: Settings): Tool.Tool<Needs> =>
  Tool.make(toolNames.update, {
    description:
      "Says something to a task in the background: a correction while it works, or a follow-up once it is completed. Its id stays the same.",
    parameters: {
      task_id: taskId,
      message: Schema.String.annotate({ description: "What the sub-agent is told. It knows its own work so far." })
    },
    execute: ({ message, task_id }) =>
      Effect.gen(function* () {
        const tasks = yield* BackgroundTasks
        const { record } = yield* change(settings, task_id, isRevived, (key) => tasks.update(key, message))
        return `${record.id} (${record.agent}) goes on with your message.`
      }) as Effect.Effect<string, ToolError.ToolError, Needs>
  })

const cancelTask = (settings: Settings): Tool.Tool<Needs> =>
  Tool.make(toolNames.cancel, {
    description: "Stops a task in the background that is not needed any more. What it did until then stays done.",
    parameters: { task_id: taskId },
    annotations: { idempotent: true },
    execute: ({ task_id }) =>
      Effect.gen(function* () {
        const tasks = yield* BackgroundTasks
        const { record, task } = yield* change(settings, task_id, () => false, tasks.cancel)
        return task.status === "running"
          ? `${record.id} (${record.agent}) was told to stop, and is winding up.`
          : `${record.id} (${record.agent}) is ${task.status}.`
      }) as Effect.Effect<string, ToolError.ToolError, Needs>
  })

const listTasks = (settings: Settings): Tool.Tool<Needs> => {
  const list = Effect.fnUntraced(function* (status: Task["status"] | undefined) {
    const { run } = yield* ToolContext
    const before = yield* run.state.get(background)
    if (before !== null) yield* refresh(settings, run, before)
    const all = (yield* run.state.get(background))?.tasks ?? []
    const records = all.filter((record) => status === undefined || record.status === status)
    if (records.length === 0)
      return status === undefined ? "There are no tasks." : `There are no tasks that are ${status}.`
    const now = yield* Clock.currentTimeMillis
    return records
      .map((record) => {
        const seconds = Math.round(((record.status === "running" ? now : record.updatedAt) - record.startedAt) / 1000)
        return `- ${record.id} (${record.agent}): ${record.status}, ${seconds} s. ${oneLine(record.description).slice(0, 100)}`
      })
      .join("\n")
  })
  return Tool.make(toolNames.list, {
    description: "Lists your tasks in the background, and how each stands now.",
    parameters: {
      status: Schema.optionalKey(Status.annotate({ description: "Only those that stand so." }))
    },
    annotations: { readOnly: true, volatile: true },
    execute: ({ status }) => list(status) as Effect.Effect<string, ToolError.ToolError, Needs>
  })
}

/** The five tools, and a tool for each worker whose task is data. */
export const makeTools = (settings: Settings): ReadonlyArray<Tool.Tool<Needs>> => {
  const all = [...settings.workers.values()]
  const plain = all.filter(({ parameters }) => parameters === undefined)
  return [
    ...(plain.length === 0 ? [] : [startTask(settings, plain)]),
    ...all.flatMap((worker) =>
      worker.parameters === undefined ? [] : [startWith(settings, worker, worker.parameters)]
    ),
    ...[checkTask, updateTask, cancelTask, listTasks].map((make) => make(settings))
  ]
}
