/** A table of rows in a SQL database. */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type { MigrationError } from "effect/sql/Migrator"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { migrate, textType, transaction } from "../../support/store/sql.ts"
import type { Fault, Row, Table } from "./table.ts"

const versions = (text: string) => [
  [
    `CREATE TABLE effect_deepagents_rows (
      store ${text} NOT NULL, space ${text} NOT NULL, id ${text} NOT NULL, body TEXT NOT NULL,
      PRIMARY KEY (store, space, id)
    )`
  ]
]

const toFault = (cause: SqlError | MigrationError): Fault => ({
  reason: "Unavailable",
  problem: cause.message,
  cause
})

/** The rows of one statement: databases bound the number of parameters. */
const batch = 500

/** The last row of each key: a statement can't set a row twice. */
const unique = (rows: ReadonlyArray<Row>): ReadonlyArray<Row> => [
  ...new Map(rows.map((row) => [row.key, row])).values()
]

/** Migrates the database of a client, and gives its tables. */
export const make = Effect.gen(function* () {
  const sql = (yield* SqlClient).withoutTransforms()
  const table = "effect_deepagents_stores_migrations"
  yield* Effect.mapError(migrate(sql, { table, name: "rows", versions: versions(textType(sql)) }), toFault)

  return (store: string): Table => {
    const fault = Effect.mapError(toFault)
    const inSpace = (space: string) => sql`store = ${store} AND space = ${space}`
    const row = (space: string, id: string) => sql`${inSpace(space)} AND id = ${id}`
    const hasChanged = (statement: Effect.Effect<ReadonlyArray<unknown>, SqlError>) =>
      fault(Effect.map(statement, (rows) => rows.length > 0))
    const insert = (space: string, rows: Arr.NonEmptyReadonlyArray<Row>) =>
      sql`INSERT INTO effect_deepagents_rows ${sql.insert(
        Arr.map(rows, ({ key, value }) => ({ store, space, id: key, body: value }))
      )}`
    return {
      get: (space, key) =>
        fault(
          Effect.map(
            sql<{ body: string }>`SELECT body FROM effect_deepagents_rows WHERE ${row(space, key)}`,
            (rows) => rows[0]?.body
          )
        ),
      put: (space, rows) => {
        const statements = Arr.chunksOf(unique(rows), batch).map(
          (part) => sql`${insert(space, part)} ON CONFLICT (store, space, id) DO UPDATE SET body = excluded.body`
        )
        const all: Effect.Effect<void, SqlError> = Effect.all(statements, { discard: true })
        return fault(statements.length > 1 ? transaction(sql)(all) : all)
      },
      swap: (space, key, expected, next) => {
        if (expected === undefined) {
          return next === undefined
            ? hasChanged(sql`SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM effect_deepagents_rows WHERE ${row(space, key)})`)
            : hasChanged(sql`${insert(space, [{ key, value: next }])} ON CONFLICT DO NOTHING RETURNING id`)
        }
        const condition = sql`${row(space, key)} AND body = ${expected}`
        return next === undefined
          ? hasChanged(sql`DELETE FROM effect_deepagents_rows WHERE ${condition} RETURNING id`)
          : hasChanged(sql`UPDATE effect_deepagents_rows SET body = ${next} WHERE ${condition} RETURNING id`)
      },
      scan: (space, { after, limit, reverse }) => {
        const compare = sql.literal(reverse === true ? "<" : ">")
        const order = sql.literal(reverse === true ? "DESC" : "ASC")
        const behind = after === undefined ? sql`` : sql`AND id ${compare} ${after}`
        return fault(
          sql<Row>`SELECT id AS key, body AS value FROM effect_deepagents_rows
            WHERE ${inSpace(space)} ${behind} ORDER BY id ${order} LIMIT ${limit}`
        )
      },
      count: (space) =>
        fault(
          Effect.map(
            sql<{ count: unknown }>`SELECT count(*) AS count FROM effect_deepagents_rows WHERE ${inSpace(space)}`,
            (rows) => Number(rows[0]?.count)
          )
        ),
      clear: (space) => fault(Effect.asVoid(sql`DELETE FROM effect_deepagents_rows WHERE ${inSpace(space)}`))
    }
  }
})
