/**
 * Append-only files of lines. Processes share a file without a lock: they append a line in one write, and read its effect
 * from the file. The first of two conflicting lines wins.
 */
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import { joinBytes } from "./joinBytes.ts"

/** A file, read up to some line. */
export interface Log<Outcome> {
  /** The `identityOf` of the file; empty before it was found. */
  identity: string
  /** The read bytes, up to the end of a line. */
  size: number
  /** The bytes of a last line without an end: a crash cut it off, or another process is writing it. */
  tail: number
  lines: number
  /** The bytes of unreadable lines that were not reported. */
  lost: number
  /** The outcomes of changes that writers wait for, by id. */
  readonly outcomes: Map<string, Outcome>
}

/** Makes a log that has read nothing. */
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

/** Ends a line that a crash cut off, before the next one. An unreadable line without the mark was damaged later. */
export const tornMark = "#"

/** Gives `undefined` if the file system fails with this reason. */
export const unless =
  (tag: "NotFound" | "AlreadyExists") =>
  <A, R>(effect: Effect.Effect<A, PlatformError, R>): Effect.Effect<A | undefined, PlatformError, R> =>
    Effect.catchIf(
      effect,
      (error) => error.reason._tag === tag,
      () => Effect.undefined
    )

/** Identifies a file. The birth time distinguishes it from a removed file with the same number. */
export const identityOf = ({ birthtime, dev, ino }: FileSystem.File.Info): string =>
  `${dev} ${Option.getOrElse(ino, () => "")} ${Option.match(birthtime, { onNone: () => "", onSome: (date) => date.getTime() })}`

/** Reports whether a file is that of the log, and still has all read bytes. */
export const isSame = (log: Log<unknown>, info: FileSystem.File.Info): boolean =>
  identityOf(info) === log.identity && Number(info.size) >= log.size

/** Splits bytes into lines. A line counts as read when the next one is requested. */
const linesOf = function* (log: Log<unknown>, bytes: Uint8Array): Generator<readonly [line: string, bytes: number]> {
  const decoder = new TextDecoder()
  let start = 0
  for (let stop = bytes.indexOf(newline); stop >= 0; stop = bytes.indexOf(newline, start)) {
    yield [decoder.decode(bytes.subarray(start, stop)), stop - start + 1]
    log.size += stop - start + 1
    start = stop + 1
  }
}

/** Reads the new lines and the `rest` behind them; `undefined` if the file is another one. */
export const follow = Effect.fnUntraced(function* (file: FileSystem.File, log: Log<unknown>) {
  const info = yield* file.stat
  if (!isSame(log, info)) return undefined
  const bytes = new Uint8Array(Number(info.size) - log.size)
  let count = 0
  while (count < bytes.length) {
    const part = yield* file.readAlloc(Math.min(chunk, bytes.length - count), { position: BigInt(log.size + count) })
    if (Option.isNone(part)) break
    bytes.set(part.value, count)
    count += part.value.length
  }
  const whole = bytes.subarray(0, count).lastIndexOf(newline) + 1
  log.tail = count - whole
  return { lines: linesOf(log, bytes.subarray(0, whole)), rest: bytes.subarray(whole, count) }
})

/** Appends a line, or the parts of its bytes, and gives the number of bytes. Does not update the log. */
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
      : joinBytes([encoder.encode(before), ...line, encoder.encode("\n")])
  yield* file.writeAll(bytes)
  if (fsync) yield* file.sync
  return bytes.length
})

/** Protects the name of a new file against a power cut, on systems that can. */
export const syncFolder = (fs: FileSystem.FileSystem, folder: string): Effect.Effect<void> =>
  Effect.ignore(Effect.scoped(Effect.flatMap(fs.open(folder, { flag: "r" }), (handle) => handle.sync)))

/** Reports unreadable bytes. */
export const reportLost = (bytes: number, place: string): Effect.Effect<void> =>
  Effect.logWarning(
    `${bytes} bytes of ${place} can't be read: a write that a crash cut off, and that was never acknowledged. Everything else is there.`
  )
