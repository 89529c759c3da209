/** Counts the requests of tenants in a minute. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as RateLimiter from "effect/persistence/RateLimiter"
import type { Principal } from "../tenant.ts"
import { Problem } from "./problem.ts"

/** Counts a request of a principal, and fails if its tenant had too many. */
export type Count = (principal: Principal) => Effect.Effect<void, Problem>

const refuse = (wait: Duration.Duration): Problem => {
  const seconds = Math.max(1, Math.ceil(Duration.toSeconds(wait)))
  return new Problem({
    status: 429,
    code: "Rate",
    detail: `Your tenant sends too many requests; try again in ${seconds} seconds.`,
    headers: { "retry-after": String(seconds) }
  })
}

const memory = RateLimiter.layer.pipe(Layer.provide(RateLimiter.layerStoreMemory))

/** Makes the counter of a server. Tokens come back evenly over the minute. */
export const makeRate = Effect.fnUntraced(function* (
  limit: number | undefined
): Effect.fn.Return<Count, never, RateLimiter.RateLimiter> {
  if (limit === undefined) return () => Effect.void
  const limiter = yield* RateLimiter.RateLimiter
  return ({ tenant }) =>
    Effect.catch(
      Effect.asVoid(
        limiter.consume({ algorithm: "token-bucket", onExceeded: "fail", window: "1 minute", limit, key: tenant })
      ),
      ({ reason }) => Effect.fail(refuse(reason._tag === "RateLimitExceeded" ? reason.retryAfter : Duration.minutes(1)))
    )
}, Effect.provide(memory))
