/**
 * Asks a person before many sub-agents work at once, with an estimate of their use.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { FanOut, Subagents } from "effect-deepagents/middleware"
 *
 * const researcher = Agent.make({ name: "researcher", description: "Answers one question", prompt: "You search." })
 *
 * const lead = Agent.make({
 *   name: "lead",
 *   prompt: "You answer by sources.",
 *   middleware: [FanOut.make({ above: 4 }), Subagents.make({ agents: [researcher] })]
 * })
 * ```
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as AgentState from "../core/AgentState.ts"
import * as Middleware from "../core/Middleware.ts"
import * as Ruling from "../core/Ruling.ts"
import type { Run } from "../core/Run.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import { describeArguments } from "../core/ToolCall.ts"
import { totalTokens, Usage } from "../core/Usage.ts"
import * as Attached from "../support/effect/attached.ts"
import { background, type Record as TaskRecord } from "./internal/background/state.ts"
import { isOpen } from "./internal/background/task.ts"
import { countProblem } from "./internal/limits.ts"
import * as shapes from "./internal/shapes.ts"

const name = "FanOut"

/** The number of sub-agents whose use is remembered, and of approved calls: the newest. */
const remembered = 100

const Spent = Schema.Struct({ runId: Schema.String, agent: Schema.String, usage: Usage })
type Spent = typeof Spent.Type

/** The use of the sub-agents of a tree, by run. */
const usages = AgentState.slot("fanOut", {
  schema: Schema.Array(Spent),
  initial: [],
  shared: {
    merge: (current, incoming) => {
      // The use of a run only grows.
      const isKnown = ({ runId, usage }: Spent): boolean =>
        current.some((old) => old.runId === runId && totalTokens(old.usage) >= totalTokens(usage))
      const fresh = incoming.filter((one) => !isKnown(one))
      const isReplaced = (old: Spent): boolean => fresh.some(({ runId }) => runId === old.runId)
      return fresh.length === 0 ? current : [...current.filter((old) => !isReplaced(old)), ...fresh].slice(-remembered)
    }
  }
})

/** Calls that needed a question. They still need it if other sub-agents finish before the decision. */
const askedCalls = AgentState.slot("fanOut.asked", { schema: Schema.Array(Schema.String), initial: [] })

const mean = (numbers: ReadonlyArray<number>): number =>
  numbers.reduce((sum, number) => sum + number, 0) / numbers.length

const figures = (tokens: number, cost: number | undefined): string =>
  `about ${Math.round(tokens).toLocaleString("en-US")} tokens${cost === undefined ? "" : `, ${cost.toFixed(4)} in cost`}`

/** Estimates a number of sub-agents by earlier sub-agents of the same name, else by all. */
const estimate = (
  all: ReadonlyArray<{ readonly agent: string; readonly usage: Usage }>,
  agent: unknown,
  count: number
): string => {
  // A model without usage reports was not free.
  const runs = all.filter(({ usage }) => totalTokens(usage) > 0)
  const own = runs.filter((one) => one.agent === agent)
  const like = own.length === 0 ? runs : own
  if (like.length === 0) return "It is not known what earlier sub-agents used, so there is no estimate."
  const tokens = mean(like.map(({ usage }) => totalTokens(usage)))
  const costs = like.flatMap(({ usage }) => (usage.cost === undefined ? [] : [usage.cost]))
  const cost = costs.length === 0 ? undefined : mean(costs)
  const sum = figures(tokens * count, cost === undefined ? undefined : cost * count)
  return `Estimate by ${like.length} earlier: ${figures(tokens, cost)} for this one; ${sum} if all ${count} are like it.`
}

const isBeginning = ({ annotations }: Middleware.PreparedCall): boolean => annotations.delegates === true

const rulings = ({ above }: Options) => {
  /** The calls of each run's round that start a sub-agent, in order. Calls of a program and edited calls come later. */
  const rounds = Attached.make<Run, { readonly round: number; readonly ids: Set<string>; readonly working: number }>()
  return Effect.fnUntraced(function* (run: Run, calls: ReadonlyArray<Middleware.PreparedCall>) {
    const beginning = calls.filter(isBeginning)
    if (beginning.length === 0) return calls.map(() => undefined)
    const tasks: ReadonlyArray<TaskRecord> = (yield* run.state.get(background))?.tasks ?? []
    const before = yield* run.state.get(askedCalls)
    const last = rounds.get(run)
    // A program's tasks of this round are calls of it too. Earlier tasks are counted once.
    const { ids, working } =
      last?.round === run.round
        ? last
        : { ids: new Set<string>(), working: tasks.filter(({ status }) => isOpen(status)).length }
    rounds.set(run, { round: run.round, ids, working })
    for (const { id } of beginning) ids.add(id)
    const order = [...ids]
    const total = working + order.length
    const runs = [
      ...(yield* run.state.get(usages)),
      ...tasks.flatMap(({ agent, status, usage }) => (usage === undefined || isOpen(status) ? [] : [{ agent, usage }]))
    ]
    const asks = new Set(
      beginning.flatMap(({ id }) => (before.includes(id) || working + order.indexOf(id) + 1 > above ? [id] : []))
    )
    if (asks.size === 0) return calls.map(() => undefined)
    const fresh = [...asks].filter((id) => !before.includes(id))
    if (fresh.length > 0) yield* run.state.set(askedCalls, [...before, ...fresh].slice(-remembered))
    return calls.map((call) => {
      if (!asks.has(call.id)) return undefined
      const why = `${total} sub-agents would work at once; more than ${above} need a decision.`
      return Ruling.ask(name, {
        description: `${call.name} ${describeArguments(call.arguments)}`,
        reason: `${why} ${estimate(runs, call.arguments["subagent_type"], total)}`,
        byPerson: true,
        likeness: `above ${above}`
      })
    })
  })
}

/** Limits of a fan-out. */
export interface Options {
  /**
   * The number of sub-agents that may work at once without a question: calls of one round whose tool has the annotation
   * `delegates` (`task`, `start_task`), and unfinished background tasks.
   */
  readonly above: number
}

const refuseMake = makeMiddlewareCheck(name, shapes.fanOutMake)

/**
 * Asks a person about each call beyond `above`, before any call of the round runs. The question shows an estimate: the
 * mean usage of sub-agents of the same name in this thread, else of all. After an approval with `always`, later calls
 * of the same tool in the thread run without a question. A classifier never decides on it.
 *
 * It also applies to the sub-agents of sub-agents.
 */
export const make = (options: Options): Middleware.AskingMiddleware =>
  refuseMake(options) ??
  Middleware.make({
    name,
    inherit: true,
    asks: true,
    check: () => countProblem(name, { above: options.above }),
    state: [usages, askedCalls, background],
    rulings: rulings(options),
    afterAgent: (run: Run): Effect.Effect<void> =>
      run.depth === 0 ? Effect.void : run.state.set(usages, [{ runId: run.runId, agent: run.agent, usage: run.usage }])
  })
