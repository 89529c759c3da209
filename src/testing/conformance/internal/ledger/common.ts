/** Parts that checks of ledgers share: clocks, and what is expected to be refused. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Amounts, Cap, LedgerError, LedgerFull, Service, Totals } from "../../../../core/Ledger.ts"
import { broken, type NotConformant } from "../assert.ts"

/** The body of a check, given a ledger. */
export type Body = (ledger: Service) => Effect.Effect<void, LedgerError | LedgerFull | NotConformant>

/** Checks by their names. */
export type Rules<B = Body> = ReadonlyArray<readonly [name: string, body: B]>

/** Does something at a time: for this effect, the clock stands still there. */
export const at =
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

/** Reserves and settles at once. `actual` is what was wanted, if it is left out. */
export const spend = (ledger: Service, caps: Cap | ReadonlyArray<Cap>, want: Amounts, actual: Amounts = want) =>
  Effect.scoped(Effect.flatMap(ledger.reserve(caps, want), (reservation) => reservation.settle(actual)))

/** The refusal of a reservation for want of room. */
export const full = <A, R>(
  operation: Effect.Effect<A, LedgerFull | LedgerError, R>,
  rule: string
): Effect.Effect<LedgerFull, NotConformant, R> =>
  Effect.matchEffect(operation, {
    onFailure: (error) =>
      error._tag === "LedgerFull" ? Effect.succeed(error) : broken(`${rule} fails with LedgerFull`, error.message),
    onSuccess: () => broken(`${rule} fails with LedgerFull`, "a success")
  })

/** The refusal of what can't be reserved, whatever there is room for. */
export const refused = <A, R>(
  operation: Effect.Effect<A, LedgerFull | LedgerError, R>,
  rule: string
): Effect.Effect<LedgerError, NotConformant, R> =>
  Effect.matchEffect(operation, {
    onFailure: (error) =>
      error._tag === "LedgerError" ? Effect.succeed(error) : broken(`${rule} fails with LedgerError`, error.message),
    onSuccess: () => broken(`${rule} fails with LedgerError`, "a success")
  })

/** What counts against a cap: the used and the reserved of each kind together. */
export const counted = (ledger: Service, account: string, window: Cap["window"] = "ever") =>
  Effect.map(ledger.spent(account, window), ({ reserved, used }) => ({
    modelCalls: used.modelCalls + reserved.modelCalls,
    toolCalls: used.toolCalls + reserved.toolCalls,
    tokens: used.tokens + reserved.tokens,
    cost: used.cost + reserved.cost
  }))

export const nothing: Totals = { modelCalls: 0, toolCalls: 0, tokens: 0, cost: 0 }
