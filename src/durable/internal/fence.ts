import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { AgentError } from "../../core/AgentError.ts"

/** Seven seconds in all: by then a runner that lost the thread knows it, and has stopped. */
const briefly = Schedule.exponential("1 second").pipe(Schedule.upTo({ times: 3 }))

const isConflict = (error: unknown): boolean =>
  error instanceof AgentError && error.reason._tag === "Thread" && error.reason.error.reason._tag === "Conflict"

/**
 * Goes on from what the thread has come to when somebody else wrote to it: a runner that lost it and did not know. `mine`
 * says whether this runner still has it.
 */
export const fenced = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  mine: () => boolean = () => true
): Effect.Effect<A, E, R> => Effect.retry(effect, { schedule: briefly, while: (error) => isConflict(error) && mine() })
