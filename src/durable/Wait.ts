/**
 * A tool that lets an agent wait for minutes or weeks. No process waits with it.
 *
 * The tool suspends the run, as an approval does. A `DurableAgent` or an `AgentEntity` resumes it at the end of the wait. A
 * plain run ends with `stopReason: "suspended"`, and its caller resumes it with `Approval.approve`.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { Wait } from "effect-deepagents/durable"
 *
 * const watcher = Agent.make({
 *   name: "watcher",
 *   prompt: "Look whether the build is done. If it is not, wait ten minutes and look again.",
 *   middleware: [Wait.make({ max: "7 days" })]
 * })
 * ```
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { byTime, type Request } from "../core/Approval.ts"
import * as Middleware from "../core/Middleware.ts"
import * as Ruling from "../core/Ruling.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import * as Tool from "../core/Tool.ts"
import * as shapes from "./internal/shapes.ts"

/** The name of the tool. */
export const toolName = "wait"

const defaultMax = Duration.days(30)

/** The options of this module. */
export interface Options {
  /** The longest wait (default 30 days): a second or more. */
  readonly max?: Duration.Input | undefined
}

const secondsOf = (args: Request["arguments"]): number => {
  const { seconds } = args
  return typeof seconds === "number" ? seconds : 0
}

/** Gives the end of the wait of a request, in milliseconds since the epoch. `undefined` for other requests. */
export const until = (request: Request): number | undefined =>
  request.toolName === toolName ? request.at + secondsOf(request.arguments) * 1_000 : undefined

const refuseMake = makeMiddlewareCheck("Wait", shapes.waitMake)

/** Makes the middleware with the tool. A person may end a wait early with any decision on its request. */
export const make = (options?: Options): Middleware.AskingMiddleware => {
  const refused = refuseMake(options)
  if (refused !== undefined) return refused
  const longest = Option.match(Duration.fromInput(options?.max ?? defaultMax), {
    onNone: () => 0,
    onSome: (time) => Math.floor(Duration.toSeconds(time))
  })
  const isUsable = Number.isFinite(longest) && longest >= 1
  const max = isUsable ? longest : 1
  const tool = Tool.make(toolName, {
    description: `Waits, then tells the time. Nothing else happens meanwhile. At most ${max} seconds.`,
    parameters: { seconds: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: max })) },
    annotations: { readOnly: true, volatile: true, openWorld: false },
    execute: () => Effect.map(Clock.currentTimeMillis, (now) => `It is ${new Date(now).toISOString()} now.`)
  })
  return Middleware.make({
    asks: true,
    name: "Wait",
    check: () => (isUsable ? undefined : "Wait: `max` must be a duration of at least one second, and not endless"),
    tools: [tool],
    rulings: (_, calls) =>
      Effect.succeed(
        calls.map((call) =>
          call.name === toolName
            ? Ruling.ask(byTime, { description: `Wait for ${secondsOf(call.arguments)} seconds` })
            : undefined
        )
      )
  })
}
