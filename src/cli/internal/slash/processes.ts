/** `/ps` and `/kill`: the processes and the sub-agents in the background of a chat. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { describeEnd, type Process, ProcessTable } from "../../../backends/Processes.ts"
import * as BackgroundSubagents from "../../../middleware/BackgroundSubagents.ts"
import * as BackgroundTasks from "../../../middleware/BackgroundTasks.ts"
import { loadThread } from "../../../sessions/journal.ts"
import { cleanLine } from "../../../support/text/clean.ts"
import { cut } from "../../../support/text/text.ts"
import { choose, problem, type Room, threadOf, toProblem } from "../chat/room.ts"
import { duration } from "../render/words.ts"

const longest = 120

const describe = ({ command, end, id }: Process): string =>
  `${id} ${cut(cleanLine(command), longest)}: ${describeEnd(end)}`

/** The beginning of a task's key: people type it. */
const idOf = ({ key }: Pick<BackgroundTasks.Task, "key">): string => key.slice(0, 8)

const gistOf = ({ agent, description }: Pick<BackgroundTasks.Task, "agent" | "description">): string =>
  `${cleanLine(agent)}: ${cut(cleanLine(description), longest)}`

const table = Effect.serviceOption(ProcessTable)

const supervisor = Effect.serviceOption(BackgroundTasks.BackgroundTasks)

const processesOf = Effect.flatMap(
  table,
  Option.match({ onNone: () => Effect.succeed<ReadonlyArray<Process>>([]), onSome: ({ list: read }) => read })
)

const tasksOf = Effect.flatMap(
  supervisor,
  Option.match({
    onNone: () => Effect.succeed<ReadonlyArray<BackgroundTasks.Task>>([]),
    onSome: ({ list: read }) => read()
  })
)

/** Lists the processes, whose outputs are files, and the sub-agents. */
export const list = Effect.fnUntraced(function* <E, R>({ ui }: Room<E, R>) {
  const processes = yield* processesOf
  const tasks = yield* tasksOf
  const now = yield* Clock.currentTimeMillis
  const lines = [
    ...processes.flatMap((one) => [`  ${describe(one)}`, `     ${cleanLine(one.output)}`]),
    ...tasks.map(
      (task) =>
        `  ${idOf(task)} ${gistOf(task)}: ${task.status}, ${duration((task.status === "running" ? now : task.updatedAt) - task.startedAt)}`
    )
  ]
  ui.parts(
    [lines.length === 0 ? "Nothing is in the background." : "In the background:", ...lines].map((text) => ({
      kind: "note",
      level: "info",
      text
    }))
  )
})

/** Ends a process or a sub-agent, by its name or from a menu. */
export const kill = Effect.fnUntraced(function* <E, R>(room: Room<E, R>, argument: string) {
  const processes = (yield* processesOf).filter(({ end }) => end === undefined)
  const tasks = (yield* tasksOf).filter(({ status }) => BackgroundTasks.isOpen(status))
  if (processes.length + tasks.length === 0) {
    return yield* Effect.fail(problem("Nothing runs in the background."))
  }
  const items = [
    ...processes.map(({ command, id }) => ({ value: id, about: cut(cleanLine(command), longest) })),
    ...tasks.map((task) => ({ value: idOf(task), about: gistOf(task) }))
  ].map((item) => ({ ...item, label: item.value, isWhole: true }))
  const id = argument.trim() === "" ? yield* choose(room, "which is to end:", items) : argument.trim()
  if (id === undefined) return
  const task = tasks.find((one) => idOf(one) === id)
  const [all, kept] = [yield* table, yield* supervisor]
  if (task !== undefined && Option.isSome(kept)) {
    const ended = yield* toProblem(kept.value.cancel(task.key))
    return room.ui.note("info", `${idOf(task)} ${gistOf(task)}: ${ended.status}`)
  }
  if (Option.isNone(all)) return yield* Effect.fail(problem(`Nothing in the background is called ${id}: /ps`))
  room.ui.note("info", describe(yield* toProblem(all.value.kill(id))))
})

/** Tells the person about leftover processes, and about work that ends while the chat is open. */
export const watch = Effect.fnUntraced(function* <E, R>({ options, ui }: Room<E, R>) {
  const [processes, tasks] = [yield* table, yield* supervisor]
  const tell = (text: string): Effect.Effect<void> => Effect.sync(() => ui.note("info", text))
  if (Option.isSome(processes)) {
    for (const one of yield* processes.value.untold()) yield* tell(describe(one))
    yield* Effect.forkScoped(
      Stream.runForEach(processes.value.ended, (one) => tell(describe(one))),
      { startImmediately: true }
    )
  }
  if (Option.isSome(tasks)) {
    yield* Effect.forkScoped(
      Stream.runForEach(tasks.value.ended, (task) =>
        task.group === options.workflows?.group
          ? tell(`── ${gistOf(task)}: ${task.status}. ${cut(cleanLine(task.text), 2_000)}`)
          : tell(`── in the background, ${gistOf(task)}: ${task.status}. The agent is told in its next round`)
      ),
      { startImmediately: true }
    )
  }
})

/** Tells which sub-agents in the background ended with the program that a crash ended. */
export const tellLost = Effect.fnUntraced(function* <E, R>(room: Room<E, R>) {
  if ((yield* threadOf(room)) === undefined) return
  const { checkpoint } = yield* loadThread(room.store, room.at.threadId)
  const tasks = Result.getOrElse(BackgroundSubagents.tasks(checkpoint?.state ?? {}), () => [])
  const here = new Set((yield* tasksOf).map(({ key }) => key))
  for (const task of tasks) {
    if (!BackgroundTasks.isOpen(task.status) || here.has(task.key)) continue
    room.ui.note("warning", `${task.id}, ${gistOf(task)}: ended with the program that began it; its result is lost`)
  }
})
