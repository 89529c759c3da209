/** Checks sums of reservations and settlements, and that they never exceed a cap. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { Cap, Service } from "../../../../core/Ledger.ts"
import { assert, expect } from "../assert.ts"
import { countTotals, assertFull, nothing, assertRefused, type Rules, spend } from "./common.ts"

const cap = (max: Cap["max"], account = "a"): Cap => ({ account, window: "ever", max })

const settlesExactly = (ledger: Service) =>
  Effect.scoped(
    Effect.gen(function* () {
      const one = yield* ledger.reserve(cap({ tokens: 100, cost: 1 }), { modelCalls: 1, tokens: 60, cost: 0.5 })
      const open = yield* ledger.spent("a", "ever")
      yield* expect(
        open,
        { used: nothing, reserved: { ...nothing, modelCalls: 1, tokens: 60, cost: 0.5 } },
        "it is reserved"
      )
      yield* one.settle({ modelCalls: 1, tokens: 40, cost: 0.3 })
      const totals = yield* ledger.spent("a", "ever")
      yield* expect(
        totals,
        { used: { ...nothing, modelCalls: 1, tokens: 40, cost: 0.3 }, reserved: nothing },
        "the actual use"
      )
    })
  )

const settlesOnce = (ledger: Service) =>
  Effect.scoped(
    Effect.gen(function* () {
      const one = yield* ledger.reserve(cap({}), { tokens: 60 })
      yield* Effect.all([one.settle({ tokens: 10 }), one.settle({ tokens: 20 }), one.settle({ tokens: 10 })], {
        concurrency: "unbounded",
        discard: true
      })
      yield* one.settle({ tokens: 50 })
      const { tokens } = yield* countTotals(ledger, "a")
      yield* expect(tokens, 10, "of settlements of one reservation the first counts")
    })
  )

const recordsMore = Effect.fnUntraced(function* (ledger: Service) {
  yield* spend(ledger, cap({ tokens: 100 }), { tokens: 90 }, { tokens: 130 })
  yield* expect((yield* countTotals(ledger, "a")).tokens, 130, "more than was reserved is recorded")
  const error = yield* assertFull(spend(ledger, cap({ tokens: 100 }), { tokens: 1 }), "a reservation over the cap")
  yield* expect(
    { ...error },
    { ...error, account: "a", window: "ever", limit: "tokens", max: 100, used: 130, reserved: 0, wanted: 1 },
    "a full account says what it has"
  )
})

const keepsWhatWasCutOff = Effect.fnUntraced(function* (ledger: Service) {
  yield* Effect.scoped(ledger.reserve(cap({}), { tokens: 7, cost: 0.25 }))
  const totals = yield* ledger.spent("a", "ever")
  yield* expect(
    totals.used,
    { ...nothing, tokens: 7, cost: 0.25 },
    "what was not settled counts as used when its scope closes"
  )
  yield* spend(ledger, cap({}), { tokens: 5 }, {})
  yield* expect((yield* countTotals(ledger, "a")).tokens, 7, "`settle({})` gives back all")
})

const isFullToTheLast = Effect.fnUntraced(function* (ledger: Service) {
  yield* spend(ledger, cap({ tokens: 10 }), { tokens: 10 })
  yield* assertFull(spend(ledger, cap({ tokens: 10 }), { tokens: 1 }), "one more than the cap")
  yield* assertFull(spend(ledger, cap({ tokens: 10 }), { tokens: 0 }), "an unknown amount of what is used up")
  yield* assertFull(spend(ledger, cap({ tokens: 10 }, "b"), { tokens: 11 }), "more than the cap at once")
  yield* assertFull(spend(ledger, cap({ cost: 0 }, "b"), { cost: 0 }), "anything under a cap of 0")
  yield* spend(ledger, cap({ tokens: 10 }), { toolCalls: 1 })
  yield* expect((yield* countTotals(ledger, "a")).toolCalls, 1, "a kind that is not wanted needs no room")
  yield* expect(yield* countTotals(ledger, "b"), nothing, "what was refused is not counted")
})

const followsTheCapOfEachCall = Effect.fnUntraced(function* (ledger: Service) {
  yield* spend(ledger, cap({ tokens: 10 }), { tokens: 10 })
  yield* spend(ledger, cap({ tokens: 15 }), { tokens: 5 })
  yield* assertFull(spend(ledger, cap({ tokens: 12 }), { tokens: 1 }), "a reservation under a cap that was lowered")
  yield* expect((yield* countTotals(ledger, "a")).tokens, 15, "the sum stays as it is")
})

const takesAllOrNone = Effect.fnUntraced(function* (ledger: Service) {
  const person = cap({ tokens: 100 }, "person")
  const tenant = cap({ tokens: 10 }, "tenant")
  yield* spend(ledger, [person, tenant], { tokens: 10 })
  const error = yield* assertFull(spend(ledger, [person, tenant], { tokens: 1 }), "a list with an account that is full")
  yield* expect(error.account, "tenant", "the account that is full")
  yield* assertFull(spend(ledger, [tenant, person], { tokens: 1 }), "the same list in another order")
  yield* expect((yield* countTotals(ledger, "person")).tokens, 10, "nothing is taken of the others")
  const twice = [cap({ tokens: 100 }, "twice"), cap({ tokens: 5 }, "twice")]
  yield* spend(ledger, twice, { tokens: 4 })
  yield* expect((yield* countTotals(ledger, "twice")).tokens, 4, "an account that is listed twice is charged once")
  yield* assertFull(spend(ledger, twice, { tokens: 2 }), "more than the lower cap")
  yield* spend(ledger, [], { tokens: 1 })
})

const addsMoneyExactly = Effect.fnUntraced(function* (ledger: Service) {
  const budget = cap({ cost: 1 })
  for (let n = 0; n < 10; n++) yield* spend(ledger, budget, { cost: 0.1 })
  yield* expect((yield* countTotals(ledger, "a")).cost, 1, "ten tenths are one")
  yield* assertFull(spend(ledger, budget, { cost: 0.000_000_001 }), "a billionth more")
  yield* spend(ledger, cap({ cost: 1e9, tokens: 1e15 }, "large"), { cost: 1e9, tokens: 1e15 })
  yield* assertFull(spend(ledger, cap({ cost: 1e9 }, "large"), { cost: 1 }), "more than the largest cap")
})

const hostileAmounts = [Number.NaN, -1, -0.000_001, Infinity, -Infinity, 1e300]

const refusesAmounts = (ledger: Service) =>
  Effect.scoped(
    Effect.gen(function* () {
      for (const amount of hostileAmounts) {
        for (const kind of ["modelCalls", "toolCalls", "tokens", "cost"] as const) {
          const want = yield* assertRefused(spend(ledger, cap({}), { [kind]: amount }), `to want ${amount} ${kind}`)
          const max = yield* assertRefused(
            spend(ledger, cap({ [kind]: amount }), { [kind]: 1 }),
            `a cap of ${amount} ${kind}`
          )
          const fields = [want, max].map(({ reason }) => (reason._tag === "InvalidAmount" ? reason.field : reason._tag))
          yield* expect(fields, [`want.${kind}`, `max.${kind}`], "a refusal names the field")
          yield* assert(want.message.includes(String(amount)), "a refusal names the value", want.message)
          yield* assert(!want.isRetryable, "a refusal can't be retried", want)
        }
      }
      const one = yield* ledger.reserve(cap({}), { tokens: 5 })
      for (const amount of hostileAmounts) yield* assertRefused(one.settle({ tokens: amount }), `to settle ${amount}`)
      yield* expect((yield* countTotals(ledger, "a")).tokens, 5, "a refused settlement leaves the reservation")
      yield* one.settle({ tokens: 3 })
      yield* expect((yield* countTotals(ledger, "a")).tokens, 3, "it can be settled after that")
    })
  )

/** Makes pseudo-random numbers below 1. */
const random = (seed: number) => {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/** Outcomes of work: settled, interrupted, released, or above its reservation. */
const ends = ["settled", "cut", "back"] as const

const neverOverspends = Effect.fnUntraced(function* (ledger: Service) {
  const max = { modelCalls: 60, tokens: 1000, cost: 3 }
  const expected = new Map<string, { modelCalls: number; tokens: number; cost: number }>()
  const worker = Effect.fnUntraced(function* (seed: number) {
    const next = random(seed)
    for (let n = 0; n < 12; n++) {
      const accounts = next() < 0.3 ? ["p", "t"] : [next() < 0.5 ? "p" : "t"]
      const want = { modelCalls: 1, tokens: Math.floor(next() * 60), cost: Math.floor(next() * 200) / 1000 }
      const end = ends[Math.floor(next() * ends.length)]
      const share = next()
      const scope = yield* Scope.make()
      const exit = yield* Effect.exit(
        Scope.provide(
          ledger.reserve(
            accounts.map((account) => cap(max, account)),
            want
          ),
          scope
        )
      )
      for (const account of ["p", "t"]) {
        const sums = yield* countTotals(ledger, account)
        yield* assert(
          sums.tokens <= max.tokens && sums.modelCalls <= max.modelCalls && sums.cost <= max.cost,
          "used and reserved are never more than the cap",
          sums
        )
      }
      if (Exit.isSuccess(exit)) {
        const used =
          end === "back"
            ? nothing
            : end === "cut"
              ? want
              : { modelCalls: 1, tokens: Math.floor(want.tokens * share), cost: want.cost }
        if (end !== "cut") yield* exit.value.settle(used)
        for (const account of accounts) {
          const sums = expected.get(account) ?? { modelCalls: 0, tokens: 0, cost: 0 }
          expected.set(account, {
            modelCalls: sums.modelCalls + used.modelCalls,
            tokens: sums.tokens + used.tokens,
            cost: sums.cost + Math.round(used.cost * 1000)
          })
        }
      }
      yield* Scope.close(scope, Exit.void)
    }
  })
  yield* Effect.forEach([1, 2, 3, 4, 5, 6, 7, 8], worker, { concurrency: "unbounded", discard: true })
  for (const [account, { cost, modelCalls, tokens }] of expected) {
    const sums = yield* ledger.spent(account, "ever")
    yield* expect(
      sums,
      { used: { modelCalls, toolCalls: 0, tokens, cost: cost / 1000 }, reserved: nothing },
      "sums are exact when all work has ended"
    )
  }
})

const letsInAsManyAsFit = Effect.fnUntraced(function* (ledger: Service) {
  const caps = [cap({ toolCalls: 50 }, "p"), cap({ toolCalls: 30 }, "t")]
  const exits = yield* Effect.forEach(
    Array.from({ length: 100 }, (_, index) => (index % 2 === 0 ? caps : caps.toReversed())),
    (list) => Effect.exit(spend(ledger, list, { toolCalls: 1 })),
    { concurrency: "unbounded" }
  )
  yield* expect(exits.filter(Exit.isSuccess).length, 30, "of many at once, as many as the lowest cap has room for")
  yield* expect((yield* countTotals(ledger, "p")).toolCalls, 30, "no other is charged")
})

export const sumRules: Rules = [
  ["a reservation is set aside, and settled exactly", settlesExactly],
  ["a reservation is settled once", settlesOnce],
  ["more than was reserved is recorded, and refuses what follows", recordsMore],
  ["what is cut off counts as used, what is settled as nothing is given back", keepsWhatWasCutOff],
  ["a cap is reached exactly", isFullToTheLast],
  ["a cap that changed holds from then on", followsTheCapOfEachCall],
  ["several accounts are charged together, or none is", takesAllOrNone],
  ["money is added without loss", addsMoneyExactly],
  ["amounts that are no amounts are refused", refusesAmounts],
  ["random work at once never passes a cap, and its sums are exact", neverOverspends],
  ["of a hundred at once as many get in as fit", letsInAsManyAsFit]
]
