/**
 * Checks your own backend or sandbox.
 *
 * A subject is a layer and its abilities, such as making links behind its back or filling its disk. Mark missing abilities
 * as {@link absent}: their checks are listed with the reason, and do nothing.
 *
 * ```ts
 * import { it } from "@effect/vitest"
 * import type { Layer } from "effect"
 * import type { Backend } from "effect-deepagents"
 * import { BackendConformance } from "effect-deepagents/testing/conformance"
 *
 * declare const layer: Layer.Layer<Backend.Backend>
 *
 * const none = BackendConformance.absent("there are no files of this machine behind it")
 * const subject: BackendConformance.Subject<never, never, never> = {
 *   layer,
 *   host: none,
 *   deny: none,
 *   fillDisk: none,
 *   huge: none,
 *   maxFileSize: 10 * 1024 * 1024,
 *   manyFiles: { count: 20_000 },
 *   atomicWrites: true,
 *   distinctNames: true
 * }
 *
 * for (const check of BackendConformance.suite(subject))
 *   (check.absent === undefined ? it.live : it.live.skip)(check.name, () => check.run)
 * ```
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { Backend, type Service } from "../../core/Backend.ts"
import type { BackendError } from "../../core/BackendError.ts"
import { Sandbox } from "../../core/Sandbox.ts"
import type { Request } from "../TestBackend.ts"
import { type Absent, absent, type Check, isAbsent, makeCheck, NotConformant } from "./internal/assert.ts"
import { atomicRules, concurrencyRules } from "./internal/backend/checkConcurrency.ts"
import { globRules } from "./internal/backend/checkGlobs.ts"
import { grepRules } from "./internal/backend/checkGreps.ts"
import { denyRules, diskRules, hostRules } from "./internal/backend/checkHost.ts"
import { hugeRules, manyRules } from "./internal/backend/checkLarge.ts"
import { linkRules, raceRules } from "./internal/backend/checkLinks.ts"
import { foldingRules, pathRules } from "./internal/backend/checkPaths.ts"
import * as random from "./internal/backend/checkRandom.ts"
import { readRules } from "./internal/backend/checkReads.ts"
import { type Pair, processRules, sandboxRules, secretRules, streamRules } from "./internal/backend/checkSandbox.ts"
import { againRules, counterRules } from "./internal/backend/checkShared.ts"
import { sizeRules, transferRules } from "./internal/backend/checkTransfers.ts"
import { treeRules } from "./internal/backend/checkTrees.ts"
import { writeRules } from "./internal/backend/checkWrites.ts"
import type { Rules } from "./internal/backend/common.ts"
import { inWorkingFolder } from "./internal/backend/rooted.ts"
import type { Abilities } from "./internal/backend/subject.ts"

export type { Absent, Check } from "./internal/assert.ts"

export { absent, NotConformant }

/** A backend under test. Each check builds the layer anew, without files. `H` are its further services. */
export interface Subject<H, E, R> extends Abilities<H> {
  readonly layer: Layer.Layer<Backend | H, E, R>
}

/** A sandbox under test. Each check builds the layer anew, without files. */
export interface SandboxSubject<E, R> {
  readonly layer: Layer.Layer<Sandbox | Backend, E, R>
  /** Name of an environment variable of this process that commands must not see. */
  readonly secret: string | Absent
  /** True if commands are processes that run in the background and end by signals. */
  readonly processes: true | Absent
  /** True if output arrives while a command runs, with stderr apart from stdout. */
  readonly streams: true | Absent
}

type BackendCheck<E, R> = Check<E | BackendError, R>

type Body<A, R> = (ability: A) => Effect.Effect<void, BackendError | NotConformant, R>

/** Makes the checks of an ability. */
const makeChecks = <A, S, E, R>(
  ability: A | Absent,
  rules: ReadonlyArray<readonly [name: string, body: Body<A, S | Scope.Scope>]>,
  layer: Layer.Layer<S, E, R>
): ReadonlyArray<BackendCheck<E, R>> =>
  rules.map(([name, body]) =>
    makeCheck(name, ability, (able) => Effect.provide(Effect.scoped(body(able)), Layer.fresh(layer)))
  )

/** Lists the checks of a backend. One that names its working folder (`paths`) is checked there. */
export const suite = <H = never, E = never, R = never>(
  subject: Subject<H, E, R>
): ReadonlyArray<BackendCheck<E, R>> => {
  const group = <A>(
    ability: A | Absent,
    rules: Rules<Service, A, H | Scope.Scope>
  ): ReadonlyArray<BackendCheck<E, R>> =>
    makeChecks<A, Backend | H, E, R>(
      ability,
      rules.map(
        ([name, body]) => [name, (able) => Backend.use((backend) => body(inWorkingFolder(backend), able))] as const
      ),
      subject.layer
    )
  return [
    ...group(true, [
      ...pathRules,
      ...readRules,
      ...writeRules,
      ...treeRules,
      ...grepRules,
      ...globRules,
      ...transferRules,
      ...concurrencyRules,
      ...random.randomRules
    ]),
    ...group(subject.distinctNames, foldingRules),
    ...group(subject.maxFileSize, sizeRules),
    ...group(subject.manyFiles, manyRules<H>()),
    ...group(subject.atomicWrites, atomicRules),
    ...(subject.again === undefined ? [] : group(subject.again, againRules<H>())),
    ...(subject.counter === undefined ? [] : group(subject.counter, counterRules<H>())),
    ...group(subject.host, [...linkRules<H>(), ...hostRules<H>()]),
    ...group(
      isAbsent(subject.host) || !isAbsent(subject.host.resistsRaces) ? subject.host : subject.host.resistsRaces,
      raceRules<H>()
    ),
    ...group(subject.deny, denyRules<H>()),
    ...group(subject.fillDisk, diskRules<H>()),
    ...group(subject.huge, hugeRules<H>())
  ]
}

/** Lists the checks of commands. Run {@link suite} on a sandbox too. */
export const sandboxSuite = <E, R>(subject: SandboxSubject<E, R>): ReadonlyArray<BackendCheck<E, R>> => {
  const group = <A>(ability: A | Absent, rules: Rules<Pair, A>): ReadonlyArray<BackendCheck<E, R>> =>
    makeChecks<A, Backend | Sandbox, E, R>(
      ability,
      rules.map(
        ([name, body]) =>
          [
            name,
            (able) => Sandbox.use((sandbox) => Backend.use((backend) => body({ sandbox, backend }, able)))
          ] as const
      ),
      subject.layer
    )
  return [
    ...group(true, sandboxRules),
    ...group(subject.processes, processRules),
    ...group(subject.streams, streamRules),
    ...group(subject.secret, secretRules)
  ]
}

/**
 * Runs operations on an empty backend and on the reference, and compares results and final files. The `version`
 * `"current"` means the current version of the file.
 */
export const agrees = (requests: ReadonlyArray<Request>): Effect.Effect<void, BackendError | NotConformant, Backend> =>
  Backend.use((backend) => random.agrees(backend, requests))

/** Makes conflicting operations for {@link agrees}. The same seed makes the same operations. */
export const randomRequests: (seed: number, count: number) => ReadonlyArray<Request> = random.randomRequests
