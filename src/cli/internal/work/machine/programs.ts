/** Finds installed programs. What a project brings is never one: its `node_modules/.bin` may be on the path. */
import { delimiter, isAbsolute, join } from "node:path"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"

/** The installed programs of a machine. */
export interface InstalledPrograms {
  /** The path of the machine, without the folders of the project. */
  readonly path: string
  /** Finds the file of a program. `undefined` if it is not installed. */
  readonly find: (name: string) => Effect.Effect<string | undefined>
}

const isBelow = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder.endsWith("/") ? folder : `${folder}/`)

/** Reads the path, without folders and links that lead into these folders. */
export const installedBeside = Effect.fnUntraced(function* (
  folders: ReadonlyArray<string>,
  path: string = process.env["PATH"] ?? ""
) {
  const fs = yield* FileSystem.FileSystem
  const realOf = (file: string) => Effect.orElseSucceed(fs.realPath(file), () => undefined)
  const real = (yield* Effect.forEach(folders, realOf)).filter((one) => one !== undefined)
  const isOutside = (file: string | undefined): file is string =>
    file !== undefined && ![...real, ...folders].some((folder) => isBelow(file, folder))
  const entries = yield* Effect.filter(
    path.split(delimiter).filter((entry) => isAbsolute(entry) && !folders.some((folder) => isBelow(entry, folder))),
    (entry) => Effect.map(realOf(entry), isOutside)
  )
  const isProgram = Effect.fnUntraced(function* (file: string) {
    if (!isOutside(yield* realOf(file))) return false
    const info = yield* Effect.orElseSucceed(fs.stat(file), () => undefined)
    return info?.type === "File" && (info.mode & 0o111) !== 0
  })
  return {
    path: entries.join(delimiter),
    find: (name) =>
      Effect.map(
        Effect.filter(isAbsolute(name) ? [name] : entries.map((entry) => join(entry, name)), isProgram),
        ([first]) => first
      )
  } satisfies InstalledPrograms
})
