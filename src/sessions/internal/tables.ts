/** The operations that each place to store threads implements. */
import type * as Effect from "effect/Effect"
import type { Request } from "../../core/Approval.ts"
import type { JsonObject } from "../../core/Json.ts"
import type { SessionError } from "../../core/SessionError.ts"
import type { Hit, Label, NewEntry, StoredEntry, Thread, WaitingRequest } from "../../core/SessionStore.ts"
import type { Phrases } from "./words.ts"

/** The reason why a table can't be read or written. */
export interface Fault {
  readonly reason: Extract<SessionError["reason"], { readonly _tag: "Corrupt" | "Moved" | "Unavailable" }>
  readonly cause?: unknown
}

/** A thread to create. */
export interface NewThread {
  readonly threadId: string
  readonly at: number
  readonly metadata: JsonObject
}

/** Open requests, each by an id of its own. */
export type Waits = ReadonlyArray<Request>

/** The facts about a thread that was written in another store. */
export interface Past {
  readonly createdAt: number
  readonly updatedAt: number
  readonly origin?: Thread["origin"]
}

/**
 * The content of a thread to create. Parents come first; `leaf` is the id of an entry. Without a `past`, the thread is
 * created now.
 */
export interface Content {
  readonly entries: ReadonlyArray<StoredEntry>
  readonly leaf: string | null
  readonly archived: boolean
  readonly past?: Past | undefined
}

/** The id of a stored thread. A thread that can't be read has a `problem`, and may have no id but its file's name. */
export interface ThreadName {
  readonly threadId: string
  readonly problem?: string | undefined
}

/**
 * The outcome of an append. `Refused` has the thread as it is, `undefined` if it is gone; `taken` is an id that another
 * entry has.
 */
export type AppendOutcome =
  | { readonly _tag: "Done"; readonly step: number }
  | { readonly _tag: "Refused"; readonly thread: Thread | undefined; readonly taken?: string | undefined }

/** The thread behind which the next page of a list begins. */
export interface ListCursor {
  readonly at: number
  readonly threadId: string
}

/** The entry behind which the next page of a search begins. */
export interface HitCursor extends ListCursor {
  readonly entryId: string
}

interface Range<Cursor> {
  readonly archived: boolean
  readonly limit: number
  readonly after: Cursor | undefined
}

/** A page of the list of threads. */
export type ListQuery = Range<ListCursor> & { readonly where: JsonObject }

/** The request before the next page of waiting requests. */
export interface WaitCursor extends ListCursor {
  readonly requestId: string
}

/** A page of waiting requests. */
export interface WaitQuery {
  readonly limit: number
  readonly after: WaitCursor | undefined
  readonly threadId: string | undefined
}

/** A page of the messages that have all phrases. */
export type SearchQuery = Range<HitCursor> & {
  readonly phrases: Phrases
  readonly threadId: string | undefined
  readonly where: JsonObject
}

/**
 * The operations of one place to store threads; `store.ts` adds the rest. Each is atomic. An entry is visible in the
 * thread that it was appended to, and in later forks of it.
 */
export interface Tables {
  /** Creates a thread. `false`: the id is in use. */
  readonly insert: (thread: NewThread, content: Content) => Effect.Effect<boolean, Fault>
  /** The new thread sees all that the source sees, and waits for `waits`. */
  readonly fork: (
    source: string,
    at: string | null,
    thread: NewThread,
    waits: Waits
  ) => Effect.Effect<"Done" | "Exists" | "Gone", Fault>
  /**
   * Appends entries behind `behind`, which is visible or `null` and usually the leaf. The last one becomes the leaf.
   * Refuses another leaf, an archived thread, or a known id. `bytes` is an estimate. `waits` are the new open requests
   * (`undefined`: unchanged).
   */
  readonly append: (
    threadId: string,
    leaf: string | null,
    entries: ReadonlyArray<NewEntry>,
    at: number,
    behind: string | null,
    bytes: number,
    waits: Waits | undefined
  ) => Effect.Effect<AppendOutcome, Fault>
  /** Adds a label beside the path to the leaf. */
  readonly addLabel: (threadId: string, id: string, label: Label, at: number) => Effect.Effect<AppendOutcome, Fault>
  /** `false`: the leaf is another one, or the thread is archived or gone. `to` is visible, and waits for `waits`. */
  readonly move: (
    threadId: string,
    from: string | null,
    to: string | null,
    at: number,
    waits: Waits
  ) => Effect.Effect<boolean, Fault>
  /** `false`: it is gone. */
  readonly update: (
    threadId: string,
    change: { readonly metadata: JsonObject } | { readonly archived: boolean },
    at: number
  ) => Effect.Effect<boolean, Fault>
  readonly remove: (threadId: string) => Effect.Effect<boolean, Fault>
  readonly find: (threadId: string) => Effect.Effect<Thread | undefined, Fault>
  /** A visible entry, and how many there are from the first to it. */
  readonly entry: (
    threadId: string,
    id: string
  ) => Effect.Effect<(StoredEntry & { readonly step: number }) | undefined, Fault>
  /** At most `limit` entries from a visible one backwards, it included. */
  readonly path: (threadId: string, from: string, limit: number) => Effect.Effect<ReadonlyArray<StoredEntry>, Fault>
  /** All visible labels, in the order in which they came. */
  readonly labels: (threadId: string) => Effect.Effect<ReadonlyArray<Label>, Fault>
  /** Visible entries behind a cursor (first: 0), parents first. */
  readonly entries: (
    threadId: string,
    cursor: number,
    limit: number
  ) => Effect.Effect<{ readonly entries: ReadonlyArray<StoredEntry>; readonly next: number | undefined }, Fault>
  readonly list: (query: ListQuery) => Effect.Effect<ReadonlyArray<Thread>, Fault>
  readonly search: (query: SearchQuery) => Effect.Effect<ReadonlyArray<Hit>, Fault>
  /** Open requests by time, then by id, then by the id of their thread, without archived threads. */
  readonly waiting: (query: WaitQuery) => Effect.Effect<ReadonlyArray<WaitingRequest>, Fault>
  /** The threads that wait for a request, the first of them by its id. */
  readonly waitingFor: (requestId: string) => Effect.Effect<WaitingRequest | undefined, Fault>
  /** All threads, with archived and unreadable ones. */
  readonly names: Effect.Effect<ReadonlyArray<ThreadName>, Fault>
  /** The place that the threads were moved to; `undefined` if the store takes changes. */
  readonly moved: Effect.Effect<string | undefined, Fault>
  /**
   * Refuses every later change with `Moved`. Earlier changes are stored when it returns. Gives the place of the mark;
   * an earlier mark stays.
   */
  readonly close: (to: string) => Effect.Effect<string, Fault>
  /** Takes changes again. */
  readonly reopen: Effect.Effect<void, Fault>
}
