/** The tables of threads in JSONL files. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import { makeId } from "../../../core/Message.ts"
import { syncFolder } from "../../../support/store/appendLog.ts"
import * as Memory from "../memory.ts"
import { movedTo } from "../moving.ts"
import type { Appended, Fault, Named, Tables } from "../tables.ts"
import { waitsAt } from "../waits.ts"
import * as Logs from "./log.ts"
import { makeMark } from "./mark.ts"
import { baseOf, isBase, isThread, makeFileOf } from "./names.ts"
import type { Change, Create, Mark } from "./record.ts"

const stripes = 64

/** The most that is kept of logs, in bytes of their files, and of each at least: a thread in memory is never nothing. */
const capacity = 64 * 1024 * 1024
const least = 4 * 1024

const gone: Appended = { _tag: "Refused", thread: undefined }

/** A log of a thread that is there. */
interface Open extends Logs.Log {
  readonly memory: Memory.Memory
  readonly create: Create
}

const isOpen = (log: Logs.Log): log is Open => log.memory !== undefined && log.create !== undefined

/** Tables in a folder that is there. */
export const make = Effect.fnUntraced(function* (place: Logs.Place) {
  const { folder, fs, fsync, path } = place
  const locks = yield* Effect.replicateEffect(Semaphore.make(1), stripes)
  // No fork is made while its source is removed.
  const structure = yield* Semaphore.make(1)
  const logs = new Map<string, Logs.Log>()
  /** The bytes that each log was kept with. */
  const weights = new Map<string, number>()
  let total = 0
  const fileOf = makeFileOf()

  const corrupt = (file: string, problem: string): Fault => ({
    reason: { _tag: "Corrupt", problem: `${path.join(folder, file)}: ${problem}` }
  })

  const drop = (file: string): void => {
    logs.delete(file)
    total -= weights.get(file) ?? 0
    weights.delete(file)
  }

  /** The one that was used longest ago makes room. */
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

  const locked =
    (file: string) =>
    <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> => {
      let hash = 0
      for (let index = 0; index < file.length; index++) hash = (hash * 31 + file.charCodeAt(index)) % stripes
      const lock = locks[hash]
      return lock === undefined ? effect : lock.withPermits(1)(effect)
    }

  /** The source of a fork is only read, without a lock: nothing of it that counts ever changes. */
  const resolve: Logs.Resolve = Effect.fnUntraced(function* ({ by, count, threadId }) {
    const file = yield* fileOf(threadId)
    const known = logs.get(file)
    if (known?.create?.by === by && (known.memory?.list.length ?? 0) >= count) return known.memory
    for (const name of [file, baseOf(file, by)]) {
      const log = Logs.empty(name)
      yield* refresh(log)
      if (log.create?.by !== by) continue
      if (log.broken !== undefined) return yield* Effect.fail(corrupt(name, log.broken))
      return log.memory
    }
    return undefined
  })

  const { refresh, repair, write } = Logs.make(place, resolve)

  /** The log of a file, read to its end; under its lock. */
  const read = Effect.fnUntraced(function* (file: string): Effect.fn.Return<Logs.Log, Fault> {
    const known = logs.get(file)
    const log = known ?? Logs.empty(file)
    if (!(yield* refresh(log))) {
      drop(file)
      return Logs.empty(file)
    }
    // To what can't be read nothing is added.
    if (known === undefined && log.broken === undefined) yield* repair(log)
    if (log.broken !== undefined) return yield* Effect.fail(corrupt(file, log.broken))
    keep(log)
    return log
  })

  const within = <A>(
    threadId: string,
    absent: A,
    body: (log: Open) => Effect.Effect<A, Fault>
  ): Effect.Effect<A, Fault> =>
    Effect.flatMap(fileOf(threadId), (file) =>
      locked(file)(
        Effect.flatMap(read(file), (log) =>
          !isOpen(log)
            ? Effect.succeed(absent)
            : log.memory.threadId === threadId
              ? body(log)
              : Effect.fail(corrupt(file, `it is of the thread ${JSON.stringify(log.memory.threadId)}`))
        )
      )
    )

  const look = <A>(threadId: string, absent: A, body: (memory: Memory.Memory) => A): Effect.Effect<A, Fault> =>
    within(threadId, absent, ({ memory }) => Effect.sync(() => body(memory)))

  const mark = makeMark(place)

  const unmarked = Effect.flatMap(mark.read, (to) => (to === undefined ? Effect.void : Effect.fail(movedTo(to))))

  /** Writes a mark to a thread that does not have it. */
  const markOne = (file: string, made: Mark) =>
    locked(file)(
      Effect.flatMap(read(file), (log) => {
        const isMarked = (log.moved !== undefined) === (made._tag === "Closed")
        return isOpen(log) && !isMarked ? Effect.asVoid(write(log, made)) : Effect.void
      })
    )

  const closeOne = (file: string, to: string) =>
    Clock.clockWith((clock) => markOne(file, { _tag: "Closed", by: makeId(), at: clock.currentTimeMillisUnsafe(), to }))

  /** A change of a thread that was not moved. */
  const unmoved = <A>(log: Open, body: Effect.Effect<A, Fault>): Effect.Effect<A, Fault> =>
    log.moved === undefined ? body : Effect.fail(movedTo(log.moved))

  const create = Effect.fnUntraced(function* (change: Omit<Create, "_tag" | "by">): Effect.fn.Return<boolean, Fault> {
    yield* unmarked
    const file = yield* fileOf(change.threadId)
    const make = Effect.flatMap(read(file), (log) =>
      isOpen(log)
        ? Effect.succeed(false)
        : Effect.map(write(log, { _tag: "Create", by: makeId(), ...change }), (outcome) => outcome === "Done")
    )
    const isNew = yield* locked(file)(make)
    // Whoever set the mark meanwhile may have listed the threads before this one was there.
    const to = isNew ? yield* mark.read : undefined
    if (to !== undefined) {
      yield* closeOne(file, to)
      return yield* Effect.fail(movedTo(to))
    }
    if (isNew && fsync) yield* syncFolder(fs, folder)
    return isNew
  })

  const changed = (
    log: Open,
    change: Change,
    done: (memory: Memory.Memory) => number,
    bytes?: number
  ): Effect.Effect<Appended, Fault> =>
    Effect.flatMap(unmoved(log, write(log, change, bytes)), (outcome): Effect.Effect<Appended, Fault> => {
      if (log.memory === undefined) return Effect.succeed(gone)
      if (outcome === "Done") return Effect.succeed({ _tag: "Done", step: done(log.memory) })
      return unmoved(log, Effect.succeed({ _tag: "Refused", thread: Memory.info(log.memory) }))
    })

  /** Writes a change, and says whether it was made. */
  const done = (log: Open, change: Change): Effect.Effect<boolean, Fault> =>
    Effect.flatMap(unmoved(log, write(log, change)), (outcome) =>
      outcome === "Done" ? Effect.succeed(true) : unmoved(log, Effect.succeed(false))
    )

  const names = (wanted: (file: string) => boolean) =>
    Logs.faulty(Effect.map(fs.readDirectory(folder), (files) => files.filter(wanted).sort()))

  /** All threads, one after the other. One that can't be read is reported, and left out. */
  const each = <A>(body: (log: Open) => ReadonlyArray<A>) => eachOf((log) => Effect.succeed(body(log)))

  const eachOf = Effect.fnUntraced(function* <A>(body: (log: Open) => Effect.Effect<ReadonlyArray<A>>) {
    const found: Array<A> = []
    for (const file of yield* names(isThread)) {
      const log = yield* Effect.result(locked(file)(read(file)))
      if (log._tag === "Failure") {
        if (log.failure.reason._tag !== "Corrupt") return yield* Effect.fail(log.failure)
        yield* Effect.logWarning(`A thread was left out: ${log.failure.reason.problem}`)
        continue
      }
      const isOwn = isOpen(log.success) && (yield* fileOf(log.success.create.threadId)) === file
      if (isOwn && isOpen(log.success)) for (const one of yield* body(log.success)) found.push(one)
    }
    return found
  })

  /** The creations of all files that something was forked from. */
  const origins = Effect.gen(function* () {
    const used = new Set(yield* each(({ create: { origin } }) => (origin === undefined ? [] : [origin.by])))
    const bases: Array<{ readonly file: string; readonly by: string; readonly from: string | undefined }> = []
    for (const file of yield* names(isBase)) {
      const log = Logs.empty(file)
      yield* refresh(log)
      if (log.create !== undefined) bases.push({ file, by: log.create.by, from: log.create.origin?.by })
    }
    return { used, bases }
  })

  /** Removes what was only kept for forks that are there no more. */
  const sweep = Effect.gen(function* () {
    const { bases, used } = yield* origins
    let left = bases
    for (;;) {
      const needed = new Set([...used, ...left.flatMap(({ from }) => (from === undefined ? [] : [from]))])
      const unused = left.filter(({ by }) => !needed.has(by))
      if (unused.length === 0) return
      for (const { file } of unused) yield* Logs.faulty(fs.remove(path.join(folder, file)))
      left = left.filter((base) => !unused.includes(base))
    }
  })

  const remove = Effect.fnUntraced(function* (threadId: string) {
    const { bases, used } = yield* origins
    const isDone = yield* within(threadId, false, (log) =>
      unmoved(
        log,
        Effect.suspend(() => {
          const { by } = log.create
          const isUsed = used.has(by) || bases.some(({ from }) => from === by)
          const from = path.join(folder, log.file)
          drop(log.file)
          return Effect.as(
            Logs.faulty(isUsed ? fs.rename(from, path.join(folder, baseOf(log.file, by))) : fs.remove(from)),
            true
          )
        })
      )
    )
    if (isDone) yield* sweep
    return isDone
  })

  /** Marks all threads. What can't be read takes no changes anyway. */
  const markAll = Effect.fnUntraced(function* (markFile: (file: string) => Effect.Effect<void, Fault>) {
    for (const file of yield* names(isThread)) {
      yield* Effect.catchIf(
        markFile(file),
        ({ reason }) => reason._tag === "Corrupt",
        () => Effect.void
      )
    }
  })

  /** All that waits: threads of such a folder are few, and those that did not change are in memory. */
  const waiting = eachOf(({ memory }) => {
    if (memory.archived) return Effect.succeed([])
    const { leaf, threadId } = memory
    const path = (from: string, limit: number) => Effect.sync(() => Memory.path(memory, from, limit))
    return Effect.map(waitsAt(path, leaf?.id ?? null), (waits) => waits.map((request) => ({ threadId, request })))
  })

  const tables: Tables = {
    insert: (thread, { past, ...content }) =>
      create({ ...thread, ...content, ...(past === undefined ? {} : { past }) }),

    fork: (source, entryId, thread) =>
      Effect.gen(function* () {
        const origin = yield* within(source, undefined, ({ create: { by }, memory }) =>
          Effect.succeed({ threadId: source, by, entryId, count: memory.list.length })
        )
        if (origin === undefined) return "Gone"
        const content = { archived: false, leaf: null, entries: [], origin }
        return (yield* create({ ...thread, ...content })) ? "Done" : "Exists"
      }).pipe(structure.withPermits(1)),

    append: (threadId, leaf, entries, at, behind, bytes) =>
      within(threadId, gone, (log) => {
        const refused = Memory.refusal(log.memory, leaf, entries)
        if (refused !== undefined) return Effect.succeed(refused)
        const last = entries.at(-1)?.id ?? ""
        const elsewhere = behind === leaf ? {} : { behind }
        const change: Change = { _tag: "Append", by: makeId(), at, leaf, entries, ...elsewhere }
        return changed(log, change, (memory) => Memory.find(memory, last)?.step ?? 0, bytes)
      }),

    addLabel: (threadId, id, label, at) =>
      within(threadId, gone, (log) =>
        changed(log, { _tag: "Hang", by: makeId(), at, id, label }, (memory) => Memory.find(memory, id)?.step ?? 0)
      ),

    move: (threadId, from, to, at) =>
      within(threadId, false, (log) => done(log, { _tag: "Move", by: makeId(), at, from, to })),

    update: (threadId, change, at) =>
      within(threadId, false, (log) => {
        const head = { by: makeId(), at }
        const record: Change =
          "metadata" in change ? { _tag: "Describe", ...head, ...change } : { _tag: "Archive", ...head, ...change }
        return done(log, record)
      }),

    remove: (threadId) => structure.withPermits(1)(remove(threadId)),
    find: (threadId) => look(threadId, undefined, Memory.info),
    entry: (threadId, id) => look(threadId, undefined, (memory) => Memory.find(memory, id)),
    path: (threadId, from, limit) => look(threadId, [], (memory) => Memory.path(memory, from, limit)),
    labels: (threadId) => look(threadId, [], Memory.labels),
    entries: (threadId, cursor, limit) =>
      look(threadId, { entries: [], next: undefined }, (memory) => Memory.slice(memory, cursor, limit)),
    list: (query) =>
      Effect.map(
        each(({ memory }) => [Memory.info(memory)].filter((thread) => Memory.isListed(thread, query))),
        (threads) => Memory.firstThreads(threads, query.limit)
      ),
    waiting: (query) => Effect.map(waiting, (found) => Memory.firstWaits(found, query)),
    waitingFor: (requestId) =>
      Effect.map(waiting, (found) => {
        const all = found.filter(({ request }) => request.id === requestId)
        return Memory.firstWaits(all, { after: undefined, limit: 1, threadId: undefined })[0]
      }),
    search: (query) =>
      Effect.map(
        eachOf(({ memory }) => Memory.hits(memory, query)),
        (hits) => Memory.firstHits(hits, query.limit)
      ),

    names: Effect.gen(function* () {
      const found: Array<Named> = []
      for (const file of yield* names(isThread)) {
        const log = yield* Effect.result(locked(file)(read(file)))
        if (log._tag === "Success") {
          if (log.success.create !== undefined) found.push({ threadId: log.success.create.threadId })
          continue
        }
        if (log.failure.reason._tag !== "Corrupt") return yield* Effect.fail(log.failure)
        const broken = Logs.empty(file)
        yield* refresh(broken)
        found.push({ threadId: broken.create?.threadId ?? file, problem: log.failure.reason.problem })
      }
      return found
    }),

    moved: mark.read,

    close: Effect.fnUntraced(function* (to: string) {
      const place = yield* mark.write(to)
      yield* markAll((file) => closeOne(file, place))
      return place
    }),

    reopen: Effect.gen(function* () {
      const at = yield* Clock.currentTimeMillis
      yield* markAll((file) => markOne(file, { _tag: "Reopened", by: makeId(), at }))
      yield* mark.remove
    })
  }
  return tables
})
