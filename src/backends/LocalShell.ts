/**
 * The files of a folder, and commands run by the machine's own shell.
 *
 * **This is no isolation.** A command runs with all rights of this process: it can read, change and send any file, in
 * and outside the root. Use it only where you would let the model type into your own terminal.
 *
 * It takes some precautions. A command gets few environment variables (`PATH`, `HOME`, `LANG`, `TERM` and `TMPDIR`), so
 * your keys are not inherited; `env` passes on more of them. It runs in its own process group. On a timeout or an interruption, the group
 * gets SIGTERM, and SIGKILL 2 seconds later. A command ends with its shell: leftover background processes are ended in
 * the same way, at the latest when the layer is released, and also after a `kill -9` of this process. A process that
 * leaves the group (`setsid`, `set -m`) survives. At most `outputLimit` characters of output are kept.
 *
 * Ctrl-C in a terminal does not reach that group. Run programs with `NodeRuntime.runMain` of `@effect/platform-node`,
 * which interrupts them and waits. With `Effect.runPromise`, the signal ends the process, and its commands are ended as
 * after a `kill -9`.
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
import { type ConfigOptions, fromConfigured } from "../core/configured.ts"
import * as Sandbox from "../core/Sandbox.ts"
import type * as FilesystemBackend from "./FilesystemBackend.ts"
import type { Environment } from "./internal/local/environment.ts"
import * as Execute from "./internal/local/execute.ts"
import * as Files from "./internal/local/files.ts"
import type { ShellOptions } from "./internal/local/options.ts"
import { openShell } from "./internal/local/shell.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import * as shapes from "./internal/shapes.ts"

export type { Environment }

/** Options of the shell, and of `FilesystemBackend`. */
export interface Options extends FilesystemBackend.Options, ShellOptions {}

const refuseMake = makeEffectCheck("LocalShell", shapes.localShellMake)

/**
 * Makes the service. `execute` gives the output of both channels in the order of the writes. The stream is lossless: a
 * slow reader slows the command. Fails if the root is not a folder or the shell can't run.
 */
export const make = (options: Options): Effect.Effect<Sandbox.Service, BackendError, Scope.Scope> =>
  refuseMake(options) ??
  Effect.gen(function* () {
    const { jail, service } = yield* Files.make(options)
    const shell = yield* openShell(jail, options)
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

/** Like {@link layer}; any option may be a `Config`. */
export const layerConfig = (
  options: ConfigOptions<Options>
): Layer.Layer<Sandbox.Sandbox | Backend, BackendError | Config.ConfigError> =>
  Sandbox.layer(Effect.flatMap(fromConfigured<Options>(options), make))
