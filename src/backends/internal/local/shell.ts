/** Opens the shell of a machine: its program, and the variables of its commands. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { BackendError } from "../../../core/BackendError.ts"
import { type Environment, variablesOf } from "./environment.ts"
import type { Shell } from "./execute.ts"
import { fault, on } from "./failure.ts"
import type * as Jail from "./jail.ts"
import * as System from "./system.ts"

/** Options of a shell. */
export interface ShellOptions {
  /** The variables of commands. Default: the minimal ones. */
  readonly env?: Environment | undefined
  /** The absolute path of a POSIX shell. Default: `/bin/sh`. */
  readonly shell?: string | undefined
  /** The most characters of output, half of them from its end. Default: 100,000. */
  readonly outputLimit?: number | undefined
}

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
      leftovers: yield* Effect.scope
    }
  })
