/**
 * Asking whether an operation may go on.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Service } from "../Permissions.ts"

export const Approver = Context.Reference<Service>("effect-deepagents/Permissions/Approver", {
  defaultValue: () => ({
    ask: () =>
      Effect.succeed({ _tag: "Refused", message: "this needs approval, and nobody is there to ask; do without it" })
  })
})
