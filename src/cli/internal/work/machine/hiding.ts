/** Hides files that rules refuse to read from listings and searches too. */
import * as Effect from "effect/Effect"
import * as Permissions from "../../../../backends/Permissions.ts"
import type * as Sandbox from "../../../../core/Sandbox.ts"
import { orFail } from "../../failure.ts"

/** Puts these globs out of sight of file tools. Commands are as they were: rules for calls are for those. */
export const hideFiles = Effect.fnUntraced(function* (sandbox: Sandbox.Service, globs: ReadonlyArray<string>) {
  if (globs.length === 0) return sandbox
  const files = yield* orFail("usage")(
    Permissions.wrap(sandbox, {
      rules: [
        // Without commands it is a backend alone.
        { operations: ["execute"], ruling: "refuse" },
        {
          operations: ["read"],
          paths: globs,
          ruling: "refuse",
          name: "permissions.deny",
          reason: "a rule of the user's settings keeps it from being read"
        }
      ]
    })
  )
  return { ...sandbox, ...files } satisfies Sandbox.Service
})
