/** Formats a duration from milliseconds. */

export const duration = (millis: number): string =>
  millis < 1_000
    ? `${Math.round(millis)} ms`
    : millis < 60_000
      ? `${(millis / 1_000).toFixed(millis < 10_000 ? 1 : 0)} s`
      : `${Math.floor(millis / 60_000)} min ${Math.round((millis % 60_000) / 1_000)} s`

export const count = (value: number): string =>
  value < 1_000
    ? String(value)
    : value < 1_000_000
      ? `${(value / 1_000).toFixed(1)}k`
      : `${(value / 1_000_000).toFixed(1)}M`

export const money = (value: number): string => `$${value.toFixed(value < 1 ? 4 : 2)}`

/** The mark of an estimate. */
export const about = ({ isEstimated }: { readonly isEstimated?: boolean }): string => (isEstimated === true ? "~" : "")

export const plural = (value: number, one: string): string => `${value} ${one}${value === 1 ? "" : "s"}`
