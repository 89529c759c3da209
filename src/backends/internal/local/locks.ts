/**
 * Serialises changes of one file across the layers of this process and the processes of this machine.
 *
 * Within a process the key is the real path, so layers with overlapping roots share locks, and a change of a folder
 * waits for changes in it. Across processes the key is the name and the folder's identity in the file system. Names
 * that some file systems treat as equal share a key.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import type { Exclusive } from "../derive/target.ts"
import * as Locks from "../files/locks.ts"
import * as Path from "../files/path.ts"
import { type Fault, on } from "./failure.ts"
import * as Jail from "./jail.ts"
import * as Machine from "./machineLocks.ts"
import * as System from "./system.ts"

const folded = (path: string): string => path.normalize("NFC").toLowerCase()

const inProcess = Locks.make()

/** Identifies a path by its last existing folder and the names below it. */
const identityOf = Effect.fnUntraced(function* (jail: Jail.Jail, path: string) {
  const { missing, names, stats } = yield* Jail.locate(jail, Path.segments(path), false)
  const [folder, rest] = stats === undefined ? [names, missing] : [names.slice(0, -1), names.slice(-1)]
  const { dev, ino } = yield* System.lstat(Jail.realPath(jail, folder))
  return { is: `${dev}:${ino}/${folded(rest.join("/"))}`, isSure: rest.length === 1 }
})

type Identity = Effect.Success<ReturnType<typeof identityOf>>

/** A path that can't be resolved needs no lock: its change fails anyway. */
const identitiesOf = (jail: Jail.Jail, paths: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<Identity>> =>
  Effect.map(
    Effect.forEach(paths, (path) => Effect.option(identityOf(jail, path))),
    (identities) => identities.filter(Option.isSome).map(({ value }) => value)
  )

/** Takes the locks of paths, and resolves the paths again if they changed meanwhile. */
const locking = (
  jail: Jail.Jail,
  paths: ReadonlyArray<string>,
  identities: ReadonlyArray<Identity>
): Effect.Effect<void, Fault, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const inner = yield* Scope.fork(scope)
    const waited = yield* Scope.provide(Machine.locking(identities.map(({ is }) => is)), inner)
    if (!waited && identities.every(({ isSure }) => isSure)) return
    const now = yield* identitiesOf(jail, paths)
    if (now.length === identities.length && now.every(({ is }, index) => is === identities[index]?.is)) return
    yield* Scope.close(inner, Exit.void)
    yield* locking(jail, paths, now)
  })

/** The locks of a root. */
export const make = (jail: Jail.Jail): Exclusive => {
  const real = (path: string) => folded(path === "/" ? jail.root || "/" : `${jail.root}${path}`)
  return {
    hold: (paths) => (effect) =>
      Effect.scoped(
        Effect.andThen(
          on(
            "lock",
            paths[0] ?? "/",
            Effect.flatMap(identitiesOf(jail, paths), (identities) => locking(jail, paths, identities))
          ),
          effect
        )
      ).pipe(inProcess.hold(paths.map(real)))
  }
}
