/** A folder of the machine as the primitives of a backend. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Child, Primitives, Range, Stat } from "../derive/primitives.ts"
import * as Path from "../files/path.ts"
import * as Atomic from "./atomic.ts"
import { type Fault, fault, on, toBackendError } from "./failure.ts"
import * as Jail from "./jail.ts"
import * as Many from "./many.ts"
import * as Protected from "./protected.ts"
import * as System from "./system.ts"

const chunkBytes = 1024 * 1024
const readBytes = 16 * 1024 * 1024
// Between looking and writing somebody else may have made the file, or taken it away.
const attempts = 4
const linksAtOnce = 16

const notFound = fault({ _tag: "NotFound" })

const encoder = new TextEncoder()

const is = (tag: Fault["reason"]["_tag"]) => (failed: Fault) => failed.reason._tag === tag

/** The names of the parents of a place, and its own name. The root has none. */
const parted = (names: ReadonlyArray<string>): Effect.Effect<readonly [ReadonlyArray<string>, string], Fault> => {
  const name = names.at(-1)
  return name === undefined
    ? Effect.fail(fault({ _tag: "InvalidPath", problem: "this is the root" }))
    : Effect.succeed([names.slice(0, -1), name])
}

const describe = (stats: System.Stats) => ({
  size: Number(stats.size),
  modifiedAt: Number(stats.mtimeMs)
})

/** The stats of the target of a link. */
const follow = (jail: Jail.Jail, names: ReadonlyArray<string>): Effect.Effect<Stat> =>
  Effect.match(Jail.locate(jail, names, true), {
    onSuccess: ({ stats }): Stat =>
      stats === undefined || !(stats.isDirectory() || stats.isFile())
        ? { kind: "link", isLink: true }
        : {
            kind: stats.isDirectory() ? "directory" : "file",
            isLink: true,
            version: System.versionOf(stats),
            ...describe(stats)
          },
    onFailure: (): Stat => ({ kind: "link", isLink: true })
  })

const stat = (jail: Jail.Jail, names: ReadonlyArray<string>): Effect.Effect<Stat | undefined, Fault> =>
  Jail.locate(jail, names, false).pipe(
    Effect.flatMap(({ names: real, stats }): Effect.Effect<Stat | undefined> => {
      if (stats === undefined) return Effect.undefined
      if (stats.isSymbolicLink()) return follow(jail, real)
      const kind = stats.isDirectory() ? "directory" : "file"
      return Effect.succeed({ kind, version: System.versionOf(stats), ...describe(stats) })
    }),
    Effect.catchIf(is("NotDirectory"), () => Effect.undefined)
  )

/** Tells whether a name is shown: if a path can say it, and it is not that of a file that is not written to its end. */
export const isShown = (name: string, inRoot: boolean): boolean =>
  !name.includes("\\") && !(inRoot && name.startsWith("~")) && !Atomic.isUnfinished(name)

/** The entries of a folder that are shown. */
export const filterEntries = (entries: ReadonlyArray<System.Entry>, isRoot: boolean): ReadonlyArray<System.Entry> =>
  entries.every(({ name }) => isShown(name, isRoot)) ? entries : entries.filter(({ name }) => isShown(name, isRoot))

/** Looks up names in a held folder. */
const children = Effect.fnUntraced(function* (
  jail: Jail.Jail,
  held: Jail.OpenFolder,
  folder: ReadonlyArray<string>,
  names: ReadonlyArray<string>
) {
  const entries: Array<Child> = []
  const links: Array<string> = []
  const all = yield* Many.lstatAll(names.map(held.at))
  for (const [index, name] of names.entries()) {
    const stats = all[index]
    if (stats === undefined) continue
    if (stats.isDirectory()) entries.push({ name, kind: "directory", ...describe(stats) })
    else if (stats.isFile()) entries.push({ name, kind: "file", ...describe(stats) })
    else if (stats.isSymbolicLink()) links.push(name)
    // Searches look into neither: for them a device is a link that leads nowhere.
    else entries.push({ name, kind: "link" })
  }
  const followed = yield* Effect.forEach(
    links,
    (name) =>
      Effect.map(follow(jail, [...folder, name]), ({ version: _, ...leadsTo }): Child => ({ name, ...leadsTo })),
    { concurrency: linksAtOnce }
  )
  return [...entries, ...followed]
})

/** Looks up names in a folder, and omits missing ones. */
export const childrenOf = (
  jail: Jail.Jail,
  folder: ReadonlyArray<string>,
  names: ReadonlyArray<string>
): Effect.Effect<ReadonlyArray<Child>, Fault> =>
  Jail.holding(jail, folder, (held) => children(jail, held, folder, names))

const list = Effect.fnUntraced(function* (jail: Jail.Jail, path: ReadonlyArray<string>) {
  const { names, stats } = yield* Jail.locate(jail, path, true)
  if (stats === undefined) return yield* Effect.fail(notFound)
  if (!stats.isDirectory()) return yield* Effect.fail(fault({ _tag: "NotDirectory" }))
  return yield* Jail.holding(jail, names, (held) =>
    Effect.flatMap(System.list(held.self), (entries) => {
      const all = filterEntries(entries, names.length === 0).map(({ name }) => name)
      return children(jail, held, names, all)
    })
  )
})

/** Opens the file that a path leads to, for as long as the scope is open. */
const open = Effect.fnUntraced(function* (jail: Jail.Jail, path: ReadonlyArray<string>) {
  const { names, stats } = yield* Jail.locate(jail, path, true)
  if (stats === undefined) return yield* Effect.fail(notFound)
  yield* Jail.checkRegular(stats)
  const [parents, name] = yield* parted(names)
  return yield* Jail.holding(jail, parents, (held) => Jail.reading(held, name))
})

/** Reads from a file until the buffer is full or the file is at its end. */
export const fill = Effect.fnUntraced(function* (fd: number, buffer: Uint8Array, start: number) {
  let length = 0
  while (length < buffer.byteLength) {
    const room = buffer.subarray(length, Math.min(buffer.byteLength, length + readBytes))
    const count = yield* System.readBytes(fd, room, start + length)
    if (count === 0) break
    length += count
  }
  return buffer.subarray(0, length)
})

const readFile = (jail: Jail.Jail, path: ReadonlyArray<string>, maxFileSize: number, range: Range | undefined) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { fd, stats } = yield* open(jail, path)
      const size = Number(stats.size)
      const start = Math.min(size, range?.start ?? 0)
      const length = Math.max(0, Math.min(size, range?.end ?? size) - start)
      if (length > maxFileSize) return yield* Effect.fail(fault({ _tag: "TooLarge", size, limit: maxFileSize }))
      return yield* fill(fd, new Uint8Array(length), start)
    })
  )

/** Reads a file piece by piece. It stays open, also if its name changes. */
const stream = (jail: Jail.Jail, path: ReadonlyArray<string>): Stream.Stream<Uint8Array, Fault> =>
  Stream.unwrap(
    Effect.map(open(jail, path), ({ fd }) =>
      Stream.unfold(0, (position: number) => {
        const buffer = new Uint8Array(chunkBytes)
        return Effect.map(System.readBytes(fd, buffer, position), (count) =>
          count === 0 ? undefined : ([buffer.subarray(0, count), position + count] as const)
        )
      })
    )
  )

const write = (
  jail: Jail.Jail,
  path: ReadonlyArray<string>,
  content: Uint8Array,
  create: boolean
): Effect.Effect<string, Fault> => {
  const attempt = Effect.gen(function* () {
    const { missing, names, stats } = yield* Jail.locate(jail, path, true)
    const changing = <A>(work: Effect.Effect<A, Fault>) => Protected.changing(jail, [[...names, ...missing]], work)
    if (stats !== undefined) {
      if (create) return yield* Effect.fail(fault({ _tag: "AlreadyExists" }))
      yield* Jail.checkRegular(stats)
      const [parents, name] = yield* parted(names)
      const replace = (held: Jail.OpenFolder) =>
        // A file that must not be written is not replaced either.
        Effect.andThen(System.accessTo("write", held.at(name)), Atomic.write({ held, name, old: stats }, content))
      return yield* changing(Jail.holding(jail, parents, replace))
    }
    const [folders, name] = yield* parted(missing)
    const add = (held: Jail.OpenFolder) =>
      Jail.making(jail, held, folders, (folder) => Atomic.write({ held: folder, name, old: undefined }, content))
    return yield* changing(Jail.holding(jail, names, add))
  })
  return Effect.map(
    create
      ? attempt
      : Effect.retry(attempt, { times: attempts - 1, while: (failed: Fault) => is("AlreadyExists")(failed) }),
    System.versionOf
  )
}

/** Removes an empty folder. Remains of a crashed write don't count. */
const removeFolder = (held: Jail.OpenFolder, name: string): Effect.Effect<void, Fault> =>
  Effect.catchIf(System.rmdir(held.at(name)), is("IsDirectory"), (failed) =>
    Effect.gen(function* () {
      const leftovers = (yield* System.readdir(held.at(name))).map((entry) => entry.name.toString())
      if (!leftovers.every(Atomic.isUnfinished)) return yield* Effect.fail(failed)
      for (const unfinished of leftovers) yield* System.unlink(held.at(`${name}/${unfinished}`))
      return yield* System.rmdir(held.at(name))
    })
  )

const remove = Effect.fnUntraced(function* (jail: Jail.Jail, path: ReadonlyArray<string>) {
  const { names, stats } = yield* Jail.locate(jail, path, false)
  if (stats === undefined) return yield* Effect.fail(notFound)
  const [parents, name] = yield* parted(names)
  const removing = Jail.holding(jail, parents, (held) =>
    stats.isDirectory() ? removeFolder(held, name) : System.unlink(held.at(name))
  )
  return yield* Protected.changing(jail, [names], removing)
})

/** Removes the content of a folder, and then the folder. */
const clear = (
  jail: Jail.Jail,
  parent: Jail.OpenFolder,
  name: System.RealPath,
  onGone: () => void
): Effect.Effect<void, Fault> =>
  Effect.gen(function* () {
    yield* Jail.withFolder(
      jail,
      parent,
      name,
      Effect.fnUntraced(function* (held) {
        const dirents = yield* System.readdir(held.self)
        const files = dirents.filter((dirent) => !dirent.isDirectory())
        yield* Many.unlinkAll(
          files.map((file) => held.at(file.name)),
          onGone
        )
        for (const dirent of dirents) if (dirent.isDirectory()) yield* clear(jail, held, dirent.name, onGone)
      })
    )
    yield* System.rmdir(parent.at(name))
    onGone()
  })

/** Takes away a folder with all that is in it, links as they are. Says of each thing that it is gone. */
export const removeTree = Effect.fnUntraced(function* (
  jail: Jail.Jail,
  path: ReadonlyArray<string>,
  onGone: () => void
) {
  const { names, stats } = yield* Jail.locate(jail, path, false)
  if (stats === undefined) return yield* Effect.fail(notFound)
  yield* Protected.checkTree(jail, names)
  const [parents, name] = yield* parted(names)
  return yield* Jail.holding(jail, parents, (held) => clear(jail, held, name, onGone))
})

const rename = Effect.fnUntraced(function* (jail: Jail.Jail, from: ReadonlyArray<string>, to: ReadonlyArray<string>) {
  const source = yield* Jail.locate(jail, from, false)
  if (source.stats === undefined) return yield* Effect.fail(notFound)
  const move = source.stats.isDirectory() ? Atomic.takeCarefully : Atomic.take
  const target = yield* Jail.locate(jail, to, false)
  if (target.stats !== undefined) return yield* Effect.fail(fault({ _tag: "AlreadyExists" }))
  const [parents, name] = yield* parted(source.names)
  const [folders, newName] = yield* parted(target.missing)
  const moving = Jail.holding(jail, parents, (old) =>
    Jail.holding(jail, target.names, (held) =>
      Jail.making(jail, held, folders, (folder) => Effect.uninterruptible(move(old.at(name), folder.at(newName))))
    )
  )
  return yield* Protected.changing(jail, [source.names, [...target.names, ...target.missing]], moving)
})

/** The primitives. `maxFileSize` bounds a single read, in bytes. Changes are made in `changed`. */
export const primitives = (jail: Jail.Jail, maxFileSize: number, changed: Jail.Jail): Primitives => {
  const names = Path.segments
  return {
    stat: (path) => on("stat", path, stat(jail, names(path))),
    list: (path) => on("ls", path, list(jail, names(path))),
    read: (path, range) => on("read", path, readFile(jail, names(path), maxFileSize, range)),
    stream: (path) => Stream.mapError(stream(jail, names(path)), toBackendError("read", path)),
    write: (path, content, { create }) =>
      on(
        "write",
        path,
        Effect.suspend(() =>
          write(changed, names(path), typeof content === "string" ? encoder.encode(content) : content, create)
        )
      ),
    remove: (path) => on("delete", path, remove(changed, names(path))),
    rename: (from, to) => on("move", from, rename(changed, names(from), names(to))),
    renameDirectory: (from, to) => on("move", from, rename(changed, names(from), names(to))),
    resolve: (path) =>
      on(
        "resolve",
        path,
        Effect.map(Jail.locate(jail, names(path), true), (place) => `/${[...place.names, ...place.missing].join("/")}`)
      )
  }
}
