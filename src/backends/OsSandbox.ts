/**
 * The files of a folder, and commands that reach nothing else of this machine, by bubblewrap on Linux.
 * On macOS `sandbox-exec` isolates them; that was written by its documents, and not tried.
 *
 * - Commands may change the folder, at its own path, and a `/tmp` of the layer. They read the programs of the system.
 *   Your home is hidden.
 * - They have no network but a loopback of their own, which the commands of a layer share. `egress` opens a way out, by
 *   rules, with secrets that commands never see.
 * - All that a command started ends with it.
 *
 * Building the layer fails with `Unsupported` where bubblewrap is missing or can't isolate; {@link probe} says why, and
 * what to do. No command runs then.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Sandbox } from "effect-deepagents"
 * import * as OsSandbox from "effect-deepagents/backends/OsSandbox"
 *
 * const test = Sandbox.Sandbox.use((sandbox) => sandbox.execute("npm test", { timeout: "5 minutes" }))
 *
 * const program = test.pipe(Effect.provide(OsSandbox.layer({ root: "./project" })))
 * ```
 */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as ChildProcess from "effect/process/ChildProcess"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Backend } from "../core/Backend.ts"
import { type BackendError, make as makeError } from "../core/BackendError.ts"
import * as Sandbox from "../core/Sandbox.ts"
import type * as FilesystemBackend from "./FilesystemBackend.ts"
import * as Host from "./internal/host/files.ts"
import type { Options as FileOptions } from "./internal/host/options.ts"
import * as Enclosure from "./internal/isolate/enclosure.ts"
import type { Bind, Egress, Isolation, Limits, Listener, ProgramOptions } from "./internal/isolate/options.ts"
import * as Probe from "./internal/isolate/probe.ts"
import * as Program from "./internal/isolate/program.ts"
import * as Snapshot from "./internal/isolate/snapshot.ts"
import * as Execute from "./internal/local/execute.ts"
import * as Files from "./internal/local/files.ts"
import type * as Jail from "./internal/local/jail.ts"
import type { ShellOptions } from "./internal/local/options.ts"
import { openShell } from "./internal/local/shell.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import * as shapes from "./internal/shapes.ts"

export type { Egress, Isolation, Limits, Listener, ProgramOptions }

/** Options of the isolation, of the shell, and of `FilesystemBackend`. */
export interface Options<R = never> extends FilesystemBackend.Options, ShellOptions, Isolation<R> {
  /** The folder in which copies of `snapshot` are made. Default: the temporary folder of the system. */
  readonly snapshots?: string | undefined
}

/** A sandbox over a folder. */
export interface Box extends Sandbox.Service {
  /**
   * Copies the folder and returns the path of the copy, which another sandbox takes as its `root`. The copy shares blocks
   * if the file system supports it. It stays until you remove it. Commands go on meanwhile.
   */
  readonly snapshot: Effect.Effect<string, BackendError>
}

/** Options of the isolation, of the shell, and of `HostFiles`. */
export interface HostOptions<R = never> extends FileOptions, ShellOptions, Isolation<R> {}

/** Whether bubblewrap isolates here; if not, the cause and a remedy. */
export type ProbeResult = Probe.ProbeResult

/** Tries whether commands can be isolated here: runs `true` in a sandbox. */
export const probe: Effect.Effect<ProbeResult> = Probe.probe

const checkFolder = (path: string): Effect.Effect<void, BackendError> =>
  path === "/" || path === ""
    ? Effect.fail(makeError("open", "/", { _tag: "Unsupported" }, { detail: "the whole machine can't be isolated" }))
    : Effect.void

const openEnclosed = <R>(jail: Jail.Jail, options: ShellOptions & Isolation<R>, binds: () => ReadonlyArray<Bind>) =>
  Effect.gen(function* () {
    const shell = yield* openShell(jail, options)
    const { enclose, env } = yield* Enclosure.make(options, binds)
    const variables = { ...shell.variables, env: { ...shell.variables.env, ...env, ...options.env?.set } }
    return { ...shell, variables, enclose } satisfies Execute.Shell
  })

const refuseProgram = makeEffectCheck("OsSandbox.makeProgram", shapes.osSandboxMakeProgram)

/**
 * Makes the command of a program in a sandbox of its own, for programs that are spoken to on standard input and output.
 * The sandbox ends with the scope. Spawn the command once.
 */
export const makeProgram = <R = never>(
  options: ProgramOptions<R>
): Effect.Effect<ChildProcess.StandardCommand, BackendError, R | Scope.Scope> =>
  refuseProgram(options) ?? Effect.andThen(checkFolder(options.cwd), Program.make(options))

const refuseMake = makeEffectCheck("OsSandbox", shapes.osSandboxMake)

/** Makes the service. Fails if the root is not a folder, and with `Unsupported` if commands can't be isolated here. */
export const make = <R = never>(options: Options<R>): Effect.Effect<Box, BackendError, R | Scope.Scope> =>
  refuseMake(options) ??
  Effect.gen(function* () {
    const { jail, service } = yield* Files.make(options)
    yield* checkFolder(jail.root)
    const shell = yield* openEnclosed(jail, options, () => [{ path: jail.root, access: "write" }])
    return {
      ...service,
      id: `os:${options.root}`,
      onHost: undefined,
      execute: (command, settings) => Execute.execute(shell, command, settings),
      executeStream: (command, settings) => Execute.executeStream(shell, command, settings),
      reaches: () => true,
      snapshot: Snapshot.make(jail, options.snapshots)
    }
  })

const refuseMakeHost = makeEffectCheck("OsSandbox.makeHost", shapes.osSandboxMakeHost)

/**
 * Makes the service over the files of `HostFiles`: by paths of the machine. Commands reach the folders as file
 * tools do, also folders that come later.
 */
export const makeHost = <R = never>(
  options: HostOptions<R>
): Effect.Effect<Sandbox.Service, BackendError, R | Scope.Scope> =>
  refuseMakeHost(options) ??
  Effect.gen(function* () {
    const { at, folders, jail, paths, service } = yield* Host.make(options)
    yield* checkFolder(paths.cwd)
    const shell = yield* openEnclosed(jail, options, folders)
    const inFolder = (settings: Sandbox.ExecuteOptions | undefined) =>
      at("execute", settings?.cwd ?? ".", (cwd) => Effect.succeed({ ...settings, cwd }))
    return {
      ...service,
      id: `os:${paths.cwd}`,
      onHost: undefined,
      execute: (command, settings) =>
        Effect.flatMap(inFolder(settings), (placed) => Execute.execute(shell, command, placed)),
      executeStream: (command, settings) =>
        Stream.unwrap(Effect.map(inFolder(settings), (placed) => Execute.executeStream(shell, command, placed))),
      reaches: () => true
    }
  })

const isolatedBy = (options: Isolation<unknown> | undefined): Sandbox.Isolated["Service"] => ({
  by: process.platform === "darwin" ? "seatbelt" : "bubblewrap",
  network: options?.egress === undefined ? "none" : "rules"
})

/** The files of a folder, and commands that reach nothing else: {@link make} as a layer. */
export const layer = <R = never>(
  options: Options<R>
): Layer.Layer<Sandbox.Sandbox | Backend | Sandbox.Isolated, BackendError, Exclude<R, Scope.Scope>> =>
  Sandbox.layerIsolated(make(options), isolatedBy(options))

/** The files of this machine in some folders, and commands that reach nothing else: {@link makeHost} as a layer. */
export const layerHost = <R = never>(
  options: HostOptions<R>
): Layer.Layer<Sandbox.Sandbox | Backend | Sandbox.Isolated, BackendError, Exclude<R, Scope.Scope>> =>
  Sandbox.layerIsolated(makeHost(options), isolatedBy(options))
