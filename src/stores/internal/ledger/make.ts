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
import { uuid } from "../../../support/store/uuid.ts"
import { nameProblem } from "../../../support/text/names.ts"
import { amountAt, amountsOf, firstFull, type Limits, limitsOf, lowest, roomOf, rowOf } from "./amounts.ts"
import { type Period, periodOf } from "./period.ts"
import { type Entry, type Fault, none, type Place, type Row, subtract, type Sums, type Tables } from "./tables.ts"

/** Characters of a name. */
const longest = 512

/** Makes the failure of an operation on an account. */
export const failure = (operation: string, account: string, reason: Reason | Fault): LedgerError =>
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

/** A cap at a time: which sum it is for, and its limits. */
interface Bound extends Place {
  readonly limits: Limits
  readonly endsAt: number | undefined
}

const boundOf = (cap: Cap, now: number): Result.Result<Bound, Reason> =>
  Result.gen(function* () {
    const account = yield* nameOf(cap.account)
    const { endsAt, name } = yield* periodAt(cap.window, now)
    return { account, period: name, limits: yield* limitsOf(cap.max), endsAt }
  })

const before = (left: Place, right: Place): number => {
  if (left.account !== right.account) return left.account < right.account ? -1 : 1
  return left.period < right.period ? -1 : left.period === right.period ? 0 : 1
}

/** One bound for each sum, in one order for all callers: those that take several can't wait for each other in a circle. */
const merged = (bounds: ReadonlyArray<Bound>): ReadonlyArray<Bound> => {
  const found: Array<Bound> = []
  for (const bound of bounds.toSorted(before)) {
    const last = found.at(-1)
    if (last === undefined || before(last, bound) !== 0) found.push(bound)
    else found[found.length - 1] = { ...last, limits: lowest(last.limits, bound.limits) }
  }
  return found
}

const entryOf = ({ account, endsAt, limits, period }: Bound, want: Amounts, row: Row, now: number): Entry => ({
  account,
  period,
  add: row,
  most: roomOf(limits, want, row),
  lasts: endsAt === undefined ? undefined : endsAt - now
})

const fullOf = (bound: Bound, entry: Entry, sums: Sums): LedgerFull => {
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

/** Some clients keep what is asked while they have no connection. A run does not wait for them for ever. */
const patience = "20 seconds"

const inTime = <A>(operation: Effect.Effect<A, Fault>): Effect.Effect<A, Fault> =>
  Effect.timeoutOrElse(Effect.interruptible(operation), {
    duration: patience,
    orElse: () => Effect.fail<Fault>({ problem: `it did not answer within ${patience}` })
  })

const impatient = ({ mark, raise, read, settle, take }: Tables): Tables => ({
  take: (id, entries) => inTime(take(id, entries)),
  settle: (id, places, change) => inTime(settle(id, places, change)),
  read: (place) => inTime(read(place)),
  mark: (name) => inTime(mark(name)),
  raise: (name, value) => inTime(raise(name, value))
})

/** Makes the service. */
export const make = (endless: Tables): Service => {
  const tables = impatient(endless)
  const settling = (id: string, entries: ReadonlyArray<Entry>, change: Row): Effect.Effect<void, LedgerError> =>
    entries.length === 0
      ? Effect.void
      : Effect.mapError(tables.settle(id, entries, change), (fault) =>
          failure("settle", entries[0]?.account ?? "", fault)
        )

  const reserve: Service["reserve"] = Effect.fnUntraced(function* (caps, want) {
    const list: ReadonlyArray<Cap> = "account" in caps ? [caps] : caps
    const name = list[0]?.account ?? ""
    const checked = <A>(result: Result.Result<A, Reason>) =>
      Effect.mapError(Effect.fromResult(result), (reason) => failure("reserve", name, reason))
    const now = yield* Clock.currentTimeMillis
    const row = yield* checked(rowOf("want", want))
    const bounds = merged(yield* checked(Result.all(list.map((cap) => boundOf(cap, now)))))
    const entries = bounds.map((bound) => entryOf(bound, want, row, now))

    const id = uuid()
    /** What becomes of the sums when the scope closes: nothing more, if it is `undefined`. */
    let due: Row | undefined
    yield* Effect.addFinalizer(() =>
      // The store keeps what was reserved if this fails, too.
      Effect.suspend(() => (due === undefined ? Effect.void : Effect.ignore(settling(id, entries, due))))
    )
    if (entries.length > 0) {
      // Cut off before its answer, it may have been taken: nobody spends it then.
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
        Effect.flatMap(checked(rowOf("actual", actual)), (used) => {
          if (due === undefined) return Effect.void
          // A first settlement that failed is done again when the scope closes.
          const change = due === none ? (due = subtract(used, row)) : due
          return Effect.tap(settling(id, entries, change), () => Effect.sync(() => (due = undefined)))
        })
    }
  })

  const onName = <A>(operation: string, name: string, use: (name: string) => Effect.Effect<A, Fault>) =>
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
