/** The folders of the machine that an agent may use, by their real paths. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Paths } from "../../../core/Backend.ts"
import { type BackendError, make as makeError } from "../../../core/BackendError.ts"
import * as Path from "../files/path.ts"
import { type Fault, fault, on } from "../local/failure.ts"
import type { Bounds } from "../local/jail.ts"
import * as System from "../local/system.ts"
import type { Folder } from "./options.ts"

/** A folder with its real path; `path` is the path as it was given, from the root. */
interface RealFolder {
  readonly path: string
  readonly real: string
  readonly access: Folder["access"]
}

/** The folders that hold now. */
export interface Folders {
  /** Tells what may be done at a real path, by the deepest folder that it is in. */
  readonly accessOf: (real: string) => Folder["access"] | undefined
  /** Tells whether a real path is a folder of the list, or has one below it. */
  readonly holdsOne: (real: string) => boolean
  /** The folders by their real paths. Of two for the same folder, the later one counts. */
  readonly list: ReadonlyArray<Folder>
  readonly bounds: (access: Folder["access"]) => Bounds
}

/** Finds the real path of a folder. */
const realFolder = (path: string): Effect.Effect<string, Fault> =>
  Effect.gen(function* () {
    const real = yield* System.realpath(path)
    const stats = yield* System.stat(real)
    return stats.isDirectory() ? real : yield* Effect.fail(fault({ _tag: "NotDirectory" }))
  })

const leadsTo = (path: string, target: string): boolean => Path.isWithin(target, path)

/** Looks up folders. `isFirst`: a missing folder fails; later it is left out. */
export const findFolders = (
  folders: ReadonlyArray<Folder>,
  paths: Paths,
  isFirst: boolean
): Effect.Effect<Folders, BackendError> =>
  Effect.gen(function* () {
    const lists = yield* Effect.forEach(folders, ({ access, path: inputPath }) =>
      Effect.gen(function* () {
        const path = yield* Effect.fromResult(Path.resolve("open", inputPath, paths))
        const real = yield* on("open", inputPath, realFolder(path))
        return [{ path, real, access } satisfies RealFolder]
      }).pipe((effect) => (isFirst ? effect : Effect.orElseSucceed(effect, (): ReadonlyArray<RealFolder> => [])))
    )
    const resolvedFolders = lists.flat()
    // Of two for the same folder, the later one counts.
    const deepestFirst = resolvedFolders.toReversed().toSorted((left, right) => right.real.length - left.real.length)
    const find = (real: string) => deepestFirst.find((folder) => Path.isWithin(real, folder.real))
    const accessOf: Folders["accessOf"] = (real) => find(real)?.access
    return {
      accessOf,
      list: resolvedFolders.map(({ access, real }) => ({ path: real, access })),
      holdsOne: (real) => resolvedFolders.some((folder) => Path.isWithin(folder.real, real)),
      bounds: (wanted) => {
        const usable = resolvedFolders.filter(({ access }) => wanted === "read" || access === "write")
        return {
          has: (real) => {
            const access = accessOf(real)
            return access === "write" || access === wanted
          },
          folderOf: (real) => find(real)?.real,
          leads: (path) => usable.some((folder) => leadsTo(path, folder.real) || leadsTo(path, folder.path))
        }
      }
    }
  })

/** Finds the working folder. A backend must be able to say its path. */
export const findCwd = (inputPath: string): Effect.Effect<string, BackendError> =>
  Effect.gen(function* () {
    const real = yield* on("open", inputPath, realFolder(inputPath))
    const normal = Path.normalize("open", real)
    return Result.isSuccess(normal) && normal.success === real
      ? real
      : yield* Effect.fail(
          makeError("open", inputPath, {
            _tag: "InvalidPath",
            problem: `${JSON.stringify(real)} can't be written as a path; rename the folder`
          })
        )
  })
