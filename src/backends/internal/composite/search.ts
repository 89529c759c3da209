/** Searches with a filter, where the limit counts only the filtered results. */
import * as Effect from "effect/Effect"
import type * as Backend from "../../../core/Backend.ts"
import type { BackendError } from "../../../core/BackendError.ts"
import { defined } from "../../../support/json/defined.ts"
import * as Path from "../files/path.ts"
import { limitOf } from "../search/search.ts"

/** Selects the visible paths of a backend. */
export type Keep = (paths: ReadonlyArray<string>) => Effect.Effect<ReadonlySet<string>, BackendError>

/** Operations on the results of a kind of search. */
interface Kind<A> {
  readonly size: (result: A) => number
  readonly cut: (result: A, limit: number) => A
  readonly truncated: (result: A) => Backend.Truncation | undefined
  readonly mark: (result: A, truncated: Backend.Truncation | undefined) => A
  readonly keep: (result: A, paths: ReadonlySet<string>) => A
  readonly paths: (result: A) => ReadonlyArray<string>
  readonly merge: (results: ReadonlyArray<A>) => A
}

const listings: Kind<Backend.Listing> = {
  size: ({ entries }) => entries.length,
  cut: ({ entries }, limit) => ({ entries: entries.slice(0, limit) }),
  truncated: ({ truncated }) => truncated,
  mark: ({ entries }, truncated) => defined({ entries, truncated }),
  keep: (listing, paths) => ({ ...listing, entries: listing.entries.filter(({ path }) => paths.has(path)) }),
  paths: ({ entries }) => entries.map(({ path }) => path),
  merge: (results) => ({
    entries: results.flatMap(({ entries }) => entries).sort((left, right) => Path.compare(left.path, right.path))
  })
}

/** In lines for `content`, else in files; as its limit is. */
const grepResults = (mode: Backend.GrepQuery["mode"]): Kind<Backend.GrepResult> => {
  const isContent = mode === undefined || mode === "content"
  const weight = (file: Backend.GrepFile): number => (isContent ? file.matches.length : 1)
  return {
    size: ({ files }) => files.reduce((sum, file) => sum + weight(file), 0),
    cut: ({ files }, limit) => {
      const some: Array<Backend.GrepFile> = []
      let room = limit
      for (const file of files) {
        if (room <= 0) break
        const fits = weight(file) <= room
        some.push(fits ? file : { path: file.path, count: room, matches: file.matches.slice(0, room) })
        room -= weight(file)
      }
      return { files: some }
    },
    truncated: ({ truncated }) => truncated,
    mark: ({ files }, truncated) => defined({ files, truncated }),
    keep: (result, paths) => ({ ...result, files: result.files.filter(({ path }) => paths.has(path)) }),
    paths: ({ files }) => files.map(({ path }) => path),
    merge: (results) => ({
      files: results.flatMap(({ files }) => files).sort((left, right) => Path.compare(left.path, right.path))
    })
  }
}

/**
 * Asks for more and more until there is enough that counts. It asks for one more than the limit at once, so a search
 * of which all counts is done once. A backend that gives less than was asked for has no more to give.
 */
const search = Effect.fnUntraced(function* <A>(
  kind: Kind<A>,
  limit: number,
  ask: (limit: number) => Effect.Effect<A, BackendError>,
  keep: Keep
) {
  let requestLimit = limit + 1
  for (;;) {
    const result = yield* ask(requestLimit)
    const selection = kind.keep(result, yield* keep(kind.paths(result)))
    if (kind.size(selection) > limit) return kind.mark(kind.cut(selection, limit), "limit")
    const truncated = kind.truncated(result)
    if (truncated !== "limit" || kind.size(result) < requestLimit) return kind.mark(selection, truncated)
    requestLimit *= 4
  }
})

/** A glob with the results that `keep` selects. */
export const glob = (
  backend: Backend.Service,
  query: Backend.GlobQuery,
  keep: Keep
): Effect.Effect<Backend.Listing, BackendError> =>
  search(listings, limitOf(query.limit), (limit) => backend.glob({ ...query, limit }), keep)

/** A grep with the results that `keep` selects. */
export const grep = (
  backend: Backend.Service,
  query: Backend.GrepQuery,
  keep: Keep
): Effect.Effect<Backend.GrepResult, BackendError> =>
  search(grepResults(query.mode), limitOf(query.limit), (limit) => backend.grep({ ...query, limit }), keep)

/**
 * Merges the results of several backends. A timeout takes precedence over a limit, since a higher limit would not
 * help.
 */
const merge = <A>(kind: Kind<A>, results: ReadonlyArray<A>, limit: number): A => {
  const all = kind.merge(results)
  const reasons = results.map(kind.truncated)
  const isCut = kind.size(all) > limit || reasons.includes("limit")
  return kind.mark(kind.cut(all, limit), reasons.includes("time") ? "time" : isCut ? "limit" : undefined)
}

/** Puts listings together, in path order, as many entries as the limit of the query allows. */
export const mergeListings = (results: ReadonlyArray<Backend.Listing>, limit: number | undefined): Backend.Listing =>
  merge(listings, results, limitOf(limit))

/** Puts the results of one query together, in path order, as much as its limit allows. */
export const mergeGreps = (results: ReadonlyArray<Backend.GrepResult>, query: Backend.GrepQuery): Backend.GrepResult =>
  merge(grepResults(query.mode), results, limitOf(query.limit))
