/**
 * Improves work until a critic finds it good: the worker gets the critic's feedback, and the best draft is returned.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { Reflect } from "effect-deepagents/patterns"
 *
 * const writer = Agent.make({ name: "writer", prompt: "You write product texts." })
 * const careful = Reflect.make({ worker: writer, threshold: 0.9 })
 *
 * const program = Effect.map(Agent.run(careful, "A text about a red bicycle"), ({ output }) => output.text)
 * ```
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Agent from "../core/Agent.ts"
import type { AgentError } from "../core/AgentError.ts"
import type { ChatModel } from "../core/ChatModel.ts"
import type { ModelError } from "../core/ModelError.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import { ToolContext } from "../core/ToolContext.ts"
import { markText } from "../support/text/marked.ts"
import { ask } from "./internal/ask.ts"
import { compose } from "./internal/compose.ts"
import { refuseCounts } from "./internal/refuse.ts"
import * as shapes from "./internal/shapes.ts"

/** The answer of a critic: a quality from 0 to 1, and what to do better. */
export const Critique = Schema.Struct({
  quality: Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 })).annotate({
    description: "From 0 (useless) to 1 (nothing to improve)"
  }),
  feedback: Schema.String.annotate({ description: "What to do better, in a few sentences" })
})
export type Critique = typeof Critique.Type

/**
 * The best draft.
 *
 * - `quality`: the critic's quality of `text`
 * - `isGood`: true if the quality reaches the threshold
 * - `history`: the critiques of all drafts, in their order
 * - `reason`: why the work ended
 */
export const Result = Schema.Struct({
  text: Schema.String,
  quality: Schema.Finite,
  isGood: Schema.Boolean,
  history: Schema.Array(Critique),
  reason: Schema.String
})
export type Result = typeof Result.Type

const criticByModel = Agent.make({
  name: "critic",
  description: "Judges the quality of work",
  prompt:
    "You judge how well work does its task: what is wrong, missing or unclear. Be exact and strict. Never judge by what the work says of itself.",
  output: Critique
})

const refuseMake = makeMiddlewareCheck("Reflect", shapes.reflectMake)

/**
 * Makes an agent that reflects: worker, critic, worker again in the same conversation. Each critique emits a custom event
 * `reflect`.
 *
 * A failure before the first critique fails it. Later failures and a used-up budget end it with the best draft so far.
 */
export const make = <O extends string | undefined, E, R, E2 = ModelError, R2 = ChatModel>(options: {
  /** The agent that does the work. */
  readonly worker: Agent.Agent<O, E, R>
  /** The agent that judges the work. Default: the chat model of the context. */
  readonly critic?: Agent.Agent<Critique | undefined, E2, R2> | undefined
  /** The quality that is good enough, from 0 to 1. Default: 0.8. */
  readonly threshold?: number | undefined
  /** The most times that the worker is sent back. Default: 3. */
  readonly most?: number | undefined
  /** The name of the agent, in events and errors. Default: `reflect`. */
  readonly name?: string | undefined
  /** The description for other agents. Default: the worker's description. */
  readonly description?: string | undefined
}): Agent.Program<string, Result | Extract<O, undefined>, E | E2 | AgentError, R | R2> => {
  const refused = refuseMake(options) ?? refuseCounts("Reflect", { most: options.most })
  const { most = 3, threshold = 0.8, worker } = options
  // Without a critic of the caller, E2 and R2 belong to the default critic.
  const critic =
    options.critic ?? (criticByModel as Agent.Agent<Critique, unknown, unknown> as Agent.Agent<Critique, E2, R2>)

  const run = Effect.fnUntraced(function* (task: string) {
    const { run } = yield* ToolContext
    const history: Array<Critique> = []
    let best: Pick<Result, "text" | "quality"> = { text: "", quality: 0 }
    let words = task
    const end = (reason: string): Result => ({
      ...best,
      isGood: history.length > 0 && best.quality >= threshold,
      history,
      reason
    })
    while (true) {
      const outcome = yield* ask(worker, words, "worker")
      if (outcome._tag === "Unanswered") {
        return history.length === 0 && !outcome.isSpent
          ? yield* Effect.fail(outcome.error)
          : end(`The worker stopped: ${outcome.problem}`)
      }
      const text: string = outcome.output
      if (history.length === 0) best = { text, quality: 0 }
      const criticOutcome = yield* ask(critic, `Task:\n${task}\n\n${markText(text)}`)
      if (criticOutcome._tag === "Unanswered") {
        return history.length === 0 && !criticOutcome.isSpent
          ? yield* Effect.fail(criticOutcome.error)
          : end(`The critic stopped: ${criticOutcome.problem}`)
      }
      const { feedback, quality } = criticOutcome.output
      history.push({ quality, feedback })
      if (quality > best.quality) best = { text, quality }
      yield* run.custom("reflect", { draft: history.length, quality })
      if (quality >= threshold) return end("The work is good enough.")
      if (history.length > most) return end(`After ${most} reflections the work is not good enough.`)
      words = `${feedback}\n\nDo the whole task again, better.`
    }
  })

  return Agent.program({
    name: options.name ?? "reflect",
    description: options.description ?? worker?.description ?? "",
    output: Result,
    ...compose(refused, () => [worker, critic]),
    run
  })
}
