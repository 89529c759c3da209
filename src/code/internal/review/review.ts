/**
 * Runs a script that a person reviews: it is rehearsed, its effects are shown, and once they are approved the script does
 * them, in the order of the rehearsal, and nothing else. If a result is known only once a call was made, the rest of
 * the script is another stage, with a question of its own.
 */
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Backend from "../../../core/Backend.ts"
import type { Json } from "../../../core/Json.ts"
import * as ToolError from "../../../core/ToolError.ts"
import { cut } from "../../../support/text/text.ts"
import { type ScriptCall, type Program, ScriptError, type ScriptLine } from "../../Scripts.ts"
import { findDefinition, nameOf, type World } from "../answers.ts"
import { type Door, type Refusal, runScript } from "../host.ts"
import * as Copy from "./copy.ts"
import { fromOutcome, makeKeys, type Outcome, outcomeOf, Plan, type PlannedEffect, questionOf } from "./plan.ts"
import { rehearse } from "./rehearse.ts"
import * as Sequence from "./sequence.ts"
import * as Stillness from "./stillness.ts"

/** A script that is reviewed. */
export interface Job {
  /** Begins the names of its steps. */
  readonly name: string
  readonly program: Program
  /** Makes the world of one run of the script. */
  readonly makeWorld: () => World
  /** The results that the script begins with. Its own are added. */
  readonly outcomes: Map<string, Outcome>
  /** Answers a call. In a rehearsal, the world makes no calls that act. */
  readonly answer: (world: World, call: ScriptCall) => Effect.Effect<Json, Refusal, unknown>
  readonly working: Door<unknown>["working"]
  /** A line below the effects in each question. Default: none. */
  readonly note?: string | undefined
  readonly tell: (message: ScriptLine) => Effect.Effect<void>
  /** Called with each call that was done and changes something. */
  readonly onDone: (call: ScriptCall) => void
}

/** The most parts of one script that are asked about on their own. */
const maxStages = 50

/** The most paths that are named in a failure. */
const maxPaths = 5

const rejected = (message: string): ToolError.ToolError => new ToolError.ToolError({ reason: "Rejected", message })

const isEffect = (world: World, { kind, name }: ScriptCall): boolean =>
  kind === "agent" || (kind === "tool" && findDefinition(world, name)?.annotations.readOnly !== true)

/** Checks that the files have not changed since the plan was made. */
const checkFiles = Effect.fnUntraced(function* (name: string, { context }: World, stage: number, { seen }: Plan) {
  const base = Option.getOrUndefined(yield* Effect.serviceOption(Backend.Backend))
  if (base === undefined) return
  const changed = yield* context.step(
    `${name}/changed/${stage}`,
    Copy.changedSince(base, seen),
    Schema.Array(Schema.String)
  )
  if (changed.length === 0) return
  const more = changed.length > maxPaths ? ", …" : ""
  const names = changed.slice(0, maxPaths).join(", ")
  return yield* rejected(
    `Files changed while the script waited for its approval (${names}${more}), so nothing of what was shown was done. Run the script again.`
  )
})

/** The turns of the effects whose order is known. Each waits for the one before. */
const makeTurns = (effects: ReadonlyArray<PlannedEffect>) => {
  const ordered = effects.filter(({ isOpen }) => !isOpen)
  const ends = ordered.map(() => Deferred.makeUnsafe<void>())
  const places = new Map(ordered.map(({ key }, at) => [key, at]))
  return {
    /** Waits for the turn of an effect. */
    await: (key: string): Effect.Effect<void> => {
      const before = ends[(places.get(key) ?? 0) - 1]
      return before === undefined ? Effect.void : Deferred.await(before)
    },
    end: (key: string): Effect.Effect<void> => {
      const own = ends[places.get(key) ?? -1]
      return own === undefined ? Effect.void : Effect.asVoid(Deferred.succeed(own, undefined))
    }
  }
}

/** Does the effects of a plan. Gives the result of the script, or its answers so far if it goes on in another stage. */
const commit = Effect.fnUntraced(function* (
  { answer: answerCall, makeWorld, onDone, outcomes, program, working }: Job,
  plan: Plan,
  tell: Job["tell"]
) {
  const world = makeWorld()
  const still = Stillness.make()
  const keyOf = makeKeys()
  const sequence = Sequence.make(plan.order, still)
  const turns = makeTurns(plan.effects)
  const planned = new Map(plan.effects.map((one) => [one.key, one]))
  const knownOutcomes = new Map(plan.known)
  const before = outcomes.size
  let unshown: string | undefined

  const perform = (call: ScriptCall, key: string): Effect.Effect<Json, Refusal, unknown> =>
    Effect.flatMap(
      Effect.tap(outcomeOf(answerCall(world, call)), (outcome) => Effect.sync(() => outcomes.set(key, outcome))),
      fromOutcome
    )

  const answer = (call: ScriptCall): Effect.Effect<Json, Refusal, unknown> => {
    const name = nameOf(world, call)
    const key = keyOf(call, name)
    sequence.name(call, key)
    return Effect.onExit(compute(call, name, key), (exit) =>
      exit._tag === "Success" || !Cause.hasInterrupts(exit.cause) ? sequence.await(key) : Effect.void
    )
  }

  const compute = (call: ScriptCall, name: string, key: string): Effect.Effect<Json, Refusal, unknown> => {
    const outcome = outcomes.get(key) ?? knownOutcomes.get(key)
    if (outcome !== undefined) {
      outcomes.set(key, outcome)
      return fromOutcome(outcome)
    }
    if (!isEffect(world, call)) return still.count(perform(call, key))
    if (unshown !== undefined || !planned.has(key)) {
      if (!plan.waits) unshown ??= `${name} ${cut(JSON.stringify(call.given), 300)}`
      return still.hold(Effect.never)
    }
    const work = Effect.ensuring(
      Effect.tap(perform(call, key), () => Effect.sync(() => onDone(call))),
      turns.end(key)
    )
    return Effect.andThen(still.hold(turns.await(key)), still.count(work))
  }

  const ended = yield* Effect.raceFirst(
    Effect.result(
      runScript(program, {
        answer,
        tell,
        working: (work) => still.count(working(work)),
        onAnswer: sequence.onAnswer,
        onResult: still.onResult,
        onEnd: still.onEnd
      })
    ),
    still.wait
  )
  if (unshown !== undefined) {
    return yield* rejected(
      `The script was stopped: it would have done what was not shown to the person who approved it (${unshown}). What it reads differs from what its rehearsal read.`
    )
  }
  if (Result.isResult(ended)) return { ended, order: [] }
  if (ended !== undefined) return yield* ended
  if (!plan.waits || outcomes.size === before) {
    return yield* rejected(
      "The script was stopped: it does not do what was shown to the person who approved it, in that order. What it reads differs from what its rehearsal read."
    )
  }
  return { ended: undefined, order: sequence.given() }
})

/** Runs a script in stages of rehearsal, question and commit. */
export const runReviewed = Effect.fnUntraced(function* (
  job: Job
): Effect.fn.Return<Json, ScriptError | ToolError.ToolError, unknown> {
  let order: ReadonlyArray<string> = []
  let lineCount = 0
  for (let stage = 1; stage <= maxStages; stage++) {
    const world = job.makeWorld()
    const { context } = world
    const plan = yield* context.step(`${job.name}/plan/${stage}`, rehearse(job, world, order), Plan)
    if (plan.failure !== undefined) {
      const { message, printed, stack } = plan.failure
      const lines = printed === "" ? "" : `\nIt had printed:\n${printed}`
      return yield* new ScriptError({
        reason: "Threw",
        message: `It failed when it was rehearsed, so nothing of this part was done. ${message}${lines}`,
        ...(stack === "" ? {} : { stack })
      })
    }
    if (plan.effects.length > 0) {
      yield* context.ask(yield* questionOf(plan, stage, job.note))
      yield* checkFiles(job.name, world, stage, plan)
    }
    // A script that runs again prints its first lines again.
    let line = 0
    const tell = (one: ScriptLine) => (++line <= lineCount ? Effect.void : job.tell(one))
    const result = yield* commit(job, plan, tell)
    lineCount = Math.max(lineCount, line)
    if (result.ended !== undefined) return yield* Effect.fromResult(result.ended)
    order = result.order
  }
  return yield* rejected(
    `The script was stopped: it has more than ${maxStages} parts that are asked about on their own.`
  )
})
