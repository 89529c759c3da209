/**
 * The store of threads: conversations that outlive the process. Each is a tree of entries that only grows, with a leaf
 * that can be moved.
 *
 * Layers and helpers are in `effect-deepagents/sessions`.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { Request } from "./Approval.ts"
import type * as Journal from "./Journal.ts"
import type { JsonObject } from "./Json.ts"
import type { SessionError } from "./SessionError.ts"

/** Gives an entry (`target`) a name, or takes the name away (`null`). */
export interface Label {
  readonly _tag: "Label"
  readonly name: string
  readonly target: string | null
}

/** An entry of a thread: written by a run, or added by a store. */
export type Entry = Journal.Entry | Label

/** An entry in its place. `at` is milliseconds since the epoch; `parentId` is `null` for a first one. */
export interface StoredEntry {
  readonly id: string
  readonly parentId: string | null
  readonly at: number
  readonly entry: Entry
}

/** An entry to append. Its id is made by who appends, so that appending again changes nothing. */
export interface NewEntry {
  readonly id: string
  readonly entry: Journal.Entry
}

/** The state of a thread. `step` is the number of entries from the first to the leaf. */
export interface Leaf {
  readonly id: string | null
  readonly step: number
}

/**
 * The facts about a thread without its entries. Times are milliseconds since the epoch. `origin` is the thread that it
 * was forked from; it may be deleted.
 */
export interface Thread {
  readonly threadId: string
  readonly leaf: Leaf
  readonly createdAt: number
  readonly updatedAt: number
  readonly metadata: JsonObject
  readonly archived: boolean
  readonly origin: { readonly threadId: string; readonly entryId: string | null } | undefined
}

/**
 * Part of a path, oldest entry first. `next` is the `from` of the next `load`; `null` at the beginning of the thread.
 */
export interface Page {
  readonly entries: ReadonlyArray<StoredEntry>
  readonly next: string | null
}

/** Part of a list. `next` goes on with it. */
export interface Listing<out A> {
  readonly items: ReadonlyArray<A>
  readonly next: string | null
}

/** A message that was found. `excerpt` is the text around the first word that was looked for. */
export interface Hit {
  readonly threadId: string
  readonly entryId: string
  readonly at: number
  readonly role: "system" | "human" | "ai" | "tool"
  readonly excerpt: string
}

/** A request that a thread waits for. */
export interface WaitingRequest {
  readonly threadId: string
  readonly request: Request
}

interface Query {
  /** Looks at archived threads instead of the others. Default: `false`. */
  readonly archived?: boolean | undefined
  /** The most items of a page, up to 1,000. Default: 50 threads, or 20 messages. */
  readonly limit?: number | undefined
  /** The `next` of the page before. Default: the first page. */
  readonly cursor?: string | undefined
}

/** See {@link SessionStore}. */
export interface Service {
  /**
   * Makes a thread; without an id, of a random one. Fails with `AlreadyExists`, `InvalidId`, `InvalidEntry` (metadata).
   */
  readonly create: (options?: {
    /** The id of the new thread. Default: a random one. */
    readonly threadId?: string | undefined
    /** JSON about the thread, by which lists find it. Default: none. */
    readonly metadata?: JsonObject | undefined
  }) => Effect.Effect<Thread, SessionError>

  /** Reads the facts about a thread. */
  readonly info: (threadId: string) => Effect.Effect<Thread, SessionError>

  /** Gives the state of a thread. */
  readonly leaf: (threadId: string) => Effect.Effect<Leaf, SessionError>

  /** Replaces the metadata of a thread. */
  readonly describe: (threadId: string, metadata: JsonObject) => Effect.Effect<Thread, SessionError>

  /**
   * Appends entries behind `leaf`, all or none, and makes the last one the leaf. Fails with `Conflict` if the leaf is
   * another, unless these very entries are there already: then it succeeds, and nothing changes. With `behind`, they go
   * behind that entry instead (`null`: the beginning), as after a {@link rewind} to it, but at once.
   */
  readonly append: (
    threadId: string,
    batch: {
      readonly leaf: string | null
      readonly behind?: string | null | undefined
      readonly entries: ReadonlyArray<NewEntry>
    }
  ) => Effect.Effect<Leaf, SessionError>

  /**
   * The path to an entry (`from`, default: the leaf), at most `limit` entries of it (default 1,000; at most 10,000).
   * Goes backwards: `next` of a page is `from` of the one before it.
   */
  readonly load: (
    threadId: string,
    options?: {
      /** The last entry of the page. Default: the leaf. */
      readonly from?: string | undefined
      /** The most entries of the page, up to 10,000. Default: 1,000. */
      readonly limit?: number | undefined
    }
  ) => Effect.Effect<Page, SessionError>

  /**
   * Forks a thread: makes a new thread from the entries up to `at` (default: the leaf; `null`: none). It costs the same
   * at any length, and the threads continue separately. `at` must be the end of a turn (`InvalidPoint`). Metadata is
   * copied unless it is given.
   */
  readonly fork: (
    threadId: string,
    options?: {
      /** The end of the last turn that the fork has; `null` for none. Default: the leaf. */
      readonly at?: string | null | undefined
      /** The id of the fork. Default: a random one. */
      readonly threadId?: string | undefined
      /** JSON about the fork. Default: a copy of the thread's. */
      readonly metadata?: JsonObject | undefined
    }
  ) => Effect.Effect<Thread, SessionError>

  /**
   * Moves the leaf to the end of any turn (`InvalidPoint`); `null` is the beginning. Later entries stay as a branch; a
   * run that still writes fails with `Conflict`.
   */
  readonly rewind: (threadId: string, to: string | null) => Effect.Effect<Leaf, SessionError>

  /** Names an entry. A name is one entry's: it moves with the next call, and is taken away with `null`. */
  readonly label: (threadId: string, name: string, entryId: string | null) => Effect.Effect<void, SessionError>

  /** The names that were given, and their entries. */
  readonly labels: (threadId: string) => Effect.Effect<ReadonlyMap<string, string>, SessionError>

  /**
   * Lists threads, the last changed first. `where` is metadata that a thread must have, equal as JSON. `limit` is 50 by
   * default, at most 1,000.
   */
  readonly list: (
    options?: Query & {
      /** Metadata that a thread must have, equal as JSON. Default: any. */
      readonly where?: JsonObject | undefined
    }
  ) => Effect.Effect<Listing<Thread>, SessionError>

  /**
   * Messages that have all words of a text, each as it is or as a beginning, in any case; the newest first, those on
   * branches that were left included. `limit` is 20 by default, and at most 1,000.
   */
  readonly search: (
    text: string,
    options?: Query & {
      /** The thread to search. Default: all. */
      readonly threadId?: string | undefined
      /** Metadata that a thread must have, equal as JSON. Default: any. */
      readonly where?: JsonObject | undefined
    }
  ) => Effect.Effect<Listing<Hit>, SessionError>

  /**
   * Lists pending requests of threads, the oldest first. Requests that time decides on and archived threads are left
   * out. `limit` is 50 by default, at most 1,000. It reads no thread.
   */
  readonly waiting: (options?: {
    /** The thread whose requests are listed. Default: all. */
    readonly threadId?: string | undefined
    /** The most requests of a page, up to 1,000. Default: 50. */
    readonly limit?: number | undefined
    /** The `next` of the page before. Default: the first page. */
    readonly cursor?: string | undefined
  }) => Effect.Effect<Listing<WaitingRequest>, SessionError>

  /** The request of an id, while a thread waits for it. Of two threads, the first by its id. */
  readonly waitingFor: (requestId: string) => Effect.Effect<WaitingRequest | undefined, SessionError>

  /** Takes a thread out of lists and searches, and has it refuse entries (`Archived`) until it is unarchived. */
  readonly archive: (threadId: string) => Effect.Effect<void, SessionError>
  readonly unarchive: (threadId: string) => Effect.Effect<void, SessionError>

  /** Deletes a thread for good. Its forks keep the entries that they share with it. */
  readonly delete: (threadId: string) => Effect.Effect<void, SessionError>

  /** A thread as JSON lines, all of its branches and labels included: a head, and an entry a line. */
  readonly export: (threadId: string) => Stream.Stream<string, SessionError>

  /** Makes a thread of exported lines, all or nothing, with the id that it had or another one. */
  readonly import: <E, R>(
    lines: Stream.Stream<string, E, R>,
    options?: {
      /** The id of the new thread. Default: the one in the lines. */
      readonly threadId?: string | undefined
    }
  ) => Effect.Effect<Thread, SessionError | E, R>
}

/**
 * The store of threads. Ids of threads are any text of 1 to 512 characters without control characters; two different
 * texts are two threads, everywhere.
 */
export class SessionStore extends Context.Service<SessionStore, Service>()("effect-deepagents/SessionStore") {}
