/** Opens the shell of a machine: its program, and the variables of its commands. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { BackendError } from "../../../core/BackendError.ts"
import { variablesOf } from "./environment.ts"
import type { Shell } from "./execute.ts"
import { fault, on } from "./failure.ts"
import type * as Jail from "./jail.ts"
import type { ShellOptions } from "./options.ts"
import { makeReaper } from "./reaper.ts"
import * as System from "./system.ts"

/** Fails unless the shell can run. */
export const openShell = (jail: Jail.Jail, options: ShellOptions): Effect.Effect<Shell, BackendError, Scope.Scope> =>
  Effect.gen(function* () {
    const path = options.shell ?? "/bin/sh"
    if (!path.startsWith("/")) {
      return yield* on("open", path, Effect.fail(fault({ _tag: "InvalidPath", problem: "give an absolute path" })))
    }
    yield* on("open", path, System.accessTo("run", path))
    return {
      jail,
      path,
      variables: variablesOf(process.env, options.env ?? {}),
      outputLimit: options.outputLimit ?? 100_000,
      reaper: yield* makeReaper,
      leftovers: yield* Effect.scope
    }
  })
