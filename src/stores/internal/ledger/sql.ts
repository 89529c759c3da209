/** The tables of a ledger in SQLite and Postgres. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { MigrationError } from "effect/sql/Migrator"
import { SqlClient } from "effect/sql/SqlClient"
import type { Row as Columns } from "effect/sql/SqlConnection"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { Statement } from "effect/sql/Statement"
import { failLate, type Problem } from "../../../support/store/problem.ts"
import { isPostgres, migrate, textType, transaction } from "../../../support/store/sql.ts"
import { type Entry, keptFor, openFor, type Place, type Row, settlesFor, type Tables } from "./tables.ts"

/** The columns of a row, in its order. */
const columns = ["model_calls", "tool_calls", "tokens", "cost"] as const

const sums = columns.map((column) => `${column} BIGINT NOT NULL`).join(", ")

const versions = (text: string) => [
  [
    `CREATE TABLE ledger_sums (
      account ${text} NOT NULL, period ${text} NOT NULL, ${sums}, gone_at BIGINT, PRIMARY KEY (account, period)
    )`,
    "CREATE INDEX ledger_sums_gone ON ledger_sums (gone_at) WHERE gone_at IS NOT NULL",
    `CREATE TABLE ledger_open (
      account ${text} NOT NULL, period ${text} NOT NULL, id ${text} NOT NULL, ${sums}, expires_at BIGINT NOT NULL,
      PRIMARY KEY (account, period, id)
    )`,
    "CREATE INDEX ledger_open_expires ON ledger_open (expires_at)",
    `CREATE TABLE ledger_marks (name ${text} PRIMARY KEY, value BIGINT NOT NULL)`
  ]
]

const toProblem = (cause: SqlError | MigrationError): Problem => ({ problem: cause.message, cause })

/** The index of an entry that does not fit. As a failure, it rolls the transaction back. */
interface Full {
  readonly _tag: "Full"
  readonly index: number
}

/** The rows that one sweep deletes. */
const sweeps = 1000

/** Migrates the database of a client, and makes its tables. */
export const make: Effect.Effect<Tables, Problem, SqlClient> = Effect.gen(function* () {
  const sql = (yield* SqlClient).withoutTransforms()
  yield* Effect.mapError(
    migrate(sql, { table: "ledger_migrations", name: "ledger", versions: versions(textType(sql)) }),
    toProblem
  )

  /** Milliseconds by the clock of the database, which all processes share. */
  const now = sql.literal(
    isPostgres(sql)
      ? "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"
      : "CAST(unixepoch('subsec') * 1000 AS INTEGER)"
  )
  const names = sql.literal(columns.join(", "))

  const nested: Problem = {
    problem:
      "it is used inside of a transaction of its SqlClient, and a rollback would take back what was spent; use it outside, or give it a client of its own"
  }

  /** Writes, unless the caller is in a transaction. */
  const outside = <A>(write: Effect.Effect<A, Problem>): Effect.Effect<A, Problem> =>
    failLate(
      Effect.flatMap(Effect.serviceOption(sql.transactionService), (connection) =>
        Option.isSome(connection) ? Effect.fail(nested) : write
      )
    )

  const query = <A>(statement: Statement<Columns>, read: (row: Columns | undefined) => A): Effect.Effect<A, Problem> =>
    failLate(Effect.mapBoth(statement, { onFailure: toProblem, onSuccess: ([row]) => read(row) }))

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

  /** Deletes expired rows, at most once an hour. */
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
      // No sum is below 0.
      const never = entries.findIndex(({ most }) => most.some((highest) => highest !== undefined && highest < 0))
      if (never >= 0) return Effect.succeed(never)
      const takeAll = Effect.forEach(
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
          Effect.matchEffect(transaction(sql)(takeAll), {
            onFailure: (error) => (isSqlError(error) ? Effect.fail(toProblem(error)) : Effect.succeed(error.index)),
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
      return outside(Effect.mapError(transaction(sql)(Effect.forEach(places, one, { discard: true })), toProblem))
    },

    read: (place) => {
      const totals = sql.literal(columns.map((column) => `s.${column} AS total_${column}`).join(", "))
      const reserved = sql.literal(columns.map((column) => `sum(o.${column}) AS open_${column}`).join(", "))
      const groups = sql.literal(columns.map((column) => `s.${column}`).join(", "))
      return query(
        sql<Columns>`SELECT ${totals}, ${reserved} FROM ledger_sums s
          LEFT JOIN ledger_open o ON o.account = s.account AND o.period = s.period AND o.expires_at > ${now}
          WHERE s.account = ${place.account} AND s.period = ${place.period} GROUP BY ${groups}`,
        (row) => ({ total: numbers(row, "total_"), reserved: numbers(row, "open_") })
      )
    },

    mark: (name) =>
      query(sql<Columns>`SELECT value FROM ledger_marks WHERE name = ${name}`, (row) => Number(row?.["value"] ?? 0)),

    raise: (name, value) =>
      value === 0
        ? Effect.succeed(false)
        : outside(
            Effect.mapBoth(
              sql`INSERT INTO ledger_marks AS m (name, value) VALUES (${name}, CAST(${value} AS BIGINT))
              ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE m.value < excluded.value RETURNING 1 AS raised`,
              { onFailure: toProblem, onSuccess: (rows) => rows.length > 0 }
            )
          )
  }
})
