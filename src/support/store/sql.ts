/** The SQL of every store: dialects, migrations, and transactions. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Migrator from "effect/sql/Migrator"
import { SqlClient } from "effect/sql/SqlClient"
import { isSqlError, type SqlError } from "effect/sql/SqlError"

/** Reports whether a client speaks to Postgres. */
export const isPostgres = (sql: SqlClient): boolean => sql.onDialectOrElse({ pg: () => true, orElse: () => false })

/** The type of a text that databases compare by code points. Postgres follows the rules of a language otherwise. */
export const textType = (sql: SqlClient): string => (isPostgres(sql) ? `TEXT COLLATE "C"` : "TEXT")

/**
 * Brings a schema up to date and records its version in `table`. Each version is a list of statements. A version never
 * changes; a new one follows it. One process migrates, all others wait for it.
 */
export const migrate = (
  sql: SqlClient,
  options: {
    readonly table: string
    readonly name: string
    readonly versions: ReadonlyArray<ReadonlyArray<string>>
  }
): Effect.Effect<void, SqlError | Migrator.MigrationError> => {
  const migrations = options.versions.map((statements, index) => [
    `${index + 1}_${options.name}`,
    Effect.forEach(statements, (statement) => sql.unsafe(statement).unprepared, { discard: true })
  ])
  const loader = Migrator.fromRecord(Object.fromEntries(migrations))
  return Migrator.make({})({ loader, table: options.table }).pipe(
    Effect.provideService(SqlClient, sql),
    Effect.mapError((error) => (!isSqlError(error) && isSqlError(error.cause) ? error.cause : error)),
    Effect.asVoid
  )
}

/**
 * Runs an effect in a transaction. A lost connection can't be rolled back, and the client turns its failure into a
 * defect. Here it is a failure again.
 */
export const transaction =
  (sql: SqlClient) =>
  <A, E, R>(body: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError, R> =>
    Effect.catchCause(sql.withTransaction(body), (cause): Effect.Effect<never, E | SqlError> => {
      const failure = Cause.findError(cause)
      if (Result.isSuccess(failure)) return Effect.fail(failure.success)
      const defects = cause.reasons.flatMap((reason) => (Cause.isDieReason(reason) ? [reason.defect] : []))
      const sqlError = defects.find(isSqlError)
      return sqlError === undefined ? Effect.failCause(failure.failure) : Effect.fail(sqlError)
    })
