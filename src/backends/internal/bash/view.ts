/** A backend as a file system with empty directories, which last until the command ends. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Backend from "../../../core/Backend.ts"
import * as Path from "../files/path.ts"
import type { Code, Fault } from "./errors.ts"
import { faultOf } from "./faults.ts"

type Failing<A> = Effect.Effect<A, Fault>

/**
 * The entry at a path. A link has the kind of its target; a link that is dangling or leaves the root has the kind
 * `link`.
 */
export interface Node {
  readonly kind: Backend.Entry["kind"]
  readonly isLink: boolean
  readonly size: number
  readonly modifiedAt: number
}

/** The files of a backend, as a command sees them. Paths are normal. */
export interface View {
  readonly stat: (call: string, path: string) => Failing<Node>
  readonly find: (call: string, path: string) => Failing<Node | undefined>
  /** Lists a directory; a link has the kind `link` here, wherever it leads. */
  readonly names: (call: string, path: string) => Failing<ReadonlyMap<string, Backend.Entry["kind"]>>
  /** Resolves all links of a path; `undefined` if the target is missing or outside. */
  readonly real: (call: string, path: string) => Failing<string | undefined>
  readonly makeDirectory: (path: string) => void
  /** Records a change: the directories above it still exist. */
  readonly changed: (path: string) => void
  /** Forgets the directories that were made in a path, and gives them. */
  readonly forget: (path: string) => ReadonlyArray<string>
  /** Set if there are folders of programs. */
  readonly hasPrograms: Effect.Effect<boolean>
}

/** The time that a listing is kept, in milliseconds: a command asks for each name in a directory on its own. */
const listingTime = 50

const devices = new Set(["/dev/null", "/dev/zero", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty"])

export const isDevice = (path: string): boolean => devices.has(path)

export const fail = (code: Code, call: string, path: string): Failing<never> => Effect.fail({ code, call, path })

interface ListedEntry {
  readonly entry: Backend.Entry
  readonly isLink: boolean
}

type Entries = ReadonlyMap<string, ListedEntry>

interface Listing {
  readonly entries: Entries
  readonly at: number
}

export const make = (backend: Backend.Service): View => {
  const directories = new Set(["/", "/tmp", "/dev"])
  const listings = new Map<string, Listing>()
  /** Known links: a change inside a link does not turn it into a directory. */
  const links = new Set<string>()

  const makeDirectory = (path: string): void => {
    for (let at = path; at !== "/" && !directories.has(at); at = Path.parent(at)) directories.add(at)
  }

  const realPaths = (call: string, paths: ReadonlyArray<string>): Failing<ReadonlyArray<string | undefined>> =>
    backend.realPaths === undefined
      ? Effect.succeed(paths)
      : Effect.mapError(backend.realPaths(paths), faultOf(call, paths[0] ?? "/"))

  /** Finds the links among the entries of a directory: their real path is not in the directory. */
  const findLinks = (path: string, { entries }: Backend.Listing): Effect.Effect<Entries> =>
    realPaths("scandir", [path, ...entries.map((entry) => entry.path)]).pipe(
      // Without real paths, the kind of an entry is taken from the listing.
      Effect.orElseSucceed((): ReadonlyArray<string | undefined> => []),
      Effect.map(([folder, ...places]) => {
        const isElsewhere = (entry: Backend.Entry, index: number): boolean => {
          const place = places[index]
          if (folder === undefined) return false
          // A folder that must not be known of is not entered either; a file is not entered at all.
          return place === undefined
            ? entry.kind === "directory"
            : place !== Path.join(folder, Path.basename(entry.path))
        }
        const listed = entries.map((entry, index) => {
          const isLink = entry.kind === "link" || isElsewhere(entry, index)
          if (isLink) links.add(entry.path)
          else links.delete(entry.path)
          return [Path.basename(entry.path), { entry, isLink }] as const
        })
        return new Map(listed)
      })
    )

  /** Lists a directory of the backend; empty for a directory that a command made. */
  const list = (call: string, path: string): Failing<Entries> =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const cachedListing = listings.get(path)
      if (cachedListing !== undefined && now - cachedListing.at < listingTime) return cachedListing.entries
      const listing = yield* backend.ls(path).pipe(
        Effect.catchReason("BackendError", "NotFound", (_, error) =>
          directories.has(path) ? Effect.succeed<Backend.Listing>({ entries: [] }) : Effect.fail(error)
        ),
        Effect.mapError(faultOf(call, path))
      )
      const entries = yield* findLinks(path, listing)
      listings.set(path, { entries, at: now })
      return entries
    })

  const directory: Node = { kind: "directory", isLink: false, size: 0, modifiedAt: 0 }

  const find = (call: string, path: string): Failing<Node | undefined> =>
    Effect.gen(function* () {
      if (isDevice(path)) return { kind: "file", isLink: false, size: 0, modifiedAt: 0 } as const
      if (directories.has(path) && !links.has(path)) return directory
      const entered = (yield* list(call, Path.parent(path)).pipe(
        Effect.catchIf(
          ({ code }) => code === "ENOENT" || code === "ENOTDIR",
          () => Effect.succeed<Entries>(new Map())
        )
      )).get(Path.basename(path))
      if (entered === undefined) return undefined
      const { entry, isLink } = entered
      const { kind, modifiedAt = 0, size } = entry
      if (kind !== "file" || size !== undefined) return { kind, isLink, modifiedAt, size: size ?? 0 }
      const file = yield* Effect.mapError(backend.read(path, { limit: 0 }), faultOf(call, path))
      return { kind, isLink, modifiedAt, size: file.size }
    })

  return {
    find,
    makeDirectory,
    stat: (call, path) =>
      Effect.flatMap(find(call, path), (node) =>
        node === undefined ? fail("ENOENT", call, path) : Effect.succeed(node)
      ),
    names: (call, path) =>
      Effect.map(list(call, path), (entries) => {
        const names = new Map(
          [...entries].map(([name, { entry, isLink }]) => [name, isLink ? ("link" as const) : entry.kind])
        )
        for (const one of directories) {
          const hidden = one === "/tmp" || one === "/dev" || one === "/"
          if (!hidden && !links.has(one) && Path.parent(one) === path) names.set(Path.basename(one), "directory")
        }
        return names
      }),
    real: (call, path) => Effect.map(realPaths(call, [path]), ([real]) => real),
    hasPrograms: list("scandir", "/").pipe(
      Effect.map((entries) => entries.has("bin") || entries.has("usr")),
      Effect.catch(() => Effect.succeed(true))
    ),
    changed: (path) => {
      makeDirectory(Path.parent(path))
      for (let at = path; ; at = Path.parent(at)) {
        listings.delete(at)
        if (at === "/") return
      }
    },
    forget: (path) => {
      const paths = [...directories].filter((one) => Path.isWithin(one, path))
      for (const one of paths) directories.delete(one)
      links.delete(path)
      for (const one of listings.keys()) if (Path.isWithin(one, path)) listings.delete(one)
      return paths
    }
  }
}
