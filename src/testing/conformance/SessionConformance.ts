/**
 * Checks your own session store.
 *
 * A subject makes a place (a folder, a file, a database) and a layer on it. Mark missing abilities as {@link absent}:
 * their checks are listed with the reason, and do nothing.
 *
 * ```ts
 * import { it } from "@effect/vitest"
 * import { Effect } from "effect"
 * import { MemorySessions } from "effect-deepagents/sessions"
 * import { SessionConformance } from "effect-deepagents/testing/conformance"
 *
 * const none = SessionConformance.absent("it is gone with the layer")
 * const checks = SessionConformance.suite({
 *   place: Effect.void,
 *   layer: () => MemorySessions.layer,
 *   survives: none,
 *   fillDisk: none
 * })
 *
 * for (const check of checks)
 *   (check.absent === undefined ? it.live : it.live.skip)(check.name, () => check.run)
 * ```
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { SessionError } from "../../core/SessionError.ts"
import { type Service, SessionStore } from "../../core/SessionStore.ts"
import { type Absent, absent, type Check, makeCheck, type NotConformant } from "./internal/assert.ts"
import { appendRules } from "./internal/session/checkAppends.ts"
import { listRules } from "./internal/session/checkLists.ts"
import { diskRules, survivalRules } from "./internal/session/checkPlaces.ts"
import { treeRules } from "./internal/session/checkTrees.ts"

export { absent }

type SessionCheck<E, R> = Check<E | SessionError, R>

/** A store under test. */
export interface Subject<P, E, R> {
  /** Makes an empty place for each check. */
  readonly place: Effect.Effect<P, E, R | Scope.Scope>
  /** Provides the store of a place. */
  readonly layer: (place: P) => Layer.Layer<SessionStore, E, R>
  /** True if a layer has its data when it is built again at its place. */
  readonly survives: true | Absent
  /** Fails all writes until the layer is built again. */
  readonly fillDisk: ((place: P) => Effect.Effect<void>) | Absent
}

/** Lists the checks of a store. */
export const suite = <P, E, R>(subject: Subject<P, E, R>): ReadonlyArray<SessionCheck<E, R>> => {
  const { fillDisk, survives } = subject
  const runOn = <A, E2>(place: P, body: (store: Service) => Effect.Effect<A, E2>) =>
    Effect.provide(SessionStore.use(body), Layer.fresh(subject.layer(place)))
  const check = <A, E2>(
    name: string,
    ability: A | Absent,
    run: (place: P, ability: A) => Effect.Effect<void, E2 | NotConformant, R>
  ) => makeCheck(name, ability, (able) => Effect.flatMap(subject.place, (place) => run(place, able)))
  return [
    ...[...appendRules, ...treeRules, ...listRules].map(([name, body]) =>
      check(name, true, (place) => runOn(place, body))
    ),
    ...survivalRules.map(([name, write, read]) =>
      check(name, survives, (place) =>
        Effect.flatMap(runOn(place, write), (value) => runOn(place, (store) => read(store, value)))
      )
    ),
    ...diskRules.map(([name, write, read]) =>
      check(name, fillDisk, (place, fill) =>
        Effect.flatMap(
          runOn(place, (store) => write(store, fill(place))),
          (value) => (survives === true ? runOn(place, (store) => read(store, value)) : Effect.void)
        )
      )
    )
  ]
}
