/** Decodes answers of the other side, and requests of the protocol's draft: the package checks neither. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { AcpError } from "../AcpError.ts"

/** A text of at most so many characters. */
export const textUpTo = (limit: number) => Schema.String.check(Schema.isMaxLength(limit))

/** A field that may be missing or `null`. */
export const optional = <A>(schema: Schema.Codec<A>) => Schema.optionalKey(Schema.NullOr(schema))

/** Decodes an answer or a request. A message that violates the protocol fails with `Invalid`. */
export const decodeAnswer =
  <A>(method: string, schema: Schema.Codec<A>) =>
  (answer: unknown): Effect.Effect<A, AcpError> =>
    Effect.mapError(
      Schema.decodeUnknownEffect(schema)(answer),
      ({ message }) => new AcpError({ reason: "Invalid", method, detail: message })
    )

export const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))
