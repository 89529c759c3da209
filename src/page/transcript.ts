/**
 * The state of a thread on the page, folded from the frames of the server. It holds to the contract of a reader: a `Reset`
 * goes back to the last save, and messages, calls and requests count once by their ids.
 */
import { type AgentEvent, isTerminal, type Of } from "../core/AgentEvent.ts"
import type { Request } from "../core/Approval.ts"
import { images, type Message, reasoning, text } from "../core/Message.ts"
import * as View from "../view/View.ts"
import * as Tree from "./tree.ts"

/** A frame of the server. */
export type Frame =
  | { readonly _tag: "Event"; readonly position: string; readonly event: AgentEvent }
  | { readonly _tag: "Reset"; readonly position: string; readonly to: "beginning" | "checkpoint" }

/** A finished part on the page. A message of a person has `messageId` and `pictures`. */
export interface Item {
  readonly key: number
  readonly part: View.Part
  readonly messageId?: string
  readonly pictures?: ReadonlyArray<string>
}

/** The state at one moment. `count` items of the list belong to it. */
export interface Moment {
  readonly view: View.View
  readonly tree: Tree.Tree
  readonly items: ReadonlyArray<Item>
  readonly count: number
  readonly requests: ReadonlyMap<string, Request>
  /** The title of the work at hand: the first words of a person. */
  readonly title: string
}

interface Kept {
  readonly moment: Moment
  readonly serial: number
  readonly said: string
  readonly answer: string
}

const nothing: Moment = {
  view: View.empty,
  tree: Tree.empty,
  items: [],
  count: 0,
  requests: new Map(),
  title: ""
}

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

export interface Reader {
  /** Folds a frame, and gives the moment after it. */
  readonly read: (frame: Frame) => Moment
  readonly now: () => Moment
  /** The position of the last frame. */
  readonly position: () => string | undefined
}

/** Makes the reader of a thread. Its list of items only grows at its end, or is cut back there by a `Reset`. */
export const makeReader = (): Reader => {
  const items: Array<Item> = []
  /** Ids that were seen, with the number at which they were. */
  const seen = new Map<string, number>()
  let serial = 0
  let moment: Moment = { ...nothing, items }
  /** The text of the turn so far, and the last answer. */
  let said = ""
  let answer = ""
  let position: string | undefined
  let kept: Kept = { moment, serial, said, answer }

  const isNew = (id: string): boolean => {
    if (seen.has(id)) return false
    seen.set(id, ++serial)
    return true
  }

  const goBack = (): void => {
    ;({ answer, moment, said } = kept)
    items.length = moment.count
    for (const [id, at] of seen) if (at > kept.serial) seen.delete(id)
  }

  const take = (event: AgentEvent, more: Partial<Item> = {}): void => {
    const [view, parts] = View.reduce(moment.view, event)
    for (const part of parts) items.push({ ...(part.kind === "user" ? more : {}), key: items.length, part })
    moment = { ...moment, view, count: items.length }
  }

  /** Tells the words of a message from the store, which comes without deltas. */
  const speak = (event: Of<"MessageAppended">): void => {
    const { at, message, path, runId, seq } = event
    const whole = text(message)
    const thoughts = said === "" ? (reasoning(message) ?? "") : ""
    const rest = whole.startsWith(said) ? whole.slice(said.length) : ""
    if (thoughts !== "" && moment.view.thinking === undefined) {
      take({ _tag: "ReasoningDelta", text: thoughts, at, path, runId, seq })
    }
    if (rest !== "") take({ _tag: "TextDelta", text: rest, at, path, runId, seq })
  }

  const withRequests = (change: (requests: Map<string, Request>) => void): void => {
    const requests = new Map(moment.requests)
    change(requests)
    moment = { ...moment, requests }
  }

  /** Handles messages of the outermost run. */
  const addMessage = (event: Of<"MessageAppended">): void => {
    const { message } = event
    if (!isNew(`message ${message.id}`)) {
      said = ""
      return
    }
    if (message.role === "ai") {
      speak(event)
      said = ""
      answer = message.id
    }
    const isFirst = message.role === "human" && message.source === undefined && moment.title === ""
    if (isFirst) moment = { ...moment, title: text(message).trim().split("\n")[0] ?? "" }
    take(event, message.role === "human" ? { messageId: message.id, pictures: picturesOf(message) } : {})
  }

  /** Reports whether an event of a call is to be shown: a call that ended is told once. */
  const isOpenCall = (event: OfCall): boolean => {
    const id = `call ${answer} ${event.runId} ${event.callId}`
    return event._tag === "ToolCompleted" || event._tag === "ToolFailed" ? isNew(id) : !seen.has(id)
  }

  const addRequest = (event: Of<"ApprovalRequested">): void => {
    if (seen.has(`resolved ${event.id}`) || moment.requests.has(event.id)) return
    withRequests((requests) => requests.set(event.id, event))
    take(event)
  }

  const resolveRequest = (event: Of<"ApprovalResolved">): void => {
    if (!isNew(`resolved ${event.id}`)) return
    withRequests((requests) => requests.delete(event.id))
    take(event)
  }

  /** Handles the end of the outermost run, which may be told again. */
  const settle = (event: Of<"RunCompleted" | "RunFailed" | "RunInterrupted">): void => {
    if (moment.view.status === "idle") return
    const isWaiting = event._tag === "RunCompleted" && event.stopReason === "suspended"
    if (!isWaiting && moment.requests.size > 0) withRequests((requests) => requests.clear())
    take(event)
  }

  const fold = (event: AgentEvent): void => {
    const isRoot = event.path.length <= 1
    if (event._tag === "MessageAppended") {
      if (isRoot) addMessage(event)
    } else if (isCall(event)) {
      if (isOpenCall(event)) take(event)
    } else if (event._tag === "ApprovalRequested") addRequest(event)
    else if (event._tag === "ApprovalResolved") resolveRequest(event)
    else if (isRoot && isTerminal(event)) settle(event)
    else {
      if (isRoot && event._tag === "TextDelta") said += event.text
      if (isRoot && (event._tag === "RoundStarted" || event._tag === "TurnRestarted")) said = ""
      take(event)
    }
  }

  return {
    now: () => moment,
    position: () => position,
    read: (frame) => {
      position = frame.position
      if (frame._tag === "Reset") {
        if (frame.to === "beginning") {
          kept = { moment: { ...nothing, items }, serial: 0, said: "", answer: "" }
        }
        goBack()
        return moment
      }
      const { event } = frame
      fold(event)
      moment = { ...moment, tree: Tree.reduce(moment.tree, event) }
      if (event._tag === "CheckpointSaved" && event.path.length <= 1) kept = { moment, serial, said, answer }
      return moment
    }
  }
}
