import type { DatabaseSync } from "node:sqlite"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { canonical, type JsonObject } from "../../../core/Json.ts"
import type { Entry, Label } from "../../../core/SessionStore.ts"
import { toJson } from "../../internal/codec.ts"
import type { Appended, Fault, Tables } from "../../internal/tables.ts"
import { fault, makeTransaction, touch } from "./database.ts"
import { entryColumns, number, type Row, threadColumns, toStored, toThread } from "./rows.ts"
import { makeSearch } from "./search.ts"

/**
 * The threads that a thread sees entries of, and the last one of each. What it is joined with comes second (`CROSS JOIN`):
 * SQLite would go through all entries otherwise.
 */
const lineage = `
  WITH RECURSIVE line (thread, last) AS (
    SELECT key, 9007199254740991 FROM threads WHERE id = ?
    UNION ALL
    SELECT t.origin, t.origin_last FROM line JOIN threads t ON t.key = line.thread WHERE t.origin IS NOT NULL
  )`

const decoded = <A>(results: ReadonlyArray<Result.Result<A, string>>): Effect.Effect<ReadonlyArray<A>, Fault> =>
  Effect.mapError(Effect.fromResult(Result.all(results)), (problem) => fault("Corrupt", problem))

/** The statements that a store needs, made once. */
const prepare = (database: DatabaseSync) => ({
  find: database.prepare(`SELECT ${threadColumns} FROM threads WHERE id = ?`),
  exists: database.prepare("SELECT 1 FROM threads WHERE id = ?"),
  insertThread: database.prepare(
    `INSERT INTO threads (id, created_at, updated_at, metadata, archived, step) VALUES (?, ?, ?, ?, ?, 0)`
  ),
  insertFork: database.prepare(
    `INSERT INTO threads (id, created_at, updated_at, metadata, archived, leaf, leaf_id, step,
       origin, origin_last, origin_thread, origin_entry)
     VALUES (?, ?, ?, ?, 0, ?, ?, ?, ?, (SELECT coalesce(max(pk), 0) FROM entries WHERE thread = ?), ?, ?)`
  ),
  insertMetadata: database.prepare("INSERT INTO thread_metadata VALUES (?, ?, ?)"),
  deleteMetadata: database.prepare("DELETE FROM thread_metadata WHERE thread = ?"),
  setMetadata: database.prepare("UPDATE threads SET metadata = ?, updated_at = ? WHERE id = ? RETURNING key"),
  setArchived: database.prepare("UPDATE threads SET archived = ?, updated_at = ? WHERE id = ? RETURNING key"),
  setLeaf: database.prepare("UPDATE threads SET leaf = ?, leaf_id = ?, step = ?, updated_at = ? WHERE key = ?"),
  touchThread: database.prepare("UPDATE threads SET updated_at = ? WHERE key = ?"),
  open: database.prepare("SELECT key, leaf, leaf_id, step, archived, origin FROM threads WHERE id = ?"),
  insertEntry: database.prepare(
    "INSERT INTO entries (thread, id, parent, step, at, tag, body) VALUES (?, ?, ?, ?, ?, ?, ?)"
  ),
  own: database.prepare("SELECT 1 FROM entries WHERE thread = ? AND id = ?"),
  visible: database.prepare(
    `${lineage} SELECT ${entryColumns} FROM line CROSS JOIN entries e ON e.thread = line.thread
     WHERE e.id = ? AND e.pk <= line.last LIMIT 1`
  ),
  path: database.prepare(
    `WITH RECURSIVE back (pk, parent, distance) AS (
       SELECT pk, parent, 1 FROM entries WHERE pk = ?
       UNION ALL
       SELECT e.pk, e.parent, back.distance + 1 FROM back JOIN entries e ON e.pk = back.parent WHERE back.distance < ?
     )
     SELECT ${entryColumns} FROM back JOIN entries e ON e.pk = back.pk ORDER BY back.distance`
  ),
  labels: database.prepare(
    `${lineage} SELECT ${entryColumns} FROM line CROSS JOIN entries e ON e.thread = line.thread AND e.tag = 'Label'
     WHERE e.pk <= line.last ORDER BY e.pk`
  ),
  line: database.prepare(`${lineage} SELECT thread, last FROM line`),
  entries: database.prepare(
    `SELECT ${entryColumns} FROM entries e WHERE e.thread = ? AND e.pk > ? AND e.pk <= ? ORDER BY e.pk LIMIT ?`
  ),
  forks: database.prepare("SELECT 1 FROM threads WHERE origin = ? LIMIT 1"),
  forget: database.prepare("UPDATE threads SET id = NULL, metadata = '{}' WHERE key = ?"),
  deleteEntries: database.prepare("DELETE FROM entries WHERE thread = ?"),
  deleteTexts: database.prepare("DELETE FROM texts WHERE rowid IN (SELECT pk FROM entries WHERE thread = ?)"),
  // Numbers of entries may be used again: those that come are not taken for indexed ones.
  lowerTexts: database.prepare("UPDATE texts_upto SET pk = min(pk, (SELECT coalesce(max(pk), 0) FROM entries))"),
  deleteThread: database.prepare("DELETE FROM threads WHERE key = ? RETURNING origin"),
  hidden: database.prepare("SELECT key FROM threads WHERE key = ? AND id IS NULL")
})

/** Tables in an open file. */
export const make = (database: DatabaseSync): Tables => {
  const sql = prepare(database)
  const transaction = makeTransaction(database)

  const describe = (key: number | bigint, metadata: JsonObject): void => {
    for (const [name, value] of Object.entries(metadata)) sql.insertMetadata.run(key, name, canonical(value))
  }

  const put = (thread: number | bigint, id: string, parent: number | null, step: number, at: number, entry: Entry) =>
    Number(sql.insertEntry.run(thread, id, parent, step, at, entry._tag, toJson(entry)).lastInsertRowid)

  const pkOf = (threadId: string, id: string): Row | undefined => sql.visible.get(threadId, id)

  /** Whether an id is one of an entry that the thread sees; only a fork sees those of others. */
  const isTaken = (thread: Row, threadId: string, id: string): boolean =>
    (thread["origin"] === null ? sql.own.get(number(thread, "key"), id) : pkOf(threadId, id)) !== undefined

  const refused = (threadId: string, taken?: string): Effect.Effect<Appended, Fault> =>
    Effect.map(find(threadId), (thread) => ({
      _tag: "Refused",
      thread,
      ...(taken === undefined ? {} : { taken })
    }))

  const find: Tables["find"] = (threadId) =>
    Effect.flatMap(
      touch(() => sql.find.get(threadId)),
      (row) => (row === undefined ? Effect.undefined : Effect.map(decoded([toThread(row)]), ([thread]) => thread))
    )

  /** What an append came to, before the thread that refused it is read. */
  const settle = (threadId: string, outcome: number | { readonly taken: string | undefined }) =>
    typeof outcome === "number"
      ? Effect.succeed<Appended>({ _tag: "Done", step: outcome })
      : refused(threadId, outcome.taken)

  /** A thread that nothing goes on from; and what it went on from, if that was only kept for it. */
  const drop = (key: number): void => {
    sql.deleteTexts.run(key)
    sql.deleteEntries.run(key)
    sql.lowerTexts.run()
    sql.deleteMetadata.run(key)
    const origin = sql.deleteThread.get(key)?.["origin"]
    const isUnused = typeof origin === "number" && sql.forks.get(origin) === undefined
    if (isUnused && sql.hidden.get(origin) !== undefined) drop(origin)
  }

  return {
    find,
    ...makeSearch(database, transaction),

    insert: ({ at, metadata, threadId }, { archived, entries, leaf }) =>
      transaction(() => {
        if (sql.exists.get(threadId) !== undefined) return false
        const { lastInsertRowid: key } = sql.insertThread.run(threadId, at, at, toJson(metadata), archived ? 1 : 0)
        describe(key, metadata)
        const placed = new Map<string, { readonly pk: number; readonly step: number }>()
        for (const stored of entries) {
          const parent = placed.get(stored.parentId ?? "")
          const step = (parent?.step ?? 0) + 1
          placed.set(stored.id, { pk: put(key, stored.id, parent?.pk ?? null, step, stored.at, stored.entry), step })
        }
        const last = placed.get(leaf ?? "")
        if (last !== undefined) sql.setLeaf.run(last.pk, leaf, last.step, at, key)
        return true
      }),

    fork: (source, entryId, { at, metadata, threadId }) =>
      transaction(() => {
        const thread = sql.open.get(source)
        if (thread === undefined) return "Gone"
        if (sql.exists.get(threadId) !== undefined) return "Exists"
        const entry = entryId === null ? undefined : pkOf(source, entryId)
        if (entryId !== null && entry === undefined) return "Gone"
        const [pk, step] = entry === undefined ? [null, 0] : [number(entry, "pk"), number(entry, "step")]
        const { lastInsertRowid: key } = sql.insertFork.run(
          ...([threadId, at, at, toJson(metadata), pk, entryId, step] as const),
          ...([number(thread, "key"), number(thread, "key"), source, entryId] as const)
        )
        describe(key, metadata)
        return "Done"
      }),

    append: (threadId, leaf, entries, at) =>
      Effect.flatMap(
        transaction(() => {
          const thread = sql.open.get(threadId)
          if (thread === undefined || thread["archived"] === 1 || thread["leaf_id"] !== leaf) {
            return { taken: undefined }
          }
          const taken = entries.find(({ id }) => isTaken(thread, threadId, id))
          if (taken !== undefined) return { taken: taken.id }
          const key = number(thread, "key")
          let parent = thread["leaf"] === null ? null : number(thread, "leaf")
          let step = number(thread, "step")
          for (const { entry, id } of entries) parent = put(key, id, parent, ++step, at, entry)
          sql.setLeaf.run(parent, entries.at(-1)?.id ?? leaf, step, at, key)
          return step
        }),
        (outcome) => settle(threadId, outcome)
      ),

    hang: (threadId, id, label, at) =>
      Effect.flatMap(
        transaction(() => {
          const thread = sql.open.get(threadId)
          if (thread === undefined || thread["archived"] === 1) return { taken: undefined }
          if (isTaken(thread, threadId, id)) return { taken: id }
          const key = number(thread, "key")
          const target = label.target === null ? undefined : pkOf(threadId, label.target)
          const step = target === undefined ? 1 : number(target, "step") + 1
          put(key, id, target === undefined ? null : number(target, "pk"), step, at, label)
          sql.touchThread.run(at, key)
          return step
        }),
        (outcome) => settle(threadId, outcome)
      ),

    move: (threadId, from, to, at) =>
      transaction(() => {
        const thread = sql.open.get(threadId)
        if (thread === undefined || thread["archived"] === 1 || thread["leaf_id"] !== from) return false
        const entry = to === null ? undefined : pkOf(threadId, to)
        if (to !== null && entry === undefined) return false
        const [pk, step] = entry === undefined ? [null, 0] : [number(entry, "pk"), number(entry, "step")]
        sql.setLeaf.run(pk, to, step, at, number(thread, "key"))
        return true
      }),

    update: (threadId, change, at) =>
      transaction(() => {
        if ("archived" in change) return sql.setArchived.get(change.archived ? 1 : 0, at, threadId) !== undefined
        const row = sql.setMetadata.get(toJson(change.metadata), at, threadId)
        if (row === undefined) return false
        sql.deleteMetadata.run(number(row, "key"))
        describe(number(row, "key"), change.metadata)
        return true
      }),

    remove: (threadId) =>
      transaction(() => {
        const thread = sql.open.get(threadId)
        if (thread === undefined) return false
        const key = number(thread, "key")
        if (sql.forks.get(key) === undefined) {
          drop(key)
          return true
        }
        sql.deleteTexts.run(key)
        sql.deleteMetadata.run(key)
        sql.forget.run(key)
        return true
      }),

    entry: (threadId, id) =>
      Effect.flatMap(
        touch(() => pkOf(threadId, id)),
        (row) =>
          row === undefined
            ? Effect.undefined
            : Effect.map(decoded([toStored(row)]), ([stored]) =>
                stored === undefined ? undefined : { ...stored, step: number(row, "step") }
              )
      ),

    path: (threadId, from, limit) =>
      Effect.flatMap(
        touch(() => {
          const start = pkOf(threadId, from)
          return start === undefined ? [] : sql.path.all(number(start, "pk"), limit)
        }),
        (rows) => decoded(rows.map(toStored))
      ),

    labels: (threadId) =>
      Effect.flatMap(
        touch(() => sql.labels.all(threadId)),
        (rows) =>
          Effect.map(decoded(rows.map(toStored)), (stored) =>
            stored.flatMap(({ entry }): ReadonlyArray<Label> => (entry._tag === "Label" ? [entry] : []))
          )
      ),

    entries: (threadId, cursor, limit) =>
      Effect.flatMap(
        touch(() => {
          const rows: Array<Row> = []
          for (const part of sql.line.all(threadId).toReversed()) {
            const left = limit + 1 - rows.length
            if (left > 0) rows.push(...sql.entries.all(number(part, "thread"), cursor, number(part, "last"), left))
          }
          return rows
        }),
        (rows) =>
          Effect.map(decoded(rows.slice(0, limit).map(toStored)), (entries) => {
            const last = rows[limit - 1]
            return { entries, next: rows.length > limit && last !== undefined ? number(last, "pk") : undefined }
          })
      )
  }
}
