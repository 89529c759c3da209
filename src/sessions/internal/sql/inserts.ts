/** Inserts threads, forks and labels. */
import * as Effect from "effect/Effect"
import type { Label, StoredEntry } from "../../../core/SessionStore.ts"
import { encode } from "../codec.ts"
import type { Fault, Tables } from "../tables.ts"
import { waitsIn } from "../waits.ts"
import type { Outcome } from "./append.ts"
import { first, insertAll, rows, transaction } from "./client.ts"
import { kindColumn } from "./entries.ts"
import { topOf } from "./names.ts"
import { nullable, number, text } from "./rows.ts"
import { room } from "./sqlite.ts"
import { type Database, insertThread, lockThread, type Place, setLeaf, timesAt } from "./threads.ts"

/** The number of the last entry of a thread; 0 for an empty one. */
const lastOf = ({ entries, sql }: Database, thread: number): Effect.Effect<number, Fault> =>
  Effect.map(first(sql`SELECT max(e.pk) AS pk FROM session_entries e WHERE ${entries.inThread(thread)}`), (row) =>
    row === undefined || nullable(row, "pk") === null ? 0 : number(row, "pk")
  )

/** Reserves numbers for new entries of a thread, in their order. */
const reserveNumbers = (
  database: Database,
  thread: number,
  count: number
): Effect.Effect<ReadonlyArray<number>, Fault> =>
  database.isPostgres
    ? Effect.map(
        rows(database.sql`SELECT nextval('session_entries_pk_seq') AS pk FROM generate_series(1, ${count}) ORDER BY 1`),
        (list) => list.map((row) => number(row, "pk"))
      )
    : Effect.map(lastOf(database, thread), (last) =>
        Array.from({ length: count }, (_, index) => Math.max(last, thread * room) + 1 + index)
      )

/** Inserts entries. Parents come first, or are among the known places, which get the new ones. */
const insertEntries = Effect.fnUntraced(function* (
  database: Database,
  thread: number,
  entries: ReadonlyArray<StoredEntry>,
  places: Map<string, Place>
): Effect.fn.Return<void, Fault> {
  const { isPostgres, sql } = database
  const kind = kindColumn(sql)
  const numbers = yield* reserveNumbers(database, thread, entries.length)
  const added = entries.map(({ at, entry, id, parentId }, index) => {
    const parent = places.get(parentId ?? "")
    const place = { id, pk: numbers[index] ?? 0, step: (parent?.step ?? 0) + 1 }
    places.set(id, place)
    return { ...place, thread, parent: parent?.pk ?? null, at, [kind]: entry._tag, body: encode(entry) }
  })
  yield* insertAll(sql, "session_entries", added)
  const top = topOf("", entries)
  if (isPostgres || top === "") return
  yield* rows(sql`UPDATE session_threads SET top = max(top, ${top}) WHERE key = ${thread}`)
})

/** Inserts a thread with its content. */
export const insertContent =
  (database: Database): Tables["insert"] =>
  (created, content) =>
    transaction(database.sql)(
      Effect.gen(function* () {
        const { archived, entries, leaf, past } = content
        const updatedAt = past?.updatedAt ?? created.at
        const thread = yield* insertThread(database, { ...created, at: past?.createdAt ?? created.at }, updatedAt, {
          archived: archived ? 1 : 0,
          step: 0,
          origin_thread: past?.origin?.threadId ?? null,
          origin_entry: past?.origin?.entryId ?? null
        })
        if (thread === undefined) return false
        if (entries.length === 0) return true
        const places = new Map<string, Place>()
        yield* insertEntries(database, thread, entries, places)
        yield* database.search.await(thread)
        yield* setLeaf(database, thread, places.get(leaf ?? ""), updatedAt)
        yield* database.waits.set(thread, created.threadId, archived ? 1 : 0, yield* waitsIn(content))
        return true
      })
    )

export const forkThread =
  (database: Database): Tables["fork"] =>
  (source, entryId, created, requests) =>
    transaction(database.sql)(
      Effect.gen(function* () {
        const row = yield* lockThread(database, source)
        if (row === undefined) return "Gone"
        const entry = entryId === null ? undefined : yield* database.entries.visible(source, entryId)
        if (entryId !== null && entry === undefined) return "Gone"
        const origin = number(row, "key")
        const thread = yield* insertThread(database, created, created.at, {
          archived: 0,
          leaf_pk: entry?.pk ?? null,
          leaf_id: entryId,
          step: entry?.step ?? 0,
          origin,
          origin_last: yield* lastOf(database, origin),
          ...(database.isPostgres ? {} : { top: text(row, "top") }),
          origin_thread: source,
          origin_entry: entryId
        })
        if (thread === undefined) return "Exists"
        yield* database.waits.set(thread, created.threadId, 0, requests)
        return "Done"
      })
    )

/** Inserts a label beside the path to the leaf. */
export const insertLabel = (
  database: Database,
  threadId: string,
  id: string,
  label: Label,
  at: number
): Effect.Effect<Outcome, Fault> =>
  transaction(database.sql)(
    Effect.gen(function* (): Effect.fn.Return<Outcome, Fault> {
      const { entries, sql } = database
      const row = yield* lockThread(database, threadId)
      if (row === undefined || number(row, "archived") === 1) return { taken: undefined }
      if ((yield* entries.visible(threadId, id)) !== undefined) return { taken: id }
      const thread = number(row, "key")
      const target = label.target === null ? undefined : yield* entries.visible(threadId, label.target)
      const places = new Map(target === undefined ? [] : [[target.id, target]])
      yield* insertEntries(database, thread, [{ id, parentId: label.target, at, entry: label }], places)
      yield* rows(sql`UPDATE session_threads SET ${timesAt(database, at)} WHERE key = ${thread}`)
      return (target?.step ?? 0) + 1
    })
  )
