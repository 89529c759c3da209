import assert from "node:assert/strict"
import { test } from "node:test"
import { Effect, Layer } from "effect"
import { SessionStore } from "effect-deepagents/sessions"
import * as SqlSessions from "effect-deepagents/sessions/SqlSessions"
import { TestChatModel } from "effect-deepagents/testing"
import { SqlClient } from "effect/sql"
import { embedded } from "../src/database.ts"
import { add, prepare, step } from "../src/worker.ts"

test("it does each job once", async () => {
  const sessions = SessionStore.journal.pipe(Layer.provideMerge(SqlSessions.layer))
  const program = Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* prepare
    yield* add("a")
    yield* add("b")
    const did = yield* Effect.all([step, step, step], { concurrency: 3 })
    const rows = yield* sql<{ output: string }>`SELECT output FROM jobs ORDER BY id`
    return { did: did.filter((one) => one).length, outputs: rows.map(({ output }) => output) }
  })
  const services = Layer.mergeAll(
    sessions,
    TestChatModel.reactive(() => "Three sentences.")
  ).pipe(Layer.provideMerge(embedded()))
  assert.deepEqual(await Effect.runPromise(Effect.provide(program, services)), {
    did: 2,
    outputs: ["Three sentences.", "Three sentences."]
  })
})
