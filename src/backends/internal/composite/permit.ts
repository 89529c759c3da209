/** Asks for permission for several changes at once, by the parts of a composite. */
import * as Effect from "effect/Effect"
import type * as Backend from "../../../core/Backend.ts"
import type * as BackendError from "../../../core/BackendError.ts"
import { locate, type Part, type Place, type Routes, restoreErrors } from "./routes.ts"

interface PlacedChange {
  readonly place: Place
  readonly change: Backend.PlannedChange
}

/**
 * Splits a change by the parts that it changes: a move from one to another is a deletion and a file that is written.
 */
const plannedOf = Effect.fnUntraced(function* (
  routes: Routes,
  change: Backend.PlannedChange
): Effect.fn.Return<ReadonlyArray<PlacedChange>, BackendError.BackendError> {
  const at = (path: string) => Effect.fromResult(locate(routes, "patch", path))
  if (change.operation !== "move") {
    const place = yield* at(change.path)
    return [{ place, change: { operation: change.operation, path: place.inner } }]
  }
  const [from, to] = [yield* at(change.from), yield* at(change.to)]
  return from.part === to.part
    ? [{ place: from, change: { operation: "move", from: from.inner, to: to.inner } }]
    : [
        { place: from, change: { operation: "read", path: from.inner } },
        { place: from, change: { operation: "delete", path: from.inner } },
        { place: to, change: { operation: "write", path: to.inner } }
      ]
})

/** Asks each part about its own, one after the other, before any of them is changed. */
export const permitOf =
  (routes: Routes): NonNullable<Backend.Service["permit"]> =>
  ({ changes, text }) =>
    Effect.gen(function* () {
      const groups = new Map<Part, Array<PlacedChange>>()
      for (const planned of (yield* Effect.forEach(changes, (change) => plannedOf(routes, change))).flat()) {
        const group = groups.get(planned.place.part)
        if (group === undefined) groups.set(planned.place.part, [planned])
        else group.push(planned)
      }
      const permits: Array<Backend.Permit> = []
      for (const [part, planned] of groups) {
        const [first] = planned
        if (part.backend.permit === undefined || first === undefined) continue
        const asking = part.backend.permit({ text, changes: planned.map(({ change }) => change) })
        permits.push(yield* restoreErrors(first.place)(asking))
      }
      return (work) => permits.reduce((inner, permit) => permit(inner), work)
    })
