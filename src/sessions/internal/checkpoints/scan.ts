/**
 * Finds the changes of commands: a scan compares the stats of all files with the last scan. It reads the content of files
 * with new stats only. The scan works in slices, so that a screen beside it stays quick.
 */
import * as fs from "node:fs"
import * as Effect from "effect/Effect"
import * as SqliteFiles from "../../../support/store/sqliteFiles.ts"
import { attempt, type Blob, entryOf, fileOf, modeOf, readFile, stampOf, statOf } from "./disk.ts"
import { type Entry, type File, isSame, type State } from "./entry.ts"
import { ignoredFolders, objectSizes } from "./git.ts"
import { cleanObject, type Index, indexOf } from "./gitIndex.ts"

/** The limits of scans. */
export interface Limits {
  /** The largest file whose content is copied, in bytes. */
  readonly fileBytes: number
  /** The most bytes that one scan copies. */
  readonly scanBytes: number
  /** The most paths that are scanned. Above it, changes of commands are not known. */
  readonly paths: number
  /** An ignored folder with more paths is left out. */
  readonly ignored: number
}

/** The result of the last scan. Scans change it. */
export interface Snapshot {
  entries: Map<string, Entry>
  /** Folders that are left out. */
  readonly leftOut: Set<string>
  /** Large folders that are scanned. */
  readonly scanned: Set<string>
  readonly indexes: Map<string, Index | undefined>
  isTooLarge: boolean
}

export const emptySnapshot = (): Snapshot => ({
  entries: new Map(),
  leftOut: new Set(),
  scanned: new Set(),
  indexes: new Map(),
  isTooLarge: false
})

export interface Difference {
  readonly path: string
  readonly before: State
  readonly after: State
}

/** The time that a scan works at once, in milliseconds. */
const slice = 4

/** Calls `body` for each item, and lets others work now and then. */
const inSlices = Effect.fnUntraced(function* <A>(items: Iterable<A>, body: (item: A) => void) {
  let since = performance.now()
  let count = 0
  for (const item of items) {
    body(item)
    if ((++count & 31) !== 0 || performance.now() - since < slice) continue
    yield* Effect.yieldNow
    since = performance.now()
  }
})

/** Folders of other people's files, for folders without a repository. */
const heaps = new Set(["node_modules", ".venv", "venv", "target", "vendor", "site-packages", ".cache"])

interface Folder {
  readonly path: string
  readonly above: Folder | undefined
  count: number
}

interface FolderList {
  readonly paths: Array<string>
  readonly folders: Array<Folder>
  readonly unread: Set<string>
}

/** Lists all paths below a folder. `undefined` if there are far too many. */
const list = Effect.fnUntraced(function* (
  root: string,
  { leftOut, omitted }: { readonly leftOut: ReadonlySet<string>; readonly omitted: ReadonlySet<string> },
  most: number
) {
  const listed: FolderList = { paths: [], folders: [], unread: new Set() }
  const due: Array<Folder> = [{ path: root, above: undefined, count: 0 }]
  const walk = function* () {
    for (let next = due.pop(); next !== undefined && listed.paths.length <= most; next = due.pop()) yield next
  }
  yield* inSlices(walk(), (folder) => {
    listed.folders.push(folder)
    const children = attempt(() => fs.readdirSync(folder.path, { withFileTypes: true }))
    if (children === undefined) {
      listed.unread.add(folder.path)
      return
    }
    const within = folder.path === "/" ? "/" : `${folder.path}/`
    for (const one of children) {
      if (one.name === ".git") continue
      const path = within + one.name
      if (omitted.has(path)) continue
      listed.paths.push(path)
      if (one.isDirectory() && !leftOut.has(path)) due.push({ path, above: folder, count: 0 })
    }
    folder.count += children.length
  })
  for (const folder of listed.folders.toReversed()) if (folder.above !== undefined) folder.above.count += folder.count
  return listed.paths.length > most ? undefined : listed
})

/** True if a path is one of the folders, or below one of them. */
export const isWithin = (path: string, folders: ReadonlySet<string>): boolean =>
  folders.has(path) || isBelow(path, folders)

const isBelow = (path: string, folders: ReadonlySet<string>): boolean => {
  for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1)) {
    if (folders.has(path.slice(0, end))) return true
  }
  return false
}

/** Finds large folders that are ignored. Returns true if it found one. */
const leaveOut = Effect.fnUntraced(function* (root: string, listed: FolderList, snapshot: Snapshot, limits: Limits) {
  const large = listed.folders.filter(
    ({ above, count, path }) => above !== undefined && count > limits.ignored && !snapshot.scanned.has(path)
  )
  if (large.length === 0) return false
  const paths = large.map(({ path }) => path)
  const ignored = yield* ignoredFolders(root, paths)
  for (const path of paths) {
    const isOut = ignored === undefined ? heaps.has(path.slice(path.lastIndexOf("/") + 1)) : ignored.has(path)
    if (isOut) snapshot.leftOut.add(path)
    else snapshot.scanned.add(path)
  }
  return true
})

/** The time in which a clock may stand still, in milliseconds: a file may change again by the same stat. */
const grain = 25

/** Scans a folder. Returns the entries, with those files whose content is to be read. */
const look = Effect.fnUntraced(function* (
  root: string,
  omitted: ReadonlySet<string>,
  snapshot: Snapshot,
  limits: Limits
) {
  const most = 2 * limits.paths
  const without = { leftOut: snapshot.leftOut, omitted }
  let listed = yield* list(root, without, most)
  if (listed !== undefined && (yield* leaveOut(root, listed, snapshot, limits))) {
    listed = yield* list(root, without, most)
  }
  if (listed === undefined || listed.paths.length > limits.paths) return undefined
  const index = indexOf(root, snapshot.indexes.get(root))
  snapshot.indexes.set(root, index)
  const entries = new Map<string, Entry>()
  const fresh: Array<{ readonly path: string; readonly file: File; readonly oid: string | undefined }> = []
  yield* inSlices(listed.paths, (path) => {
    const stat = statOf(path)
    if (stat === undefined) {
      // A name that is no UTF-8 can't be written down, so its file can't be found again.
      if (path.includes("\uFFFD")) snapshot.leftOut.add(path)
      return
    }
    const before = snapshot.entries.get(path)
    if (stat.isFile() && SqliteFiles.isOpen(stat)) {
      // A database of this program is no work of the turn.
      if (before !== undefined) entries.set(path, before)
      return
    }
    if (!stat.isFile()) {
      const entry = entryOf(path, stat)
      if (entry !== undefined) entries.set(path, before !== undefined && isSame(before, entry) ? before : entry)
    } else if (before?._tag === "File" && before.stamp === stampOf(stat)) {
      const mode = modeOf(stat)
      entries.set(path, before.mode === mode ? before : { ...before, mode })
    } else fresh.push({ path, file: fileOf(stat), oid: cleanObject(index, path, stat) })
  })
  return { entries, fresh, unread: listed.unread }
})

/** The bytes that are given to the store at once. */
const batchBytes = 4_000_000

/** Reads the content of new files: an object of git is enough, other content is kept. */
const readFresh = <E>(
  root: string,
  listing: NonNullable<Effect.Success<ReturnType<typeof look>>>,
  limits: Limits,
  keep: (blobs: ReadonlyArray<Blob>) => Effect.Effect<void, E>
): Effect.Effect<void, E> =>
  Effect.gen(function* () {
    const { entries, fresh } = listing
    const sizes = yield* objectSizes(
      root,
      fresh.flatMap(({ oid }) => oid ?? [])
    )
    let room = limits.scanBytes
    let batch: Array<Blob> = []
    let bytes = 0
    let since = performance.now()
    for (const { file, oid, path } of fresh) {
      // A filter of git may have changed the content on its way.
      if (oid !== undefined && sizes.get(oid) === file.size) {
        entries.set(path, { ...file, oid })
        continue
      }
      const content = file.size > Math.min(limits.fileBytes, room) ? undefined : yield* readFile(path, file)
      if (content === undefined) {
        entries.set(path, file)
        continue
      }
      const { stamp = "" } = content.file
      const isSettled = Number(stamp.slice(stamp.lastIndexOf(":") + 1)) < Date.now() - grain
      entries.set(path, isSettled ? content.file : { ...content.file, stamp: `${stamp}?` })
      room -= file.size
      bytes += file.size
      batch.push(content.blob)
      if (bytes > batchBytes || batch.length >= 500) {
        yield* keep(batch)
        batch = []
        bytes = 0
      }
      if (performance.now() - since < slice) continue
      yield* Effect.yieldNow
      since = performance.now()
    }
    if (batch.length > 0) yield* keep(batch)
  })

/**
 * Scans folders, and returns the differences since the last scan. `undefined` if the folders have too many paths. `keep`
 * stores content.
 */
export const scan = <E>(
  roots: ReadonlyArray<string>,
  omitted: ReadonlySet<string>,
  snapshot: Snapshot,
  limits: Limits,
  keep: (blobs: ReadonlyArray<Blob>) => Effect.Effect<void, E>
): Effect.Effect<ReadonlyArray<Difference> | undefined, E> =>
  Effect.gen(function* () {
    if (snapshot.isTooLarge) return undefined
    const entries = new Map<string, Entry>()
    const unread = new Set(snapshot.leftOut)
    for (const root of roots) {
      if (isWithin(root, omitted)) continue
      const listing = yield* look(root, omitted, snapshot, limits)
      if (listing === undefined || entries.size + listing.entries.size > limits.paths) {
        snapshot.isTooLarge = true
        return undefined
      }
      yield* readFresh(root, listing, limits, keep)
      for (const [path, entry] of listing.entries) entries.set(path, entry)
      for (const path of listing.unread) unread.add(path)
    }
    const differences: Array<Difference> = []
    yield* inSlices(snapshot.entries, ([path, before]) => {
      const after = entries.get(path)
      if (after === before) return
      if (after !== undefined || (!isBelow(path, unread) && !isBelow(path, snapshot.leftOut))) {
        differences.push({ path, before, after })
      } else if (!isBelow(path, snapshot.leftOut)) entries.set(path, before)
    })
    for (const [path, after] of entries) {
      if (!snapshot.entries.has(path)) differences.push({ path, before: undefined, after })
    }
    snapshot.entries = entries
    return differences
  })
