/** A backend from primitives: every operation, each by itself. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Backend from "../../../core/Backend.ts"
import type { BackendError } from "../../../core/BackendError.ts"
import * as Path from "../files/path.ts"
import * as Files from "./files.ts"
import * as Move from "./move.ts"
import type { Child, Options, Primitives } from "./primitives.ts"
import * as Search from "./search.ts"
import type { Exclusive, Source } from "./target.ts"
import * as Transfer from "./transfer.ts"

export { suspend } from "./suspend.ts"
export { sizeOf, toBytes } from "./target.ts"

/** The largest file, in bytes, if nobody says. */
const maxFileSize = 10 * 1024 * 1024

const isName = ({ name }: Child): boolean => name !== "" && name !== "." && name !== ".." && !/[/\0]/.test(name)

/** Lists a directory, and drops names that would lead out of it. */
const guarded = (primitives: Primitives): Primitives => ({
  ...primitives,
  list: (path) =>
    Effect.map(primitives.list(path), (children) => (children.every(isName) ? children : children.filter(isName)))
})

/** Finds where a path leads, as far as there is something on the way. */
const realPath = (
  resolve: NonNullable<Primitives["resolve"]>,
  path: string
): Effect.Effect<string | undefined, BackendError> => {
  const beyond = () =>
    Effect.map(realPath(resolve, Path.parent(path)), (folder) =>
      folder === undefined ? undefined : Path.join(folder, Path.basename(path))
    )
  return path === "/"
    ? Effect.succeed(path)
    : resolve(path).pipe(
        Effect.catchReason("BackendError", "OutsideRoot", () => Effect.undefined),
        Effect.catchReason("BackendError", "NotFound", beyond),
        Effect.catchReason("BackendError", "NotDirectory", beyond)
      )
}

const realPathsBy = (resolve: NonNullable<Primitives["resolve"]>): NonNullable<Backend.Service["realPaths"]> =>
  Effect.forEach((path) => {
    const normal = Path.normalize("realPaths", path)
    return Result.isSuccess(normal) ? realPath(resolve, normal.success) : Effect.undefined
  })

/** Makes a backend. Two over the same files need the same `locks`. */
export const make = (primitives: Primitives, locks: Exclusive, options: Options = {}): Backend.Service => {
  const source: Source = {
    primitives: guarded(primitives),
    locks,
    maxFileSize: options.maxFileSize ?? maxFileSize,
    concurrency: Math.max(1, Math.floor(options.concurrency ?? 1))
  }
  return {
    ls: Files.ls(source),
    read: Files.read(source),
    write: Files.write(source),
    edit: Files.edit(source),
    delete: Move.remove(source),
    move: Move.move(source),
    grep: Search.grep(source),
    glob: Search.glob(source),
    upload: Transfer.upload(source),
    download: Transfer.download(source),
    realPaths: primitives.resolve === undefined ? undefined : realPathsBy(primitives.resolve)
  }
}
