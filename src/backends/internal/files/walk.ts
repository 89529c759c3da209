/**
 * Walking through a directory: each file once, in the order of paths, without what ignore files leave out. Links are
 * neither followed nor given.
 */
import * as Effect from "effect/Effect"
import type { BackendError } from "../../../core/BackendError.ts"
import type { Child, Primitives } from "../derive/primitives.ts"
import { toBytes } from "../derive/target.ts"
import * as Ignore from "../glob/ignore.ts"
import * as Path from "./path.ts"
import * as Turns from "./turns.ts"

/** Visits a file, and reports whether to continue, immediately or as an effect. */
export type Visit = (path: string, file: Child) => boolean | Effect.Effect<boolean, BackendError>

const decoder = new TextDecoder()

/** Rethrows failures of the whole search. Unreadable and removed files are skipped. */
export const unlessHidden = <A, B>(
  effect: Effect.Effect<A, BackendError>,
  otherwise: B
): Effect.Effect<A | B, BackendError> =>
  Effect.catch(effect, (error) =>
    error.reason._tag === "Unavailable" || error.reason._tag === "TimedOut"
      ? Effect.fail(error)
      : Effect.succeed(otherwise)
  )

const isRealFile = ({ isLink, kind }: Omit<Child, "name">): boolean => kind === "file" && isLink !== true

const isRealDirectory = ({ isLink, kind }: Omit<Child, "name">): boolean => kind === "directory" && isLink !== true

/** Adds the rules of a directory that has an ignore file. */
const extend = (
  primitives: Primitives,
  rules: Ignore.Ignore,
  folder: string
): Effect.Effect<Ignore.Ignore, BackendError> =>
  primitives.read(Path.join(folder, Ignore.ignoreFile), { start: 0, end: Ignore.maxIgnoreBytes }).pipe(
    Effect.map((content) => Ignore.extend(rules, folder, decoder.decode(toBytes(content)))),
    (effect) => unlessHidden(effect, rules)
  )

/**
 * The rules that hold in a directory, but for its own; `undefined` if the way there is ignored. A repository in a
 * repository, such as a worktree, has rules of its own only.
 */
const rulesAbove = (
  primitives: Primitives,
  path: string,
  isDirectory: boolean
): Effect.Effect<Ignore.Ignore | undefined, BackendError> =>
  Effect.gen(function* () {
    const isOver = Turns.make()
    let rules = Ignore.none
    let isLeftOut = false
    let at = "/"
    for (const name of Path.segments(path)) {
      if (isOver()) yield* Effect.yieldNow
      const file = yield* unlessHidden(primitives.stat(Path.join(at, Ignore.ignoreFile)), undefined)
      if (file !== undefined && isRealFile(file)) rules = yield* extend(primitives, rules, at)
      at = Path.join(at, name)
      const isFolder = isDirectory || at !== path
      isLeftOut ||= Ignore.isIgnored(rules, at, isFolder)
      if (!isFolder || name === Ignore.repository) continue
      if ((yield* unlessHidden(primitives.stat(Path.join(at, Ignore.repository)), undefined)) === undefined) continue
      rules = Ignore.none
      isLeftOut = false
    }
    return isLeftOut ? undefined : rules
  })

interface Folder {
  readonly path: string
  readonly rules: Ignore.Ignore
  /** The rest of it, the last one first. */
  readonly children: Array<Child>
}

/**
 * Visits the files of a directory, or a single file, at a path without links. `ignored` includes ignored files and
 * `.git`.
 */
export const walk = (
  primitives: Primitives,
  start: { readonly path: string; readonly ignored: boolean },
  visit: Visit
): Effect.Effect<void, BackendError> =>
  Effect.gen(function* () {
    const open = (path: string, above: Ignore.Ignore, list: Effect.Effect<ReadonlyArray<Child>, BackendError>) =>
      Effect.gen(function* () {
        const children = [...(yield* list)].sort((left, right) => Path.compareNames(right.name, left.name))
        const hasRules =
          !start.ignored && children.some((child) => child.name === Ignore.ignoreFile && isRealFile(child))
        const rules = hasRules ? yield* extend(primitives, above, path) : above
        return { path, rules, children } satisfies Folder
      })

    const stat = yield* primitives.stat(start.path)
    if (stat === undefined) return
    const rules = start.ignored ? Ignore.none : yield* rulesAbove(primitives, start.path, stat.kind === "directory")
    if (rules === undefined) return
    if (stat.kind === "file") {
      const visited = visit(start.path, { ...stat, name: Path.basename(start.path) })
      if (typeof visited !== "boolean") yield* visited
      return
    }
    if (stat.kind !== "directory") return

    const isOver = Turns.make()
    const folders: Array<Folder> = [yield* open(start.path, rules, primitives.list(start.path))]
    for (let folder = folders.at(-1); folder !== undefined; folder = folders.at(-1)) {
      // A pattern or an ignore file can make each name take milliseconds.
      if (isOver()) yield* Effect.yieldNow
      const child = folder.children.pop()
      if (child === undefined) {
        folders.pop()
        continue
      }
      const path = Path.join(folder.path, child.name)
      const isDirectory = isRealDirectory(child)
      if (!isDirectory && !isRealFile(child)) continue
      if (!start.ignored && Ignore.isIgnored(folder.rules, path, isDirectory)) continue
      if (isDirectory) folders.push(yield* open(path, folder.rules, unlessHidden(primitives.list(path), [])))
      else {
        // Most files are passed over: an effect for each would take longer than all the rest.
        const visited = visit(path, child)
        if (!(typeof visited === "boolean" ? visited : yield* visited)) return
      }
    }
  })

/** Finds the directory `base` in another one, if it exists and no link leads to it, to begin a walk there. */
export const descend = (
  primitives: Primitives,
  from: string,
  base: string
): Effect.Effect<string | undefined, BackendError> =>
  Effect.gen(function* () {
    let at = from
    for (const name of base === "" ? [] : base.split("/")) {
      at = Path.join(at, name)
      const stat = yield* unlessHidden(primitives.stat(at), undefined)
      if (stat === undefined || !isRealDirectory(stat)) return undefined
    }
    return at
  })
