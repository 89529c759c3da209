/** Asks the agents of a pattern. A failure ends the whole pattern, or is the problem of one part. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Agent from "../../core/Agent.ts"
import { AgentError } from "../../core/AgentError.ts"
import type { AgentResult } from "../../core/AgentResult.ts"
import { LedgerError, LedgerFull } from "../../core/Ledger.ts"
import { isModelError } from "../../core/ModelError.ts"
import { ToolContext } from "../../core/ToolContext.ts"
import { fromUnknown } from "../../core/ToolError.ts"
import { BudgetExceeded, remaining } from "../../middleware/Budget.ts"
import { cut } from "../../support/text/text.ts"

/** An agent of any kind. */
export type AnyAgent = Agent.Agent<unknown, unknown, unknown>

/** The answer of an agent, or the reason why it is missing. `isSpent` says that the budget of the pattern is used up. */
export type AgentAnswer<A, E> =
  | { readonly _tag: "Answered"; readonly output: A }
  | { readonly _tag: "Unanswered"; readonly error: E; readonly problem: string; readonly isSpent: boolean }

const broken: ReadonlySet<string> = new Set(["InvalidAgent", "InvalidState", "Thread"])

/** True for a failure that every other part would have too: somebody must act, or nothing can be kept. */
const isTerminal = (error: unknown): boolean => {
  if (isModelError(error)) return error.isTerminal
  if (error instanceof AgentError) return broken.has(error.reason._tag)
  return error instanceof BudgetExceeded || error instanceof LedgerFull || error instanceof LedgerError
}

/** True for an agent that a used-up budget ended before its first round. */
const isUnbegun = ({ newMessages, stopReason }: AgentResult<unknown>): boolean =>
  stopReason.startsWith("budget:") && newMessages.at(-1)?.source === "budget"

/** The words of a budget that ended an agent with a schema before its first round. */
const unbegunIn = (error: unknown): string | undefined =>
  error instanceof AgentError && error.reason._tag === "NoAnswer" && error.reason.stopReason.startsWith("budget:")
    ? error.reason.text
    : undefined

const hasAnswer = ({ output, stopReason }: AgentResult<unknown>): boolean =>
  output !== undefined && output !== "" && stopReason !== "suspended" && stopReason !== "refused"

/** The longest problem, in characters. */
const longest = 1_000

/**
 * Asks an agent as `Agent.answer` does. A failure that all parts share fails the pattern. Any other failure is returned.
 */
export const ask = Effect.fnUntraced(function* <O, E, R>(
  agent: Agent.Agent<O, E, R>,
  input: string,
  session?: string
): Effect.fn.Return<AgentAnswer<Exclude<O, undefined>, E | AgentError>, E | AgentError, R | ToolContext> {
  const { run } = yield* ToolContext
  const attempt = yield* Effect.result(Agent.delegate(agent, input, session === undefined ? {} : { session }))
  if (Result.isFailure(attempt)) {
    const error = attempt.failure
    if (isTerminal(error)) return yield* Effect.fail(error)
    const unbegun = unbegunIn(error)
    const isSpent = unbegun !== undefined || Object.values(yield* remaining(run)).includes(0)
    const problem = cut(unbegun ?? fromUnknown(error).message, longest)
    return { _tag: "Unanswered", error, problem, isSpent }
  }
  const result = attempt.success
  if (hasAnswer(result) && !isUnbegun(result)) {
    // Only a suspended run has no output.
    return { _tag: "Answered", output: result.output as Exclude<O, undefined> }
  }
  const { stopReason, text } = result
  const error = new AgentError({ agent: agent.name, reason: { _tag: "NoAnswer", stopReason, text } })
  const isSpent = isUnbegun(result)
  return { _tag: "Unanswered", error, problem: isSpent ? text : cut(error.message, longest), isSpent }
})
