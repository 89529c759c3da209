/**
 * Loads an optional package when it is needed, so that who does not use a backend need not install what it runs on.
 */
import * as Effect from "effect/Effect"
import * as BackendError from "../../../core/BackendError.ts"

/** Imports the module of a package. One that is not there fails with the command that installs it. */
export const loadPeer = <Module>(
  packageName: string,
  load: () => Promise<Module>
): Effect.Effect<Module, BackendError.BackendError> =>
  Effect.tryPromise({
    try: load,
    catch: (cause) =>
      BackendError.make(
        "open",
        "/",
        { _tag: "Unsupported" },
        { detail: `the package "${packageName}" could not be loaded; install it: npm install ${packageName}`, cause }
      )
  })
