/** Limits of the cluster on ids, messages and answers. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { AgentError } from "../../core/AgentError.ts"
import { make as failure, type SessionError } from "../../core/SessionError.ts"
import { nameProblem } from "../../support/text/names.ts"
import { limit, sizeOf } from "../../support/text/size.ts"
import type { Outcome } from "../Outcome.ts"
import type { Codecs } from "./codecs.ts"

/** The most characters of an entity's id. */
const longestThreadId = 255

/** Rejects an invalid id of a thread. */
export const checkThreadId = (threadId: string): Effect.Effect<void, SessionError> => {
  const problem = nameProblem(threadId, longestThreadId)
  return problem === undefined ? Effect.void : Effect.fail(failure("of", threadId, { _tag: "InvalidId", problem }))
}

/** The problem of an id that a database can't store. */
const lossy = (id: string): string | undefined => {
  if (!id.isWellFormed()) return "it is no valid Unicode"
  return id.includes("\u0000") ? "it has a zero character" : undefined
}

/** Rejects a message with an invalid id, and one that is too large. */
export const checkMessage = (
  operation: string,
  threadId: string,
  what: string,
  id: string,
  payload: unknown
): Effect.Effect<void, SessionError> => {
  const problem = lossy(id)
  if (problem !== undefined) {
    return Effect.fail(failure(operation, threadId, { _tag: "InvalidId", problem: `the id of ${what}: ${problem}` }))
  }
  const bytes = sizeOf(payload)
  return bytes <= limit
    ? Effect.void
    : Effect.fail(failure(operation, threadId, { _tag: "TooLarge", what, bytes, limit }))
}

/** Reports whether a value is small enough for one message. */
export const isStorable = (value: unknown): boolean => sizeOf(value) <= limit

/** Replaces an outcome or failure that is too large to store by `TooLarge`. The thread has all messages. */
export const boundAnswer = <O, E>(
  agent: string,
  threadId: string,
  codecs: Pick<Codecs<O, E>, "outcome" | "failure">
) => {
  const [encodeOutcome, encodeFailure] = [codecs.outcome, codecs.failure].map((codec) =>
    Schema.encodeUnknownResult(Schema.toCodecJson(codec))
  )
  const check = (what: string, encoded: Result.Result<unknown, unknown> | undefined) => {
    // The schema of the answer reports values that it can't encode.
    const bytes = encoded === undefined || Result.isFailure(encoded) ? 0 : sizeOf(encoded.success)
    if (bytes <= limit) return Effect.void
    const error = failure("answer", threadId, { _tag: "TooLarge", what, bytes, limit })
    return Effect.fail(new AgentError({ agent, reason: { _tag: "Thread", error } }))
  }
  return <A extends Outcome<unknown>, F, R>(effect: Effect.Effect<A, F, R>): Effect.Effect<A, F | AgentError, R> =>
    effect.pipe(
      Effect.tap((outcome) => check("the outcome", encodeOutcome?.(outcome))),
      Effect.tapError((error) => check("the failure", encodeFailure?.(error)))
    )
}
