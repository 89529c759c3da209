/** Queues the runs of this process on one thread. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { make as failure, type SessionError } from "../../core/SessionError.ts"
import type { Service } from "../../core/SessionStore.ts"
import { Held } from "../../core/thread/parts.ts"
import { baseOf } from "../decorated.ts"

/** Decides about a run while another one of this process is at work on its thread. */
export type Busy = "queue" | "refuse"

/** The turn of a thread: one run at a time has it. */
interface Turn {
  readonly lock: Semaphore.Semaphore
  holder: Holder | undefined
  /** The runs that have it or wait for it. */
  users: number
}

/** A run that waits for a turn: two may wait for the same one. */
interface Wait {
  readonly turn: Turn
}

/** A run that holds a turn, and the turns that its inner runs wait for. */
interface Holder {
  readonly waits: Set<Wait>
}

/** The turns of each store that decorates no other, by thread. */
const turns = new WeakMap<Service, Map<string, Turn>>()

const turnsOf = (store: Service): Map<string, Turn> => {
  const threads = turns.get(store) ?? new Map<string, Turn>()
  turns.set(store, threads)
  return threads
}

/** Reports whether no run can get a turn before one of these ends. */
const isHeldBy = (turn: Turn, holders: ReadonlySet<unknown>, seen: Set<Turn> = new Set()): boolean => {
  if (seen.has(turn) || turn.holder === undefined) return false
  seen.add(turn)
  return holders.has(turn.holder) || [...turn.holder.waits].some((wait) => isHeldBy(wait.turn, holders, seen))
}

const isHolder = (one: unknown): one is Holder => typeof one === "object" && one !== null && "waits" in one

/**
 * Takes the turn of a thread until the scope closes. Fails with `Busy` instead of a deadlock: inside of a run that
 * holds the turn, or that waits for this run.
 */
export const take = (store: Service, threadId: string, busy: Busy): Effect.Effect<unknown, SessionError, Scope.Scope> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const outer = (yield* Held).filter(isHolder)
      const base = baseOf(store, threadId)
      const all = turnsOf(base.store)
      const turn = all.get(base.threadId) ?? { lock: yield* Semaphore.make(1), holder: undefined, users: 0 }
      const isTaken = turn.users > 0
      if (isTaken && (busy === "refuse" || isHeldBy(turn, new Set(outer)))) {
        return yield* failure("open", threadId, { _tag: "Busy" })
      }
      const leave = Effect.sync(() => {
        turn.users--
        if (turn.users === 0) all.delete(base.threadId)
      })
      turn.users++
      all.set(base.threadId, turn)
      yield* Effect.addFinalizer(() => leave)
      const wait: Wait = { turn }
      for (const { waits } of outer) waits.add(wait)
      // An interrupted run gives a turn that it just took back with the scope.
      yield* Effect.ensuring(
        restore(turn.lock.takeScoped(1)),
        Effect.sync(() => {
          for (const { waits } of outer) waits.delete(wait)
        })
      )
      const holder: Holder = { waits: new Set() }
      turn.holder = holder
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          turn.holder = undefined
        })
      )
      return holder
    })
  )
