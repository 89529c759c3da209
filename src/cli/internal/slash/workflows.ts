/** `/workflow`: saved workflows, workflows in the background, and workflows that wait to go on. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as BackgroundTasks from "../../../middleware/BackgroundTasks.ts"
import { cleanLine } from "../../../support/text/clean.ts"
import { choose, problem, type Room, toProblem } from "../chat/room.ts"
import { duration } from "../render/words.ts"
import { checkpointsOf, restoreTurns } from "./back.ts"

const usage =
  "Say /workflow, /workflow show NAME, /workflow run NAME args, /workflow resume ID, /workflow stop ID or /workflow undo ID."

const partsOf = <E, R>({ options: { workflows } }: Room<E, R>) =>
  Effect.gen(function* () {
    const tasks = Option.getOrUndefined(yield* Effect.serviceOption(BackgroundTasks.BackgroundTasks))
    if (workflows === undefined || tasks === undefined) {
      return yield* Effect.fail(problem("This chat has no workflows: deepagents workflow run NAME"))
    }
    return { workflows, tasks }
  })

const note = <E, R>({ ui }: Room<E, R>, lines: ReadonlyArray<string>): void =>
  ui.parts(lines.map((text) => ({ kind: "note", level: "info", text: cleanLine(text) })))

/** Lists saved workflows, the tree of each workflow at work, and workflows that wait to go on. */
const list = Effect.fnUntraced(function* <E, R>(room: Room<E, R>) {
  const { tasks, workflows } = yield* partsOf(room)
  const { problems, saved } = yield* workflows.saved
  const now = yield* Clock.currentTimeMillis
  const open = (yield* tasks.list()).flatMap(({ kept, pending, status }) => {
    const live = BackgroundTasks.isOpen(status) ? workflows.live(kept) : undefined
    return live === undefined ? [] : [{ ...live, status, waits: pending.length }]
  })
  const names = new Set(open.map(({ threadId }) => threadId))
  const records = (yield* workflows.stored).filter(
    ({ outcome, threadId }) => outcome !== "completed" && !names.has(threadId)
  )
  note(room, [
    ...(saved.length === 0 ? ["No workflow is saved: .deepagents/workflows/NAME.ts"] : ["Saved workflows:"]),
    ...saved.map(({ description, name, origin }) => `  ${name} (${origin}): ${description}`),
    ...problems.map((one) => `  ! ${one}`),
    ...open.flatMap(({ lines, name, startedAt, status, threadId }) => [
      `${name} ${threadId}: ${status}, ${duration(now - startedAt)}`,
      ...lines
    ]),
    ...records.map(({ name, outcome, report, threadId }) => {
      const state = outcome === "open" ? "cut off" : outcome
      return `${name} ${threadId}: ${state}, ${report.split("\n")[0] ?? ""}; /workflow resume ${threadId}`
    })
  ])
})

/** Starts a workflow in the background. Its agents ask at the desk of the chat. */
const run = Effect.fnUntraced(function* <E, R>(room: Room<E, R>, name: string, words: string) {
  const { tasks, workflows } = yield* partsOf(room)
  const { saved } = yield* workflows.saved
  const items = saved.map((one) => ({ value: one.name, label: one.name, about: one.description, isWhole: true }))
  const choice = name === "" ? yield* choose(room, "which workflow:", items) : name
  if (choice === undefined) return
  const begin = Effect.gen(function* () {
    const { description, session } = yield* workflows.open(choice, words, room.at.threadId)
    return yield* tasks.start({ group: workflows.group, agent: workflows.agent, description, session })
  })
  yield* toProblem(Effect.provide(begin, room.desk.layer))
  room.ui.note("info", `── workflow ${cleanLine(choice)} works in the background: /workflow shows it, /ps too`)
})

/** Goes on with a workflow that was cut off, stopped or waits. */
const resume = Effect.fnUntraced(function* <E, R>(room: Room<E, R>, id: string) {
  const { tasks, workflows } = yield* partsOf(room)
  const begin = Effect.gen(function* () {
    const { session, task } = yield* workflows.reopen(id)
    return yield* tasks.adopt(task, session)
  })
  const { description } = yield* toProblem(Effect.provide(begin, room.desk.layer))
  room.ui.note("info", `── workflow ${cleanLine(description)} goes on in the background`)
})

const stop = Effect.fnUntraced(function* <E, R>(room: Room<E, R>, id: string) {
  const { tasks, workflows } = yield* partsOf(room)
  const task = (yield* tasks.list()).find(({ kept, status }) => {
    const live = BackgroundTasks.isOpen(status) ? workflows.live(kept) : undefined
    return live !== undefined && (live.threadId.endsWith(id) || live.name === id)
  })
  if (task === undefined) return yield* Effect.fail(problem(`No workflow ${JSON.stringify(id)} is at work: /workflow`))
  yield* toProblem(tasks.cancel(task.key))
  room.ui.note("info", `── stopped; /workflow lists how it goes on`)
})

/** Takes back the files of a workflow that is not at work, with all that it did: another run begins anew. */
const undo = Effect.fnUntraced(function* <E, R>(room: Room<E, R>, id: string) {
  const { tasks, workflows } = yield* partsOf(room)
  const threads = yield* workflows.stored
  const thread = threads.find(({ threadId }) => id !== "" && threadId.endsWith(id))
  if (thread === undefined) return yield* Effect.fail(problem(`There is no workflow ${JSON.stringify(id)}: /workflow`))
  const isAtWork = (yield* tasks.list()).some(
    ({ kept, status }) => BackgroundTasks.isOpen(status) && workflows.live(kept)?.threadId === thread.threadId
  )
  if (isAtWork) return yield* Effect.fail(problem(`It is at work: /workflow stop ${id}`))
  const checkpoints = yield* checkpointsOf(room)
  const turns = (yield* toProblem(checkpoints.turns(thread.threadId))).filter(({ state }) => state !== "undone")
  const [first] = turns
  if (first === undefined) return yield* Effect.fail(problem("No file that it changed is kept."))
  yield* restoreTurns(room, "undo", turns, {
    threadId: thread.threadId,
    leaf: first.leaf,
    title: `workflow ${cleanLine(thread.name)}`,
    does: "/workflow undo takes back",
    words: "forget the work of its agents",
    done: "taken back"
  })
})

/** Runs `/workflow`. */
export const workflow = <E, R>(room: Room<E, R>, argument: string) => {
  const [, action = "", name = "", rest = ""] = /^\s*(\S*)\s*(\S*)\s*([^]*)$/.exec(argument) ?? []
  switch (action) {
    case "":
    case "list":
      return list(room)
    case "show":
      return Effect.gen(function* () {
        const { workflows } = yield* partsOf(room)
        yield* room.page(yield* workflows.script(name))
      })
    case "run":
      return run(room, name, rest)
    case "resume":
      return resume(room, name)
    case "undo":
      return undo(room, name)
    case "stop":
      return stop(room, name)
    default:
      return Effect.fail(problem(usage))
  }
}

/** Goes on with the workflows of a session that a crash or the end of the program cut off. */
export const resumeCutOff = Effect.fnUntraced(function* <E, R>(room: Room<E, R>) {
  const { workflows } = room.options
  if (workflows === undefined) return
  const records = yield* Effect.orElseSucceed(workflows.stored, () => [])
  for (const { outcome, session, threadId } of records) {
    if (outcome === "open" && session === room.at.threadId) {
      yield* Effect.catch(resume(room, threadId), ({ message }) =>
        Effect.sync(() => room.ui.note("warning", cleanLine(message)))
      )
    }
  }
})
