/**
 * The files of a folder, and commands run by the machine's own shell.
 *
 * **This is no isolation.** A command runs with all the rights of the process that runs it: it can read, change and
 * send away whatever that can, in the root and out of it. Use it where you would let the model type into your own
 * terminal; otherwise use a sandbox.
 *
 * Precautions that it does take: a command gets few environment variables (`PATH`, `HOME`, `LANG`, `TERM`, `TMPDIR`, and what
 * `env` says), so that keys in yours are not handed on. It is a process group of its own. When its time is over, or it
 * is interrupted, the whole group gets SIGTERM, and SIGKILL 2 seconds later. A command is over when its shell is:
 * processes that it left in the background are ended in the same way, in the background, and when the layer is released
 * at the latest. A process that leaves the group (`setsid`, `set -m`) is not ended. No more than `outputLimit`
 * characters of the output are kept.
 *
 * Ctrl-C in a terminal does not reach that group. Run programs by `NodeRuntime.runMain` of `@effect/platform-node`,
 * which interrupts them: by `Effect.runPromise` alone, the signal ends the process and leaves its commands running.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Sandbox } from "effect-deepagents"
 * import * as LocalShell from "effect-deepagents/backends/LocalShell"
 *
 * const status = Sandbox.Sandbox.use((sandbox) => sandbox.execute("git status --short", { timeout: "10 seconds" }))
 *
 * const program = status.pipe(Effect.provide(LocalShell.layer({ root: "./project" })))
 * ```
 */
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { Backend } from "../core/Backend.ts"
import type { BackendError } from "../core/BackendError.ts"
import { type Configured, fromConfigured } from "../core/configured.ts"
import * as Sandbox from "../core/Sandbox.ts"
import type * as FilesystemBackend from "./FilesystemBackend.ts"
import * as Execute from "./internal/local/execute.ts"
import { fault, on } from "./internal/local/failure.ts"
import * as Files from "./internal/local/files.ts"
import * as System from "./internal/local/system.ts"

/**
 * `env` is added to the few variables that every command gets. `shell` is the absolute path of a POSIX shell (default
 * `/bin/sh`). `outputLimit` is how many characters of a command's output `execute` keeps (default 100,000): half of
 * them from its beginning, half from its end. The rest as for `FilesystemBackend`.
 */
export interface Options extends FilesystemBackend.Options {
  readonly env?: { readonly [name: string]: string } | undefined
  readonly shell?: string | undefined
  readonly outputLimit?: number | undefined
}

const passedOn = ["PATH", "HOME", "LANG", "TMPDIR"]

const fallbacks = { PATH: "/usr/local/bin:/usr/bin:/bin", LANG: "C.UTF-8", TERM: "dumb" }

const environment = (env: Options["env"]): { readonly [name: string]: string } => ({
  ...fallbacks,
  ...Object.fromEntries(
    passedOn.flatMap((name) => {
      const value = process.env[name]
      return value === undefined || value === "" ? [] : [[name, value]]
    })
  ),
  ...env
})

/**
 * Makes the service. `execute` gives what the command wrote to both channels in the order in which it wrote it. The
 * stream leaves nothing out: it is as fast as it is read, and the command waits for that.
 *
 * Fails if the root is no folder or the shell can't be run.
 */
export const make = (options: Options): Effect.Effect<Sandbox.Service, BackendError, Scope.Scope> =>
  Effect.gen(function* () {
    const { jail, service } = yield* Files.make(options)
    const path = options.shell ?? "/bin/sh"
    if (!path.startsWith("/")) {
      return yield* on("open", path, Effect.fail(fault({ _tag: "InvalidPath", problem: "give an absolute path" })))
    }
    yield* on("open", path, System.accessTo("run", path))
    const shell: Execute.Shell = {
      jail,
      path,
      env: environment(options.env),
      outputLimit: options.outputLimit ?? 100_000,
      leftovers: yield* Effect.scope
    }
    return {
      ...service,
      id: `local:${options.root}`,
      execute: (command, settings) => Execute.execute(shell, command, settings),
      executeStream: (command, settings) => Execute.executeStream(shell, command, settings),
      reaches: () => true
    }
  })

/** The files of a folder, and commands on this machine: {@link make} as a layer. */
export const layer = (options: Options): Layer.Layer<Sandbox.Sandbox | Backend, BackendError> =>
  Sandbox.layer(make(options))

/** As {@link layer}, with options of which any may be a `Config`. */
export const layerConfig = (
  options: Configured<Options>
): Layer.Layer<Sandbox.Sandbox | Backend, BackendError | Config.ConfigError> =>
  Sandbox.layer(Effect.flatMap(fromConfigured<Options>(options), make))
