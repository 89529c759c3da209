/** Checks names, windows and marks, and ledgers that share a place or are opened again. */
import * as Effect from "effect/Effect"
import type { Cap, LedgerError, LedgerFull, Service, Window } from "../../../../core/Ledger.ts"
import { assert, type NotConformant, expect } from "../assert.ts"
import { runAt, countTotals, assertFull, nothing, assertRefused, type Rules, spend } from "./common.ts"

const daily = (window: Window, tokens = 10): Cap => ({ account: "a", window, max: { tokens } })

const beginsAnew = Effect.fnUntraced(function* (ledger: Service) {
  const night = runAt("2026-11-28T23:30:00Z")
  const morning = runAt("2026-11-29T00:00:00Z")
  yield* night(spend(ledger, daily("day"), { tokens: 10 }))
  const error = yield* night(assertFull(spend(ledger, daily("day"), { tokens: 1 }), "a day that is used up"))
  yield* expect(error.window, "day 2026-11-28 UTC", "the window has its day")
  yield* expect(error.resetsAt, Date.parse("2026-11-29T00:00:00Z"), "the time when it begins anew")
  const berlin = { per: "day", timeZone: "Europe/Berlin" } as const
  yield* night(spend(ledger, daily(berlin), { tokens: 10 }))
  const other = yield* night(assertFull(spend(ledger, daily(berlin), { tokens: 1 }), "a day of Berlin that is used up"))
  yield* expect(other.resetsAt, Date.parse("2026-11-29T23:00:00Z"), "the end of the day of Berlin")
  yield* morning(spend(ledger, daily("day"), { tokens: 10 }))
  for (const window of ["hour", "month", "ever", { every: "7 days" }] as const)
    yield* morning(spend(ledger, daily(window), { tokens: 10 }))
  const month = yield* morning(ledger.spent("a", "month"))
  yield* expect(month.resetsAt, Date.parse("2026-12-01T00:00:00Z"), "the end of the month")
})

const settlesWhereItReserved = (ledger: Service) =>
  Effect.scoped(
    Effect.gen(function* () {
      const night = runAt("2026-11-28T23:59:59Z")
      const morning = runAt("2026-11-29T00:00:01Z")
      const one = yield* night(ledger.reserve(daily("day"), { tokens: 8 }))
      yield* morning(one.settle({ tokens: 3 }))
      const before = yield* night(ledger.spent("a", "day"))
      const after = yield* morning(ledger.spent("a", "day"))
      yield* expect([before.used.tokens, after.used.tokens], [3, 0], "what was reserved yesterday is spent yesterday")
    })
  )

const standsSkew = (ledger: Service) =>
  Effect.scoped(
    Effect.gen(function* () {
      const clocks = [
        runAt("2026-11-28T23:59:00Z"),
        runAt("2026-11-29T00:01:00Z"),
        runAt("2099-01-01T00:00:00Z"),
        runAt("1971-01-01T00:00:00Z")
      ]
      for (const clock of clocks) yield* clock(spend(ledger, daily("day"), { tokens: 10 }))
      for (const clock of clocks)
        yield* clock(assertFull(spend(ledger, daily("day"), { tokens: 1 }), "a day that is used up"))
      const earlyClock = clocks[3] ?? clocks[0]
      const lateClock = clocks[2] ?? clocks[0]
      if (earlyClock === undefined || lateClock === undefined) return
      const open = yield* earlyClock(
        ledger.reserve({ account: "b", window: "ever", max: { tokens: 10 } }, { tokens: 10 })
      )
      yield* lateClock(
        assertFull(
          spend(ledger, { account: "b", window: "ever", max: { tokens: 10 } }, { tokens: 1 }),
          "what is reserved"
        )
      )
      yield* lateClock(open.settle({ tokens: 4 }))
      yield* expect((yield* countTotals(ledger, "b")).tokens, 4, "clocks that are years apart lose nothing")
    })
  )

/** Names that careless keys, statements or scripts would confuse. */
const names = [
  "a:b",
  "a",
  "a::b",
  "a b",
  "A",
  "á",
  "a\u0301",
  "' OR 1=1 --",
  'x"; DROP TABLE ledger_sums; --',
  "{ledger}:marks",
  "ever\\na",
  "*",
  "a%",
  "😀",
  "__proto__",
  "constructor",
  "x".repeat(512)
]

const tellsNamesApart = Effect.fnUntraced(function* (ledger: Service) {
  for (const [index, account] of names.entries())
    yield* spend(ledger, { account, window: "ever", max: { tokens: 100 } }, { tokens: index + 1 })
  for (const [index, account] of names.entries())
    yield* expect(
      (yield* countTotals(ledger, account)).tokens,
      index + 1,
      `the sum of ${account.slice(0, 40)} is its own`
    )
  for (const account of ["", "x".repeat(513), "x".repeat(1_000_000), "\ud800", "a\nb", "a\u0000"]) {
    const cap: Cap = { account, window: "ever", max: {} }
    const error = yield* assertRefused(
      spend(ledger, cap, { tokens: 1 }),
      `the name ${JSON.stringify(account.slice(0, 20))}`
    )
    yield* expect(error.reason._tag, "InvalidName", "the reason of a refused name")
    yield* assert(error.message.length < 500, "a refusal is short", error.message.length)
    yield* assertRefused(ledger.spent(account, "ever"), "to read it")
    yield* assertRefused(ledger.raise(account, 1), "to mark it")
  }
})

const wrongWindows: ReadonlyArray<Window> = [
  { per: "day", timeZone: "Europe/Atlantis" },
  { per: "day", timeZone: "'; --" },
  { every: 0 },
  { every: "999 millis" },
  { every: "Infinity" },
  { every: Number.NaN }
]

const refusesWindows = Effect.fnUntraced(function* (ledger: Service) {
  for (const window of wrongWindows) {
    const error = yield* assertRefused(
      spend(ledger, daily(window), { tokens: 1 }),
      `the window ${JSON.stringify(window)}`
    )
    yield* expect(error.reason._tag, "InvalidWindow", "the reason of a refused window")
    yield* assertRefused(ledger.spent("a", window), "to read it")
  }
})

const holdsManyAccounts = Effect.fnUntraced(function* (ledger: Service) {
  const accounts = Array.from({ length: 200 }, (_, index) => `user-${index}`)
  const tenant: Cap = { account: "tenant", window: "month", max: { tokens: 1e9 } }
  yield* Effect.forEach(
    accounts,
    (account, index) => spend(ledger, [{ account, window: "day", max: { tokens: 1000 } }, tenant], { tokens: index }),
    { concurrency: 8, discard: true }
  )
  yield* expect((yield* ledger.spent("tenant", "month")).used.tokens, 19_900, "the tenant pays for all")
  yield* expect((yield* ledger.spent("user-7", "day")).used.tokens, 7, "each user pays for one")
})

const raisesMarks = Effect.fnUntraced(function* (ledger: Service) {
  yield* expect(yield* ledger.mark("m"), 0, "a mark that was never raised")
  const raised: Array<boolean> = []
  for (const value of [3, 3, 2, 4, 0]) raised.push(yield* ledger.raise("m", value))
  yield* expect(raised, [true, false, false, true, false], "only a higher value raises a mark")
  yield* expect(yield* ledger.mark("m"), 4, "the highest value")
  yield* expect(yield* ledger.mark("other"), 0, "marks of other names")
  const at5 = yield* Effect.all(
    Array.from({ length: 10 }, () => ledger.raise("m", 5)),
    { concurrency: "unbounded" }
  )
  yield* expect(at5.filter(Boolean).length, 1, "of many that raise a mark to one value, one does")
  for (const value of [-1, 1.5, Number.NaN, Infinity, 2 ** 53])
    yield* assertRefused(ledger.raise("m", value), `the mark ${value}`)
  yield* ledger.raise("large", Number.MAX_SAFE_INTEGER)
  yield* expect(yield* ledger.mark("large"), Number.MAX_SAFE_INTEGER, "a large mark")
})

export const placeRules: Rules = [
  ["a window that ends begins anew", beginsAnew],
  ["a reservation is settled in the window in which it was made", settlesWhereItReserved],
  ["clocks that are apart pass no cap", standsSkew],
  ["names are told apart, and what is no name is refused", tellsNamesApart],
  ["what is no window is refused", refusesWindows],
  ["two hundred accounts under one tenant", holdsManyAccounts],
  ["a mark only rises", raisesMarks]
]

/** Checks of a ledger that is opened again. */
export const survivalRules: ReadonlyArray<
  readonly [
    name: string,
    write: (ledger: Service) => Effect.Effect<void, LedgerError | LedgerFull>,
    read: (ledger: Service) => Effect.Effect<void, LedgerError | LedgerFull | NotConformant>
  ]
> = [
  [
    "sums and marks are there when it is opened again",
    Effect.fnUntraced(function* (ledger) {
      yield* spend(ledger, daily("ever"), { tokens: 7 })
      yield* ledger.raise("m", 7)
    }),
    Effect.fnUntraced(function* (ledger) {
      yield* expect(yield* countTotals(ledger, "a"), { ...nothing, tokens: 7 }, "the sum")
      yield* expect(yield* ledger.mark("m"), 7, "the mark")
      yield* assertFull(spend(ledger, daily("ever"), { tokens: 4 }), "the cap")
    })
  ]
]

/** Checks of two ledgers at one place. */
export const sharedRules: ReadonlyArray<
  readonly [
    name: string,
    body: (one: Service, other: Service) => Effect.Effect<void, LedgerError | LedgerFull | NotConformant>
  ]
> = [
  [
    "two ledgers at one place share a cap",
    Effect.fnUntraced(function* (one, other) {
      const cap = daily("ever", 40)
      const exits = yield* Effect.forEach(
        Array.from({ length: 80 }, (_, index) => (index % 2 === 0 ? one : other)),
        (ledger) => Effect.exit(spend(ledger, cap, { tokens: 1 })),
        { concurrency: 16 }
      )
      yield* expect(exits.filter((exit) => exit._tag === "Success").length, 40, "as many as the cap has room for")
      yield* expect((yield* countTotals(other, "a")).tokens, 40, "both see one sum")
    })
  ]
]
