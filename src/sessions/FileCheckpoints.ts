/**
 * Keeps the files of each turn of a conversation, so that a turn can be taken back and made again: after a restart, too.
 *
 * Before a tool changes a path, its state is kept. Scans of the folders find the changes of commands: a scan compares
 * inode, size and times, and reads new content only. Content of clean tracked files is read from git once they change. A
 * restore that was cut off can be repeated. It never overwrites later changes of other people unless you say so.
 *
 * Files, links, folders and their modes are kept, in an SQLite file by SHA-256. `.git` is left out, and so are ignored
 * folders with more than 5,000 paths.
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { SessionStore } from "effect-deepagents/sessions"
 * import * as FileCheckpoints from "effect-deepagents/sessions/FileCheckpoints"
 *
 * const agent = Agent.make({ name: "coder", prompt: "You code." })
 *
 * const turn = Agent.run(agent, "Rename the module", { threadId: "ada" }).pipe(
 *   FileCheckpoints.record({ threadId: "ada", title: "rename" })
 * )
 *
 * const undo = Effect.gen(function* () {
 *   const checkpoints = yield* FileCheckpoints.FileCheckpoints
 *   const last = (yield* checkpoints.turns("ada")).at(-1)
 *   if (last === undefined) return
 *   return yield* checkpoints.restore({ threadId: "ada", turns: [last], to: "before", leaf: last.leaf })
 * })
 *
 * const layer = FileCheckpoints.layer({ folders: ["/home/ada/project"], file: "checkpoints.db" })
 * ```
 */
import { realpathSync } from "node:fs"
import { resolve } from "node:path"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { Backend } from "../core/Backend.ts"
import { isSandbox, Sandbox } from "../core/Sandbox.ts"
import { make as failure, type SessionError } from "../core/SessionError.ts"
import { SessionStore } from "../core/SessionStore.ts"
import { makeEffectCheck, makeLayerCheck } from "../support/options/check.ts"
import { attempt } from "./internal/checkpoints/disk.ts"
import type { Aim } from "./internal/checkpoints/entry.ts"
import { makeRecorder, type Place } from "./internal/checkpoints/recorder.ts"
import { closedFolders, type FailedPath, removeTemporaries, restorePaths } from "./internal/checkpoints/restore.ts"
import { type Act, openRows, type Turn } from "./internal/checkpoints/rows.ts"
import { emptySnapshot } from "./internal/checkpoints/scan.ts"
import { isHalfWay, keepOverwritten, planSteps, type Step } from "./internal/checkpoints/steps.ts"
import { type Locate, watch } from "./internal/checkpoints/watch.ts"
import { guarded } from "./internal/operation.ts"
import * as shapes from "./internal/shapes.ts"
import { toFault } from "./internal/sql/client.ts"
import type { Fault } from "./internal/tables.ts"
import * as SqliteClient from "./SqliteClient.ts"

export type { Step, Turn }

/** Options of the checkpoints. */
export interface Options {
  /** Folders of this machine that the agent may change. Their files are kept. */
  readonly folders: ReadonlyArray<string>
  /** The SQLite file. Its folder must exist. Default: memory. */
  readonly file?: string | undefined
  /** Finds the path of this machine for a path of the agent; `undefined` leaves a path out. Default: the same path. */
  readonly locate?: Locate | undefined
  /** Folders whose files are never kept, such as the data of the program itself. Default: none. */
  readonly omit?: ReadonlyArray<string> | undefined
  /** The largest file that is copied, in bytes. Default: 50,000,000. */
  readonly maxFileBytes?: number | undefined
  /** The most bytes that a scan copies. Default: 1,000,000,000. */
  readonly maxScanBytes?: number | undefined
  /** The most paths of the folders for which the changes of commands are kept. Default: 100,000. */
  readonly maxPaths?: number | undefined
}

/** A turn to record. */
export interface RecordOptions {
  /** The thread that the turn belongs to. */
  readonly threadId: string
  /** Names the turn for people. Default: nothing. */
  readonly title?: string | undefined
  /** Goes on with a turn that a crash cut off. Default: `false`, which ends such a turn. */
  readonly goesOn?: boolean | undefined
  /** Learns why the turn is not recorded. Default: it is logged. */
  readonly onProblem?: ((message: string) => void) | undefined
}

/**
 * A restore.
 *
 * - `turns`: the turns to undo or to redo, oldest first
 * - `to`: the state `before` these turns, or `after` them
 * - `leaf`: the end of the thread afterwards. The thread moves there once all files are restored
 * - `over`: paths with conflicts to write over
 * - `skip`: paths to leave as they are
 */
interface RestoreOptions {
  /** The thread whose end moves with the files. */
  readonly threadId: string
  /** The turns whose changes are restored, of `turns`. */
  readonly turns: ReadonlyArray<Turn>
  /** The state to restore: `before` the turns, or `after` them. */
  readonly to: "after" | "before"
  /** The new end of the thread. */
  readonly leaf: string | null
  /** Paths that are overwritten though somebody else changed them. Default: none. */
  readonly over?: ReadonlySet<string> | undefined
  /** Paths that stay as they are. Default: none. */
  readonly skip?: ReadonlySet<string> | undefined
}

/**
 * - `Restored`: `paths` are as they were, and the thread has its new end
 * - `Refused`: nothing was done, since `steps` need `over` or `skip`
 * - `Failed`: `paths` could not be restored, and the thread stays as it is. The restore may be tried again
 */
export type Outcome =
  | { readonly _tag: "Restored"; readonly paths: ReadonlyArray<string> }
  | { readonly _tag: "Refused"; readonly steps: ReadonlyArray<Step> }
  | { readonly _tag: "Failed"; readonly paths: ReadonlyArray<FailedPath> }

/** A repeated restore, which a crash had cut off. `kept` are paths that somebody changed since. */
interface CompletedRestore {
  readonly threadId: string
  readonly restored: number
  readonly kept: ReadonlyArray<string>
  readonly failed: ReadonlyArray<FailedPath>
}

/** A turn that is being recorded. `watch` wraps the agent's files and commands; `end` returns the changed paths. */
export interface Recording {
  readonly watch: <S extends Backend["Service"]>(backend: S) => S
  /** Scans the folders now, so that the first command need not wait. */
  readonly prepare: Effect.Effect<void>
  readonly end: (leaf: string | null) => Effect.Effect<ReadonlyArray<string>, SessionError>
}

/**
 * The operations.
 *
 * - `begin`: begins to record a turn; `leaf` is the end of the thread before it. A turn that a crash cut off is ended,
 *   or with `goesOn` goes on
 * - `settle`: ends a turn that a crash cut off
 * - `turns`: the turns of a thread, oldest first
 * - `plan`: plans a restore
 * - `content`: the content of a file's hash
 * - `restore`: restores files, then the end of the thread
 * - `complete`: repeats restores that a crash cut off
 * - `copy`: copies the turns of a thread to its fork
 * - `remove`: forgets the turns of a thread
 */
export interface Service {
  readonly folders: ReadonlyArray<string>
  readonly begin: (
    options: RecordOptions & {
      /** The end of the thread before the turn. */
      readonly leaf: string | null
    }
  ) => Effect.Effect<Recording, SessionError, Scope.Scope>
  readonly settle: (threadId: string, leaf: string | null) => Effect.Effect<void, SessionError>
  readonly turns: (threadId: string) => Effect.Effect<ReadonlyArray<Turn>, SessionError>
  readonly plan: (
    turns: ReadonlyArray<Turn>,
    to: "after" | "before"
  ) => Effect.Effect<ReadonlyArray<Step>, SessionError>
  readonly content: (hash: string) => Effect.Effect<Uint8Array | undefined, SessionError>
  readonly restore: (options: RestoreOptions) => Effect.Effect<Outcome, SessionError, SessionStore>
  readonly complete: Effect.Effect<ReadonlyArray<CompletedRestore>, SessionError, SessionStore>
  readonly copy: (from: string, to: string) => Effect.Effect<void, SessionError>
  readonly remove: (threadId: string) => Effect.Effect<void, SessionError>
}

/** The checkpoints of files. */
export class FileCheckpoints extends Context.Service<FileCheckpoints, Service>()("effect-deepagents/FileCheckpoints") {}

const realOf = (folder: string): string => attempt(() => realpathSync.native(folder)) ?? resolve(folder)

/** Resolves links, and drops folders inside of other folders. */
const rootsOf = (folders: ReadonlyArray<string>): ReadonlyArray<string> => {
  const real = folders.map(realOf)
  return [...new Set(real)].filter(
    (folder) => !real.some((other) => other !== folder && folder.startsWith(other === "/" ? "/" : `${other}/`))
  )
}

const isAlive = (pid: number): boolean => attempt(() => process.kill(pid, 0)) === true

const make = (place: Place, options: Options): Service => {
  const { limits, rows } = place
  const locate: Locate = options.locate ?? ((path) => path)

  const open = Effect.fnUntraced(function* (threadId: string) {
    return (yield* rows.turns(threadId)).findLast(({ state }) => state === "open")
  })

  const settle = Effect.fnUntraced(function* (threadId: string, leaf: string | null) {
    const turn = yield* open(threadId)
    if (turn === undefined) return
    const recorder = yield* makeRecorder(place, turn)
    yield* recorder.recover
    yield* recorder.end(leaf)
  }, Effect.scoped)

  /** The restores of this process. */
  const performing = new Set<number>()

  /**
   * Restores files of an act, then the thread. An act is left open by a crash alone: left open by an interruption or a
   * failure, it would be done when the conversation has gone on.
   */
  const perform = Effect.fnUntraced(
    function* (
      id: number,
      threadId: string,
      act: Act
    ): Effect.fn.Return<ReadonlyArray<FailedPath>, Fault | SessionError, SessionStore> {
      performing.add(id)
      const failed = yield* restorePaths(act.aims, act.modes, limits.fileBytes, rows.blob)
      if (failed.length > 0) {
        yield* rows.endAct(id)
        return failed
      }
      const store = yield* SessionStore
      yield* store.rewind(threadId, act.leaf)
      yield* rows.transaction(Effect.andThen(rows.setStates(act.turns, act.state), rows.endAct(id)))
      return []
    },
    (work, id) => Effect.uninterruptible(Effect.tapError(work, () => rows.endAct(id)))
  )

  const restore = Effect.fnUntraced(function* ({
    leaf,
    over = new Set(),
    skip = new Set(),
    threadId,
    to,
    turns
  }: RestoreOptions): Effect.fn.Return<Outcome, Fault | SessionError, SessionStore> {
    const steps = yield* planSteps(rows, turns, to, limits.fileBytes)
    const isOpen = ({ path, status }: Step): boolean =>
      (status === "conflict" && !over.has(path) && !skip.has(path)) || (status === "lost" && !skip.has(path))
    const refused = steps.filter(isOpen)
    if (refused.length > 0) return { _tag: "Refused", steps: refused }
    const due = steps.filter(({ path, status }) => status !== "done" && !skip.has(path))
    const conflicts = new Set(due.filter(({ status }) => status === "conflict").map(({ path }) => path))
    const now = yield* Clock.currentTimeMillis
    yield* keepOverwritten(rows, turns, to, conflicts, { fileBytes: limits.fileBytes, now })
    const aims = due.map(({ aim, now: from, path }): Aim => ({ path, from: from ?? null, to: aim ?? null }))
    const act = {
      aims,
      modes: closedFolders(aims),
      turns: turns.map(({ number }) => number),
      state: to === "before" ? ("undone" as const) : ("done" as const),
      leaf,
      pid: process.pid
    }
    const failed = yield* Effect.uninterruptible(
      Effect.flatMap(rows.addAct(threadId, act), (id) => perform(id, threadId, act))
    )
    return failed.length > 0
      ? { _tag: "Failed", paths: failed }
      : { _tag: "Restored", paths: due.map(({ path }) => path) }
  })

  /** A cut off restore does not write over what somebody changed since. */
  const complete = Effect.gen(function* () {
    const results: Array<CompletedRestore> = []
    for (const { act, id, threadId } of yield* rows.openActs) {
      if (act.pid !== process.pid ? isAlive(act.pid) : performing.has(id)) continue
      const ownAims = new Set(yield* Effect.filter(act.aims, (aim) => isHalfWay(aim, limits.fileBytes)))
      const failed = yield* perform(id, threadId, { ...act, aims: [...ownAims] })
      const otherPaths = act.aims.filter((aim) => !ownAims.has(aim)).map(({ path }) => path)
      removeTemporaries(otherPaths)
      results.push({ threadId, restored: ownAims.size, kept: otherPaths, failed })
    }
    return results
  })

  const within =
    (operation: string, threadId: string) =>
    <A, R>(work: Effect.Effect<A, Fault | SessionError, R>): Effect.Effect<A, SessionError, R> =>
      Effect.mapError(work, (error) =>
        "_tag" in error ? error : failure(operation, threadId, error.reason, error.cause)
      )

  return {
    folders: place.roots,
    begin: ({ goesOn = false, leaf, onProblem, threadId, title = "" }) =>
      guarded(
        "record",
        threadId
      )(
        Effect.gen(function* () {
          if (!goesOn) yield* settle(threadId, leaf)
          const openTurn = yield* open(threadId)
          const at = yield* Clock.currentTimeMillis
          const recorder = yield* makeRecorder(place, openTurn ?? (yield* rows.addTurn({ threadId, leaf, title, at })))
          if (openTurn !== undefined) yield* recorder.recover
          let hasFailed = false
          const onFault = ({ cause, reason }: Fault): void => {
            if (!hasFailed) onProblem?.(failure("record", threadId, reason, cause).message)
            hasFailed = true
          }
          return {
            watch: watch(recorder, locate, onFault),
            prepare: recorder.prepare,
            end: (after: string | null) => guarded("record", threadId)(recorder.end(after))
          }
        })
      ),
    settle: (threadId, leaf) => guarded("record", threadId)(settle(threadId, leaf)),
    turns: (threadId) => guarded("turns", threadId)(rows.turns(threadId)),
    plan: (turns, to) => guarded("plan", turns[0]?.threadId ?? "")(planSteps(rows, turns, to, limits.fileBytes)),
    content: (hash) => guarded("content", "")(rows.blob(hash)),
    restore: (request) => within("restore", request.threadId)(restore(request)),
    complete: within("restore", "")(complete),
    copy: (from, to) => guarded("copy", from)(rows.copy(from, to)),
    remove: (threadId) => guarded("remove", threadId)(rows.remove(threadId))
  }
}

const refuseLayer = makeLayerCheck("FileCheckpoints.layer", shapes.fileCheckpointsLayer)

/** Keeps checkpoints of folders in an SQLite file. Fails with `Unavailable` or `Corrupt` if it can't open the file. */
export const layer = (options: Options): Layer.Layer<FileCheckpoints, SessionError> => {
  const { file = ":memory:", maxFileBytes = 50_000_000, maxPaths = 100_000, maxScanBytes = 1_000_000_000 } = options
  return (
    refuseLayer(options) ??
    Layer.effect(
      FileCheckpoints,
      guarded(
        "open",
        ""
      )(
        Effect.gen(function* () {
          const sql = yield* SqliteClient.SqliteClient
          const rows = yield* openRows(sql)
          const place: Place = {
            rows,
            roots: rootsOf(options.folders),
            omitted: new Set(options.omit?.map(realOf)),
            limits: { fileBytes: maxFileBytes, scanBytes: maxScanBytes, paths: maxPaths, ignored: 5_000 },
            snapshot: emptySnapshot(),
            lock: Semaphore.makeUnsafe(1),
            isLoaded: false
          }
          yield* rows.prune(yield* Clock.currentTimeMillis)
          return make(place, options)
        })
      )
    ).pipe(
      Layer.provide(
        Layer.catch(SqliteClient.layer({ file }), (error) => {
          const { cause, reason } = toFault(error)
          return Layer.effectContext(Effect.fail(failure("open", "", reason, cause)))
        })
      )
    )
  )
}

const leafOf = (store: SessionStore["Service"], threadId: string): Effect.Effect<string | null> =>
  Effect.match(store.info(threadId), { onFailure: () => null, onSuccess: ({ leaf }) => leaf.id })

const refuseRecord = makeEffectCheck("FileCheckpoints.record", shapes.fileCheckpointsRecord)

/**
 * Records the changes of a run as one turn of its thread. The run gets watched files and commands. A turn that can't be
 * recorded runs all the same, and `onProblem` says why.
 */
export const record =
  (options: RecordOptions) =>
  <A, E, R>(run: Effect.Effect<A, E, R>): Effect.Effect<A, E, R | Backend | FileCheckpoints | SessionStore> =>
    Effect.scoped(
      Effect.gen(function* () {
        yield* refuseRecord(options) ?? Effect.void
        const { threadId } = options
        const tell = options.onProblem ?? ((message) => Effect.runFork(Effect.logWarning(message)))
        const checkpoints = yield* FileCheckpoints
        const store = yield* SessionStore
        const backend = yield* Backend
        const begun = yield* Effect.result(
          checkpoints.begin({ ...options, onProblem: tell, leaf: yield* leafOf(store, threadId) })
        )
        if (begun._tag === "Failure") {
          tell(begun.failure.message)
          return yield* run
        }
        const recording = begun.success
        const sandbox = yield* Effect.serviceOption(Sandbox)
        const files = recording.watch(backend)
        const commands = Option.map(sandbox, (service) =>
          service === backend && isSandbox(files) ? files : recording.watch(service)
        )
        if (Option.isSome(commands)) yield* recording.prepare
        const watched = Effect.provideService(run, Backend, files)
        return yield* Effect.ensuring(
          Option.isNone(commands) ? watched : Effect.provideService(watched, Sandbox, commands.value),
          Effect.flatMap(leafOf(store, threadId), (leaf) =>
            Effect.catch(recording.end(leaf), ({ message }) => Effect.sync(() => tell(message)))
          )
        )
      })
    )
