/**
 * A remote shell as three functions: runs scripts in it, carries contents there and back, with time limits and errors.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as BackendError from "../../../core/BackendError.ts"
import { Allowed } from "../git/allowed.ts"
import { commandLine, decodeFrame, type Script, spoolPath } from "./shell.ts"

type Failing<A> = Effect.Effect<A, BackendError.BackendError>

/** The output of a command, and how it ended. `output` may have stderr in it or not. */
export interface Answer {
  readonly output: string
  readonly exitCode: number
}

/** The primitives of a sandbox. `timeout` is in milliseconds: a bound for the other side, kept here in any case. */
export interface Channel {
  readonly execute: (command: string, options: { readonly timeout: number }) => Effect.Effect<Answer, unknown>
  readonly write: (path: string, content: Uint8Array) => Effect.Effect<void, unknown>
  readonly read: (path: string) => Effect.Effect<Uint8Array, unknown>
}

/** The name of an operation in its errors, and its path. */
export interface Subject {
  readonly operation: string
  readonly path: string
}

export interface Remote {
  readonly run: (subject: Subject, script: Script, args: ReadonlyArray<string>, limit?: number) => Failing<Uint8Array>
  readonly upload: (subject: Subject, to: string, content: Uint8Array) => Failing<void>
  readonly download: (subject: Subject, from: string) => Failing<Uint8Array>
  /** A name for temporary files that nobody else has. */
  readonly nonce: Effect.Effect<string>
  readonly discard: (paths: ReadonlyArray<string>) => Effect.Effect<void>
}

/** The time that an operation on files may take, in milliseconds. */
const fileLimit = 60_000

/** The bytes of arguments that fit into a command on every system. */
export const maxArguments = 64 * 1024

/** Things in portions whose sizes together fit into a command. */
export const portionsOf = <A>(
  things: ReadonlyArray<A>,
  sizeOf: (one: A) => number,
  most = maxArguments
): ReadonlyArray<ReadonlyArray<A>> => {
  const portions: Array<Array<A>> = []
  let size = 0
  for (const one of things) {
    const own = sizeOf(one)
    const last = portions.at(-1)
    if (last === undefined || size + own > most) {
      portions.push([one])
      size = own
    } else {
      last.push(one)
      size += own
    }
  }
  return portions
}

/** A failure of the channel, as a failure of an operation. */
export const named =
  ({ operation, path }: Subject) =>
  (cause: unknown): BackendError.BackendError =>
    BackendError.isBackendError(cause)
      ? BackendError.at(cause, operation, path)
      : BackendError.make(operation, path, { _tag: "Unavailable" }, { cause })

const within =
  (subject: Subject, limit: number) =>
  <A>(effect: Effect.Effect<A, unknown>): Failing<A> =>
    Effect.timeoutOrElse(Effect.mapError(effect, named(subject)), {
      duration: Duration.millis(limit),
      orElse: () => Effect.fail(BackendError.make(subject.operation, subject.path, { _tag: "TimedOut", limit }))
    })

const nonce = Effect.sync(() => globalThis.crypto.randomUUID().replaceAll("-", ""))

/** `root` is the real path of the root, empty for `/`. */
export const make = (channel: Channel, root: string): Remote => {
  const discard = (paths: ReadonlyArray<string>): Effect.Effect<void> =>
    paths.length === 0
      ? Effect.void
      : channel
          .execute(`rm -f ${paths.join(" ")}`, { timeout: fileLimit })
          .pipe(
            Effect.timeoutOrElse({ duration: Duration.millis(fileLimit), orElse: () => Effect.void }),
            Effect.ignore
          )
  const download = (subject: Subject, from: string): Failing<Uint8Array> =>
    within(subject, fileLimit)(channel.read(from))

  const run = Effect.fnUntraced(function* (
    subject: Subject,
    script: Script,
    args: ReadonlyArray<string>,
    limit = fileLimit
  ): Effect.fn.Return<Uint8Array, BackendError.BackendError> {
    const id = yield* nonce
    const command = commandLine(script, { root, nonce: id, allowed: yield* Allowed }, args)
    const { output } = yield* within(subject, limit)(channel.execute(command, { timeout: limit }))
    const bytes = decodeFrame(output)
    if (bytes === undefined) {
      return yield* Effect.fail(
        BackendError.make(
          subject.operation,
          subject.path,
          { _tag: "Unavailable" },
          { detail: "the sandbox gave no valid answer; it must have a POSIX shell with its usual tools" }
        )
      )
    }
    return bytes === "spooled"
      ? yield* Effect.ensuring(download(subject, spoolPath(id)), discard([spoolPath(id)]))
      : bytes
  })

  return {
    run,
    upload: (subject, to, content) => within(subject, fileLimit)(channel.write(to, content)),
    download,
    nonce,
    discard
  }
}
