/** Charges model calls and tool calls to accounts of a `Ledger`: reserves before a call, settles after it. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import type { ModelRequest, TurnPart } from "../../core/ChatModel.ts"
import {
  type Amounts,
  type Cap,
  Ledger,
  type LedgerError,
  type LedgerFull,
  type Reservation
} from "../../core/Ledger.ts"
import * as Message from "../../core/Message.ts"
import * as Middleware from "../../core/Middleware.ts"
import { isModelError, ModelError, type Reason } from "../../core/ModelError.ts"
import type { Run } from "../../core/Run.ts"
import { ToolError } from "../../core/ToolError.ts"
import type { ToolOutput } from "../../core/ToolOutput.ts"
import { type Prices, totalTokens, type Usage } from "../../core/Usage.ts"
import * as Attached from "../../support/effect/attached.ts"
import { jsonTokens, mediaTokens, textTokens } from "../../support/text/tokens.ts"

/** The accounts that pay for a run. */
export type Caps = Cap | ReadonlyArray<Cap>

/** The accounts of a run, as they are looked up for each call. */
export type ChargedAccounts<R> = Effect.Effect<Caps, never, R>

/** Estimates are right within about a quarter. */
const margin = 1.25

/** The assumed longest answer of a request without a limit. */
const usualOutput = 4096

/** Providers' names for the limit of an answer. */
const outputLimits = [
  "maxTokens",
  "max_tokens",
  "maxOutputTokens",
  "max_output_tokens",
  "max_completion_tokens",
  "num_predict"
]

const outputOf = ({ parameters }: ModelRequest): number => {
  for (const name of outputLimits) {
    const value = parameters[name]
    if (typeof value === "number" && value > 0 && value < 1e9) return value
  }
  return usualOutput
}

const counted = new WeakMap<Message.Message, number>()

const countMessage = (message: Message.Message): number => {
  let sum = 4
  for (const block of message.content)
    sum += block.type === "text" || block.type === "reasoning" ? textTokens(block.text) : mediaTokens(block)
  if (message.role !== "ai") return sum
  for (const call of message.toolCalls) sum += 8 + textTokens(call.name) + jsonTokens(call.arguments)
  for (const call of message.malformedToolCalls) sum += 8 + textTokens(call.raw)
  return sum
}

const messageTokens = (message: Message.Message): number => {
  const cachedTokens = counted.get(message)
  if (cachedTokens !== undefined) return cachedTokens
  const tokens = countMessage(message)
  counted.set(message, tokens)
  return tokens
}

/**
 * Estimates the input of a request. The last turn with usage reports the input up to there, even if messages were
 * folded or added on the way to the model. Only later messages are estimated.
 */
const inputOf = ({ messages, outputSchema, systemPrompt, tools }: ModelRequest): number => {
  let fresh = 0
  for (let index = messages.length - 1; index >= 0; index--) {
    const message = messages[index]
    if (message === undefined) continue
    const usage = message.role === "ai" ? message.usage : undefined
    if (usage !== undefined && usage.inputTokens > 0) return totalTokens(usage) + Math.ceil(fresh * margin)
    fresh += messageTokens(message)
  }
  fresh += textTokens(systemPrompt) + (outputSchema === undefined ? 0 : jsonTokens(outputSchema))
  for (const { description, name, parameters } of tools)
    fresh += 8 + textTokens(name) + textTokens(description) + jsonTokens(parameters)
  return Math.ceil(fresh * margin)
}

/** The highest cost of a request. A model without prices may still cost an unknown amount. */
const costOf = (input: number, output: number, prices: Prices | undefined): number =>
  prices === undefined
    ? 0
    : (input * Math.max(prices.input, prices.cacheWrite ?? 0) + output * prices.output) / 1_000_000

/** Estimates the use of a model call. */
const wantOf = (request: ModelRequest, run: Run): Amounts => {
  const input = inputOf(request)
  const output = outputOf(request)
  const prices = (request.session?.model ?? run.model)?.prices
  return { modelCalls: 1, tokens: input + output, cost: costOf(input, output, prices) }
}

/** Failures of requests that the provider did not process. Such requests cost nothing. */
const unpaid: ReadonlySet<Reason["_tag"]> = new Set([
  "RateLimited",
  "Overloaded",
  "Authentication",
  "Permission",
  "QuotaExhausted",
  "Unpriced",
  "InvalidRequest",
  "Unsupported",
  "ContextOverflow"
])

const isUnpaid = (exit: Exit.Exit<unknown, unknown>): boolean =>
  Exit.isFailure(exit) &&
  exit.cause.reasons.some(
    (reason) => reason._tag === "Fail" && isModelError(reason.error) && unpaid.has(reason.error.reason._tag)
  )

/** The use of the turns of one call so far. */
interface CallUse {
  turns: number
  tokens: number
  cost: number
  /** True after a turn without usage: its use is unknown. */
  isUnknown: boolean
  /** True after the first part of the model. */
  hasBegun: boolean
}

const note = (used: CallUse, usage: Usage | undefined): void => {
  used.turns++
  if (usage === undefined) used.isUnknown = true
  else {
    used.tokens += totalTokens(usage)
    used.cost += usage.cost ?? 0
  }
}

/** The sum to settle; `undefined` keeps the reserved amount. */
const actualOf = (used: CallUse, exit: Exit.Exit<unknown, unknown>): Amounts | undefined => {
  if (used.turns > 0)
    return used.isUnknown ? undefined : { modelCalls: used.turns, tokens: used.tokens, cost: used.cost }
  return !used.hasBegun && isUnpaid(exit) ? { modelCalls: 1 } : undefined
}

/** Settles a finished call. If the store is unreachable, it keeps the reserved amount. */
const settle = (reservation: Reservation, actual: Amounts, run: Run): Effect.Effect<void> =>
  Effect.catch(reservation.settle(actual), (error) =>
    run.warn(
      "budget",
      `A call counts with all that was reserved for it, since it could not be settled: ${error.message}`
    )
  )

/**
 * Runs a model call at the expense of accounts. It does not start if an account is full, or the ledger is unreachable.
 *
 * It reserves the estimated input and the longest answer, and settles the usage of the turn. A call that is
 * interrupted, or reports no usage, counts with the whole reservation. A call that the provider refused counts as a
 * call.
 */
const chargeModelCall = <R>(
  charged: ChargedAccounts<R>,
  request: ModelRequest,
  next: (request: ModelRequest) => Stream.Stream<TurnPart, ModelError>,
  run: Run
): Stream.Stream<TurnPart, ModelError | LedgerFull | LedgerError, Ledger | R> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const caps = yield* charged
      const ledger = yield* Ledger
      const reservation = yield* ledger.reserve(caps, wantOf(request, run))
      const used: CallUse = { turns: 0, tokens: 0, cost: 0, isUnknown: false, hasBegun: false }
      const watched = Stream.mapArray(next(request), (parts) => {
        used.hasBegun = true
        for (const part of parts) if (part._tag === "TurnDone") note(used, part.message.usage)
        return parts
      })
      return Stream.onExit(watched, (exit) => {
        const actual = actualOf(used, exit)
        return actual === undefined ? Effect.void : settle(reservation, actual, run)
      })
    })
  )

/**
 * Runs a tool call at the expense of accounts. It does not start if an account is full, or the ledger is unreachable.
 */
const chargeToolCall = <R>(
  charged: ChargedAccounts<R>,
  work: Effect.Effect<ToolOutput, ToolError>
): Effect.Effect<ToolOutput, ToolError | LedgerFull | LedgerError, Ledger | R> =>
  Effect.flatMap(charged, (caps) =>
    // A started call counts, however it ends: closing the scope keeps it.
    Effect.andThen(Effect.scoped(Ledger.use((ledger) => ledger.reserve(caps, { toolCalls: 1 }))), work)
  )

/** The run's limit that corresponds to an account's. */
const limitOf = ({ limit }: LedgerFull) => (limit === "modelCalls" ? "rounds" : limit)

/** Describes a full account to a model, without its name, which is for the caller. */
const describeFull = ({ limit, max }: LedgerFull): string => {
  const what = { modelCalls: "model calls", toolCalls: "tool calls", tokens: "tokens", cost: "in cost" }[limit]
  return `the account's ${max} ${what} are used up`
}

/** The answer to a tool call that a full account refuses. */
const refusal = (full: LedgerFull): ToolError =>
  new ToolError({ reason: "Rejected", message: `Not executed: ${describeFull(full)}.` })

/** The failure of a side call that a full account refuses. */
const exhausted = (full: LedgerFull, run: Run): ModelError =>
  new ModelError({
    provider: run.model?.provider ?? run.agent,
    reason: { _tag: "QuotaExhausted" },
    detail: describeFull(full)
  })

/** The turn in place of a model call that a full account refuses. */
const refusedTurn = (full: LedgerFull): TurnPart => ({
  _tag: "TurnDone",
  message: Message.ai(`This was not finished: ${describeFull(full)}.`, { source: "budget" })
})

/** Makes the middleware that fails a run at a full account. */
export const failAtFull = <R>(
  name: string,
  charged: (run: Run) => ChargedAccounts<R>
): Middleware.Middleware<LedgerError | LedgerFull, Ledger | R> =>
  Middleware.make({
    name,
    inherit: true,
    wrapModelCall: (request, next, run) => chargeModelCall(charged(run), request, next, run),
    wrapToolCall: (call, next, run) => (call.wasBegun === true ? next(call) : chargeToolCall(charged(run), next(call)))
  })

/** Makes the middleware that ends a run at a full account, without another model call. */
export const endAtFull = <R>(
  name: string,
  charged: (run: Run) => ChargedAccounts<R>
): Middleware.Middleware<LedgerError, Ledger | R> => {
  const ended = Attached.make<Run, LedgerFull>()
  return Middleware.make({
    name,
    inherit: true,
    wrapModelCall: (request, next, run) =>
      Stream.catchTag(chargeModelCall(charged(run), request, next, run), "LedgerFull", (full) => {
        if (request.purpose !== "turn") return Stream.fail(exhausted(full, run))
        ended.set(run, full)
        return Stream.succeed(refusedTurn(full))
      }),
    afterModel: (run) =>
      Effect.sync(() => {
        const full = ended.get(run)
        return full === undefined ? undefined : Middleware.end(`budget:${limitOf(full)}`)
      }),
    wrapToolCall: (call, next, run) =>
      call.wasBegun === true
        ? next(call)
        : Effect.catchTag(chargeToolCall(charged(run), next(call)), "LedgerFull", (full) => Effect.fail(refusal(full)))
  })
}
