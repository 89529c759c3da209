/**
 * Splits work into parts, gives each part to an agent, and joins the answers.
 *
 * ```ts
 * import { Effect, Result } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { MapReduce } from "effect-deepagents/patterns"
 *
 * const reader = Agent.make({ name: "reader", prompt: "You sum up one chapter in a sentence." })
 * const summary = MapReduce.make({
 *   name: "summary",
 *   split: (book) => Effect.succeed(book.split("\n\n")),
 *   map: reader,
 *   reduce: (found) =>
 *     Effect.succeed(found.map(({ answer, part }) => Result.getOrElse(answer, () => part.slice(0, 80))).join("\n"))
 * })
 *
 * const program = Agent.run(summary, "Chapter one …\n\nChapter two …", { threadId: "book" })
 * ```
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Agent from "../core/Agent.ts"
import type { AgentError } from "../core/AgentError.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import type { StandardSchema } from "../core/schema/standard.ts"
import { ToolContext } from "../core/ToolContext.ts"
import { ask } from "./internal/ask.ts"
import { compose } from "./internal/compose.ts"
import { refuseCounts } from "./internal/refuse.ts"
import * as shapes from "./internal/shapes.ts"

/** A part, and the answer to it or the problem with it. */
export interface PartAnswer<A> {
  readonly part: string
  readonly answer: Result.Result<A, string>
}

const refuseMake = makeMiddlewareCheck("MapReduce", shapes.mapReduceMake)

/**
 * Makes a map-reduce. Finished parts are kept: a run that is resumed asks only about the others.
 *
 * The failure of one part is its problem, and `reduce` decides what to do. A failure that all parts share (the quota, the
 * key, the account, the thread) ends everything at once. Parts beyond a used-up budget are not begun, and have a problem.
 * A run that is resumed asks again about parts that failed.
 *
 * `reduce` runs inside of the program: it may ask agents by `Agent.answer`. The custom event `map` counts the parts.
 */
export const make = <A, E, R, E2, R2, E3, R3, In = string, Out = string>(options: {
  /** The name of the agent, in events and errors. */
  readonly name: string
  /** Describes the agent to other agents. Default: empty. */
  readonly description?: string | undefined
  /** The schema of the input. Default: text. */
  readonly input?: Schema.ConstraintCodec<In, unknown> | StandardSchema<In> | undefined
  /** The schema of the output. Default: text. */
  readonly output?: Schema.ConstraintCodec<Out, unknown> | StandardSchema<Out> | undefined
  /** Splits the input into parts: the words for an agent each. */
  readonly split: (input: NoInfer<In>) => Effect.Effect<ReadonlyArray<string>, E2, R2>
  /** The agent that gets each part. */
  readonly map: Agent.Agent<A, E, R>
  /** Joins the answers, in the order of the parts. */
  readonly reduce: (
    results: ReadonlyArray<PartAnswer<Exclude<A, undefined>>>,
    input: NoInfer<In>
  ) => Effect.Effect<NoInfer<Out>, E3, R3>
  /** The most parts at once. Default: 8. */
  readonly concurrency?: number | undefined
}): Agent.Program<
  In,
  Out | Extract<A, undefined>,
  E | E2 | E3 | AgentError,
  R | Exclude<R2, ToolContext> | Exclude<R3, ToolContext>
> => {
  const refused = refuseMake(options) ?? refuseCounts("MapReduce", { concurrency: options.concurrency })
  const { concurrency = 8, description, input, map, name, output, reduce, split } = options

  const run = Effect.fnUntraced(function* (value: In) {
    const { run } = yield* ToolContext
    const parts = yield* Agent.step("split", split(value), Schema.Array(Schema.String))
    let count = 0
    const askPart = Effect.fnUntraced(function* (part: string) {
      const outcome = yield* ask(map, part)
      count++
      const isAnswered = outcome._tag === "Answered"
      yield* run.custom("map", { done: count, of: parts.length, isAnswered })
      return { part, answer: isAnswered ? Result.succeed(outcome.output) : Result.fail(outcome.problem) }
    })
    return yield* reduce(yield* Effect.forEach(parts, askPart, { concurrency }), value)
  })

  return Agent.program({
    name,
    description,
    input,
    output,
    ...compose(refused, () => [map]),
    run
  })
}
