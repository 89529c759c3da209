/** Numbers for people. */
import type { Usage } from "../core/Usage.ts"
import { totalTokens } from "../core/Usage.ts"

/** `950`, `12.3k`, `1.2M` */
export const count = (value: number): string =>
  value < 1_000
    ? String(Math.round(value))
    : value < 999_500
      ? `${(value / 1_000).toFixed(value < 99_500 ? 1 : 0)}k`
      : `${(value / 1_000_000).toFixed(1)}M`

/** `950 B`, `12.3 kB`, `1.2 MB` */
export const bytes = (value: number): string =>
  value < 1_000
    ? `${value} B`
    : value < 999_950
      ? `${(value / 1_000).toFixed(1)} kB`
      : `${(value / 1_000_000).toFixed(1)} MB`

/** `850 ms`, `12.3 s`, `4 min 5 s`, `2 h 3 min` */
export const duration = (millis: number): string => {
  if (millis < 1_000) return `${Math.round(millis)} ms`
  const seconds = millis / 1_000
  if (seconds < 59.95) return `${seconds.toFixed(1)} s`
  const minutes = Math.floor(Math.round(seconds) / 60)
  if (minutes < 60) return `${minutes} min ${Math.round(seconds) % 60} s`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** `$0.0042`, `$1.25` */
const money = (cost: number): string =>
  cost === 0 ? "$0" : cost < 0.0001 ? "<$0.0001" : `$${cost.toFixed(cost < 1 ? 4 : 2)}`

/** `12.3k tokens · $0.0210`, and an estimate is marked as one. */
export const usage = (used: Usage): string => {
  const about = used.isEstimated === true ? "~" : ""
  const cost = used.cost === undefined ? "" : ` · ${about}${money(used.cost)}`
  return `${about}${count(totalTokens(used))} tokens${cost}`
}

const minute = 60_000
const day = 86_400_000

/** `now`, `5 min`, `3 h`, or a date. */
export const ago = (time: number | string | undefined, now: number): string => {
  const at = typeof time === "string" ? Date.parse(time) : (time ?? Number.NaN)
  if (Number.isNaN(at)) return ""
  const since = now - at
  if (since < minute) return "now"
  if (since < 60 * minute) return `${Math.floor(since / minute)} min`
  if (since < day) return `${Math.floor(since / (60 * minute))} h`
  return new Date(at).toLocaleDateString(undefined, { day: "numeric", month: "short" })
}

const reasons: ReadonlyMap<string, string> = new Map([
  ["suspended", "waits for a decision"],
  ["interrupted", "stopped"],
  ["failed", "failed"],
  ["maxRounds", "ended: as many rounds as it may take"],
  ["stopCondition", "ended by its condition"],
  ["duplicateRounds", "ended: it repeated itself"],
  ["refused", "the model refused"]
])

/** Describes the end of a turn; empty for a normal end. */
export const ending = (reason: string): string => (reason === "completed" ? "" : (reasons.get(reason) ?? reason))
