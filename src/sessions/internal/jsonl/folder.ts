/** The logs of a folder: a change of one holds its lock, and recently used ones stay in memory. */
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type * as Memory from "../memory/thread.ts"
import type { Fault } from "../tables.ts"
import * as Logs from "./log.ts"
import { baseOf, isThread, makeFileOf } from "./names.ts"
import type { Create } from "./record.ts"

/** The number of locks. Files share them by a hash of their names. */
const stripes = 64

/** The bytes of the files whose logs stay in memory. Each log counts as `least` bytes at least. */
const capacity = 64 * 1024 * 1024
const least = 4 * 1024

/** A log of an existing thread. */
export interface OpenLog extends Logs.Log {
  readonly memory: Memory.Memory
  readonly create: Create
}

export const isOpen = (log: Logs.Log): log is OpenLog => log.memory !== undefined && log.create !== undefined

/** The logs in memory, the least recently used one first. */
const makeCache = () => {
  const logs = new Map<string, Logs.Log>()
  /** The bytes of each log when it was kept. */
  const weights = new Map<string, number>()
  let total = 0
  const drop = (file: string): void => {
    logs.delete(file)
    total -= weights.get(file) ?? 0
    weights.delete(file)
  }
  const keep = (log: Logs.Log): void => {
    drop(log.file)
    logs.set(log.file, log)
    const weight = Math.max(log.size, least)
    weights.set(log.file, weight)
    total += weight
    for (const oldest of logs.keys()) {
      if (total <= capacity || oldest === log.file) break
      drop(oldest)
    }
  }
  return { drop, keep, get: (file: string) => logs.get(file) }
}

/** A folder of threads. */
export interface Folder extends Logs.Place, ReturnType<typeof Logs.make> {
  readonly cache: ReturnType<typeof makeCache>
  readonly locks: ReadonlyArray<Semaphore.Semaphore>
  /** Held by forks and removals, so that no thread is forked while it is removed. */
  readonly structure: Semaphore.Semaphore
  /** The file of a thread. */
  readonly fileOf: (threadId: string) => Effect.Effect<string>
}

const corrupt = ({ folder, path }: Logs.Place, file: string, problem: string): Fault => ({
  reason: { _tag: "Corrupt", problem: `${path.join(folder, file)}: ${problem}` }
})

/** Makes the record of an existing folder. */
export const makeFolder = Effect.fnUntraced(function* (place: Logs.Place) {
  const cache = makeCache()
  const fileOf = makeFileOf()

  /** Finds the source of a fork. It needs no lock, because the entries that a fork sees never change. */
  const resolve: Logs.Resolve = Effect.fnUntraced(function* ({ by, count, threadId }) {
    const file = yield* fileOf(threadId)
    const cachedLog = cache.get(file)
    if (cachedLog?.create?.by === by && (cachedLog.memory?.list.length ?? 0) >= count) return cachedLog.memory
    for (const name of [file, baseOf(file, by)]) {
      const log = Logs.empty(name)
      yield* logs.refresh(log)
      if (log.create?.by !== by) continue
      if (log.broken !== undefined) return yield* Effect.fail(corrupt(place, name, log.broken))
      return log.memory
    }
    return undefined
  })

  const logs = Logs.make(place, resolve)
  const folder: Folder = {
    ...place,
    ...logs,
    cache,
    fileOf,
    locks: yield* Effect.replicateEffect(Semaphore.make(1), stripes),
    structure: yield* Semaphore.make(1)
  }
  return folder
})

/** Holds the lock of a file. */
export const locked =
  ({ locks }: Folder, file: string) =>
  <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> => {
    let hash = 0
    for (let index = 0; index < file.length; index++) hash = (hash * 31 + file.charCodeAt(index)) % stripes
    const lock = locks[hash]
    return lock === undefined ? effect : lock.withPermits(1)(effect)
  }

/** Reads the log of a file to its end. The caller holds its lock. */
export const readLog = Effect.fnUntraced(function* (folder: Folder, file: string): Effect.fn.Return<Logs.Log, Fault> {
  const { cache, refresh, repair } = folder
  const cachedLog = cache.get(file)
  const log = cachedLog ?? Logs.empty(file)
  if (!(yield* refresh(log))) {
    cache.drop(file)
    return Logs.empty(file)
  }
  // Nothing is added to an unreadable file.
  if (cachedLog === undefined && log.broken === undefined) yield* repair(log)
  if (log.broken !== undefined) {
    // The next reader finds what somebody mended.
    cache.drop(file)
    return yield* Effect.fail(corrupt(folder, file, log.broken))
  }
  cache.keep(log)
  return log
})

/** Works on the log of a thread under its lock. A missing thread gives `absent`. */
export const withThread = <A>(
  folder: Folder,
  threadId: string,
  absent: A,
  body: (log: OpenLog) => Effect.Effect<A, Fault>
): Effect.Effect<A, Fault> =>
  Effect.flatMap(folder.fileOf(threadId), (file) =>
    locked(
      folder,
      file
    )(
      Effect.flatMap(readLog(folder, file), (log) =>
        !isOpen(log)
          ? Effect.succeed(absent)
          : log.memory.threadId === threadId
            ? body(log)
            : Effect.fail(corrupt(folder, file, `it is of the thread ${JSON.stringify(log.memory.threadId)}`))
      )
    )
  )

/** The sorted names of files. */
export const filesOf = ({ folder, fs }: Logs.Place, isWanted: (file: string) => boolean) =>
  Logs.faulty(Effect.map(fs.readDirectory(folder), (files) => files.filter(isWanted).sort()))

/** Reads the log of each thread. The result of an unreadable one is its problem. */
export const eachLog = Effect.fnUntraced(function* (
  folder: Folder,
  onLog: (log: Logs.Log) => Effect.Effect<void, Fault>,
  onProblem: (file: string, problem: string) => Effect.Effect<void, Fault>
) {
  for (const file of yield* filesOf(folder, isThread)) {
    const log = yield* Effect.result(locked(folder, file)(readLog(folder, file)))
    if (log._tag === "Success") yield* onLog(log.success)
    else if (log.failure.reason._tag === "Corrupt") yield* onProblem(file, log.failure.reason.problem)
    else return yield* Effect.fail(log.failure)
  }
})

/** Collects from all threads, one after another. An unreadable thread is reported, and left out. */
export const collect = Effect.fnUntraced(function* <A>(
  folder: Folder,
  body: (log: OpenLog) => Effect.Effect<ReadonlyArray<A>>
) {
  const list: Array<A> = []
  const add = Effect.fnUntraced(function* (log: Logs.Log) {
    // A copy of a file under another name is not a thread.
    if (!isOpen(log) || (yield* folder.fileOf(log.create.threadId)) !== log.file) return
    for (const one of yield* body(log)) list.push(one)
  })
  yield* eachLog(folder, add, (_, problem) => Effect.logWarning(`A thread was left out: ${problem}`))
  return list
})
