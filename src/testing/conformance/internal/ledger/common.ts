/** Helpers for checks of ledgers. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Amounts, Cap, LedgerError, LedgerFull, Service, Totals } from "../../../../core/Ledger.ts"
import { failCheck, type NotConformant } from "../assert.ts"

/** The body of a check. */
export type Body = (ledger: Service) => Effect.Effect<void, LedgerError | LedgerFull | NotConformant>

/** Checks by their names. */
export type Rules<B = Body> = ReadonlyArray<readonly [name: string, body: B]>

/** Runs an effect with a stopped clock. */
export const runAt =
  (time: string) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.flatMap(Clock.Clock, (clock) => {
      const now = Date.parse(time)
      const fixed: Clock.Clock = {
        currentTimeMillis: Effect.succeed(now),
        currentTimeMillisUnsafe: () => now,
        currentTimeNanos: Effect.succeed(BigInt(now) * 1_000_000n),
        currentTimeNanosUnsafe: () => BigInt(now) * 1_000_000n,
        monotonicTimeNanos: clock.monotonicTimeNanos,
        monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
        sleep: (duration) => clock.sleep(duration)
      }
      return Effect.provideService(effect, Clock.Clock, fixed)
    })

/** Reserves and settles at once. `actual` defaults to the reservation. */
export const spend = (ledger: Service, caps: Cap | ReadonlyArray<Cap>, want: Amounts, actual: Amounts = want) =>
  Effect.scoped(Effect.flatMap(ledger.reserve(caps, want), (reservation) => reservation.settle(actual)))

/** Returns the error of a reservation that exceeds a cap. */
export const assertFull = <A, R>(
  operation: Effect.Effect<A, LedgerFull | LedgerError, R>,
  rule: string
): Effect.Effect<LedgerFull, NotConformant, R> =>
  Effect.matchEffect(operation, {
    onFailure: (error) =>
      error._tag === "LedgerFull" ? Effect.succeed(error) : failCheck(`${rule} fails with LedgerFull`, error.message),
    onSuccess: () => failCheck(`${rule} fails with LedgerFull`, "a success")
  })

/** Returns the error of an invalid reservation. */
export const assertRefused = <A, R>(
  operation: Effect.Effect<A, LedgerFull | LedgerError, R>,
  rule: string
): Effect.Effect<LedgerError, NotConformant, R> =>
  Effect.matchEffect(operation, {
    onFailure: (error) =>
      error._tag === "LedgerError" ? Effect.succeed(error) : failCheck(`${rule} fails with LedgerError`, error.message),
    onSuccess: () => failCheck(`${rule} fails with LedgerError`, "a success")
  })

/** Sums used and reserved amounts, which count against a cap. */
export const countTotals = (ledger: Service, account: string) =>
  Effect.map(ledger.spent(account, "ever"), ({ reserved, used }) => ({
    modelCalls: used.modelCalls + reserved.modelCalls,
    toolCalls: used.toolCalls + reserved.toolCalls,
    tokens: used.tokens + reserved.tokens,
    cost: used.cost + reserved.cost
  }))

export const nothing: Totals = { modelCalls: 0, toolCalls: 0, tokens: 0, cost: 0 }
