/**
 * The ledger of a budget: the use of a run and its sub-agents, one for the whole tree of runs.
 *
 * Tokens and cost are read from the usage of the run that the budget was given to: the core counts there whatever is
 * used below, however the middleware is stacked. Tasks in the background are runs beside it, here or on a server, and are
 * added. Rounds and calls are counted here before they begin, so that agents that run in parallel can't take the same one
 * twice. The ledger of a resumed run begins with the work that its thread has (`Run.spent`).
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

/** Somebody who uses tokens: a run, or a task on a server as far as that says. */
export interface Spender {
  readonly usage: Usage
}

/** The use of one run and everything below it. */
export interface Ledger {
  /** The run that the budget was given to. */
  readonly owner: Run
  /** The time at which its work began, in milliseconds since the epoch, moved back by the work of earlier runs. */
  readonly since: number
  readonly warned: Set<string>
  /**
   * The tasks in the background, each with its usage before it came onto this ledger: the usage of the owner does not
   * count them.
   */
  readonly beside: Map<Spender, Usage>
  /** The usage of tasks in the background that earlier runs began. */
  readonly earlier: Usage
  /** The usage of each task in the background that was counted for the owner. */
  readonly charged: Map<Spender, Usage>
  rounds: number
  toolCalls: number
  /** True when more calls were asked for than there are. */
  wantsCalls: boolean
}

/** A limit that is reached. */
export interface Reached {
  readonly limit: Kind
  readonly max: number
  readonly used: number
}

/** Says which limit of a budget is used up, if one is. */
export type UsedUp = Effect.Effect<string | undefined>

/** A tool call that runs, as a sub-agent in it finds it. */
interface Call {
  readonly ledger: Ledger
  readonly usedUp: UsedUp
  hasAgent: boolean
}

const Calls = Context.Reference<ReadonlyMap<symbol, Call>>("effect-deepagents/middleware/Budget/Calls", {
  defaultValue: () => new Map()
})

/**
 * Set where a run begins that is nobody's sub-agent, and is on the ledger of the call that began it all the same: a task
 * in the background.
 */
export const Beside = Context.Reference<boolean>("effect-deepagents/middleware/Budget/Beside", {
  defaultValue: () => false
})

const sum = (ledger: Ledger, of: (one: Spender) => number): number => {
  let total = of(ledger.owner) + of({ usage: ledger.earlier })
  for (const [one, before] of ledger.beside) total += of(one) - of({ usage: before })
  return total
}

/** Use of a kind at a time. */
export const used = (ledger: Ledger, kind: Kind, now: number): number => {
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
): Reached | undefined => {
  for (const limit of which) {
    const max = maxima[limit]
    if (max === undefined) continue
    const amount = used(ledger, limit, now)
    if (amount >= max) return { limit, max, used: amount }
  }
  return undefined
}

/**
 * Puts somebody on the ledgers of the tool call that this is in, and says from then on whether one of their limits is
 * used up.
 */
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
    wantsCalls: false
  }
}

const topOf = (run: Run): Run => (run.parent === undefined ? run : topOf(run.parent))

/** The task in the background that a run belongs to; `undefined` for the owner of a ledger and the runs below it. */
const taskOf = ({ beside }: Ledger, run: Run): Run | undefined => {
  const top = topOf(run)
  return beside.has(top) ? top : undefined
}

/** Counts rounds and calls of a task in the background for the owner of the ledger, whose thread keeps them. */
export const chargeWork = (
  ledger: Ledger,
  run: Run,
  work: { readonly rounds?: number; readonly toolCalls?: number }
): Effect.Effect<void> => (taskOf(ledger, run) === undefined ? Effect.void : ledger.owner.charge(work))

/** Counts the usage of a task in the background since it was last counted. */
export const chargeUsage = (ledger: Ledger, run: Run): Effect.Effect<void> => {
  const task = taskOf(ledger, run)
  if (task === undefined) return Effect.void
  const { usage } = task
  const beside = subtract(usage, ledger.charged.get(task) ?? ledger.beside.get(task) ?? zero)
  ledger.charged.set(task, usage)
  return ledger.owner.charge({ beside })
}

/** The ledgers of one budget: one for each run that it was given to, shared with everything below that run. */
export const make = () => {
  const key = Symbol("Budget")
  const known = Attached.make<Run, Ledger>()

  /** The ledger of the nearest run above that has one: that of a program, which calls no tool for its sub-agents. */
  const above = ({ parent }: Run): Ledger | undefined =>
    parent === undefined ? undefined : (known.get(parent) ?? above(parent))

  const of = (run: Run): Effect.Effect<Ledger> =>
    Effect.suspend(() => {
      const found = known.get(run)
      if (found !== undefined) return Effect.succeed(found)
      return Effect.map(Effect.all([Calls, Beside, Clock.currentTimeMillis]), ([calls, isBeside, now]) => {
        // A run that a tool begins on its own account is nobody's sub-agent.
        const call = run.depth === 0 && !isBeside ? undefined : calls.get(key)
        if (call !== undefined && run.depth > 0) call.hasAgent = true
        if (call !== undefined && run.depth === 0) call.ledger.beside.set(run, run.usage)
        const ledger = call?.ledger ?? above(run) ?? begin(run, now)
        known.set(run, ledger)
        return ledger
      })
    })

  /** Runs a tool call so that sub-agents in it find the ledger. `hasAgent` says whether one did by now. */
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
