import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import { makeId } from "../../../core/Message.ts"
import { problemOf } from "../../../support/disk.ts"
import * as Memory from "../memory.ts"
import type { Fault } from "../tables.ts"
import { apply, type Change, type Create, decode, type Effected, encode, mayBegin, tornEnd } from "./record.ts"

/** The log of a thread as far as it was read. `size` is what was read of the file, in bytes. */
export interface Log {
  readonly file: string
  memory: Memory.Memory | undefined
  create: Create | undefined
  inode: string
  size: number
  lines: number
  /** Behind what was read there are bytes that are no whole line. */
  tail: number
  /** Bytes that can't be read, and that nobody was told of. */
  lost: number
  broken: string | undefined
  /** What became of records that were asked after. */
  readonly outcomes: Map<string, Effected>
}

export const empty = (file: string): Log => ({
  file,
  memory: undefined,
  create: undefined,
  inode: "",
  size: 0,
  lines: 0,
  tail: 0,
  lost: 0,
  broken: undefined,
  outcomes: new Map()
})

export const unavailable = (error: PlatformError): Fault => ({
  reason: { _tag: "Unavailable", problem: problemOf(error) },
  cause: error
})

const newline = 0x0a
const chunk = 1024 * 1024

/** Finds the thread that another was forked from. */
export type Resolve = (origin: NonNullable<Create["origin"]>) => Effect.Effect<Memory.Memory | undefined, Fault>

const created = Effect.fnUntraced(function* (log: Log, change: Create, resolve: Resolve) {
  const { origin } = change
  if (origin === undefined) {
    log.memory = Memory.create(change, change)
  } else {
    const source = yield* resolve(origin)
    if (source === undefined) {
      log.broken = `the thread ${JSON.stringify(origin.threadId)}, which it was forked from, is not there`
      return
    }
    if (source.list.length < origin.count) {
      log.broken = `the thread ${JSON.stringify(origin.threadId)}, which it was forked from, has lost entries`
      return
    }
    log.memory = Memory.fork(source, origin.count, origin.entryId, change)
  }
  log.create = change
})

const take = Effect.fnUntraced(function* (log: Log, line: string, bytes: number, resolve: Resolve) {
  log.lines++
  if (line === "" || line === "#") return
  const read = decode(line)
  if ("torn" in read) {
    log.lost += bytes
    return
  }
  if ("problem" in read) {
    log.broken ??= `line ${log.lines}: ${read.problem}`
    return
  }
  const { change } = read
  if (change._tag === "Repaired") {
    log.lost = 0
    return
  }
  let outcome: Effected = "Void"
  if (change._tag !== "Create") {
    outcome = log.memory === undefined ? "Broken" : apply(log.memory, change)
  } else if (log.memory === undefined) {
    yield* created(log, change, resolve)
    outcome = "Done"
  }
  if (outcome === "Broken") log.broken ??= `a record builds on one that can't be read (by ${change.by})`
  if (log.outcomes.has(change.by)) log.outcomes.set(change.by, outcome)
})

/** Reads what came since; all of it, if it is another file. `false`: there is none. */
export const refresh = Effect.fnUntraced(function* (
  fs: FileSystem.FileSystem,
  path: string,
  log: Log,
  resolve: Resolve
) {
  const stat = yield* Effect.catchIf(
    Effect.asSome(fs.stat(path)),
    (error) => error.reason._tag === "NotFound",
    () => Effect.succeedNone
  )
  if (Option.isNone(stat)) return false
  if (stat.value.type !== "File") {
    log.broken = "it is no file"
    return true
  }
  const end = Number(stat.value.size)
  const { birthtime, dev, ino } = stat.value
  // The number of a file that was removed is given to the next one: when it was made tells the two apart.
  const made = Option.match(birthtime, { onNone: () => "", onSome: (date) => `${date.getTime()}` })
  const inode = `${dev} ${Option.getOrElse(ino, () => "")} ${made}`
  if (inode !== log.inode || end < log.size) {
    Object.assign(log, { ...empty(log.file), outcomes: log.outcomes, inode })
  }
  if (end === log.size + log.tail) return true
  const parts: Array<Uint8Array> = []
  const file = yield* fs.open(path, { flag: "r" })
  let at = log.size
  while (at < end) {
    const part = yield* file.readAlloc(Math.min(chunk, end - at), { position: BigInt(at) })
    if (Option.isNone(part)) break
    parts.push(part.value)
    at += part.value.length
  }
  const bytes = new Uint8Array(at - log.size)
  let offset = 0
  for (const part of parts) {
    bytes.set(part, offset)
    offset += part.length
  }
  const decoder = new TextDecoder()
  let start = 0
  for (let stop = bytes.indexOf(newline); stop >= 0; stop = bytes.indexOf(newline, start)) {
    yield* take(log, decoder.decode(bytes.subarray(start, stop)), stop - start + 1, resolve)
    start = stop + 1
  }
  log.size += start
  log.tail = bytes.length - start
  // Nobody began a thread here, and a crash did not cut that off.
  if (log.create === undefined && !mayBegin(bytes.subarray(start)))
    log.broken ??= `line ${log.lines + 1}: it is no JSON`
  return true
}, Effect.scoped)

/** Writes a record, and says what it did. */
export const write = Effect.fnUntraced(function* (
  fs: FileSystem.FileSystem,
  path: string,
  log: Log,
  change: Change,
  options: { readonly fsync: boolean; readonly resolve: Resolve }
) {
  // A line that somebody left unfinished is ended first, so that it can't spoil this one.
  const bytes = new TextEncoder().encode((log.tail > 0 ? tornEnd : "") + encode(change))
  const file = yield* fs.open(path, { flag: "a", mode: 0o600 })
  yield* file.writeAll(bytes)
  if (options.fsync) yield* file.sync
  const { size } = yield* file.stat
  const { memory } = log
  const isAlone = log.tail === 0 && Number(size) === log.size + bytes.length
  if (isAlone && memory !== undefined && change._tag !== "Create") {
    log.size += bytes.length
    log.lines++
    return apply(memory, change)
  }
  log.outcomes.set(change.by, "Void")
  yield* refresh(fs, path, log, options.resolve)
  const outcome = log.outcomes.get(change.by) ?? "Void"
  log.outcomes.delete(change.by)
  return outcome
}, Effect.scoped)

/** Reports what of a file can't be read, and notes that it was reported. */
export const repair = Effect.fnUntraced(function* (
  fs: FileSystem.FileSystem,
  path: string,
  log: Log,
  options: { readonly fsync: boolean; readonly resolve: Resolve }
) {
  if (log.tail > 0) {
    // It may be a record that another process is writing at this moment.
    yield* Effect.sleep("50 millis")
    yield* refresh(fs, path, log, options.resolve)
  }
  const lostBytes = log.lost + log.tail
  if (lostBytes === 0) return
  const threadId = log.create?.threadId ?? "none"
  yield* Effect.logWarning(
    `${lostBytes} bytes of ${path} (thread ${JSON.stringify(threadId)}) can't be read: an append that a crash cut off, and that was never acknowledged. Everything else is there.`
  )
  const at = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
  const note: Change = { _tag: "Repaired", by: makeId(), at, lostBytes }
  yield* Effect.ignore(write(fs, path, log, note, options))
})
