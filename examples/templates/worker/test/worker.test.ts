import assert from "node:assert/strict"
import { test } from "node:test"
import * as PgClient from "@effect/sql-pg/PgClient"
import { Effect, Layer, Redacted } from "effect"
import { SessionStore } from "effect-deepagents/sessions"
import * as SqlSessions from "effect-deepagents/sessions/SqlSessions"
import { TestChatModel } from "effect-deepagents/testing"
import { SqlClient } from "effect/sql"
import { prepare, step } from "../src/worker.ts"

const url = process.env["DATABASE_URL"]

test("it does each job once", { skip: url === undefined ? "DATABASE_URL is not set" : false }, async () => {
  const database = PgClient.layer({ url: Redacted.make(url ?? "") })
  const sessions = SessionStore.journal.pipe(Layer.provideMerge(SqlSessions.layer))
  const program = Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* prepare
    yield* sql`DELETE FROM jobs`
    yield* sql`INSERT INTO jobs (input) VALUES ('a'), ('b')`
    const did = yield* Effect.all([step, step, step], { concurrency: 3 })
    const rows = yield* sql<{ output: string }>`SELECT output FROM jobs ORDER BY id`
    return { did: did.filter((one) => one).length, outputs: rows.map(({ output }) => output) }
  })
  const services = Layer.mergeAll(
    sessions,
    TestChatModel.reactive(() => "Three sentences.")
  ).pipe(Layer.provideMerge(database))
  assert.deepEqual(await Effect.runPromise(Effect.provide(program, services)), {
    did: 2,
    outputs: ["Three sentences.", "Three sentences."]
  })
})
