/**
 * Works for long on its own, under a budget: step after step, with a report after each, until the work is done, stuck, or
 * the budget is used up.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { Autopilot } from "effect-deepagents/patterns"
 *
 * const coder = Agent.make({ name: "coder", prompt: "You work on the repository." })
 * const night = Autopilot.make({ worker: coder, limits: { time: "8 hours", cost: 20, toolCalls: 2_000 } })
 *
 * const program = Effect.map(
 *   Agent.run(night, "Migrate all tests", { threadId: "night" }),
 *   ({ output }) => `${output.status}: ${output.reason}`
 * )
 * ```
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Agent from "../core/Agent.ts"
import type { AgentError } from "../core/AgentError.ts"
import type { ChatModel } from "../core/ChatModel.ts"
import type { ModelError } from "../core/ModelError.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import { ToolContext } from "../core/ToolContext.ts"
import * as Budget from "../middleware/Budget.ts"
import { markText } from "../support/text/marked.ts"
import { ask } from "./internal/ask.ts"
import { compose } from "./internal/compose.ts"
import { refuseCounts } from "./internal/refuse.ts"
import * as shapes from "./internal/shapes.ts"

/** The report of a checker after a step. */
export const Report = Schema.Struct({
  isDone: Schema.Boolean.annotate({ description: "True when the whole task is done" }),
  isStuck: Schema.Boolean.annotate({ description: "True when another step would change nothing" }),
  progress: Schema.String.annotate({ description: "What is done, and what is left, in a few sentences" })
})
export type Report = typeof Report.Type

/**
 * The end of the work. `text` is the last answer of the worker, `log` the progress after each step.
 *
 * `status` is `completed`, or `halted` by the budget, the number of steps, a condition or a worker that is stuck: `reason`
 * says which.
 */
export const Result = Schema.Struct({
  status: Schema.Literals(["completed", "halted"]),
  reason: Schema.String,
  text: Schema.String,
  steps: Schema.Int,
  log: Schema.Array(Schema.String)
})
export type Result = typeof Result.Type

/** 1,800 seconds of work, 100 tool calls, 2 million tokens, and a cost of 5. */
export const limits = {
  time: "1800 seconds",
  toolCalls: 100,
  tokens: 2_000_000,
  cost: 5
} as const satisfies Budget.Limits

const checkByModel = Agent.make({
  name: "checker",
  description: "Reports on long work",
  prompt:
    "You report how far long work is. It is done only if the last step shows that the whole task is done. Never judge by promises.",
  output: Report
})

const refuseMake = makeMiddlewareCheck("Autopilot", shapes.autopilotMake)

/**
 * Makes an autopilot. The worker goes on in one conversation; a checker reports after each step, and the report begins the
 * next one. Each turn is a checkpoint: with a `threadId`, `Agent.resume` goes on after a crash, and the budget counts on.
 * A worker with `Wait` may wait for days without a process.
 *
 * The custom events `progress` (after each step) and `heartbeat` (while a step works) have the rest of the budget.
 */
export const make = <
  O extends string | undefined,
  E,
  R,
  E2 = ModelError,
  R2 = ChatModel,
  E3 = never,
  R3 = never
>(options: {
  /** The agent that does the work. */
  readonly worker: Agent.Agent<O, E, R>
  /** The agent that reports after each step. Default: the chat model of the context. */
  readonly check?: Agent.Agent<Report | undefined, E2, R2> | undefined
  /** Gives a reason to stop after a step. Its parameters are the report and the number of the step. Default: none. */
  readonly stop?: ((report: Report, step: number) => Effect.Effect<string | undefined, E3, R3>) | undefined
  /**
   * The budget of the worker and the checker. A kind that is `undefined` has no limit. A model without prices is not
   * limited by cost. Default: 1,800 seconds, 100 tool calls, 2 million tokens, a cost of 5.
   */
  readonly limits?: Budget.Limits | undefined
  /** The most steps. Default: 200. */
  readonly steps?: number | undefined
  /** The time between two heartbeats. Default: 1 minute. */
  readonly heartbeat?: Duration.Input | undefined
  /** The name of the agent, in events and errors. Default: `autopilot`. */
  readonly name?: string | undefined
  /** The description for other agents. Default: the worker's description. */
  readonly description?: string | undefined
}): Agent.Program<
  string,
  Result | Extract<O, undefined>,
  E | E2 | E3 | AgentError,
  R | R2 | Exclude<R3, ToolContext>
> => {
  const refused = refuseMake(options) ?? refuseCounts("Autopilot", { steps: options.steps })
  const { heartbeat = "1 minute", steps: most = 200, stop, worker } = options
  // Without a checker of the caller, E2 and R2 belong to the default checker.
  const check = options.check ?? (checkByModel as Agent.Agent<Report, unknown, unknown> as Agent.Agent<Report, E2, R2>)

  const run = Effect.fnUntraced(function* (task: string) {
    const { run } = yield* ToolContext
    const log: Array<string> = []
    let text = ""
    let words = task
    let step = 0
    const end = (status: Result["status"], reason: string): Result => ({ status, reason, text, steps: step, log })
    const tell = (event: string, more: { readonly progress?: string }) =>
      Effect.flatMap(Budget.remaining(run), (remaining) => run.custom(event, { step, ...more, remaining }))

    const beat = Effect.forever(Effect.andThen(Effect.sleep(heartbeat), tell("heartbeat", {})))

    while (step < most) {
      step++
      const outcome = yield* Effect.raceFirst(ask(worker, words, "worker"), beat)
      if (outcome._tag === "Unanswered") {
        return step === 1 && !outcome.isSpent
          ? yield* Effect.fail(outcome.error)
          : end("halted", `The worker stopped: ${outcome.problem}`)
      }
      text = outcome.output
      const checkOutcome = yield* ask(
        check,
        `The task:\n${task}\n\nThe progress before:\n${log.at(-1) ?? "none"}\n\n${markText(text)}`
      )
      if (checkOutcome._tag === "Unanswered") {
        return step === 1 && !checkOutcome.isSpent
          ? yield* Effect.fail(checkOutcome.error)
          : end("halted", `The checker stopped: ${checkOutcome.problem}`)
      }
      const report = checkOutcome.output
      log.push(report.progress)
      yield* tell("progress", { progress: report.progress })
      if (report.isDone) return end("completed", "The work is done.")
      if (report.isStuck) return end("halted", "The work is stuck.")
      const reason =
        stop === undefined
          ? null
          : yield* Agent.step(
              `stop ${step}`,
              Effect.map(stop(report, step), (why) => why ?? null),
              Schema.NullOr(Schema.String)
            )
      if (reason !== null) return end("halted", reason)
      words = `Go on with the task. How far it is:\n${report.progress}`
    }
    return end("halted", `All ${most} steps are used.`)
  })

  const { middleware, reaches } = compose(refused, () => [worker, check])
  return Agent.program({
    name: options.name ?? "autopilot",
    description: options.description ?? worker?.description ?? "",
    output: Result,
    reaches,
    middleware: [
      Budget.make({ ...limits, ...options.limits, unpriced: "allow", onExhausted: "finalAnswer" }),
      ...middleware
    ],
    run
  })
}
