/** Asks after a turn whether the agent's changes of its memory are kept. */
import * as Effect from "effect/Effect"
import * as Message from "../../../core/Message.ts"
import { cleanLine } from "../../../support/text/clean.ts"
import type { Item } from "./completion/menu.ts"
import type { MemoryChange } from "./options.ts"
import { choose, type Room, toProblem } from "./room.ts"

/** The parts of a chat that the question uses. */
interface ReviewState<E, R> {
  readonly room: Room<E, R>
  readonly isLeaving: boolean
  outputs: ReadonlyArray<Message.HumanMessage>
  putOff: string
}

const item = (value: string, label: string, about: string): Item => ({ value, label, about, isWhole: true })

const later = item("later", "not now", "you are asked again; /memory shows it")
const yes = item("yes", "yes", "it counts from the next conversation on")
const no = item("no", "no", "it is taken back")

/** Tells the model and the person what was decided. */
export const decidedWords = (changes: ReadonlyArray<MemoryChange>, isKept: boolean): string => {
  const files = changes.map(({ path }) => cleanLine(path)).join(", ")
  return isKept
    ? `The changes of your memory (${files}) are kept. They count from the next conversation on.`
    : `The changes of your memory (${files}) were not wanted, and are taken back.`
}

/** The question about changes. Text from outside makes the refusal the first choice. */
export const questionOf = (
  outside: ReadonlyArray<string>
): { readonly title: string; readonly items: ReadonlyArray<Item> } =>
  outside.length === 0
    ? { title: "remember this?", items: [later, yes, no] }
    : {
        title: `This conversation has text from outside (${outside.map(cleanLine).join(", ")}), which may have asked for it. Remember this?`,
        items: [no, later, yes]
      }

/** Shows the changes that nobody decided on, and asks about them. Changes that were put off are asked about once. */
export const offerMemory = Effect.fnUntraced(function* <E, R>(talk: ReviewState<E, R>) {
  const { room } = talk
  const { at, options, ui } = room
  const { remembering } = options
  if (remembering === undefined || talk.isLeaving) return
  const changes = yield* remembering.pending
  const key = JSON.stringify(changes)
  if (changes.length === 0 || key === talk.putOff) return
  for (const { diff, path } of changes) {
    ui.parts([
      { kind: "tool", name: "memory", gist: cleanLine(path), isError: false, summary: "", diff, output: "", millis: 0 }
    ])
  }
  const { items, title } = questionOf(yield* remembering.outside(at.threadId))
  const answer = yield* choose(room, title, items)
  if (answer !== "yes" && answer !== "no") {
    talk.putOff = key
    return
  }
  yield* toProblem(Effect.forEach(changes, ({ settle }) => settle(answer === "yes"), { discard: true }))
  const words = decidedWords(changes, answer === "yes")
  ui.note("info", words)
  talk.outputs = [...talk.outputs, Message.human(`<notice>\n${words}\n</notice>`, { source: "memory" })]
})
