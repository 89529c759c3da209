/** Loads the SDK of a provider when it is first needed. */
import type * as Effect from "effect/Effect"
import { ModelError } from "../../../core/ModelError.ts"
import * as Peer from "../../../support/effect/peer.ts"

/** Imports the module of an optional package. A package that is not there fails with the command that installs it. */
export const loadPeer = <Module>(
  origin: { readonly provider: string; readonly model: string },
  packageName: string,
  load: () => Promise<Module>
): Effect.Effect<Module, ModelError> =>
  Peer.loadPeer(packageName, load, (detail, cause) => {
    const { model, provider } = origin
    return new ModelError({ provider, model, reason: { _tag: "Unsupported" }, detail, cause })
  })
