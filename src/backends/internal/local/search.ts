/** Searches a folder of this machine. The shared search runs over files that were surveyed ahead. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Backend from "../../../core/Backend.ts"
import type { BackendError } from "../../../core/BackendError.ts"
import type { Child, Primitives } from "../derive/primitives.ts"
import * as Search from "../derive/search.ts"
import type * as Derived from "../derive/target.ts"
import * as Path from "../files/path.ts"
import * as Turns from "../files/turns.ts"
import { compileFilter, type Glob } from "../glob/glob.ts"
import * as Ignore from "../glob/ignore.ts"
import * as Ahead from "./ahead.ts"
import { on } from "./failure.ts"
import * as Folder from "./folder.ts"
import * as Jail from "./jail.ts"
import * as Ripgrep from "./ripgrep.ts"
import { survey } from "./survey.ts"

// All that is seen of most projects, in a few tens of megabytes.
const surveyed = 100_000
// Covers the ignored folders of most projects, in a few milliseconds.
const glimpsed = 400
const readAtOnce = 16
const aheadAtOnce = 64

/** The parts that searches need. */
export interface SearchParts {
  readonly jail: Jail.Jail
  readonly primitives: Primitives
  readonly maxFileSize: number
  readonly ripgrep: Ripgrep.Ripgrep | undefined
}

type Lister = Primitives["list"]

/** The same files, by other listings. */
const listing = ({ maxFileSize, primitives }: SearchParts, list: Lister): Derived.SearchTarget => ({
  primitives: { ...primitives, list },
  maxFileSize,
  concurrency: readAtOnce
})

/** The folder that a search begins at, and the names of real folders that it is. Nothing, if it is not a folder. */
const start = (jail: Jail.Jail, operation: string, inputPath: string) =>
  Effect.gen(function* () {
    const path = yield* Effect.fromResult(Path.normalize(operation, inputPath))
    const { names, stats } = yield* Jail.locate(jail, Path.segments(path), true)
    return stats?.isDirectory() === true ? { path, names } : undefined
  }).pipe(
    // The search itself reports the failure.
    Effect.orElseSucceed(() => undefined)
  )

/** Checks the path of a candidate. The output of ripgrep is not trusted. */
const pathOf = (from: string, wanted: Glob | undefined, candidate: string): string | undefined => {
  const path = Path.join(from, candidate)
  const isName = (name: string, depth: number) => /[^.]|[.]{3}/.test(name) && Folder.isShown(name, depth === 0)
  return candidate !== "" && Path.segments(path).every(isName) && wanted?.matches(candidate) !== false
    ? path
    : undefined
}

/** The folders of candidates, with their parents and ignore files. */
const tree = (from: string, paths: ReadonlyArray<string>): ReadonlyMap<string, Set<string>> => {
  const folders = new Map<string, Set<string>>([[from, new Set()]])
  for (const path of paths) {
    let at = path
    for (;;) {
      const above = Path.parent(at)
      const names = folders.get(above)
      if (names === undefined) folders.set(above, new Set([Path.basename(at)]))
      else names.add(Path.basename(at))
      if (names !== undefined) break
      at = above
    }
  }
  for (const names of folders.values()) names.add(Ignore.ignoreFile)
  return folders
}

/** The files that ripgrep selected, and their known contents. */
interface Candidates {
  readonly folders: ReadonlyMap<string, Set<string>>
  readonly ahead: Ahead.Ahead
  readonly isPartial: boolean
}

/** The folder as if there were only the candidates in it. */
const among = (searched: SearchParts, { ahead, folders }: Candidates): Derived.SearchTarget => {
  const { jail, primitives } = searched
  const list: Lister = (path) => {
    const children: Array<Child> = []
    const others: Array<string> = []
    for (const name of folders.get(path) ?? []) {
      const child = ahead.child(Path.join(path, name))
      if (child === undefined) others.push(name)
      else if (child !== null) children.push(child)
    }
    if (others.length === 0) return Effect.succeed(children)
    const looked = Folder.childrenOf(jail, Path.segments(path), others)
    return on(
      "ls",
      path,
      Effect.map(looked, (more) => [...children, ...more])
    )
  }
  const readAhead: Primitives["read"] = (path, range) => {
    const content = ahead.content(path)
    return content === undefined
      ? primitives.read(path, range)
      : Effect.succeed(content.subarray(range?.start, range?.end))
  }
  const { primitives: listed, ...rest } = listing(searched, list)
  return { ...rest, primitives: { ...listed, read: readAhead }, atHand: ahead.content }
}

/** Asks ripgrep for the candidates of a query, if it can say. */
const candidates = Effect.fnUntraced(function* (searched: SearchParts, query: Backend.GrepQuery) {
  const { jail, ripgrep } = searched
  const args = ripgrep === undefined ? undefined : Ripgrep.argumentsFor(query)
  const glob = compileFilter(query.glob)
  if (ripgrep === undefined || args === undefined || Result.isFailure(glob)) return undefined
  const begin = yield* start(jail, "grep", query.path ?? "/")
  if (begin === undefined) return undefined
  const { names } = begin
  const from = `/${names.join("/")}`
  const ignored = query.ignored === true
  const glimpse = ignored ? undefined : yield* survey(jail, names, { ignored, maxEntries: glimpsed })
  const except = (glimpse?.leftOut ?? []).map((path) => Path.relative(path, from))
  const ahead = Ahead.make(jail)
  const paths: Array<string> = []
  let begun = 0
  const readRest = Effect.suspend(() => {
    const rest = paths.slice(begun)
    begun = paths.length
    return ahead.read(rest)
  })
  const isOver = Turns.make()
  const tell = Effect.fnUntraced(function* (named: ReadonlyArray<string>) {
    for (const candidate of named) {
      if (isOver()) yield* Effect.yieldNow
      const path = pathOf(from, glob.success, candidate)
      if (path !== undefined) paths.push(path)
    }
    // Those of a folder come soon after each other: then it is held once for all of them.
    if (paths.length - begun >= aheadAtOnce) yield* readRest
  })
  const outcome = yield* Jail.holding(jail, names, (held) => Ripgrep.candidates(ripgrep, held, args, except, tell))
  yield* readRest
  return outcome && { folders: tree(from, paths), ahead, isPartial: outcome.isPartial }
})

export const grep =
  (searched: SearchParts): Backend.Service["grep"] =>
  (query) =>
    Effect.gen(function* () {
      // Without ripgrep, or after its failure, all files are read.
      const selection = yield* Effect.orElseSucceed(candidates(searched, query), () => undefined)
      if (selection === undefined) return yield* Search.grep(listing(searched, searched.primitives.list))(query)
      const result = yield* Search.grep(among(searched, selection))(query)
      return selection.isPartial && result.truncated === undefined ? { ...result, truncated: "time" as const } : result
    })

export const glob =
  (searched: SearchParts): Backend.Service["glob"] =>
  (query): Effect.Effect<Backend.Listing, BackendError> =>
    Effect.gen(function* () {
      const { jail, primitives } = searched
      const from = yield* start(jail, "glob", query.path ?? "/")
      if (from === undefined) return yield* Search.glob(listing(searched, primitives.list))(query)
      const overview = yield* Effect.orElseSucceed(
        survey(jail, from.names, { ignored: query.ignored === true, maxEntries: surveyed }),
        () => undefined
      )
      const list: Lister = (path) => {
        const children = overview?.folders.get(path)
        return children === undefined ? primitives.list(path) : Effect.succeed(children)
      }
      return yield* Search.glob(listing(searched, list))(query)
    })
