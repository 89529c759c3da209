/** Makes the file service of a folder, for both layers. */
import * as Effect from "effect/Effect"
import type * as Backend from "../../../core/Backend.ts"
import { type BackendError, make as makeError } from "../../../core/BackendError.ts"
import * as Derive from "../derive/backend.ts"
import { fail, find, on as inTarget, type Source } from "../derive/target.ts"
import * as Path from "../files/path.ts"
import { asking } from "../git/asking.ts"
import { on, toBackendError } from "./failure.ts"
import * as Folder from "./folder.ts"
import * as Jail from "./jail.ts"
import * as Locks from "./locks.ts"
import type { Options } from "./options.ts"
import * as Protected from "./protected.ts"
import * as Ripgrep from "./ripgrep.ts"
import * as Search from "./search.ts"

const defaultMaxFileSize = 100 * 1024 * 1024

export interface Files {
  readonly jail: Jail.Jail
  readonly service: Backend.Service
}

/** Deletes a path recursively, including names that no path can express. */
const removeAll = (jail: Jail.Jail, source: Source, path: string): Effect.Effect<void, BackendError> =>
  inTarget(
    source,
    "delete",
    path,
    (target) =>
      Effect.gen(function* () {
        if (target.normal === "/")
          return yield* fail(target, { _tag: "InvalidPath", problem: "the root can't be deleted" })
        const { isLink, kind } = yield* find(source, target)
        if (kind !== "directory" || isLink === true) return yield* source.primitives.remove(target.real)
        let any = false
        const removal = Folder.removeTree(jail, Path.segments(target.real), () => {
          any = true
        })
        return yield* Effect.mapError(removal, (failed) => {
          const error = toBackendError("delete", target.real)(failed)
          if (!any) return error
          const detail = `some of it was deleted already, then: ${error.message}`
          return makeError("delete", target.real, { _tag: "Unavailable" }, { detail, cause: error })
        })
      }).pipe(source.locks.hold([target.real])),
    true
  )

/** The service in a root. Changes are made in `changed`, which is the same root with the same or fewer folders. */
export const inJail = (
  jail: Jail.Jail,
  changed: Jail.Jail,
  options: Omit<Options, "root">
): Effect.Effect<Backend.Service, BackendError> =>
  Effect.gen(function* () {
    const maxFileSize = options.maxFileSize ?? defaultMaxFileSize
    const primitives = Folder.primitives(jail, maxFileSize, changed)
    const ripgrep = yield* on("open", options.ripgrep || "rg", Ripgrep.find(jail, options.ripgrep))
    const searched: Search.SearchParts = { jail, primitives, maxFileSize, ripgrep }
    const locks = Locks.make(jail)
    const source: Source = { primitives, locks, maxFileSize, concurrency: 1 }
    const derived = Derive.make(primitives, locks, { maxFileSize })
    return asking(Protected.findIn(jail), {
      ...derived,
      onHost: true,
      delete: (path, how) => (how?.recursive === true ? removeAll(changed, source, path) : derived.delete(path, how)),
      grep: Search.grep(searched),
      glob: Search.glob(searched)
    })
  })

/** Fails on Windows. */
export const checkSystem = (root: string): Effect.Effect<void, BackendError> => {
  const detail = "the root can't be guarded on Windows; run this in WSL"
  return process.platform === "win32"
    ? Effect.fail(makeError("open", root, { _tag: "Unsupported" }, { detail }))
    : Effect.void
}

/** Opens the root. */
export const make = (options: Options): Effect.Effect<Files, BackendError> =>
  Effect.gen(function* () {
    yield* checkSystem(options.root)
    const opened = Effect.mapError(Jail.make(options.root), (failed) =>
      failed.reason._tag === "NotFound"
        ? { ...failed, detail: "make this folder first; only what is in it is made" }
        : failed
    )
    const jail = yield* on("open", options.root, opened)
    return { jail, service: yield* inJail(jail, jail, options) }
  })
