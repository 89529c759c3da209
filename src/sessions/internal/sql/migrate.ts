/**
 * Brings the tables of a SQL database up to date.
 */
import * as Effect from "effect/Effect"
import * as Migrator from "effect/sql/Migrator"
import { SqlClient } from "effect/sql/SqlClient"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { Fault } from "../tables.ts"
import { corrupt, first, toFault } from "./client.ts"
import { postgresVersions } from "./postgres.ts"
import { number } from "./rows.ts"
import { sqliteVersions } from "./sqlite.ts"

const table = "session_migrations"

const toMigrations = (versions: ReadonlyArray<ReadonlyArray<string>>) =>
  Object.fromEntries(
    versions.map((statements, index) => [
      `${index + 1}_sessions`,
      Effect.flatMap(SqlClient, (sql) =>
        Effect.forEach(statements, (statement) => sql.unsafe(statement).unprepared, { discard: true })
      )
    ])
  )

const faultOf = (error: Migrator.MigrationError | SqlError): Fault => {
  if (isSqlError(error)) return toFault(error)
  return isSqlError(error.cause)
    ? toFault(error.cause)
    : { reason: { _tag: "Unavailable", problem: error.message }, cause: error }
}

/** Makes the tables that are not there yet. One process does, the others wait for it. */
export const migrate = Effect.fnUntraced(function* (sql: SqlClient): Effect.fn.Return<void, Fault> {
  const versions = sql.onDialectOrElse({
    pg: () => postgresVersions,
    sqlite: () => sqliteVersions,
    orElse: () => undefined
  })
  if (versions === undefined) {
    const problem = "sessions are kept in Postgres and SQLite only; provide a SqlClient of one of them"
    return yield* Effect.fail<Fault>({ reason: { _tag: "Unavailable", problem } })
  }
  const run = Migrator.make({})({ loader: Migrator.fromRecord(toMigrations(versions)), table })
  yield* Effect.mapError(Effect.provideService(run, SqlClient, sql), faultOf)
  const row = yield* first(sql`SELECT max(migration_id) AS version FROM ${sql(table)}`)
  const found = row === undefined ? 0 : number(row, "version")
  if (found <= versions.length) return
  const known = versions.length
  return yield* Effect.fail(corrupt(`the database is of version ${found}, and this library knows ${known}; update it`))
})
