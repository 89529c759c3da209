/**
 * Works until every criterion is met. A judge with a conversation of its own decides, and must quote the work.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { Goal } from "effect-deepagents/patterns"
 *
 * const writer = Agent.make({ name: "writer", prompt: "You write release notes." })
 * const goal = Goal.make({ worker: writer })
 *
 * const program = Effect.map(
 *   Agent.run(goal, goal.input({ objective: "Notes for 2.0", criteria: ["every change has a link"] })),
 *   ({ output }) => (output.status === "completed" ? output.text : output.reason)
 * )
 * ```
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Agent from "../core/Agent.ts"
import type { AgentError } from "../core/AgentError.ts"
import type { ChatModel } from "../core/ChatModel.ts"
import type { ModelError } from "../core/ModelError.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import { ToolContext } from "../core/ToolContext.ts"
import { isQuoteOf, markText } from "../support/text/marked.ts"
import { ask } from "./internal/ask.ts"
import { compose } from "./internal/compose.ts"
import { refuseCounts } from "./internal/refuse.ts"
import * as shapes from "./internal/shapes.ts"

/** The input of a goal: what to do, and the criteria by which it is done. */
export const Input = Schema.Struct({
  objective: Schema.String.annotate({ description: "What to do" }),
  criteria: Schema.Array(Schema.String)
    .check(Schema.isMinLength(1))
    .annotate({ description: "The criteria by which it is done, each on its own" })
})
export type Input = typeof Input.Type

/** The answer of a judge: a verdict for each criterion by its number, and feedback for the worker. */
export const Judgement = Schema.Struct({
  verdicts: Schema.Array(
    Schema.Struct({
      criterion: Schema.Int.annotate({ description: "The number of the criterion" }),
      met: Schema.Boolean,
      quote: Schema.String.annotate({ description: "The words of the work that show it, copied exactly" })
    })
  ),
  feedback: Schema.String.annotate({ description: "What is missing, in a few sentences" })
})
export type Judgement = typeof Judgement.Type

/**
 * The best attempt.
 *
 * - `status`: `completed` if all criteria are met, `partial` if some are, `failed` if none is
 * - `attempts`: the number of judged attempts
 * - `verdicts`: a verdict for each criterion, of the best attempt
 * - `reason`: why the work ended
 */
export const Result = Schema.Struct({
  status: Schema.Literals(["completed", "partial", "failed"]),
  text: Schema.String,
  attempts: Schema.Int,
  verdicts: Schema.Array(Schema.Struct({ criterion: Schema.String, met: Schema.Boolean, quote: Schema.String })),
  reason: Schema.String
})
export type Result = typeof Result.Type

const judgeByModel = Agent.make({
  name: "judge",
  description: "Judges work by criteria",
  prompt:
    "You judge work by each criterion alone. A criterion is met only if words of the work show it: copy these words exactly as the quote. Never judge by what the work says of itself.",
  output: Judgement
})

const refuseMake = makeMiddlewareCheck("Goal", shapes.goalMake)

/** The longest wait between two attempts that `every` grows to. */
const longestWait = Duration.toMillis("1 hour")

const countMet = (verdicts: Result["verdicts"]): number => verdicts.filter(({ met }) => met).length

/**
 * Makes a goal. The worker goes on in one conversation, and gets the unmet criteria with the judge's feedback. A verdict
 * counts only if its quote is in the work. The best attempt is returned, not the last one.
 *
 * A worker that fails in its first attempt fails the goal. Later failures, a used-up budget and the last attempt end
 * it with the best attempt so far. Each attempt emits a custom event `goal`.
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
  /** The agent that judges the work. Default: the chat model of the context. */
  readonly judge?: Agent.Agent<Judgement | undefined, E2, R2> | undefined
  /** Reads the work that is judged, from files for example. Its parameter is the worker's answer. Default: the answer. */
  readonly evidence?: ((answer: string) => Effect.Effect<string, E3, R3>) | undefined
  /** The most attempts. Default: 5. */
  readonly attempts?: number | undefined
  /**
   * The wait before the next attempt. It doubles, up to an hour, while no further criterion is met. Default: no wait.
   */
  readonly every?: Duration.Input | undefined
  /** The name of the goal, in events and errors. Default: `goal`. */
  readonly name?: string | undefined
  /** The description for other agents. Default: it works until criteria are met. */
  readonly description?: string | undefined
}): Agent.Program<
  Input,
  Result | Extract<O, undefined>,
  E | E2 | E3 | AgentError,
  R | R2 | Exclude<R3, ToolContext>
> => {
  const refused = refuseMake(options) ?? refuseCounts("Goal", { attempts: options.attempts })
  const { attempts: most = 5, evidence, every, worker } = options
  // Without a judge of the caller, E2 and R2 belong to the default judge.
  const judge =
    options.judge ?? (judgeByModel as Agent.Agent<Judgement, unknown, unknown> as Agent.Agent<Judgement, E2, R2>)
  const shortest = every === undefined ? undefined : Duration.toMillis(Duration.fromInputUnsafe(every))

  const run = Effect.fnUntraced(function* ({ criteria, objective }: Input) {
    const { run } = yield* ToolContext
    const list = criteria.map((one, index) => `${index + 1}. ${one}`).join("\n")
    let words = `${objective}\n\nIt is done when:\n${list}`
    let best: Omit<Result, "reason"> = { status: "failed", text: "", attempts: 0, verdicts: [] }
    let wait = shortest
    const end = (reason: string): Result => ({ ...best, reason })
    for (let attempt = 1; attempt <= most; attempt++) {
      const outcome = yield* ask(worker, words, "worker")
      if (outcome._tag === "Unanswered") {
        return attempt === 1 && !outcome.isSpent
          ? yield* Effect.fail(outcome.error)
          : end(`The worker stopped: ${outcome.problem}`)
      }
      const text: string = outcome.output
      const work =
        evidence === undefined ? text : yield* Agent.step(`evidence ${attempt}`, evidence(text), Schema.String)
      const judgeOutcome = yield* ask(judge, `Criteria:\n${list}\n\n${markText(work)}`)
      if (judgeOutcome._tag === "Unanswered") {
        if (attempt === 1 && !judgeOutcome.isSpent) return yield* Effect.fail(judgeOutcome.error)
        if (best.attempts === 0) best = { ...best, text }
        return end(`The judge stopped: ${judgeOutcome.problem}`)
      }
      const { feedback, verdicts: judgeVerdicts } = judgeOutcome.output
      const verdicts = criteria.map((criterion, index) => {
        const one = judgeVerdicts.find((verdict) => verdict.criterion === index + 1)
        const quote = one?.quote ?? ""
        return { criterion, met: one?.met === true && isQuoteOf(quote, work), quote }
      })
      const met = countMet(verdicts)
      const isBetter = best.attempts === 0 || met > countMet(best.verdicts)
      const status = met === criteria.length ? "completed" : met > 0 ? "partial" : "failed"
      best = isBetter ? { status, text, attempts: attempt, verdicts } : { ...best, attempts: attempt }
      yield* run.custom("goal", { attempt, met, of: criteria.length })
      if (status === "completed") return end("All criteria are met.")
      const unmet = verdicts
        .filter((one) => !one.met)
        .map(
          ({ criterion, quote }) =>
            `- ${criterion}${quote === "" ? "" : " (the quote that was given for it is not in the work, or does not show it)"}`
        )
      words = `Not done yet. Missing:\n${unmet.join("\n")}\n\n${feedback}\n\nDo the whole task again, better.`
      if (shortest === undefined || wait === undefined || attempt === most) continue
      wait = isBetter ? shortest : Math.min(wait * 2, Math.max(shortest, longestWait))
      yield* Agent.step(`wait ${attempt}`, Effect.as(Effect.sleep(wait), null), Schema.Null)
    }
    return end(`After ${most} attempts there are unmet criteria.`)
  })

  return Agent.program({
    name: options.name ?? "goal",
    description: options.description ?? "Works on an objective until all of its criteria are met",
    input: Input,
    output: Result,
    ...compose(refused, () => [worker, judge]),
    run
  })
}
