/**
 * Limits the time of tools, so that a hanging tool does not hang the agent.
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
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import { ToolError } from "../core/ToolError.ts"
import { timeOf, timeProblem } from "./internal/limits.ts"
import * as shapes from "./internal/shapes.ts"
import * as WorkingTime from "./internal/workingTime.ts"

const name = "ToolTimeout"

const timedOut = (tool: string, limit: Duration.Duration): Effect.Effect<never, ToolError> =>
  Effect.fail(
    new ToolError({
      reason: "TimedOut",
      message: `The tool "${tool}" was given ${Duration.format(limit)} and was stopped when it was not done by then. Whether it had an effect is not known. Ask it for less at once, or go another way.`
    })
  )

const refuseMake = makeMiddlewareCheck(name, shapes.toolTimeoutMake)

/**
 * Interrupts a tool at its limit, waits for its finalizers, and fails with a `ToolError` of the reason `TimedOut`,
 * which tells the model the limit.
 *
 * `default` applies to tools without an entry in `tools`; without it they are unlimited. `tools` sets limits by tool
 * name; `"Infinity"` is unlimited. Time spent waiting for a person does not count. Outside of `ToolRetry` a limit
 * covers all tries together, inside each try.
 */
export const make = (options: {
  /** The limit of tools without an entry in `tools`. Default: no limit. */
  readonly default?: Duration.Input | undefined
  /** Limits by tool name; `"Infinity"` sets no limit. Default: none. */
  readonly tools?: { readonly [name: string]: Duration.Input } | undefined
}): Middleware.Middleware => {
  const refused = refuseMake(options)
  if (refused !== undefined) return refused
  const fallback = timeOf(options.default ?? "Infinity")
  const limits = new Map(Object.entries(options.tools ?? {}).map(([name, limit]) => [name, timeOf(limit)]))
  return Middleware.make({
    name,
    check: () => timeProblem(name, { default: options.default, ...options.tools }),
    wrapToolCall: (call, next, run) => {
      const duration = limits.get(call.name) ?? fallback
      if (!Duration.isFinite(duration)) return next(call)
      const up = Effect.flatMap(WorkingTime.workingNow(run, call.id), (since) =>
        WorkingTime.until(run, since + Duration.toMillis(duration), call.id)
      )
      return Effect.raceFirst(next(call), Effect.andThen(up, timedOut(call.name, duration)))
    }
  })
}
