/** A Postgres 18 with pgvector inside the process, from the npm packages `pglite` and `pglite-pgvector`: one connection. */
import * as PgClient from "@effect/sql-pg/PgClient"
import { PGlite } from "@electric-sql/pglite"
import { vector } from "@electric-sql/pglite-pgvector"
import { Effect, Layer, Semaphore, Stream } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient, type SqlConnection, SqlError } from "effect/sql"

const connect = (db: PGlite): SqlConnection.Connection => {
  const query = (statement: string, params: ReadonlyArray<unknown>) =>
    Effect.tryPromise({
      try: async () => (await db.query<Record<string, unknown>>(statement, [...params])).rows,
      catch: (cause) => new SqlError.SqlError({ reason: new SqlError.UnknownError({ cause }) })
    })
  return {
    execute: query,
    executeUnprepared: query,
    executeRaw: query,
    executeValues: (statement, params) => Effect.map(query(statement, params), (rows) => rows.map(Object.values)),
    executeValuesUnprepared: (statement, params) =>
      Effect.map(query(statement, params), (rows) => rows.map(Object.values)),
    executeStream: () => Stream.die("there is no stream")
  }
}

/** A server of its own, in memory. Seconds to start: about two. */
export const pglite = Effect.acquireRelease(
  Effect.promise(() => PGlite.create({ extensions: { vector } })),
  (db) => Effect.promise(() => db.close())
)

let schemas = 0

/** A client of a server, with tables in a schema of its own. */
export const onPglite = (db: PGlite) =>
  Layer.effect(
    SqlClient.SqlClient,
    Effect.gen(function* () {
      const schema = `s${schemas++}`
      yield* Effect.promise(() =>
        db.exec(
          `CREATE SCHEMA ${schema}; SET search_path = ${schema}, public; CREATE EXTENSION IF NOT EXISTS vector SCHEMA public`
        )
      )
      const semaphore = yield* Semaphore.make(1)
      return yield* SqlClient.make({
        ...SqlClient.makeSqliteAcquirers({ connection: Effect.succeed(connect(db)), semaphore }),
        compiler: PgClient.makeCompiler(),
        driver: "pg",
        spanAttributes: []
      })
    })
  ).pipe(Layer.provide(Reactivity.layer))
