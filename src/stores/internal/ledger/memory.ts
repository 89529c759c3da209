/** The tables of a ledger in memory. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { add, type Entry, keptFor, none, openFor, type Place, type Row, settlesFor, type Tables } from "./tables.ts"

interface OpenHold {
  readonly row: Row
  readonly expiresAt: number
}

interface Account {
  total: Row
  readonly open: Map<string, OpenHold>
  readonly goneAt: number
}

/** Periods have no line breaks in their names. */
const keyOf = ({ account, period }: Place): string => `${period}\n${account}`

/** Makes empty tables. */
export const make = (): Tables => {
  const accounts = new Map<string, Account>()
  const marks = new Map<string, number>()
  let sweptAt = -Infinity

  const hasRoom = ({ most, ...entry }: Entry): boolean => {
    const total = accounts.get(keyOf(entry))?.total ?? none
    return total.every((sum, index) => sum <= (most[index] ?? Infinity))
  }

  const open = (entry: Entry, now: number): Account => {
    const key = keyOf(entry)
    const current = accounts.get(key)
    if (current !== undefined) return current
    const goneAt = entry.lasts === undefined ? Infinity : now + entry.lasts + keptFor
    const account: Account = { total: none, open: new Map(), goneAt }
    accounts.set(key, account)
    return account
  }

  const sweep = (now: number): void => {
    if (now - sweptAt < openFor) return
    sweptAt = now
    for (const [key, account] of accounts) {
      if (account.goneAt <= now) accounts.delete(key)
      else for (const [id, { expiresAt }] of account.open) if (expiresAt + settlesFor <= now) account.open.delete(id)
    }
  }

  // By a monotonic clock: setting the clock of the machine deletes nothing.
  const at = <A>(body: (now: number) => A): Effect.Effect<A> =>
    Effect.map(Clock.monotonicTimeNanos, (nanos) => body(Number(nanos / 1_000_000n)))

  return {
    take: (id, entries) =>
      at((now) => {
        sweep(now)
        const index = entries.findIndex((entry) => !hasRoom(entry))
        if (index >= 0) return index
        for (const entry of entries) {
          const account = open(entry, now)
          account.total = add(account.total, entry.add)
          account.open.set(id, { row: entry.add, expiresAt: now + openFor })
        }
        return undefined
      }),
    settle: (id, places, change) =>
      Effect.sync(() => {
        for (const place of places) {
          const account = accounts.get(keyOf(place))
          if (account?.open.delete(id) === true) account.total = add(account.total, change)
        }
      }),
    read: (place) =>
      at((now) => {
        const account = accounts.get(keyOf(place))
        if (account === undefined) return { total: none, reserved: none }
        let reserved = none
        for (const { expiresAt, row } of account.open.values()) if (expiresAt > now) reserved = add(reserved, row)
        return { total: account.total, reserved }
      }),
    mark: (name) => Effect.sync(() => marks.get(name) ?? 0),
    raise: (name, value) =>
      Effect.sync(() => {
        if (value <= (marks.get(name) ?? 0)) return false
        marks.set(name, value)
        return true
      })
  }
}
