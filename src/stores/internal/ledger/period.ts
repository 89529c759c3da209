/** The periods of windows. */
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type { Window } from "../../../core/Ledger.ts"

/** A period of a window, with a unique name that people can read. */
export interface Period {
  readonly name: string
  readonly endsAt: number | undefined
}

const hour = 3_600_000

const inZone = (per: "hour" | "day" | "month", time: DateTime.DateTime, id: string, offset: number): Period => {
  const now = DateTime.toEpochMillis(time)
  if (per === "hour") {
    // The hour that comes twice, when clocks go back, is two periods.
    const start = now - ((((now + offset) % hour) + hour) % hour)
    return { name: `hour ${new Date(start).toISOString()} ${id}`, endsAt: start + hour }
  }
  const date = DateTime.formatIsoDate(time)
  const next = DateTime.add(DateTime.startOf(time, per), per === "day" ? { days: 1 } : { months: 1 })
  return {
    name: `${per} ${per === "day" ? date : date.slice(0, -3)} ${id}`,
    endsAt: DateTime.toEpochMillis(DateTime.startOf(next, per))
  }
}

const inNamedZone = (per: "hour" | "day" | "month", zone: DateTime.TimeZone, now: number): Period => {
  const time = DateTime.setZone(DateTime.makeUnsafe(now), zone)
  return inZone(per, time, DateTime.zoneToString(zone), DateTime.zonedOffset(time))
}

const isKnown = (per: unknown): per is "hour" | "day" | "month" => per === "hour" || per === "day" || per === "month"

/** Gives the period of a window at a time, or the problem of the window. */
export const periodOf = (window: Window, now: number): Result.Result<Period, string> => {
  if (window === "ever") return Result.succeed({ name: "ever", endsAt: undefined })
  if (isKnown(window)) return Result.succeed(inZone(window, DateTime.makeUnsafe(now), "UTC", 0))
  if (typeof window === "object" && "per" in window && isKnown(window.per)) {
    const zone = typeof window.timeZone === "string" ? DateTime.zoneFromString(window.timeZone) : Option.none()
    return Option.match(zone, {
      onNone: () => Result.fail(`there is no time zone ${JSON.stringify(window.timeZone)}`),
      onSome: (timeZone) => Result.succeed(inNamedZone(window.per, timeZone, now))
    })
  }
  if (typeof window === "object" && "every" in window) {
    const length = Option.match(Duration.fromInput(window.every), {
      onNone: () => Number.NaN,
      onSome: Duration.toMillis
    })
    if (!(length >= 1000) || !Number.isSafeInteger(length))
      return Result.fail("`every` must be a duration of at least one second, in whole milliseconds")
    const index = Math.floor(now / length)
    return Result.succeed({ name: `every ${length} ${index}`, endsAt: (index + 1) * length })
  }
  return Result.fail(
    'it must be "ever", "hour", "day", "month", or an object with `per` and `timeZone`, or with `every`'
  )
}
