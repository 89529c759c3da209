/**
 * Locks by path: a held path excludes other holders of the path, its content and its parents.
 *
 * A holder of `/a/b` shares `/a` with the holders of sibling files, while a move of `/a` waits for all of them and
 * blocks new ones. Each path is first come, first served.
 */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Path from "./path.ts"

export interface Locks {
  /** Runs an effect while it holds the paths (normalised, not `/`). The effect must not lock further paths. */
  readonly hold: (paths: ReadonlyArray<string>) => <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** The number of paths with holders or waiters. */
  readonly size: () => number
}

interface Gate {
  readers: number
  writing: boolean
  readonly waiting: Set<Claim>
}

interface Claim {
  readonly path: string
  readonly exclusive: boolean
  state: "new" | "waiting" | "held"
  resume: ((effect: Effect.Effect<void>) => void) | undefined
}

/** Every holder claims in one order, outer directories first: so no two can wait for each other. */
const claimsOf = (paths: ReadonlyArray<string>): ReadonlyArray<Claim> => {
  const wanted = new Map<string, boolean>()
  for (const path of paths) {
    wanted.set(path, true)
    for (let above = Path.parent(path); above !== "/"; above = Path.parent(above)) {
      if (!wanted.has(above)) wanted.set(above, false)
    }
  }
  return [...wanted]
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([path, exclusive]) => ({ path, exclusive, state: "new", resume: undefined }))
}

export const make = (): Locks => {
  const gates = new Map<string, Gate>()

  const isFree = (gate: Gate, claim: Claim): boolean => !gate.writing && (!claim.exclusive || gate.readers === 0)

  const take = (gate: Gate, claim: Claim): void => {
    claim.state = "held"
    if (claim.exclusive) gate.writing = true
    else gate.readers++
  }

  /** Tells whether the claim is held from now on; if not, it waits its turn. */
  const ask = (claim: Claim): boolean => {
    const gate = gates.get(claim.path) ?? { readers: 0, writing: false, waiting: new Set<Claim>() }
    gates.set(claim.path, gate)
    if (gate.waiting.size === 0 && isFree(gate, claim)) {
      take(gate, claim)
      return true
    }
    claim.state = "waiting"
    gate.waiting.add(claim)
    return false
  }

  const letIn = (fiber: Fiber.Fiber<unknown, unknown>, path: string, gate: Gate): void => {
    for (const claim of gate.waiting) {
      if (!isFree(gate, claim)) break
      gate.waiting.delete(claim)
      take(gate, claim)
      // Waiters start later, so that thousands of them do not nest on the stack.
      if (claim.resume !== undefined) fiber.currentDispatcher.scheduleTask(() => claim.resume?.(Effect.void), 0)
    }
    if (gate.readers === 0 && !gate.writing && gate.waiting.size === 0) gates.delete(path)
  }

  const give = (fiber: Fiber.Fiber<unknown, unknown>, claim: Claim): void => {
    const gate = gates.get(claim.path)
    if (gate === undefined || claim.state === "new") return
    if (claim.state === "waiting") gate.waiting.delete(claim)
    else if (claim.exclusive) gate.writing = false
    else gate.readers--
    letIn(fiber, claim.path, gate)
  }

  const wait = (claim: Claim): Effect.Effect<void> =>
    Effect.callback((resume) => {
      if (claim.state === "held") resume(Effect.void)
      else claim.resume = resume
    })

  return {
    hold: (paths) => (effect) =>
      Effect.uninterruptibleMask((restore) => {
        const claims = claimsOf(paths)
        const from = (start: number): Effect.Effect<void> => {
          for (let index = start; index < claims.length; index++) {
            const claim = claims[index]
            if (claim !== undefined && !ask(claim)) return Effect.flatMap(restore(wait(claim)), () => from(index + 1))
          }
          return Effect.void
        }
        return Effect.suspend(() => Effect.andThen(from(0), restore(effect))).pipe(
          Effect.onExit(() =>
            Effect.withFiber((fiber) => {
              for (const claim of claims) give(fiber, claim)
              return Effect.void
            })
          )
        )
      }),
    size: () => gates.size
  }
}
