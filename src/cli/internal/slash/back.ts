/** Slash commands that take turns back, or make them again: words and files as one act. */
import * as Effect from "effect/Effect"
import * as Message from "../../../core/Message.ts"
import type { StoredEntry } from "../../../core/SessionStore.ts"
import { SessionStore } from "../../../core/SessionStore.ts"
import type * as FileCheckpoints from "../../../sessions/FileCheckpoints.ts"
import { cleanLine } from "../../../support/text/clean.ts"
import { cut } from "../../../support/text/text.ts"
import type { Item } from "../chat/completion/menu.ts"
import type { Problem } from "../chat/options.ts"
import { choose, entriesOf, problem, type Room, toProblem } from "../chat/room.ts"
import { nameOf, showSteps } from "./changes.ts"

type Turn = FileCheckpoints.Turn
type Step = FileCheckpoints.Step

/** A message of the person, and the entry before it. */
interface Prompt {
  readonly before: string | null
  readonly text: string
}

const listPrompts = (entries: ReadonlyArray<StoredEntry>): ReadonlyArray<Prompt> =>
  entries.flatMap(({ entry }, index) => {
    if (entry._tag !== "Message" || entry.message.role !== "human" || entry.message.source !== undefined) return []
    // The leaf before the message is the end of the run before it.
    const end = entries.slice(0, index).findLast((one) => one.entry._tag === "RunSettled" || one.entry._tag === "Step")
    return [{ before: end?.id ?? null, text: cleanLine(Message.text(entry.message)) }]
  })

const itemsOf = (turns: ReadonlyArray<Prompt>): ReadonlyArray<Item> =>
  turns
    .map(({ text }, index) => ({
      value: String(index),
      label: cut(text, 60),
      about: `turn ${index + 1}`,
      isWhole: true
    }))
    .toReversed()

/** Chooses a turn by its number or from a list. */
const turnOf = Effect.fnUntraced(function* <E, R>(room: Room<E, R>, argument: string, title: string) {
  const turns = listPrompts(yield* toProblem(entriesOf(room)))
  if (turns.length === 0) return yield* Effect.fail(problem("Nothing was said yet."))
  const number = argument.trim() === "" ? yield* choose(room, title, itemsOf(turns)) : String(Number(argument) - 1)
  if (number === undefined) return undefined
  const turn = turns[Number(number)]
  return turn === undefined
    ? yield* Effect.fail(problem(`There is no turn ${argument}; there are ${turns.length}.`))
    : turn
})

export const checkpointsOf = <E, R>({ checkpoints }: Room<E, R>): Effect.Effect<FileCheckpoints.Service, Problem> =>
  checkpoints === undefined
    ? Effect.fail(problem("The files of this chat are not kept; /rewind goes back in the words."))
    : Effect.succeed(checkpoints)

/** The turns on the path of the thread, oldest first, with the place of each end, and the messages behind an end. */
const turnsOnPath = Effect.fnUntraced(function* <E, R>(room: Room<E, R>, checkpoints: FileCheckpoints.Service) {
  const entries = yield* toProblem(entriesOf(room))
  const places = new Map(entries.map(({ id }, index) => [id, index]))
  const place = (id: string | null): number => (id === null ? -1 : (places.get(id) ?? -2))
  const promptsAfter = (id: string | null): ReadonlyArray<Prompt> => listPrompts(entries.slice(place(id) + 1))
  const turns = yield* toProblem(checkpoints.turns(room.at.threadId))
  const onPath = turns.filter(({ leafAfter }) => place(leafAfter) >= 0)
  return {
    end: entries.at(-1)?.id ?? null,
    place,
    promptsAfter,
    turns,
    current: onPath.filter(({ state }) => state !== "undone"),
    /** Turns whose words are there, but not their files: `/tree` came back to them. */
    withoutFiles: onPath.filter(({ state }) => state === "undone")
  }
})

const count = (paths: number): string => (paths === 1 ? "1 path" : `${paths} paths`)

/** Lets the person decide on paths that somebody changed since. Returns `undefined` if they cancel. */
const decideConflicts = Effect.fnUntraced(function* <E, R>(room: Room<E, R>, conflicts: ReadonlyArray<Step>) {
  const over = new Set<string>()
  const skip = new Set<string>()
  const sort = (paths: ReadonlyArray<Step>, answer: string | undefined): void => {
    for (const { path } of paths) (answer === "over" ? over : skip).add(path)
  }
  const answers = [
    {
      value: "over",
      label: "o  overwrite",
      about: "as it was; the opposite command brings theirs back",
      isWhole: true,
      key: "o"
    },
    { value: "keep", label: "k  keep", about: "leave it as it is now", isWhole: true, key: "k" }
  ]
  const no = { value: "no", label: "n  no", about: "leave everything", isWhole: true, key: "n" }
  if (conflicts.length > 0) {
    const answer = yield* choose(room, `${count(conflicts.length)} changed by somebody since:`, [
      no,
      ...answers,
      ...(conflicts.length > 1
        ? [{ value: "each", label: "s  by file", about: "decide on each", isWhole: true, key: "s" }]
        : [])
    ])
    if (answer === undefined || answer === "no") return undefined
    if (answer !== "each") sort(conflicts, answer)
    else {
      for (const one of conflicts) {
        const own = yield* choose(room, nameOf(room.options.folder, one.path), answers)
        if (own === undefined) return undefined
        sort([one], own)
      }
    }
  }
  return { over, skip }
})

/** Restores after all questions, and reports the result. */
const restore = Effect.fnUntraced(function* <E, R>(
  room: Room<E, R>,
  checkpoints: FileCheckpoints.Service,
  options: Parameters<FileCheckpoints.Service["restore"]>[0],
  { done, title }: { readonly done: string; readonly title: string }
) {
  const outcome = yield* toProblem(Effect.provideService(checkpoints.restore(options), SessionStore, room.store))
  if (outcome._tag === "Restored") {
    room.ui.note("info", `── ${done}${outcome.paths.length === 0 ? "" : ` (${count(outcome.paths.length)})`}: ${title}`)
    return true
  }
  const names = outcome._tag === "Refused" ? outcome.steps.map(({ path }) => ({ path, problem: "" })) : outcome.paths
  const list = names
    .map(({ path, problem: why }) => `${nameOf(room.options.folder, path)}${why === "" ? "" : `: ${cleanLine(why)}`}`)
    .join("\n")
  room.ui.note(
    "error",
    outcome._tag === "Refused"
      ? `Nothing was restored, since these paths changed meanwhile; try again:\n${list}`
      : `The conversation stays as it is, since these paths could not be restored. Correct them, and try again:\n${list}`
  )
  return false
})

/** Lists the changes of a restore, asks, and restores. `threadId` has the turns: the chat's own, if it is left out. */
export const restoreTurns = Effect.fnUntraced(function* <E, R>(
  room: Room<E, R>,
  name: "redo" | "undo",
  turns: ReadonlyArray<Turn>,
  options: {
    readonly leaf: string | null
    readonly title: string
    readonly does: string
    readonly words: string
    readonly done: string
    readonly threadId?: string | undefined
  }
) {
  const checkpoints = yield* checkpointsOf(room)
  const to = name === "undo" ? "before" : "after"
  const steps = (yield* toProblem(checkpoints.plan(turns, to))).filter(({ status }) => status !== "done")
  room.ui.note("info", `${options.does}: ${options.title}`)
  yield* showSteps(room, checkpoints, name, steps)
  const lostSteps = steps.filter(({ status }) => status === "lost")
  const notes = [...new Set(turns.flatMap((turn) => turn.notes))]
  if (notes.length > 0) {
    const { folder } = room.options
    room.ui.note("info", `not covered: ${notes.map((note) => nameOf(folder, note)).join(", ")}`)
  }
  const answer = yield* choose(room, steps.length === 0 ? `${options.words}?` : `${options.words} and these files?`, [
    { value: "no", label: "n  no", about: "leave everything", isWhole: true, key: "n" },
    {
      value: "yes",
      label: "y  yes",
      about: steps.length === 0 ? "no file changes" : count(steps.length - lostSteps.length),
      isWhole: true,
      key: "y"
    }
  ])
  if (answer !== "yes") return false
  const decided = yield* decideConflicts(
    room,
    steps.filter(({ status }) => status === "conflict")
  )
  if (decided === undefined) return false
  const skip = new Set([...decided.skip, ...lostSteps.map(({ path }) => path)])
  const { leaf } = options
  return yield* restore(
    room,
    checkpoints,
    { threadId: options.threadId ?? room.at.threadId, turns, to, leaf, over: decided.over, skip },
    options
  )
})

export const undo = Effect.fnUntraced(function* <E, R>(room: Room<E, R>) {
  const checkpoints = yield* checkpointsOf(room)
  const { current, promptsAfter } = yield* turnsOnPath(room, checkpoints)
  const turn = current.at(-1)
  if (turn === undefined) {
    return yield* Effect.fail(
      problem("There is no turn of this chat to take back; /rewind goes back in the words alone.")
    )
  }
  const title = cleanLine(turn.title)
  const isDone = yield* restoreTurns(room, "undo", [turn], {
    leaf: turn.leaf,
    title,
    does: "/undo takes back",
    words: "take back the words",
    done: "taken back"
  })
  if (isDone && room.ui.input.text() === "") room.ui.input.set(promptsAfter(turn.leaf)[0]?.text ?? title)
})

export const redo = Effect.fnUntraced(function* <E, R>(room: Room<E, R>) {
  const checkpoints = yield* checkpointsOf(room)
  const { end, place, promptsAfter, turns, withoutFiles } = yield* turnsOnPath(room, checkpoints)
  const [first] = withoutFiles
  // Something said since begins another branch.
  const turn =
    first ??
    turns.findLast(({ leaf, state }) => state === "undone" && place(leaf) > -2 && promptsAfter(leaf).length === 0)
  if (turn === undefined || turn.leafAfter === null) {
    return yield* Effect.fail(problem("There is nothing to repeat: /redo follows /undo or /rewind."))
  }
  const isDone = yield* restoreTurns(room, "redo", [turn], {
    leaf: turn === first ? end : turn.leafAfter,
    title: cleanLine(turn.title),
    does: "/redo makes again",
    words: turn === first ? "the words are here; make again their turn" : "bring back the words",
    done: "made again"
  })
  if (!isDone) return
  const { promptsAfter: promptsNow } = yield* turnsOnPath(room, checkpoints)
  // The message that /undo had put into the draft.
  if (promptsNow(turn.leaf)[0]?.text === room.ui.input.text()) room.ui.input.set("")
})

/** Goes back to before a turn: with the files, or in the words alone. */
const goBack = Effect.fnUntraced(function* <E, R>(room: Room<E, R>, turn: Prompt) {
  const { checkpoints } = room
  const wordsOnly = Effect.gen(function* () {
    yield* toProblem(room.store.rewind(room.at.threadId, turn.before))
    room.ui.note("info", `── back to before: ${turn.text}; files are as they are`)
    return true
  })
  if (checkpoints === undefined) return yield* wordsOnly
  const { current, place } = yield* turnsOnPath(room, checkpoints)
  const turns = current.filter(({ leafAfter }) => place(leafAfter) > place(turn.before))
  const steps = (yield* toProblem(checkpoints.plan(turns, "before"))).filter(({ status }) => status !== "done")
  if (steps.length === 0 && turns.length === 0) return yield* wordsOnly
  if (steps.length > 0) {
    const answer = yield* choose(room, `these turns changed ${count(steps.length)}`, [
      { value: "both", label: "words and files", about: "shows the files, and asks", isWhole: true },
      { value: "words", label: "words alone", about: "files stay as they are", isWhole: true }
    ])
    if (answer === undefined) return false
    if (answer === "words") return yield* wordsOnly
    return yield* restoreTurns(room, "undo", turns, {
      leaf: turn.before,
      title: turn.text,
      does: "/rewind goes back to before",
      words: "take back the words",
      done: "back to before"
    })
  }
  return yield* restore(
    room,
    checkpoints,
    { threadId: room.at.threadId, turns, to: "before", leaf: turn.before },
    { done: "back to before", title: turn.text }
  )
})

export const rewind = Effect.fnUntraced(function* <E, R>(room: Room<E, R>, argument: string) {
  const turn = yield* turnOf(room, argument, "go back to before …; the turns behind it stay as a branch (/tree)")
  if (turn === undefined) return
  if ((yield* goBack(room, turn)) && room.ui.input.text() === "") room.ui.input.set(turn.text)
})

export const fork = Effect.fnUntraced(function* <E, R>(room: Room<E, R>, argument: string) {
  const turn = argument.trim() === "" ? undefined : yield* turnOf(room, argument, "")
  const from = room.at.threadId
  const thread = yield* toProblem(room.store.fork(from, {}))
  if (room.checkpoints !== undefined) yield* toProblem(room.checkpoints.copy(from, thread.threadId))
  room.at.threadId = thread.threadId
  room.ui.note("info", `── a copy of the conversation, ${thread.threadId}; the other one is ${from}`)
  if (turn !== undefined) yield* goBack(room, turn)
})

export const diff = Effect.fnUntraced(function* <E, R>(room: Room<E, R>) {
  const checkpoints = yield* checkpointsOf(room)
  const { current } = yield* turnsOnPath(room, checkpoints)
  const steps = (yield* toProblem(checkpoints.plan(current, "before"))).filter(({ status }) => status !== "done")
  if (steps.length === 0) return yield* Effect.fail(problem("No file was changed in this chat."))
  yield* showSteps(room, checkpoints, "diff", steps)
})
