/** Loads an optional package when it is first needed, so that whoever does not use it need not install it. */
import * as Effect from "effect/Effect"

/** Imports a package. If it is not there, fails with `onError` of the command that installs it. */
export const loadPeer = <Module, E>(
  packageName: string,
  load: () => Promise<Module>,
  onError: (detail: string, cause: unknown) => E
): Effect.Effect<Module, E> =>
  Effect.tryPromise({
    try: load,
    catch: (cause) =>
      onError(`the package "${packageName}" could not be loaded; install it: npm install ${packageName}`, cause)
  })
