/** Failures of stores, and the check of names before an operation. */
import * as Effect from "effect/Effect"
import { nameProblem } from "../../support/text/names.ts"
import { StoreError } from "../StoreError.ts"
import type { Fault } from "./table.ts"

export type Reason = StoreError["reason"]

/** Makes the failure of an operation on a subject. */
export const failure = (operation: string, subject: string, reason: Reason | Fault): StoreError => {
  if ("_tag" in reason) return new StoreError({ operation, subject, reason })
  const { cause, problem, reason: _tag } = reason
  return new StoreError({ operation, subject, reason: { _tag, problem }, ...(cause === undefined ? {} : { cause }) })
}

export const corrupt = (problem: string): Fault => ({ reason: "Corrupt", problem })

/** Refuses names that are empty, longer than `most` characters, or not printable. */
export const checkNames = (names: ReadonlyArray<string>, most: number): Effect.Effect<void, Reason> => {
  const problem = names.map((name) => nameProblem(name, most)).find((text) => text !== undefined)
  return problem === undefined ? Effect.void : Effect.fail({ _tag: "InvalidName", problem })
}

/** Checks the name that an operation is about, and puts operation and name into its failures. */
export const onName =
  (most: number) =>
  (operation: string, name: string) =>
  <A>(effect: Effect.Effect<A, Reason | Fault>): Effect.Effect<A, StoreError> =>
    Effect.mapError(Effect.andThen(checkNames([name], most), effect), (reason) => failure(operation, name, reason))

/** The number of items to give: at least one, at most `most`, and `usual` by default. */
export const boundLimit = (limit: number | undefined, usual: number, most: number): number =>
  limit === undefined || Number.isNaN(limit) ? usual : Math.max(1, Math.min(Math.trunc(limit), most))
