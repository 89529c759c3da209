/**
 * Keeps the results of a script that failed, so that a corrected script does not repeat its calls. They are found by
 * content: the n-th equal call gets the n-th result. Calls that failed have none, and are made again.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as AgentState from "../../core/AgentState.ts"
import type { ToolContext } from "../../core/ToolContext.ts"
import * as ToolError from "../../core/ToolError.ts"
import { sha256Sync } from "../../support/store/sha256.ts"
import { cut } from "../../support/text/text.ts"
import { Outcome } from "./review/plan.ts"
import * as Setup from "./setup.ts"

const Outcomes = Schema.Array(Schema.Tuple([Schema.String, Outcome]))

const Begun = Schema.Struct({ ...Setup.Begun.fields, outcomes: Schema.optionalKey(Outcomes) })

const Failed = Schema.Struct({ id: Schema.String, ...Setup.Begun.fields, outcomes: Outcomes })
type Failed = typeof Failed.Type

/** The scripts that failed, the last one last. */
type FailedSlot = AgentState.Slot<ReadonlyArray<Failed>>

/** The scripts of code mode that failed on a thread. */
export const failedSlot: FailedSlot = AgentState.slot("script-failed", { schema: Schema.Array(Failed), initial: [] })

/** The workflows that stopped as tools of the agents of a tree: the next call is another run. */
export const stoppedSlot: FailedSlot = AgentState.slot("workflow-stopped", {
  schema: Schema.Array(Failed),
  initial: [],
  shared: {
    merge: (current, incoming) => [...current, ...incoming.filter(({ id }) => current.every((one) => one.id !== id))]
  }
})

/** The most failed scripts of a thread that can be continued. */
const maxFailed = 4

/** The most characters of all results of one script. A script with more can't be continued. */
const maxKept = 500_000

/** A script with the results that it begins with, and all that it has got. */
export interface Continued {
  readonly id: string
  readonly now: number
  readonly seed: number
  /** The results of calls by their keys, also of calls that an earlier version of the script made. */
  readonly outcomes: Map<string, Outcome>
}

const unknownId = (id: string): ToolError.ToolError =>
  new ToolError.ToolError({
    reason: "InvalidArguments",
    message: `There is no failed script "${cut(id, 40)}" to continue, so nothing was done. Leave \`continues\` out, and don't repeat what earlier scripts did.`
  })

/** Begins a script, or continues a failed script by its id. All attempts at its call get the same. */
export const open = Effect.fnUntraced(function* (
  context: ToolContext["Service"],
  slot: FailedSlot,
  key: string,
  id: string | undefined
) {
  const begin: Effect.Effect<typeof Begun.Type, ToolError.ToolError> =
    id === undefined
      ? Setup.begin
      : Effect.flatMap(context.state.get(slot), (all) => {
          const failed = all.find((one) => one.id === id)
          return failed === undefined ? Effect.fail(unknownId(id)) : Effect.succeed(failed)
        })
  const { now, outcomes = [], seed } = yield* context.step("script/begun", begin, Begun)
  return {
    id: id ?? sha256Sync(`${key} ${now} ${seed}`).slice(0, 8),
    now,
    seed,
    outcomes: new Map(outcomes)
  } satisfies Continued
})

/** Reports whether a result is kept. Calls that store or search run again: that changes nothing. */
const isKept = ([key, outcome]: readonly [string, Outcome]): boolean =>
  !/^(?:store|search|describe) /.test(key) && (!("error" in outcome) || outcome.error.reason === "UnknownOutcome")

/** The kept results of a script, each under its number among the equal calls that have one. */
const keptOf = ({ outcomes }: Continued): Failed["outcomes"] => {
  const counts = new Map<string, number>()
  return [...outcomes].filter(isKept).map(([key, outcome]) => {
    const content = key.slice(0, key.lastIndexOf("#"))
    const nth = (counts.get(content) ?? 0) + 1
    counts.set(content, nth)
    return [`${content}#${nth}`, outcome]
  })
}

const others = (all: ReadonlyArray<Failed>, { id }: Continued) => all.filter((one) => one.id !== id)

/** Keeps the results of a script that failed. Reports whether another script can continue it. */
export const keepFailed = (state: AgentState.Store, slot: FailedSlot, script: Continued): Effect.Effect<boolean> => {
  const { id, now, seed } = script
  const outcomes = keptOf(script)
  const canContinue = outcomes.length > 0 && JSON.stringify(outcomes).length <= maxKept
  const added = canContinue ? [{ id, now, seed, outcomes }] : []
  return Effect.as(
    state.update(slot, (all) => [...others(all, script), ...added].slice(-maxFailed)),
    canContinue
  )
}

/** Drops the results of a script that another script has continued to its end. */
export const forget = (state: AgentState.Store, slot: FailedSlot, script: Continued): Effect.Effect<void> =>
  state.update(slot, (all) => others(all, script))
