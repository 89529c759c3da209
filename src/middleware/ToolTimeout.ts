/**
 * Give tools a limit of time, so that one that hangs does not hang the agent.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { ToolTimeout } from "effect-deepagents/middleware"
 *
 * const agent = Agent.make({
 *   name: "punctual",
 *   prompt: "You look things up.",
 *   middleware: [ToolTimeout.make({ default: "30 seconds", tools: { build: "10 minutes", ask_person: "Infinity" } })]
 * })
 * ```
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Middleware from "../core/Middleware.ts"
import { ToolError } from "../core/ToolError.ts"
import { timeOf, timeProblem } from "./internal/limits.ts"
import * as WorkingTime from "./internal/workingTime.ts"

/** The name of this middleware. */
const name = "ToolTimeout"

const timedOut = (tool: string, limit: Duration.Duration): Effect.Effect<never, ToolError> =>
  Effect.fail(
    new ToolError({
      reason: "TimedOut",
      message: `The tool "${tool}" was given ${Duration.format(limit)} and was stopped when it was not done by then. Whether it had an effect is not known. Ask it for less at once, or go another way.`
    })
  )

/**
 * Interrupts a tool that is not done in time, waits for its finalizers, and fails with a `ToolError` of the reason
 * `TimedOut`, which says to the model how long the tool was given.
 *
 * `default` is the limit of every tool that `tools` does not name; without it these have none. `tools` gives a limit by
 * the tool's name; `"Infinity"` is none. The time that a tool
 * waits for a person does not count. Outside of `ToolRetry` a limit holds for all tries together, inside for each.
 */
export const make = (options: {
  readonly default?: Duration.Input | undefined
  readonly tools?: { readonly [name: string]: Duration.Input } | undefined
}): Middleware.Middleware => {
  const fallback = timeOf(options.default ?? "Infinity")
  const limits = new Map(Object.entries(options.tools ?? {}).map(([name, limit]) => [name, timeOf(limit)]))
  return Middleware.make({
    name,
    check: () => timeProblem(name, { default: options.default, ...options.tools }),
    wrapToolCall: (call, next, run) => {
      const duration = limits.get(call.name) ?? fallback
      if (!Duration.isFinite(duration)) return next(call)
      const up = Effect.flatMap(WorkingTime.now(run, call.id), (since) =>
        WorkingTime.until(run, since + Duration.toMillis(duration), call.id)
      )
      return Effect.raceFirst(next(call), Effect.andThen(up, timedOut(call.name, duration)))
    }
  })
}
