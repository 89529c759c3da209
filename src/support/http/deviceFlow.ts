/** The wait for a person who types a code in on another device (RFC 8628), whatever library asks the server. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"

const clamp = (least: number, most: number, value: number): number => Math.min(Math.max(least, value), most)

/** The time that a code is good for, and the pause between two questions, in seconds, as a server may set them. */
export const bounds = (expiresIn: number, interval: number | undefined) => ({
  seconds: clamp(1, 1800, expiresIn),
  // RFC 8628: five seconds, if the server says none.
  interval: clamp(1, 60, interval ?? 5)
})

/** The reasons to ask again: nobody has typed the code in yet, it was asked too often, it did not answer. */
export type Again = "authorization_pending" | "slow_down" | "unavailable"

/** Asks until there is an answer, or a failure that is none of those of {@link Again}. */
export const poll = <A, E, R>(
  interval: number,
  asked: Effect.Effect<A, E, R>,
  again: (error: E) => Again | undefined
): Effect.Effect<A, E, R> =>
  Effect.gen(function* () {
    for (let seconds = interval; ;) {
      yield* Effect.sleep(seconds * 1000)
      const answer = yield* Effect.result(asked)
      if (Result.isSuccess(answer)) return answer.success
      const reason = again(answer.failure)
      if (reason === undefined) return yield* Effect.fail(answer.failure)
      if (reason === "slow_down") seconds += 5
      // RFC 8628, 3.5: a connection that fails is tried again, more slowly.
      if (reason === "unavailable") seconds = Math.min(seconds * 2, 60)
    }
  })
