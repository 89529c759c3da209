/**
 * Chooses the parts of a thread to write: a terminal takes no line back. Parts that a `Reset` made void come again from the
 * server, and are written once.
 */
import { type AgentEvent, isTerminal } from "../../../core/AgentEvent.ts"
import type { Item, Moment } from "../../../view/Transcript.ts"
import type { Part } from "../../../view/View.ts"

/** The written parts of a thread. */
export interface Scrollback {
  /** Gives the parts of an event that are not on the screen. */
  readonly take: (moment: Moment, event: AgentEvent) => ReadonlyArray<Part>
  /** Marks the parts behind a place in the list as void: they come again, or never were. */
  readonly reset: (count: number) => void
  /** Marks all parts as written. */
  readonly skip: (moment: Moment) => void
}

const restarted: Part = { kind: "note", level: "warning", text: "↻ the answer starts again from the last save" }

const isWords = ({ kind }: Part): boolean => kind === "text" || kind === "code"

/** Names an item by facts that the store tells, too. */
const keyOf = ({ call, messageId, part }: Item): string => {
  switch (part.kind) {
    case "text":
      return `words ${part.markdown}`
    case "code":
      return `words ${part.language} ${part.text}`
    case "thinking":
      return "words"
    case "user":
      return `user ${messageId ?? part.text}`
    case "tool":
      return `tool ${call?.id ?? `${part.name} ${part.gist}`}`
    case "subagent":
      return `subagent ${part.path.join("/")}`
    case "decision":
      return `decision ${part.toolName} ${part.decision}`
    case "note":
      return `note ${part.text}`
    case "sources":
      return "sources"
    case "turnEnd":
      return `end ${part.stopReason}`
  }
}

export const makeScrollback = (): Scrollback => {
  /** The number of items that no `Reset` makes void, and the names of those behind them. */
  let base = 0
  let names: Array<string> = []
  /** The void items on the screen, by name. */
  const voided = new Map<string, number>()
  /** The words of this message that came again. */
  let again: Array<Part> = []
  const hasWords = (): boolean => [...voided.keys()].some((name) => name.startsWith("words "))
  const dropWords = (): void => {
    for (const name of voided.keys()) if (name.startsWith("words")) voided.delete(name)
    again = []
  }
  const reset = (count: number): void => {
    for (const name of names.splice(Math.max(0, count - base))) voided.set(name, (voided.get(name) ?? 0) + 1)
    again = []
  }
  /** The start of other words than those on the screen. */
  const restart = (): ReadonlyArray<Part> => {
    const parts = hasWords() ? [restarted, ...again] : []
    dropWords()
    return parts
  }
  /** Takes an item that may be on the screen. */
  const takeItem = (item: Item): ReadonlyArray<Part> => {
    const name = keyOf(item)
    names.push(name)
    const left = voided.get(name) ?? 0
    if (left > 1) voided.set(name, left - 1)
    else voided.delete(name)
    if (left > 0 && isWords(item.part)) again.push(item.part)
    if (left > 0) return []
    return isWords(item.part) ? [...restart(), item.part] : [item.part]
  }
  return {
    reset,
    skip: ({ count }) => {
      base = count
      names = []
    },
    take: ({ count, items }, event) => {
      if (count < base + names.length) reset(count)
      const parts = items.slice(base + names.length, count).flatMap(takeItem)
      if (event.path.length > 1) return parts
      if (event._tag === "MessageAppended" && event.message.role === "ai") parts.push(...restart())
      if (event._tag === "CheckpointSaved") {
        base += names.length
        names = []
      }
      if (isTerminal(event)) voided.clear()
      return parts
    }
  }
}
