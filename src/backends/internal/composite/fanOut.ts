/** A search over all backends that a directory spans. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Backend from "../../../core/Backend.ts"
import * as BackendError from "../../../core/BackendError.ts"
import * as Path from "../files/path.ts"
import { compileGlob } from "../glob/glob.ts"
import { isSeen, locate, orNothing, type Part, type Place, type Routes, restoreErrors, toOuter } from "./routes.ts"
import type { Keep } from "./search.ts"

type Failing<A> = Effect.Effect<A, BackendError.BackendError>

/** The part of a search in one backend: all its files, or the matches of a glob for full paths. */
interface Span<Q> {
  readonly place: Place
  readonly query: Q
  readonly wanted: (path: string) => boolean
}

/** Runs a search in the backend of its path and in all backends mounted below it. Fails if one of them fails. */
export const everywhere = <Q extends { readonly path?: string | undefined }, A extends object>(
  routes: Routes,
  operation: "grep" | "glob",
  query: Q,
  one: (backend: Backend.Service, query: Q) => Failing<A>,
  some: (backend: Backend.Service, query: Q, keep: Keep) => Failing<A>,
  restore: (part: Part, result: A) => A,
  nothing: A,
  merge: (results: ReadonlyArray<A>) => A,
  spanOf: (from: Place, to: Place) => Result.Result<Span<Q> | undefined, BackendError.Reason>
): Failing<A> =>
  Effect.flatMap(
    Effect.fromResult(locate(routes, operation, query.path ?? Path.workingFolder(routes.fallback.backend.paths))),
    (place) => {
      const inPlace = { ...query, path: place.inner }
      const below = routes.below(place.path)
      if (below.length === 0) {
        return Effect.map(restoreErrors(place)(one(place.part.backend, inPlace)), (result) =>
          restore(place.part, result)
        )
      }
      const spans: Array<Span<Q>> = [{ place, query: inPlace, wanted: () => true }]
      for (const part of below) {
        const span = spanOf(place, { inputPath: part.mount, path: part.mount, part, inner: "/" })
        if (Result.isFailure(span)) return Effect.fail(BackendError.make(operation, place.inputPath, span.failure))
        if (span.success !== undefined) spans.push(span.success)
      }
      const results = Effect.forEach(
        spans,
        (span) => {
          const { part } = span.place
          const counts = (path: string) => {
            const outer = toOuter(part, path)
            return isSeen(routes, part, outer) && span.wanted(outer)
          }
          const searching = some(part.backend, span.query, (paths) => Effect.succeed(new Set(paths.filter(counts))))
          return searching.pipe(
            span.place === place ? orNothing(place, nothing) : (effect) => effect,
            restoreErrors(span.place),
            Effect.map((result) => restore(part, result)),
            Effect.result
          )
        },
        { concurrency: "unbounded" }
      )
      return Effect.flatMap(results, (all) => Effect.map(Effect.fromResult(Result.all(all)), merge))
    }
  )

/** Makes the query by which a search looks into a mounted backend for the files that a glob of the whole path means. */
export const spanning =
  <Q extends { readonly path?: string | undefined }>(
    pattern: string | undefined,
    inside: Q
  ): ((from: Place, to: Place) => Result.Result<Span<Q> | undefined, BackendError.Reason>) =>
  (from, to) => {
    const query = { ...inside, path: "/" }
    // A pattern without `/` means names at any depth: here as there.
    if (pattern === undefined || !pattern.includes("/")) {
      return Result.succeed({ place: to, query, wanted: () => true })
    }
    return Result.map(compileGlob(pattern), ({ base, matches }) => {
      const folder = Path.join(from.path, base)
      if (!Path.isWithin(folder, to.path) && !Path.isWithin(to.path, folder)) return undefined
      return { place: to, query, wanted: (path) => matches(Path.relative(path, from.path)) }
    })
  }
