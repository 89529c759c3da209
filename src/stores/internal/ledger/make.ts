/** The ledger over its tables: checks what enters, reserves and settles. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import {
  type Amounts,
  type Cap,
  kinds,
  LedgerError,
  LedgerFull,
  type Reason,
  type Service
} from "../../../core/Ledger.ts"
import { makeId } from "../../../core/Message.ts"
import type { Problem } from "../../../support/store/problem.ts"
import { nameProblem } from "../../../support/text/names.ts"
import { amountAt, amountsOf, firstFull, type Limits, limitsOf, lowest, roomOf, rowOf } from "./amounts.ts"
import { type Period, periodOf } from "./period.ts"
import { type Entry, none, type Place, type Row, subtract, type Sums, type Tables } from "./tables.ts"

/** Characters of a name. */
const longest = 512

/** Makes the failure of an operation on an account. */
export const failure = (operation: string, account: string, reason: Reason | Problem): LedgerError =>
  new LedgerError({
    operation,
    account: String(account).slice(0, 80),
    reason: "_tag" in reason ? reason : { _tag: "Unavailable", problem: reason.problem },
    ...("_tag" in reason || reason.cause === undefined ? {} : { cause: reason.cause })
  })

const nameOf = (name: string): Result.Result<string, Reason> => {
  const problem = nameProblem(name, longest)
  return problem === undefined ? Result.succeed(name) : Result.fail({ _tag: "InvalidName", problem })
}

const periodAt = (window: Cap["window"], now: number): Result.Result<Period, Reason> =>
  Result.mapError(periodOf(window, now), (problem): Reason => ({ _tag: "InvalidWindow", problem }))

/** A cap at a time: the place of its sum, and its limits. */
interface CapPlace extends Place {
  readonly limits: Limits
  readonly endsAt: number | undefined
}

const boundOf = (cap: Cap, now: number): Result.Result<CapPlace, Reason> =>
  Result.gen(function* () {
    const account = yield* nameOf(cap.account)
    const { endsAt, name } = yield* periodAt(cap.window, now)
    return { account, period: name, limits: yield* limitsOf(cap.max), endsAt }
  })

const comparePlaces = (left: Place, right: Place): number => {
  if (left.account !== right.account) return left.account < right.account ? -1 : 1
  return left.period < right.period ? -1 : left.period === right.period ? 0 : 1
}

/** Merges the bounds of each sum, and sorts them: callers that take several can't deadlock. */
const mergeBounds = (bounds: ReadonlyArray<CapPlace>): ReadonlyArray<CapPlace> => {
  const mergedBounds: Array<CapPlace> = []
  for (const bound of bounds.toSorted(comparePlaces)) {
    const last = mergedBounds.at(-1)
    if (last === undefined || comparePlaces(last, bound) !== 0) mergedBounds.push(bound)
    else mergedBounds[mergedBounds.length - 1] = { ...last, limits: lowest(last.limits, bound.limits) }
  }
  return mergedBounds
}

const entryOf = ({ account, endsAt, limits, period }: CapPlace, want: Amounts, row: Row, now: number): Entry => ({
  account,
  period,
  add: row,
  most: roomOf(limits, want, row),
  lasts: endsAt === undefined ? undefined : endsAt - now
})

const fullOf = (bound: CapPlace, entry: Entry, sums: Sums): LedgerFull => {
  const index = firstFull(sums.total, entry.most)
  const reserved = amountAt(sums.reserved, index)
  return new LedgerFull({
    account: bound.account,
    window: bound.period,
    limit: kinds[index] ?? "tokens",
    max: amountAt([bound.limits[0] ?? 0, bound.limits[1] ?? 0, bound.limits[2] ?? 0, bound.limits[3] ?? 0], index),
    used: amountAt(subtract(sums.total, sums.reserved), index),
    reserved,
    wanted: amountAt(entry.add, index),
    ...(bound.endsAt === undefined ? {} : { resetsAt: bound.endsAt })
  })
}

/** Makes the service over tables. */
export const make = (tables: Tables): Service => {
  const settling = (id: string, entries: ReadonlyArray<Entry>, change: Row): Effect.Effect<void, LedgerError> =>
    entries.length === 0
      ? Effect.void
      : Effect.mapError(tables.settle(id, entries, change), (fault) =>
          failure("settle", entries[0]?.account ?? "", fault)
        )

  const reserve: Service["reserve"] = Effect.fnUntraced(function* (caps, want) {
    const list: ReadonlyArray<Cap> = "account" in caps ? [caps] : caps
    const name = list[0]?.account ?? ""
    const orFail = <A>(result: Result.Result<A, Reason>) =>
      Effect.mapError(Effect.fromResult(result), (reason) => failure("reserve", name, reason))
    const now = yield* Clock.currentTimeMillis
    const row = yield* orFail(rowOf("want", want))
    const bounds = mergeBounds(yield* orFail(Result.all(list.map((cap) => boundOf(cap, now)))))
    const entries = bounds.map((bound) => entryOf(bound, want, row, now))

    const id = makeId()
    /** The change of the sums when the scope closes; `undefined`: no change. */
    let due: Row | undefined
    yield* Effect.addFinalizer(() =>
      // If this fails, the reservation expires in the store.
      Effect.suspend(() => (due === undefined ? Effect.void : Effect.ignore(settling(id, entries, due))))
    )
    if (entries.length > 0) {
      // An interrupted call may have reserved the amounts: the scope gives them back.
      due = subtract(none, row)
      const index = yield* Effect.mapError(tables.take(id, entries), (fault) => failure("reserve", name, fault))
      const [bound, entry] = [bounds[index ?? -1], entries[index ?? -1]]
      if (bound !== undefined && entry !== undefined) {
        due = undefined
        const sums = yield* Effect.mapError(tables.read(entry), (fault) => failure("reserve", bound.account, fault))
        return yield* Effect.fail(fullOf(bound, entry, sums))
      }
      due = none
    }

    return {
      id,
      settle: (actual) =>
        Effect.flatMap(orFail(rowOf("actual", actual)), (used) => {
          if (due === undefined) return Effect.void
          // The scope repeats a first settlement that failed.
          const change = due === none ? (due = subtract(used, row)) : due
          return Effect.tap(settling(id, entries, change), () => Effect.sync(() => (due = undefined)))
        })
    }
  })

  const onName = <A>(operation: string, name: string, use: (name: string) => Effect.Effect<A, Problem>) =>
    Effect.mapError(Effect.flatMap(Effect.fromResult(nameOf(name)), use), (reason) => failure(operation, name, reason))

  return {
    reserve,
    spent: Effect.fnUntraced(function* (account, window) {
      const now = yield* Clock.currentTimeMillis
      const place = Result.gen(function* () {
        return { account: yield* nameOf(account), period: yield* periodAt(window, now) }
      })
      const { period } = yield* Effect.mapError(Effect.fromResult(place), (reason) => failure("spent", account, reason))
      const { reserved, total } = yield* onName("spent", account, () => tables.read({ account, period: period.name }))
      return {
        used: amountsOf(subtract(total, reserved)),
        reserved: amountsOf(reserved),
        ...(period.endsAt === undefined ? {} : { resetsAt: period.endsAt })
      }
    }),
    mark: (name) => onName("mark", name, tables.mark),
    raise: (name, value) =>
      onName("raise", name, () =>
        Number.isSafeInteger(value) && value >= 0
          ? tables.raise(name, value)
          : Effect.fail<Reason>({
              _tag: "InvalidAmount",
              field: "value",
              value: String(value),
              problem: "must be a whole number of at least 0"
            })
      )
  }
}
