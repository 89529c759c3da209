/**
 * Checks your own ledger.
 *
 * A subject makes a place (a file, a database) and a layer on it. Mark missing abilities as {@link absent}: their checks
 * are listed with the reason, and do nothing.
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
import { type Absent, absent, type Check, makeCheck, type NotConformant } from "./internal/assert.ts"
import { placeRules, sharedRules, survivalRules } from "./internal/ledger/checkPlaces.ts"
import { sumRules } from "./internal/ledger/checkSums.ts"

export { absent }

type LedgerCheck<E, R> = Check<E | LedgerError | LedgerFull, R>

/** A ledger under test. */
export interface Subject<P, E, R> {
  /** Makes an empty place for each check. */
  readonly place: Effect.Effect<P, E, R | Scope.Scope>
  /** Provides the ledger of a place. */
  readonly layer: (place: P) => Layer.Layer<Ledger, E, R>
  /** True if all ledgers of one place share their state, also when opened again. */
  readonly survives: true | Absent
}

/** Lists the checks of a ledger. */
export const suite = <P, E, R>(subject: Subject<P, E, R>): ReadonlyArray<LedgerCheck<E, R>> => {
  const { survives } = subject
  const runOn = <A, E2>(place: P, body: (ledger: Service) => Effect.Effect<A, E2>) =>
    Effect.provide(Ledger.use(body), Layer.fresh(subject.layer(place)))
  const openLedger = (place: P) =>
    Effect.map(Layer.build(Layer.fresh(subject.layer(place))), (context) => Context.get(context, Ledger))
  const check = <E2>(
    name: string,
    ability: true | Absent,
    run: (place: P) => Effect.Effect<void, E2 | NotConformant, R | Scope.Scope>
  ) => makeCheck(name, ability, () => Effect.flatMap(subject.place, run))
  return [
    ...[...sumRules, ...placeRules].map(([name, body]) => check(name, true, (place) => runOn(place, body))),
    ...survivalRules.map(([name, write, read]) =>
      check(name, survives, (place) => Effect.andThen(runOn(place, write), runOn(place, read)))
    ),
    ...sharedRules.map(([name, body]) =>
      check(name, survives, (place) =>
        Effect.flatMap(Effect.all([openLedger(place), openLedger(place)]), ([one, other]) => body(one, other))
      )
    )
  ]
}
