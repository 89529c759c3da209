/**
 * Limits of a conversation: its longest length, the length of its tail, and the places of a cut: between groups, never
 * between a call and its results.
 */
import type { Message } from "../../../core/Message.ts"

/**
 * A length of a conversation. If several amounts are set, all must hold: `{ tokens: 50_000, messages: 20 }` is both.
 */
export interface Amount {
  /** A fraction of the model's context window, between 0 and 1. */
  readonly fraction?: number | undefined
  /** A number of tokens. */
  readonly tokens?: number | undefined
  /** A number of messages. */
  readonly messages?: number | undefined
}

/** Length of a request: all of its tokens, and its messages. */
export interface Size {
  readonly tokens: number
  readonly messages: number
}

/** The limits in force for one request. */
export interface Limits {
  /** In tokens. */
  readonly window: number
  /** The trigger in tokens, or its equivalent for a trigger in messages. */
  readonly trigger: number
  /** The share of the trigger that a request has reached: from 1 on it is too long. */
  readonly progress: (size: Size) => number
  /** The longest tail. In messages it is at most half of the trigger, or each turn would compact again. */
  readonly tail: Size
}

/** The window of a model that reports none, in tokens. */
export const unknownWindow = 32_768

export const defaultFraction = 0.85

export const defaultTrigger: ReadonlyArray<Amount> = [{ fraction: defaultFraction }]
export const defaultTail: Amount = { fraction: 0.1 }

const tokensOf = ({ fraction, tokens }: Amount, window: number): number =>
  Math.min(fraction === undefined ? Infinity : fraction * window, tokens ?? Infinity)

const share = (size: number, limit: number | undefined): number =>
  limit === undefined ? Infinity : size / Math.max(1, limit)

const clauseProgress = ({ fraction, messages, tokens }: Amount, size: Size, window: number): number => {
  const inTokens = Math.min(
    share(size.tokens, tokens),
    fraction === undefined ? Infinity : share(size.tokens, fraction * window)
  )
  const least = Math.min(inTokens, share(size.messages, messages))
  return least === Infinity ? 0 : least
}

/**
 * Derives the limits for a window in tokens. An unknown window is assumed to be small enough for local models, but not
 * smaller than the trigger demands.
 */
export const limitsOf = (clauses: ReadonlyArray<Amount>, tail: Amount, tokens: number | undefined): Limits => {
  const assumed = tokens ?? unknownWindow
  const inTokens = clauses.map((clause) => tokensOf(clause, assumed)).filter(Number.isFinite)
  const trigger = inTokens.length === 0 ? 0.85 * assumed : Math.min(...inTokens)
  const inMessages = Math.min(...clauses.map((clause) => clause.messages ?? Infinity))
  const window = tokens ?? Math.max(assumed, trigger / 0.85)
  return {
    window,
    trigger,
    progress: (size) => clauses.reduce((most, clause) => Math.max(most, clauseProgress(clause, size, window)), 0),
    tail: {
      tokens: tokensOf(tail, window),
      messages: Math.min(tail.messages ?? Infinity, inMessages / 2)
    }
  }
}

/** Reports whether a group starts here: with anything but the answer to a call. */
const begins = (history: ReadonlyArray<Message>, index: number): boolean => history[index]?.role !== "tool"

/** The start of the group before `end`. */
const groupBefore = (history: ReadonlyArray<Message>, end: number, first: number): number => {
  let at = end - 1
  while (at > first && !begins(history, at)) at--
  return at
}

/** A part of a history from `first` on, with the tokens of each message. */
export interface Stretch {
  readonly history: ReadonlyArray<Message>
  readonly first: number
  readonly tokensAt: (index: number) => number
}

/**
 * Finds the start of the tail: as many whole groups from the end as fit, at least one. A trailing notice without an id,
 * such as the request for a final answer, does not count.
 */
export const tailOf = ({ first, history, tokensAt }: Stretch, most: Size): number => {
  let start = history.length
  let tokens = 0
  let isNeeded = true
  while (start > first) {
    const at = groupBefore(history, start, first)
    let group = 0
    for (let index = at; index < start; index++) group += tokensAt(index)
    if (!isNeeded && (tokens + group > most.tokens || history.length - at > most.messages)) break
    const opening = history[at]
    isNeeded = isNeeded && opening?.role === "human" && opening.source !== undefined
    tokens += group
    start = at
  }
  return start
}

/** Finds the start of the last group with a call or an answer. Its results are the model's current work. */
export const lastGroupOf = (stretch: Stretch): number => tailOf(stretch, { tokens: 0, messages: 0 })
