/**
 * Checks that every session store must pass, to be run against a layer of your own.
 *
 * A subject makes a place (a folder, a file, a database) and a layer on it. Mark missing abilities as {@link absent}:
 * their checks are in the list with the reason, and do nothing.
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
import { type Absent, absent, NotConformant } from "./internal/assert.ts"
import { appendRules } from "./internal/session/checkAppends.ts"
import { listRules } from "./internal/session/checkLists.ts"
import { diskRules, survivalRules } from "./internal/session/checkPlaces.ts"
import { treeRules } from "./internal/session/checkTrees.ts"

export { type Absent, absent, NotConformant }

/**
 * A store under test. `place` is made anew for each check, and empty. A layer that `survives` still has its data when
 * it is built again at its place. `fillDisk` fails all writes until the layer is built again.
 */
export interface Subject<P, E, R> {
  readonly place: Effect.Effect<P, E, R | Scope.Scope>
  readonly layer: (place: P) => Layer.Layer<SessionStore, E, R>
  readonly survives: true | Absent
  readonly fillDisk: ((place: P) => Effect.Effect<void>) | Absent
}

/** One check: run it under any test runner, with a live clock. With `absent` it does nothing, for that reason. */
export interface Check<out E, out R> {
  readonly name: string
  readonly absent?: string | undefined
  readonly run: Effect.Effect<void, E | SessionError | NotConformant, R>
}

/** The checks of a store, to be run one by one. */
export const suite = <P, E, R>(subject: Subject<P, E, R>): ReadonlyArray<Check<E, R>> => {
  const { fillDisk, survives } = subject
  const on = <A, E2>(place: P, body: (store: Service) => Effect.Effect<A, E2>) =>
    Effect.provide(SessionStore.use(body), Layer.fresh(subject.layer(place)))
  const plain = [...appendRules, ...treeRules, ...listRules].map(([name, body]) => ({
    name,
    run: Effect.scoped(Effect.flatMap(subject.place, (place) => on(place, body)))
  }))
  const survival = survivalRules.map(([name, write, read]) =>
    survives !== true
      ? { name, absent: survives.reason, run: Effect.void }
      : {
          name,
          run: Effect.scoped(
            Effect.flatMap(subject.place, (place) =>
              Effect.flatMap(on(place, write), (written) => on(place, (store) => read(store, written)))
            )
          )
        }
  )
  const disk = diskRules.map(([name, write, read]) =>
    "_tag" in fillDisk
      ? { name, absent: fillDisk.reason, run: Effect.void }
      : {
          name,
          run: Effect.scoped(
            Effect.flatMap(subject.place, (place) =>
              Effect.flatMap(
                on(place, (store) => write(store, fillDisk(place))),
                (written) => (survives === true ? on(place, (store) => read(store, written)) : Effect.void)
              )
            )
          )
        }
  )
  return [...plain, ...survival, ...disk]
}
