/**
 * The end of decoding what a model wrote: a result at once, or an effect of it where a schema validates by a promise.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { at, brief, render } from "../../support/text/issues.ts"
import { cut } from "../../support/text/text.ts"
import type { Json } from "../Json.ts"

/** A result, or an effect that gives one. */
export type Decoding<A, E> = Result.Result<A, E> | Effect.Effect<A, E>

/** A decoded value, and the JSON that it was decoded from: what the model wrote, perhaps coerced. */
export interface Decoded<out A> {
  readonly json: Json
  readonly value: A
}

/** Maps both ends. */
export const mapBoth = <A, E, B, E2>(
  decoding: Decoding<A, E>,
  options: { readonly onSuccess: (value: A) => B; readonly onFailure: (error: E) => E2 }
): Decoding<B, E2> =>
  Result.isResult(decoding) ? Result.mapBoth(decoding, options) : Effect.mapBoth(decoding, options)

/** The effect of a decoding. */
export const toEffect = <A, E>(decoding: Decoding<A, E>): Effect.Effect<A, E> =>
  Result.isResult(decoding) ? Effect.fromResult(decoding) : decoding

const problemLimit = 8

/** Paths and messages may be made of what the model wrote: of whatever length. */
const textLimit = 200

/** The problems of a value, a line for each, as a model reads them; `whole` is what the value is called there. */
export const listed = (
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
