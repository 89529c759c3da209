/**
 * Loads an SDK when it is first needed, so that who does not use a provider need not install its package.
 */
import * as Effect from "effect/Effect"
import { ModelError } from "../../core/ModelError.ts"

/** Imports the module of an optional package. A package that is not there fails with the command that installs it. */
export const loadPeer = <Module>(
  origin: { readonly provider: string; readonly model: string },
  packageName: string,
  load: () => Promise<Module>
): Effect.Effect<Module, ModelError> =>
  Effect.tryPromise({
    try: load,
    catch: (cause) =>
      new ModelError({
        provider: origin.provider,
        model: origin.model,
        reason: { _tag: "Unsupported" },
        detail: `the package "${packageName}" could not be loaded; install it: npm install ${packageName}`,
        cause
      })
  })
