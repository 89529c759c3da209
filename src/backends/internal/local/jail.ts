/**
 * The root of all paths. No path leads out of it, even through links that change meanwhile.
 *
 * Links are resolved by hand, name by name, and refused before anything outside is touched. The resulting folder is
 * then held open. On Linux, operations go through its descriptor (`/proc/self/fd/7/name`) after the kernel confirmed
 * its location, so a folder swapped for a link is harmless. Systems without `/proc` compare the folder's real path
 * before and after.
 */
import * as NodeFs from "node:fs"
import * as NodePath from "node:path"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { type Fault, fault, openDatabase, outside, special } from "./failure.ts"
import * as System from "./system.ts"

/** The folders of a root that may be entered. The answers may change while the jail is used. */
export interface Bounds {
  /** Tells whether a real path is in one of the folders. */
  readonly has: (real: string) => boolean
  /** Tells whether a path leads down to one of the folders, by its real path or by another name. */
  readonly leads: (path: string) => boolean
  /** Finds the folder of a real path. */
  readonly folderOf: (real: string) => string | undefined
}

/**
 * `root` is a real path without a trailing `/`. `alias` is the root as configured; absolute links may use it too.
 * `byDescriptor` tells whether `/proc/self/fd` exists. Without `bounds`, all of the root may be entered.
 */
export interface Jail {
  readonly root: string
  readonly alias: string
  readonly byDescriptor: boolean
  readonly bounds?: Bounds | undefined
}

/** A resolved path: names of real folders below the root and the entry there, or the names that are missing. */
export interface Place {
  readonly names: ReadonlyArray<string>
  readonly stats: System.Stats | undefined
  readonly missing: ReadonlyArray<string>
}

/**
 * An open folder. `at` gives the path of a name in it, `self` its own. `verify` fails if a name no longer refers to
 * the opened entry.
 */
export interface OpenFolder {
  readonly self: System.RealPath
  readonly at: (name: System.RealPath) => System.RealPath
  readonly verify: (name: string, opened: System.Stats) => Effect.Effect<void, Fault>
}

/** The path of a name in a folder. */
const join = (folder: System.RealPath, name: System.RealPath): System.RealPath =>
  typeof folder === "string" && typeof name === "string"
    ? `${folder === "/" ? "" : folder}/${name}`
    : Buffer.concat([Buffer.from(folder), Buffer.from("/"), Buffer.from(name)])

const maxLinks = 40

const unsayable = fault({ _tag: "InvalidPath", problem: "a name in it is none that a file can have" })

// Node does not name it: opens a folder without reading it, for which the right to pass through is enough.
const pathOnly = 0o10000000

/** The flags by which a folder is opened to be held. */
export const folderOnly = pathOnly | NodeFs.constants.O_DIRECTORY | NodeFs.constants.O_NOFOLLOW

const splitNames = (path: string): ReadonlyArray<string> =>
  path.split("/").filter((name) => name !== "" && name !== ".")

/** Tells whether a real path is in the root, and in one of its folders. */
export const isInside = (jail: Jail, real: string): boolean =>
  (real === jail.root || real.startsWith(`${jail.root}/`)) && jail.bounds?.has(real) !== false

/** Tells whether it may be looked whether a path is a link. */
const mayLook = (jail: Jail, path: string): boolean =>
  jail.bounds === undefined || jail.bounds.has(path) || jail.bounds.leads(path)

/** The real path of names below the root. */
export const realPath = (jail: Jail, names: ReadonlyArray<string>): string =>
  names.length === 0 ? jail.root || "/" : `${jail.root}/${names.join("/")}`

/** Tells whether the system names open files by their descriptors. */
const hasDescriptors = Effect.isSuccess(System.stat("/proc/self/fd"))

/** Opens the whole machine, of which only some folders may be entered. */
export const makeWithin = (bounds: Bounds): Effect.Effect<Jail> =>
  Effect.map(hasDescriptors, (byDescriptor) => ({ root: "", alias: "", byDescriptor, bounds }))

/** Opens a root. Fails if it is not a folder. */
export const make = Effect.fnUntraced(function* (folder: string): Effect.fn.Return<Jail, Fault> {
  const alias = NodePath.resolve(folder)
  const root = yield* System.realpath(alias)
  const stats = yield* System.stat(root)
  if (!stats.isDirectory()) return yield* Effect.fail(fault({ _tag: "NotDirectory" }))
  const byDescriptor = yield* hasDescriptors
  const bare = (path: string) => (path === "/" ? "" : path)
  return { root: bare(root), alias: bare(alias), byDescriptor }
})

/** Holds a folder by its descriptor while `use` runs, with synchronous calls. `undefined`: the folder is gone. */
export const holdNow = <A>(real: string, use: (self: string) => A): A | undefined => {
  const opened = System.attempt(() => NodeFs.openSync(real, folderOnly))
  if (Result.isFailure(opened)) return undefined
  const self = `/proc/self/fd/${opened.success}`
  const used = System.attempt(() => (NodeFs.readlinkSync(self) === real ? use(self) : undefined))
  System.attempt(() => NodeFs.closeSync(opened.success))
  return Result.getOrUndefined(used)
}

/** Deeper paths than this are first taken to have no links on the way: to look at each name of them takes long. */
const deep = 16

/** Looks up a path without links in a folder. */
const locatePlain = (jail: Jail, path: ReadonlyArray<string>): Place | undefined => {
  if (!jail.byDescriptor || path.length <= deep || path.includes("..")) return undefined
  const folder = realPath(jail, path.slice(0, -1))
  if (!isInside(jail, folder)) return undefined
  const stats = holdNow(folder, (self) => System.lstatNow(`${self}/${path.at(-1) ?? ""}`))
  return stats === undefined || stats.isSymbolicLink() ? undefined : { names: path, stats, missing: [] }
}

/**
 * Resolves a path. With `follow`, a link at its end is followed too. Fails with `OutsideRoot` for a path out of the
 * root and for a loop.
 */
// oxlint-disable-next-line eslint/complexity -- one branch for each kind of step
export const locate = Effect.fnUntraced(function* (
  jail: Jail,
  path: ReadonlyArray<string>,
  follow: boolean
): Effect.fn.Return<Place, Fault> {
  // A pattern may contain names that no path can have.
  if (path.some((name) => name.includes("\0") || !name.isWellFormed())) return yield* Effect.fail(unsayable)
  const plain = locatePlain(jail, path)
  if (plain !== undefined) return plain
  const base = splitNames(jail.root)
  const pending = path.toReversed()
  let last: System.Stats | undefined
  let current = [...base]
  let links = 0
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    if (name === "..") {
      current.pop()
      continue
    }
    if (current.length < base.length) {
      // Above the root there is one way only, back down to it; nothing is looked at on the way.
      if (name !== base[current.length]) return yield* Effect.fail(outside)
      current.push(name)
      continue
    }
    const names = current.slice(base.length)
    const real = realPath(jail, [...names, name])
    if (!mayLook(jail, real)) return yield* Effect.fail(outside)
    const stats = yield* Effect.catchIf(
      System.lstat(real),
      (failed) => failed.reason._tag === "NotFound",
      () => Effect.undefined
    )
    if (stats === undefined) {
      // A folder that may be entered, or the way to it, is gone.
      if (!isInside(jail, realPath(jail, names))) return yield* Effect.fail(fault({ _tag: "NotFound" }))
      const missing = [name, ...pending.toReversed()]
      if (missing.includes("..")) return yield* Effect.fail(fault({ _tag: "NotFound" }))
      return { names, stats: undefined, missing }
    }
    if (!stats.isSymbolicLink() || (pending.length === 0 && !follow)) {
      current.push(name)
      last = links === 0 ? stats : undefined
      continue
    }
    last = undefined
    links++
    if (links > maxLinks) return yield* Effect.fail(outside)
    const target = yield* System.readlink(real)
    if (target.startsWith("/")) {
      const aliased = target === jail.alias || target.startsWith(`${jail.alias}/`)
      current = aliased ? [...base] : []
      pending.push(...splitNames(aliased ? target.slice(jail.alias.length) : target).toReversed())
    } else pending.push(...splitNames(target).toReversed())
  }
  if (current.length < base.length) return yield* Effect.fail(outside)
  const names = current.slice(base.length)
  if (!isInside(jail, realPath(jail, names))) return yield* Effect.fail(outside)
  return { names, stats: last ?? (yield* System.lstat(realPath(jail, names))), missing: [] }
})

const heldByPath = (jail: Jail, real: System.RealPath): Effect.Effect<OpenFolder, Fault> => {
  const check = Effect.flatMap(System.realpath(real), (now) =>
    isInside(jail, now) ? Effect.void : Effect.fail(outside)
  )
  const verify = Effect.fnUntraced(function* (name: string, opened: System.Stats) {
    yield* check
    const there = yield* System.lstat(join(real, name))
    if (there.ino !== opened.ino || there.dev !== opened.dev) return yield* Effect.fail(outside)
  })
  return Effect.as(check, { self: real, at: (name: System.RealPath) => join(real, name), verify })
}

/** `expected` is the known location of the folder. A moved folder is not found. */
const hold = <A, R>(
  jail: Jail,
  path: System.RealPath,
  expected: string | undefined,
  use: (held: OpenFolder) => Effect.Effect<A, Fault, R>
): Effect.Effect<A, Fault, R> => {
  if (!jail.byDescriptor) return Effect.flatMap(heldByPath(jail, path), use)
  return Effect.acquireUseRelease(
    System.open(path, folderOnly),
    (fd) => {
      const self = `/proc/self/fd/${fd}`
      return Effect.flatMap(System.readlink(self), (real) => {
        if (!isInside(jail, real)) return Effect.fail(outside)
        if (expected !== undefined && expected !== real) return Effect.fail(fault({ _tag: "NotFound" }))
        return use({ self, at: (name) => join(self, name), verify: () => Effect.void })
      })
    },
    System.close
  )
}

/** Holds the folder of these names, which `locate` has found, for as long as it is used. */
export const holding = <A, R>(
  jail: Jail,
  names: ReadonlyArray<string>,
  use: (held: OpenFolder) => Effect.Effect<A, Fault, R>
): Effect.Effect<A, Fault, R> => hold(jail, realPath(jail, names), realPath(jail, names), use)

/** Holds a folder in a held one. */
export const withFolder = <A, R>(
  jail: Jail,
  held: OpenFolder,
  name: System.RealPath,
  use: (held: OpenFolder) => Effect.Effect<A, Fault, R>
): Effect.Effect<A, Fault, R> => hold(jail, held.at(name), undefined, use)

/** Makes the folders that are missing below a held one, and holds the last. */
export const making = <A, R>(
  jail: Jail,
  held: OpenFolder,
  missing: ReadonlyArray<string>,
  use: (held: OpenFolder) => Effect.Effect<A, Fault, R>
): Effect.Effect<A, Fault, R> => {
  const [name, ...rest] = missing
  if (name === undefined) return use(held)
  return System.mkdir(held.at(name)).pipe(
    Effect.catchIf(
      (failed) => failed.reason._tag === "AlreadyExists",
      () => Effect.void
    ),
    Effect.andThen(withFolder(jail, held, name, (inner) => making(jail, inner, rest, use)))
  )
}

/**
 * Opens a regular file in a held folder to read it, for as long as the scope is open. A link, a folder, a device, a
 * socket or a pipe is refused, without waiting for whoever may be at its other end.
 */
export const reading = (
  held: OpenFolder,
  name: string
): Effect.Effect<{ readonly fd: number; readonly stats: System.Stats }, Fault, Scope.Scope> =>
  Effect.gen(function* () {
    if (System.isOpenDatabase(held.at(name))) return yield* Effect.fail(openDatabase)
    const fd = yield* Effect.acquireRelease(
      System.open(held.at(name), NodeFs.constants.O_RDONLY | NodeFs.constants.O_NOFOLLOW | NodeFs.constants.O_NONBLOCK),
      System.close
    )
    const stats = yield* System.fstat(fd)
    yield* checkRegular(stats)
    yield* held.verify(name, stats)
    return { fd, stats }
  })

/** Fails unless this is a regular file. */
export const checkRegular = (stats: System.Stats): Effect.Effect<void, Fault> =>
  stats.isFile() ? Effect.void : Effect.fail(stats.isDirectory() ? fault({ _tag: "IsDirectory" }) : special)
