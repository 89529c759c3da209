/**
 * The transcript of a thread behind a server, folded from its frames. It holds to the contract of a reader: a `Reset`
 * goes back to the last save, and messages, calls and requests count once by their ids. A reader that was cut anywhere ends
 * with the same transcript as an uncut reader.
 *
 * ```ts
 * import { Transcript } from "effect-deepagents/view"
 *
 * declare const frames: Iterable<Transcript.Frame>
 *
 * const reader = Transcript.makeReader()
 * for (const frame of frames) reader.read(frame)
 * const { count, items, requests, view } = reader.now()
 * // The server goes on behind this place.
 * const after = reader.position()
 * ```
 */
import { type AgentEvent, isTerminal, type Of } from "../core/AgentEvent.ts"
import type { Request } from "../core/Approval.ts"
import { images, type Message, reasoning, text } from "../core/Message.ts"
import * as View from "./View.ts"

/** A frame of the server. */
export type Frame =
  | { readonly _tag: "Event"; readonly position: string; readonly event: AgentEvent }
  | { readonly _tag: "Reset"; readonly position: string; readonly to: "beginning" | "checkpoint" }

/** A finished part, with its place in the list. A message of a person has `messageId` and `pictures`. */
export interface Item {
  readonly key: number
  readonly part: View.Part
  readonly messageId?: string
  readonly pictures?: ReadonlyArray<string>
  /** The call of a finished part of the outermost run. */
  readonly call?: { readonly id: string; readonly name: string }
}

/** The state at one moment. `count` items of the list belong to it. `folded` is the state of the reader's own fold. */
export interface Moment<Folded = undefined> {
  readonly view: View.View
  readonly folded: Folded
  readonly items: ReadonlyArray<Item>
  readonly count: number
  readonly requests: ReadonlyMap<string, Request>
  /** The title of the work at hand: the first words of a person. */
  readonly title: string
}

/** A fold of the reader's own, over the same events as the view. */
export interface Fold<Folded> {
  readonly empty: Folded
  readonly reduce: (folded: Folded, event: AgentEvent) => Folded
}

interface Memo<Folded> {
  readonly moment: Moment<Folded>
  readonly serial: number
  readonly said: string
  readonly answer: string
}

const nothing = { view: View.empty, count: 0, requests: new Map<string, Request>(), title: "" }

const shownTypes = /^image\/(?:png|jpeg|gif|webp|avif)$/
const base64 = /^[A-Za-z0-9+/=\s]*$/

/** The pictures of a message as addresses of data. Addresses of other machines are not asked for. */
const picturesOf = (message: Message): ReadonlyArray<string> =>
  images(message).flatMap(({ source }) =>
    source.kind === "base64" && shownTypes.test(source.mimeType) && base64.test(source.data)
      ? [`data:${source.mimeType};base64,${source.data}`]
      : []
  )

type OfCall = Of<"ToolCallDelta" | "ToolCalled" | "ToolCompleted" | "ToolFailed" | "ToolProgress">

const isCall = (event: AgentEvent): event is OfCall => "callId" in event && event._tag.startsWith("Tool")

/** Events that a run has while it is at work. */
const ofTurns: ReadonlySet<AgentEvent["_tag"]> = new Set([
  "TextDelta",
  "ReasoningStarted",
  "ReasoningDelta",
  "ReasoningCompleted",
  "TurnRestarted",
  "RoundCompleted",
  "SourcesFound",
  "SubagentStarted",
  "SubagentCompleted"
])

/** The reader of a thread. It changes with each frame; its moments don't. */
export interface Reader<Folded = undefined> {
  /** Folds a frame, and gives the moment after it. */
  readonly read: (frame: Frame) => Moment<Folded>
  readonly now: () => Moment<Folded>
  /** The position of the last frame. */
  readonly position: () => string | undefined
  /** Ends the work that is shown: the server has none. A thread that was rewound ends without an event. */
  readonly rest: () => Moment<Folded>
  /** Empties the saved items before a place in the list, for screens that never draw them again. */
  readonly release: (before: number) => void
}

/** The state of a reader. */
interface Book<Folded> {
  readonly fold: Fold<Folded>
  readonly items: Array<Item>
  /** The number of items that are empty. */
  released: number
  /** Ids that were seen, with the number at which they were. */
  readonly seen: Map<string, number>
  /** The messages of calls: a server may tell an older call again. */
  readonly owners: Map<string, string>
  serial: number
  moment: Moment<Folded>
  /** The text of the turn so far. */
  said: string
  /** The last answer. */
  answer: string
  position: string | undefined
  /** The beginning of a run, until something of it is new: a late reader may get a run again that it has. */
  held: ReadonlyArray<AgentEvent>
  /** Set while the events of a turn come that is there already. */
  isStale: boolean
  /** The moment before the turn. */
  before: Moment<Folded> | undefined
  kept: Memo<Folded>
}

const makeBook = <Folded>(fold: Fold<Folded>): Book<Folded> => {
  const items: Array<Item> = []
  const moment: Moment<Folded> = { ...nothing, folded: fold.empty, items }
  const start = { moment, serial: 0, said: "", answer: "" }
  return {
    ...start,
    fold,
    items,
    released: 0,
    seen: new Map(),
    owners: new Map(),
    position: undefined,
    held: [],
    isStale: false,
    before: undefined,
    kept: start
  }
}

/** The most ids that are remembered. Older ones are behind many saves, and are not told again. */
const mostSeen = 200_000

/** Sets a value in a map that forgets its oldest ones. */
const remember = <A>(map: Map<string, A>, key: string, value: A): void => {
  map.set(key, value)
  const [oldest] = map.size > mostSeen ? map.keys() : []
  if (oldest !== undefined) map.delete(oldest)
}

const isNew = <Folded>(book: Book<Folded>, id: string): boolean => {
  if (book.seen.has(id)) return false
  remember(book.seen, id, ++book.serial)
  return true
}

/** Names a call. Calls of sub-agents have the run in their names. */
const callKey = ({ path, runId }: AgentEvent, callId: string): string =>
  path.length <= 1 ? callId : `${runId} ${callId}`

/** Notes which message has which calls: models may use an id again in a later message. */
const noteCalls = <Folded>({ owners }: Book<Folded>, event: Of<"MessageAppended">): void => {
  const { message } = event
  if (message.role !== "ai") return
  for (const { id } of message.toolCalls) remember(owners, callKey(event, id), message.id)
}

/** Goes back to the last save. */
const goBack = <Folded>(book: Book<Folded>): void => {
  const { answer, moment, said, serial } = book.kept
  Object.assign(book, { answer, moment, said, held: [], isStale: false, before: undefined })
  book.items.length = moment.count
  for (const [id, at] of book.seen) if (at > serial) book.seen.delete(id)
}

const take = <Folded>(book: Book<Folded>, event: AgentEvent, more: Partial<Item> = {}): void => {
  const { items, moment } = book
  const [view, parts] = View.reduce(moment.view, event)
  for (const part of parts)
    items.push({ ...(part.kind === "user" || part.kind === "tool" ? more : {}), key: items.length, part })
  book.moment = { ...moment, view, folded: book.fold.reduce(moment.folded, event), count: items.length }
}

/** Tells the words of a message from the store, which comes without deltas. */
const speak = <Folded>(book: Book<Folded>, event: Of<"MessageAppended">): void => {
  const { at, message, path, runId, seq } = event
  const { said } = book
  const whole = text(message)
  const thoughts = said === "" ? (reasoning(message) ?? "") : ""
  const rest = whole.startsWith(said) ? whole.slice(said.length) : ""
  if (thoughts !== "" && book.moment.view.thinking === undefined) {
    take(book, { _tag: "ReasoningDelta", text: thoughts, at, path, runId, seq })
  }
  if (rest !== "") take(book, { _tag: "TextDelta", text: rest, at, path, runId, seq })
}

const changeRequests = <Folded>(book: Book<Folded>, change: (requests: Map<string, Request>) => void): void => {
  const requests = new Map(book.moment.requests)
  change(requests)
  book.moment = { ...book.moment, requests }
}

/** Notes that something is new: the held events of its run come first. */
const begin = <Folded>(book: Book<Folded>): void => {
  const events = book.held
  Object.assign(book, { isStale: false, held: [] })
  for (const event of events) take(book, event)
}

/** Takes back the words of a turn that was there already. */
const dropTurn = <Folded>(book: Book<Folded>): void => {
  const { before, moment } = book
  if (before !== undefined) {
    book.items.length = before.count
    const { text: open, thinking } = before.view
    book.moment = { ...moment, count: before.count, view: { ...moment.view, text: open, thinking } }
  }
  Object.assign(book, { said: "", before: undefined, isStale: false })
}

/** Handles messages of the outermost run. */
const addMessage = <Folded>(book: Book<Folded>, event: Of<"MessageAppended">): void => {
  const { message } = event
  if (!isNew(book, `message ${message.id}`)) return message.role === "ai" ? dropTurn(book) : undefined
  begin(book)
  if (message.role === "ai") {
    speak(book, event)
    Object.assign(book, { said: "", before: undefined, answer: message.id })
  }
  const isFirst = message.role === "human" && message.source === undefined && book.moment.title === ""
  if (isFirst) book.moment = { ...book.moment, title: text(message).trim().split("\n")[0] ?? "" }
  take(book, event, message.role === "human" ? { messageId: message.id, pictures: picturesOf(message) } : {})
}

/** Reports whether an event of a call is to be shown: a call that ended is told once. */
const isOpenCall = <Folded>(book: Book<Folded>, event: OfCall): boolean => {
  const owner = book.owners.get(callKey(event, event.callId)) ?? book.answer
  const id = `call ${owner} ${event.runId} ${event.callId}`
  return event._tag === "ToolCompleted" || event._tag === "ToolFailed" ? isNew(book, id) : !book.seen.has(id)
}

const addRequest = <Folded>(book: Book<Folded>, event: Of<"ApprovalRequested">): void => {
  if (book.seen.has(`resolved ${event.id}`) || book.moment.requests.has(event.id)) return
  begin(book)
  changeRequests(book, (requests) => requests.set(event.id, event))
  take(book, event)
}

const resolveRequest = <Folded>(book: Book<Folded>, event: Of<"ApprovalResolved">): void => {
  if (!isNew(book, `resolved ${event.id}`)) return
  begin(book)
  changeRequests(book, (requests) => requests.delete(event.id))
  take(book, event)
}

/** Handles the end of the outermost run, which may be told again. */
const settle = <Folded>(book: Book<Folded>, event: Of<"RunCompleted" | "RunFailed" | "RunInterrupted">): void => {
  begin(book)
  if (book.moment.view.status === "idle") return
  const isWaiting = event._tag === "RunCompleted" && event.stopReason === "suspended"
  if (!isWaiting && book.moment.requests.size > 0) changeRequests(book, (requests) => requests.clear())
  take(book, event)
}

/** Handles the begin of a turn. */
const startRound = <Folded>(book: Book<Folded>, event: Of<"RoundStarted">): void => {
  const isStale = event.messageId !== undefined && book.seen.has(`message ${event.messageId}`)
  Object.assign(book, { said: "", before: undefined, isStale })
  if (isStale) return
  // A round that goes on with calls has no message of its own: it may be told again.
  if (event.messageId === undefined && book.held.length > 0) {
    book.held = [...book.held, event]
    return
  }
  begin(book)
  take(book, event)
}

/** Holds the begin of a run back. A run at work that begins again has begun, or goes on after a restart. */
const hold = <Folded>(book: Book<Folded>, event: Of<"RunStarted">): void => {
  const { runId, status } = book.moment.view
  if (status === "idle" || runId !== event.runId) book.held = [event]
}

/** Reports whether an event of a turn is told again, or belongs to a run that is over. */
const isKnown = <Folded>({ held, isStale, moment }: Book<Folded>, event: AgentEvent): boolean => {
  const { status, subagents } = moment.view
  if (event._tag === "SubagentStarted" && subagents.some(({ runId }) => runId === event.childRunId)) return true
  return isStale || held.length > 0 || (status === "idle" && ofTurns.has(event._tag))
}

/** Handles other events of the outermost run. */
const foldOfRoot = <Folded>(book: Book<Folded>, event: AgentEvent): void => {
  if (event._tag === "RunStarted") return hold(book, event)
  if (event._tag === "RoundStarted") return startRound(book, event)
  if (event._tag === "StateChanged") return take(book, event)
  if (event._tag === "CheckpointLoaded" && book.held.length > 0) {
    book.held = [...book.held, event]
    return undefined
  }
  if (isKnown(book, event)) return undefined
  if (event._tag === "TurnRestarted") Object.assign(book, { said: "", before: undefined })
  if (event._tag === "TextDelta" || event._tag.startsWith("Reasoning")) book.before ??= book.moment
  if (event._tag === "TextDelta") book.said += event.text
  take(book, event)
}

const fold = <Folded>(book: Book<Folded>, event: AgentEvent): void => {
  const isRoot = event.path.length <= 1
  if (event._tag === "MessageAppended") {
    noteCalls(book, event)
    if (isRoot) addMessage(book, event)
  } else if (isCall(event)) {
    const more = isRoot && event._tag !== "ToolCallDelta" ? { call: { id: event.callId, name: event.toolName } } : {}
    if (isOpenCall(book, event)) take(book, event, more)
  } else if (event._tag === "ApprovalRequested") addRequest(book, event)
  else if (event._tag === "ApprovalResolved") resolveRequest(book, event)
  else if (!isRoot) take(book, event)
  else if (isTerminal(event)) settle(book, event)
  else foldOfRoot(book, event)
}

const released: View.Part = { kind: "note", level: "info", text: "" }

const make = <Folded>(own: Fold<Folded>): Reader<Folded> => {
  const book = makeBook(own)
  return {
    now: () => book.moment,
    position: () => book.position,
    rest: () => {
      const { view } = book.moment
      book.moment = { ...book.moment, view: { ...view, status: "idle", subagents: [], calls: View.empty.calls } }
      return book.moment
    },
    read: (frame) => {
      book.position = frame.position
      if (frame._tag === "Reset") {
        if (frame.to === "beginning") {
          const moment = { ...nothing, folded: own.empty, items: book.items }
          book.kept = { moment, serial: 0, said: "", answer: "" }
          book.released = 0
        }
        goBack(book)
        return book.moment
      }
      const { event } = frame
      fold(book, event)
      if (event._tag === "CheckpointSaved" && event.path.length <= 1) {
        const { answer, moment, said, serial } = book
        book.kept = { moment, serial, said, answer }
      }
      return book.moment
    },
    release: (before) => {
      const most = Math.min(before, book.kept.moment.count)
      for (; book.released < most; book.released++) {
        book.items[book.released] = { key: book.released, part: released }
      }
    }
  }
}

/**
 * Makes the reader of a thread. Its list of items only grows at its end, or is cut back there, as by a `Reset`. `fold`
 * folds the same events once more, such as into a tree of runs.
 */
export const makeReader: {
  (): Reader
  <Folded>(fold: Fold<Folded>): Reader<Folded>
} = <Folded>(fold?: Fold<Folded>): Reader<undefined> | Reader<Folded> =>
  fold === undefined ? make({ empty: undefined, reduce: () => undefined }) : make(fold)
