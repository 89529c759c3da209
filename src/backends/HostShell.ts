/**
 * The files of `HostFiles`, and commands run by the machine's own shell in the working folder.
 *
 * **This is no isolation.** Folders bind file tools, not commands: a command runs with all rights of this process. The
 * precautions are those of `LocalShell`.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { FileTools } from "effect-deepagents/backends"
 * import * as HostShell from "effect-deepagents/backends/HostShell"
 *
 * const coder = Agent.make({ name: "coder", prompt: "You mend this code.", tools: FileTools.make({ execute: true }) })
 * const machine = HostShell.layer({ cwd: ".", env: { inherit: "all", show: ["NPM_TOKEN"] } })
 * ```
 */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Backend } from "../core/Backend.ts"
import type { BackendError } from "../core/BackendError.ts"
import * as Sandbox from "../core/Sandbox.ts"
import * as Host from "./internal/host/files.ts"
import type { Options as FileOptions } from "./internal/host/options.ts"
import * as Execute from "./internal/local/execute.ts"
import type { ShellOptions } from "./internal/local/options.ts"
import { openShell } from "./internal/local/shell.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import * as shapes from "./internal/shapes.ts"

/** Options of the shell, and of `HostFiles`. */
export interface Options extends FileOptions, ShellOptions {}

const refuseMake = makeEffectCheck("HostShell", shapes.hostShellMake)

/** Makes the service. Fails as `HostFiles.make`, and if the shell can't run. */
export const make = (options: Options): Effect.Effect<Sandbox.Service, BackendError, Scope.Scope> =>
  refuseMake(options) ??
  Effect.gen(function* () {
    const { at, jail, paths, service } = yield* Host.make(options)
    const shell = yield* openShell(jail, options)
    const inFolder = (settings: Sandbox.ExecuteOptions | undefined) =>
      at("execute", settings?.cwd ?? ".", (cwd) => Effect.succeed({ ...settings, cwd }))
    return {
      ...service,
      id: `host:${paths.cwd}`,
      execute: (command, settings) =>
        at("execute", settings?.cwd ?? ".", (cwd) => Execute.execute(shell, command, { ...settings, cwd })),
      executeStream: (command, settings) =>
        Stream.unwrap(Effect.map(inFolder(settings), (placed) => Execute.executeStream(shell, command, placed))),
      reaches: () => true
    }
  })

/** The files of this machine, and its commands: {@link make} as a layer. */
export const layer = (options: Options): Layer.Layer<Sandbox.Sandbox | Backend, BackendError> =>
  Sandbox.layer(make(options))
