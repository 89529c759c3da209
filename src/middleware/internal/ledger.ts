/**
 * The ledger of a budget: the use of a run and its sub-agents, one for the whole tree of runs.
 *
 * Tokens and cost are the usage of the run with the budget: the core adds everything below it there, however the
 * middleware is stacked. Background tasks are separate runs, here or on a server, and are added. Rounds and calls are
 * counted here before they start, so that parallel agents can't take the same one twice. The ledger of a resumed run
 * starts with its thread's earlier work (`Run.spent`).
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Run } from "../../core/Run.ts"
import type { ToolError } from "../../core/ToolError.ts"
import type { ToolOutput } from "../../core/ToolOutput.ts"
import { subtract, totalTokens, type Usage, zero } from "../../core/Usage.ts"
import * as Attached from "../../support/effect/attached.ts"

/** Kinds of limits. */
export const kinds = ["tokens", "cost", "rounds", "time", "toolCalls"] as const
export type Kind = (typeof kinds)[number]

/** The limits that are set; `time` in milliseconds. */
export type Maxima = { readonly [K in Kind]: number | undefined }

/** A user of tokens: a run, or a task on a server as far as the server reports. */
export interface Spender {
  readonly usage: Usage
}

/** The use of one run and everything below it. */
export interface Ledger {
  /** The run with the budget. */
  readonly owner: Run
  /** The start of its work in milliseconds since the epoch, moved back by the work of earlier runs. */
  readonly since: number
  readonly warned: Set<string>
  /** The background tasks, each with its usage before it joined this ledger: the owner's usage excludes them. */
  readonly beside: Map<Spender, Usage>
  /** The usage of background tasks that earlier runs started. */
  readonly earlier: Usage
  /** The usage of each background task that was charged to the owner. */
  readonly charged: Map<Spender, Usage>
  rounds: number
  toolCalls: number
  /** A model that answered, and whose answer has no cost. */
  unpriced: string | undefined
  /** True when agents requested more calls than remain. */
  wantsCalls: boolean
}

/** A limit that is reached. */
export interface ReachedLimit {
  readonly limit: Kind
  readonly max: number
  readonly used: number
}

/** Names the used-up limit of a budget, if there is one. */
export type UsedUp = Effect.Effect<string | undefined>

/** The rest of a budget, by the kinds that it limits. */
export type Rest = { readonly [K in Kind]?: number }

/** A budget over a run. */
export interface Over {
  readonly usedUp: UsedUp
  readonly rest: Effect.Effect<Rest>
}

/** The budgets over a run. */
const over = Attached.make<Run, ReadonlyArray<Over>>()

/** Puts a budget over a run. */
export const watchRun = (run: Run, budget: Over): void => over.set(run, [...(over.get(run) ?? []), budget])

/** The rest of all budgets over a run: of each kind the smallest. */
export const restOf = Effect.fnUntraced(function* (run: Run) {
  const minimum: { [K in Kind]?: number } = {}
  for (const { rest } of over.get(run) ?? []) {
    const one = yield* rest
    for (const kind of kinds) {
      const amount = one[kind]
      if (amount !== undefined) minimum[kind] = Math.min(amount, minimum[kind] ?? Infinity)
    }
  }
  return minimum satisfies Rest
})

/** Names the used-up limit of the budgets over a run, if there is one. */
export const usedUpOf = Effect.fnUntraced(function* (run: Run) {
  for (const { usedUp } of over.get(run) ?? []) {
    const problem = yield* usedUp
    if (problem !== undefined) return problem
  }
  return undefined
})

/** A running tool call, as a sub-agent in it finds it. */
interface Call {
  readonly ledger: Ledger
  readonly usedUp: UsedUp
  hasAgent: boolean
}

const Calls = Context.Reference<ReadonlyMap<symbol, Call>>("effect-deepagents/middleware/Budget/Calls", {
  defaultValue: () => new Map()
})

/** True at the start of a background task: its run has no parent but shares the ledger of the call that started it. */
export const Beside = Context.Reference<boolean>("effect-deepagents/middleware/Budget/Beside", {
  defaultValue: () => false
})

const sum = (ledger: Ledger, of: (one: Spender) => number): number => {
  let total = of(ledger.owner) + of({ usage: ledger.earlier })
  for (const [one, before] of ledger.beside) total += of(one) - of({ usage: before })
  return total
}

/** The use of a kind at a time. */
export const useOf = (ledger: Ledger, kind: Kind, now: number): number => {
  switch (kind) {
    case "tokens":
      return sum(ledger, ({ usage }) => totalTokens(usage))
    case "cost":
      return sum(ledger, ({ usage }) => usage.cost ?? 0)
    case "time":
      return now - ledger.since
    case "rounds":
    case "toolCalls":
      return ledger[kind]
  }
}

/** The first of these limits that is reached. */
export const reached = (
  maxima: Maxima,
  ledger: Ledger,
  now: number,
  which: ReadonlyArray<Kind>
): ReachedLimit | undefined => {
  for (const limit of which) {
    const max = maxima[limit]
    if (max === undefined) continue
    const amount = useOf(ledger, limit, now)
    if (amount >= max) return { limit, max, used: amount }
  }
  return undefined
}

/** Puts a spender on the ledgers of the current tool call. The result reports whether a limit of them is used up. */
export const draw = (one: Spender): Effect.Effect<UsedUp> =>
  Effect.map(Calls, (calls) => {
    for (const { ledger } of calls.values()) ledger.beside.set(one, zero)
    return Effect.gen(function* () {
      for (const { usedUp } of calls.values()) {
        const problem = yield* usedUp
        if (problem !== undefined) return problem
      }
      return undefined
    })
  })

const begin = (owner: Run, now: number): Ledger => {
  const { beside, rounds, time, toolCalls } = owner.spent
  return {
    owner,
    since: now - time,
    warned: new Set(),
    beside: new Map(),
    earlier: beside ?? zero,
    charged: new Map(),
    rounds,
    toolCalls,
    wantsCalls: false,
    unpriced: undefined
  }
}

const topOf = (run: Run): Run => (run.parent === undefined ? run : topOf(run.parent))

/** The background task of a run; `undefined` for the owner of a ledger and the runs below it. */
const taskOf = ({ beside }: Ledger, run: Run): Run | undefined => {
  const top = topOf(run)
  return beside.has(top) ? top : undefined
}

/** Charges rounds and calls of a background task to the owner of the ledger, whose thread stores them. */
export const chargeWork = (
  ledger: Ledger,
  run: Run,
  work: { readonly rounds?: number; readonly toolCalls?: number }
): Effect.Effect<void> => (taskOf(ledger, run) === undefined ? Effect.void : ledger.owner.charge(work))

/** Charges the usage of a background task since the last charge. */
export const chargeUsage = (ledger: Ledger, run: Run): Effect.Effect<void> => {
  const task = taskOf(ledger, run)
  if (task === undefined) return Effect.void
  const { usage } = task
  const beside = subtract(usage, ledger.charged.get(task) ?? ledger.beside.get(task) ?? zero)
  ledger.charged.set(task, usage)
  return ledger.owner.charge({ beside })
}

/** Makes the ledgers of one budget: one for each run with it, shared with everything below that run. */
export const make = () => {
  const key = Symbol("Budget")
  const ledgers = Attached.make<Run, Ledger>()

  /** The ledger of the nearest parent run. A program's sub-agents find it this way, since they have no tool call. */
  const above = ({ parent }: Run): Ledger | undefined =>
    parent === undefined ? undefined : (ledgers.get(parent) ?? above(parent))

  const of = (run: Run): Effect.Effect<Ledger> =>
    Effect.suspend(() => {
      const existing = ledgers.get(run)
      if (existing !== undefined) return Effect.succeed(existing)
      return Effect.map(Effect.all([Calls, Beside, Clock.currentTimeMillis]), ([calls, isBeside, now]) => {
        // A tool's independent run is nobody's sub-agent.
        const call = run.depth === 0 && !isBeside ? undefined : calls.get(key)
        if (call !== undefined && run.depth > 0) call.hasAgent = true
        if (call !== undefined && run.depth === 0) call.ledger.beside.set(run, run.usage)
        const ledger = call?.ledger ?? above(run) ?? begin(run, now)
        ledgers.set(run, ledger)
        return ledger
      })
    })

  /** Runs a tool call so that sub-agents in it find the ledger. `hasAgent` reports whether one did by now. */
  const enter = (ledger: Ledger, usedUp: UsedUp, work: Effect.Effect<ToolOutput, ToolError>) => {
    const call: Call = { ledger, usedUp, hasAgent: false }
    return {
      work: Effect.provideService(
        Effect.updateService(work, Calls, (calls) => new Map(calls).set(key, call)),
        Beside,
        false
      ),
      hasAgent: () => call.hasAgent
    }
  }

  return { of, enter }
}
