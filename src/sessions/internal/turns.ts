import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { Held } from "../../core/Journal.ts"
import { make as failure, type SessionError } from "../../core/SessionError.ts"
import type { Service } from "../../core/SessionStore.ts"

/** What becomes of a run while another one of this process is at work on its thread. */
export type Busy = "queue" | "refuse"

/** The turn of a thread: one run at a time has it. */
interface Turn {
  readonly lock: Semaphore.Semaphore
  holder: Holder | undefined
  /** Who has it or waits for it. */
  users: number
}

/** A run that has a turn. `waiting` are the turns that runs inside of it wait for. */
interface Holder {
  readonly waiting: Set<Turn>
}

/** A store's turns are one for all who use it, and gone with it. */
const turns = new WeakMap<Service, Map<string, Turn>>()

const turnsOf = (store: Service): Map<string, Turn> => {
  const known = turns.get(store) ?? new Map<string, Turn>()
  turns.set(store, known)
  return known
}

/** Whether a turn comes to nobody before one of these runs ends. */
const isHeldBy = (turn: Turn, held: ReadonlySet<unknown>, seen: Set<Turn> = new Set()): boolean => {
  if (seen.has(turn) || turn.holder === undefined) return false
  seen.add(turn)
  return held.has(turn.holder) || [...turn.holder.waiting].some((next) => isHeldBy(next, held, seen))
}

const isHolder = (one: unknown): one is Holder => typeof one === "object" && one !== null && "waiting" in one

/**
 * Takes the turn of a thread until the scope is closed. A run that is inside of one that has it, or of one that waits for
 * this one, would wait for ever: it fails with `Busy`.
 */
export const take = (store: Service, threadId: string, busy: Busy): Effect.Effect<unknown, SessionError, Scope.Scope> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const outer = (yield* Held).filter(isHolder)
      const all = turnsOf(store)
      const turn = all.get(threadId) ?? { lock: yield* Semaphore.make(1), holder: undefined, users: 0 }
      const isTaken = turn.users > 0
      if (isTaken && (busy === "refuse" || isHeldBy(turn, new Set(outer)))) {
        return yield* failure("open", threadId, { _tag: "Busy" })
      }
      const leave = Effect.sync(() => {
        turn.users--
        if (turn.users === 0) all.delete(threadId)
      })
      turn.users++
      all.set(threadId, turn)
      for (const { waiting } of outer) waiting.add(turn)
      const got = Effect.ensuring(
        restore(turn.lock.take(1)),
        Effect.sync(() => {
          for (const { waiting } of outer) waiting.delete(turn)
        })
      )
      yield* Effect.onExit(got, (exit) => (exit._tag === "Failure" ? leave : Effect.void))
      const holder: Holder = { waiting: new Set() }
      turn.holder = holder
      yield* Effect.addFinalizer(() => {
        turn.holder = undefined
        return Effect.andThen(turn.lock.release(1), leave)
      })
      return holder
    })
  )
