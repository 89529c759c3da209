/**
 * Repeats a failed tool call if repeating is harmless.
 *
 * ```ts
 * import { Schedule } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { ToolRetry } from "effect-deepagents/middleware"
 *
 * const agent = Agent.make({
 *   name: "stubborn",
 *   prompt: "You look things up.",
 *   middleware: [ToolRetry.make({ tools: { search: Schedule.recurs(5), send_mail: false } })]
 * })
 * ```
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Middleware from "../core/Middleware.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import type { ToolError } from "../core/ToolError.ts"
import { cut } from "../support/text/text.ts"
import * as shapes from "./internal/shapes.ts"

const name = "ToolRetry"

type Policy<E, R> = Schedule.Schedule<unknown, ToolError, E, R>

const patience = Schedule.exponential("200 millis").pipe(Schedule.jittered, Schedule.upTo({ times: 2 }))

/** Characters of an error in the warning. */
const shownError = 500

/** Failures that may be transient, unlike wrong arguments and refusals. */
const mayPass = ({ reason }: ToolError): boolean => reason === "Failed" || reason === "TimedOut"

const refuseMake = makeMiddlewareCheck(name, shapes.toolRetryMake)

/**
 * Repeats a tool call that failed with the `ToolError` reason `Failed` or `TimedOut`. Any other failure, and an output
 * with `isError`, goes to the model at once, and so does the failure of the last try.
 *
 * By default only tools annotated `readOnly` or `idempotent` are retried, after 200 ms, doubling, with jitter, for
 * three tries in all. Each new try is a `Warning` event (`tool-retry`). `schedule` replaces that schedule. `tools`
 * gives a tool its own schedule, which retries it with any annotations, or turns retries off with `false`. The
 * schedules' failures and requirements appear in the agent's type.
 */
export const make = <
  const Tools extends { readonly [name: string]: Policy<unknown, unknown> | false } = {},
  S extends Policy<unknown, unknown> = Policy<never, never>
>(options?: {
  /**
   * The waits and their number, for tools annotated `readOnly` or `idempotent`. Default: 200 ms, doubling, with
   * jitter, for three tries in all.
   */
  readonly schedule?: S | undefined
  /** Schedules by tool name, for any annotations; `false` turns retries off. Default: none. */
  readonly tools?: Tools | undefined
}): Middleware.Middleware<
  Schedule.Error<S> | Schedule.Error<Tools[keyof Tools]>,
  Schedule.Env<S> | Schedule.Env<Tools[keyof Tools]>
> => {
  const refused = refuseMake(options)
  if (refused !== undefined) return refused
  type E = Schedule.Error<S> | Schedule.Error<Tools[keyof Tools]>
  type R = Schedule.Env<S> | Schedule.Env<Tools[keyof Tools]>
  // Each schedule's failures and requirements are among those of all of them.
  const general = (options?.schedule ?? patience) as Policy<E, R>
  const named = new Map(Object.entries(options?.tools ?? {})) as ReadonlyMap<string, Policy<E, R> | false>
  return Middleware.make<E, R>({
    name,
    wrapToolCall: (call, next, run) => {
      const { idempotent, readOnly } = call.annotations
      const policy = named.get(call.name) ?? (readOnly === true || idempotent === true ? general : false)
      const attempt = Effect.suspend(() => next(call))
      if (policy === false) return attempt
      const tell = ({ duration, input }: Schedule.Metadata<unknown, ToolError>) =>
        mayPass(input)
          ? run.warn(
              "tool-retry",
              `${call.name} failed (${cut(input.message, shownError)}); running it again in ${Duration.format(duration)}`
            )
          : Effect.void
      return Effect.retry(attempt, { schedule: Schedule.tap(policy, tell), while: mayPass })
    }
  })
}
