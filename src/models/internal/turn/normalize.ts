/**
 * Any history, made valid for a provider by construction: every call has its answer beside it, nothing is empty,
 * nothing is sent that the provider can't read.
 *
 * A codec gets turns instead of messages. An ai turn carries its calls zipped with their results, so an orphan answer
 * or an unanswered call can't be written down.
 */
import type { JsonObject } from "../../../core/Json.ts"
import type { AiMessage, Message, TurnStop } from "../../../core/Message.ts"
import { makeCallIds } from "./callIds.ts"
import {
  contentOf,
  dataOf,
  type Dialect,
  placeholders,
  type ModelContent,
  saidOf,
  type GivenContent
} from "./dialect.ts"
import { makeFold } from "./fold.ts"
import { isSound, nameOf } from "./media.ts"
import { wellFormed, wellFormedObject } from "./wellFormed.ts"

/** The one answer to a call. `index` is its position in the history, absent for a missing answer. */
export interface Answer {
  readonly content: ReadonlyArray<GivenContent>
  readonly isError: boolean
  readonly index?: number | undefined
  readonly options?: JsonObject | undefined
}

/** A call and its answer. `raw` is there when the call was malformed: its arguments are then `{}`. */
export interface AnsweredCall {
  readonly id: string
  readonly name: string
  readonly arguments: JsonObject
  readonly raw?: string | undefined
  /** Data that this provider attached to the call. */
  readonly data?: JsonObject | undefined
  readonly answer: Answer
}

export interface SystemTurn {
  readonly role: "system"
  readonly text: string
  readonly index: number
}

export interface HumanTurn {
  readonly role: "human"
  readonly content: ReadonlyArray<GivenContent>
  readonly index: number
  /** Options of the message, by provider. */
  readonly options?: JsonObject | undefined
}

export interface AiTurn {
  readonly role: "ai"
  readonly content: ReadonlyArray<ModelContent>
  readonly calls: ReadonlyArray<AnsweredCall>
  readonly stopReason: TurnStop
  /** Data that this provider attached to the message. */
  readonly data?: JsonObject | undefined
  readonly index: number
  readonly options?: JsonObject | undefined
}

/**
 * A turn on the wire. It always has text, media or calls, except for a turn that the provider paused. `index` is the
 * position of its message in the history, for cache hints; -1 for an inserted turn. A turn keeps its identity between
 * requests while its neighbours stay the same.
 */
export type Turn = SystemTurn | HumanTurn | AiTurn

/**
 * `system` is the text of system messages at the very start, if the dialect folds them; `damaged` names images and
 * files of the whole history, so far, that can't be sent.
 */
export interface NormalizedHistory {
  readonly system: ReadonlyArray<string>
  readonly damaged: ReadonlyArray<string>
  readonly turns: ReadonlyArray<Turn>
}

const optionsOf = ({ providerOptions }: Message): { readonly options?: JsonObject } =>
  providerOptions === undefined ? {} : { options: providerOptions }

type CallIds = ReturnType<typeof makeCallIds>

/** An ai message with the answers behind it; media of the answers may have to go to a turn of their own. */
const aiTurns = (
  message: AiMessage,
  index: number,
  answers: Map<string, Answer>,
  dialect: Dialect,
  ids: CallIds
): ReadonlyArray<Turn> => {
  const moved: Array<GivenContent> = []
  const take = (id: string, name: string): Answer => {
    const answer = answers.get(id)
    if (answer === undefined) return { content: [placeholders.noResult], isError: true }
    answers.delete(id)
    if (answer.content.length === 0) return { ...answer, content: [placeholders.emptyResult] }
    const media = dialect.toolMedia === "after" ? answer.content.filter((block) => block.type !== "text") : []
    if (media.length === 0) return answer
    moved.push(placeholders.movedMedia(name), ...media)
    const rest = answer.content.filter((block) => block.type === "text")
    return { ...answer, content: [...rest, placeholders.mediaBelow] }
  }
  const calls: Array<AnsweredCall> = []
  for (const { arguments: args, id, name, providerData } of message.toolCalls) {
    const data = dataOf(providerData, dialect)
    const own = data === undefined ? {} : { data }
    calls.push({
      id: ids.take(id),
      name: wellFormed(name),
      arguments: wellFormedObject(args),
      ...own,
      answer: take(id, name)
    })
  }
  for (const { id, name = "unknown", raw } of message.malformedToolCalls) {
    calls.push({
      id: ids.take(id),
      name: wellFormed(name),
      arguments: {},
      raw: wellFormed(raw),
      answer: take(id, name)
    })
  }
  const data = dataOf(message.providerData, dialect)
  const content = saidOf(message.content, dialect, data)
  const turns: Array<Turn> = []
  const says = calls.length > 0 || content.some((block) => block.type === "text")
  const saysMore = data !== undefined && dialect.saysMore?.(data) === true
  if (says || saysMore || message.stopReason === "pause") {
    const own = data === undefined ? {} : { data }
    turns.push({ role: "ai", content, calls, stopReason: message.stopReason, ...own, index, ...optionsOf(message) })
  }
  if (moved.length > 0) turns.push({ role: "human", content: moved, index: -1 })
  return turns
}

/** Makes the turns of one message, with the answers to its calls, and finds the next message. */
const step = (
  history: ReadonlyArray<Message>,
  index: number,
  leading: boolean,
  dialect: Dialect,
  ids: CallIds
): { readonly turns: ReadonlyArray<Turn>; readonly to: number } => {
  const message = history[index]
  const to = index + 1
  // An answer that no ai message claimed.
  if (message === undefined || message.role === "tool") return { turns: [], to }
  if (message.role === "human") {
    const content = contentOf(message.content, dialect, "human")
    const visibleContent = content.length === 0 ? [placeholders.emptyMessage] : content
    return { turns: [{ role: "human", content: visibleContent, index, ...optionsOf(message) }], to }
  }
  if (message.role === "system") {
    const blocks = contentOf(message.content, dialect, "system")
    const text = blocks.map((block) => (block.type === "text" ? block.text : "")).join("")
    if (text === "") return { turns: [], to }
    const asSystem = dialect.systemMessages === "keep" || (dialect.systemMessages === "fold" && leading)
    return {
      turns: [
        asSystem
          ? { role: "system", text, index }
          : { role: "human", content: [placeholders.systemAsHuman(text)], index }
      ],
      to
    }
  }
  const answers = new Map<string, Answer>()
  let next = to
  for (; next < history.length; next++) {
    const answer = history[next]
    if (answer?.role !== "tool") break
    if (answers.has(answer.toolCallId)) continue
    const content = contentOf(answer.content, dialect, "tool")
    answers.set(answer.toolCallId, { content, isError: answer.isError, index: next, ...optionsOf(answer) })
  }
  return { turns: aiTurns(message, index, answers, dialect, ids), to: next }
}

/** The beginning of a step, and the number of turns and ids before it. */
interface Mark {
  readonly from: number
  readonly turns: number
  readonly ids: number
}

const filler = (content: GivenContent): HumanTurn => ({ role: "human", content: [content], index: -1 })

/** Turns that stay the same in each request: writers compare turns by identity. */
const fillers = {
  empty: filler(placeholders.emptyMessage),
  cut: filler(placeholders.cutHistory),
  goOn: filler(placeholders.goOn)
}

/** Puts in the human turns that the provider insists on; a turn that the provider paused is continued as it is. */
const bounded = (turns: ReadonlyArray<Turn>, dialect: Dialect): ReadonlyArray<Turn> => {
  const first = turns.findIndex((turn) => turn.role !== "system")
  if (first < 0) return [...turns, fillers.empty]
  const last = turns.at(-1)
  const all = [...turns]
  if (dialect.humanFirst && turns[first]?.role === "ai") all.splice(first, 0, fillers.cut)
  const ends = last?.role !== "ai" || last.calls.length > 0 || last.stopReason === "pause"
  if (dialect.humanLast && !ends) all.push(fillers.goOn)
  return all
}

/**
 * Makes a normaliser for one session. It caches turns and redoes only new or changed messages, so a round's work does
 * not grow with the history.
 */
export const makeNormalizer = (dialect: Dialect): ((history: ReadonlyArray<Message>) => NormalizedHistory) => {
  const previousHistory: Array<Message> = []
  const damaged: Array<{ readonly index: number; readonly name: string }> = []
  const turns: Array<Turn> = []
  const marks: Array<Mark> = []
  const ids = makeCallIds(dialect.callIdLength, dialect.callIdsExactly)

  /** Drops the turns of changed messages, and the last step, which may have got answers. */
  const rewind = (history: ReadonlyArray<Message>): number => {
    let same = 0
    while (same < previousHistory.length && previousHistory[same] === history[same]) same++
    let last = marks.pop()
    while (last !== undefined && last.from >= same && marks.length > 0) last = marks.pop()
    previousHistory.length = same
    while ((damaged.at(-1)?.index ?? -1) >= same) damaged.pop()
    turns.length = last?.turns ?? 0
    ids.rewind(last?.ids ?? 0)
    return last?.from ?? 0
  }

  return (history) => {
    for (let from = rewind(history); from < history.length;) {
      marks.push({ from, turns: turns.length, ids: ids.count() })
      const leading = turns.at(-1)?.role === "system" || turns.length === 0
      const stepResult = step(history, from, leading, dialect, ids)
      turns.push(...stepResult.turns)
      from = stepResult.to
    }
    for (let index = previousHistory.length; index < history.length; index++) {
      const message = history[index]
      if (message === undefined) continue
      previousHistory.push(message)
      for (const block of message.content) {
        if ((block.type === "image" || block.type === "file") && !isSound(block)) {
          damaged.push({ index, name: wellFormed(nameOf(block)) })
        }
      }
    }
    const names = damaged.map(({ name }) => name)
    if (dialect.systemMessages !== "fold") return { system: [], turns: bounded(turns, dialect), damaged: names }
    const system: Array<string> = []
    // Folded system turns stand first.
    for (const turn of turns) {
      if (turn.role !== "system") break
      system.push(turn.text)
    }
    return { system, turns: bounded(turns.slice(system.length), dialect), damaged: names }
  }
}

const joinTurns = (first: Turn, second: Turn): Turn | undefined => {
  if (first.role === "human" && second.role === "human") {
    return { ...first, content: [...first.content, ...second.content] }
  }
  return first.role === "ai" && second.role === "ai" && first.calls.length === 0
    ? { ...second, content: [...first.content, ...second.content], index: first.index }
    : undefined
}

/** Makes the merger of one session: it joins turns of one role that follow each other, and drops turns without content. */
export const makeMerger = (isSaid: (turn: Turn) => boolean) =>
  makeFold<Turn, Turn>((merged, turn) => {
    if (!isSaid(turn)) return
    const last = merged.at(-1)
    const whole = last?.role === turn.role ? joinTurns(last, turn) : undefined
    if (whole === undefined) merged.push(turn)
    else merged[merged.length - 1] = whole
  })

/** Makes a function that returns the same value as long as its argument stays the same. */
export const keepLast = <Key, A>(make: (key: Key) => A): ((key: Key) => A) => {
  let last: { readonly key: Key; readonly value: A } | undefined
  return (key) => {
    if (last === undefined || last.key !== key) last = { key, value: make(key) }
    return last.value
  }
}

/** Makes the writer of the turns of one session. The turns are written anew with other names of the tools. */
export const makeTurnsWriter = <Item, Names, A>(write: (item: Item, names: Names) => ReadonlyArray<A>) =>
  makeFold<Item, A, Names>((output, item, { key }) => void output.push(...write(item, key)))
