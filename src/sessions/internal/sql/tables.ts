/** The tables of threads in a SQL database. */
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { NewEntry } from "../../../core/SessionStore.ts"
import { isPostgres as isPostgresClient } from "../../../support/store/sql.ts"
import type { AppendOutcome, Fault, Tables } from "../tables.ts"
import { appendPostgres, appendSqlite, inTransaction, large, type Outcome, ownWay } from "./append.ts"
import { orCorrupt, rows } from "./client.ts"
import { makeEntries } from "./entries.ts"
import { forkThread, insertContent, insertLabel } from "./inserts.ts"
import { makeList } from "./list.ts"
import { makeMark } from "./mark.ts"
import { text, toStored } from "./rows.ts"
import { searchByReading } from "./searchByReading.ts"
import { searchPostgres } from "./searchPostgres.ts"
import { searchSqlite } from "./searchSqlite.ts"
import { type Database, findThread, moveThread, removeThread, updateThread } from "./threads.ts"
import { makeWaits } from "./waits.ts"

/** Makes the tables of a migrated database. A read-only file has no current index of words. */
export const make = (sql: SqlClient, isReadOnly = false): Tables => {
  const isPostgres = isPostgresClient(sql)
  const entries = makeEntries(sql)
  const own = ownWay(sql)
  const search = isPostgres ? searchPostgres(sql) : searchSqlite(sql, entries, own?.aside)
  const path = entries.pathTo(own?.reads)
  const waits = makeWaits(sql, path)
  const database: Database = { sql, isPostgres, entries, search, waits }
  const append = isPostgres ? appendPostgres(sql) : appendSqlite(sql, entries, waits)
  const insert = insertContent(database)
  const find = findThread(sql)

  /** Finds the first id that an entry of the thread has already. */
  const takenOf = Effect.fnUntraced(function* (threadId: string, added: ReadonlyArray<Pick<NewEntry, "id">>) {
    for (const { id } of added) if ((yield* entries.visible(threadId, id)) !== undefined) return id
    return undefined
  })

  /** Explains the outcome of an append. */
  const settle = Effect.fnUntraced(function* (
    threadId: string,
    added: ReadonlyArray<Pick<NewEntry, "id">>,
    outcome: Exclude<Outcome, number>
  ): Effect.fn.Return<AppendOutcome, Fault> {
    const takenId = outcome.taken ?? (yield* takenOf(threadId, added))
    return { _tag: "Refused", thread: yield* find(threadId), ...(takenId === undefined ? {} : { taken: takenId }) }
  })

  const toAppended = (threadId: string, added: ReadonlyArray<Pick<NewEntry, "id">>) => (outcome: Outcome) =>
    typeof outcome === "number"
      ? Effect.succeed<AppendOutcome>({ _tag: "Done", step: outcome })
      : settle(threadId, added, outcome)

  return {
    ...makeMark(sql),
    find,
    names: Effect.map(rows(sql`SELECT id FROM session_threads WHERE id IS NOT NULL`), (list) =>
      list.map((row) => ({ threadId: text(row, "id") }))
    ),
    list: makeList(sql),
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
    fork: forkThread(database),
    append: (threadId, leaf, added, at, behind, bytes, requests) => {
      const batch = { threadId, leaf, entries: added, at, behind, bytes, waits: requests }
      const general = append(batch)
      // Other fibers run between the entries of a large append.
      const appended = own === undefined || bytes > large ? general : inTransaction(sql, general, own.append(batch))
      return Effect.flatMap(appended, toAppended(threadId, added))
    },
    addLabel: (threadId, id, label, at) =>
      Effect.flatMap(insertLabel(database, threadId, id, label, at), toAppended(threadId, [])),
    move: moveThread(database),
    update: updateThread(database),
    remove: removeThread(database),
    entry: (threadId, id) =>
      Effect.flatMap(entries.visible(threadId, id), (entry) =>
        entry === undefined
          ? Effect.undefined
          : Effect.map(orCorrupt([toStored(entry.row)]), ([storedEntry]) =>
              storedEntry === undefined ? undefined : { ...storedEntry, step: entry.step }
            )
      )
  }
}
