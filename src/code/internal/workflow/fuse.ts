/**
 * The middleware that all agents of a workflow inherit. It blows like a fuse: after a failure that somebody must mend at
 * the provider, no agent of the workflow asks that model again.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as AgentState from "../../../core/AgentState.ts"
import { turnPurpose } from "../../../core/ChatModel.ts"
import * as Middleware from "../../../core/Middleware.ts"
import { isModelError } from "../../../core/ModelError.ts"
import type { Run } from "../../../core/Run.ts"
import { totalTokens } from "../../../core/Usage.ts"
import * as Conductor from "./conductor.ts"

/** The cost of a workflow, over all of its inputs. */
export const costSlot = AgentState.slot("workflow", {
  schema: Schema.Struct({ cost: Schema.Finite }),
  initial: { cost: 0 }
})

const modelOf = ({ model }: Run): string => `${model?.provider ?? ""}/${model?.modelId ?? ""}`

/** True for a model call that may not begin. */
const isBlocked = (conductor: Conductor.Conductor, run: Run): boolean =>
  conductor.halt?.reason === "Budget" || conductor.blown.has(modelOf(run))

const overBudget = ({ bounds: { cost: most } }: Conductor.Conductor, cost: number): string =>
  `It has cost ${cost.toFixed(4)} of the ${most} that it may cost.`

/** Stops a workflow that has used up its money. Nobody can bound the cost of a model without prices. */
const checkCost = (conductor: Conductor.Conductor): Effect.Effect<void> => {
  const { bounds, run } = conductor
  if (bounds.cost === undefined || conductor.halt !== undefined) return Effect.void
  const cost = Conductor.costOf(conductor)
  if (cost >= bounds.cost) return Conductor.halt(conductor, "Budget", overBudget(conductor, cost))
  return run.usage.cost === undefined && totalTokens(run.usage) > 0
    ? Conductor.halt(
        conductor,
        "Budget",
        "It may cost a limited sum, and nobody knows the prices of its model: give `prices` to the layer of the model."
      )
    : Effect.void
}

/** Keeps the cost with the thread of the workflow: later inputs count on. */
const keepCost = (conductor: Conductor.Conductor): Effect.Effect<void> =>
  conductor.run.usage.cost === undefined
    ? Effect.void
    : conductor.run.state.set(costSlot, { cost: Conductor.costOf(conductor) })

const checkCosts = (all: ReadonlyArray<Conductor.Conductor>): Effect.Effect<void> =>
  Effect.forEach(all, checkCost, { discard: true })

const afterCall = (all: ReadonlyArray<Conductor.Conductor>): Effect.Effect<void> =>
  Effect.forEach(all, keepCost, { discard: true }).pipe(
    Effect.andThen(checkCosts(all)),
    Effect.andThen(Conductor.endActive(all))
  )

const blow = (all: ReadonlyArray<Conductor.Conductor>, run: Run, error: unknown): Effect.Effect<void> => {
  if (!isModelError(error) || !error.isTerminal) return Effect.void
  return Effect.forEach(
    all,
    (one) => {
      one.blown.add(modelOf(run))
      return Conductor.halt(one, "Terminal", error.message)
    },
    { discard: true }
  )
}

export const fuse = Middleware.make({
  name: "WorkflowFuse",
  inherit: true,
  beforeAgent: (run) => Conductor.bindRun(run),
  wrapModelCall: (request, next, run) => {
    const all = Conductor.conductorsOf(run)
    const isTurn = request.purpose === turnPurpose
    const begin = Effect.suspend(() => {
      if (all.some((one) => isBlocked(one, run))) return Effect.never
      Conductor.beginActive(all)
      const turn = isTurn ? Stream.tapError(next(request), (error) => blow(all, run, error)) : next(request)
      return Effect.succeed(Stream.ensuring(turn, afterCall(all)))
    })
    return Stream.unwrap(Effect.andThen(checkCosts(all), begin))
  },
  wrapToolCall: (call, next, run) =>
    // The work inside of such a call is counted itself, and can be resumed.
    call.annotations.delegates === true || call.annotations.resumable === true
      ? next(call)
      : Conductor.countActive(Conductor.conductorsOf(run), next(call))
})

/** The state of the workflow itself. Its agents do not inherit it. */
export const ledger = Middleware.make({ name: "WorkflowLedger", state: [costSlot] })
