/** Loads an optional package at its first use, so that other programs need not install it. */
import * as Effect from "effect/Effect"

/** Imports a package. If it is missing, it fails with `onError` of the install command. */
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
