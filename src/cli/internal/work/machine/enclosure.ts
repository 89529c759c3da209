/** The sandbox of a session for commands that nobody approved. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { BackendError } from "../../../../core/BackendError.ts"
import type * as Sandbox from "../../../../core/Sandbox.ts"

/** Opens the sandbox with the first of these commands. */
export class Enclosure extends Context.Service<Enclosure, Effect.Effect<Sandbox.Service, BackendError>>()(
  "effect-deepagents/cli/Enclosure"
) {}
