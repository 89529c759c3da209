/** The plan of a stage: the effects that a person approves together, and the results of the rehearsal behind them. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Json } from "../../../core/Json.ts"
import * as Question from "../../../core/Question.ts"
import * as Ruling from "../../../core/Ruling.ts"
import { canonical } from "../../../core/schema/jsonTree.ts"
import * as ToolError from "../../../core/ToolError.ts"
import { cut } from "../../../support/text/text.ts"
import type { ScriptCall } from "../../Scripts.ts"
import type { Refusal } from "../host.ts"

/** The outcome of a call of a script. */
export const Outcome = Schema.Union([
  Schema.Struct({ value: Json }),
  Schema.Struct({
    error: Schema.Struct({ name: Schema.String, message: Schema.String, reason: Schema.optionalKey(Schema.String) })
  })
])
export type Outcome = typeof Outcome.Type

/** An effect of a script. With `isOpen` only the call itself can tell its result. */
const Planned = Schema.Struct({
  key: Schema.String,
  kind: Schema.Literals(["tool", "agent"]),
  isOpen: Schema.Boolean,
  call: Question.RehearsedCall
})
export type PlannedEffect = typeof Planned.Type

export const Plan = Schema.Struct({
  effects: Schema.Array(Planned),
  changes: Schema.Array(Schema.Struct({ path: Schema.String, diff: Schema.String })),
  /** The outcomes of the calls that are not made again. */
  known: Schema.Array(Schema.Tuple([Schema.String, Outcome])),
  /** The answers that the script got in its rehearsal, in their order. */
  order: Schema.Array(Schema.String),
  /** The files that the rehearsal has looked at, with their versions. */
  seen: Schema.Array(Schema.Tuple([Schema.String, Schema.String])),
  /** True when the script goes on after results that only its calls can tell: then there is another stage. */
  waits: Schema.Boolean,
  failure: Schema.optionalKey(
    Schema.Struct({ reason: Schema.String, message: Schema.String, stack: Schema.String, printed: Schema.String })
  )
})
export type Plan = typeof Plan.Type

export const outcomeOf = <R>(work: Effect.Effect<Json, Refusal, R>): Effect.Effect<Outcome, never, R> =>
  Effect.match(work, {
    onSuccess: (value): Outcome => ({ value }),
    onFailure: ({ message, name, reason }): Outcome => ({
      error: reason === undefined ? { name, message } : { name, message, reason }
    })
  })

export const fromOutcome = (outcome: Outcome): Effect.Effect<Json, Refusal> =>
  "error" in outcome ? Effect.fail(outcome.error) : Effect.succeed(outcome.value)

/** Names the calls of one run of a script by their content. Equal ones are told apart by their count. */
export const makeKeys = () => {
  const counts = new Map<string, number>()
  return ({ given, kind }: ScriptCall, name: string): string => {
    const key = `${kind} ${name} ${canonical(given)}`
    const nth = (counts.get(key) ?? 0) + 1
    counts.set(key, nth)
    return `${key}#${nth}`
  }
}

/** The longest description of one effect, and the longest text of all diffs, in characters. */
const maxEffect = 400
const maxDiffs = 40_000

const describe = ({ call, isOpen }: PlannedEffect, at: number): string => {
  const reasons = call.asks.flatMap(({ reason }) => (reason === undefined ? [] : [`   ${cut(reason, maxEffect)}`]))
  const words = cut(call.description.replaceAll(/\s+/g, " "), maxEffect)
  return [`${at + 1}. ${words}${isOpen ? " (its result is not known before)" : ""}`, ...reasons].join("\n")
}

/** Makes the question about a stage. Fails when nobody may decide on all of its effects. */
export const questionOf = (
  { changes, effects, waits }: Plan,
  stage: number,
  note?: string
): Effect.Effect<Question.Question<void>, ToolError.ToolError> => {
  const calls = effects.flatMap(({ call, kind }) => (kind === "tool" ? [call] : []))
  const { ruling } = Ruling.compose(calls.flatMap(({ asks }) => asks.map(({ by, ...terms }) => Ruling.ask(by, terms))))
  if (ruling._tag === "Refuse")
    return Effect.fail(new ToolError.ToolError({ reason: "Rejected", message: ruling.reason }))
  const what = effects.length === 1 ? "this" : `these ${effects.length} things`
  const diffs = changes.map(({ diff, path }) => `${path}\n${diff}`).join("\n")
  const lines = [
    stage === 1
      ? `The script would do ${what}, and nothing else. Nothing has been done.`
      : `The script goes on, and would do ${what}, and nothing else (part ${stage}).`,
    ...effects.map(describe),
    ...(diffs === "" ? [] : ["", "The files change so:", cut(diffs, maxDiffs)]),
    ...(note === undefined ? [] : ["", note]),
    ...(waits ? ["", "What follows is asked about once these results are known."] : [])
  ]
  const details = {
    part: stage,
    effects: effects.map(({ call }) => ({ name: call.name, arguments: call.arguments })),
    changes
  }
  return Effect.succeed(
    Question.approval(lines.join("\n"), details, { ask: ruling._tag === "Ask" ? ruling : undefined, calls })
  )
}
