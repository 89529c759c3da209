/** The model's view of a history: the whole of it, or what a record of compactions makes of it. */
import * as Message from "../../../core/Message.ts"
import type { Clip, Fold, Record, Ref, Trim } from "./record.ts"
import type { Meter } from "./tokens.ts"
import { clipped, digest, trimmed } from "./trim.ts"

/** The `source` of messages that a compaction added or changed. */
export const source = "summarization"

/**
 * A view of a history. `messages` is the history's own list while there is nothing to change in it; else a list that
 * grows with it, so that an adapter that remembers what it was given finds it again.
 */
export interface View {
  readonly record: Record
  readonly messages: ReadonlyArray<Message.Message>
  /** Tokens of `messages`, as the meter counts. */
  readonly tokens: number
  /** The last message that is folded, by its index in the history; -1 if none is. */
  readonly foldedTo: number
  /** The index in `messages` of a message of the history; of one that is folded, the summary's. */
  readonly indexOf: (index: number) => number
}

interface State extends View {
  messages: ReadonlyArray<Message.Message>
  tokens: number
}

/** Finds a message of a record in a history that may be another one by now; -1 if it is not there. */
export const locate = (history: ReadonlyArray<Message.Message>, ref: Ref | undefined): number => {
  if (ref === undefined) return -1
  return history[ref.index]?.id === ref.id ? ref.index : history.findIndex((message) => message.id === ref.id)
}

/** The same at the end of a group: what answers a call is never parted from it. */
const locateEnd = (history: ReadonlyArray<Message.Message>, ref: Ref | undefined): number => {
  let at = locate(history, ref)
  while (at >= 0 && history[at + 1]?.role === "tool") at++
  return at
}

/** The message that tells of what is folded. */
const summaryOf = (fold: Fold): Message.HumanMessage =>
  Message.human(fold.head + fold.body + fold.rest, { id: fold.id, source })

/** Counts the system messages that a history begins with. They are instructions, and stay. */
export const leadingOf = (history: ReadonlyArray<Message.Message>): number => {
  const first = history.findIndex((message) => message.role !== "system")
  return first === -1 ? history.length : first
}

/** Makes the messages in the place of everything up to `foldedTo`. */
const frontOf = (
  history: ReadonlyArray<Message.Message>,
  fold: Fold,
  foldedTo: number,
  leading: number
): ReadonlyArray<Message.Message> => {
  const pins = fold.pins.flatMap((pin) => {
    const at = locate(history, pin)
    const message = history[at]
    if (message === undefined || at > foldedTo || at < leading) return []
    return [pin.limit === undefined ? message : digest(message, pin.limit)]
  })
  return [...history.slice(0, leading), ...pins, summaryOf(fold)]
}

const reshape = (
  message: Message.Message,
  index: number,
  trim: { readonly to: number; readonly how: Trim } | undefined,
  clip: { readonly to: number; readonly how: Clip } | undefined
): Message.Message => {
  const short = trim !== undefined && index <= trim.to ? trimmed(message, trim.how) : message
  return clip !== undefined && index <= clip.to ? clipped(short, clip.how) : short
}

/** Makes the view of a history from nothing. It goes over the history once, and gives what to add as it grows. */
const build = (history: ReadonlyArray<Message.Message>, record: Record, meter: Meter) => {
  const foldedTo = locateEnd(history, record.fold?.through)
  const trim = record.trim && { to: locateEnd(history, record.trim.through), how: record.trim }
  const clip = record.clip && { to: locateEnd(history, record.clip.through), how: record.clip }
  const changedTo = Math.max(foldedTo, trim?.to ?? -1, clip?.to ?? -1)
  const leading = foldedTo < 0 ? 0 : Math.min(leadingOf(history), foldedTo + 1)
  const front = record.fold === undefined || foldedTo < 0 ? [] : frontOf(history, record.fold, foldedTo, leading)
  const own: Array<Message.Message> | undefined = changedTo < 0 ? undefined : front.slice()
  const offset = front.length - foldedTo - 1
  const view: State = {
    record,
    messages: own ?? history,
    tokens: front.reduce((sum, message) => sum + meter.message(message), 0),
    foldedTo,
    indexOf: (index) => (index > foldedTo ? index + offset : index < leading ? index : front.length - 1)
  }
  const grow = (from: ReadonlyArray<Message.Message>, start: number): void => {
    for (let index = start; index < from.length; index++) {
      const message = from[index]
      if (message === undefined) continue
      const shown = own === undefined ? message : reshape(message, index, trim, clip)
      own?.push(shown)
      view.tokens += meter.message(shown)
    }
    if (own === undefined) view.messages = from
  }
  grow(history, foldedTo + 1)
  return { view, grow }
}

/** The view of a history as a record has it. */
export const viewOf = (history: ReadonlyArray<Message.Message>, record: Record, meter: Meter): View =>
  build(history, record, meter).view

/**
 * Makes the views of one run. As long as the record is the same and the history only grew, a view costs what is new;
 * the history need not be the same list, but what it holds must be the same messages.
 */
export const makeViewer = (meter: Meter) => {
  let list: ReadonlyArray<Message.Message> = []
  const seen: Array<Message.Message> = []
  let built: ReturnType<typeof build> | undefined

  const hasGrown = (history: ReadonlyArray<Message.Message>): boolean => {
    if (history.length < seen.length) return false
    // A run's own list only ever grows at its end.
    const from = history === list ? Math.max(0, seen.length - 1) : 0
    for (let index = from; index < seen.length; index++) if (seen[index] !== history[index]) return false
    return true
  }

  return (history: ReadonlyArray<Message.Message>, record: Record): View => {
    if (built !== undefined && built.view.record === record && hasGrown(history)) {
      built.grow(history, seen.length)
    } else {
      built = build(history, record, meter)
      seen.length = 0
    }
    list = history
    for (let index = seen.length; index < history.length; index++) {
      const message = history[index]
      if (message !== undefined) seen.push(message)
    }
    return built.view
  }
}
