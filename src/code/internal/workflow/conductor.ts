/** Conducts the agents of a workflow: their number at once, their cost, and the end of all beginning. */
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { Run } from "../../../core/Run.ts"
import type { ToolContext } from "../../../core/ToolContext.ts"
import * as Attached from "../../../support/effect/attached.ts"
import { cut } from "../../../support/text/text.ts"

/** Why nothing more begins. */
export interface Halt {
  readonly reason: "Terminal" | "Limit" | "Budget"
  readonly message: string
}

/** An agent that the script asked for. `run` is its run, once there is one. */
export interface Slot {
  readonly conductor: Conductor
  readonly id: number
  readonly label: string
  readonly phase: string
  run: Run | undefined
  isHeld: boolean
}

/** The limits of one input. */
export interface Bounds {
  readonly agents: number
  readonly concurrency: number
  readonly cost: number | undefined
}

export interface Conductor {
  readonly run: Run
  /** Keeps the program of the workflow at work. */
  readonly working: ToolContext["Service"]["working"]
  /** Tells people the progress of the agents. */
  readonly emit: ToolContext["Service"]["emit"]
  readonly bounds: Bounds
  readonly slots: Semaphore.Semaphore
  /** Settled when a halted workflow has nothing at work any more. */
  readonly stopped: Deferred.Deferred<Halt>
  /** The models that will answer nobody. */
  readonly blown: Set<string>
  /** Agents without a result: at work, or waiting for a person. */
  readonly open: Set<Slot>
  halt: Halt | undefined
  /** The part of the work that the script has told last. */
  phase: string
  asked: number
  finished: number
  replayed: number
  /** Model calls, tool calls and turns of the script that run now. */
  active: number
  isSettling: boolean
  /** The cost of earlier inputs, less the cost of the run before this input. */
  readonly costBefore: number
}

const conductors = Attached.make<Run, Conductor>()

/** Makes the conductor of a workflow. `costBefore` is the cost of the workflow so far. */
export const make = ({ emit, run, working }: ToolContext["Service"], bounds: Bounds, costBefore: number): Conductor => {
  const conductor: Conductor = {
    run,
    working,
    emit,
    bounds,
    slots: Semaphore.makeUnsafe(bounds.concurrency),
    stopped: Deferred.makeUnsafe(),
    blown: new Set(),
    open: new Set(),
    halt: undefined,
    phase: "",
    asked: 0,
    finished: 0,
    replayed: 0,
    active: 0,
    isSettling: false,
    costBefore: costBefore - (run.usage.cost ?? 0)
  }
  conductors.set(run, conductor)
  return conductor
}

/** The workflows that a run belongs to, from the inside out. */
export const conductorsOf = (run: Run): ReadonlyArray<Conductor> => {
  const chain: Array<Conductor> = []
  for (let one: Run | undefined = run; one !== undefined; one = one.parent) {
    const conductor = conductors.get(one)
    if (conductor !== undefined) chain.push(conductor)
  }
  return chain
}

/** The cost of a workflow over all of its inputs. */
export const costOf = ({ costBefore, run }: Conductor): number => costBefore + (run.usage.cost ?? 0)

// ---- Halting

/** Lets nothing more begin. The workflow stops as soon as nothing is at work. */
export const halt = (conductor: Conductor, reason: Halt["reason"], message: string): Effect.Effect<void> =>
  Effect.suspend(() => {
    conductor.halt ??= { reason, message }
    return settle(conductor)
  })

/** How often a halted workflow yields before it counts as still: an agent stores its turn between two calls. */
const patience = 200

/** Stops a halted workflow at which nothing is at work. */
const settle = (conductor: Conductor): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (conductor.halt === undefined || conductor.active > 0 || conductor.isSettling) return Effect.void
    conductor.isSettling = true
    const { halt } = conductor
    const waiting = Effect.gen(function* () {
      for (let left = patience; left > 0 && conductor.active === 0; left--) yield* Effect.yieldNow
      conductor.isSettling = false
      if (conductor.active > 0) return
      yield* Deferred.succeed(conductor.stopped, halt)
      // A workflow that stops must not be suspended for a worker that waits.
      return yield* Effect.never
    })
    const working = conductor.working(waiting)
    return Effect.asVoid(Effect.forkIn(working, conductor.run.scope, { startImmediately: true }))
  })

/** Runs work that a halted workflow waits for. */
export const countActive = <A, E, R>(
  all: ReadonlyArray<Conductor>,
  work: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    beginActive(all)
    return Effect.onExit(work, () => endActive(all))
  })

export const beginActive = (all: ReadonlyArray<Conductor>): void => {
  for (const one of all) one.active++
}

export const endActive = (all: ReadonlyArray<Conductor>): Effect.Effect<void> =>
  Effect.forEach(
    all,
    (one) => {
      one.active--
      return settle(one)
    },
    { discard: true }
  )

// ---- Agents

/** The agent of the script that the current work belongs to. */
const CurrentSlot = Context.Reference<Slot | undefined>("effect-deepagents/code/Workflow/Slot", {
  defaultValue: () => undefined
})

const release = (slot: Slot): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (!slot.isHeld) return Effect.void
    slot.isHeld = false
    return Effect.asVoid(slot.conductor.slots.release(1))
  })

const cutLine = (text: string): string => cut(text.replaceAll(/\s+/g, " ").trim(), 80)

/** Tells people that an agent has begun, or that its answer was stored. */
const tellAgent = ({ conductor, id, label, phase, run }: Slot): Effect.Effect<void> =>
  conductor.emit({ agent: label, id, phase, ...(run === undefined ? { isStored: true } : { runId: run.runId }) })

/** An agent that a script asks: its name for people, and the part of the work that it belongs to. */
interface AgentName {
  readonly label: string
  readonly phase: string | undefined
}

/**
 * Runs one agent, when it is its turn. It gives its turn back at its end, and while it waits for a person: then its run
 * has ended.
 */
export const inTurn = <A, E, R>(
  conductor: Conductor,
  { label, phase = conductor.phase }: AgentName,
  work: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const slot: Slot = {
      conductor,
      id: conductor.asked,
      label: cutLine(label),
      phase: cutLine(phase),
      run: undefined,
      isHeld: false
    }
    const began = Effect.suspend(() => {
      if (conductor.halt !== undefined) return Effect.never
      return Effect.onExit(Effect.provideService(work, CurrentSlot, slot), (exit) =>
        Effect.suspend(() => {
          // Nobody hears of an agent that fails in a halted workflow: the next input resumes it.
          if (Exit.isSuccess(exit) || conductor.halt === undefined) conductor.open.delete(slot)
          if (Exit.isFailure(exit) || slot.run !== undefined) return Effect.void
          conductor.replayed++
          return tellAgent(slot)
        })
      )
    })
    return Effect.acquireUseRelease(
      Effect.interruptible(take(slot)),
      () => began,
      () => release(slot)
    )
  })

const take = (slot: Slot): Effect.Effect<void> =>
  Effect.map(slot.conductor.slots.take(1), () => {
    slot.isHeld = true
  })

/**
 * Binds the run of an agent to its turn, before the first round of every run below a workflow. An agent whose answer did
 * not fit runs again, and waits for another turn.
 */
export const bindRun = (run: Run): Effect.Effect<void> =>
  Effect.gen(function* () {
    const slot = yield* CurrentSlot
    if (slot === undefined || slot.conductor.run !== run.parent) return
    if (!slot.isHeld) yield* take(slot)
    if (slot.conductor.halt !== undefined) return yield* Effect.never
    slot.run = run
    slot.conductor.open.add(slot)
    yield* tellAgent(slot)
    yield* Scope.addFinalizer(run.scope, release(slot))
  })
