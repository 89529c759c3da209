/** Runs commands in a remote shell with a folder, variables, a timeout and bounded output. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as BackendError from "../../../core/BackendError.ts"
import type { ExecuteResult, ExecuteEvent, ExecuteOptions, Service } from "../../../core/Sandbox.ts"
import * as Path from "../files/path.ts"
import { refusalOf as refusalOfCommand } from "../sandboxes/commandLine.ts"
import {
  beginOf,
  boundedLine,
  endLine,
  endOf,
  refusalOf,
  type Run,
  spooledLine,
  spoolFiles,
  spoolSize,
  streamedLine
} from "./commandScript.ts"
import { cutMiddle, endOfText, makeUnframer } from "./output.ts"
import { type Channel, maxArguments, named, type Remote, type Subject } from "./remote.ts"
import { failureOf, quote } from "./shell.ts"

type Failing<A> = Effect.Effect<A, BackendError.BackendError>

/** A piece of output of a running command. */
export interface Piece {
  readonly channel: "stdout" | "stderr"
  readonly text: string
}

/** The rules by which commands run. `outputLimit` is in characters. */
export interface Shell {
  readonly channel: Channel & {
    readonly executeStream?:
      | ((command: string, options: { readonly timeout: number }) => Stream.Stream<Piece, unknown>)
      | undefined
  }
  readonly remote: Remote
  readonly root: string
  readonly outputLimit: number
}

const operation = "execute"
const defaultTimeout = Duration.minutes(2)
const longest = 365 * 24 * 60 * 60
const shownAtTimeout = 2_000

/** The time that the other side needs to say that the time is up, in milliseconds, before it is said here. */
const grace = 15_000

/** The time that the end of a command may take, in milliseconds. */
const endLimit = 15_000

const encoder = new TextEncoder()

interface StartedCommand {
  readonly run: Run
  readonly subject: Subject
  /** In milliseconds: as it was asked for, and as it is kept. */
  readonly limit: number
  readonly bound: number
  readonly end: Effect.Effect<void>
}

/** A text within the command if it is short and can be in one, else in a file. */
const carry = (
  shell: Shell,
  subject: Subject,
  text: string,
  path: string
): Failing<{ readonly text: string } | { readonly file: string }> =>
  quote(text).length <= maxArguments / 8 && !text.includes("\0")
    ? Effect.succeed({ text })
    : Effect.as(shell.remote.upload(subject, path, encoder.encode(text)), { file: path })

const prepare = Effect.fnUntraced(function* (
  shell: Shell,
  command: string,
  options: ExecuteOptions | undefined
): Effect.fn.Return<StartedCommand, BackendError.BackendError> {
  const folder = options?.cwd ?? "/"
  const subject = { operation, path: folder }
  const cwd = yield* Effect.fromResult(Path.normalize(operation, folder))
  const env = Object.entries(options?.env ?? {})
  const limit = Math.max(0, Duration.toMillis(Duration.fromInputUnsafe(options?.timeout ?? defaultTimeout)))
  const refusal = refusalOfCommand(folder, command, options?.env)
  if (refusal !== undefined) return yield* Effect.fail(refusal)
  const size = env.reduce((sum, [name, value]) => sum + name.length + quote(value).length + 3, 0)
  if (size > maxArguments) {
    return yield* Effect.fail(BackendError.make(operation, folder, { _tag: "TooLarge", size, limit: maxArguments }))
  }
  const nonce = yield* shell.remote.nonce
  const seconds = Math.min(limit / 1000, longest)
  const stdin = options?.stdin
  const run: Run = {
    root: shell.root,
    nonce,
    cwd,
    seconds,
    // A character has three bytes at most for each of its units.
    bytes: 3 * shell.outputLimit + 4,
    command: yield* carry(shell, subject, command, `/tmp/.ed-${nonce}.cmd`),
    stdin:
      stdin === undefined || stdin === "" ? undefined : yield* carry(shell, subject, stdin, `/tmp/.ed-${nonce}.in`),
    env
  }
  const end = shell.channel
    .execute(endLine(nonce), { timeout: endLimit })
    .pipe(Effect.timeoutOrElse({ duration: Duration.millis(endLimit), orElse: () => Effect.void }), Effect.ignore)
  return { run, subject, limit, bound: Math.ceil(seconds) * 1000 + grace, end }
})

const lateError = ({ limit, subject }: StartedCommand, output: string): BackendError.BackendError => {
  const detail = endOfText(output, shownAtTimeout)
  return BackendError.make(operation, subject.path, { _tag: "TimedOut", limit }, detail === "" ? {} : { detail })
}

const refusalError = (started: StartedCommand, output: string): BackendError.BackendError => {
  const { nonce } = started.run
  const at = output.indexOf(refusalOf(nonce))
  const status = at < 0 ? "" : output.slice(at + refusalOf(nonce).length).split(">")[0]
  return failureOf(operation, started.subject.path, status ?? "")
}

/** An answer between its marks. `size`: the output is in a file. */
interface CommandAnswer {
  readonly text: string
  readonly status: string
  readonly size: string | undefined
}

/** Parses the answer of a script. */
const parseAnswer = (
  started: StartedCommand,
  output: string
): Result.Result<CommandAnswer, BackendError.BackendError> => {
  const { nonce } = started.run
  const begin = output.indexOf(beginOf(nonce))
  const stop = output.lastIndexOf(endOf(nonce))
  if (begin < 0 || stop < begin + beginOf(nonce).length) return Result.fail(refusalError(started, output))
  const [, status, size] = /^(late|\d+)(?:\+(\d+))?>/.exec(output.slice(stop + endOf(nonce).length)) ?? []
  return status === undefined
    ? Result.fail(failureOf(operation, started.subject.path, ""))
    : Result.succeed({ text: output.slice(begin + beginOf(nonce).length, stop), status, size })
}

/** The output of a command, cut to its limit. */
const toExecuted = (
  started: StartedCommand,
  { status, text }: CommandAnswer,
  outputLimit: number
): Result.Result<ExecuteResult, BackendError.BackendError> =>
  status === "late"
    ? Result.fail(lateError(started, text))
    : Result.succeed({ ...cutMiddle(text, outputLimit), exitCode: Number(status) })

const executeBounded = (shell: Shell, started: StartedCommand): Failing<ExecuteResult> =>
  shell.channel.execute(boundedLine(started.run), { timeout: started.bound }).pipe(
    Effect.onInterrupt(() => started.end),
    Effect.mapError(named(started.subject)),
    Effect.timeoutOrElse({
      duration: Duration.millis(started.bound),
      orElse: () => Effect.fail(lateError(started, ""))
    }),
    Effect.flatMap(({ output }) =>
      Effect.fromResult(
        Result.flatMap(parseAnswer(started, output), (answer) => toExecuted(started, answer, shell.outputLimit))
      )
    )
  )

/** The bytes of a file with a long output, which is deleted. */
const takeFile = (shell: Shell, { subject }: StartedCommand, path: string) =>
  Effect.ensuring(shell.remote.download(subject, path), shell.remote.discard([path]))

const decode = (bytes: Uint8Array): string => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes)

/** The output of a command that was left in files, or came with the answer. `isCut`: a part is missing in between. */
const takeOutput = Effect.fnUntraced(function* (
  shell: Shell,
  started: StartedCommand,
  text: string,
  size: string | undefined
): Effect.fn.Return<{ readonly output: string; readonly isCut: boolean }, BackendError.BackendError> {
  if (size === undefined) return { output: text, isCut: false }
  const { all, end } = spoolFiles(started.run.nonce)
  if (Number(size) < spoolSize) return { output: decode(yield* takeFile(shell, started, all)), isCut: false }
  const first = yield* Effect.onError(takeFile(shell, started, all), () => shell.remote.discard([end]))
  const last = yield* takeFile(shell, started, end)
  const isCut = last.length >= started.run.bytes
  return isCut
    ? { output: `${decode(first)}\n… a part of the output was left out …\n${decode(last)}`, isCut }
    : { output: decode(join(first, last)), isCut }
})

const join = (first: Uint8Array, last: Uint8Array): Uint8Array => {
  const both = new Uint8Array(first.length + last.length)
  both.set(first)
  both.set(last, first.length)
  return both
}

/** Runs a command whose output comes at the end, but is not cut. */
const streamAtOnce = (shell: Shell, started: StartedCommand): Stream.Stream<ExecuteEvent, BackendError.BackendError> =>
  Stream.unwrap(
    shell.channel.execute(spooledLine(started.run), { timeout: started.bound }).pipe(
      Effect.onInterrupt(() => started.end),
      Effect.mapError(named(started.subject)),
      Effect.timeoutOrElse({
        duration: Duration.millis(started.bound),
        orElse: () => Effect.fail(lateError(started, ""))
      }),
      Effect.flatMap(({ output }) => Effect.fromResult(parseAnswer(started, output))),
      Effect.flatMap(({ size, status, text }) =>
        Effect.map(takeOutput(shell, started, text, size), ({ isCut, output }) => {
          const outputEvents: Stream.Stream<ExecuteEvent> =
            output === "" ? Stream.empty : Stream.succeed({ _tag: "Output", channel: "stdout", text: output })
          const end: Stream.Stream<ExecuteEvent, BackendError.BackendError> =
            status === "late"
              ? Stream.fail(lateError(started, output))
              : Stream.succeed({ _tag: "Exited", exitCode: Number(status), truncated: isCut })
          return Stream.concat(outputEvents, end)
        })
      )
    )
  )

/** Runs a command of which the output comes piece by piece. */
const streamPieces = (
  started: StartedCommand,
  stream: NonNullable<Shell["channel"]["executeStream"]>
): Stream.Stream<ExecuteEvent, BackendError.BackendError> =>
  Stream.suspend(() => {
    const { nonce } = started.run
    const unframer = makeUnframer(beginOf(nonce), endOf(nonce), refusalOf(nonce))
    let finished = false
    const events = ({ channel, text }: Piece): ReadonlyArray<ExecuteEvent> => {
      const outputText = channel === "stderr" ? text : unframer.push(text)
      return outputText === "" ? [] : [{ _tag: "Output", channel, text: outputText }]
    }
    const close = Stream.suspend((): Stream.Stream<ExecuteEvent, BackendError.BackendError> => {
      finished = true
      const status = unframer.status()
      if (status === undefined) return Stream.fail(refusalError(started, unframer.refusal()))
      if (status === "late") return Stream.fail(lateError(started, unframer.last()))
      return Stream.succeed({ _tag: "Exited", exitCode: Number(status), truncated: false })
    })
    return stream(streamedLine(started.run), { timeout: started.bound }).pipe(
      Stream.mapError(named(started.subject)),
      Stream.flatMap((piece) => Stream.fromIterable(events(piece))),
      Stream.concat(close),
      Stream.interruptWhen(
        Effect.sleep(started.bound).pipe(
          Effect.andThen(Effect.suspend(() => Effect.fail(lateError(started, unframer.last()))))
        )
      ),
      Stream.ensuring(Effect.suspend(() => (finished ? Effect.void : started.end)))
    )
  })

/** The operations of a sandbox that run commands. */
export const make = (shell: Shell): Pick<Service, "execute" | "executeStream"> => ({
  execute: (command, options) =>
    Effect.flatMap(prepare(shell, command, options), (started) => executeBounded(shell, started)),
  executeStream: (command, options) =>
    Stream.unwrap(
      Effect.map(prepare(shell, command, options), (started) =>
        shell.channel.executeStream === undefined
          ? streamAtOnce(shell, started)
          : streamPieces(started, shell.channel.executeStream)
      )
    )
})
