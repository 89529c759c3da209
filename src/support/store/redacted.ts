/** Values that may be secret, as callers give them: headers, keys. */
import * as Redacted from "effect/Redacted"

type MaybeSecret = string | Redacted.Redacted

/** Headers of a request as they are given: one that is `Redacted` is a secret. */
export type GivenHeaders = { readonly [name: string]: MaybeSecret }

/** The value itself. */
export const reveal = (value: MaybeSecret): string => (Redacted.isRedacted(value) ? Redacted.value(value) : value)

/** Headers as they are sent. */
export const revealed = (headers: GivenHeaders = {}): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, reveal(value)]))

/** The values that are secrets: no error may have them. */
export const secretsIn = (values: ReadonlyArray<MaybeSecret | undefined>): Array<string> =>
  values.flatMap((value) => (Redacted.isRedacted(value) ? [Redacted.value(value)] : []))

/** The header of a key that is a bearer's token; none without a key. */
export const bearer = (key: Redacted.Redacted | undefined): GivenHeaders =>
  key === undefined ? {} : { authorization: Redacted.make(`Bearer ${Redacted.value(key)}`) }
