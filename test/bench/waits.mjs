// Measures the inbox over many idle threads, of which some wait:
//   node --conditions=@effect-deepagents/source test/bench/waits.mjs sqlite|postgres [threads] [waiting]
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as PgClient from "@effect/sql-pg/PgClient"
import { Approval } from "effect-deepagents"
import { Inbox } from "effect-deepagents/rules"
import { SessionStore } from "effect-deepagents/sessions"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
import * as SqlSessions from "effect-deepagents/sessions/SqlSessions"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { SqlClient } from "effect/sql"
import { postgres } from "../servers/postgres.ts"

const [kind = "sqlite", threads = "1000000", waiting = "1000"] = process.argv.slice(2)
const [idle, waits] = [Number(threads), Number(waiting)]
const folder = mkdtempSync(join(tmpdir(), "waits-"))

const request = (n) => ({
  ...{ id: `q${n}`, runId: "r", callId: "c", path: ["clerk"], toolName: "pay", arguments: { amount: n, to: "DE1" } },
  ...{ description: `Pays ${n}`, allow: ["approve", "reject"], at: n }
})

const fill = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const isPostgres = kind === "postgres"
  const columns = `id, created_at, updated_at, metadata, archived, leaf_id, step${isPostgres ? "" : ", listed"}`
  const values = `'idle-' || i, i, i, '{}', 0, 'e' || i, 5${isPostgres ? "" : ", i"}`
  yield* sql.unsafe(
    isPostgres
      ? `INSERT INTO session_threads (${columns}) SELECT ${values} FROM generate_series(1, ${idle}) i`
      : `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${idle})
          INSERT INTO session_threads (${columns}) SELECT ${values} FROM n`
  )
  const store = yield* SessionStore.SessionStore
  for (let n = 0; n < waits; n++) {
    const call = { id: "c", name: "pay", arguments: {} }
    const message = {
      role: "ai",
      id: "m",
      content: [],
      toolCalls: [call],
      malformedToolCalls: [],
      stopReason: "toolCalls"
    }
    const value = { messageId: "m", requests: [request(n)], decisions: [], waiting: [], answers: [], unknown: [] }
    yield* store.create({ threadId: `waits-${n}` })
    yield* store.append(`waits-${n}`, {
      leaf: null,
      entries: [
        { id: "e1", entry: { _tag: "Message", message } },
        { id: "e2", entry: { _tag: "State", slot: "suspension", value } }
      ]
    })
  }
})

const timed = Effect.fnUntraced(function* (name, count, body) {
  const times = []
  for (let n = 0; n < count; n++) {
    const start = performance.now()
    yield* body(n)
    times.push(performance.now() - start)
  }
  times.sort((left, right) => left - right)
  const at = (part) => times[Math.floor((count - 1) * part)].toFixed(2)
  console.log(`${kind} ${name}: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`)
})

const program = Effect.gen(function* () {
  const start = performance.now()
  yield* fill
  console.log(`${kind}: ${idle} idle threads, ${waits} that wait, in ${Math.round(performance.now() - start)} ms`)
  const store = yield* SessionStore.SessionStore
  const { claim, decide, list } = yield* Inbox.Inbox
  const by = { id: "ada" }
  yield* timed("first page of 50", 100, () => store.waiting())
  yield* timed("list, all", 30, () => list())
  yield* timed("claim", 100, (n) => claim(`q${n}`, { by }))
  yield* timed("decide", 100, (n) => decide([Approval.approve(request(n))], { by }))
}).pipe(Effect.provide(Inbox.layer({ deliver: () => Effect.void })))

const database =
  kind === "postgres"
    ? Layer.unwrap(Effect.map(postgres, (url) => PgClient.layer({ url: Redacted.make(url) })))
    : SqliteClient.layer({ file: join(folder, "waits.db") })

await Effect.runPromise(
  Effect.scoped(Effect.provide(program, SqlSessions.layer.pipe(Layer.provideMerge(database))))
).finally(() => rmSync(folder, { recursive: true, force: true }))
