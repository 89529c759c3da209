/**
 * Makes a sandbox from any machine that can run a command, read a file and write a file.
 *
 * The machine needs a POSIX shell and the common tools of GNU, BSD or busybox, but neither Python nor Node. This module
 * derives all other operations: windows of large files, edits, searches, links confined to the root, and timeouts.
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
import type * as Stream from "effect/Stream"
import type { Backend } from "../core/Backend.ts"
import type { BackendError } from "../core/BackendError.ts"
import * as Sandbox from "../core/Sandbox.ts"
import type * as Command from "./internal/posix/command.ts"
import type * as Remote from "./internal/posix/remote.ts"
import { makeSandbox } from "./internal/posix/sandbox.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import * as shapes from "./internal/shapes.ts"

/**
 * The primitives of a machine. Paths are absolute paths of the machine. Any failure but a `BackendError` becomes
 * `Unavailable` with that failure as its cause, so keep secrets out of it.
 *
 * - `id`: identifies the machine; edits of one file by two layers with the same id wait for each other
 * - `execute`: runs a shell command without stdin, and gives its stdout and exit code. An interruption only stops the
 *   wait; this module ends the command. `timeout` (milliseconds) is a hint for services with a limit of their own
 * - `executeStream`: runs a command and streams its output; without it, all output comes at the end
 * - `read`: reads a file
 * - `write`: writes a file into a directory that exists
 */
export interface Primitives {
  readonly id: string
  readonly execute: (
    command: string,
    options: {
      /** The time limit of the command, in milliseconds. */
      readonly timeout: number
    }
  ) => Effect.Effect<Remote.Answer, unknown>
  readonly executeStream?:
    | ((command: string, options: { readonly timeout: number }) => Stream.Stream<Command.Piece, unknown>)
    | undefined
  readonly read: (path: string) => Effect.Effect<Uint8Array, unknown>
  readonly write: (path: string, content: Uint8Array) => Effect.Effect<void, unknown>
}

/** Options of any sandbox. */
export interface Options {
  /** The folder that is the agent's `/`, created if missing. Default: the working directory of commands. */
  readonly root?: string | undefined
  /** The largest file to write, edit, upload or download, in bytes. Default: 10 MiB. */
  readonly maxFileSize?: number | undefined
  /** The most characters of output, half of them from its end. Default: 100,000. */
  readonly outputLimit?: number | undefined
}

const refuse = makeEffectCheck("CustomSandbox", shapes.customSandboxLayer)

/**
 * Makes a sandbox. Asks the machine once for its root. Fails if there is no such root or no POSIX shell.
 *
 * Commands reach the whole machine, so `reaches` is always true. Confining file operations to the root only prevents
 * mistakes; the machine is the boundary. `modifiedAt` is unknown, and `glob` gives no sizes.
 */
export const make = Effect.fnUntraced(function* (
  primitives: Primitives,
  options: Options = {}
): Effect.fn.Return<Sandbox.Service, BackendError> {
  const refused = refuse(options)
  if (refused !== undefined) return yield* refused
  return yield* makeSandbox(primitives, options, primitives.id)
})

/** The layer of {@link make}. */
export const layer = (
  primitives: Primitives,
  options?: Options
): Layer.Layer<Sandbox.Sandbox | Backend, BackendError> => Sandbox.layer(make(primitives, options))
