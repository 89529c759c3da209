/** Migrates the tables of a SQL database. */
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import { isSqlError } from "effect/sql/SqlError"
import { migrate as applyVersions } from "../../../support/store/sql.ts"
import type { Fault } from "../tables.ts"
import { corrupt, first, toFault } from "./client.ts"
import { postgresVersions } from "./postgres.ts"
import { number } from "./rows.ts"
import { sqliteVersions } from "./sqlite.ts"

const table = "session_migrations"

/** The oldest server that still gets security fixes. The tests run on 18. */
const oldestPostgres = 140_000

/** Refuses a server that is too old for the tables. */
const checkServer = Effect.fnUntraced(function* (sql: SqlClient): Effect.fn.Return<void, Fault> {
  const row = yield* first(sql`SELECT current_setting('server_version_num')::int AS version`)
  const version = row === undefined ? 0 : number(row, "version")
  if (version >= oldestPostgres) return
  const problem = `the server is Postgres ${Math.floor(version / 10_000)}, and sessions need 14 or later (18 for a cluster); update the server`
  return yield* Effect.fail<Fault>({ reason: { _tag: "Unavailable", problem } })
})

const versionOf = (sql: SqlClient): Effect.Effect<number, Fault> =>
  Effect.map(first(sql`SELECT max(migration_id) AS version FROM ${sql(table)}`), (row) =>
    row === undefined ? 0 : number(row, "version")
  )

/** Reports whether `SqliteClient` opened a read-only file. */
export const isReadOnly = (sql: SqlClient): Effect.Effect<boolean, Fault> =>
  sql.onDialectOrElse({
    sqlite: () =>
      Effect.map(first(sql`PRAGMA query_only`), (row) => row !== undefined && number(row, "query_only") === 1),
    orElse: () => Effect.succeed(false)
  })

/** Refuses a read-only file with tables of another version. */
const checkReadOnly = Effect.fnUntraced(function* (sql: SqlClient, latest: number): Effect.fn.Return<void, Fault> {
  const version = yield* Effect.orElseSucceed(versionOf(sql), () => 0)
  if (version === latest) return
  const problem = `the file can only be read, and has tables of version ${version}, where this library needs ${latest}; copy it to where this process can write`
  return yield* Effect.fail<Fault>({ reason: { _tag: "Unavailable", problem } })
})

/** Migrates the tables. One process does, others wait for it. */
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
  yield* sql.onDialectOrElse({ pg: () => checkServer(sql), orElse: () => Effect.void })
  if (yield* isReadOnly(sql)) return yield* checkReadOnly(sql, versions.length)
  yield* Effect.mapError(applyVersions(sql, { table, name: "sessions", versions }), (error): Fault =>
    isSqlError(error) ? toFault(error) : { reason: { _tag: "Unavailable", problem: error.message }, cause: error }
  )
  const version = yield* versionOf(sql)
  if (version <= versions.length) return
  const latest = versions.length
  return yield* Effect.fail(
    corrupt(`the database is of version ${version}, and this library knows ${latest}; update it`)
  )
})
