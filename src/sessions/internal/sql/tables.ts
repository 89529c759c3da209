/** The tables of threads in a SQL database. */
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import { type JsonObject } from "../../../core/Json.ts"
import { canonical } from "../../../core/schema/jsonTree.ts"
import type { NewEntry, Stored } from "../../../core/SessionStore.ts"
import { isPostgres as isPostgresClient } from "../../../support/store/sql.ts"
import { encode, toJson } from "../codec.ts"
import { key } from "../ids.ts"
import type { Appended, Fault, NewThread, Tables } from "../tables.ts"
import { waitsIn } from "../waits.ts"
import { appendPostgres, appendSqlite, inTransaction, large, type Outcome, ownWay } from "./append.ts"
import { orCorrupt, first, insertAll, rows, transaction } from "./client.ts"
import { kindColumn, makeEntries } from "./entries.ts"
import { makeList } from "./list.ts"
import { makeMark } from "./mark.ts"
import { topOf } from "./names.ts"
import { nullable, number, text, threadColumns, toStored, toThread } from "./rows.ts"
import { searchByReading } from "./searchByReading.ts"
import { searchPostgres } from "./searchPostgres.ts"
import { searchSqlite } from "./searchSqlite.ts"
import { room } from "./sqlite.ts"
import { makeWaits } from "./waits.ts"

/** Tables in a database that has been migrated, which may be a file that can only be read. */
export const make = (sql: SqlClient, isReadOnly = false): Tables => {
  const isPostgres = isPostgresClient(sql)
  const atOnce = transaction(sql)
  const columns = sql.literal(threadColumns)
  // SQLite has one writer at a time anyway.
  const locked = sql.literal(isPostgres ? "FOR UPDATE" : "")
  const entries = makeEntries(sql)
  const { visible, within } = entries
  const own = ownWay(sql)
  const search = isPostgres ? searchPostgres(sql) : searchSqlite(sql, entries, own?.aside)
  const kind = kindColumn(sql)
  const path = entries.pathTo(own?.reads)
  const waits = makeWaits(sql, path)
  const append = isPostgres ? appendPostgres(sql) : appendSqlite(sql, entries, waits)

  const find: Tables["find"] = (threadId) =>
    Effect.flatMap(first(sql`SELECT ${columns} FROM session_threads WHERE id = ${key(threadId)}`), (row) =>
      row === undefined ? Effect.undefined : Effect.map(orCorrupt([toThread(row)]), ([thread]) => thread)
    )

  /** A thread that nobody else changes until the transaction ends. */
  const lock = (threadId: string) => first(sql`SELECT * FROM session_threads WHERE id = ${key(threadId)} ${locked}`)

  const describe = (thread: number, metadata: JsonObject): Effect.Effect<void, Fault> => {
    // Names are JSON too: any text can be one.
    const described = Object.entries(metadata).map(([name, value]) => ({
      thread,
      name: JSON.stringify(name),
      value: canonical(value)
    }))
    return insertAll(sql, "session_metadata", described)
  }

  /** A thread of a new id; `undefined`: there is one. */
  const insertThread = (thread: Record<string, string | number | null>) =>
    Effect.map(
      first(sql`INSERT INTO session_threads ${sql.insert(thread)} ON CONFLICT (id) DO NOTHING RETURNING key`),
      (row) => (row === undefined ? undefined : number(row, "key"))
    )

  /** The last number of a thread's entries; 0 if there are none. */
  const lastOf = (thread: number) =>
    Effect.map(first(sql`SELECT max(e.pk) AS pk FROM session_entries e WHERE ${within(thread)}`), (row) =>
      row === undefined || nullable(row, "pk") === null ? 0 : number(row, "pk")
    )

  /** Numbers for so many new entries of a thread, in the order of time. */
  const numbers = (thread: number, count: number): Effect.Effect<ReadonlyArray<number>, Fault> =>
    isPostgres
      ? Effect.map(
          rows(sql`SELECT nextval('session_entries_pk_seq') AS pk FROM generate_series(1, ${count}) ORDER BY 1`),
          (found) => found.map((row) => number(row, "pk"))
        )
      : Effect.map(lastOf(thread), (last) =>
          Array.from({ length: count }, (_, index) => Math.max(last, thread * room) + 1 + index)
        )

  /** The times that every change of a thread sets. */
  const changed = (at: number) => (isPostgres ? sql`updated_at = ${at}` : sql`updated_at = ${at}, listed = ${at}`)

  const place = (at: number) => (isPostgres ? {} : { listed: at })

  /** A thread got entries of these ids. */
  const named = (thread: number, added: ReadonlyArray<Pick<NewEntry, "id">>) => {
    const top = topOf("", added)
    return isPostgres || top === ""
      ? Effect.void
      : rows(sql`UPDATE session_threads SET top = max(top, ${top}) WHERE key = ${thread}`)
  }

  const setLeaf = (thread: number, leaf: number | null, leafId: string | null, step: number, at: number) =>
    rows(sql`UPDATE session_threads SET leaf_pk = ${leaf}, leaf_id = ${leafId}, step = ${step}, ${changed(at)}
      WHERE key = ${thread}`)

  const refused = (threadId: string, taken?: string): Effect.Effect<Appended, Fault> =>
    Effect.map(find(threadId), (thread) => ({
      _tag: "Refused",
      thread,
      ...(taken === undefined ? {} : { taken })
    }))

  /** The ids that are of entries that the thread sees. */
  const takenOf = Effect.fnUntraced(function* (threadId: string, entries: ReadonlyArray<NewEntry>) {
    for (const { id } of entries) if ((yield* visible(threadId, id)) !== undefined) return id
    return undefined
  })

  const settle = Effect.fnUntraced(function* (
    threadId: string,
    entries: ReadonlyArray<NewEntry>,
    outcome: Outcome
  ): Effect.fn.Return<Appended, Fault> {
    if (typeof outcome === "number") return { _tag: "Done", step: outcome }
    return yield* refused(threadId, outcome.taken ?? (yield* takenOf(threadId, entries)))
  })

  const forksOf = (thread: number) =>
    first(sql`SELECT 1 AS there FROM session_threads WHERE origin = ${thread} LIMIT 1`)

  /** A thread that nothing goes on from; and what it went on from, if that was only kept for it. */
  const drop = (thread: number): Effect.Effect<void, Fault> =>
    Effect.gen(function* () {
      yield* search.forget(thread)
      yield* waits.clear(thread)
      yield* rows(sql`DELETE FROM session_entries AS e WHERE ${within(thread)}`)
      if (!isPostgres) yield* rows(sql`DELETE FROM session_ids WHERE thread = ${thread}`)
      yield* rows(sql`DELETE FROM session_metadata WHERE thread = ${thread}`)
      const row = yield* first(sql`DELETE FROM session_threads WHERE key = ${thread} RETURNING origin`)
      if (row === undefined || nullable(row, "origin") === null) return
      const origin = number(row, "origin")
      // Others may drop the last forks of it at the same moment: they wait here for each other.
      const hidden = yield* first(sql`SELECT key FROM session_threads WHERE key = ${origin} AND id IS NULL ${locked}`)
      if (hidden !== undefined && (yield* forksOf(origin)) === undefined) yield* drop(origin)
    })

  const insert: Tables["insert"] = ({ at, metadata, threadId }, content) =>
    atOnce(
      Effect.gen(function* () {
        const { archived, entries, leaf, past } = content
        const updatedAt = past?.updatedAt ?? at
        const thread = yield* insertThread({
          ...fresh({ threadId, at: past?.createdAt ?? at, metadata }),
          updated_at: updatedAt,
          ...place(updatedAt),
          archived: archived ? 1 : 0,
          step: 0,
          origin_thread: past?.origin?.threadId ?? null,
          origin_entry: past?.origin?.entryId ?? null
        })
        if (thread === undefined) return false
        yield* describe(thread, metadata)
        if (entries.length === 0) return true
        const placed = new Map<string, { readonly pk: number; readonly step: number }>()
        const pks = yield* numbers(thread, entries.length)
        yield* insertAll(
          sql,
          "session_entries",
          entries.map((stored, index) => toRow(kind, thread, stored, pks[index] ?? 0, placed))
        )
        yield* search.await(thread)
        yield* named(thread, entries)
        const last = placed.get(leaf ?? "")
        yield* setLeaf(thread, last?.pk ?? null, last === undefined ? null : leaf, last?.step ?? 0, updatedAt)
        yield* waits.set(thread, threadId, archived ? 1 : 0, yield* waitsIn(content))
        return true
      })
    )

  return {
    ...makeMark(sql),
    find,
    names: Effect.map(rows(sql`SELECT id FROM session_threads WHERE id IS NOT NULL`), (found) =>
      found.map((row) => ({ threadId: text(row, "id") }))
    ),
    list: makeList(sql),
    // The index of words can't be brought up to date there.
    search: isReadOnly ? searchByReading(sql) : search.search,
    path,
    waiting: waits.waiting,
    waitingFor: waits.waitingFor,
    labels: entries.labels,
    entries: entries.page,

    insert: (thread, content) => {
      const general = insert(thread, content)
      const isBlank = content.entries.length === 0 && !content.archived && content.past === undefined
      return own === undefined || !isBlank ? general : inTransaction(sql, general, own.create(thread))
    },

    fork: (source, entryId, { at, metadata, threadId }, requests) =>
      atOnce(
        Effect.gen(function* () {
          const row = yield* lock(source)
          if (row === undefined) return "Gone"
          const entry = entryId === null ? undefined : yield* visible(source, entryId)
          if (entryId !== null && entry === undefined) return "Gone"
          const origin = number(row, "key")
          const thread = yield* insertThread({
            ...fresh({ threadId, at, metadata }),
            ...place(at),
            archived: 0,
            leaf_pk: entry?.pk ?? null,
            leaf_id: entryId,
            step: entry?.step ?? 0,
            origin,
            origin_last: yield* lastOf(origin),
            ...(isPostgres ? {} : { top: text(row, "top") }),
            origin_thread: source,
            origin_entry: entryId
          })
          if (thread === undefined) return "Exists"
          yield* describe(thread, metadata)
          yield* waits.set(thread, threadId, 0, requests)
          return "Done"
        })
      ),

    append: (threadId, leaf, entries, at, behind, bytes, requests) => {
      const batch = { threadId, leaf, entries, at, behind, bytes, waits: requests }
      const general = append(batch)
      // What is large is written entry by entry, so that others get their turn of the event loop.
      return Effect.flatMap(
        own === undefined || bytes > large ? general : inTransaction(sql, general, own.append(batch)),
        (outcome) =>
          typeof outcome === "number"
            ? Effect.succeed<Appended>({ _tag: "Done", step: outcome })
            : settle(threadId, entries, outcome)
      )
    },

    addLabel: (threadId, id, label, at) =>
      Effect.flatMap(
        atOnce(
          Effect.gen(function* (): Effect.fn.Return<Outcome, Fault> {
            const row = yield* lock(threadId)
            if (row === undefined || number(row, "archived") === 1) return { taken: undefined }
            if ((yield* visible(threadId, id)) !== undefined) return { taken: id }
            const thread = number(row, "key")
            const target = label.target === null ? undefined : yield* visible(threadId, label.target)
            const placed = new Map(target === undefined ? [] : [[label.target ?? "", target]])
            const [pk = 0] = yield* numbers(thread, 1)
            yield* insertAll(sql, "session_entries", [
              toRow(kind, thread, { id, parentId: label.target, at, entry: label }, pk, placed)
            ])
            yield* named(thread, [{ id }])
            yield* rows(sql`UPDATE session_threads SET ${changed(at)} WHERE key = ${thread}`)
            return (target?.step ?? 0) + 1
          })
        ),
        (outcome) =>
          typeof outcome === "number"
            ? Effect.succeed<Appended>({ _tag: "Done", step: outcome })
            : refused(threadId, outcome.taken)
      ),

    move: (threadId, from, to, at, requests) =>
      atOnce(
        Effect.gen(function* () {
          const row = yield* lock(threadId)
          if (row === undefined || number(row, "archived") === 1 || nullable(row, "leaf_id") !== from) return false
          const entry = to === null ? undefined : yield* visible(threadId, to)
          if (to !== null && entry === undefined) return false
          yield* setLeaf(number(row, "key"), entry?.pk ?? null, to, entry?.step ?? 0, at)
          yield* waits.set(number(row, "key"), threadId, 0, requests)
          return true
        })
      ),

    update: (threadId, change, at) =>
      "archived" in change
        ? atOnce(
            Effect.gen(function* () {
              const row = yield* first(sql`UPDATE session_threads
                SET archived = ${change.archived ? 1 : 0}, ${changed(at)} WHERE id = ${key(threadId)} RETURNING key`)
              if (row === undefined) return false
              yield* waits.archive(number(row, "key"), change.archived)
              return true
            })
          )
        : atOnce(
            Effect.gen(function* () {
              const row = yield* first(sql`UPDATE session_threads
                SET metadata = ${toJson(change.metadata)}, ${changed(at)} WHERE id = ${key(threadId)} RETURNING key`)
              if (row === undefined) return false
              const thread = number(row, "key")
              yield* rows(sql`DELETE FROM session_metadata WHERE thread = ${thread}`)
              yield* describe(thread, change.metadata)
              return true
            })
          ),

    remove: (threadId) =>
      atOnce(
        Effect.gen(function* () {
          const row = yield* lock(threadId)
          if (row === undefined) return false
          const thread = number(row, "key")
          if ((yield* forksOf(thread)) === undefined) {
            yield* drop(thread)
            return true
          }
          yield* search.forget(thread)
          yield* waits.clear(thread)
          yield* rows(sql`DELETE FROM session_metadata WHERE thread = ${thread}`)
          yield* rows(sql`UPDATE session_threads SET id = NULL, metadata = '{}' WHERE key = ${thread}`)
          return true
        })
      ),

    entry: (threadId, id) =>
      Effect.flatMap(visible(threadId, id), (entry) =>
        entry === undefined
          ? Effect.undefined
          : Effect.map(orCorrupt([toStored(entry.row)]), ([stored]) =>
              stored === undefined ? undefined : { ...stored, step: entry.step }
            )
      )
  }
}

const fresh = ({ at, metadata, threadId }: NewThread) => ({
  id: threadId,
  created_at: at,
  updated_at: at,
  metadata: toJson(metadata)
})

/** An entry as a row behind its parent, which is among what was placed already. */
const toRow = (
  kind: string,
  thread: number,
  { at, entry, id, parentId }: Stored,
  pk: number,
  placed: Map<string, { readonly pk: number; readonly step: number }>
) => {
  const parent = placed.get(parentId ?? "")
  const step = (parent?.step ?? 0) + 1
  placed.set(id, { pk, step })
  return { pk, thread, id, parent: parent?.pk ?? null, step, at, [kind]: entry._tag, body: encode(entry) }
}
