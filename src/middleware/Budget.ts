/**
 * Limits the use of a run and its sub-agents: tokens, money, tool calls, rounds and time.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { Budget } from "effect-deepagents/middleware"
 *
 * const agent = Agent.make({
 *   name: "frugal",
 *   prompt: "You answer questions.",
 *   middleware: [Budget.make({ tokens: 200_000, toolCalls: 50, time: "5 minutes", onExhausted: "finalAnswer" })]
 * })
 * ```
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { ModelRequest } from "../core/ChatModel.ts"
import type { Cap, Ledger as AccountLedger, LedgerError, LedgerFull } from "../core/Ledger.ts"
import * as Message from "../core/Message.ts"
import * as Middleware from "../core/Middleware.ts"
import { ModelError } from "../core/ModelError.ts"
import * as Ruling from "../core/Ruling.ts"
import type { Run } from "../core/Run.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import { ToolError } from "../core/ToolError.ts"
import { totalTokens } from "../core/Usage.ts"
import * as Attached from "../support/effect/attached.ts"
import { TaggedError } from "../support/effect/taggedError.ts"
import { countThings } from "../support/text/text.ts"
import * as Accounts from "./internal/accounts.ts"
import * as Ledger from "./internal/ledger.ts"
import { amountProblem, timeOf, timeProblem } from "./internal/limits.ts"
import * as shapes from "./internal/shapes.ts"
import * as WorkingTime from "./internal/workingTime.ts"

const name = "Budget"

/** Formats amounts for people. */
const say: { readonly [K in Ledger.Kind]: (amount: number) => string } = {
  tokens: (amount) => countThings(amount, "token"),
  cost: (amount) => `${amount} in cost`,
  rounds: (amount) => countThings(amount, "round"),
  time: (amount) => countThings(amount / 1000, "second"),
  toolCalls: (amount) => countThings(amount, "tool call")
}

const isUsedUp = ({ limit, max }: Pick<Ledger.ReachedLimit, "limit" | "max">): string =>
  `the budget of ${say[limit](max)} is used up`

/**
 * A run reached `limit` and tried to continue. `max` is the limit and `used` the use so far: tokens, money, calls,
 * rounds, or milliseconds. `agent` is the stopped agent.
 */
export class BudgetExceeded extends TaggedError<BudgetExceeded>()("BudgetExceeded", {
  agent: Schema.String,
  limit: Schema.Literals(Ledger.kinds),
  max: Schema.Finite,
  used: Schema.Finite
}) {
  override get message(): string {
    return `Agent "${this.agent}" was stopped: ${isUsedUp(this)} (${say[this.limit](this.used)} so far); raise \`${this.limit}\` of Budget.make, or set \`onExhausted\` to "finalAnswer"`
  }
}

/**
 * Limits of a run and its sub-agents. A kind without a value is unlimited. A budget without any limit fails the agent's
 * runs with `InvalidAgent`.
 */
export interface Limits {
  /** Input and output tokens of all model calls, retries and side calls included. Default: no limit. */
  readonly tokens?: number | undefined
  /**
   * Money, in the currency of the model's prices. Needs a model with prices, or one that reports its cost. Default: no
   * limit.
   */
  readonly cost?: number | undefined
  /** Tool calls that the budget allows. Default: no limit. */
  readonly toolCalls?: number | undefined
  /** Turns of all agents, except forced final answers. Default: no limit. */
  readonly rounds?: number | undefined
  /** Time since the start of the run, without the time spent waiting for people. Default: no limit. */
  readonly time?: Duration.Input | undefined
}

/** Ends a sub-agent before its first round. */
const endUnbegun = (reached: Ledger.ReachedLimit): Middleware.Directive =>
  Middleware.end(
    `budget:${reached.limit}`,
    Message.ai(`This was not begun: ${isUsedUp(reached)}.`, { source: "budget" })
  )

const timeOutError = (time: number): ToolError =>
  new ToolError({
    reason: "TimedOut",
    message: `Interrupted: ${isUsedUp({ limit: "time", max: time })}. Whether the call had an effect is not known.`
  })

const notSampled = (run: Run, reached: Ledger.ReachedLimit): ModelError =>
  new ModelError({
    provider: run.model?.provider ?? run.agent,
    reason: { _tag: "QuotaExhausted" },
    detail: isUsedUp(reached)
  })

const unpricedError = (run: Run, model: string): ModelError =>
  new ModelError({
    provider: run.model?.provider ?? run.agent,
    model,
    reason: { _tag: "Unpriced" },
    detail: `nobody knows the prices of "${model}": give \`prices\` to its layer, or set \`unpriced\` of Budget.make to "allow"`
  })

/** Limits that stop an agent before a model call. Tool calls are counted when the model makes one. */
const ofTurns = Ledger.kinds.filter((kind) => kind !== "toolCalls")

/** The reaction to a reached limit: a final answer, or a failure. */
interface Policy<E> {
  readonly fails: boolean
  readonly at: <A>(run: Run, reached: Ledger.ReachedLimit, gentle: A) => Effect.Effect<A, E>
}

const answering: Policy<never> = { fails: false, at: (_run, _reached, gentle) => Effect.succeed(gentle) }

const failing: Policy<BudgetExceeded> = {
  fails: true,
  at: (run, reached) => Effect.fail(new BudgetExceeded({ agent: run.agent, ...reached }))
}

const warnOnce = (run: Run, ledger: Ledger.Ledger, what: string, message: string): Effect.Effect<void> => {
  if (ledger.warned.has(what)) return Effect.void
  ledger.warned.add(what)
  return run.warn("budget", message)
}

/** Names the limit that is reached. */
const describeReached = (maxima: Ledger.Maxima, ledger: Ledger.Ledger): Ledger.UsedUp =>
  Effect.map(WorkingTime.workingNow(ledger.owner), (now) => {
    const reached = Ledger.reached(maxima, ledger, now, ofTurns)
    return reached === undefined ? undefined : isUsedUp(reached)
  })

/** The rest of a budget, by the kinds that it limits. */
const findRest = (maxima: Ledger.Maxima, ledger: Ledger.Ledger): Effect.Effect<Ledger.Rest> =>
  Effect.map(WorkingTime.workingNow(ledger.owner), (now) => {
    const rest: { [K in Ledger.Kind]?: number } = {}
    for (const kind of Ledger.kinds) {
      const max = maxima[kind]
      if (max !== undefined) rest[kind] = Math.max(0, max - Ledger.useOf(ledger, kind, now))
    }
    return rest
  })

const build = <E>(
  limits: Limits & { readonly unpriced?: "refuse" | "allow" | undefined },
  policy: Policy<E>
): Middleware.Middleware<E> => {
  const time = limits.time === undefined ? undefined : Duration.toMillis(timeOf(limits.time))
  const { cost, rounds, tokens, toolCalls, unpriced = "refuse" } = limits
  const maxima: Ledger.Maxima = { tokens, cost, rounds, toolCalls, time }
  const ledgers = Ledger.make()
  /** The allowed calls of each run's current round. A call that a person edited returns, and counts once. */
  const countedCalls = Attached.make<Run, { readonly round: number; readonly ids: Set<string> }>()

  const watch = Effect.fnUntraced(function* (run: Run) {
    const ledger = yield* ledgers.of(run)
    const now = yield* WorkingTime.workingNow(ledger.owner)
    for (const kind of Ledger.kinds) {
      const max = maxima[kind]
      if (max === undefined) continue
      const amount = Ledger.useOf(ledger, kind, now)
      if (amount < 0.8 * max) continue
      yield* warnOnce(run, ledger, kind, `${say[kind](amount)} are used of a budget of ${say[kind](max)}.`)
    }
    const { usage } = ledger.owner
    if (cost !== undefined && usage.cost === undefined && totalTokens(usage) > 0) {
      const message = `"${run.model?.modelId ?? run.agent}" has no prices, so the cost can't be limited; give prices to its layer.`
      yield* warnOnce(run, ledger, "prices", message)
    }
    return { ledger, now }
  })

  /** Refuses a model whose use can't be held to a limit of money. */
  const refuseUnpriced = (
    { session }: Pick<ModelRequest, "session">,
    run: Run,
    ledger: Ledger.Ledger
  ): ModelError | undefined => {
    if (cost === undefined || unpriced === "allow") return undefined
    // Another middleware may have chosen another model.
    const model = session?.model ?? run.model
    const isPriced = model === undefined || model.prices !== undefined || model.reportsCost === true
    const unpricedModel = ledger.unpriced ?? (isPriced ? undefined : model.modelId)
    return unpricedModel === undefined ? undefined : unpricedError(run, unpricedModel)
  }

  /** Ends when the time limit is reached; never without a limit. */
  const timeUp = <A, E2>(run: Run, ledger: Ledger.Ledger, gentle: Effect.Effect<A, E2>): Effect.Effect<A, E | E2> =>
    Effect.gen(function* () {
      if (time === undefined) return yield* Effect.never
      yield* WorkingTime.until(ledger.owner, ledger.since + time)
      return yield* yield* policy.at(run, { limit: "time", max: time, used: time }, gentle)
    })

  return Middleware.make<E>({
    name,
    inherit: true,
    check: () =>
      Ledger.kinds.every((kind) => maxima[kind] === undefined)
        ? `${name}: There is no limit. Give one of ${Ledger.kinds.join(", ")}.`
        : (amountProblem(name, { tokens, cost, rounds, toolCalls }) ?? timeProblem(name, { time: limits.time })),
    beforeAgent: Effect.fnUntraced(function* (run) {
      const ledger = yield* ledgers.of(run)
      Ledger.watchRun(run, { usedUp: describeReached(maxima, ledger), rest: findRest(maxima, ledger) })
      if (ledger.owner === run) return undefined
      const reached = Ledger.reached(maxima, ledger, yield* WorkingTime.workingNow(ledger.owner), ofTurns)
      if (reached === undefined) return undefined
      return yield* policy.at(run, reached, endUnbegun(reached))
    }),
    beforeModel: Effect.fnUntraced(function* (run) {
      const { ledger, now } = yield* watch(run)
      // The last allowed call ends nothing. Only a further call does.
      const reached = Ledger.reached(maxima, ledger, now, ledger.wantsCalls ? Ledger.kinds : ofTurns)
      if (reached !== undefined) {
        // Another agent reached the limit between the start of this one and its first round.
        const isUnbegun = ledger.owner !== run && run.round === 0
        const gentle = isUnbegun ? endUnbegun(reached) : Middleware.forceFinalAnswer(`budget:${reached.limit}`)
        return yield* policy.at(run, reached, gentle)
      }
      ledger.rounds++
      yield* Ledger.chargeWork(ledger, run, { rounds: 1 })
      return undefined
    }),
    afterModel: Effect.fnUntraced(function* (run) {
      const { ledger } = yield* watch(run)
      const last = run.messages.at(-1)
      const used = last?.role === "ai" ? last.usage : undefined
      // A fallback may be another model, and an answer may lack the cost that others have.
      if (last?.role === "ai" && used !== undefined && used.cost === undefined && totalTokens(used) > 0) {
        ledger.unpriced ??= last.model ?? run.model?.modelId ?? "a model"
      }
      yield* Ledger.chargeUsage(ledger, run)
    }),
    counts: toolCalls !== undefined,
    rulings: Effect.fnUntraced(function* (run, calls) {
      const ledger = yield* ledgers.of(run)
      const now = yield* WorkingTime.workingNow(ledger.owner)
      const rulings: Array<Ruling.Refuse | undefined> = []
      const countedRound = countedCalls.get(run)
      const ids = countedRound?.round === run.round ? countedRound.ids : new Set<string>()
      countedCalls.set(run, { round: run.round, ids })
      const before = ledger.toolCalls
      for (const { id, wasBegun } of calls) {
        const isCounted = wasBegun === true || ids.has(id)
        const reached = isCounted ? undefined : Ledger.reached(maxima, ledger, now, ["time", "toolCalls"])
        if (reached === undefined) {
          if (!isCounted) ledger.toolCalls++
          ids.add(id)
          rulings.push(undefined)
        } else {
          ledger.wantsCalls = true
          rulings.push(yield* policy.at(run, reached, Ruling.refuse("Budget", `Not executed: ${isUsedUp(reached)}.`)))
        }
      }
      yield* Ledger.chargeWork(ledger, run, { toolCalls: ledger.toolCalls - before })
      yield* watch(run)
      return rulings
    }),
    wrapToolCall: Effect.fnUntraced(function* (call, next, run) {
      const ledger = yield* ledgers.of(run)
      const { hasAgent, work } = ledgers.enter(ledger, describeReached(maxima, ledger), next(call))
      if (time === undefined) return yield* work
      // A sub-agent has the same limit and ends with an answer of its own.
      const gentle = Effect.suspend(() => (hasAgent() ? Effect.never : Effect.fail(timeOutError(time))))
      return yield* Effect.raceFirst(work, timeUp(run, ledger, gentle))
    }),
    wrapModelCall: (request, next, run) =>
      Stream.unwrap(
        Effect.gen(function* () {
          const ledger = yield* ledgers.of(run)
          const refused = refuseUnpriced(request, run, ledger)
          if (refused !== undefined) return Stream.fail(refused)
          if (!policy.fails && request.isForeign !== true) return next(request)
          const now = yield* WorkingTime.workingNow(ledger.owner)
          if (!policy.fails) {
            // A server's request has no part in the final answer, so it is not paid for beyond the limit.
            const reached = Ledger.reached(maxima, ledger, now, ofTurns)
            if (reached !== undefined) return Stream.fail(notSampled(run, reached))
            ledger.rounds++
            return next(request)
          }
          const reached = Ledger.reached(maxima, ledger, now, ["tokens", "cost", "time"])
          if (reached !== undefined) yield* policy.at(run, reached, undefined)
          return time === undefined
            ? next(request)
            : Stream.interruptWhen(next(request), timeUp(run, ledger, Effect.never))
        })
      )
  })
}

/**
 * Names the used-up limit of the budgets over a run, if there is one. A program that lets another one work asks it, and
 * stops the other.
 */
export const usedUp = (run: Run): Effect.Effect<string | undefined> => Ledger.usedUpOf(run)

/**
 * The rest of the budgets over a run, by kind: tokens, money, calls, rounds, milliseconds. Of two budgets the smaller rest
 * counts. A kind without a limit is missing.
 */
export const remaining = (
  run: Run
): Effect.Effect<{
  readonly tokens?: number
  readonly cost?: number
  readonly rounds?: number
  readonly time?: number
  readonly toolCalls?: number
}> => Ledger.restOf(run)

const refuseMake = makeMiddlewareCheck(name, shapes.budgetMake)

/**
 * Limits a run and everything below it. Sub-agents, background tasks and sampling of servers share the budget. A remote
 * task (`RemoteAgents`) counts the tokens that its server reports at the end. A sub-agent with its own budget obeys
 * both.
 *
 * A new input starts at zero. A resumed run continues with the use since its input: after an approval, after a crash,
 * in another process, and in a fork.
 *
 * At 80 % of a limit there is one `Warning` event (`budget`). At the limit `onExhausted` decides:
 *
 * - `"finalAnswer"`: every open agent answers once more without tools, and its run ends with `stopReason`
 *   `budget:tokens`, `budget:cost` and so on. No further sub-agent starts. Side calls, such as a summary for the final
 *   answer, still pass.
 * - `"fail"`: the next model call or tool call fails the run with {@link BudgetExceeded}.
 *
 * A run that ends exactly at a limit is `completed`.
 *
 * Tokens and cost are known after a model call, so calls in flight and final answers can exceed them. Rounds and tool
 * calls are never exceeded: excess calls of a turn get an error result, or fail the run. Time is checked before each
 * model call and tool call. At the time limit a running tool is interrupted and answered with an error, except a tool
 * with a sub-agent in it, which ends soon by itself. A model call may finish, since it may be the answer. With
 * `"fail"`, both are interrupted.
 *
 * Put it first in the stack: middleware after it does not start when the budget is used up.
 */
export const make = <const Mode extends "finalAnswer" | "fail">(
  options: Limits & {
    /** The end at a limit: one more answer without tools (`finalAnswer`), or a failed run (`fail`). */
    readonly onExhausted: Mode
    /** Lets a model without known prices run under a limit of `cost`, with a warning. Default: `"refuse"`. */
    readonly unpriced?: "refuse" | "allow" | undefined
  }
): Middleware.Middleware<"fail" extends Mode ? BudgetExceeded : never> =>
  // The policy that can fail is used for "fail" only, as the type says.
  (refuseMake(options) ??
    (options.onExhausted === "fail" ? build(options, failing) : build(options, answering))) as Middleware.Middleware<
    "fail" extends Mode ? BudgetExceeded : never
  >

const accountsName = `${name}.accounts`
const refuseAccounts = makeMiddlewareCheck(accountsName, shapes.budgetAccounts)

/** The accounts of a run, or an effect that looks them up. */
type Lookup = Cap | ReadonlyArray<Cap> | Effect.Effect<Cap | ReadonlyArray<Cap>, never, unknown>

type NeedsOf<Found> = Found extends Effect.Effect<unknown, unknown, infer R> ? R : never

/** Options of {@link accounts}. */
export interface AccountOptions<Mode extends "finalAnswer" | "fail", Found extends Lookup = Lookup> {
  /**
   * Names the accounts that pay for a run, with their windows and limits. The parameter is the outermost run. An effect may
   * look up who asks: `Server.Caller` on a server.
   */
  readonly caps: (run: Run) => Found
  /**
   * The end of a run at a full account: `"finalAnswer"` ends it with `stopReason` `budget:…` and no further model call,
   * `"fail"` with `LedgerFull`.
   */
  readonly onExhausted: Mode
}

const topOf = (run: Run): Run => (run.parent === undefined ? run : topOf(run.parent))

/**
 * Charges all model calls and tool calls of a run and its sub-agents to accounts of the `Ledger`: a person, a tenant, a
 * day. It reserves an amount before each call and settles it after, so no run, process or machine overspends an
 * account. An unreachable ledger fails the run with `LedgerError`.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { Budget } from "effect-deepagents/middleware"
 *
 * const agent = Agent.make({
 *   name: "clerk",
 *   prompt: "You help.",
 *   middleware: [
 *     Budget.accounts({
 *       caps: () => ({ account: "tenant:acme", window: "day", max: { cost: 20 } }),
 *       onExhausted: "finalAnswer"
 *     })
 *   ]
 * })
 * ```
 */
export const accounts = <const Mode extends "finalAnswer" | "fail", Found extends Lookup>(
  options: AccountOptions<Mode, Found>
): Middleware.Middleware<LedgerError | ("fail" extends Mode ? LedgerFull : never), AccountLedger | NeedsOf<Found>> => {
  const refused = refuseAccounts(options)
  if (refused !== undefined) return refused
  const { caps } = options
  const charged = (run: Run): Accounts.ChargedAccounts<NeedsOf<Found>> => {
    const lookup: Lookup = caps(topOf(run))
    // The needs of the effect are those in the type of the function.
    return (Effect.isEffect(lookup) ? lookup : Effect.succeed(lookup)) as Accounts.ChargedAccounts<NeedsOf<Found>>
  }
  // The end that can fail is used for "fail" only, as the type says.
  const end = options.onExhausted === "fail" ? Accounts.failAtFull : Accounts.endAtFull
  return end(accountsName, charged) as Middleware.Middleware<
    LedgerError | ("fail" extends Mode ? LedgerFull : never),
    AccountLedger | NeedsOf<Found>
  >
}
