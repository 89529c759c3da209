/**
 * A space in a folder: numbered files of lines, of which the highest one counts.
 *
 * Processes need no lock. A line is written in one go at the end of the file, and what it came to is read from the
 * file: of two changes that exclude each other, the first line counts. To write the file anew, a process seals it by a
 * line, behind which nothing counts, and whoever finds it sealed makes the next file of what was there, under its final
 * name in one step. The file that was followed becomes an empty one: its name is never given again, and what was
 * removed is gone.
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

/** A file as far as it was read. An outcome is whether the change held, `undefined` as long as it was not found. */
interface Log extends AppendLog.Log<boolean | undefined> {
  readonly generation: number
  readonly rows: Rows.Rows<Entry>
  space: string | undefined
  isSealed: boolean
}

/** A log that is held: read on from where it was. */
export interface Held {
  log: Log | undefined
}

/** So many files that were followed are kept, empty: none of their names is given again by a process that lags. */
const kept = 8

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
      const held = apply(log.rows, change)
      if (log.outcomes.has(change.by)) log.outcomes.set(change.by, held)
    }
  }
}

/** Reads what came since. `false` if the file is another one than the log is of. */
const follow = Effect.fnUntraced(function* (file: FileSystem.File, log: Log) {
  const news = yield* AppendLog.follow(file, log)
  for (const [line, bytes] of news?.lines ?? []) take(log, line, bytes)
  return news !== undefined
})

/** Makes a file of rows, unless there is one of this number: both in one step. */
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
 * Empties the file that was followed by this one, and removes what is older, or was begun for nothing. It is done
 * before a file is used, so there is never more than one to be emptied.
 */
const retire = Effect.fnUntraced(function* (place: Place, names: ReadonlyArray<string>, last: number) {
  const { fs } = place
  for (const name of names) {
    const generation = Number.parseInt(name, 10)
    const file = place.path.join(place.folder, name)
    if (name.endsWith(".draft") ? generation <= last : generation < last - kept) {
      yield* Effect.ignore(fs.remove(file))
    } else if (name === `${last - 1}`) {
      const stat = yield* unless("NotFound")(fs.stat(file))
      if (stat === undefined || Number(stat.size) === 0) continue
      const blank = `${file}.${makeId()}.draft`
      yield* fs.writeFile(blank, new Uint8Array(), { flag: "wx", mode: 0o600 })
      // Another process may have swept it away, since it did the same.
      yield* unless("NotFound")(fs.rename(blank, file))
    }
  }
})

/** Reads the file that counts, `undefined` if there is none. */
const load = Effect.fnUntraced(function* (place: Place): Effect.fn.Return<Log | undefined, Problem> {
  const { folder, fs } = place
  let seen = 0
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
    if (log.space === undefined && last !== seen) {
      // It may have been followed by another one, and emptied, since its name was read.
      seen = last
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

/** The log, read to its end; `undefined` if there is none. */
const current = Effect.fnUntraced(function* (place: Place, held: Held): Effect.fn.Return<Log | undefined, Problem> {
  for (;;) {
    const { log } = held
    const isSame =
      log !== undefined &&
      (yield* Effect.scoped(
        Effect.gen(function* () {
          const file = yield* unless("NotFound")(place.fs.open(fileOf(place, log.generation), { flag: "r" }))
          return file !== undefined && (yield* follow(file, log))
        })
      ))
    held.log = isSame ? log : yield* load(place)
    if (held.log?.isSealed !== true) return held.log
    yield* publish(place, held.log.generation + 1, held.log.rows)
    held.log = undefined
  }
})

/** Writes a line; says whether it held, `undefined` if it has to be written to another file. */
const write = Effect.fnUntraced(function* (place: Place, log: Log, change: Change) {
  const file = yield* place.fs.open(fileOf(place, log.generation), { flag: "a+", mode: 0o600 })
  if (!AppendLog.isSame(log, yield* file.stat)) return undefined
  log.outcomes.set(change.by, undefined)
  yield* AppendLog.append(file, log, encode(change), place.fsync)
  // Reads this very file, even if its name is another one's by this time.
  yield* follow(file, log)
  return log.outcomes.get(change.by)
}, Effect.scoped)

const isWasteful = ({ lines, rows }: Log): boolean => lines > 2 * rows.map.size + 256

/** The rows as they are. */
export const read = (place: Place, held: Held): Effect.Effect<Rows.Rows<Entry>, Problem> =>
  Effect.map(current(place, held), (log) => log?.rows ?? Rows.empty())

/** Makes a change of what is there, `undefined` for none, and says whether it was made. */
export const commit = Effect.fnUntraced(function* (
  place: Place,
  held: Held,
  decide: (rows: Rows.Rows<Entry>) => Change | undefined
): Effect.fn.Return<boolean, Problem> {
  for (;;) {
    const log = yield* current(place, held)
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
      yield* current(place, held)
    }
    return outcome
  }
})
