/** The file of a thread. Each line is a change; the changes together make the thread in memory. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import type { Scope } from "effect/Scope"
import { makeId } from "../../../core/Message.ts"
import * as AppendLog from "../../../support/store/appendLog.ts"
import { problemOf } from "../../../support/store/disk.ts"
import * as Memory from "../memory/thread.ts"
import type { Fault } from "../tables.ts"
import { apply, type Change, type Create, decode, type RecordEffect, encode, encodeSlowly, mayBegin } from "./record.ts"

/** The log of a thread, up to the last read line. */
export interface Log extends AppendLog.Log<RecordEffect> {
  readonly file: string
  memory: Memory.Memory | undefined
  create: Create | undefined
  /** The reason why the file is unreadable. */
  broken: string | undefined
  /** The place that the thread was moved to. */
  moved: string | undefined
}

const unread = (identity: string) => ({
  ...AppendLog.empty<RecordEffect>(identity),
  memory: undefined,
  create: undefined,
  broken: undefined,
  moved: undefined
})

export const empty = (file: string): Log => ({ ...unread(""), file })

export const unavailable = (error: PlatformError): Fault => ({
  reason: { _tag: "Unavailable", problem: problemOf(error) },
  cause: error
})

/** Maps a failure of the file system to one of the store. */
export const faulty = <A, R>(effect: Effect.Effect<A, Fault | PlatformError, R>): Effect.Effect<A, Fault, R> =>
  Effect.mapError(effect, (error) => ("_tag" in error ? unavailable(error) : error))

/** A folder of logs. */
export interface Place {
  readonly fs: FileSystem.FileSystem
  readonly path: Path.Path
  readonly folder: string
  readonly fsync: boolean
}

const emptied =
  "it is empty, and was not: another program emptied it, or the power failed while the thread was made. Put a copy of the file back, or remove the file to begin the thread anew"

/** The milliseconds within which a new file gets its first record. */
const making = 1_000

/**
 * Reports whether a file had bytes and lost them. A process that ended before its first record leaves a file that was
 * never changed. A file system without times of birth can't tell.
 */
const isEmptied = ({ birthtime, mtime, size }: FileSystem.File.Info): boolean => {
  const born = Option.match(birthtime, { onNone: () => 0, onSome: (date) => date.getTime() })
  const changed = Option.match(mtime, { onNone: () => 0, onSome: (date) => date.getTime() })
  return Number(size) === 0 && born > 0 && changed - born > making
}

/** Finds the source of a fork. */
export type Resolve = (origin: NonNullable<Create["origin"]>) => Effect.Effect<Memory.Memory | undefined, Fault>

const applyCreate = Effect.fnUntraced(function* (log: Log, change: Create, resolve: Resolve) {
  const { origin } = change
  if (origin === undefined) {
    const problem = Memory.problemOf(change)
    if (problem !== undefined) {
      log.broken = `line ${log.lines}: ${problem}`
      return
    }
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
    const memory = Memory.fork(source, origin.count, origin.entryId, change)
    if (origin.entryId !== null && memory.leaf === undefined) {
      log.broken = `line ${log.lines}: the entry ${origin.entryId}, which it was forked at, is not there`
      return
    }
    log.memory = memory
  }
  log.create = change
})

/** Applies a record to its thread. A moved thread ignores every record except `Reopened`. */
const applyTo = (log: Log, change: Exclude<Change, Create>): RecordEffect => {
  if (log.memory === undefined) return "Broken"
  if (change._tag === "Closed" || change._tag === "Reopened") {
    log.moved = change._tag === "Closed" ? (log.moved ?? change.to) : undefined
    return "Done"
  }
  return log.moved === undefined ? apply(log.memory, change) : "Void"
}

const readLine = Effect.fnUntraced(function* (log: Log, line: string, bytes: number, resolve: Resolve) {
  log.lines++
  if (line === "" || line === AppendLog.tornMark) return
  const result = decode(line)
  if ("torn" in result) {
    log.lost += bytes
    return
  }
  if ("problem" in result) {
    log.broken ??= `line ${log.lines}: ${result.problem}`
    return
  }
  const { change } = result
  if (change._tag === "Repaired") {
    log.lost = 0
    return
  }
  let outcome: RecordEffect = "Void"
  if (change._tag !== "Create") {
    outcome = applyTo(log, change)
  } else if (log.memory === undefined) {
    yield* applyCreate(log, change, resolve)
    outcome = "Done"
  }
  if (outcome === "Broken") log.broken ??= `a record builds on one that can't be read (by ${change.by})`
  if (log.outcomes.has(change.by)) log.outcomes.set(change.by, outcome)
})

/** The bytes of lines that are read in one turn of the event loop: some milliseconds. */
const perTurn = 256 * 1024

/** The bytes from which a record is encoded piece by piece, because it would block for milliseconds. */
const large = 1024 * 1024

/** Reads and writes logs in a folder. */
export const make = (place: Place, resolve: Resolve) => {
  const { folder, fs, fsync, path } = place

  const readOn = Effect.fnUntraced(function* (log: Log): Effect.fn.Return<boolean, Fault | PlatformError, Scope> {
    const at = path.join(folder, log.file)
    const info = yield* AppendLog.unless("NotFound")(fs.stat(at))
    if (info === undefined) return false
    if (info.type !== "File") {
      log.broken = "it is no file"
      return true
    }
    if (!AppendLog.isSame(log, info)) {
      Object.assign(log, { ...unread(AppendLog.identityOf(info)), outcomes: log.outcomes })
    }
    if (isEmptied(info)) log.broken = emptied
    if (Number(info.size) === log.size + log.tail) return true
    const file = yield* AppendLog.unless("NotFound")(fs.open(at, { flag: "r" }))
    const news = file === undefined ? undefined : yield* AppendLog.follow(file, log)
    // The file was removed or replaced meanwhile.
    if (news === undefined) return yield* readOn(log)
    let sinceOthers = 0
    for (const [line, bytes] of news.lines) {
      sinceOthers += bytes
      if (sinceOthers > perTurn) {
        sinceOthers = bytes
        yield* Effect.yieldNow
      }
      yield* readLine(log, line, bytes, resolve)
    }
    // The file is not even the beginning of a record.
    if (log.create === undefined && !mayBegin(news.rest)) log.broken ??= `line ${log.lines + 1}: it is no JSON`
    return true
  })

  /** Reads new lines, or all lines of a replaced file. `false`: there is no file. */
  const refresh = (log: Log): Effect.Effect<boolean, Fault> => faulty(Effect.scoped(readOn(log)))

  /** Writes a record, and gives its effect. `about` is an estimate of its bytes. */
  const write = Effect.fnUntraced(
    function* (log: Log, change: Change, about = 0) {
      const line = about > large ? yield* encodeSlowly(change) : encode(change)
      const file = yield* fs.open(path.join(folder, log.file), { flag: "a", mode: 0o600 })
      const bytes = yield* AppendLog.append(file, log, line, fsync)
      const info = yield* file.stat
      const { memory } = log
      const isAlone = log.tail === 0 && AppendLog.isSame(log, info) && Number(info.size) === log.size + bytes
      if (isAlone && memory !== undefined && change._tag !== "Create") {
        log.size += bytes
        log.lines++
        return applyTo(log, change)
      }
      log.outcomes.set(change.by, "Void")
      yield* refresh(log)
      const outcome = log.outcomes.get(change.by) ?? "Void"
      log.outcomes.delete(change.by)
      return outcome
    },
    Effect.scoped,
    faulty
  )

  /** Reports unreadable bytes, and records the report in the file. */
  const repair = Effect.fnUntraced(function* (log: Log) {
    if (log.tail > 0) {
      // Another process may be writing the last record.
      yield* Effect.sleep("50 millis")
      yield* refresh(log)
    }
    const lostBytes = log.lost + log.tail
    if (lostBytes === 0) return
    const threadId = JSON.stringify(log.create?.threadId ?? "none")
    yield* AppendLog.reportLost(lostBytes, `${path.join(folder, log.file)} (thread ${threadId})`)
    const at = yield* Clock.currentTimeMillis
    yield* Effect.ignore(write(log, { _tag: "Repaired", by: makeId(), at, lostBytes }))
  })

  return { refresh, write, repair }
}
