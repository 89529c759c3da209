/** Runs operations of stores on names that are checked first. */
import * as Effect from "effect/Effect"
import { nameProblem } from "../../support/text/names.ts"
import { make as failure, type Reason, type StoreError } from "../StoreError.ts"
import type { Fault } from "./table.ts"

/** Refuses a name that is none, or has more than `most` characters, and names the operation in each failure. */
export const within =
  (most: number) =>
  (operation: string, name: string) =>
  <A>(effect: Effect.Effect<A, Reason | Fault>): Effect.Effect<A, StoreError> => {
    const problem = nameProblem(name, most)
    const checked = problem === undefined ? effect : Effect.fail<Reason>({ _tag: "InvalidName", problem })
    return Effect.mapError(checked, (reason) => failure(operation, name, reason))
  }
