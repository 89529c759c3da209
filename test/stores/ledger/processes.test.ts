/** Invariants of several processes that spend from one account, and of their ends by `kill -9`. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Redacted, Schedule } from "effect"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
import { Ledger } from "effect-deepagents/stores"
import * as RedisLedger from "effect-deepagents/stores/RedisLedger"
import { Redis } from "effect/persistence"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { bundle } from "../../bundle.ts"
import { runChild } from "../../child.ts"
import { isFull } from "../../scale.ts"
import { hasRedis } from "../../servers/redis.ts"
import type { Place } from "../../sessions/children/stores.ts"
import { aPrefix, aSchema, Postgres, RedisServer } from "../../sessions/places.ts"
import { folder } from "../places.ts"
import * as places from "./places.ts"

const max = 20_000

/** Runs a process to its end, or for so many lines. */
const run = (args: ReadonlyArray<string>, lines: number) =>
  Effect.map(
    runChild(bundle(new URL("../children/ledger.ts", import.meta.url)), args, (text, child) => {
      if (text.split("\n").length > lines) child.kill("SIGKILL")
    }),
    ({ text }) => text
  )

/** The least and the most that an account can have spent, by the acknowledged operations. */
const bounds = (text: string, account: string) => {
  const wants = new Map<string, number>()
  const least = new Map<string, number>()
  const most = new Map<string, number>()
  for (const line of text.split("\n").slice(0, -1)) {
    const [word, id = "", one = "", two = ""] = line.split(" ")
    if (word === "want" && one.split("+").includes(account)) {
      wants.set(id, Number(two))
      most.set(id, Number(two))
    }
    if (!wants.has(id)) continue
    if (word === "none") most.set(id, 0)
    if (word === "used") {
      least.set(id, Number(one))
      most.set(id, Number(one))
    }
  }
  const sum = (values: Iterable<number>) => [...values].reduce((total, value) => total + value, 0)
  return { least: sum(least.values()), most: sum(most.values()) }
}

const chaos = Effect.fnUntraced(function* <E>(
  kind: string,
  path: string,
  layer: Layer.Layer<Ledger.Ledger, E>,
  processes: number
) {
  const ledger = Context.get(yield* Layer.build(Layer.fresh(layer)), Ledger.Ledger)
  const total = (account: string) =>
    Effect.map(ledger.spent(account, "ever"), ({ reserved, used }) => used.tokens + reserved.tokens)
  const watching = yield* Effect.forkChild(
    Effect.repeat(
      Effect.gen(function* () {
        for (const account of ["p", "t"]) assert.isAtMost(yield* total(account), max)
      }),
      Schedule.spaced("5 millis")
    )
  )
  const texts = yield* Effect.forEach(
    Array.from({ length: processes }, (_, index) => index),
    (index) =>
      // Every other one is killed, and their clocks are hours apart.
      run([kind, path, `n${index}`, "60", String(index * 7_200_000)], index % 2 === 0 ? 150 : Infinity),
    { concurrency: "unbounded" }
  )
  const exit = watching.pollUnsafe()
  yield* Fiber.interrupt(watching)
  assert.isTrue(exit === undefined || Exit.isSuccess(exit), String(exit))
  const text = texts.join("")
  assert.include(text, "used ")
  for (const account of ["p", "t"]) {
    const { least, most } = bounds(text, account)
    const sum = yield* total(account)
    assert.isAtMost(sum, max)
    assert.isAtLeast(sum, least, "no settlement that was acknowledged is lost")
    assert.isAtMost(sum, most, "nothing is counted that nobody reserved")
  }
})

const withServer = (path: string, place: Place) =>
  Effect.sync(() => writeFileSync(join(path, "server.json"), JSON.stringify(place)))

const processes = isFull ? 6 : 2

describe("processes that spend from one account", () => {
  it.live(
    "pass no cap on SQLite, killed or not",
    Effect.fnUntraced(function* () {
      const path = yield* folder
      yield* chaos("sqlite", path, places.sqlite.layer(join(path, "ledger.db")), processes)
    }),
    120_000
  )

  it.live.skipIf(!isFull)(
    "pass no cap on Postgres, killed or not",
    Effect.fnUntraced(function* () {
      const path = yield* folder
      const place = yield* aSchema
      yield* withServer(path, place)
      yield* chaos("postgres", path, places.postgres.layer(place), processes)
    }, Effect.provide(Postgres.layer)),
    120_000
  )

  it.live.skipIf(!isFull || !hasRedis)(
    "pass no cap on Redis, killed or not",
    Effect.fnUntraced(function* () {
      const path = yield* folder
      const place = yield* aPrefix
      yield* withServer(path, place)
      yield* chaos("redis", path, places.redis.layer(place), processes)
    }, Effect.provide(RedisServer.layer)),
    120_000
  )
})

const sqliteWithClient = (file: string) =>
  Layer.orDie(Layer.provideMerge(Ledger.layerSql, SqliteClient.layer({ file })))

const cap: Ledger.Cap = { account: "a", window: "ever", max: { tokens: 1000 } }

const reserve = Effect.scoped(Ledger.Ledger.use((ledger) => ledger.reserve(cap, { tokens: 1 })))

describe("a store that can't be reached", () => {
  it.effect(
    "fails a reservation, typed, on a client of Redis that waits for its server",
    Effect.fnUntraced(function* () {
      const waiting = Layer.effect(
        Redis.Redis,
        Redis.make({ send: () => Effect.never, subscribe: () => Effect.never, connect: Effect.never })
      )
      const asked = Effect.provide(reserve, Layer.provide(RedisLedger.layer(), waiting))
      const failing = yield* Effect.forkChild(Effect.flip(asked), { startImmediately: true })
      // Reservations of unknown outcome are given back as the scope closes, and that takes as long.
      yield* TestClock.adjust("20 seconds")
      yield* TestClock.adjust("20 seconds")
      const error = yield* Fiber.join(failing)
      assert.strictEqual(error._tag, "LedgerError")
      assert.isTrue(error._tag === "LedgerError" && error.isRetryable)
      assert.include(error.message, "did not answer within 20 seconds")
    })
  )

  it.live(
    "fails a reservation, typed and to be tried again, when its tables are gone",
    Effect.fnUntraced(function* () {
      const path = yield* folder
      const file = join(path, "ledger.db")
      const error = yield* Effect.gen(function* () {
        yield* reserve
        yield* SqlClient.SqlClient.use((sql) => sql`DROP TABLE ledger_sums`)
        return yield* Effect.flip(reserve)
      }).pipe(Effect.provide(sqliteWithClient(file)))
      assert.strictEqual(error._tag, "LedgerError")
      if (error._tag !== "LedgerError") return
      assert.strictEqual(error.reason._tag, "Unavailable")
      assert.isTrue(error.isRetryable)
      assert.include(error.message, 'reserve "a": the ledger is not available')
    }),
    60_000
  )

  it.live(
    "loses nothing on Postgres when connections are cut at random",
    Effect.fnUntraced(function* () {
      const place = yield* aSchema
      const admin = yield* Layer.build(PgClient.layer({ url: Redacted.make(place.url), applicationName: "admin" }))
      const cut = Effect.ignore(
        SqlClient.SqlClient.use(
          (sql) =>
            sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
              WHERE application_name <> 'admin' AND query LIKE '%ledger_%'`
        ).pipe(Effect.provide(admin))
      )
      const ledger = Context.get(yield* Layer.build(places.postgres.layer(place)), Ledger.Ledger)
      let acknowledged = 0
      let failed = 0
      const work = Effect.forEach(
        Array.from({ length: isFull ? 400 : 40 }, (_, index) => index),
        () =>
          Effect.scoped(
            Effect.gen(function* () {
              const reservation = yield* ledger.reserve({ ...cap, max: { tokens: 500 } }, { tokens: 3 })
              yield* reservation.settle({ tokens: 2 })
              acknowledged += 2
            })
          ).pipe(Effect.catch((error) => Effect.sync(() => (failed += error._tag === "LedgerError" ? 1 : 0)))),
        { concurrency: 4, discard: true }
      )
      yield* Effect.raceFirst(work, Effect.repeat(cut, Schedule.spaced("50 millis")))
      const { reserved, used } = yield* Effect.retry(ledger.spent("a", "ever"), { times: 20 })
      assert.isAtMost(used.tokens + reserved.tokens, 500)
      assert.isAtLeast(used.tokens + reserved.tokens, acknowledged)
      assert.isAbove(failed, 0)
    }, Effect.provide(Postgres.layer)),
    120_000
  )
})
