/** Uploads and downloads of files that belong to several backends. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Backend from "../../../core/Backend.ts"
import * as BackendError from "../../../core/BackendError.ts"
import { grouped, isFolder, locate, type Part, type Place, restoreError, type Routes } from "./routes.ts"

/**
 * Runs an upload or a download: what can't go anywhere fails by itself, the rest goes to the backends it belongs to.
 */
export const transfer = <I, A>(
  routes: Routes,
  operation: "upload" | "download",
  items: ReadonlyArray<I>,
  pathOf: (item: I) => string,
  run: (
    backend: Backend.Service,
    items: ReadonlyArray<{ readonly place: Place; readonly item: I }>
  ) => Effect.Effect<ReadonlyArray<Backend.Transfer<A>>>,
  restore: (part: Part, value: A) => A
): Effect.Effect<ReadonlyArray<Backend.Transfer<A>>> => {
  const failed = (path: string, error: BackendError.BackendError): Backend.Transfer<A> => ({ path, ok: false, error })
  const sorted = items.map((item) => {
    const located = locate(routes, operation, pathOf(item))
    if (Result.isFailure(located)) return failed(pathOf(item), located.failure)
    const place = located.success
    if (!isFolder(routes, place)) return { place, item }
    return failed(place.path, BackendError.make(operation, place.inputPath, { _tag: "IsDirectory" }))
  })
  const going = sorted.filter((each) => "place" in each)
  const results = grouped(
    going,
    (part, group) => run(part.backend, group),
    // In the words of the backend that should have said it.
    ({ place }) =>
      failed(
        place.inner,
        BackendError.make(operation, place.inner, { _tag: "Unavailable" }, { detail: "there was no answer for it" })
      )
  )
  return Effect.map(results, (transfers) => {
    const answers = new Map(going.map((each, index) => [each, transfers[index]]))
    return sorted.flatMap((each): ReadonlyArray<Backend.Transfer<A>> => {
      if (!("place" in each)) return [each]
      const { part, path } = each.place
      const answer = answers.get(each)
      if (answer === undefined) return []
      return answer.ok
        ? [{ path, ok: true, value: restore(part, answer.value) }]
        : [failed(path, restoreError(each.place)(answer.error))]
    })
  })
}
