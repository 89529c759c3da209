/** Opens the store of files that turns changed, beside the sessions of the user. */
import { getCompileCacheDir } from "node:module"
import { join, resolve } from "node:path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as FileCheckpoints from "../../../sessions/FileCheckpoints.ts"
import type { Places } from "../config/places.ts"
import type { Folders } from "./machine/host.ts"

/** A file of its own: it may have a gigabyte, which the sessions need not carry. */
const fileOf = ({ data }: Places): string => join(data, "checkpoints.db")

/** Opens it until the scope ends. Without it a chat goes on, and `onProblem` says why. */
export const openCheckpoints = <R>(
  { folders, places }: { readonly folders: Folders; readonly places: Places },
  onProblem: (message: string) => Effect.Effect<void, never, R>
) => {
  const list = (): ReadonlyArray<string> => [
    places.project,
    ...folders.list().flatMap(({ access, path }) => (access === "write" ? [path] : []))
  ]
  const locate = (path: string): string | undefined => {
    const own = resolve(places.project, path)
    return list().some((folder) => own === folder || own.startsWith(folder === "/" ? folder : `${folder}/`))
      ? own
      : undefined
  }
  // In a home, `/undo` would remove the lock and the draft of another chat, and the code that node compiled.
  const codeCache = getCompileCacheDir()
  const omit = codeCache === undefined ? [places.data] : [places.data, codeCache]
  return Layer.build(FileCheckpoints.layer({ folders: list(), omit, file: fileOf(places), locate })).pipe(
    Effect.map((built) => Context.get(built, FileCheckpoints.FileCheckpoints)),
    Effect.catch(({ message }) => Effect.as(onProblem(message), undefined))
  )
}
