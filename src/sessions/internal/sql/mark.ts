/**
 * The mark of a database whose threads were moved: triggers that refuse every change, by any version of the library or
 * program. A store without the mark has no triggers, so an append costs nothing for it.
 */
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import { isPostgres as isPostgresClient } from "../../../support/store/sql.ts"
import type { Fault, Tables } from "../tables.ts"
import { beginning } from "../transfer/moving.ts"
import { first, rows, transaction } from "./client.ts"
import { text } from "./rows.ts"

const quoted = (value: string): string => `'${value.replaceAll("'", "''")}'`

/** The columns of a thread that a search and the indexes of SQLite never set. */
const columns = "id, leaf_pk, leaf_id, metadata, archived, updated_at"

/** What changes a thread: an append, an import, a fork, a move, a label, new metadata, a removal. */
const changes = [
  ["session_closed_new", `INSERT ON session_threads`],
  ["session_closed_change", `UPDATE OF ${columns} ON session_threads`],
  ["session_closed_removal", `DELETE ON session_threads`],
  ["session_closed_entry", `INSERT ON session_entries`]
] as const

const closeSqlite = (to: string): ReadonlyArray<string> => [
  "CREATE TABLE session_moved_to (place TEXT NOT NULL) STRICT",
  ...changes.map(
    ([name, change]) =>
      `CREATE TRIGGER ${name} BEFORE ${change} BEGIN SELECT RAISE(ABORT, ${quoted(beginning + to)}); END`
  )
]

const reopenSqlite: ReadonlyArray<string> = [
  ...changes.map(([name]) => `DROP TRIGGER IF EXISTS ${name}`),
  "DROP TABLE IF EXISTS session_moved_to"
]

const closePostgres: ReadonlyArray<string> = [
  "CREATE TABLE session_moved_to (place TEXT NOT NULL)",
  `CREATE FUNCTION session_refuse () RETURNS TRIGGER LANGUAGE plpgsql AS $$
    BEGIN
      RAISE EXCEPTION '%', ${quoted(beginning)} || (SELECT place FROM session_moved_to);
    END
  $$`,
  ...changes.map(
    ([name, change]) => `CREATE TRIGGER ${name} BEFORE ${change} FOR EACH STATEMENT EXECUTE FUNCTION session_refuse()`
  )
]

const reopenPostgres: ReadonlyArray<string> = [
  "DROP FUNCTION IF EXISTS session_refuse() CASCADE",
  "DROP TABLE IF EXISTS session_moved_to"
]

/** The mark of a database. */
export const makeMark = (sql: SqlClient): Pick<Tables, "moved" | "close" | "reopen"> => {
  const isPostgres = isPostgresClient(sql)
  const run = (statements: ReadonlyArray<string>): Effect.Effect<void, Fault> =>
    Effect.forEach(statements, (statement) => rows(sql.unsafe(statement)), { discard: true })

  const isMarked = isPostgres
    ? sql`SELECT 1 AS there WHERE to_regclass('session_moved_to') IS NOT NULL`
    : sql`SELECT 1 AS there FROM sqlite_schema WHERE name = 'session_moved_to'`

  const moved: Tables["moved"] = Effect.flatMap(first(isMarked), (row) =>
    row === undefined
      ? Effect.undefined
      : Effect.map(first(sql`SELECT place FROM session_moved_to`), (mark) =>
          mark === undefined ? undefined : text(mark, "place")
        )
  )

  // Every change locks a row of the threads first, and waits here. SQLite has one writer at a time anyway.
  const lock = isPostgres ? rows(sql`LOCK TABLE session_threads, session_entries IN EXCLUSIVE MODE`) : Effect.void

  return {
    moved,
    close: (to) =>
      transaction(sql)(
        Effect.gen(function* () {
          yield* lock
          const before = yield* moved
          if (before !== undefined) return before
          yield* run(isPostgres ? closePostgres : closeSqlite(to))
          yield* rows(sql`INSERT INTO session_moved_to VALUES (${to})`)
          return to
        })
      ),
    reopen: transaction(sql)(Effect.andThen(lock, run(isPostgres ? reopenPostgres : reopenSqlite)))
  }
}
