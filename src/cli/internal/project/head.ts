/** The head of a git work tree, by reading alone: no program of the repository runs. */
import { readFile, stat } from "node:fs/promises"
import { dirname, join, resolve } from "node:path"
import * as Effect from "effect/Effect"

/** Reads a small regular file. A pipe would never end. */
const readText = (path: string): Effect.Effect<string | undefined> =>
  Effect.orElseSucceed(
    Effect.tryPromise(() =>
      stat(path).then((found) => (found.isFile() && found.size <= 1_000 ? readFile(path, "utf8") : undefined))
    ),
    () => undefined
  )

/** Finds the git folder of the work tree around a folder. */
const findGit = Effect.fnUntraced(function* (folder: string) {
  for (let at = folder; ; at = dirname(at)) {
    const path = join(at, ".git")
    const info = yield* Effect.orElseSucceed(
      Effect.tryPromise(() => stat(path)),
      () => undefined
    )
    if (info?.isDirectory() === true) return path
    if (info?.isFile() === true) {
      const target = /^gitdir: (.+)/.exec((yield* readText(path)) ?? "")?.[1]
      return target === undefined ? undefined : resolve(at, target.trim())
    }
    if (dirname(at) === at) return undefined
  }
})

/** Reads the file `HEAD` of the work tree around a folder. `undefined` outside of git. */
export const readHead = Effect.fnUntraced(function* (folder: string) {
  const git = yield* findGit(folder)
  return git === undefined ? undefined : yield* readText(join(git, "HEAD"))
})

/** Gives the branch in the text of `HEAD`. `undefined` if no branch is checked out. */
export const branchIn = (head: string): string | undefined => /^ref: refs\/heads\/(.+)/.exec(head)?.[1]

/** Reads the branch of a folder. `undefined` without one. */
export const readBranch = (folder: string): Effect.Effect<string | undefined> =>
  Effect.map(readHead(folder), (head) => (head === undefined ? undefined : branchIn(head)))
