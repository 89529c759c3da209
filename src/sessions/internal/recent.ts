/**
 * Keeps what the threads of a store had come to when they were read or written last, so that the next run on one of
 * them begins without reading it.
 */
import type { Checkpoint } from "../../core/Checkpoint.ts"
import type { Json } from "../../core/Json.ts"
import { isPartial, type Message } from "../../core/Message.ts"
import type { Entry, Leaf, NewEntry, Service, Thread } from "../../core/SessionStore.ts"
import { applyState, type Part, partial } from "../../core/thread/parts.ts"
import type { ToolCall } from "../../core/ToolCall.ts"
import * as Usage from "../../core/Usage.ts"
import { boundOf } from "../../support/text/size.ts"

/** The sum of the entries of a path, as far as they were added. */
export interface Sum {
  readonly messages: Array<Message>
  readonly state: Map<string, Json>
  step: Pick<Checkpoint, "usage" | "rounds" | "spent">
  /** The parts of a turn that did not end yet. */
  parts: Array<Part>
  /** The parts that were there before the last run began. */
  earlier: number
  /** The last entry, and the one before it. */
  last: Entry | undefined
  beforeLast: Entry | undefined
  /** The last entry that is no part, and what there was then: what comes next may take the place of the parts since. */
  readonly base: { id: string | null; parts: number; last: Entry | undefined; beforeLast: Entry | undefined }
}

export const emptySum = (): Sum => ({
  messages: [],
  state: new Map(),
  step: { usage: Usage.zero, rounds: 0, spent: undefined },
  parts: [],
  earlier: 0,
  last: undefined,
  beforeLast: undefined,
  base: { id: null, parts: 0, last: undefined, beforeLast: undefined }
})

const push = (messages: Array<Message>, message: Message | undefined): void => {
  if (message === undefined) return
  // A run that went on dropped what was said of the turn that did not end, and asked for that turn again.
  if (message.role === "ai" && isPartial(messages.at(-1))) messages.pop()
  messages.push(message)
}

/** Adds the next entry of the path. */
export const add = (sum: Sum, id: string, entry: Entry): void => {
  sum.beforeLast = sum.last
  sum.last = entry
  if (entry._tag === "Part") {
    sum.parts.push(entry)
    return
  }
  if (entry._tag === "Message") {
    if (sum.parts.length > 0) {
      if (entry.message.role !== "ai") push(sum.messages, partial(sum.parts))
      sum.parts = []
    }
    sum.earlier = 0
    push(sum.messages, entry.message)
  }
  if (entry._tag === "RunStarted") sum.earlier = sum.parts.length
  // A turn that failed leaves nothing; one that a crash cut off before is still there.
  if (entry._tag === "RunSettled" && sum.parts.length > sum.earlier) sum.parts = sum.parts.slice(0, sum.earlier)
  if (entry._tag === "State") applyState(sum.state, entry)
  if (entry._tag === "Step") sum.step = { usage: entry.usage, rounds: entry.rounds, spent: entry.spent }
  // It is changed in place: a long thread would leave as many behind as it has entries.
  sum.base.id = id
  sum.base.parts = sum.parts.length
  sum.base.last = sum.last
  sum.base.beforeLast = sum.beforeLast
}

/** Goes back to before the last parts. */
const withoutParts = (sum: Sum): void => {
  sum.parts = sum.parts.slice(0, sum.base.parts)
  sum.last = sum.base.last
  sum.beforeLast = sum.base.beforeLast
}

/** The checkpoint that a sum comes to. What grows with the thread is copied: the sum is added to. */
export const checkpointOf = ({ messages, parts, state, step }: Sum): Checkpoint => {
  const all = messages.slice()
  push(all, partial(parts))
  return { messages: all, state: Object.fromEntries(state), ...step }
}

/** Arguments are mostly a few texts and numbers. */
const weightOfCall = ({ arguments: args, name, providerData }: ToolCall): number => {
  let weight = 256 + 2 * name.length + (providerData === undefined ? 0 : boundOf(providerData))
  for (const value of Object.values(args)) {
    weight += 64 + (typeof value === "string" ? 2 * value.length : typeof value === "object" ? boundOf(value) : 0)
  }
  return weight
}

/** About what is kept of an entry in memory, in bytes. Most of most messages is text, which is not gone through. */
export const weightOf = (entry: Entry): number => {
  if (entry._tag === "State" || entry._tag === "Part") return boundOf(entry)
  if (entry._tag !== "Message") return 0
  const { message } = entry
  let weight = 512
  for (const block of message.content) weight += block.type === "text" ? 2 * block.text.length : boundOf(block)
  if (message.role === "ai") for (const call of message.toolCalls) weight += weightOfCall(call)
  return message.providerData === undefined ? weight : weight + boundOf(message.providerData)
}

/** The most that is kept for all threads of a store together, by {@link weightOf}. */
const capacity = 64 * 1024 * 1024

interface Known {
  /** A thread that was made anew under its old name has another one. */
  readonly createdAt: number
  leaf: string | null
  readonly sum: Sum
  weight: number
}

/** The threads that were used last. */
export interface Recent {
  /** The sum of a thread as it stands; `undefined` if that is not known. */
  readonly get: (thread: Thread) => Sum | undefined
  /** `weight` is that of the messages together. */
  readonly put: (thread: Thread, sum: Sum, weight: number) => void
  /**
   * The value of a slot of the thread at an entry: where the thread stands, or before the parts that came last. `null`
   * if it has none, `undefined` if that is not known.
   */
  readonly slot: (threadId: string, at: string | null, name: string) => Json | undefined
  readonly drop: (threadId: string) => void
  /** Entries were appended behind an entry. */
  readonly extend: (threadId: string, behind: string | null, entries: ReadonlyArray<NewEntry>, leaf: Leaf) => void
}

const make = (): Recent => {
  const threads = new Map<string, Known>()
  let total = 0

  const drop = (threadId: string): void => {
    total -= threads.get(threadId)?.weight ?? 0
    threads.delete(threadId)
  }

  const keep = (threadId: string, known: Known): void => {
    drop(threadId)
    threads.set(threadId, known)
    total += known.weight
    for (const oldest of threads.keys()) {
      if (total <= capacity) break
      drop(oldest)
    }
  }

  return {
    drop,
    slot: (threadId, at, name) => {
      const known = threads.get(threadId)
      if (known === undefined || (known.leaf !== at && known.sum.base.id !== at)) return undefined
      return known.sum.state.get(name) ?? null
    },
    get: ({ createdAt, leaf, threadId }) => {
      const known = threads.get(threadId)
      return known?.leaf === leaf.id && known.createdAt === createdAt ? known.sum : undefined
    },
    put: ({ createdAt, leaf, threadId }, sum, messages) => {
      let weight = 512 + messages
      for (const value of sum.state.values()) weight += boundOf(value)
      keep(threadId, { createdAt, leaf: leaf.id, sum, weight })
    },
    extend: (threadId, behind, entries, leaf) => {
      const known = threads.get(threadId)
      if (known === undefined) return
      if (known.leaf !== behind) {
        // What was there is known no more, unless all that was left behind are parts.
        if (known.sum.base.id !== behind) return drop(threadId)
        withoutParts(known.sum)
      }
      known.leaf = leaf.id
      let more = 0
      for (const { entry, id } of entries) {
        const before = entry._tag === "State" ? known.sum.state.get(entry.slot) : undefined
        more += weightOf(entry) - (before === undefined ? 0 : boundOf(before))
        add(known.sum, id, entry)
      }
      known.weight += more
      total += more
      keep(threadId, known)
    }
  }
}

const stores = new WeakMap<Service, Recent>()

/** Gives a store a memory of its threads; what it appends is told to it. */
export const remembering = (build: (recent: Recent) => Service): Service => {
  const recent = make()
  const store = build(recent)
  stores.set(store, recent)
  return store
}

/** The memory of a store; `undefined` if it has none. */
export const recentOf = (store: Service): Recent | undefined => stores.get(store)
