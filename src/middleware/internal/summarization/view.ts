/** The model's view of a history: all of it, or its form by a record of compactions. */
import * as Message from "../../../core/Message.ts"
import type { Clip, Fold, Record, Ref, Trim } from "./record.ts"
import type { Meter } from "./tokens.ts"
import { clipped, digest, trimmed } from "./trim.ts"

/** The `source` of messages that a compaction added or changed. */
export const source = "summarization"

/**
 * A view of a history. Without changes, `messages` is the history's own list. Otherwise it is a list that grows with
 * the history, so that an adapter finds its last one again.
 */
export interface View {
  readonly record: Record
  readonly messages: ReadonlyArray<Message.Message>
  /** Tokens of `messages` by the meter. */
  readonly tokens: number
  /** The index of the last folded message in the history; -1 without any. */
  readonly foldedTo: number
  /** Maps an index of the history to an index of `messages`; a folded message has the summary's. */
  readonly indexOf: (index: number) => number
}

interface State extends View {
  messages: ReadonlyArray<Message.Message>
  tokens: number
}

/** Finds a record's message in a history that may have changed; -1 if it is missing. */
export const locate = (history: ReadonlyArray<Message.Message>, ref: Ref | undefined): number => {
  if (ref === undefined) return -1
  return history[ref.index]?.id === ref.id ? ref.index : history.findIndex((message) => message.id === ref.id)
}

/** Finds the end of a message's group: calls and answers stay together. */
const locateEnd = (history: ReadonlyArray<Message.Message>, ref: Ref | undefined): number => {
  let at = locate(history, ref)
  while (at >= 0 && history[at + 1]?.role === "tool") at++
  return at
}

/** The message with the summary. */
const summaryOf = (fold: Fold): Message.HumanMessage =>
  Message.human(fold.head + fold.body + fold.rest, { id: fold.id, source })

/** Counts the leading system messages. They are instructions, and stay. */
export const leadingOf = (history: ReadonlyArray<Message.Message>): number => {
  const first = history.findIndex((message) => message.role !== "system")
  return first === -1 ? history.length : first
}

/** Makes the messages in place of everything up to `foldedTo`. */
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

/** Builds the view of a history in one pass, with a function that appends new messages. */
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
      const copy = own === undefined ? message : reshape(message, index, trim, clip)
      own?.push(copy)
      view.tokens += meter.message(copy)
    }
    if (own === undefined) view.messages = from
  }
  grow(history, foldedTo + 1)
  return { view, grow }
}

/** The view of a history by a record. */
export const viewOf = (history: ReadonlyArray<Message.Message>, record: Record, meter: Meter): View =>
  build(history, record, meter).view

/**
 * Makes the views of one run. While the record is the same and the history only grew, a view costs only its new
 * messages. The list may be another one with the same messages.
 */
export const makeViewer = (meter: Meter) => {
  let list: ReadonlyArray<Message.Message> = []
  const seen: Array<Message.Message> = []
  let current: ReturnType<typeof build> | undefined

  const hasGrown = (history: ReadonlyArray<Message.Message>): boolean => {
    if (history.length < seen.length) return false
    // A run's own list only grows at its end.
    const from = history === list ? Math.max(0, seen.length - 1) : 0
    for (let index = from; index < seen.length; index++) if (seen[index] !== history[index]) return false
    return true
  }

  return (history: ReadonlyArray<Message.Message>, record: Record): View => {
    if (current !== undefined && current.view.record === record && hasGrown(history)) {
      current.grow(history, seen.length)
    } else {
      current = build(history, record, meter)
      seen.length = 0
    }
    list = history
    for (let index = seen.length; index < history.length; index++) {
      const message = history[index]
      if (message !== undefined) seen.push(message)
    }
    return current.view
  }
}
