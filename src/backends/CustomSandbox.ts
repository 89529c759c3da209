/**
 * A sandbox of your own from a few primitives: for any machine that runs a command, and reads and writes a file.
 *
 * The machine needs a POSIX shell with the tools that GNU, BSD and busybox share; neither Python nor Node. The other
 * operations are derived here: windows of large files, edits, searches, links that stay within the root, and commands
 * that end in time.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { CustomSandbox } from "effect-deepagents/backends"
 *
 * declare const machine: {
 *   readonly run: (command: string, signal: AbortSignal) => Promise<{ readonly stdout: string; readonly code: number }>
 *   readonly put: (path: string, content: Uint8Array) => Promise<void>
 *   readonly get: (path: string) => Promise<Uint8Array>
 * }
 *
 * const layer = CustomSandbox.layer({
 *   id: "machine-1",
 *   execute: (command) =>
 *     Effect.map(
 *       Effect.tryPromise((signal) => machine.run(command, signal)),
 *       ({ code, stdout }) => ({ output: stdout, exitCode: code })
 *     ),
 *   read: (path) => Effect.tryPromise(() => machine.get(path)),
 *   write: (path, content) => Effect.tryPromise(() => machine.put(path, content))
 * })
 * ```
 */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Semaphore from "effect/Semaphore"
import type * as Stream from "effect/Stream"
import type { Backend } from "../core/Backend.ts"
import type { BackendError } from "../core/BackendError.ts"
import * as Sandbox from "../core/Sandbox.ts"
import * as Locks from "./internal/files/locks.ts"
import * as Command from "./internal/posix/command.ts"
import * as Files from "./internal/posix/files.ts"
import * as Remote from "./internal/posix/remote.ts"
import * as Scripts from "./internal/posix/scripts.ts"
import * as Search from "./internal/posix/search.ts"
import { checked } from "./internal/posix/shell.ts"

/** The stdout of a command (its stderr may be in it or not), and its exit code. */
export type Output = Remote.Answer

/** A piece of the output of a running command. */
export type Piece = Command.Piece

/**
 * The primitives of a machine. Paths are absolute paths of the machine. The functions may fail with anything: what is
 * no `BackendError` becomes `Unavailable`, with it as the cause; so put no key into it.
 *
 * - `id`: identifies the machine; edits of one file by two layers with the same id wait for each other
 * - `execute`: runs a line for a shell, without stdin. Interrupted, it stops waiting; the command is ended by this
 *   module.
 *   `timeout` (milliseconds) is a hint for services that have a limit of their own
 * - `executeStream`: runs a line piece by piece; without it, all output comes at the end
 * - `read`: reads a file
 * - `write`: writes a file into a directory that exists
 */
export interface Primitives {
  readonly id: string
  readonly execute: (command: string, options: { readonly timeout: number }) => Effect.Effect<Output, unknown>
  readonly executeStream?:
    | ((command: string, options: { readonly timeout: number }) => Stream.Stream<Piece, unknown>)
    | undefined
  readonly read: (path: string) => Effect.Effect<Uint8Array, unknown>
  readonly write: (path: string, content: Uint8Array) => Effect.Effect<void, unknown>
}

/**
 * Options of any sandbox.
 *
 * - `root`: the folder that is `/` for the agent, made if it is missing; by default the one where commands start
 * - `maxFileSize`: how many bytes a file that is written, edited, uploaded or downloaded may have, 10 MiB by default
 * - `outputLimit`: how many characters of a command's output are kept, half of them from its end; 100,000 by default
 */
export interface Options {
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
export const make = Effect.fnUntraced(function* (
  primitives: Primitives,
  options: Options = {}
): Effect.fn.Return<Sandbox.Service, BackendError> {
  const { id } = primitives
  const { maxFileSize = defaultFileSize, outputLimit = defaultOutput } = options
  const answer = yield* Remote.make(primitives, "").run({ operation: "open", path: "/" }, Scripts.open, [
    options.root ?? ""
  ])
  const opened = (yield* checked("open", "/", answer)).text()
  // The mark behind it keeps a newline that the name may end with.
  const folder = opened.slice(0, -2)
  const root = folder === "/" ? "" : folder
  const source: Files.Source = {
    remote: Remote.make(primitives, root),
    locks: locksOf(`/${encodeURIComponent(id.toWellFormed())}${root}`),
    commits: yield* Semaphore.make(1),
    maxFileSize
  }
  return {
    id,
    ...Files.make(source),
    grep: Search.grep(source),
    glob: Search.glob(source),
    ...Command.make({ channel: primitives, remote: source.remote, root, outputLimit }),
    reaches: () => true
  }
})

/** The layer of {@link make}. */
export const layer = (
  primitives: Primitives,
  options?: Options
): Layer.Layer<Sandbox.Sandbox | Backend, BackendError> => Sandbox.layer(make(primitives, options))
