/**
 * A shell without a machine: runs commands over the files of any backend, by `just-bash`.
 *
 * Commands are the built-ins of just-bash (`grep`, `sed`, `awk`, `jq` …). No program of the host runs, and all file
 * access goes through the backend in context. Commands therefore obey its rules: put `Permissions` beneath. Rules in
 * front are rejected, since commands would bypass them (`reaches` is true). The
 * network is closed unless `network` opens it.
 *
 * The shell runs in a separate Node process. That process is killed on a timeout, on an interruption, and above 512 MiB
 * of memory, which fails with `Unavailable`. At most four commands run at once. An idle process is reused for 30
 * seconds.
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Sandbox } from "effect-deepagents"
 * import { MemoryBackend } from "effect-deepagents/backends"
 * import * as Bash from "effect-deepagents/backends/Bash"
 *
 * const count = Sandbox.Sandbox.use((sandbox) => sandbox.execute("grep -rl TODO src | wc -l"))
 *
 * const answer = Effect.provide(count, Bash.layer().pipe(Layer.provide(MemoryBackend.layer())))
 * ```
 */
// Bundles may already declare the name `createRequire`.
import * as NodeModule from "node:module"
import type * as Config from "effect/Config"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Backend from "../core/Backend.ts"
import * as BackendError from "../core/BackendError.ts"
import { type ConfigOptions, fromConfigured } from "../core/configured.ts"
import * as Sandbox from "../core/Sandbox.ts"
import * as Execute from "./internal/bash/execute.ts"
import * as Files from "./internal/bash/files.ts"
import * as Processes from "./internal/bash/processes.ts"
import * as Path from "./internal/files/path.ts"
import { cutMiddle, endOfText } from "./internal/posix/output.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import { refusalOf } from "./internal/sandboxes/commandLine.ts"
import { loadPeer } from "./internal/sandboxes/provider.ts"
import * as shapes from "./internal/shapes.ts"

/** Options of the shell. */
export interface Options {
  /** The id of the sandbox. Default: `bash`. */
  readonly id?: string | undefined
  /** Variables of each command; this process's environment is not inherited. Default: none. */
  readonly env?: { readonly [name: string]: string } | undefined
  /** URLs, or URL prefixes, that `curl` may get; private addresses are always refused. Default: none. */
  readonly network?: ReadonlyArray<string> | undefined
  /** The most characters of output, half of them from its end. Default: 100,000. */
  readonly outputLimit?: number | undefined
  /** The most commands of a command line; it exits with code 126 above that. Default: 50,000. */
  readonly maxCommands?: number | undefined
  /** The most iterations of a loop, `seq` or `awk`. Default: 100,000. */
  readonly maxLoopIterations?: number | undefined
  /** The deepest function call. Default: 100. */
  readonly maxCallDepth?: number | undefined
}

const operation = "execute"
const defaultTimeout = Duration.minutes(2)
const defaultOutput = 100_000
const defaultCommands = 50_000
const defaultIterations = 100_000
const defaultDepth = 100
const shownAtTimeout = 2_000

/** Fails if the package is not there for the program, which loads it. A bundler does not see it here. */
const checkPeer = (program: URL): Effect.Effect<void, BackendError.BackendError> =>
  loadPeer("just-bash", async () => NodeModule.createRequire(program).resolve("just-bash"))

/** Fails in a bundle without a location of its own. */
const findProgram = Effect.try({
  try: () => new URL("./internal/bash/child.ts", import.meta.url),
  catch: (cause) =>
    BackendError.make(
      "open",
      "/",
      { _tag: "Unsupported" },
      { detail: "the program of the shell is not found: leave effect-deepagents out of the bundle", cause }
    )
})

type PutOutput = (output: Execute.Output) => void

const executor = (backend: Backend.Service, options: Options, processes: Processes.Processes) => {
  const modes = new Map<string, number>()
  return Effect.fnUntraced(function* (
    command: string,
    executeOptions: Sandbox.ExecuteOptions | undefined,
    put: PutOutput
  ): Effect.fn.Return<number, BackendError.BackendError> {
    const path = executeOptions?.cwd ?? "/"
    const cwd = yield* Effect.fromResult(Path.normalize(operation, path))
    const refusal = refusalOf(path, command, executeOptions?.env)
    if (refusal !== undefined) return yield* Effect.fail(refusal)
    if (cwd !== "/") yield* Effect.mapError(backend.ls(cwd), (error) => BackendError.at(error, operation, path))
    const limit = Math.max(0, Duration.toMillis(Duration.fromInputUnsafe(executeOptions?.timeout ?? defaultTimeout)))
    let last = ""
    const line = {
      command,
      cwd,
      limit,
      env: { HOME: "/", ...options.env, ...executeOptions?.env },
      stdin: executeOptions?.stdin ?? "",
      network: options.network,
      maxCommands: options.maxCommands ?? defaultCommands,
      maxLoopIterations: options.maxLoopIterations ?? defaultIterations,
      maxCallDepth: options.maxCallDepth ?? defaultDepth
    }
    const ended = yield* Execute.execute(processes, Files.make(backend, modes), line, (output) => {
      last = (last + output.text).slice(-2 * shownAtTimeout)
      put(output)
    }).pipe(Effect.catch((failure) => Effect.succeed<Execute.CommandEnd>({ _tag: "Broken", problem: failure.problem })))
    const detail = endOfText(last, shownAtTimeout)
    const failing = (reason: BackendError.Reason, more: string) =>
      Effect.fail(BackendError.make(operation, path, reason, more === "" ? undefined : { detail: more }))
    switch (ended._tag) {
      case "Exited":
        return ended.exitCode
      case "Late":
        return yield* failing({ _tag: "TimedOut", limit }, detail)
      case "Unusable":
        return yield* failing({ _tag: "Unsupported" }, ended.problem)
      case "Broken":
        return yield* failing({ _tag: "Unavailable" }, detail === "" ? ended.problem : `${ended.problem}; ${detail}`)
    }
  })
}

const counts = ["outputLimit", "maxCommands", "maxLoopIterations", "maxCallDepth"] as const

const checkCounts = (options: Options): Effect.Effect<void, BackendError.BackendError> => {
  const name = counts.find((one) => {
    const count = options[one] ?? 0
    return count !== Infinity && !(Number.isSafeInteger(count) && count >= 0)
  })
  if (name === undefined) return Effect.void
  const detail = `\`${name}\` must be a whole number of at least 0, not ${options[name]}`
  return Effect.fail(BackendError.make("open", "/", { _tag: "Unsupported" }, { detail }))
}

const refuse = makeEffectCheck("Bash", shapes.bashLayer)

/** Makes the sandbox over the backend in context. Fails with `Unsupported` if `just-bash` is not installed. */
const make = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<Sandbox.Service, BackendError.BackendError, Backend.Backend | Scope.Scope> {
  const refused = refuse(options)
  if (refused !== undefined) return yield* refused
  const backend = yield* Backend.Backend
  yield* checkCounts(options)
  const program = yield* findProgram
  yield* checkPeer(program)
  const run = executor(backend, options, yield* Processes.make(program))
  const limit = options.outputLimit ?? defaultOutput
  return {
    ...backend,
    id: options.id ?? "bash",
    onHost: undefined,
    execute: (command, how) =>
      Effect.suspend(() => {
        const parts: Array<string> = []
        return Effect.map(
          run(command, how, ({ text }) => void parts.push(text)),
          (exitCode) => ({ ...cutMiddle(parts.join(""), limit), exitCode })
        )
      }),
    executeStream: (command, how) =>
      Stream.callback<Sandbox.ExecuteEvent, BackendError.BackendError>((queue) =>
        Effect.matchCauseEffect(
          run(command, how, (output) => void Queue.offerUnsafe(queue, output)),
          {
            onSuccess: (exitCode) => {
              Queue.offerUnsafe(queue, { _tag: "Exited", exitCode, truncated: false })
              return Queue.end(queue)
            },
            onFailure: (cause) => Queue.failCause(queue, cause)
          }
        )
      ),
    reaches: () => true
  }
})

/** The shell is an interpreter, which has no programs of the machine. Its `curl` reaches what `network` names. */
const isolated = { by: "interpreter", network: "rules" } as const

/**
 * Adds a shell to the backend in context, which stays available as `Backend`. Output comes statement by statement,
 * stderr after stdout. Fails with `Unsupported` if `just-bash` is not installed, or if a limit is not a whole
 * number.
 *
 * Backends have no empty directories: a directory that a command creates lasts until that command line ends.
 * Commands can't create links. They follow existing links, but searches skip them. Files in `/tmp` are ordinary
 * files of the backend.
 */
export const layer = (
  options: Options = {}
): Layer.Layer<Sandbox.Sandbox | Backend.Backend | Sandbox.Isolated, BackendError.BackendError, Backend.Backend> =>
  Sandbox.layerIsolated(make(options), isolated)

/** As {@link layer}, with options of which any may be a `Config`. */
export const layerConfig = (
  options: ConfigOptions<Options>
): Layer.Layer<
  Sandbox.Sandbox | Backend.Backend | Sandbox.Isolated,
  BackendError.BackendError | Config.ConfigError,
  Backend.Backend
> => Sandbox.layerIsolated(Effect.flatMap(fromConfigured<Options>(options), make), isolated)
