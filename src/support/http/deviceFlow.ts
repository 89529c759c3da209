/** The wait for a person who enters a code on another device (RFC 8628). */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"

const clamp = (value: number, most: number): number => Math.min(Math.max(1, value), most)

/** Bounds the lifetime of a code and the polling interval of a server, in seconds. */
export const bounds = (expiresIn: number, interval: number | undefined) => ({
  seconds: clamp(expiresIn, 1800),
  // RFC 8628: five seconds, if the server says none.
  interval: clamp(interval ?? 5, 60)
})

/** The reasons to poll again: the code is not entered yet, the polls are too frequent, the server is down. */
export type Again = "authorization_pending" | "slow_down" | "unavailable"

/** Polls until there is an answer, or a failure without a reason to poll {@link Again}. */
export const poll = <A, E, R>(
  interval: number,
  request: Effect.Effect<A, E, R>,
  toRetry: (error: E) => Again | undefined
): Effect.Effect<A, E, R> =>
  Effect.gen(function* () {
    for (let seconds = interval; ;) {
      yield* Effect.sleep(seconds * 1000)
      const answer = yield* Effect.result(request)
      if (Result.isSuccess(answer)) return answer.success
      const reason = toRetry(answer.failure)
      if (reason === undefined) return yield* Effect.fail(answer.failure)
      if (reason === "slow_down") seconds += 5
      // RFC 8628, 3.5: a connection that fails is tried again, more slowly.
      if (reason === "unavailable") seconds = Math.min(seconds * 2, 60)
    }
  })
