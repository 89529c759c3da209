/**
 * A shell without a machine: runs commands in this process, over the files of any backend, by `just-bash`.
 *
 * There are no processes and no host: commands are those that just-bash has built in (`grep`, `sed`, `awk`, `jq` …),
 * and each file that they touch goes through the given backend. So rules of that backend hold for commands too: put
 * `Permissions` beneath. Rules in front would be gone around by commands (`reaches` is true), and are refused. The network
 * is closed unless `network` opens it.
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Sandbox } from "effect-deepagents"
 * import { MemoryBackend } from "effect-deepagents/backends"
 * import { Bash } from "effect-deepagents/bash"
 *
 * const count = Sandbox.Sandbox.use((sandbox) => sandbox.execute("grep -rl TODO src | wc -l"))
 *
 * const answer = Effect.provide(count, Bash.layer().pipe(Layer.provide(MemoryBackend.layer())))
 * ```
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type * as JustBash from "just-bash"
import * as Backend from "../../core/Backend.ts"
import * as BackendError from "../../core/BackendError.ts"
import * as Sandbox from "../../core/Sandbox.ts"
import * as Path from "../internal/path.ts"
import { loadPeer } from "../internal/peer.ts"
import { cutMiddle, endOfText } from "../internal/posixOutput.ts"
import * as Bridge from "./internal/bridge.ts"
import { writingBytes } from "./internal/commands.ts"
import { outputText } from "./internal/encoding.ts"
import { complaintOf } from "./internal/errors.ts"
import * as Files from "./internal/files.ts"

/**
 * How commands run.
 *
 * - `env`: variables that each command has; nothing of this process's environment is passed on
 * - `network`: the URLs, or beginnings of URLs, that `curl` may get; private addresses are always refused
 * - `outputLimit`: how many characters of a command's output are kept, half of them from its end; 100,000 by default
 * - `maxCommands`, `maxLoopIterations`, `maxCallDepth`: how many commands a line may run (50,000 by default), how often a
 *   loop may go round (100,000; of `seq` and `awk` too), and how deep functions may call each other (100). What is over them ends with exit code
 *   126. A loop that does nothing but count can't be interrupted until it meets one of them
 */
export interface Options {
  readonly id?: string
  readonly env?: { readonly [name: string]: string }
  readonly network?: ReadonlyArray<string>
  readonly outputLimit?: number
  readonly maxCommands?: number
  readonly maxLoopIterations?: number
  readonly maxCallDepth?: number
}

const operation = "execute"
const defaultTimeout = Duration.minutes(2)
const defaultOutput = 100_000
const defaultCommands = 50_000
const defaultIterations = 100_000
const defaultDepth = 100
const shownAtTimeout = 2_000

/** The longest time that a timer takes, in milliseconds. */
const longest = 2 ** 31 - 1

/** No more than this many bytes are written by a command before it is ended. */
const mostOutput = 32 * 1024 * 1024

interface Ran {
  readonly stdout: string
  readonly stderr: string
  readonly exitCode: number
}

/** Whether a command was ended by the shell's own clock. */
const isLate = ({ exitCode, stderr }: Ran): boolean =>
  exitCode === 124 && /exceeded (?:its )?execution deadline(?: \(\d+ms\))?\n$/.test(stderr)

const executor = (backend: Backend.Service, options: Options, justBash: typeof JustBash) => {
  const customCommands = writingBytes(justBash)
  const modes = new Map<string, number>()
  const {
    maxCallDepth = defaultDepth,
    maxCommands = defaultCommands,
    maxLoopIterations = defaultIterations,
    network
  } = options

  const start = Effect.fnUntraced(function* (
    command: string,
    cwd: string,
    limit: number,
    given: Sandbox.ExecuteOptions | undefined
  ) {
    const fs = yield* Files.make(backend, modes, yield* Bridge.make)
    const shell = new justBash.Bash({
      fs,
      customCommands,
      cwd,
      env: { HOME: "/", ...options.env, ...given?.env },
      executionLimits: {
        maxCallDepth,
        maxCommandCount: maxCommands,
        maxLoopIterations,
        maxAwkIterations: maxLoopIterations,
        maxSedIterations: maxLoopIterations,
        maxJqIterations: maxLoopIterations,
        maxOutputSize: mostOutput,
        // A loop that never waits would never let a timer fire; this is looked at by the shell itself.
        maxExecutionTimeMs: Math.max(1, Math.min(limit, longest))
      },
      ...(network === undefined ? {} : { network: { allowedUrlPrefixes: [...network], denyPrivateRanges: true } })
    })
    return yield* Effect.tryPromise({
      try: (signal) => shell.exec(command, { signal, rawScript: true, stdin: given?.stdin ?? "" }),
      catch: (cause) => cause
    }).pipe(
      Effect.map(({ exitCode, stderr, stdout, stdoutKind }): Ran => ({
        stdout: outputText(stdout, stdoutKind),
        stderr,
        exitCode
      })),
      Effect.catch((cause) => {
        const complaint = complaintOf(cause)
        return complaint === undefined
          ? Effect.fail(BackendError.make(operation, given?.cwd ?? "/", { _tag: "Unavailable" }, { cause }))
          : Effect.succeed<Ran>({ stdout: "", stderr: complaint, exitCode: 1 })
      })
    )
  }, Effect.scoped)

  return Effect.fnUntraced(function* (
    command: string,
    given: Sandbox.ExecuteOptions | undefined
  ): Effect.fn.Return<Ran, BackendError.BackendError> {
    const path = given?.cwd ?? "/"
    const cwd = yield* Effect.fromResult(Path.normalize(operation, path))
    if (cwd !== "/")
      yield* Effect.mapError(backend.ls(cwd), (error) => BackendError.make(operation, path, error.reason))
    const limit = Math.max(0, Duration.toMillis(Duration.fromInputUnsafe(given?.timeout ?? defaultTimeout)))
    const late = (output: string) => {
      const detail = endOfText(output, shownAtTimeout)
      return BackendError.make(operation, path, { _tag: "TimedOut", limit }, detail === "" ? {} : { detail })
    }
    const ran = yield* Effect.timeoutOrElse(start(command, cwd, limit, given), {
      duration: Duration.millis(limit),
      orElse: () => Effect.fail(late(""))
    })
    return isLate(ran) ? yield* Effect.fail(late(ran.stdout)) : ran
  })
}

/** Makes the sandbox over the backend in context. Fails with `Unsupported` if `just-bash` is not installed. */
const make = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<Sandbox.Service, BackendError.BackendError, Backend.Backend> {
  const backend = yield* Backend.Backend
  const run = executor(backend, options, yield* loadPeer("just-bash", () => import("just-bash")))
  const limit = options.outputLimit ?? defaultOutput
  return {
    id: options.id ?? "bash",
    ls: (path) => backend.ls(path),
    read: (path, window) => backend.read(path, window),
    write: (path, content, how) => backend.write(path, content, how),
    edit: (path, replacements, how) => backend.edit(path, replacements, how),
    delete: (path, how) => backend.delete(path, how),
    move: (from, to) => backend.move(from, to),
    grep: (query) => backend.grep(query),
    glob: (query) => backend.glob(query),
    upload: (files) => backend.upload(files),
    download: (paths) => backend.download(paths),
    execute: (command, how) =>
      Effect.map(run(command, how), ({ exitCode, stderr, stdout }) => ({
        ...cutMiddle(stdout + stderr, limit),
        exitCode
      })),
    executeStream: (command, how) =>
      Stream.unwrap(
        Effect.map(run(command, how), ({ exitCode, stderr, stdout }) =>
          Stream.fromIterable<Sandbox.ExecuteEvent>([
            ...(stdout === "" ? [] : [{ _tag: "Output", channel: "stdout", text: stdout } as const]),
            ...(stderr === "" ? [] : [{ _tag: "Output", channel: "stderr", text: stderr } as const]),
            { _tag: "Exited", exitCode, truncated: false }
          ])
        )
      ),
    ...(backend.realPaths === undefined ? {} : { realPaths: backend.realPaths }),
    reaches: () => true
  }
})

/**
 * A shell over the backend in context. Files stay where they are: `Backend` is the given one, with `execute` beside it.
 * What a command wrote to stderr comes after what it wrote to stdout. Fails with `Unsupported` if `just-bash` is not
 * installed.
 *
 * A backend has no empty directories: one that a command makes is there until that command line ends. It has no links
 * either. Files in `/tmp` are files of the backend like others.
 */
export const layer = (
  options: Options = {}
): Layer.Layer<Sandbox.Sandbox | Backend.Backend, BackendError.BackendError, Backend.Backend> =>
  Sandbox.layer(make(options))
