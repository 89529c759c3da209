/** Records the changes of a turn: tools name their paths, and scans find the changes of commands. */
import * as fs from "node:fs"
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Semaphore from "effect/Semaphore"
import type { Fault } from "../tables.ts"
import { attempt, type Blob, canonicalOf, hashOf, readState, statOf, targetOf } from "./disk.ts"
import { type Change, type File, isSame, type State } from "./entry.ts"
import { readObjects } from "./git.ts"
import type { Rows, Turn } from "./rows.ts"
import { type Difference, isWithin, type Limits, scan, type Snapshot } from "./scan.ts"

/** A place to record: folders of the machine, with their stores. */
export interface Place {
  readonly rows: Rows
  readonly roots: ReadonlyArray<string>
  /** Folders whose files are never kept. */
  readonly omitted: ReadonlySet<string>
  readonly limits: Limits
  readonly snapshot: Snapshot
  /** One scan at a time. */
  readonly lock: Semaphore.Semaphore
  isLoaded: boolean
}

const keepIn =
  ({ rows }: Place) =>
  (blobs: ReadonlyArray<Blob>): Effect.Effect<void, Fault> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => rows.addBlobs(blobs, now))

/** The key of the folders in the store. */
const keyOf = ({ roots }: Place): string => roots.join("\n")

/** Loads the last scan of an earlier process. */
const loadKnown = Effect.fnUntraced(function* (place: Place): Effect.fn.Return<void, Fault> {
  if (place.isLoaded) return
  place.snapshot.entries = yield* place.rows.known(keyOf(place))
  place.isLoaded = true
  yield* place.rows.useRoot(keyOf(place), yield* Clock.currentTimeMillis)
})

/** The objects that are read from git at once. */
const objects = 500

/** Copies content that only git has, for changes. An object that git has lost leaves a file that can't be restored. */
const copyObjects = Effect.fnUntraced(function* (
  place: Place,
  differences: ReadonlyArray<Difference>
): Effect.fn.Return<ReadonlyArray<Difference>, Fault> {
  const isDue = (state: State): state is File => state?._tag === "File" && state.hash === undefined
  const due = differences.flatMap(({ after, before }) =>
    [before, after].flatMap((state) => (isDue(state) ? (state.oid ?? []) : []))
  )
  const hashes = new Map<string, string>()
  // Folders may have repositories of their own.
  for (const root of place.roots) {
    const missing = due.filter((oid) => !hashes.has(oid))
    for (const oids of Arr.chunksOf(missing, objects)) {
      const contents = yield* readObjects(root, oids)
      const blobs = [...contents].map(([oid, data]) => ({ oid, hash: hashOf(data), data }))
      yield* keepIn(place)(blobs)
      for (const { hash, oid } of blobs) hashes.set(oid, hash)
    }
  }
  const fill = (state: State): State => {
    const hash = isDue(state) && state.oid !== undefined ? hashes.get(state.oid) : undefined
    return isDue(state) && hash !== undefined ? { ...state, hash } : state
  }
  return differences.map(({ after, before, path }) => ({ path, before: fill(before), after: fill(after) }))
})

/** The last scan of a turn. A turn of another thread may have scanned the same folders since. */
interface Base {
  entries: Snapshot["entries"] | undefined
}

/** Scans the folders. Returns the changes since the base, or `undefined` if there are too many paths. */
const scanPlace = (place: Place, base: Base): Effect.Effect<ReadonlyArray<Difference> | undefined, Fault> =>
  place.lock.withPermits(1)(
    Effect.gen(function* () {
      yield* loadKnown(place)
      place.snapshot.entries = base.entries ?? place.snapshot.entries
      const differences = yield* scan(place.roots, place.omitted, place.snapshot, place.limits, keepIn(place))
      base.entries = place.snapshot.entries
      return differences
    })
  )

/** Stores the result of the last scan. */
const putKnown = (place: Place, differences: ReadonlyArray<Difference>): Effect.Effect<void, Fault> =>
  place.rows.putKnown(
    keyOf(place),
    differences.map(({ after, path }) => [path, after] as const)
  )

export interface Recorder {
  readonly turn: () => Turn
  /** Keeps paths before a tool changes them; `deep` includes all paths below. Returns all paths. */
  readonly touch: (paths: ReadonlyArray<string>, deep: boolean) => Effect.Effect<ReadonlyArray<string>, Fault>
  /** Records paths after a tool changed them. */
  readonly see: (paths: ReadonlyArray<string>, deep: boolean) => Effect.Effect<void, Fault>
  /** Starts the first scan, so that the first command need not wait. */
  readonly prepare: Effect.Effect<void>
  /** Waits until a command may run. */
  readonly beforeCommand: Effect.Effect<void, Fault>
  readonly afterCommand: Effect.Effect<void>
  /** Records changes that an earlier process left open. */
  readonly recover: Effect.Effect<void, Fault>
  /** Ends the turn. Returns the paths that it changed. */
  readonly end: (leaf: string | null) => Effect.Effect<ReadonlyArray<string>, Fault>
}

const toPrefix = (folder: string): string => (folder === "/" ? folder : `${folder}/`)

/** The path, and the folders above it that are missing. */
const withMissing = (path: string): ReadonlyArray<string> => {
  const all = [path]
  for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1)) {
    const folder = path.slice(0, end)
    if (statOf(folder) !== undefined) break
    all.push(folder)
  }
  return all
}

/** All paths below a folder, with the folder. */
const below = (path: string, most: number): ReadonlyArray<string> => {
  const all = [path]
  for (let at = 0; at < all.length && all.length < most; at++) {
    const folder = all[at] ?? ""
    if (statOf(folder)?.isDirectory() !== true) continue
    for (const name of attempt(() => fs.readdirSync(folder)) ?? []) all.push(`${folder}/${name}`)
  }
  return all
}

/** Makes the recorder of a turn. Its scans end with the scope. */
// oxlint-disable-next-line eslint/max-lines-per-function -- functions over the state of one turn
export const makeRecorder = Effect.fnUntraced(function* (place: Place, begun: Turn) {
  const { limits, rows } = place
  const scope = yield* Effect.scope
  let turn = begun
  const changes = new Map((yield* rows.changes(begun.number)).map((change) => [change.path, change]))
  let running: Fiber.Fiber<void, Fault> | undefined
  /** Commands have run since the last scan. */
  let isDue = false
  const base: Base = { entries: undefined }
  /** Paths that tools changed since the last scan, and those outside of the folders that they changed in the turn. */
  const byTools = new Set<string>()
  const isScanned = (path: string): boolean =>
    place.roots.some((root) => path === root || path.startsWith(toPrefix(root)))
  const lock = yield* Semaphore.make(1)

  const putChanges = (some: ReadonlyArray<Change>): Effect.Effect<void, Fault> =>
    Effect.suspend(() => {
      for (const change of some) changes.set(change.path, change)
      return rows.putChanges(turn.number, some)
    })

  const setTurn = (next: Partial<Turn>): Effect.Effect<void, Fault> =>
    Effect.suspend(() => {
      turn = { ...turn, ...next }
      return rows.setTurn(turn)
    })

  /** Reads the state of a path now, and keeps the content. */
  const keep = Effect.fnUntraced(function* (path: string): Effect.fn.Return<State, Fault> {
    const { blob, state } = yield* readState(path, limits.fileBytes)
    if (blob !== undefined) yield* keepIn(place)([blob])
    return state
  })

  /** A path of a tool: the paths that it stands for, without links. */
  const resolvePaths = (paths: ReadonlyArray<string>, deep: boolean): ReadonlyArray<string> => {
    const all = paths.flatMap((path) => {
      const own = canonicalOf(path)
      const target = deep ? undefined : targetOf(own)
      return target === undefined ? [own] : [own, target]
    })
    return [
      ...new Set(all.flatMap((path) => [...withMissing(path), ...(deep ? below(path, limits.paths) : [])]))
    ].filter((path) => !isWithin(path, place.omitted))
  }

  const touch = Effect.fnUntraced(function* (
    paths: ReadonlyArray<string>,
    deep: boolean
  ): Effect.fn.Return<ReadonlyArray<string>, Fault> {
    // Changes of earlier commands are recorded first.
    yield* settle
    const all = resolvePaths(paths, deep)
    for (const path of all) {
      if (changes.has(path)) continue
      const state = (yield* keep(path)) ?? null
      yield* putChanges([{ path, before: state, after: state, isSeen: false, isUnsure: false }])
    }
    return all
  })

  const seePath = Effect.fnUntraced(function* (path: string, isUnsure: boolean): Effect.fn.Return<void, Fault> {
    const after = (yield* keep(path)) ?? null
    const change = changes.get(path) ?? { path, before: null, after: null, isUnsure: false }
    const isOther = isUnsure && !isSame(change.after ?? undefined, after ?? undefined)
    yield* putChanges([{ ...change, after, isSeen: true, isUnsure: change.isUnsure || isOther }])
  })

  const see = Effect.fnUntraced(function* (paths: ReadonlyArray<string>, deep: boolean) {
    for (const path of new Set([...paths, ...(deep ? paths.flatMap((path) => below(path, limits.paths)) : [])])) {
      if (isWithin(path, place.omitted)) continue
      byTools.add(path)
      yield* seePath(path, false)
    }
  })

  /** Records the differences of a scan. */
  const note = Effect.fnUntraced(function* (
    differences: ReadonlyArray<Difference>,
    isUnsure: boolean
  ): Effect.fn.Return<void, Fault> {
    const whole = yield* copyObjects(place, differences)
    const newChanges = whole.flatMap(({ after, before, path }): ReadonlyArray<Change> => {
      const change = changes.get(path)
      const first = change === undefined ? (before ?? null) : change.before
      // Only the stat is new.
      if (isSame(before, after)) return []
      return [
        { path, before: first, after: after ?? null, isSeen: true, isUnsure: isUnsure || change?.isUnsure === true }
      ]
    })
    yield* rows.transaction(Effect.andThen(putChanges(newChanges), putKnown(place, differences)))
  })

  const leftOut = (): ReadonlyArray<string> => [
    ...(place.snapshot.isTooLarge ? [`what commands changed: there are more than ${limits.paths} paths`] : []),
    ...place.snapshot.leftOut
  ]

  /** The scan before the first command. It finds changes of others, which are not the turn's. */
  const scanFirst = Effect.gen(function* () {
    if (base.entries !== undefined) return
    const differences = yield* scanPlace(place, base)
    if (differences !== undefined) yield* putKnown(place, differences)
  })
  const first = lock.withPermits(1)(scanFirst)

  const next = lock.withPermits(1)(
    Effect.gen(function* () {
      if (!isDue) return
      isDue = false
      // Without a scan before the command, all files would look new.
      if (base.entries === undefined) return yield* scanFirst
      const paths = [...byTools]
      // Scans never see paths outside of the folders, so these are read after each command.
      for (const path of paths) if (isScanned(path)) byTools.delete(path)
      const differences = yield* scanPlace(place, base)
      if (differences !== undefined) yield* note(differences, false)
      // The scan before does not know what tools did since: a command may have removed it, or changed it back.
      for (const path of paths) yield* seePath(path, false)
    })
  )

  const start = (work: Effect.Effect<void, Fault>): Effect.Effect<void> =>
    Effect.map(Effect.forkIn(work, scope), (fiber) => {
      running = fiber
    })

  /** Waits for a scan that runs. */
  const settle: Effect.Effect<void, Fault> = Effect.suspend(() => {
    const fiber = running
    if (fiber === undefined) return Effect.void
    return Effect.flatMap(Fiber.await(fiber), (exit) => {
      if (running === fiber) running = undefined
      return exit
    })
  })

  return {
    turn: () => turn,
    touch,
    see,
    prepare: Effect.suspend(() => (base.entries !== undefined || running !== undefined ? Effect.void : start(first))),
    beforeCommand: Effect.gen(function* () {
      yield* settle
      yield* first
      if (!turn.isScanned) yield* setTurn({ isScanned: !place.snapshot.isTooLarge, notes: leftOut() })
    }),
    afterCommand: Effect.suspend(() => {
      isDue = true
      return start(next)
    }),
    recover: Effect.gen(function* () {
      for (const { isSeen, path } of changes.values()) if (!isSeen || turn.isScanned) yield* seePath(path, true)
      if (!turn.isScanned) return
      const differences = yield* scanPlace(place, base)
      if (differences !== undefined) yield* note(differences, true)
    }),
    end: Effect.fnUntraced(function* (leaf) {
      yield* settle
      yield* next
      for (const { isSeen, path } of changes.values()) if (!isSeen) yield* seePath(path, false)
      const same = [...changes.values()].filter(({ after, before }) => isSame(before ?? undefined, after ?? undefined))
      yield* rows.dropChanges(
        turn.number,
        same.map(({ path }) => path)
      )
      for (const { path } of same) changes.delete(path)
      yield* setTurn({ leafAfter: leaf, state: "done", notes: turn.isScanned ? leftOut() : turn.notes })
      return [...changes.keys()].toSorted()
    })
  } satisfies Recorder
})
