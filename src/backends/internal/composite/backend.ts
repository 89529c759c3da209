/** The operations of a composite: each goes to the backend that a path belongs to, or to all that it spans. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Backend from "../../../core/Backend.ts"
import * as BackendError from "../../../core/BackendError.ts"
import * as Path from "../files/path.ts"
import { everywhere, spanning } from "./fanOut.ts"
import { across } from "./move.ts"
import { permitOf } from "./permit.ts"
import {
  grouped,
  isFolder,
  isSeen,
  locate,
  orNothing,
  type Part,
  type Place,
  restored,
  restoreError,
  type Routes,
  restoreErrors,
  toOuter
} from "./routes.ts"
import * as Search from "./search.ts"
import { transfer } from "./transfer.ts"

type Failing<A> = Effect.Effect<A, BackendError.BackendError>

const fail = (operation: string, place: Place, reason: BackendError.Reason) =>
  Effect.fail(BackendError.make(operation, place.inputPath, reason))

const restoredListing = (part: Part, listing: Backend.Listing): Backend.Listing => ({
  ...listing,
  entries: listing.entries.map((entry) => restored(part, entry))
})

/** The operations on files of a composite. */
export const backendOf = (routes: Routes): Backend.Service => {
  const at = <A>(operation: string, path: string, run: (place: Place) => Failing<A>): Failing<A> =>
    Effect.flatMap(Effect.fromResult(locate(routes, operation, path)), run)
  const atFile = <A>(operation: string, path: string, run: (place: Place) => Failing<A>): Failing<A> =>
    at(operation, path, (place) =>
      isFolder(routes, place) ? fail(operation, place, { _tag: "IsDirectory" }) : restoreErrors(place)(run(place))
    )

  const ls = (path: string): Failing<Backend.Listing> =>
    at("ls", path, (place) => {
      const own = Effect.map(restoreErrors(place)(place.part.backend.ls(place.inner)), (listing) =>
        restoredListing(place.part, listing)
      )
      const below = routes.below(place.path)
      if (below.length === 0) return own
      const names = below.map(({ mount }) => Path.relative(mount, place.path).split("/")[0] ?? "")
      const folders = Array.from(new Set(names), (name): Backend.Entry => ({
        path: Path.join(place.path, name),
        kind: "directory"
      }))
      return Effect.map(orNothing<Backend.Listing>(place, { entries: [] })(own), (listing) => ({
        ...listing,
        entries: [...listing.entries.filter((entry) => isSeen(routes, place.part, entry.path)), ...folders].sort(
          (left, right) => Path.compare(left.path, right.path)
        )
      }))
    })

  const move = (from: string, to: string): Failing<void> =>
    Effect.gen(function* () {
      const source = yield* Effect.fromResult(locate(routes, "move", from))
      const target = yield* Effect.fromResult(locate(routes, "move", to))
      if (isFolder(routes, source)) return yield* fail("move", source, mounted(source))
      if (source.part === target.part && !isFolder(routes, target)) {
        return yield* Effect.mapError(source.part.backend.move(source.inner, target.inner), (error) =>
          error.path === target.inner && target.inner !== source.inner
            ? BackendError.at(error, error.operation, target.inputPath)
            : restoreError(source)(error)
        )
      }
      if (!isFolder(routes, target)) return yield* across(source, target)
      // A missing source is reported first, as in any backend.
      const exists = Effect.catchReason(source.part.backend.ls(source.inner), "BackendError", "NotDirectory", () =>
        source.part.backend.read(source.inner, { limit: 0 })
      )
      yield* Effect.mapError(exists, (error) => BackendError.at(error, "move", source.inputPath))
      return yield* fail("move", target, { _tag: "AlreadyExists" })
    })

  const mounted = (place: Place): BackendError.Reason => ({
    _tag: "InvalidPath",
    problem:
      place.path === "/"
        ? "the root can't be deleted or moved"
        : "a backend is mounted at it or below it; delete or move what is in it"
  })

  const realPaths = (paths: ReadonlyArray<string>): Failing<ReadonlyArray<string | undefined>> => {
    const located = paths.map((path) => locate(routes, "realPaths", path))
    const items = located.flatMap((result) => (Result.isSuccess(result) ? [{ place: result.success }] : []))
    const real = grouped(
      items,
      (part, group) => {
        const inner = group.map(({ place }) => place.inner)
        return Effect.map(
          part.backend.realPaths?.(inner) ?? Effect.succeed(inner),
          (answers): ReadonlyArray<string | undefined> =>
            answers.map((path) => (path === undefined ? undefined : toOuter(part, path)))
        )
      },
      (): string | undefined => undefined
    )
    return Effect.map(real, (answers) => {
      let next = 0
      return located.map((result) => (Result.isSuccess(result) ? answers[next++] : undefined))
    })
  }

  return {
    ls,
    read: (path, window) =>
      atFile("read", path, ({ inner, part }) =>
        Effect.map(part.backend.read(inner, window), (file) => restored(part, file))
      ),
    write: (path, content, options) =>
      atFile("write", path, ({ inner, part }) =>
        Effect.map(part.backend.write(inner, content, options), (outcome) => restored(part, outcome))
      ),
    edit: (path, replacements, options) =>
      atFile("edit", path, ({ inner, part }) =>
        Effect.map(part.backend.edit(inner, replacements, options), (edited) => restored(part, edited))
      ),
    delete: (path, options) =>
      at("delete", path, (place) =>
        isFolder(routes, place)
          ? fail("delete", place, mounted(place))
          : restoreErrors(place)(place.part.backend.delete(place.inner, options))
      ),
    move,
    glob: (query) =>
      everywhere(
        routes,
        "glob",
        query,
        (backend, one) => backend.glob(one),
        Search.glob,
        restoredListing,
        { entries: [] },
        (results) => Search.mergeListings(results, query.limit),
        spanning(query.pattern, query.pattern.includes("/") ? { ...query, pattern: "**" } : query)
      ),
    grep: (query) => {
      const { glob, ...all } = query
      return everywhere(
        routes,
        "grep",
        query,
        (backend, one) => backend.grep(one),
        Search.grep,
        (part, result): Backend.GrepResult => ({ ...result, files: result.files.map((file) => restored(part, file)) }),
        { files: [] },
        (results) => Search.mergeGreps(results, query),
        spanning(glob, glob?.includes("/") === true ? all : query)
      )
    },
    upload: (files) =>
      transfer(
        routes,
        "upload",
        files,
        ({ path }) => path,
        (backend, group) =>
          backend.upload(group.map(({ item, place }) => ({ path: place.inner, content: item.content }))),
        restored
      ),
    download: (paths) =>
      transfer(
        routes,
        "download",
        paths,
        (path) => path,
        (backend, group) => backend.download(group.map(({ place }) => place.inner)),
        (_, bytes) => bytes
      ),
    realPaths: routes.parts.some(({ backend }) => backend.realPaths !== undefined) ? realPaths : undefined,
    permit: routes.parts.some(({ backend }) => backend.permit !== undefined) ? permitOf(routes) : undefined,
    paths: routes.fallback.backend.paths,
    onHost: routes.parts.some(({ backend }) => backend.onHost === true)
  }
}
