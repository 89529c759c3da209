/** The folders of a project: from the root of its repository down to the working folder. */
import { homedir } from "node:os"
import { dirname, join } from "node:path"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import { valueAt } from "../../../support/json/valueAt.ts"
import { problemOf } from "../../../support/store/disk.ts"

/** The real path of a folder or a file. `undefined` if there is none. */
export const realOf = (path: string) =>
  FileSystem.FileSystem.use((fs) => Effect.option(fs.realPath(path)).pipe(Effect.map(Option.getOrUndefined)))

/** Tells whether only this user and the administrator may write to a folder. */
const isOwn = (folder: string) =>
  FileSystem.FileSystem.use((fs) =>
    Effect.match(fs.stat(folder), {
      onFailure: () => false,
      onSuccess: ({ mode, uid }) =>
        (mode & 0o002) === 0 &&
        Option.match(uid, { onNone: () => true, onSome: (id) => id === 0 || id === process.getuid?.() })
    })
  )

/**
 * Lists the project's folders, the outermost first and the working folder last. Outside of a repository these are the
 * folders below the user's home. A folder above that others may write to ends the search.
 */
export const foldersOf = Effect.fnUntraced(function* (project: string) {
  const fs = yield* FileSystem.FileSystem
  const start = (yield* realOf(project)) ?? project
  const home = (yield* realOf(homedir())) ?? homedir()
  const isRoot = (folder: string) => Effect.orElseSucceed(fs.exists(join(folder, ".git")), () => false)
  const folders: Array<string> = [start]
  let folder = start
  while (!(yield* isRoot(folder))) {
    const parent = dirname(folder)
    // Neither in a repository nor below the home: the folders above are somebody else's.
    if (parent === folder || !(yield* isOwn(parent))) return [start]
    if (parent === home) return folders
    folder = parent
    folders.unshift(folder)
  }
  return folders
})

/** The text of a file, or a reason not to read it. */
type SmallText = { readonly text: string } | { readonly problem: string }

const kinds: { readonly [type: string]: string } = {
  Directory: "a folder",
  FIFO: "a pipe",
  Socket: "a socket",
  CharacterDevice: "a device",
  BlockDevice: "a device"
}

/** Reads a regular file of at most so many bytes: a pipe would never end. `undefined` if nothing has this path. */
export const readSmall = Effect.fnUntraced(function* (path: string, most: number) {
  const fs = yield* FileSystem.FileSystem
  const isMissing = (error: PlatformError) => error.reason._tag === "NotFound"
  const attempt: Effect.Effect<SmallText, PlatformError> = Effect.gen(function* () {
    const { size, type } = yield* fs.stat(path)
    if (type !== "File") return { problem: `it is ${valueAt(kinds, type) ?? "no file"}, and no regular file` }
    if (Number(size) > most) return { problem: `it has ${size} bytes, and at most ${most} are read` }
    return { text: yield* fs.readFileString(path) }
  })
  const missing = Effect.match(fs.readLink(path), {
    onFailure: () => undefined,
    onSuccess: (target) => ({ problem: `its link leads to ${target}, where nothing is` })
  })
  return yield* Effect.catch(attempt, (error) =>
    isMissing(error) ? missing : Effect.succeed({ problem: problemOf(error).replace(`${path}: `, "") })
  )
})

/** Reads a regular file of at most so many bytes. `undefined` for any other. */
export const smallFile = (path: string, most: number) =>
  Effect.map(readSmall(path, most), (outcome) =>
    outcome !== undefined && "text" in outcome ? outcome.text : undefined
  )
