/**
 * Runs steps that depend on each other, as data: a step begins when the steps before it have ended.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { Pipeline } from "effect-deepagents/patterns"
 *
 * const checker = Agent.make({ name: "checker", prompt: "You check facts." })
 * const stylist = Agent.make({ name: "stylist", prompt: "You check the style." })
 * const editor = Agent.make({ name: "editor", prompt: "You correct a text." })
 *
 * const review = Pipeline.make({
 *   name: "review",
 *   steps: {
 *     facts: { agent: checker, ask: (_, text) => text },
 *     style: { agent: stylist, ask: (_, text) => text },
 *     corrected: {
 *       agent: editor,
 *       after: ["facts", "style"],
 *       ask: ({ facts, style }, text) => `${text}\n\n${facts}\n${style}`
 *     }
 *   }
 * })
 * const program = Effect.map(Agent.run(review, "Bern has 130,000 peple."), ({ output }) => output["corrected"]?.text)
 * ```
 *
 * Steps whose answers have types of their own are an `Agent.program` with `Agent.answer`: docs/patterns.md shows one.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Graph from "effect/Graph"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import * as Agent from "../core/Agent.ts"
import type { AgentError } from "../core/AgentError.ts"
import * as Middleware from "../core/Middleware.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import { ToolContext } from "../core/ToolContext.ts"
import { ask } from "./internal/ask.ts"
import { compose } from "./internal/compose.ts"
import { refuseCounts } from "./internal/refuse.ts"
import * as shapes from "./internal/shapes.ts"

/** The answers of the steps that were done before, by their names. */
export interface StepOutputs {
  readonly [step: string]: string
}

/** A step of a pipeline. */
export interface Step<O extends string | undefined, E, R> {
  /** The agent that does the step. */
  readonly agent: Agent.Agent<O, E, R>
  /** The steps that must have ended before. Default: none. */
  readonly after?: ReadonlyArray<string> | undefined
  /** Makes the words for the agent, of the answers so far and of the input. */
  readonly ask: (answers: StepOutputs, input: string) => string
  /** Decides if the step is done at all. Default: always. */
  readonly when?: ((answers: StepOutputs, input: string) => boolean) | undefined
}

/**
 * The end of a step: its answer, or the reason why the answer is missing.
 *
 * - `failed`: the agent did not answer
 * - `skipped`: `when` said no. The steps after it go on without its answer
 * - `blocked`: a step before it failed or is blocked
 */
const StepEnd = Schema.Struct({
  status: Schema.Literals(["done", "failed", "skipped", "blocked"]),
  text: Schema.String
})
type StepEnd = typeof StepEnd.Type

/** The ends of all steps, by their names. */
export const Result = Schema.Record(Schema.String, StepEnd)
export type Result = typeof Result.Type

type AnyStep = Step<string | undefined, unknown, unknown>

/** Finds a step that lacks a part, or that waits for itself or for a step that there is not. */
const findProblem = (steps: Readonly<Record<string, AnyStep>>): string | undefined => {
  const names = Object.keys(steps)
  if (names.length === 0) return "There are no steps."
  for (const [name, step] of Object.entries(steps)) {
    for (const part of ["agent", "ask"] as const)
      if (step?.[part] === undefined) return `The step "${name}" has no \`${part}\`.`
    const { after = [] } = step
    const missing = after.find((one) => !names.includes(one))
    if (after.includes(name)) return `The step "${name}" waits for itself.`
    if (missing !== undefined)
      return `The step "${name}" comes after "${missing}", which is no step (${names.join(", ")}).`
  }
  const graph = Graph.directed<string, undefined>((mutable) => {
    const at = new Map(names.map((name) => [name, Graph.addNode(mutable, name)]))
    for (const [name, { after = [] }] of Object.entries(steps)) {
      for (const one of after) {
        const [from, to] = [at.get(one), at.get(name)]
        if (from !== undefined && to !== undefined) Graph.addEdge(mutable, from, to, undefined)
      }
    }
  })
  if (Graph.isAcyclic(graph)) return undefined
  const circles = Graph.stronglyConnectedComponents(graph)
  const circle = circles.find((one) => one.length > 1) ?? []
  const inCircle = circle.map((index) => names[index] ?? "")
  return `The steps ${inCircle.map((name) => `"${name}"`).join(", ")} wait for each other.`
}

const refuseMake = makeMiddlewareCheck("Pipeline", shapes.pipelineMake)

/**
 * Makes a pipeline of steps. Steps that wait for nothing run at once, each as soon as its own steps before have ended.
 *
 * A step that fails blocks the steps after it; the others go on. A failure that all steps share (the quota, the key, the
 * account, the thread) ends everything at once. Steps that wait for each other fail the run with `InvalidAgent`. The end
 * of a step emits a custom event `step`.
 */
export const make = <O extends string | undefined, E, R>(options: {
  /** The name of the pipeline, in events and errors. */
  readonly name: string
  /** Describes the pipeline to other agents. Default: empty. */
  readonly description?: string | undefined
  /** The steps by their names. */
  readonly steps: Readonly<Record<string, Step<O, E, R>>>
  /** The most steps at once. Default: 8. */
  readonly concurrency?: number | undefined
}): Agent.Program<string, Result | Extract<O, undefined>, E | AgentError, R> => {
  const refused = refuseMake(options) ?? refuseCounts("Pipeline", { concurrency: options.concurrency })
  const { concurrency = 8, description, name, steps } = options
  const problem = refused === undefined ? findProblem(steps) : undefined
  const invalid =
    problem === undefined ? refused : Middleware.make({ name: "Pipeline", check: () => `Pipeline: ${problem}` })

  const run = Effect.fnUntraced(function* (input: string) {
    const { run } = yield* ToolContext
    const slots = yield* Semaphore.make(concurrency)
    const names = Object.keys(steps)
    const ends = new Map(names.map((one) => [one, Deferred.makeUnsafe<StepEnd>()]))

    const runStep = Effect.fnUntraced(function* (step: string, { after = [], agent, ask: say, when }: Step<O, E, R>) {
      const entries: Array<readonly [string, string]> = []
      for (const one of after) {
        const before = ends.get(one)
        if (before === undefined) continue
        const { status, text } = yield* Deferred.await(before)
        if (status === "failed" || status === "blocked") {
          return { status: "blocked", text: `The step "${one}" is ${status}.` } satisfies StepEnd
        }
        if (status === "done") entries.push([one, text])
      }
      const answers: StepOutputs = Object.fromEntries(entries)
      if (when?.(answers, input) === false) {
        return { status: "skipped", text: "Its condition does not hold." } satisfies StepEnd
      }
      const outcome = yield* slots.withPermits(1)(ask(agent, say(answers, input), step))
      return outcome._tag === "Answered"
        ? ({ status: "done", text: outcome.output } satisfies StepEnd)
        : ({ status: "failed", text: outcome.problem } satisfies StepEnd)
    })

    const ended = yield* Effect.forEach(
      Object.entries(steps),
      Effect.fnUntraced(function* ([step, one]) {
        const end: StepEnd = yield* runStep(step, one)
        yield* run.custom("step", { step, status: end.status })
        const slot = ends.get(step)
        if (slot !== undefined) yield* Deferred.succeed(slot, end)
        return [step, end] as const
      }),
      { concurrency: "unbounded" }
    )
    return Object.fromEntries(ended)
  })

  return Agent.program({
    name,
    description,
    output: Result,
    ...compose(invalid, () => Object.values(steps).map(({ agent }) => agent)),
    run
  })
}
