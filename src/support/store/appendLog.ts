/**
 * Files of lines that only grow. Several processes read and append to one without a lock: a line is written in one go
 * at the end, and what became of it is read from the file, where the first of two lines that exclude each other counts.
 */
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"

/** A file as far as it was read. */
export interface Log<Outcome> {
  /** Identifies the file, by `identityOf`; empty before it was found. */
  identity: string
  /** The bytes that were read, up to the end of a line. */
  size: number
  /** The bytes behind these, of a line without an end: a crash cut it off, or another process is writing it. */
  tail: number
  lines: number
  /** The bytes of lines that can't be read and were not reported. */
  lost: number
  /** The outcome of each change that a writer waits for, by the id of the change. */
  readonly outcomes: Map<string, Outcome>
}

/** A log of which nothing was read. */
export const empty = <Outcome>(identity: string): Log<Outcome> => ({
  identity,
  size: 0,
  tail: 0,
  lines: 0,
  lost: 0,
  outcomes: new Map()
})

const newline = 0x0a
const chunk = 1024 * 1024

/**
 * Ends a line that was found without an end, so that it can't spoil the next one. No whole line ends with the mark, so
 * a line that can't be read and has none was damaged after it was written.
 */
export const tornMark = "#"

/** Gives `undefined` where the file system fails for this reason. */
export const unless =
  (tag: "NotFound" | "AlreadyExists") =>
  <A, R>(effect: Effect.Effect<A, PlatformError, R>): Effect.Effect<A | undefined, PlatformError, R> =>
    Effect.catchIf(
      effect,
      (error) => error.reason._tag === tag,
      () => Effect.undefined
    )

/** Tells a file from others. The number of one that was removed is given to the next one, made at another time. */
export const identityOf = ({ birthtime, dev, ino }: FileSystem.File.Info): string =>
  `${dev} ${Option.getOrElse(ino, () => "")} ${Option.match(birthtime, { onNone: () => "", onSome: (date) => date.getTime() })}`

/** Reports whether a file is the one that was read, and still has all that was read of it. */
export const isSame = (log: Log<unknown>, info: FileSystem.File.Info): boolean =>
  identityOf(info) === log.identity && Number(info.size) >= log.size

/** The lines of bytes. A line counts as read when the next one is asked for. */
const linesOf = function* (log: Log<unknown>, bytes: Uint8Array): Generator<readonly [line: string, bytes: number]> {
  const decoder = new TextDecoder()
  let start = 0
  for (let stop = bytes.indexOf(newline); stop >= 0; stop = bytes.indexOf(newline, start)) {
    yield [decoder.decode(bytes.subarray(start, stop)), stop - start + 1]
    log.size += stop - start + 1
    start = stop + 1
  }
}

/**
 * Reads the lines that came since, and the `rest` behind them; `undefined` if the file is not the one that was read.
 */
export const follow = Effect.fnUntraced(function* (file: FileSystem.File, log: Log<unknown>) {
  const info = yield* file.stat
  if (!isSame(log, info)) return undefined
  const bytes = new Uint8Array(Number(info.size) - log.size)
  let read = 0
  while (read < bytes.length) {
    const part = yield* file.readAlloc(Math.min(chunk, bytes.length - read), { position: BigInt(log.size + read) })
    if (Option.isNone(part)) break
    bytes.set(part.value, read)
    read += part.value.length
  }
  const whole = bytes.subarray(0, read).lastIndexOf(newline) + 1
  log.tail = read - whole
  return { lines: linesOf(log, bytes.subarray(0, whole)), rest: bytes.subarray(whole, read) }
})

const joined = (parts: ReadonlyArray<Uint8Array>): Uint8Array => {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}

/** Appends a line (or its bytes, in parts) to a file that is open for it, and gives how many bytes were written. The log does not take it. */
export const append = Effect.fnUntraced(function* (
  file: FileSystem.File,
  log: Log<unknown>,
  line: string | ReadonlyArray<Uint8Array>,
  fsync: boolean
) {
  const before = log.tail > 0 ? `${tornMark}\n` : ""
  const encoder = new TextEncoder()
  const bytes =
    typeof line === "string"
      ? encoder.encode(`${before}${line}\n`)
      : joined([encoder.encode(before), ...line, encoder.encode("\n")])
  yield* file.writeAll(bytes)
  if (fsync) yield* file.sync
  return bytes.length
})

/** Makes the name of a new file safe against a power cut; not every system can. */
export const syncFolder = (fs: FileSystem.FileSystem, folder: string): Effect.Effect<void> =>
  Effect.ignore(Effect.scoped(Effect.flatMap(fs.open(folder, { flag: "r" }), (handle) => handle.sync)))

/** Reports bytes that can't be read. */
export const reportLost = (bytes: number, place: string): Effect.Effect<void> =>
  Effect.logWarning(
    `${bytes} bytes of ${place} can't be read: a write that a crash cut off, and that was never acknowledged. Everything else is there.`
  )
