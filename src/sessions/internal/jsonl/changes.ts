/** Changes the threads of a folder: each change is a record at the end of a log. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { makeId } from "../../../core/Message.ts"
import { syncFolder } from "../../../support/store/appendLog.ts"
import * as Memory from "../memory/thread.ts"
import type { AppendOutcome, Fault, Tables } from "../tables.ts"
import { movedTo } from "../transfer/moving.ts"
import { type Folder, filesOf, isOpen, locked, type OpenLog, readLog, withThread } from "./folder.ts"
import { readMark } from "./mark.ts"
import { isThread } from "./names.ts"
import type { Change, Create, Mark } from "./record.ts"

const noThread: AppendOutcome = { _tag: "Refused", thread: undefined }

/** Runs a change of a thread that was not moved. */
export const unlessMoved = <A>(log: OpenLog, change: Effect.Effect<A, Fault>): Effect.Effect<A, Fault> =>
  log.moved === undefined ? change : Effect.fail(movedTo(log.moved))

/** Writes a mark to a thread that does not have it. */
const markThread = (folder: Folder, file: string, mark: Mark) =>
  locked(
    folder,
    file
  )(
    Effect.flatMap(readLog(folder, file), (log) => {
      const isMarked = (log.moved !== undefined) === (mark._tag === "Closed")
      return isOpen(log) && !isMarked ? Effect.asVoid(folder.write(log, mark)) : Effect.void
    })
  )

/** Writes a mark to all threads. Unreadable threads take no changes anyway. */
export const markThreads = Effect.fnUntraced(function* (folder: Folder, to: string | undefined) {
  const at = yield* Clock.currentTimeMillis
  for (const file of yield* filesOf(folder, isThread)) {
    yield* Effect.catchIf(
      markThread(folder, file, markOf(to, at)),
      ({ reason }) => reason._tag === "Corrupt",
      () => Effect.void
    )
  }
})

const markOf = (to: string | undefined, at: number): Mark =>
  to === undefined ? { _tag: "Reopened", by: makeId(), at } : { _tag: "Closed", by: makeId(), at, to }

const create = Effect.fnUntraced(function* (
  folder: Folder,
  change: Omit<Create, "_tag" | "by">
): Effect.fn.Return<boolean, Fault> {
  const before = yield* readMark(folder)
  if (before !== undefined) return yield* Effect.fail(movedTo(before))
  const file = yield* folder.fileOf(change.threadId)
  const isNew = yield* locked(
    folder,
    file
  )(
    Effect.flatMap(readLog(folder, file), (log) =>
      isOpen(log)
        ? Effect.succeed(false)
        : Effect.map(folder.write(log, { _tag: "Create", by: makeId(), ...change }), (outcome) => outcome === "Done")
    )
  )
  // A process that set the mark meanwhile may have listed the threads before this one existed.
  const to = isNew ? yield* readMark(folder) : undefined
  if (to !== undefined) {
    yield* markThread(folder, file, markOf(to, yield* Clock.currentTimeMillis))
    return yield* Effect.fail(movedTo(to))
  }
  if (isNew && folder.fsync) yield* syncFolder(folder.fs, folder.folder)
  return isNew
})

/** Writes a change that adds an entry. */
const append = (
  folder: Folder,
  log: OpenLog,
  change: Change,
  entryId: string,
  bytes?: number
): Effect.Effect<AppendOutcome, Fault> =>
  Effect.flatMap(unlessMoved(log, folder.write(log, change, bytes)), (outcome): Effect.Effect<AppendOutcome, Fault> => {
    // The file may have been replaced before the write.
    if (log.memory === undefined) return Effect.succeed(noThread)
    if (outcome === "Done") return Effect.succeed({ _tag: "Done", step: Memory.find(log.memory, entryId)?.step ?? 0 })
    return unlessMoved(log, Effect.succeed({ _tag: "Refused", thread: Memory.info(log.memory) }))
  })

/** Writes any other change. */
const change = (folder: Folder, threadId: string, record: Change): Effect.Effect<boolean, Fault> =>
  withThread(folder, threadId, false, (log) =>
    Effect.flatMap(unlessMoved(log, folder.write(log, record)), (outcome) =>
      outcome === "Done" ? Effect.succeed(true) : unlessMoved(log, Effect.succeed(false))
    )
  )

/** The operations that change threads. */
export const makeChanges = (
  folder: Folder
): Pick<Tables, "insert" | "fork" | "append" | "addLabel" | "move" | "update"> => ({
  insert: (thread, { past, ...content }) =>
    create(folder, { ...thread, ...content, ...(past === undefined ? {} : { past }) }),

  fork: (source, entryId, thread) =>
    Effect.gen(function* () {
      const origin = yield* withThread(folder, source, undefined, ({ create: { by }, memory }) =>
        Effect.succeed({ threadId: source, by, entryId, count: memory.list.length })
      )
      if (origin === undefined) return "Gone"
      const content = { archived: false, leaf: null, entries: [], origin }
      return (yield* create(folder, { ...thread, ...content })) ? "Done" : "Exists"
    }).pipe(folder.structure.withPermits(1)),

  append: (threadId, leaf, entries, at, behind, bytes) =>
    withThread(folder, threadId, noThread, (log) => {
      const refused = Memory.refusal(log.memory, leaf, entries)
      if (refused !== undefined) return Effect.succeed(refused)
      const elsewhere = behind === leaf ? {} : { behind }
      const record: Change = { _tag: "Append", by: makeId(), at, leaf, entries, ...elsewhere }
      return append(folder, log, record, entries.at(-1)?.id ?? "", bytes)
    }),

  addLabel: (threadId, id, label, at) =>
    withThread(folder, threadId, noThread, (log) =>
      append(folder, log, { _tag: "Hang", by: makeId(), at, id, label }, id)
    ),

  move: (threadId, from, to, at) => change(folder, threadId, { _tag: "Move", by: makeId(), at, from, to }),

  update: (threadId, changed, at) =>
    change(folder, threadId, {
      by: makeId(),
      at,
      ...("metadata" in changed ? { _tag: "Describe", ...changed } : { _tag: "Archive", ...changed })
    })
})
