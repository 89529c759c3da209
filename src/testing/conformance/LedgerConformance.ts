/**
 * Checks that every ledger must pass, to be run against a layer of your own.
 *
 * A subject makes a place (a file, a database) and a layer on it. What it can't do is {@link absent}: the checks that need
 * it are in the list with the reason, and do nothing.
 *
 * ```ts
 * import { it } from "@effect/vitest"
 * import { Effect } from "effect"
 * import { Ledger } from "effect-deepagents/stores"
 * import { LedgerConformance } from "effect-deepagents/testing/conformance"
 *
 * const checks = LedgerConformance.suite({
 *   place: Effect.void,
 *   layer: () => Ledger.layerMemory,
 *   survives: LedgerConformance.absent("it is gone with the layer")
 * })
 *
 * for (const check of checks)
 *   (check.absent === undefined ? it.live : it.live.skip)(check.name, () => check.run)
 * ```
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { Ledger, type LedgerError, type LedgerFull, type Service } from "../../core/Ledger.ts"
import { type Absent, absent, NotConformant } from "./internal/assert.ts"
import { placeRules, sharedRules, survivalRules } from "./internal/ledger/checkPlaces.ts"
import { sumRules } from "./internal/ledger/checkSums.ts"

export { type Absent, absent, NotConformant }

/** A ledger under test. */
export interface Subject<P, E, R> {
  /** Makes an empty place, anew for each check. */
  readonly place: Effect.Effect<P, E, R | Scope.Scope>
  /** The ledger at a place. */
  readonly layer: (place: P) => Layer.Layer<Ledger, E, R>
  /** Whether a ledger that is opened again, or twice, at one place has one state. */
  readonly survives: true | Absent
}

/** One check: run it under any test runner, with a live clock. With `absent` it does nothing, for that reason. */
export interface Check<out E, out R> {
  readonly name: string
  readonly absent?: string | undefined
  readonly run: Effect.Effect<void, E | LedgerError | LedgerFull | NotConformant, R>
}

/** The checks of a ledger, to be run one by one. */
export const suite = <P, E, R>(subject: Subject<P, E, R>): ReadonlyArray<Check<E, R>> => {
  const { survives } = subject
  const on = <A, E2>(place: P, body: (ledger: Service) => Effect.Effect<A, E2>) =>
    Effect.provide(Ledger.use(body), Layer.fresh(subject.layer(place)))
  const open = (place: P) =>
    Effect.map(Layer.build(Layer.fresh(subject.layer(place))), (context) => Context.get(context, Ledger))
  const plain = [...sumRules, ...placeRules].map(([name, body]) => ({
    name,
    run: Effect.scoped(Effect.flatMap(subject.place, (place) => on(place, body)))
  }))
  const needing = (name: string, run: Check<E, R>["run"]): Check<E, R> =>
    survives === true ? { name, run } : { name, absent: survives.reason, run: Effect.void }
  return [
    ...plain,
    ...survivalRules.map(([name, write, read]) =>
      needing(
        name,
        Effect.scoped(Effect.flatMap(subject.place, (place) => Effect.andThen(on(place, write), on(place, read))))
      )
    ),
    ...sharedRules.map(([name, body]) =>
      needing(
        name,
        Effect.scoped(
          Effect.flatMap(subject.place, (place) =>
            Effect.flatMap(Effect.all([open(place), open(place)]), ([one, other]) => body(one, other))
          )
        )
      )
    )
  ]
}
