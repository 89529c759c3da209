/**
 * A space in a folder: numbered files of lines. The highest number is the current file.
 *
 * Processes need no lock. A process appends a line in one write, and reads from the file whether its change applied: the
 * first of two conflicting lines wins. To compact a file, a process appends a seal. Whoever finds the seal makes the next
 * file from the rows, and links it under its final name in one step. The old file is then emptied, which erases removed
 * rows; its name is not used again.
 */
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import type * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import { makeId } from "../../../core/Message.ts"
import * as AppendLog from "../../../support/store/appendLog.ts"
import * as Rows from "../rows.ts"
import type { Fault } from "../table.ts"
import { apply, type Change, decode, encode, encodeFile, type Entry } from "./change.ts"

/** The place of a space. */
export interface Place {
  readonly fs: FileSystem.FileSystem
  readonly path: Path.Path
  readonly folder: string
  readonly space: string
  readonly fsync: boolean
}

/** A file, read up to some line. An outcome says whether a change applied; `undefined` until its line is read. */
interface Log extends AppendLog.Log<boolean | undefined> {
  readonly generation: number
  readonly rows: Rows.Rows<Entry>
  space: string | undefined
  isSealed: boolean
}

/** Keeps the log of a space, so that later reads continue it. */
export interface Holder {
  log: Log | undefined
}

/** The number of emptied files that stay, so that a slow process does not use their names again. */
const keptFiles = 8

type Problem = Fault | PlatformError

const { unless } = AppendLog

const fileOf = (place: Place, generation: number): string => place.path.join(place.folder, `${generation}`)

const take = (log: Log, line: string, bytes: number): void => {
  const change = decode(line)
  if (change === undefined) log.lost += bytes
  else if (change._tag === "Head") log.space = change.space
  else if (!log.isSealed) {
    log.lines++
    if (change._tag === "Seal") log.isSealed = true
    else {
      const isApplied = apply(log.rows, change)
      if (log.outcomes.has(change.by)) log.outcomes.set(change.by, isApplied)
    }
  }
}

/** Reads the new lines. `false` if another file has the name now. */
const follow = Effect.fnUntraced(function* (file: FileSystem.File, log: Log) {
  const news = yield* AppendLog.follow(file, log)
  for (const [line, bytes] of news?.lines ?? []) take(log, line, bytes)
  return news !== undefined
})

/** Makes a file of rows, unless the number is in use. Both happen in one step. */
const publish = Effect.fnUntraced(function* (place: Place, generation: number, rows: Rows.Rows<Entry>) {
  const { fs } = place
  const draft = `${fileOf(place, generation)}.${makeId()}.draft`
  const write = Effect.gen(function* () {
    const file = yield* fs.open(draft, { flag: "wx", mode: 0o600 })
    yield* file.writeAll(new TextEncoder().encode(encodeFile(place.space, rows)))
    if (place.fsync) yield* file.sync
  })
  const link = fs.link(draft, fileOf(place, generation)).pipe(unless("AlreadyExists"), unless("NotFound"))
  yield* Effect.ensuring(Effect.andThen(Effect.scoped(write), link), Effect.ignore(fs.remove(draft)))
  if (place.fsync) yield* AppendLog.syncFolder(fs, place.folder)
})

/**
 * Empties the file before this one, and removes older files and abandoned drafts. This happens before a file is used, so
 * at most one file is to be emptied.
 */
const retire = Effect.fnUntraced(function* (place: Place, names: ReadonlyArray<string>, last: number) {
  const { fs } = place
  for (const name of names) {
    const generation = Number.parseInt(name, 10)
    const file = place.path.join(place.folder, name)
    if (name.endsWith(".draft") ? generation <= last : generation < last - keptFiles) {
      yield* Effect.ignore(fs.remove(file))
    } else if (name === `${last - 1}`) {
      const stat = yield* unless("NotFound")(fs.stat(file))
      if (stat === undefined || Number(stat.size) === 0) continue
      const blank = `${file}.${makeId()}.draft`
      yield* fs.writeFile(blank, new Uint8Array(), { flag: "wx", mode: 0o600 })
      // Another process may have removed the draft while it did the same.
      yield* unless("NotFound")(fs.rename(blank, file))
    }
  }
})

/** Reads the current file; `undefined` for a space without files. */
const load = Effect.fnUntraced(function* (place: Place): Effect.fn.Return<Log | undefined, Problem> {
  const { folder, fs } = place
  let previousLast = 0
  for (;;) {
    const names = (yield* unless("NotFound")(fs.readDirectory(folder))) ?? []
    const last = Math.max(0, ...names.filter((name) => /^[1-9]\d*$/u.test(name)).map(Number))
    if (last === 0) return undefined
    const log = yield* Effect.scoped(
      Effect.gen(function* () {
        const file = yield* unless("NotFound")(fs.open(fileOf(place, last), { flag: "r" }))
        if (file === undefined) return undefined
        const unread = AppendLog.empty<boolean | undefined>(AppendLog.identityOf(yield* file.stat))
        const log: Log = { ...unread, generation: last, rows: Rows.empty(), space: undefined, isSealed: false }
        return (yield* follow(file, log)) ? log : undefined
      })
    )
    if (log === undefined) continue
    if (log.space === undefined && last !== previousLast) {
      // Another process may have emptied it since its name was read.
      previousLast = last
      continue
    }
    if (log.space !== place.space) {
      const problem = `${fileOf(place, last)} is not what this version of effect-deepagents wrote there; put it back from a copy, or remove it`
      return yield* Effect.fail<Fault>({ reason: "Corrupt", problem })
    }
    if (log.lost > 0) yield* AppendLog.reportLost(log.lost, fileOf(place, last))
    yield* retire(place, names, last)
    return log
  }
})

/** Reads the log to its end; `undefined` for a space without files. */
const current = Effect.fnUntraced(function* (place: Place, holder: Holder): Effect.fn.Return<Log | undefined, Problem> {
  for (;;) {
    const { log } = holder
    const isSame =
      log !== undefined &&
      (yield* Effect.scoped(
        Effect.gen(function* () {
          const file = yield* unless("NotFound")(place.fs.open(fileOf(place, log.generation), { flag: "r" }))
          return file !== undefined && (yield* follow(file, log))
        })
      ))
    holder.log = isSame ? log : yield* load(place)
    if (holder.log?.isSealed !== true) return holder.log
    yield* publish(place, holder.log.generation + 1, holder.log.rows)
    holder.log = undefined
  }
})

/** Appends a change. Reports whether it applied; `undefined` if it must go to another file. */
const write = Effect.fnUntraced(function* (place: Place, log: Log, change: Change) {
  const file = yield* place.fs.open(fileOf(place, log.generation), { flag: "a+", mode: 0o600 })
  if (!AppendLog.isSame(log, yield* file.stat)) return undefined
  log.outcomes.set(change.by, undefined)
  yield* AppendLog.append(file, log, encode(change), place.fsync)
  // Reads this very file, also if another file has its name by now.
  yield* follow(file, log)
  return log.outcomes.get(change.by)
}, Effect.scoped)

const isWasteful = ({ lines, rows }: Log): boolean => lines > 2 * rows.map.size + 256

/** Reads the rows of a space. */
export const readRows = (place: Place, holder: Holder): Effect.Effect<Rows.Rows<Entry>, Problem> =>
  Effect.map(current(place, holder), (log) => log?.rows ?? Rows.empty())

/** Commits a change that `decide` makes of the rows (`undefined`: no change), and reports whether it applied. */
export const commit = Effect.fnUntraced(function* (
  place: Place,
  holder: Holder,
  decide: (rows: Rows.Rows<Entry>) => Change | undefined
): Effect.fn.Return<boolean, Problem> {
  for (;;) {
    const log = yield* current(place, holder)
    const change = decide(log?.rows ?? Rows.empty())
    if (change === undefined) return false
    if (log === undefined) {
      yield* place.fs.makeDirectory(place.folder, { recursive: true, mode: 0o700 })
      yield* publish(place, 1, Rows.empty())
      continue
    }
    const outcome = yield* Effect.ensuring(
      write(place, log, change),
      Effect.sync(() => log.outcomes.delete(change.by))
    )
    if (outcome === undefined) continue
    const erases = change._tag === "Clear" || (change._tag === "Set" && change.rows.some(([, value]) => value === null))
    if (outcome && (erases || isWasteful(log))) {
      yield* write(place, log, { _tag: "Seal", by: makeId() })
      yield* current(place, holder)
    }
    return outcome
  }
})
