/** Reads and changes the rows of threads. */
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Row } from "effect/sql/SqlConnection"
import type { JsonObject } from "../../../core/Json.ts"
import { canonical } from "../../../core/schema/jsonTree.ts"
import { toJson } from "../codec.ts"
import { key } from "../ids.ts"
import type { Fault, NewThread, Tables } from "../tables.ts"
import { first, insertAll, orCorrupt, rows, transaction } from "./client.ts"
import type { Entries } from "./entries.ts"
import type { Search } from "./hits.ts"
import { nullable, number, threadColumns, toThread } from "./rows.ts"
import type { WaitsIndex } from "./waits.ts"

/** A database, and the parts that store threads in it. */
export interface Database {
  readonly sql: SqlClient
  readonly isPostgres: boolean
  readonly entries: Entries
  readonly search: Pick<Search, "await" | "forget">
  readonly waits: WaitsIndex
}

/** The lock of a row. SQLite has one writer at a time anyway. */
const forUpdate = ({ isPostgres, sql }: Database) => sql.literal(isPostgres ? "FOR UPDATE" : "")

/** Finds a thread that nobody else changes until the transaction ends. */
export const lockThread = (database: Database, threadId: string): Effect.Effect<Row | undefined, Fault> =>
  first(database.sql`SELECT * FROM session_threads WHERE id = ${key(threadId)} ${forUpdate(database)}`)

export const findThread =
  (sql: SqlClient): Tables["find"] =>
  (threadId) =>
    Effect.flatMap(
      first(sql`SELECT ${sql.literal(threadColumns)} FROM session_threads WHERE id = ${key(threadId)}`),
      (row) => (row === undefined ? Effect.undefined : Effect.map(orCorrupt([toThread(row)]), ([thread]) => thread))
    )

/** Stores metadata by name, for lists. Names are JSON, because any text can be a name. */
const describeThread = (sql: SqlClient, thread: number, metadata: JsonObject): Effect.Effect<void, Fault> =>
  insertAll(
    sql,
    "session_metadata",
    Object.entries(metadata).map(([name, value]) => ({ thread, name: JSON.stringify(name), value: canonical(value) }))
  )

/** Inserts a thread with its metadata, and gives its key. `undefined`: the id is in use. */
export const insertThread = Effect.fnUntraced(function* (
  { isPostgres, sql }: Database,
  { at, metadata, threadId }: NewThread,
  updatedAt: number,
  others: Record<string, string | number | null>
): Effect.fn.Return<number | undefined, Fault> {
  const values = {
    id: threadId,
    created_at: at,
    updated_at: updatedAt,
    metadata: toJson(metadata),
    ...(isPostgres ? {} : { listed: updatedAt }),
    ...others
  }
  const row = yield* first(
    sql`INSERT INTO session_threads ${sql.insert(values)} ON CONFLICT (id) DO NOTHING RETURNING key`
  )
  if (row === undefined) return undefined
  const thread = number(row, "key")
  yield* describeThread(sql, thread, metadata)
  return thread
})

/** The times that every change of a thread sets. */
export const timesAt = ({ isPostgres, sql }: Database, at: number) =>
  isPostgres ? sql`updated_at = ${at}` : sql`updated_at = ${at}, listed = ${at}`

/** The place of an entry. */
export interface Place {
  readonly id: string
  readonly pk: number
  readonly step: number
}

export const setLeaf = (database: Database, thread: number, leaf: Place | undefined, at: number) =>
  rows(database.sql`UPDATE session_threads SET leaf_pk = ${leaf?.pk ?? null}, leaf_id = ${leaf?.id ?? null},
    step = ${leaf?.step ?? 0}, ${timesAt(database, at)} WHERE key = ${thread}`)

/** Moves the leaf of a thread. */
export const moveThread =
  (database: Database): Tables["move"] =>
  (threadId, from, to, at, requests) =>
    transaction(database.sql)(
      Effect.gen(function* () {
        const row = yield* lockThread(database, threadId)
        if (row === undefined || number(row, "archived") === 1 || nullable(row, "leaf_id") !== from) return false
        const entry = to === null ? undefined : yield* database.entries.visible(threadId, to)
        if (to !== null && entry === undefined) return false
        const thread = number(row, "key")
        yield* setLeaf(database, thread, entry, at)
        yield* database.waits.set(thread, threadId, 0, requests)
        return true
      })
    )

/** Changes the metadata of a thread, or archives it. */
export const updateThread =
  (database: Database): Tables["update"] =>
  (threadId, change, at) =>
    transaction(database.sql)(
      Effect.gen(function* () {
        const { sql } = database
        const column =
          "archived" in change ? sql`archived = ${change.archived ? 1 : 0}` : sql`metadata = ${toJson(change.metadata)}`
        const row = yield* first(sql`UPDATE session_threads SET ${column}, ${timesAt(database, at)}
          WHERE id = ${key(threadId)} RETURNING key`)
        if (row === undefined) return false
        const thread = number(row, "key")
        if ("archived" in change) {
          yield* database.waits.archive(thread, change.archived)
          return true
        }
        yield* rows(sql`DELETE FROM session_metadata WHERE thread = ${thread}`)
        yield* describeThread(sql, thread, change.metadata)
        return true
      })
    )

const hasForks = (sql: SqlClient, thread: number): Effect.Effect<boolean, Fault> =>
  Effect.map(
    first(sql`SELECT 1 AS there FROM session_threads WHERE origin = ${thread} LIMIT 1`),
    (row) => row !== undefined
  )

/** Deletes a thread without forks. Also deletes its removed origin if this was the last fork of it. */
const dropThread = Effect.fnUntraced(function* (database: Database, thread: number): Effect.fn.Return<void, Fault> {
  const { entries, isPostgres, search, sql, waits } = database
  yield* search.forget(thread)
  yield* waits.clear(thread)
  yield* rows(sql`DELETE FROM session_entries AS e WHERE ${entries.inThread(thread)}`)
  if (!isPostgres) yield* rows(sql`DELETE FROM session_ids WHERE thread = ${thread}`)
  yield* rows(sql`DELETE FROM session_metadata WHERE thread = ${thread}`)
  const row = yield* first(sql`DELETE FROM session_threads WHERE key = ${thread} RETURNING origin`)
  if (row === undefined || nullable(row, "origin") === null) return
  const origin = number(row, "origin")
  // Processes that drop the last forks of one origin at the same moment wait here for each other.
  const hidden = yield* first(
    sql`SELECT key FROM session_threads WHERE key = ${origin} AND id IS NULL ${forUpdate(database)}`
  )
  if (hidden !== undefined && !(yield* hasForks(sql, origin))) yield* dropThread(database, origin)
})

/** Removes a thread. Its entries stay as long as forks of it exist. */
export const removeThread =
  (database: Database): Tables["remove"] =>
  (threadId) =>
    transaction(database.sql)(
      Effect.gen(function* () {
        const { search, sql, waits } = database
        const row = yield* lockThread(database, threadId)
        if (row === undefined) return false
        const thread = number(row, "key")
        if (!(yield* hasForks(sql, thread))) {
          yield* dropThread(database, thread)
          return true
        }
        yield* search.forget(thread)
        yield* waits.clear(thread)
        yield* rows(sql`DELETE FROM session_metadata WHERE thread = ${thread}`)
        yield* rows(sql`UPDATE session_threads SET id = NULL, metadata = '{}' WHERE key = ${thread}`)
        return true
      })
    )
