/** The Postgres of DATABASE_URL. Without it, a Postgres inside this process keeps its data in the folder `jobs-db`. */
import * as PgClient from "@effect/sql-pg/PgClient"
import { PGlite } from "@electric-sql/pglite"
import { PGLiteSocketServer } from "@electric-sql/pglite-socket"
import { Config, Console, Effect, Layer, Redacted } from "effect"

/** An embedded Postgres for one process. `dataDir` keeps its data; without a folder it is in memory. */
export const embedded = (dataDir?: string) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const db = yield* Effect.acquireRelease(
        Effect.promise(() => PGlite.create(dataDir)),
        (db) => Effect.promise(() => db.close())
      )
      const server = yield* Effect.acquireRelease(
        Effect.promise(async () => {
          const server = new PGLiteSocketServer({ db, port: 0, maxConnections: 4 })
          await server.start()
          return server
        }),
        (server) => Effect.promise(() => server.stop())
      )
      const url = Redacted.make(`postgres://postgres:postgres@${server.getServerConn()}/postgres`)
      return PgClient.layer({ url, maxConnections: 4 })
    })
  )

export const database = Layer.unwrap(
  Effect.gen(function* () {
    const url = yield* Config.withDefault(Config.Redacted("DATABASE_URL"), Redacted.make(""))
    if (Redacted.value(url) !== "") return PgClient.layer({ url })
    yield* Console.error("DATABASE_URL is not set, so the jobs are in an embedded Postgres, in the folder jobs-db.")
    return embedded("jobs-db")
  })
)
