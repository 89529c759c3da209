/**
 * Loads the package that a backend runs on when it is first needed.
 */
import type * as Effect from "effect/Effect"
import * as BackendError from "../../../core/BackendError.ts"
import * as Peer from "../../../support/peer.ts"

/** Imports the module of a package. One that is not there fails with the command that installs it. */
export const loadPeer = <Module>(
  packageName: string,
  load: () => Promise<Module>
): Effect.Effect<Module, BackendError.BackendError> =>
  Peer.loadPeer(packageName, load, (detail, cause) =>
    BackendError.make("open", "/", { _tag: "Unsupported" }, { detail, cause })
  )
