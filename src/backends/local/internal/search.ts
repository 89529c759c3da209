/**
 * Searches of a folder of this machine. What is found is found by the same search as on every backend; here it is told
 * beforehand what there is to look at.
 */
import * as Effect from "effect/Effect"
import type * as Backend from "../../../core/Backend.ts"
import type { BackendError } from "../../../core/BackendError.ts"
import * as DerivedBackend from "../../DerivedBackend.ts"
import * as Path from "../../internal/path.ts"
import { on } from "./failure.ts"
import * as Folder from "./folder.ts"
import * as Jail from "./jail.ts"
import * as Ripgrep from "./ripgrep.ts"
import { survey } from "./survey.ts"

// All that is seen of most projects, in a few tens of megabytes.
const surveyed = 100_000
// Enough for what is left out of most projects, in a few milliseconds.
const glimpsed = 400
const readAtOnce = 16

/** What searches need. */
export interface Searched {
  readonly jail: Jail.Jail
  readonly primitives: DerivedBackend.Primitives
  readonly options: DerivedBackend.Options
  readonly ripgrep: Ripgrep.Ripgrep | undefined
}

type Lister = DerivedBackend.Primitives["list"]

/** The same backend, by other listings. */
const listing = ({ options, primitives }: Searched, list: Lister): Backend.Service =>
  DerivedBackend.make({ ...primitives, list }, { ...options, concurrency: readAtOnce })

/** The folder that a search begins at, and the names of real folders that it is. Nothing, if it is not a folder. */
const start = (jail: Jail.Jail, operation: string, given: string) =>
  Effect.gen(function* () {
    const path = yield* Effect.fromResult(Path.normalize(operation, given))
    const { names, stats } = yield* Jail.locate(jail, Path.segments(path), true)
    return stats?.isDirectory() === true ? { path, names } : undefined
  }).pipe(
    // Whatever is wrong with it, the search says it.
    Effect.orElseSucceed(() => undefined)
  )

/** The folders that candidates are in, with what leads to them, and with ignore files. */
const tree = (from: string, paths: ReadonlyArray<string>): ReadonlyMap<string, Set<string>> => {
  const folders = new Map<string, Set<string>>([[from, new Set()]])
  for (const path of paths) {
    if (!Path.segments(Path.join(from, path)).every((name, depth) => Folder.isShown(name, depth === 0))) continue
    let at = Path.join(from, path)
    for (;;) {
      const above = Path.parent(at)
      const known = folders.get(above)
      if (known === undefined) folders.set(above, new Set([Path.basename(at)]))
      else known.add(Path.basename(at))
      if (known !== undefined) break
      at = above
    }
  }
  for (const names of folders.values()) names.add(".gitignore")
  return folders
}

const among =
  (jail: Jail.Jail, folders: ReadonlyMap<string, Set<string>>): Lister =>
  (path) => {
    const names = folders.get(path)
    return names === undefined
      ? Effect.succeed([])
      : on("ls", path, Folder.childrenOf(jail, Path.segments(path), [...names]))
  }

/** What ripgrep has for a query, if it can say. */
const candidates = Effect.fnUntraced(function* (searched: Searched, query: Backend.GrepQuery) {
  const { jail, ripgrep } = searched
  const args = ripgrep === undefined ? undefined : Ripgrep.argumentsFor(query)
  if (ripgrep === undefined || args === undefined) return undefined
  const begin = yield* start(jail, "grep", query.path ?? "/")
  if (begin === undefined) return undefined
  const { names } = begin
  const from = `/${names.join("/")}`
  const ignored = query.ignored === true
  const glimpse = ignored ? undefined : yield* survey(jail, names, { ignored, maxEntries: glimpsed })
  const except = (glimpse?.leftOut ?? []).map((path) => Path.relative(path, from))
  const found = yield* Jail.holding(jail, names, (held) => Ripgrep.candidates(ripgrep, held, args, except))
  return found && { ...found, from }
})

export const grep =
  (searched: Searched): Backend.Service["grep"] =>
  (query) =>
    Effect.gen(function* () {
      // Without ripgrep, or if it fails for whatever reason, all files are read.
      const found = yield* Effect.orElseSucceed(candidates(searched, query), () => undefined)
      if (found === undefined) return yield* listing(searched, searched.primitives.list).grep(query)
      const result = yield* listing(searched, among(searched.jail, tree(found.from, found.paths))).grep(query)
      return found.isPartial && result.truncated === undefined ? { ...result, truncated: "time" as const } : result
    })

export const glob =
  (searched: Searched): Backend.Service["glob"] =>
  (query): Effect.Effect<Backend.Listing, BackendError> =>
    Effect.gen(function* () {
      const { jail, primitives } = searched
      const from = yield* start(jail, "glob", query.path ?? "/")
      if (from === undefined) return yield* listing(searched, primitives.list).glob(query)
      const seen = yield* Effect.orElseSucceed(
        survey(jail, from.names, { ignored: query.ignored === true, maxEntries: surveyed }),
        () => undefined
      )
      const list: Lister = (path) => {
        const children = seen?.folders.get(path)
        return children === undefined ? primitives.list(path) : Effect.succeed(children)
      }
      return yield* listing(searched, list).glob(query)
    })
