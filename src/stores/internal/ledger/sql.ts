/** The tables of a ledger in SQLite and Postgres. */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import type { Row as Columns } from "effect/sql/SqlConnection"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import {
  type Entry,
  type Fault,
  keptFor,
  none,
  openFor,
  type Place,
  type Row,
  settlesFor,
  type Tables
} from "./tables.ts"

/** The columns of a row, in its order. */
const columns = ["model_calls", "tool_calls", "tokens", "cost"] as const

/** The schema of the database, version by version. A version is never changed, only followed by another one. */
const migrations = {
  "1_ledger": Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    // Names are compared byte by byte everywhere.
    const text = sql.literal(sql.onDialectOrElse({ pg: () => `TEXT COLLATE "C"`, orElse: () => "TEXT" }))
    const sums = sql.literal(columns.map((column) => `${column} BIGINT NOT NULL`).join(", "))
    yield* sql`CREATE TABLE ledger_sums (
      account ${text} NOT NULL, period ${text} NOT NULL, ${sums}, gone_at BIGINT, PRIMARY KEY (account, period)
    )`
    yield* sql`CREATE INDEX ledger_sums_gone ON ledger_sums (gone_at) WHERE gone_at IS NOT NULL`
    yield* sql`CREATE TABLE ledger_open (
      account ${text} NOT NULL, period ${text} NOT NULL, id ${text} NOT NULL, ${sums}, expires_at BIGINT NOT NULL,
      PRIMARY KEY (account, period, id)
    )`
    yield* sql`CREATE INDEX ledger_open_expires ON ledger_open (expires_at)`
    yield* sql`CREATE TABLE ledger_marks (name ${text} PRIMARY KEY, value BIGINT NOT NULL)`
  })
}

const migrate = Migrator.make({})({
  loader: Migrator.fromRecord(
    Object.fromEntries(Object.entries(migrations).map(([name, effect]) => [name, Effect.asVoid(effect)]))
  ),
  table: "ledger_migrations"
})

const toFault = (cause: SqlError | Migrator.MigrationError): Fault => ({ problem: cause.message, cause })

/** The index of an entry that does not fit: a failure, so that its transaction takes nothing. */
interface Full {
  readonly _tag: "Full"
  readonly index: number
}

/** Rows that one sweep deletes. */
const sweeps = 1000

/** The tables in the database of a client. */
export const make: Effect.Effect<Tables, Fault, SqlClient.SqlClient> = Effect.gen(function* () {
  const sql = (yield* SqlClient.SqlClient).withoutTransforms()
  yield* Effect.mapError(migrate, toFault)

  /** Milliseconds by the clock of the database: all processes have that one. */
  const now = sql.literal(
    sql.onDialectOrElse({
      pg: () => "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)",
      orElse: () => "CAST(unixepoch('subsec') * 1000 AS INTEGER)"
    })
  )
  const names = sql.literal(columns.join(", "))

  /**
   * Runs statements at once or not at all. A client makes a defect of a connection that is lost in a transaction, since it
   * can't be rolled back.
   */
  const transaction = <A, E>(body: Effect.Effect<A, E | SqlError>): Effect.Effect<A, E | Fault> =>
    Effect.catchCause(sql.withTransaction(body), (cause): Effect.Effect<never, E | Fault> => {
      const found = cause.reasons.map((reason) =>
        Cause.isFailReason(reason) ? reason.error : Cause.isDieReason(reason) ? reason.defect : undefined
      )
      const lost = found.find(isSqlError)
      // Without an error of the database, the failures are those of the body.
      return lost === undefined ? Effect.failCause(cause as Cause.Cause<E>) : Effect.fail(toFault(lost))
    })

  const nested: Fault = {
    problem:
      "it is used inside of a transaction of its SqlClient, and a rollback would take back what was spent; use it outside, or give it a client of its own"
  }

  /** Refuses to write inside of a transaction of the caller. */
  const outside = <A>(write: Effect.Effect<A, Fault>): Effect.Effect<A, Fault> =>
    Effect.flatMap(Effect.serviceOption(sql.transactionService), (found) =>
      Option.isSome(found) ? Effect.fail(nested) : write
    )

  const numbers = (columnsOf: Columns | undefined, prefix: string): Row => {
    const at = (index: 0 | 1 | 2 | 3): number => Number(columnsOf?.[`${prefix}${columns[index]}`] ?? 0)
    return [at(0), at(1), at(2), at(3)]
  }

  const isAt = ({ account, period }: Place) => sql`account = ${account} AND period = ${period}`

  const takeOne = ({ account, add, lasts, most, period }: Entry) => {
    const goneAt = lasts === undefined ? sql`NULL` : sql`${now} + CAST(${lasts + keptFor} AS BIGINT)`
    const limits = most.flatMap((highest, index) =>
      highest === undefined ? [] : [sql`s.${sql.literal(columns[index] ?? "")} <= CAST(${highest} AS BIGINT)`]
    )
    const sums = sql.literal(columns.map((column) => `${column} = s.${column} + excluded.${column}`).join(", "))
    const values = sql.csv(add.map((amount) => sql`CAST(${amount} AS BIGINT)`))
    return sql`INSERT INTO ledger_sums AS s (account, period, ${names}, gone_at)
      VALUES (${account}, ${period}, ${values}, ${goneAt})
      ON CONFLICT (account, period) DO UPDATE SET ${sums} WHERE ${sql.and(limits)} RETURNING 1 AS fits`
  }

  const hold = (id: string, { account, add, period }: Entry) =>
    sql`INSERT INTO ledger_open (account, period, id, ${names}, expires_at)
      VALUES (${account}, ${period}, ${id}, ${sql.csv(add.map((amount) => sql`CAST(${amount} AS BIGINT)`))}, ${now} + ${sql.literal(String(openFor))})`

  /** Deletes what nobody can ask for any more, at most once an hour. */
  let sweptAt = -Infinity
  const sweep = Effect.flatMap(Clock.monotonicTimeNanos, (nanos) => {
    const time = Number(nanos / 1_000_000n)
    if (time - sweptAt < openFor) return Effect.void
    sweptAt = time
    return Effect.ignore(
      Effect.andThen(
        sql`DELETE FROM ledger_open WHERE (account, period, id) IN (SELECT account, period, id FROM ledger_open
          WHERE expires_at < ${now} - ${sql.literal(String(settlesFor))} ORDER BY expires_at LIMIT ${sql.literal(String(sweeps))})`,
        sql`DELETE FROM ledger_sums WHERE (account, period) IN (SELECT account, period FROM ledger_sums
          WHERE gone_at < ${now} ORDER BY gone_at LIMIT ${sql.literal(String(sweeps))})`
      )
    )
  })

  return {
    take: (id, entries) => {
      // No row takes more than all of its room.
      const never = entries.findIndex(({ most }) => most.some((highest) => highest !== undefined && highest < 0))
      if (never >= 0) return Effect.succeed(never)
      const taken = Effect.forEach(
        entries,
        (entry, index) =>
          Effect.flatMap(takeOne(entry), (rows): Effect.Effect<unknown, SqlError | Full> =>
            rows.length > 0 ? hold(id, entry) : Effect.fail<Full>({ _tag: "Full", index })
          ),
        { discard: true }
      )
      return outside(
        Effect.andThen(
          sweep,
          Effect.matchEffect(transaction<void, Full>(taken), {
            onFailure: (error) => ("index" in error ? Effect.succeed(error.index) : Effect.fail(error)),
            onSuccess: () => Effect.undefined
          })
        )
      )
    },

    settle: (id, places, change) => {
      const changed = columns.map(
        (column, index) => sql`${sql.literal(column)} = ${sql.literal(column)} + CAST(${change[index] ?? 0} AS BIGINT)`
      )
      const one = (place: Place) =>
        Effect.flatMap(
          sql`DELETE FROM ledger_open WHERE ${isAt(place)} AND id = ${id} RETURNING 1 AS was`,
          (rows): Effect.Effect<unknown, SqlError> =>
            rows.length === 0 ? Effect.void : sql`UPDATE ledger_sums SET ${sql.csv(changed)} WHERE ${isAt(place)}`
        )
      return outside(transaction<void, never>(Effect.forEach(places, one, { discard: true })))
    },

    read: (place) => {
      const totals = sql.literal(columns.map((column) => `s.${column} AS total_${column}`).join(", "))
      const reserved = sql.literal(columns.map((column) => `sum(o.${column}) AS open_${column}`).join(", "))
      const groups = sql.literal(columns.map((column) => `s.${column}`).join(", "))
      return Effect.mapBoth(
        sql<Columns>`SELECT ${totals}, ${reserved} FROM ledger_sums s
          LEFT JOIN ledger_open o ON o.account = s.account AND o.period = s.period AND o.expires_at > ${now}
          WHERE s.account = ${place.account} AND s.period = ${place.period} GROUP BY ${groups}`,
        {
          onFailure: toFault,
          onSuccess: ([row]) =>
            row === undefined
              ? { total: none, reserved: none }
              : { total: numbers(row, "total_"), reserved: numbers(row, "open_") }
        }
      )
    },

    mark: (name) =>
      Effect.mapBoth(sql<Columns>`SELECT value FROM ledger_marks WHERE name = ${name}`, {
        onFailure: toFault,
        onSuccess: ([row]) => Number(row?.["value"] ?? 0)
      }),

    raise: (name, value) =>
      value === 0
        ? Effect.succeed(false)
        : outside(
            Effect.mapBoth(
              sql`INSERT INTO ledger_marks AS m (name, value) VALUES (${name}, CAST(${value} AS BIGINT))
              ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE m.value < excluded.value RETURNING 1 AS raised`,
              { onFailure: toFault, onSuccess: (rows) => rows.length > 0 }
            )
          )
  }
})
