/** The index of waiting threads is the truth: after any operations it equals the result of reading all threads. */
import { cpSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import * as NodeRedis from "@effect/platform-node/NodeRedis"
import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, it, layer, type Vitest } from "@effect/vitest"
import { Effect, Layer, Redacted, type Scope } from "effect"
import { Approval, Checkpoint, Message, Usage } from "effect-deepagents"
import { SessionStore } from "effect-deepagents/sessions"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
import { Redis } from "effect/persistence"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { selectWaiting, selectWaitingFor } from "../../src/sessions/internal/sql/waits.ts"
import { loadThread } from "../../src/sessions/journal.ts"
import { isFull, scaled } from "../scale.ts"
import { hasRedis } from "../servers/redis.ts"
import * as places from "./places.ts"

const request = (id: string, at: number, rule?: string): Approval.Request => ({
  id,
  runId: "r",
  callId: "c",
  path: ["clerk"],
  toolName: "pay",
  arguments: { amount: at },
  description: "Pays",
  allow: ["approve", "reject"],
  at,
  ...(rule === undefined ? {} : { rule })
})

const suspension = (messageId: string, open: ReadonlyArray<string>, decided: ReadonlyArray<string>) => ({
  messageId,
  requests: [
    ...[...open, ...decided].map((id) => request(id, id.charCodeAt(1) % 3)),
    request("time", 0, Approval.byTime)
  ],
  decisions: decided.map((id) => ({ _tag: "Approve" as const, id })),
  waiting: [],
  answers: [],
  unknown: []
})

const requestIds = ["q1", "q2", "q3", "q4"]
const calls = ["a", "b"]

/** A suspension about a turn: the last one of the path or of the appended entries, or an earlier one. */
interface Suspended {
  readonly _tag: "Suspended"
  readonly back: number
  readonly open: ReadonlyArray<string>
  readonly decided: ReadonlyArray<string>
}

const entry: fc.Arbitrary<SessionStore.NewEntry["entry"] | Suspended> = fc.oneof(
  fc.constant({ _tag: "Message", message: Message.human("x") } as const),
  fc.subarray(calls).map((ids) => {
    const toolCalls = ids.map((id) => ({ id, name: "pay", arguments: {} }))
    return { _tag: "Message", message: Message.ai("", { toolCalls }) } as const
  }),
  fc
    .constantFrom(...calls)
    .map((toolCallId) => ({ _tag: "Message", message: Message.tool("x", { toolCallId, toolName: "pay" }) }) as const),
  fc.record({
    _tag: fc.constant("Suspended" as const),
    back: fc.constantFrom(0, 0, 0, 1, 2),
    open: fc.subarray(requestIds),
    decided: fc.subarray(requestIds)
  }),
  fc.constantFrom(
    { _tag: "State", slot: "suspension", value: null } as const,
    { _tag: "State", slot: "suspension" } as const,
    { _tag: "State", slot: "suspension", value: "unreadable" } as const,
    { _tag: "State", slot: "todos", value: 1 } as const,
    { _tag: "Step", usage: Usage.zero, rounds: 1 } as const,
    { _tag: "RunStarted", runId: "r", agent: "clerk" } as const,
    { _tag: "RunSettled", runId: "r", outcome: "suspended" } as const,
    { _tag: "Part", turn: "p", model: "m", pieces: [{ _tag: "Text", from: 0, text: "x" }] } as const
  )
)

const turnsOf = (entries: ReadonlyArray<SessionStore.Entry | Suspended>): ReadonlyArray<string> =>
  entries.flatMap((one) => (one._tag === "Message" && one.message.role !== "tool" ? [one.message.id] : []))

const threadId = fc.constantFrom("t", "u", "v")
const place = fc.option(fc.nat(30), { nil: null })

const operation = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constant("append" as const),
      threadId,
      behind: fc.option(place, { nil: undefined, freq: 6 }),
      entries: fc.array(entry, { minLength: 1, maxLength: 5 })
    })
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("rewind" as const), threadId, to: place }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("fork" as const), threadId, to: threadId }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("copy" as const), threadId, to: threadId }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("archive" as const), threadId }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("unarchive" as const), threadId }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("delete" as const), threadId }) }
)
type Operation = typeof operation extends fc.Arbitrary<infer A> ? A : never

let made = 0

const perform = Effect.fnUntraced(function* (store: SessionStore.Service, step: Operation) {
  const id = step.threadId
  yield* Effect.ignore(store.create({ threadId: id }))
  const knownEntries = (yield* store.load(id, { limit: 40 })).entries
  const at = (number: number | null) =>
    number === null ? null : (knownEntries.at(number % (knownEntries.length + 1))?.id ?? null)
  switch (step.do) {
    case "append": {
      const named = step.entries.map((one) =>
        one._tag === "Message" ? { ...one, message: { ...one.message, id: `m${made++}` } } : one
      )
      const turns = turnsOf([...knownEntries.map((stored) => stored.entry), ...named])
      const entries = named.map((one) => ({
        id: `e${String(made++).padStart(9, "0")}`,
        entry:
          one._tag === "Suspended"
            ? {
                _tag: "State" as const,
                slot: "suspension",
                value: suspension(
                  turns.at(-1 - one.back) ?? "none",
                  one.open.filter((request) => !one.decided.includes(request)),
                  one.decided
                )
              }
            : one
      }))
      const behind = step.behind === undefined ? {} : { behind: at(step.behind) }
      return yield* Effect.asVoid(store.append(id, { leaf: knownEntries.at(-1)?.id ?? null, entries, ...behind }))
    }
    case "rewind":
      return yield* Effect.asVoid(store.rewind(id, at(step.to)))
    case "fork":
      return yield* Effect.asVoid(store.fork(id, { threadId: step.to }))
    case "copy":
      return yield* Effect.asVoid(store.import(store.export(id), { threadId: step.to }))
    case "archive":
    case "unarchive":
    case "delete":
      return yield* store[step.do](id)
  }
})

/** All pages of waiting threads. */
const waiting = Effect.fnUntraced(function* (store: SessionStore.Service, limit: number) {
  const found: Array<SessionStore.WaitingRequest> = []
  let cursor: string | undefined
  do {
    const page: SessionStore.Listing<SessionStore.WaitingRequest> = yield* store.waiting({
      limit,
      ...(cursor === undefined ? {} : { cursor })
    })
    found.push(...page.items)
    cursor = page.next ?? undefined
  } while (cursor !== undefined)
  return found
})

/** The result of reading all threads. */
const truth = Effect.fnUntraced(function* (store: SessionStore.Service) {
  const found: Array<SessionStore.WaitingRequest> = []
  for (const thread of (yield* store.list({ limit: 1_000 })).items) {
    const { checkpoint } = yield* loadThread(store, thread.threadId)
    if (checkpoint === undefined) continue
    for (const one of yield* Effect.orElseSucceed(Checkpoint.pending(checkpoint), () => [])) {
      if (one.rule !== Approval.byTime) found.push({ threadId: thread.threadId, request: one })
    }
  }
  const order = ({ request: { at, id }, threadId: thread }: SessionStore.WaitingRequest) => `${at} ${id} ${thread}`
  return found.sort((left, right) => (order(left) < order(right) ? -1 : 1))
})

const agrees = Effect.fnUntraced(function* (store: SessionStore.Service) {
  const expected = yield* truth(store)
  assert.deepStrictEqual(yield* waiting(store, 2), expected)
  for (const id of requestIds) {
    assert.deepStrictEqual(
      yield* store.waitingFor(id),
      expected.find((one) => one.request.id === id)
    )
  }
  assert.deepStrictEqual(
    (yield* store.waiting({ threadId: "t" })).items,
    expected.filter((one) => one.threadId === "t")
  )
  return expected
})

type Layers = Layer.Layer<SessionStore.SessionStore, unknown>

const open = (sessions: Layers) =>
  Effect.map(Layer.build(Layer.fresh(Layer.orDie(sessions))), (context) =>
    Effect.runSync(Effect.provide(SessionStore.SessionStore, context))
  )

/** Invariants of any operations, by two processes in turn if there can be two. */
const hold = <P, R>(
  name: string,
  subject: { readonly place: Effect.Effect<P, never, R | Scope.Scope>; readonly layer: (place: P) => Layers },
  runs: number,
  test: Vitest.Tester<R | Scope.Scope>,
  processes = 2
) =>
  test(
    `${name} equals the result of reading all threads`,
    Effect.fnUntraced(function* () {
      const context = yield* Effect.context<R | Scope.Scope>()
      let waited = 0
      yield* Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(
            fc.array(fc.tuple(operation, fc.nat(processes - 1)), { minLength: 5, maxLength: 40 }),
            (steps) =>
              Effect.gen(function* () {
                const sessions = subject.layer(yield* subject.place)
                const stores = yield* Effect.replicateEffect(open(sessions), processes)
                for (const [step, process] of steps) {
                  const store = stores[process] ?? assert.fail("no store")
                  yield* Effect.ignore(perform(store, step))
                  waited += (yield* agrees(store)).length
                }
              }).pipe(Effect.scoped, Effect.provide(TestClock.layer()), Effect.runPromiseWith(context))
          ),
          { numRuns: scaled(runs) }
        )
      )
      // A few runs may draw no step that waits.
      if (isFull) assert.isAbove(waited, 0)
    }),
    120_000
  )

describe("waiting threads", () => {
  hold("memory", places.memory, 240, it.effect, 1)
  hold("SQLite", places.sqlite, 64, it.effect)
  hold("another client of SQLite", places.foreignSqlite, 24, it.effect)
  hold("JSON lines", places.jsonl, 40, it.effect)
})
layer(places.Postgres.layer, { timeout: 60_000 })("what waits on Postgres", (it) => {
  hold("Postgres", places.postgres, 24, it.effect)

  it.effect("a database of before has its threads indexed, page by page", () =>
    Effect.gen(function* () {
      const at = yield* places.postgres.place
      const expected = yield* Effect.scoped(Effect.flatMap(open(places.postgres.layer(at)), filled))
      yield* SqlClient.SqlClient.use((sql) =>
        Effect.all([sql`DELETE FROM session_waits`, sql`INSERT INTO session_waits_upto VALUES (0)`])
      ).pipe(Effect.provide(client(at)))
      const store = yield* open(places.postgres.layer(at))
      assert.deepStrictEqual(yield* agrees(store), expected)
    })
  )

  it.effect("reads the list of waiting threads, and a request by its id, from the index and from no thread", () =>
    Effect.gen(function* () {
      const at = yield* places.postgres.place
      yield* open(places.postgres.layer(at))
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`INSERT INTO session_waits SELECT i, 'q' || i, i, 't' || i, 0, '{}' FROM generate_series(1, 20000) i`
        yield* sql`ANALYZE session_waits`
        const after = { at: 9_000, requestId: "q9000", threadId: "t9000" }
        for (const [statement, index] of [
          [selectWaiting(sql, { limit: 51, after: undefined, threadId: undefined }), "session_waits_at"],
          [selectWaiting(sql, { limit: 51, after, threadId: undefined }), "session_waits_at"],
          [selectWaitingFor(sql, "q77"), "session_waits_request"]
        ] as const) {
          const plan = JSON.stringify(yield* sql`EXPLAIN ${statement}`)
          assert.include(plan, `Index Scan using ${index}`)
          assert.notInclude(plan, "Sort")
          assert.notInclude(plan, "session_threads")
        }
      }).pipe(Effect.provide(client(at)))
    })
  )
})
describe.skipIf(!hasRedis)("on Redis", () => {
  layer(places.RedisServer.layer, { timeout: 60_000 })("what waits on Redis", (it) => {
    hold("Redis", places.redis, 40, it.effect)

    it.effect("keys of before have their threads indexed, page by page", () =>
      Effect.gen(function* () {
        const at = yield* places.redis.place
        const expected = yield* Effect.scoped(Effect.flatMap(open(places.redis.layer(at)), filled))
        yield* Redis.Redis.use((server) =>
          Effect.gen(function* () {
            for (const name of ["waits:0", "waits:1", "asked", "asks", "waits:upto"]) {
              yield* server.send("DEL", `${at.name}${name}`)
            }
          })
        ).pipe(Effect.provide(NodeRedis.layer({ url: at.url })))
        const store = yield* open(places.redis.layer(at))
        assert.deepStrictEqual(yield* agrees(store), expected)
      })
    )
  })
})

const client = ({ name, url }: { readonly name: string; readonly url: string }) =>
  PgClient.layer({ url: Redacted.make(url), startupParameters: { search_path: name } })

/** Fills a store with threads, of which some wait. */
const filled = Effect.fnUntraced(function* (store: SessionStore.Service) {
  const fill = Effect.fnUntraced(function* (n: number) {
    const id = `t${n}`
    yield* store.create({ threadId: id })
    const waits = n % 100 === 0
    yield* store.append(id, {
      leaf: null,
      entries: [
        {
          id: `${id}-1`,
          entry: {
            _tag: "Message",
            message: Message.ai("", { id: "m1", toolCalls: [{ id: "a", name: "pay", arguments: {} }] })
          }
        },
        ...(waits
          ? [
              {
                id: `${id}-2`,
                entry: { _tag: "State", slot: "suspension", value: suspension("m1", [`q${n}`], []) } as const
              }
            ]
          : []),
        { id: `${id}-3`, entry: { _tag: "RunSettled", runId: "r", outcome: waits ? "suspended" : "completed" } }
      ]
    })
  })
  yield* Effect.forEach(
    Array.from({ length: 700 }, (_, n) => n),
    fill,
    { concurrency: 50, discard: true }
  )
  yield* store.archive("t100")
  const expected = yield* agrees(store)
  assert.strictEqual(expected.length, 6)
  return expected
})

describe("waiting threads in an SQLite file", () => {
  it.effect("of before is indexed, page by page", () =>
    Effect.gen(function* () {
      const file = yield* places.sqlite.place
      const expected = yield* Effect.scoped(Effect.flatMap(open(places.sqlite.layer(file)), filled))
      const database = new DatabaseSync(file)
      database.exec("DELETE FROM session_waits; INSERT INTO session_waits_upto VALUES (0)")
      database.close()
      const store = yield* open(places.sqlite.layer(file))
      assert.deepStrictEqual(yield* agrees(store), expected)
      yield* store.unarchive("t100")
      assert.strictEqual((yield* agrees(store)).length, 7)
    })
  )

  it.effect("of every earlier version is indexed", () =>
    Effect.gen(function* () {
      const corpus = join(import.meta.dirname, "corpus")
      for (const version of readdirSync(corpus)) {
        const file = yield* places.sqlite.place
        cpSync(join(corpus, version, "threads.db"), file)
        const store = yield* open(places.sqlite.layer(file))
        assert.isAbove((yield* agrees(store)).length, 0)
      }
    })
  )

  it.effect("is read from the index, and no thread is", () =>
    Effect.gen(function* () {
      const file = yield* places.sqlite.place
      yield* open(places.sqlite.layer(file))
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const after = { at: 9_000, requestId: "q9000", threadId: "t9000" }
        for (const [statement, index] of [
          [selectWaiting(sql, { limit: 51, after: undefined, threadId: undefined }), "session_waits_at"],
          [selectWaiting(sql, { limit: 51, after, threadId: undefined }), "session_waits_at"],
          [selectWaitingFor(sql, "q77"), "session_waits_request"]
        ] as const) {
          const plan = yield* sql<{ detail: string }>`EXPLAIN QUERY PLAN ${statement}`
          assert.strictEqual(plan.length, 1)
          assert.match(plan[0]?.detail ?? "", new RegExp(`session_waits USING INDEX ${index}`))
        }
      }).pipe(Effect.provide(SqliteClient.layer({ file })))
    })
  )
})
