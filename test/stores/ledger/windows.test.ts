import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Layer } from "effect"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
import { Ledger } from "effect-deepagents/stores"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { scaled } from "../../scale.ts"

const zones = [
  "UTC",
  "Europe/Berlin",
  "America/St_Johns",
  "Asia/Kathmandu",
  "Africa/Cairo",
  "Australia/Lord_Howe",
  "Pacific/Apia",
  "-03:30"
]

const windows: ReadonlyArray<Ledger.Window> = [
  "hour",
  "day",
  "month",
  { every: "90 minutes" },
  ...zones.flatMap((timeZone) => (["hour", "day", "month"] as const).map((per) => ({ per, timeZone })))
]

describe("windows of a ledger", () => {
  it("a sum lasts until its window ends, and not longer", () =>
    fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: Date.parse("2060-01-01") }),
        fc.constantFrom(...windows),
        (time, window) =>
          Effect.runPromise(
            Effect.gen(function* () {
              const ledger = yield* Ledger.Ledger
              yield* TestClock.setTime(time)
              yield* Effect.scoped(ledger.reserve({ account: "a", window, max: { tokens: 1 } }, { tokens: 1 }))
              const { resetsAt = 0 } = yield* ledger.spent("a", window)
              assert.isAbove(resetsAt, time)
              yield* TestClock.setTime(resetsAt - 1)
              assert.strictEqual((yield* ledger.spent("a", window)).used.tokens, 1)
              yield* TestClock.setTime(resetsAt)
              assert.strictEqual((yield* ledger.spent("a", window)).used.tokens, 0)
            }).pipe(Effect.provide([Ledger.layerMemory, TestClock.layer()]))
          )
      ),
      { numRuns: scaled(4000) }
    ))

  it.effect("a reservation of a process that was killed counts as used after an hour, and for good", () =>
    Effect.gen(function* () {
      const ledger = yield* Ledger.Ledger
      yield* Effect.forkChild(
        Effect.scoped(
          Effect.andThen(
            ledger.reserve({ account: "a", window: "ever", max: { tokens: 9 } }, { tokens: 9 }),
            Effect.never
          )
        ),
        { startImmediately: true }
      )
      assert.strictEqual((yield* ledger.spent("a", "ever")).reserved.tokens, 9)
      yield* TestClock.adjust(Duration.hours(2))
      const { reserved, used } = yield* ledger.spent("a", "ever")
      assert.deepStrictEqual([used.tokens, reserved.tokens], [9, 0])
      yield* TestClock.adjust(Duration.days(400))
      const error = yield* Effect.flip(
        Effect.scoped(ledger.reserve({ account: "a", window: "ever", max: { tokens: 9 } }, { tokens: 1 }))
      )
      assert.strictEqual(error._tag, "LedgerFull")
    }).pipe(Effect.provide(Ledger.layerMemory))
  )

  it.effect("a late settlement still corrects the sum", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const ledger = yield* Ledger.Ledger
        const one = yield* ledger.reserve({ account: "a", window: "ever", max: {} }, { tokens: 9 })
        yield* TestClock.adjust(Duration.hours(20))
        yield* one.settle({ tokens: 4 })
        assert.strictEqual((yield* ledger.spent("a", "ever")).used.tokens, 4)
      })
    ).pipe(Effect.provide(Ledger.layerMemory))
  )
})

describe("tables of a ledger in SQL", () => {
  it.live("keep no sum whose window is long over, and no reservation that can't settle any more", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const spend = (account: string, window: Ledger.Window) =>
        Effect.provide(
          Effect.scoped(Ledger.Ledger.use((ledger) => ledger.reserve({ account, window, max: {} }, { tokens: 1 }))),
          Layer.fresh(Ledger.layerSql)
        )
      yield* spend("old", "day")
      yield* spend("kept", "ever")
      yield* sql`INSERT INTO ledger_open SELECT account, period, 'dead', 0, 0, 1, 0, 0 FROM ledger_sums`
      yield* sql`UPDATE ledger_sums SET gone_at = gone_at - 34 * 24 * 3600000`
      yield* spend("new", "day")
      const sums = yield* sql<{ account: string }>`SELECT account FROM ledger_sums ORDER BY account`
      assert.deepStrictEqual(
        sums.map(({ account }) => account),
        ["kept", "new"]
      )
      assert.deepStrictEqual(yield* sql`SELECT id FROM ledger_open`, [])
    }).pipe(Effect.provide(Layer.orDie(SqliteClient.layer({ file: ":memory:" }))))
  )

  it.live("take no part in a transaction of the caller, which may be rolled back", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ledger = yield* Ledger.Ledger
      const cap: Ledger.Cap = { account: "a", window: "ever", max: { tokens: 9 } }
      const reserve = Effect.scoped(ledger.reserve(cap, { tokens: 5 }))
      const error = yield* Effect.flip(sql.withTransaction(reserve))
      assert.strictEqual(error._tag, "LedgerError")
      assert.include(error.message, "give it a client of its own")
      yield* reserve
      assert.strictEqual((yield* sql.withTransaction(ledger.spent("a", "ever"))).used.tokens, 5)
      assert.isTrue(yield* Effect.isFailure(sql.withTransaction(ledger.raise("m", 1))))
    }).pipe(Effect.provide(Layer.orDie(Layer.provideMerge(Ledger.layerSql, SqliteClient.layer({ file: ":memory:" })))))
  )

  it.live(
    "tell ten thousand accounts apart, under one tenant",
    () =>
      Effect.gen(function* () {
        const ledger = yield* Ledger.Ledger
        const accounts = Array.from({ length: scaled(10_000) }, (_, index) => index)
        const tenant: Ledger.Cap = { account: "tenant", window: "month", max: { tokens: 1e9 } }
        yield* Effect.forEach(
          accounts,
          (index) => {
            const caps = [{ account: `person-${index}`, window: "day", max: { tokens: 100_000 } } as const, tenant]
            return Effect.scoped(
              Effect.flatMap(ledger.reserve(caps, { tokens: index + 10 }), ({ settle }) => settle({ tokens: index }))
            )
          },
          { concurrency: 8, discard: true }
        )
        const sum = accounts.reduce((total, index) => total + index, 0)
        assert.strictEqual((yield* ledger.spent("tenant", "month")).used.tokens, sum)
        for (const index of [0, 1, 999]) {
          assert.strictEqual((yield* ledger.spent(`person-${index}`, "day")).used.tokens, index)
        }
      }).pipe(Effect.provide(Layer.orDie(Layer.provide(Ledger.layerSql, SqliteClient.layer({ file: ":memory:" }))))),
    60_000
  )
})
