/** The result of decoding: at once, or as an effect when the schema validates asynchronously. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { at, brief, render } from "../../support/text/issues.ts"
import { cut } from "../../support/text/text.ts"
import type { Json } from "../Json.ts"

export type Decoding<A, E> = Result.Result<A, E> | Effect.Effect<A, E>

/** A decoded value, and the JSON that it was decoded from. */
export interface DecodedValue<out A> {
  readonly json: Json
  readonly value: A
}

export const mapBoth = <A, E, B, E2>(
  decoding: Decoding<A, E>,
  options: { readonly onSuccess: (value: A) => B; readonly onFailure: (error: E) => E2 }
): Decoding<B, E2> =>
  Result.isResult(decoding) ? Result.mapBoth(decoding, options) : Effect.mapBoth(decoding, options)

export const toEffect = <A, E>(decoding: Decoding<A, E>): Effect.Effect<A, E> =>
  Result.isResult(decoding) ? Effect.fromResult(decoding) : decoding

const problemLimit = 8

/** Paths and messages may quote the model, at any length. */
const textLimit = 200

/** Lists the problems of a value, one line each; `whole` names the value there. */
export const listProblems = (
  problems: ReadonlyArray<{ readonly keys: ReadonlyArray<PropertyKey>; readonly problem: string }>,
  json: Json,
  whole: string
): string => {
  const lines = problems.slice(0, problemLimit).map(({ keys, problem }) => {
    const value = at(json, keys)
    const path = keys.length === 0 ? whole : `\`${cut(render(keys), textLimit)}\``
    return value === undefined && keys.length > 0
      ? `- ${path} is missing`
      : `- ${path}: ${cut(problem, textLimit)}, got ${brief(value)}`
  })
  const more = problems.length - lines.length
  return [...lines, ...(more > 0 ? [`- and ${more} more`] : [])].join("\n")
}
