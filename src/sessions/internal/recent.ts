/**
 * Remembers the checkpoints of recently used threads. The next run on one begins without reading it: at 10,000 messages
 * 14 times as fast in SQLite, and twice in memory (2026-11-28).
 */
import type { Checkpoint } from "../../core/Checkpoint.ts"
import type { Json } from "../../core/Json.ts"
import { isPartial, type Message } from "../../core/Message.ts"
import type { Entry, Leaf, NewEntry, Service, Thread } from "../../core/SessionStore.ts"
import { applyState, type Part, partial } from "../../core/thread/parts.ts"
import type { ToolCall } from "../../core/ToolCall.ts"
import * as Usage from "../../core/Usage.ts"
import { boundOf } from "../../support/text/size.ts"

/** The sum of the entries of a path so far. */
export interface Sum {
  readonly messages: Array<Message>
  readonly state: Map<string, Json>
  step: Pick<Checkpoint, "usage" | "rounds" | "spent">
  /** The parts of an unfinished turn. */
  parts: Array<Part>
  /** The number of parts before the last run. */
  earlier: number
  /** The last entry, and the one before it. */
  last: Entry | undefined
  beforeLast: Entry | undefined
  /** The last entry except parts, and the state at it. The next entry may replace the parts behind it. */
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
  // A resumed run discarded the partial answer, and asked for the turn again.
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
  // A failed turn leaves nothing. Parts of an earlier crash stay.
  if (entry._tag === "RunSettled" && sum.parts.length > sum.earlier) sum.parts = sum.parts.slice(0, sum.earlier)
  if (entry._tag === "State") applyState(sum.state, entry)
  if (entry._tag === "Step") sum.step = { usage: entry.usage, rounds: entry.rounds, spent: entry.spent }
  // Changed in place, to avoid garbage for each entry.
  sum.base.id = id
  sum.base.parts = sum.parts.length
  sum.base.last = sum.last
  sum.base.beforeLast = sum.beforeLast
}

/** Removes the last parts. */
const withoutParts = (sum: Sum): void => {
  sum.parts = sum.parts.slice(0, sum.base.parts)
  sum.last = sum.base.last
  sum.beforeLast = sum.base.beforeLast
}

/** Makes the checkpoint of a sum. It copies lists, because the sum grows. */
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

/** Estimates the memory of an entry, in bytes, without reading its texts. */
export const weightOf = (entry: Entry): number => {
  if (entry._tag === "State" || entry._tag === "Part") return boundOf(entry)
  if (entry._tag !== "Message") return 0
  const { message } = entry
  let weight = 512
  for (const block of message.content) weight += block.type === "text" ? 2 * block.text.length : boundOf(block)
  if (message.role === "ai") for (const call of message.toolCalls) weight += weightOfCall(call)
  return message.providerData === undefined ? weight : weight + boundOf(message.providerData)
}

/** The most memory of all threads of a store, by {@link weightOf}. */
const capacity = 64 * 1024 * 1024

interface RecentThread {
  /** Tells a thread from a later one of the same id. */
  readonly createdAt: number
  leaf: string | null
  readonly sum: Sum
  weight: number
}

/** The threads that were used last. */
export interface Recent {
  /** The sum of a thread at its leaf; `undefined` if unknown. */
  readonly get: (thread: Thread) => Sum | undefined
  /** Remembers a thread. `weight` is the weight of its messages. */
  readonly put: (thread: Thread, sum: Sum, weight: number) => void
  /** The value of a slot at the leaf, or before the last parts; `null` for an empty slot, `undefined` if unknown. */
  readonly slot: (threadId: string, at: string | null, name: string) => Json | undefined
  readonly drop: (threadId: string) => void
  /** Adds appended entries. */
  readonly extend: (threadId: string, behind: string | null, entries: ReadonlyArray<NewEntry>, leaf: Leaf) => void
}

const make = (): Recent => {
  const threads = new Map<string, RecentThread>()
  let total = 0

  const drop = (threadId: string): void => {
    total -= threads.get(threadId)?.weight ?? 0
    threads.delete(threadId)
  }

  const keep = (threadId: string, thread: RecentThread): void => {
    drop(threadId)
    threads.set(threadId, thread)
    total += thread.weight
    for (const oldest of threads.keys()) {
      if (total <= capacity) break
      drop(oldest)
    }
  }

  return {
    drop,
    slot: (threadId, at, name) => {
      const thread = threads.get(threadId)
      if (thread === undefined || (thread.leaf !== at && thread.sum.base.id !== at)) return undefined
      return thread.sum.state.get(name) ?? null
    },
    get: ({ createdAt, leaf, threadId }) => {
      const thread = threads.get(threadId)
      return thread?.leaf === leaf.id && thread.createdAt === createdAt ? thread.sum : undefined
    },
    put: ({ createdAt, leaf, threadId }, sum, messages) => {
      let weight = 512 + messages
      for (const value of sum.state.values()) weight += boundOf(value)
      keep(threadId, { createdAt, leaf: leaf.id, sum, weight })
    },
    extend: (threadId, behind, entries, leaf) => {
      const thread = threads.get(threadId)
      if (thread === undefined) return
      if (thread.leaf !== behind) {
        // An append behind another entry invalidates the sum, unless it replaces parts only.
        if (thread.sum.base.id !== behind) return drop(threadId)
        withoutParts(thread.sum)
      }
      thread.leaf = leaf.id
      let more = 0
      for (const { entry, id } of entries) {
        const before = entry._tag === "State" ? thread.sum.state.get(entry.slot) : undefined
        more += weightOf(entry) - (before === undefined ? 0 : boundOf(before))
        add(thread.sum, id, entry)
      }
      thread.weight += more
      total += more
      keep(threadId, thread)
    }
  }
}

const stores = new WeakMap<Service, Recent>()

/** Builds a store with a memory of its threads. */
export const remembering = (build: (recent: Recent) => Service): Service => {
  const recent = make()
  const store = build(recent)
  stores.set(store, recent)
  return store
}

/** The memory of a store, if it has one. */
export const recentOf = (store: Service): Recent | undefined => stores.get(store)
