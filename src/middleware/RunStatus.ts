/**
 * Tells the model how far its run is: rounds, and what is left of its budget and of its window.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { Budget, RunStatus } from "effect-deepagents/middleware"
 *
 * const agent = Agent.make({
 *   name: "thrifty",
 *   prompt: "You plan your work by what is left.",
 *   middleware: [Budget.make({ cost: 2, time: "10 minutes", onExhausted: "finalAnswer" }), RunStatus.make()]
 * })
 * ```
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { turnPurpose } from "../core/ChatModel.ts"
import * as Message from "../core/Message.ts"
import * as Middleware from "../core/Middleware.ts"
import type { Run } from "../core/Run.ts"
import { countThings } from "../support/text/text.ts"
import * as Ledger from "./internal/ledger.ts"
import { filling } from "./Summarization.ts"

const name = "RunStatus"

/** The source of the message in a request. */
const source = "run-status"

const minutes = (milliseconds: number): string =>
  milliseconds < 120_000 ? `${Math.floor(milliseconds / 1000)} seconds` : `${Math.floor(milliseconds / 60_000)} minutes`

const say: { readonly [K in Ledger.Kind]: (amount: number) => string } = {
  rounds: (amount) => countThings(amount, "round"),
  toolCalls: (amount) => countThings(amount, "tool call"),
  tokens: (amount) => countThings(amount, "token"),
  cost: (amount) => `${amount.toFixed(2)} of money`,
  time: minutes
}

/** The status of a run as the model reads it. */
const describe = (run: Run): Effect.Effect<string> =>
  Effect.map(Ledger.restOf(run), (rest) => {
    const amounts = Ledger.kinds.flatMap((kind) => {
      const amount = rest[kind]
      return amount === undefined ? [] : [say[kind](amount)]
    })
    const full = filling(run)
    return [
      `Round ${run.round}.`,
      ...(amounts.length === 0 ? [] : [`Left: ${amounts.join(", ")}.`]),
      ...(full === undefined
        ? []
        : [`The conversation has ${Math.round(full.progress * 100)} % of the length at which it is summarised.`])
    ].join(" ")
  })

/**
 * Adds one line behind the messages of each turn's request: the round, the rest of the `Budget`s over the run, and how
 * near the next compaction is. It is in the request alone, not in the history, so the transcript and the beginning that a
 * provider has cached stay the same. Put it behind `Budget` and `Summarization`.
 */
export const make = (): Middleware.Middleware =>
  Middleware.make({
    name,
    wrapModelCall: (request, next, run) =>
      request.purpose !== turnPurpose
        ? next(request)
        : Stream.unwrap(
            Effect.map(describe(run), (status) =>
              next({
                ...request,
                messages: [...request.messages, Message.human(`[${status}]`, { id: `${source}-${run.round}`, source })]
              })
            )
          )
  })
