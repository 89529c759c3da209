/** The `Retry-After` header. */
import * as Duration from "effect/Duration"

/** The common part of `Headers` and the headers of every SDK. */
export interface HeaderReader {
  readonly get: (name: string) => string | null | undefined
}

const seconds = /^\d+(?:\.\d+)?$/

const durationOf = (millis: number): Duration.Duration | undefined =>
  Number.isFinite(millis) ? Duration.millis(Math.max(0, millis)) : undefined

/**
 * Reads the time to wait from `retry-after-ms` (milliseconds) or `retry-after` (seconds or a date). A date is compared
 * with the response's own `date`, so that clocks need not agree, and without one with `now`.
 */
export const readRetryAfter = (headers: HeaderReader | undefined, now = NaN): Duration.Duration | undefined => {
  const millis = headers?.get("retry-after-ms")?.trim()
  if (millis !== undefined && seconds.test(millis)) return durationOf(Number(millis))
  const after = headers?.get("retry-after")?.trim() ?? ""
  if (seconds.test(after)) return durationOf(Number(after) * 1000)
  // `Date.parse` takes many other texts for dates.
  if (!/^[a-z]+,? .*\d:\d/i.test(after)) return undefined
  const date = Date.parse(headers?.get("date") ?? "")
  return durationOf(Date.parse(after) - (Number.isNaN(date) ? now : date))
}
