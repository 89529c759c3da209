/**
 * Limits of a conversation: how long is too long, how much of its end stays, and where it may be cut: between groups,
 * never between a call and its results.
 */
import type { Message } from "../../../core/Message.ts"

/**
 * A length of a conversation: a fraction of the model's context window, tokens, or messages. What is given must hold
 * together: `{ tokens: 50_000, messages: 20 }` is both.
 */
export interface Amount {
  readonly fraction?: number | undefined
  readonly tokens?: number | undefined
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
  /** The trigger in tokens; where it would be, if it is one of messages. */
  readonly trigger: number
  /** Share of the way to the trigger that a request has gone: from 1 on it is too long. */
  readonly progress: (size: Size) => number
  /**
   * Limit of the end that stays; of messages, half of what the trigger allows at most, or each turn would compact
   * again.
   */
  readonly tail: Size
}

/** The window of a model that does not say, in tokens. */
export const unknownWindow = 32_768

export const defaultTrigger: ReadonlyArray<Amount> = [{ fraction: 0.85 }]
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
 * Works limits out for a window of so many tokens. Where it is not known, one is assumed that is small enough for what
 * people run on their own machines, but not smaller than the trigger asks for.
 */
export const limitsOf = (clauses: ReadonlyArray<Amount>, tail: Amount, known: number | undefined): Limits => {
  const assumed = known ?? unknownWindow
  const inTokens = clauses.map((clause) => tokensOf(clause, assumed)).filter(Number.isFinite)
  const trigger = inTokens.length === 0 ? 0.85 * assumed : Math.min(...inTokens)
  const inMessages = Math.min(...clauses.map((clause) => clause.messages ?? Infinity))
  const window = known ?? Math.max(assumed, trigger / 0.85)
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

/** Reports whether a group begins here: with anything but the answer to a call. */
const begins = (history: ReadonlyArray<Message>, index: number): boolean => history[index]?.role !== "tool"

/** The beginning of the group before `end`. */
const groupBefore = (history: ReadonlyArray<Message>, end: number, first: number): number => {
  let at = end - 1
  while (at > first && !begins(history, at)) at--
  return at
}

/** A part of a history: from `first` on, with a number of tokens for each message. */
export interface Stretch {
  readonly history: ReadonlyArray<Message>
  readonly first: number
  readonly tokensAt: (index: number) => number
}

/**
 * Finds the beginning of the tail: whole groups from the end, as many as fit, at least one. A notice at the very end
 * that nobody keeps (the one that asks for a final answer) does not count as that one.
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

/** Finds the beginning of the last group that calls something or answers; its results are what the model works on. */
export const lastGroupOf = (stretch: Stretch): number => tailOf(stretch, { tokens: 0, messages: 0 })
