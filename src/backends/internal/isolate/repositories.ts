/**
 * The parts of repositories by which git chooses programs: hooks and settings. Commands only read them, since a person's
 * git would run the hooks with all rights.
 */
import { lstatSync, mkdirSync, readdirSync, realpathSync } from "node:fs"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as System from "../local/system.ts"
import type { Bind } from "./options.ts"

/** Tells whether a path is the real one: no folder on its way is a link now. */
export const isReal = (path: string): boolean =>
  Result.getOrElse(
    System.attempt(() => realpathSync.native(path) === path),
    () => false
  )

const kindOf = (path: string): "file" | "directory" | undefined =>
  Result.match(
    System.attempt(() => lstatSync(path)),
    {
      onFailure: () => undefined,
      onSuccess: (stat) => (stat.isDirectory() ? "directory" : stat.isFile() ? "file" : undefined)
    }
  )

/** The names of the folders in a folder. */
const foldersIn = (path: string): ReadonlyArray<string> =>
  Result.getOrElse(
    System.attempt(() => readdirSync(path, { withFileTypes: true })),
    () => []
  ).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []))

/** More submodules, and more folders above them, are not looked up. */
const maxModules = 500

/** The repositories of submodules. The name of a submodule may have slashes in it. */
const findModules = (git: string): ReadonlyArray<string> => {
  const modules: Array<string> = []
  const queue = [`${git}/modules`]
  for (let count = 0; count < maxModules; count++) {
    const folder = queue.shift()
    if (folder === undefined) break
    for (const name of foldersIn(folder)) {
      const path = `${folder}/${name}`
      if (kindOf(`${path}/HEAD`) === undefined) queue.push(path)
      else {
        modules.push(path)
        queue.push(`${path}/modules`)
      }
    }
  }
  return modules
}

/** A mount can't be moved, so no command puts another folder in its place. */
const bindFolder = (git: string, isStill: boolean): ReadonlyArray<Bind> => {
  const hooks = `${git}/hooks`
  // A missing folder of hooks is made, so that no command makes it.
  if (isStill && kindOf(hooks) === undefined && isReal(git)) System.attempt(() => mkdirSync(hooks))
  const own = [hooks, `${git}/config`, `${git}/config.worktree`, `${git}/commondir`]
  const trees = foldersIn(`${git}/worktrees`).flatMap((name) =>
    ["config.worktree", "commondir", "gitdir"].map((file) => `${git}/worktrees/${name}/${file}`)
  )
  const readOnly = [...own, ...trees].filter((one) => kindOf(one) !== undefined)
  return [{ path: git, access: "write" }, ...readOnly.map((path): Bind => ({ path, access: "read" }))]
}

/** Binds a repository: its folder and the folders of its submodules, or its `.git` file. */
const bindRepository = (git: string, isStill: boolean): ReadonlyArray<Bind> => {
  const kind = kindOf(git)
  if (kind === undefined) return []
  return kind === "file"
    ? [{ path: git, access: "read" }]
    : [git, ...findModules(git)].flatMap((folder) => bindFolder(folder, isStill))
}

/**
 * The binds of the repositories in some folders, and of those below that were found. The user's own word counts instead.
 * `isStill`: no command runs that could change them.
 */
export const bindRepositories = (
  binds: ReadonlyArray<Bind>,
  found: ReadonlyArray<string>,
  isStill = true
): ReadonlyArray<Bind> => {
  const own = new Set(binds.map(({ path }) => path))
  const roots = binds.flatMap(({ access, path }) => (access === "write" ? [`${path}/.git`] : []))
  return [...new Set([...roots, ...found])]
    .flatMap((git) => bindRepository(git, isStill))
    .filter(({ path }) => !own.has(path))
}

/** More folders are not looked through. */
const maxFolders = 20_000
/** Packages come without a repository, and there are very many folders of them. */
const skipped = "node_modules"
const atOnce = 8

const isBare = (names: ReadonlySet<string>): boolean =>
  names.has("HEAD") && names.has("objects") && names.has("refs") && names.has("config")

/** Finds the repositories below a folder, near ones first: their `.git`, or the folder itself of a bare one. */
const findBelow = (root: string): Effect.Effect<ReadonlyArray<string>> =>
  Effect.gen(function* () {
    const repositories: Array<string> = []
    let level: ReadonlyArray<string> = [root]
    let count = 0
    while (level.length > 0 && count < maxFolders) {
      const folders = level.slice(0, maxFolders - count)
      count += folders.length
      const below = yield* Effect.forEach(
        folders,
        (folder) =>
          Effect.match(System.list(folder), {
            onFailure: () => [],
            onSuccess: (entries) => {
              if (folder !== root && isBare(new Set(entries.map(({ name }) => name)))) {
                repositories.push(folder)
                return []
              }
              return entries.flatMap(({ kind, name }) => {
                if (name === ".git" && kind !== "link") repositories.push(`${folder}/.git`)
                return kind === "directory" && name !== ".git" && name !== skipped ? [`${folder}/${name}`] : []
              })
            }
          }),
        { concurrency: atOnce }
      )
      level = below.flat()
    }
    if (level.length > 0) {
      yield* Effect.logWarning(
        `Only ${maxFolders} folders of ${root} were looked through: commands could change the hooks and settings of repositories in the others. Choose a smaller folder.`
      )
    }
    return repositories
  })

/**
 * Makes a look-up of the repositories below folders. Each folder is looked through once, before the first command that
 * may change it. A repository that a command makes later is the command's own from its beginning.
 */
export const makeFinder = (): ((binds: ReadonlyArray<Bind>) => Effect.Effect<ReadonlyArray<string>>) => {
  const lookUps = new Map<string, Effect.Effect<ReadonlyArray<string>>>()
  const findOnce = Effect.fnUntraced(function* ({ access, path }: Bind) {
    if (access === "read") return []
    const earlier = lookUps.get(path)
    if (earlier !== undefined) return yield* earlier
    // A command that is interrupted leaves no half of a look-up behind.
    const finding = yield* Effect.cached(Effect.uninterruptible(findBelow(path)))
    lookUps.set(path, finding)
    return yield* finding
  })
  return (binds) => Effect.map(Effect.forEach(binds, findOnce), (lists) => lists.flat())
}
