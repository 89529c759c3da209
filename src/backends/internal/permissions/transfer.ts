/** Uploads and downloads behind rules. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Backend from "../../../core/Backend.ts"
import * as BackendError from "../../../core/BackendError.ts"
import * as Path from "../files/path.ts"
import type { Guard } from "./guard.ts"
import type { Action, FileOperation } from "./model.ts"

/** Asks about all files at once, and runs the transfer of the allowed ones. */
export const transfer = <I, A>(
  guard: Guard,
  action: Action,
  operation: FileOperation,
  items: ReadonlyArray<I>,
  pathOf: (item: I) => string,
  run: (items: ReadonlyArray<I>) => Effect.Effect<ReadonlyArray<Backend.Transfer<A>>>
): Effect.Effect<ReadonlyArray<Backend.Transfer<A>>> => {
  const failed = (path: string, error: BackendError.BackendError): Backend.Transfer<A> => ({ path, ok: false, error })
  const normal = items.map((item) => Path.resolve(action.operation, pathOf(item), guard.paths))
  const valid = items.flatMap((item, index) => {
    const path = normal[index]
    return path !== undefined && Result.isSuccess(path) ? [{ item, path: path.success }] : []
  })
  const subjects = valid.map(({ item, path }) => ({ needs: [{ operation, inputPath: pathOf(item), path }] }))
  const going = guard.authorise({ name: action.operation, action }, subjects, ({ refusals }) =>
    Effect.gen(function* () {
      const allowed = valid.filter((_, index) => refusals[index] === undefined)
      const outcomes = allowed.length === 0 ? [] : yield* run(allowed.map(({ item }) => item))
      let next = 0
      return valid.map(({ item, path }, index) => {
        const refused = refusals[index]
        if (refused !== undefined) return failed(path, refused)
        return (
          outcomes[next++] ??
          failed(
            path,
            BackendError.make(action.operation, pathOf(item), { _tag: "Unavailable" }, { detail: "no answer" })
          )
        )
      })
    })
  )
  const outcomes = Effect.catch(going, (error) =>
    Effect.succeed(valid.map(({ item, path }) => failed(path, BackendError.at(error, action.operation, pathOf(item)))))
  )
  return Effect.map(outcomes, (transfers) => {
    let next = 0
    return items.flatMap((item, index) => {
      const path = normal[index]
      const outcome =
        path !== undefined && Result.isFailure(path) ? failed(pathOf(item), path.failure) : transfers[next++]
      return outcome === undefined ? [] : [outcome]
    })
  })
}
