/** A thread in memory, and its changes. */
import * as Effect from "effect/Effect"
import { type JsonObject } from "../../../core/Json.ts"
import type { Entry, Hit, Label, NewEntry, StoredEntry, Thread } from "../../../core/SessionStore.ts"
import type { AppendOutcome, Content, NewThread, SearchQuery } from "../tables.ts"
import { excerpt, makePace, matches, searchable } from "../words.ts"
import { hasMetadata, isHitBehind } from "./order.ts"

/** An entry in memory. */
interface Node extends StoredEntry {
  readonly step: number
  /** The number of entries that were appended to its thread before it. */
  readonly index: number
  readonly parent: Node | undefined
}

/**
 * A thread in memory. `own` are its appended entries, in order. It also sees the first `count` entries of its `origin`,
 * and all that the origin sees of others.
 */
export interface Memory {
  readonly threadId: string
  readonly createdAt: number
  updatedAt: number
  metadata: JsonObject
  archived: boolean
  leaf: Node | undefined
  readonly own: Map<string, Node>
  readonly list: Array<Node>
  readonly origin: { readonly memory: Memory; readonly count: number; readonly entryId: string | null } | undefined
  /** The origin in the store that it was copied from. A copied thread has all entries itself. */
  readonly formerOrigin: Thread["origin"]
}

export const info = (memory: Memory): Thread => ({
  threadId: memory.threadId,
  leaf: { id: memory.leaf?.id ?? null, step: memory.leaf?.step ?? 0 },
  createdAt: memory.createdAt,
  updatedAt: memory.updatedAt,
  metadata: memory.metadata,
  archived: memory.archived,
  origin:
    memory.origin === undefined
      ? memory.formerOrigin
      : { threadId: memory.origin.memory.threadId, entryId: memory.origin.entryId }
})

const place = (memory: Memory, id: string, parent: Node | undefined, at: number, entry: Entry): Node => {
  const node = {
    id,
    parentId: parent?.id ?? null,
    at,
    entry,
    step: (parent?.step ?? 0) + 1,
    index: memory.list.length,
    parent
  }
  memory.own.set(id, node)
  memory.list.push(node)
  return node
}

const fresh = ({ at, metadata, threadId }: NewThread, origin: Memory["origin"], past?: Content["past"]): Memory => ({
  threadId,
  createdAt: past?.createdAt ?? at,
  updatedAt: past?.updatedAt ?? at,
  metadata,
  archived: false,
  leaf: undefined,
  own: new Map(),
  list: [],
  origin,
  formerOrigin: past?.origin
})

/** Finds a reference of a thread's content that leads nowhere. */
export const problemOf = ({ entries, leaf }: Content): string | undefined => {
  const ids = new Set<string>()
  for (const { id, parentId } of entries) {
    if (ids.has(id)) return `entry ${id} is there twice`
    if (parentId !== null && !ids.has(parentId)) return `entry ${id}: its parent ${parentId} is not before it`
    ids.add(id)
  }
  return leaf === null || ids.has(leaf) ? undefined : `its leaf ${leaf} is none of its entries`
}

/** Makes a new, imported or copied thread. Entries come parents first. */
export const create = (thread: NewThread, content: Content): Memory => {
  const memory = fresh(thread, undefined, content.past)
  memory.archived = content.archived
  for (const entry of content.entries) {
    place(memory, entry.id, memory.own.get(entry.parentId ?? ""), entry.at, entry.entry)
  }
  memory.leaf = memory.own.get(content.leaf ?? "")
  return memory
}

/** Makes a thread that sees the present entries of another. */
export const fork = (source: Memory, count: number, entryId: string | null, thread: NewThread): Memory => {
  const memory = fresh(thread, { memory: source, count, entryId })
  memory.leaf = find(memory, entryId ?? "")
  return memory
}

/** A visible entry. */
export const find = (memory: Memory, id: string): Node | undefined => {
  let node = memory.own.get(id)
  for (let at = memory; node === undefined && at.origin !== undefined; at = at.origin.memory) {
    const inherited = at.origin.memory.own.get(id)
    // Entries that came after the fork are not part of it.
    if (inherited !== undefined && inherited.index < at.origin.count) node = inherited
  }
  return node
}

/** The reason why an append would be refused; `undefined` if it would not. */
export const refusal = (
  memory: Memory,
  leaf: string | null,
  entries: ReadonlyArray<NewEntry>
): AppendOutcome | undefined => {
  if (memory.archived || (memory.leaf?.id ?? null) !== leaf) return { _tag: "Refused", thread: info(memory) }
  const clash = entries.find((entry) => find(memory, entry.id) !== undefined)
  return clash === undefined ? undefined : { _tag: "Refused", thread: info(memory), taken: clash.id }
}

/** Appends behind an entry, mostly the leaf. */
export const append = (
  memory: Memory,
  leaf: string | null,
  entries: ReadonlyArray<NewEntry>,
  at: number,
  behind: string | null
): AppendOutcome => {
  const refused = refusal(memory, leaf, entries)
  if (refused !== undefined) return refused
  let node = behind === leaf ? memory.leaf : find(memory, behind ?? "")
  for (const { entry, id } of entries) node = place(memory, id, node, at, entry)
  memory.leaf = node
  memory.updatedAt = at
  return { _tag: "Done", step: node?.step ?? 0 }
}

/** Adds a label beside the path to the leaf. */
export const addLabel = (memory: Memory, id: string, label: Label, at: number): AppendOutcome => {
  if (memory.archived) return { _tag: "Refused", thread: info(memory) }
  if (find(memory, id) !== undefined) return { _tag: "Refused", thread: info(memory), taken: id }
  const { step } = place(memory, id, find(memory, label.target ?? ""), at, label)
  memory.updatedAt = at
  return { _tag: "Done", step }
}

/** Moves the leaf to a visible entry. */
export const move = (memory: Memory, from: string | null, to: string | null, at: number): boolean => {
  if (memory.archived || (memory.leaf?.id ?? null) !== from) return false
  memory.leaf = to === null ? undefined : find(memory, to)
  memory.updatedAt = at
  return true
}

export const update = (
  memory: Memory,
  change: { readonly metadata: JsonObject } | { readonly archived: boolean },
  at: number
): void => {
  if ("metadata" in change) memory.metadata = change.metadata
  else memory.archived = change.archived
  memory.updatedAt = at
}

const bare = ({ at, entry, id, parentId }: Node): StoredEntry => ({ id, parentId, at, entry })

/** The path to an entry, backwards. */
export const path = (memory: Memory, from: string, limit: number): ReadonlyArray<StoredEntry> => {
  const entries: Array<StoredEntry> = []
  for (let node = find(memory, from); node !== undefined && entries.length < limit; node = node.parent) {
    entries.push(bare(node))
  }
  return entries
}

/** All visible entries, in the order of their appends. */
const visible = (memory: Memory): ReadonlyArray<StoredEntry> => {
  const parts: Array<ReadonlyArray<Node>> = [memory.list]
  for (let { origin } = memory; origin !== undefined; origin = origin.memory.origin) {
    parts.push(origin.memory.list.slice(0, origin.count))
  }
  return parts.toReversed().flat().map(bare)
}

export const labels = (memory: Memory): ReadonlyArray<Label> =>
  visible(memory).flatMap(({ entry }) => (entry._tag === "Label" ? [entry] : []))

/** Finds the hits among the entries that were appended to a thread. Other fibers run in between. */
export const hits = Effect.fnUntraced(function* (memory: Memory, query: SearchQuery) {
  const { threadId } = memory
  const list: Array<Hit> = []
  if (memory.archived !== query.archived) return list
  if (query.threadId !== undefined && query.threadId !== threadId) return list
  if (!hasMetadata(memory.metadata, query.where)) return list
  const pace = makePace()
  for (const node of memory.list.slice()) {
    const text = searchable(node)
    if (text === undefined || node.entry._tag !== "Message") continue
    if (!(yield* matches(text, query.phrases, pace))) continue
    const { role } = node.entry.message
    const hit: Hit = {
      threadId,
      entryId: node.id,
      at: node.at,
      role,
      excerpt: yield* excerpt(text, query.phrases, pace)
    }
    if (isHitBehind(hit, query.after)) list.push(hit)
  }
  return list
})

/** A page of the visible entries. */
export const slice = (
  memory: Memory,
  cursor: number,
  limit: number
): { readonly entries: ReadonlyArray<StoredEntry>; readonly next: number | undefined } => {
  const all = visible(memory)
  const end = cursor + limit
  return { entries: all.slice(cursor, end), next: end < all.length ? end : undefined }
}
