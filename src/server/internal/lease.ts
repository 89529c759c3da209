/** The lease of a mailbox: one process at a time works on its mail, and another one takes over when the lease ends. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { makeId } from "../../core/Message.ts"
import type { Table } from "../../stores/Storage.ts"
import type { Owner } from "./owner.ts"
import { RunsError } from "./service.ts"

/** The row of the owner. `lease` is its time to live in milliseconds, `until` its end by the clock of the owner. */
const Row = Schema.fromJsonString(
  Schema.Struct({ v: Schema.Literal(1), owner: Schema.String, until: Schema.Finite, lease: Schema.Finite })
)
const encode = Schema.encodeSync(Row)
const decode = Schema.decodeUnknownResult(Row)

const space = "lease"
const key = "mailbox"

/** The options of a lease. */
export interface LeaseOptions {
  /** The milliseconds after which another process takes over from a killed process. */
  readonly millis: number
  /** Takes the lease of a process that is known to be gone. */
  readonly takesOver: boolean
}

/** See {@link make}. */
export interface Lease {
  readonly table: Table
  readonly millis: number
  readonly owner: string
  /** The stored row of this process; `undefined`: another one has the lease. */
  text: string | undefined
  /** The end of the lease that this process knows: its own one, or that of the other process. */
  until: number
  /** The row of the other process, and the time at which it was seen first. */
  seen: { readonly text: string; readonly at: number } | undefined
}

const unreachable = () =>
  new RunsError({
    reason: "Unavailable",
    threadId: "",
    problem: "the mailbox can't be read or written; try again later"
  })

/** The most milliseconds by which the clocks of two processes may differ. */
const maxSkew = 60_000

/** Takes the lease if it is free, or if its owner is gone. Reports whether this process has it. */
const acquire = Effect.fnUntraced(function* (lease: Lease, takesOver: boolean) {
  const { millis, owner, table } = lease
  const now = yield* Clock.currentTimeMillis
  const text = yield* table.get(space, key)
  const row = text === undefined ? undefined : Result.getOrUndefined(decode(text))
  if (text !== undefined && row !== undefined && !takesOver) {
    if (lease.seen?.text !== text) lease.seen = { text, at: now }
    // Clocks of two machines may differ: an owner is gone if its row did not change for the time of its lease.
    const end = Math.min(row.until + maxSkew, lease.seen.at + row.lease)
    lease.until = end
    if (end > now) return false
  }
  const next = encode({ v: 1, owner, until: now + millis, lease: millis })
  if (!(yield* table.swap(space, key, text, next))) return false
  Object.assign(lease, { text: next, until: now + millis, seen: undefined })
  return true
})

/** Renews the lease. Reports whether this process still has it. */
const renew = Effect.fnUntraced(function* (lease: Lease) {
  const { millis, owner, table, text } = lease
  const now = yield* Clock.currentTimeMillis
  const next = encode({ v: 1, owner, until: now + millis, lease: millis })
  // A row of this process may be stored although its write failed.
  const currentText = yield* table.get(space, key)
  const isOwn = currentText !== undefined && (currentText === text || ownerOf(currentText) === owner)
  if (!isOwn || !(yield* table.swap(space, key, currentText, next))) return false
  Object.assign(lease, { text: next, until: now + millis })
  return true
})

const ownerOf = (text: string): string | undefined => Result.getOrUndefined(decode(text))?.owner

/** Reports whether this process has the lease, without a look into the table. */
const isOwn = (lease: Lease): Effect.Effect<boolean> =>
  Clock.clockWith((clock) =>
    Effect.sync(() => lease.text !== undefined && clock.currentTimeMillisUnsafe() < lease.until)
  )

/** The right to the mail, by the lease. The failure of another process says when to try again. */
export const toOwner = (lease: Lease): Owner => ({
  isOwn: isOwn(lease),
  confirm: Effect.orElseSucceed(
    Effect.map(lease.table.get(space, key), (text) => text !== undefined && ownerOf(text) === lease.owner),
    () => false
  ),
  refuse: (threadId) =>
    Effect.map(
      Clock.currentTimeMillis,
      (now) =>
        new RunsError({
          reason: "Unavailable",
          threadId,
          problem: "another process has the mailbox and its threads; ask that one, or this one later",
          retryAfter: Math.max(1, Math.ceil((lease.until - now) / 1_000))
        })
    )
})

/** The most milliseconds between two looks at the lease of another process. */
const longest = 1_000

/** Keeps the lease until the scope closes, and calls `gain` and `lose` when it comes and goes. */
const keep = (
  lease: Lease,
  on: { readonly gain: Effect.Effect<void, RunsError>; readonly lose: Effect.Effect<void> }
) => {
  const lose = Effect.suspend(() => {
    lease.text = undefined
    return Effect.andThen(Effect.logWarning("Another process has the mailbox now: its runs end here"), on.lose)
  })
  const hold = Effect.gen(function* () {
    yield* Effect.sleep(lease.millis / 3)
    const isKept = yield* Effect.catch(renew(lease), () => isOwn(lease))
    if (!isKept) yield* lose
  })
  const wait = Effect.gen(function* () {
    yield* Effect.sleep(Math.min(longest, lease.millis / 3))
    const isGained = yield* Effect.orElseSucceed(acquire(lease, false), () => false)
    if (!isGained) return
    // Without its mail, the lease is for somebody else.
    yield* Effect.catch(on.gain, () => Effect.andThen(lose, release(lease)))
  })
  return Effect.forever(Effect.suspend(() => (lease.text === undefined ? wait : hold)))
}

const release = ({ owner, table }: Lease) =>
  Effect.ignore(
    Effect.flatMap(table.get(space, key), (text) =>
      text !== undefined && ownerOf(text) === owner ? table.swap(space, key, text, undefined) : Effect.void
    )
  )

/** Makes the lease of a mailbox, and takes it if it is free. */
export const make = Effect.fnUntraced(function* (
  table: Table,
  { millis, takesOver }: LeaseOptions
): Effect.fn.Return<Lease, RunsError, Scope.Scope> {
  const lease: Lease = { table, millis, owner: makeId(), text: undefined, until: 0, seen: undefined }
  yield* Effect.addFinalizer(() => release(lease))
  yield* Effect.mapError(acquire(lease, takesOver), unreachable)
  return lease
})

/** Begins to keep the lease. Its mail comes first, if this process has it. */
export const begin = Effect.fnUntraced(function* (
  lease: Lease,
  on: { readonly gain: Effect.Effect<void, RunsError>; readonly lose: Effect.Effect<void> }
): Effect.fn.Return<void, RunsError, Scope.Scope> {
  if (lease.text !== undefined) yield* on.gain
  yield* Effect.forkScoped(keep(lease, on))
})
