/** The permits of agents that a script runs at once. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import type * as Semaphore from "effect/Semaphore"
import * as Middleware from "../../core/Middleware.ts"
import type { Run } from "../../core/Run.ts"

/** The permit of one agent. */
interface Slot {
  /** The run of the script. */
  readonly run: Run
  readonly slots: Semaphore.Semaphore
  isHeld: boolean
}

/** The permit of the agent that the current work belongs to. */
const CurrentSlot = Context.Reference<Slot | undefined>("effect-deepagents/code/CodeMode/Slot", {
  defaultValue: () => undefined
})

const take = (slot: Slot): Effect.Effect<void> =>
  Effect.map(slot.slots.take(1), () => {
    slot.isHeld = true
  })

const release = (slot: Slot): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (!slot.isHeld) return Effect.void
    slot.isHeld = false
    return Effect.asVoid(slot.slots.release(1))
  })

/** Runs one agent with a permit, which it gives back at its end, and while it waits for a person. */
export const withSlot = <A, E, R>(
  run: Run,
  slots: Semaphore.Semaphore,
  work: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const slot: Slot = { run, slots, isHeld: false }
    return Effect.acquireUseRelease(
      Effect.interruptible(take(slot)),
      () => Effect.provideService(work, CurrentSlot, slot),
      () => release(slot)
    )
  })

/**
 * Binds the permit to the run of the agent. An agent that waits for a person has no run. One whose answer did not fit
 * runs again, and takes another permit.
 */
export const bindSlot = Middleware.make({
  name: "ScriptSlot",
  beforeAgent: Effect.fnUntraced(function* (run: Run) {
    const slot = yield* CurrentSlot
    if (slot === undefined || slot.run !== run.parent) return
    if (!slot.isHeld) yield* take(slot)
    yield* Scope.addFinalizer(run.scope, release(slot))
  })
})
