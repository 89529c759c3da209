/** Runs statements and transactions, and names their failures. */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Row } from "effect/sql/SqlConnection"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { Statement } from "effect/sql/Statement"
import { transaction as runInTransaction } from "../../../support/store/sql.ts"
import type { Fault } from "../tables.ts"
import { movedTo, placeIn } from "../transfer/moving.ts"

/** Makes the failure of damaged tables. */
export const corrupt = (problem: string): Fault => ({ reason: { _tag: "Corrupt", problem } })

/** The codes of SQLite and Postgres for damaged data or files of another kind, and of numbers out of range. */
const damaged: ReadonlyArray<unknown> = [11, 26, "XX001", "XX002", "ERR_OUT_OF_RANGE"]

const isDamage = (cause: unknown): boolean =>
  (Predicate.hasProperty(cause, "errcode") &&
    typeof cause.errcode === "number" &&
    damaged.includes(cause.errcode & 0xff)) ||
  (Predicate.hasProperty(cause, "code") && damaged.includes(cause.code)) ||
  (Predicate.hasProperty(cause, "cause") && isDamage(cause.cause))

/** Reports whether a row is larger than the client of Postgres reads. A retry is useless. */
const isTooLarge = (cause: unknown): boolean =>
  (messageOf(cause)?.includes("exceeds maxMessageSize") ?? false) ||
  (Predicate.hasProperty(cause, "cause") && isTooLarge(cause.cause))

const messageOf = (cause: unknown): string | undefined =>
  Predicate.hasProperty(cause, "message") && typeof cause.message === "string" && cause.message !== ""
    ? cause.message
    : undefined

/** Maps a failure of the database to one of a store. */
export const toFault = (error: SqlError): Fault => {
  if (isTooLarge(error)) {
    const problem =
      "an entry is larger than the client of Postgres reads; give PgClient a larger maxMessageSize, or rewind the thread to before that entry"
    return { reason: { _tag: "Corrupt", problem }, cause: error }
  }
  const own = error.reason.message
  const inner = messageOf(error.reason.cause)
  const place = placeIn(inner) ?? placeIn(own)
  if (place !== undefined) return movedTo(place, error)
  const problem =
    own === undefined
      ? (inner ?? error.reason._tag)
      : inner === undefined || own.includes(inner)
        ? own
        : `${own}: ${inner}`
  return { reason: { _tag: isDamage(error.reason.cause) ? "Corrupt" : "Unavailable", problem }, cause: error }
}

/** Gives the rows of a statement, with the column names of the tables. */
export const rows = (statement: Statement<Row>): Effect.Effect<ReadonlyArray<Row>, Fault> =>
  Effect.mapError(statement.withoutTransform, toFault)

/** Gives the first row of a statement. */
export const first = (statement: Statement<Row>): Effect.Effect<Row | undefined, Fault> =>
  Effect.map(rows(statement), (list) => list[0])

/** Runs an effect in a transaction. */
export const transaction =
  (sql: SqlClient) =>
  <A, E>(body: Effect.Effect<A, E>): Effect.Effect<A, Exclude<E, SqlError> | Fault> =>
    Effect.mapError(runInTransaction(sql)(body), (error) =>
      // A failure that is no SqlError is one of the others.
      isSqlError(error) ? toFault(error) : (error as Exclude<E, SqlError>)
    )

/** Collects decoded rows, or fails with the first problem. */
export const orCorrupt = <A>(
  results: ReadonlyArray<Result.Result<A, string>>
): Effect.Effect<ReadonlyArray<A>, Fault> => Effect.mapError(Effect.fromResult(Result.all(results)), corrupt)

/** The rows of one statement. */
const batch = 500

/** Inserts rows with the same columns. */
export const insertAll = (
  sql: SqlClient,
  table: string,
  values: ReadonlyArray<Record<string, string | number | null>>
): Effect.Effect<void, Fault> =>
  Effect.forEach(
    Arr.chunksOf(values, batch),
    (part) => rows(sql`INSERT INTO ${sql.literal(table)} ${sql.insert(part)}`),
    { discard: true }
  )
