/**
 * A whole sandbox from three functions: for any machine that runs a command, takes a file and gives one.
 *
 * The machine needs a POSIX shell with the tools that GNU, BSD and busybox share; neither Python nor Node. The other
 * operations come from here: windows of large files, edits, searches, links that stay within the root, and commands that
 * end in time.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Sandbox } from "effect-deepagents"
 * import { BaseSandbox } from "effect-deepagents/backends"
 *
 * declare const machine: {
 *   readonly run: (command: string, signal: AbortSignal) => Promise<{ readonly stdout: string; readonly code: number }>
 *   readonly put: (path: string, content: Uint8Array) => Promise<void>
 *   readonly get: (path: string) => Promise<Uint8Array>
 * }
 *
 * const layer = Sandbox.layer(
 *   BaseSandbox.make({
 *     id: "machine-1",
 *     execute: (command) =>
 *       Effect.map(
 *         Effect.tryPromise((signal) => machine.run(command, signal)),
 *         ({ code, stdout }) => ({ output: stdout, exitCode: code })
 *       ),
 *     upload: (path, content) => Effect.tryPromise(() => machine.put(path, content)),
 *     download: (path) => Effect.tryPromise(() => machine.get(path))
 *   })
 * )
 * ```
 */
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type * as Stream from "effect/Stream"
import type { BackendError } from "../core/BackendError.ts"
import type * as Sandbox from "../core/Sandbox.ts"
import * as Locks from "./internal/files/locks.ts"
import * as Command from "./internal/posix/command.ts"
import * as Files from "./internal/posix/files.ts"
import * as Remote from "./internal/posix/remote.ts"
import * as Scripts from "./internal/posix/scripts.ts"
import * as Search from "./internal/posix/search.ts"
import { checked } from "./internal/posix/shell.ts"

/** How a command ended: what it wrote to stdout (what it wrote to stderr may be in it or not), and its exit code. */
export type Output = Remote.Answer

/** A piece of what a running command writes, or how it ended. */
export type Piece = Command.Piece

/** Options of any sandbox: see {@link Options}. */
export interface Settings {
  readonly root?: string | undefined
  readonly maxFileSize?: number | undefined
  readonly outputLimit?: number | undefined
}

/**
 * What a sandbox is made from. Paths are absolute paths of the machine. The functions may fail with anything: what is no
 * `BackendError` becomes `Unavailable`, with it as the cause; so put no key into it.
 *
 * - `id`: what the machine is known by; edits of one file by two layers with the same id wait for each other
 * - `execute`: runs a line for a shell, without stdin. Interrupted, it stops waiting; the command is ended from here.
 *   `timeout` (milliseconds) is a hint for services that have a limit of their own
 * - `upload`: writes a file whose directory is there
 * - `download`: reads a file
 * - `stream`: runs a line piece by piece, for `executeStream`; without it, all comes at the end
 * - `root`: the folder that is `/` for the agent, made if it is missing; by default the one where commands start
 * - `maxFileSize`: how many bytes a file that is written, edited, uploaded or downloaded may have, 10 MiB by default
 * - `outputLimit`: how many characters of a command's output are kept, half of them from its end; 100,000 by default
 */
export interface Options {
  readonly id: string
  readonly execute: (command: string, options: { readonly timeout: number }) => Effect.Effect<Output, unknown>
  readonly upload: (path: string, content: Uint8Array) => Effect.Effect<void, unknown>
  readonly download: (path: string) => Effect.Effect<Uint8Array, unknown>
  readonly stream?:
    | ((command: string, options: { readonly timeout: number }) => Stream.Stream<Piece, unknown>)
    | undefined
  readonly root?: string | undefined
  readonly maxFileSize?: number | undefined
  readonly outputLimit?: number | undefined
}

const defaultFileSize = 10 * 1024 * 1024
const defaultOutput = 100_000

const locks = Locks.make()

/** Two layers on one machine wait for each other: a machine is known by its id. */
const locksOf = (machine: string): Locks.Locks => ({
  ...locks,
  hold: (paths) => locks.hold(paths.map((path) => `${machine}${path}`))
})

/**
 * Makes a sandbox. Asks the machine once where its root is; fails if that can't be, or if there is no POSIX shell.
 *
 * Commands reach all of the machine, so `reaches` is always true: that file operations stay in the root keeps an agent
 * from mistakes, the machine itself is what keeps it in. `modifiedAt` is not known, and `glob` gives no sizes.
 */
export const make = Effect.fnUntraced(function* (options: Options): Effect.fn.Return<Sandbox.Service, BackendError> {
  const { id, maxFileSize = defaultFileSize, outputLimit = defaultOutput } = options
  const answer = yield* Remote.make(options, "").run({ operation: "open", path: "/" }, Scripts.open, [
    options.root ?? ""
  ])
  const opened = (yield* checked("open", "/", answer)).text()
  // The mark behind it keeps a newline that the name may end with.
  const folder = opened.slice(0, -2)
  const root = folder === "/" ? "" : folder
  const source: Files.Source = {
    remote: Remote.make(options, root),
    locks: locksOf(`/${encodeURIComponent(id.toWellFormed())}${root}`),
    commits: yield* Semaphore.make(1),
    maxFileSize
  }
  return {
    id,
    ...Files.make(source),
    grep: Search.grep(source),
    glob: Search.glob(source),
    ...Command.make({ channel: options, stream: options.stream, remote: source.remote, root, outputLimit }),
    reaches: () => true
  }
})
