/** Runs statements and transactions, and names their failures. */
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Row } from "effect/sql/SqlConnection"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { Statement } from "effect/sql/Statement"
import { movedTo, placeIn } from "../moving.ts"
import type { Fault } from "../tables.ts"

/** A failure of the tables that is known by itself. */
export const corrupt = (problem: string): Fault => ({ reason: { _tag: "Corrupt", problem } })

/** SQLite's numbers and Postgres' codes of what is damaged, or is no database at all; and a number that nobody wrote here. */
const damaged: ReadonlyArray<unknown> = [11, 26, "XX001", "XX002", "ERR_OUT_OF_RANGE"]

const isDamage = (cause: unknown): boolean =>
  (Predicate.hasProperty(cause, "errcode") &&
    typeof cause.errcode === "number" &&
    damaged.includes(cause.errcode & 0xff)) ||
  (Predicate.hasProperty(cause, "code") && damaged.includes(cause.code)) ||
  (Predicate.hasProperty(cause, "cause") && isDamage(cause.cause))

/** A row of more bytes than the client of Postgres takes: there is no use in trying again. */
const isTooLarge = (cause: unknown): boolean =>
  (said(cause)?.includes("exceeds maxMessageSize") ?? false) ||
  (Predicate.hasProperty(cause, "cause") && isTooLarge(cause.cause))

const said = (cause: unknown): string | undefined =>
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
  const inner = said(error.reason.cause)
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

/** The rows of a statement, with columns named as they are in the tables. */
export const rows = (statement: Statement<Row>): Effect.Effect<ReadonlyArray<Row>, Fault> =>
  Effect.mapError(statement.withoutTransform, toFault)

/** The first row of a statement. */
export const first = (statement: Statement<Row>): Effect.Effect<Row | undefined, Fault> =>
  Effect.map(rows(statement), (found) => found[0])

/**
 * Runs an effect at once or not at all. A connection that is lost can't be rolled back either: the client makes defects
 * of that failure and of what came before it.
 */
export const transaction =
  (sql: SqlClient) =>
  <A, E>(body: Effect.Effect<A, E>): Effect.Effect<A, Exclude<E, SqlError> | Fault> =>
    Effect.catchCause(sql.withTransaction(body), (cause): Effect.Effect<never, Exclude<E, SqlError> | Fault> => {
      const failure = Cause.findError(cause)
      if (Result.isSuccess(failure)) {
        // A failure that is no SqlError is one of the others.
        return Effect.fail(
          isSqlError(failure.success) ? toFault(failure.success) : (failure.success as Exclude<E, SqlError>)
        )
      }
      const defects = cause.reasons.flatMap((reason) => (Cause.isDieReason(reason) ? [reason.defect] : []))
      const lost = defects.find(isSqlError)
      return lost === undefined ? Effect.failCause(failure.failure) : Effect.fail(toFault(lost))
    })

/** Decodes rows; fails with the first one that can't be decoded. */
export const decoded = <A>(results: ReadonlyArray<Result.Result<A, string>>): Effect.Effect<ReadonlyArray<A>, Fault> =>
  Effect.mapError(Effect.fromResult(Result.all(results)), corrupt)

/** The number of rows that one statement inserts. */
const batch = 500

/** Inserts rows, which all have the same columns. */
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
