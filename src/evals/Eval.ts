/**
 * Evaluations: an agent runs on cases, and scorers judge each trial.
 *
 * ```ts
 * import { Console, Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { Eval, Report, Scorers } from "effect-deepagents/evals"
 *
 * const clerk = Agent.make({ name: "clerk", prompt: "You answer questions about rivers." })
 *
 * const program = Effect.gen(function* () {
 *   const report = yield* Eval.suite({
 *     agent: clerk,
 *     cases: [{ name: "danube", input: "Which river flows through Ulm?", contains: ["Danube"] }],
 *     scorers: [Scorers.expectations, Scorers.reported(Scorers.rounds(3))],
 *     trials: 5,
 *     k: 3
 *   })
 *   yield* Console.log(Report.toMarkdown(report))
 * })
 * ```
 *
 * The model is a layer as ever: a script, a recording (`Cassette`), or a provider. Each trial has a scope of its own in a
 * recording, so that a rerun gives the same report without a request.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as MemoryBackend from "../backends/MemoryBackend.ts"
import { type Agent, describe } from "../core/Agent.ts"
import type { Request } from "../core/Approval.ts"
import type { Backend } from "../core/Backend.ts"
import { Json, JsonObject } from "../core/Json.ts"
import { HumanMessage, Message } from "../core/Message.ts"
import * as Middleware from "../core/Middleware.ts"
import type { ToolError } from "../core/ToolError.ts"
import * as ToolOutput from "../core/ToolOutput.ts"
import { add, totalTokens, type Usage, zero } from "../core/Usage.ts"
import { TaggedError } from "../support/effect/taggedError.ts"
import { makeEffectCheck } from "../support/options/check.ts"
import { cut } from "../support/text/text.ts"
import * as Cassette from "../testing/Cassette.ts"
import { describeFailure, isTerminal, Judging, observeRun } from "./internal/observe.ts"
import * as shapes from "./internal/shapes.ts"
import type { Report, Score, TrialReport as Done } from "./Report.ts"

const Texts = Schema.Array(Schema.String)
const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** A question to an agent, and the expected answer. `Scorers.expectations` checks the expectations of a case. */
export const Case = Schema.Struct({
  /** The name of the case in reports. Names of a suite differ. */
  name: Schema.String,
  /** The input of the agent. */
  input: Schema.Union([Schema.String, HumanMessage]),
  /** The conversation before the input. */
  history: Schema.optionalKey(Schema.Array(Message)),
  /** The part of the suite that the case belongs to. */
  group: Schema.optionalKey(Schema.String),
  /** The right output of the agent, as JSON. */
  expected: Schema.optionalKey(Json),
  /** Texts that the answer contains. Upper and lower case are the same. */
  contains: Schema.optionalKey(Texts),
  /** Texts that the answer does not contain. */
  excludes: Schema.optionalKey(Texts),
  /** The tools that are called, in this order; other calls may lie between them. */
  tools: Schema.optionalKey(Texts),
  /** The tools that are not called. */
  avoids: Schema.optionalKey(Texts),
  /** The files that the case begins with, by their paths: `Eval.files` gives them. */
  files: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  /** The files that are there at the end: a text that each has in it, `null` for a file that is gone. `Scorers.files` checks them. */
  leaves: Schema.optionalKey(Schema.Record(Schema.String, Schema.NullOr(Schema.String))),
  /** The most rounds that the case should take. It is reported, and fails nothing. */
  rounds: Schema.optionalKey(Count),
  /** The most tokens that the case should take. It is reported, and fails nothing. */
  tokens: Schema.optionalKey(Count),
  /** Data for scorers and layers, such as the files that the case begins with. */
  metadata: Schema.optionalKey(JsonObject)
})
export interface Case extends Schema.Schema.Type<typeof Case> {}

/** A call of a tool in a trial, by the agent itself. */
export interface Call {
  readonly name: string
  readonly arguments: JsonObject
  readonly isError: boolean
}

/**
 * A run of the agent on a case. `text` is the last answer, `output` the decoded one; `messages` are the new ones.
 * `pending` are the requests that a suspended run waits for. `time` is in milliseconds.
 */
export interface Trial<out Output = unknown> {
  readonly case: Case
  readonly index: number
  readonly output: Output | undefined
  readonly text: string
  readonly messages: ReadonlyArray<Message>
  readonly calls: ReadonlyArray<Call>
  readonly pending: ReadonlyArray<Request>
  readonly usage: Usage
  readonly rounds: number
  readonly time: number
}

/** The files of a case, in memory: for the `layer` of a suite. */
export const files = ({ files: given = {} }: Case): Layer.Layer<Backend> => MemoryBackend.layer({ files: given })

/** Judges a trial, with evidence. A scorer that uses a model tells its usage by `Scorers.charge`. */
export type Scorer<in Output = unknown, out E = never, out R = never> = (
  trial: Trial<Output>
) => Effect.Effect<ReadonlyArray<Score>, E, R>

/** The most characters of an answer or of evidence in a report. */
const mostCharacters = 4_000

/** The cases or the agent of a suite are not valid. */
export class EvalError extends TaggedError<EvalError>()("EvalError", { problem: Schema.String }) {
  override get message(): string {
    return `The evaluation can't run: ${this.problem}`
  }
}

/** The limits of a suite. */
interface Limits {
  /** In the currency of the model's prices. Default: no limit. */
  readonly cost?: number | undefined
  /** Input and output tokens together. Default: no limit. */
  readonly tokens?: number | undefined
}

/** The services that a scorer needs. */
export type Services<S> = S extends (trial: never) => Effect.Effect<infer _A, infer _E, infer R> ? R : never

/** The options of a suite, whose layer has the services `Out`. */
export interface Options<O, E, R, All extends ReadonlyArray<Scorer<O, unknown, unknown>>, Out, LE, LR> {
  /** The agent that is evaluated; a program, too. */
  readonly agent: Agent<O, E, R>
  /** The cases, such as values from `Cases`. */
  readonly cases: ReadonlyArray<Case>
  /** The scorers of each trial. Without scorers, a trial passes when its run succeeds. */
  readonly scorers: All
  /** Gives the services of a case, which are built anew for each trial: its agent and its scorers share them. Default: none. */
  readonly layer?: ((one: Case) => Layer.Layer<Out, LE, LR>) | undefined
  /** How often each case is run. Default: 1. */
  readonly trials?: number | undefined
  /** The `k` of pass@k and pass^k in the report, at most `trials`. Default: `trials`. */
  readonly k?: number | undefined
  /** Trials at once. Default: 4. */
  readonly concurrency?: number | undefined
  /** Limits of all trials and their judges together: no trial begins beyond them. Default: no limit. */
  readonly limits?: Limits | undefined
}

/**
 * The shared state of a suite: the reason that no more trials begin, and the usage of runs and scorers so far.
 * `isUnpriced` says that a part of it has no cost.
 */
interface Progress {
  stopped: string | undefined
  usage: Usage
  isUnpriced: boolean
}

const exhausted = ({ cost, tokens }: Limits, { isUnpriced, usage }: Progress): string | undefined => {
  if (tokens !== undefined && totalTokens(usage) >= tokens) return `The suite has spent its ${tokens} tokens.`
  if (cost === undefined) return undefined
  if (isUnpriced) {
    return "The cost of the suite is limited, and a model has no prices. Give `prices` to its layer, or limit tokens."
  }
  return (usage.cost ?? 0) >= cost ? `The suite has spent its cost of ${cost}.` : undefined
}

const problemOf = (
  options: Pick<
    Options<unknown, unknown, unknown, ReadonlyArray<never>, never, never, never>,
    "agent" | "cases" | "trials" | "k" | "concurrency" | "limits"
  >
): string | undefined => {
  const { agent, cases, concurrency = 4, k = 1, limits = {}, trials = 1 } = options
  const counts = { trials, k, concurrency }
  for (const [name, count] of Object.entries(counts)) {
    if (!Number.isInteger(count) || count < 1) return `\`${name}\` must be a whole number of at least 1, not ${count}`
  }
  if (k > trials) return `\`k\` is at most \`trials\`: ${k} is more than ${trials}`
  for (const [name, limit] of Object.entries(limits)) {
    if (limit !== undefined && !(limit >= 0)) return `\`limits.${name}\` must be a number of at least 0, not ${limit}`
  }
  if (cases.length === 0) return "there are no cases"
  const names = new Set<string>()
  for (const { name } of cases) {
    if (names.has(name)) return `two cases are named ${JSON.stringify(name)}`
    names.add(name)
  }
  return describe(agent).problem
}

const refuse = makeEffectCheck("Eval.suite", shapes.evalSuite, (_, problem) => Effect.fail(new EvalError({ problem })))

/** Scores a trial. A scorer that fails does not stop the others. */
const scoreTrial = <O, RS>(
  trial: Trial<O>,
  scorers: ReadonlyArray<Scorer<O, unknown, RS>>,
  progress: Progress
): Effect.Effect<ReadonlyArray<Score>, never, RS> =>
  Effect.map(
    Effect.forEach(scorers, (scorer) =>
      Effect.matchCause(
        Effect.suspend(() => scorer(trial)),
        {
          onSuccess: (scores) => scores,
          onFailure: (cause) => {
            const problem = describeFailure(cause)
            if (isTerminal(cause)) progress.stopped ??= problem
            return [
              { name: "scorer", kind: "correctness" as const, passed: false, evidence: `The scorer failed: ${problem}` }
            ]
          }
        }
      )
    ),
    (scores) => scores.flat()
  )

const runTrial = Effect.fnUntraced(function* <O, E, R, RS>(
  agent: Agent<O, E, R>,
  scorers: ReadonlyArray<Scorer<O, unknown, RS>>,
  one: Case,
  index: number,
  progress: Progress
) {
  const { calls, exit, rounds, time, usage } = yield* observeRun(agent, one.input, one.history)
  progress.usage = add(progress.usage, usage)
  if (usage.cost === undefined && totalTokens(usage) > 0) progress.isUnpriced = true
  const facts = { usage, rounds, time }
  if (Exit.isFailure(exit)) {
    const problem = describeFailure(exit.cause)
    if (isTerminal(exit.cause)) progress.stopped ??= problem
    return { ...facts, passed: false, text: "", scores: [], problem: cut(problem, mostCharacters) } satisfies Done
  }
  const { newMessages, output, pending, text } = exit.value
  const trial = { case: one, index, output, text, messages: newMessages, calls, pending, ...facts }
  let judging = zero
  const scores = yield* Effect.provideService(scoreTrial(trial, scorers, progress), Judging, (used, needsPrices) => {
    judging = add(judging, used)
    progress.usage = add(progress.usage, used)
    if (needsPrices && used.cost === undefined && totalTokens(used) > 0) progress.isUnpriced = true
  })
  const passed = scores.every((score) => score.kind === "reported" || score.passed)
  const evident = scores.map((score) => ({ ...score, evidence: cut(score.evidence, mostCharacters) }))
  const judged = totalTokens(judging) === 0 ? {} : { judging }
  return { ...facts, ...judged, passed, text: cut(text, mostCharacters), scores: evident } satisfies Done
})

/**
 * Runs each case as often as `trials` says, and scores the trials. A failed run and a failed scorer fail the trial. When a
 * provider refuses the key, the access or the quota, or `limits` are reached, no more trials begin: `stopped` in the
 * report says why, and a case without its trials does not pass.
 */
export const suite = <
  O,
  E,
  R,
  const All extends ReadonlyArray<Scorer<O, unknown, unknown>>,
  Out = never,
  LE = never,
  LR = never
>(
  options: Options<O, E, R, All, Out, LE, LR>
): Effect.Effect<Report, EvalError, Exclude<R | Services<All[number]>, Out> | LR> =>
  refuse(options) ??
  Effect.gen(function* () {
    const problem = problemOf(options)
    if (problem !== undefined) return yield* new EvalError({ problem })
    const { agent, cases, concurrency = 4, layer, limits = {}, trials = 1 } = options
    // A tuple needs the services of its members.
    const scorers = options.scorers as ReadonlyArray<Scorer<O, unknown, Services<All[number]>>>
    const progress: Progress = { stopped: undefined, usage: zero, isUnpriced: false }
    // Without a layer, `Out` is `never`.
    const servicesOf = layer ?? (() => Layer.empty as Layer.Layer<Out>)
    const runOne = (one: Case, index: number) =>
      Effect.suspend(() => {
        progress.stopped ??= exhausted(limits, progress)
        if (progress.stopped !== undefined) return Effect.undefined
        return Effect.suspend(() =>
          Effect.provide(runTrial(agent, scorers, one, index, progress), servicesOf(one))
        ).pipe(
          Effect.catchCause((cause) => Effect.succeed<Done>(neverBegun(describeFailure(cause)))),
          Effect.provideService(Cassette.Scope, `${one.name} ${index}`),
          Effect.withSpan("eval.trial", { attributes: { case: one.name, trial: index } })
        )
      })
    const jobs = cases.flatMap((one) => Array.from({ length: trials }, (_, index) => ({ one, index: index + 1 })))
    const outcomes = yield* Effect.forEach(jobs, ({ index, one }) => runOne(one, index), { concurrency })
    const report: Report = {
      agent: agent.name,
      k: options.k ?? trials,
      cases: cases.map(({ group, name }, place) => {
        const own = outcomes.slice(place * trials, (place + 1) * trials).filter((trial) => trial !== undefined)
        return { name, ...(group === undefined ? {} : { group }), expected: trials, trials: own }
      }),
      ...(progress.stopped === undefined ? {} : { stopped: progress.stopped })
    }
    return report
  })

const neverBegun = (problem: string): Done => ({
  passed: false,
  text: "",
  scores: [],
  problem: `The layer of the trial failed: ${problem}`,
  usage: zero,
  rounds: 0,
  time: 0
})

/** The answer of a tool in its place: a text, or an effect of the arguments that the tool would run with. */
export type Stub = string | ((args: JsonObject) => Effect.Effect<string, ToolError>)

/**
 * Answers calls in the place of tools, by their names, also for sub-agents. Arguments are decoded and approvals are
 * asked as ever; the tool does not run.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { Eval } from "effect-deepagents/evals"
 *
 * declare const clerk: Agent.Agent
 * const offline = clerk.pipe(Agent.around(Eval.stubs({ web_search: "No results." })))
 * ```
 */
export const stubs = (answers: { readonly [tool: string]: Stub }): Middleware.Middleware => {
  const all = new Map(Object.entries(answers))
  return Middleware.make({
    name: "Stubs",
    inherit: true,
    check: (_, reach) => Middleware.unknownTool("Eval.stubs", all.keys(), reach),
    wrapToolCall: (call, next) => {
      const stub = all.get(call.name)
      if (stub === undefined) return next(call)
      const answered = typeof stub === "string" ? Effect.succeed(stub) : Effect.suspend(() => stub(call.given()))
      return Effect.map(answered, (text) => ToolOutput.make(text))
    }
  })
}
