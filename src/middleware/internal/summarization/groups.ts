/**
 * Where a history may be cut: between groups, never between a call and its results.
 */
import type { Message } from "../../../core/Message.ts"
import type { Size } from "./limits.ts"

/** Whether a group begins here: with anything but the answer to a call. */
const begins = (history: ReadonlyArray<Message>, index: number): boolean => history[index]?.role !== "tool"

/** The beginning of the group before `end`. */
const groupBefore = (history: ReadonlyArray<Message>, end: number, first: number): number => {
  let at = end - 1
  while (at > first && !begins(history, at)) at--
  return at
}

/** Where a history is worked on: from `first` on, with a number of tokens for each message. */
export interface Stretch {
  readonly history: ReadonlyArray<Message>
  readonly first: number
  readonly tokensAt: (index: number) => number
}

/**
 * Where the tail begins: whole groups from the end, as many as fit, at least one. A notice at the very end that nobody
 * keeps (the one that asks for a final answer) does not count as that one.
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

/** Where the last group begins that calls something or answers; its results are what the model works on. */
export const lastGroupOf = (stretch: Stretch): number => tailOf(stretch, { tokens: 0, messages: 0 })
