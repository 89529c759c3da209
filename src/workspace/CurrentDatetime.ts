/**
 * Makes the tool `current_datetime`, which reads the `Clock` in a time zone.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { CurrentDatetime } from "effect-deepagents/workspace"
 *
 * const clerk = Agent.make({ name: "clerk", prompt: "You plan meetings.", tools: [CurrentDatetime.make({ zone: "Europe/Berlin" })] })
 * ```
 */
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { readOptions, refuseTool } from "../core/schema/invalid.ts"
import * as Tool from "../core/Tool.ts"
import * as ToolError from "../core/ToolError.ts"
import { check } from "../support/options/check.ts"
import * as shapes from "./internal/shapes.ts"

const days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]

const checkMake = check(shapes.currentDatetimeMake)

/** Makes the tool. */
export const make = (
  options: {
    /** Time zone if the model names none. Default: `UTC`. */
    readonly zone?: string | undefined
  } = {}
): Tool.Tool => {
  const [{ zone: defaultZone = "UTC" }, problem] = readOptions(checkMake, options)
  return refuseTool(
    problem,
    Tool.make("current_datetime", {
      description: "Tells the date, the time and the day of the week.",
      parameters: {
        zone: Schema.optionalKey(
          Schema.String.annotate({ description: `A time zone such as Europe/Berlin; ${defaultZone} if left out` })
        )
      },
      annotations: { readOnly: true, volatile: true, openWorld: false },
      execute: Effect.fnUntraced(function* ({ zone = defaultZone }) {
        const zoned = Option.getOrUndefined(DateTime.makeZoned(yield* Clock.currentTimeMillis, { timeZone: zone }))
        return zoned === undefined
          ? yield* ToolError.make(
              `${JSON.stringify(zone.slice(0, 100))} is no time zone; give one such as Europe/Berlin`
            )
          : `${days[DateTime.getPart(zoned, "weekDay")] ?? ""}, ${DateTime.formatIsoZoned(zoned)}`
      })
    })
  )
}
