/**
 * Protects the files of git repositories and of a home that decide which programs run.
 *
 * Protected are `.git` (a folder, or a file that names one), all that is in it, and the same for a repository without
 * such a name: a folder with `HEAD`, `objects` and `refs`, or with `HEAD` and `commondir`. A change that would make a
 * folder such a repository is protected too, and so are a person's settings of git (`.gitconfig`, `.config/git`), and
 * the hidden files of a home (see `homeFiles.ts`). Places are real ones, so a link leads around
 * nothing.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Semaphore from "effect/Semaphore"
import { isGitName, isGitSettings } from "../../../support/text/gitNames.ts"
import * as Path from "../files/path.ts"
import { Allowed, type Kind, type ProtectedPlace, refusalDetails } from "../git/allowed.ts"
import type { Find } from "../git/asking.ts"
import { type Fault, fault } from "./failure.ts"
import { isHomeFile } from "./homeFiles.ts"
import * as Jail from "./jail.ts"
import * as Many from "./many.ts"
import * as System from "./system.ts"

const refuse = (kind: Kind): Effect.Effect<never, Fault> =>
  Effect.fail(fault({ _tag: "PermissionDenied" }, refusalDetails[kind]))

/** The path of a place, as the backend names it. */
const pathOf = (names: ReadonlyArray<string>): string => `/${names.join("/")}`

const parts = ["HEAD", "objects", "refs", "commondir"] as const

/** Tells whether a folder is a repository's own, counting a name in it that may not be there yet. */
const isGitFolder = (jail: Jail.Jail, folder: ReadonlyArray<string>, name: string): Effect.Effect<boolean> =>
  Effect.map(Many.lstatAll(parts.map((part) => Jail.realPath(jail, [...folder, part]))), (stats) => {
    const [hasHead, hasObjects, hasRefs, hasCommon] = parts.map(
      (part, index) => stats[index] !== undefined || part.toLowerCase() === name.toLowerCase()
    )
    return hasHead === true && (hasCommon === true || (hasObjects === true && hasRefs === true))
  })

/** Finds the owner of a real place, which may not be there yet; `undefined` if it is not protected. */
const findKind = (jail: Jail.Jail, names: ReadonlyArray<string>): Effect.Effect<Kind | undefined> =>
  Effect.gen(function* () {
    if (names.some(isGitName) || isGitSettings(names)) return "git"
    const real = Jail.realPath(jail, names)
    if (isHomeFile(real, jail.bounds === undefined ? jail.root : (jail.bounds.folderOf(real) ?? ""))) return "home"
    const heads = names.map((_, index) => Jail.realPath(jail, [...names.slice(0, index), "HEAD"]))
    const stats = yield* Many.lstatAll(heads)
    for (const [index, name] of names.entries()) {
      const mayBe = stats[index] !== undefined || name.toLowerCase() === "head"
      if (mayBe && (yield* isGitFolder(jail, names.slice(0, index), name))) return "git"
    }
    return undefined
  })

/** Fails unless a place may be changed. */
const check = (jail: Jail.Jail, names: ReadonlyArray<string>): Effect.Effect<void, Fault> =>
  Effect.gen(function* () {
    const kind = yield* findKind(jail, names)
    if (kind !== undefined && !(yield* Allowed).has(pathOf(names))) return yield* refuse(kind)
  })

const partNames: ReadonlySet<string> = new Set(parts.map((part) => part.toLowerCase()))

/** Several changes at once could make a repository that none of them makes alone. */
const oneAtATime = Semaphore.makeUnsafe(1)

/** Changes places if all of them may be changed. */
export const changing = <A>(
  jail: Jail.Jail,
  places: ReadonlyArray<ReadonlyArray<string>>,
  work: Effect.Effect<A, Fault>
): Effect.Effect<A, Fault> => {
  const checked = Effect.andThen(
    Effect.forEach(places, (names) => check(jail, names), { discard: true }),
    work
  )
  const mayComplete = places.some((names) => names.some((name) => partNames.has(name.toLowerCase())))
  return mayComplete ? oneAtATime.withPermit(checked) : checked
}

const hasAll = (names: ReadonlySet<string>): boolean =>
  names.has("HEAD") && (names.has("commondir") || (names.has("objects") && names.has("refs")))

/** The repositories below a folder that is held: of each, the outermost protected place. */
const repositoriesIn = (
  jail: Jail.Jail,
  parent: Jail.OpenFolder,
  at: System.RealPath,
  names: ReadonlyArray<string>
): Effect.Effect<ReadonlyArray<string>, Fault> =>
  Jail.withFolder(
    jail,
    parent,
    at,
    Effect.fnUntraced(function* (held) {
      const dirents = yield* System.readdir(held.self)
      const own = dirents.map((dirent) => dirent.name.toString())
      if (hasAll(new Set(own))) return [pathOf(names)]
      const paths: Array<string> = own.filter(isGitName).map((name) => pathOf([...names, name]))
      for (const [index, dirent] of dirents.entries()) {
        const name = own[index] ?? ""
        if (dirent.isDirectory() && !isGitName(name)) {
          paths.push(...(yield* repositoriesIn(jail, held, dirent.name, [...names, name])))
        }
      }
      return paths
    })
  )

/** Finds the repositories in a folder, and the folder itself if it is protected. */
const below = (jail: Jail.Jail, names: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<ProtectedPlace>, Fault> =>
  Effect.gen(function* () {
    const name = names.at(-1)
    const kind = name === undefined ? "git" : yield* findKind(jail, names)
    if (name === undefined || kind !== undefined) return [{ path: pathOf(names), kind: kind ?? "git" }]
    const paths = yield* Jail.holding(jail, names.slice(0, -1), (held) => repositoriesIn(jail, held, name, names))
    return paths.map((path) => ({ path, kind: "git" }))
  })

/** Fails unless a folder may be changed with all that is in it. */
export const checkTree = (jail: Jail.Jail, names: ReadonlyArray<string>): Effect.Effect<void, Fault> =>
  Effect.gen(function* () {
    const places = yield* below(jail, names)
    const allowed = yield* Allowed
    const refused = places.find(({ path }) => !allowed.has(path))
    if (refused !== undefined) return yield* refuse(refused.kind)
  })

/** Finds the protected places that changes lead to. */
export const findIn =
  (jail: Jail.Jail): Find =>
  (changes) =>
    Effect.map(
      Effect.forEach(changes, ({ link = false, path, tree = false }) => {
        const normal = Path.normalize("write", path)
        if (Result.isFailure(normal)) return Effect.succeed<ReadonlyArray<ProtectedPlace>>([])
        return Jail.locate(jail, Path.segments(normal.success), !link).pipe(
          Effect.flatMap(({ missing, names, stats }) => {
            const all = [...names, ...missing]
            if (tree && stats?.isDirectory() === true) return below(jail, names)
            return Effect.map(findKind(jail, all), (kind) => (kind === undefined ? [] : [{ path: pathOf(all), kind }]))
          }),
          Effect.orElseSucceed((): ReadonlyArray<ProtectedPlace> => [])
        )
      }),
      (places) => [...new Map(places.flat().map((place) => [place.path, place])).values()]
    )
