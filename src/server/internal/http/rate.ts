/** Counts the requests of tenants in a minute, and their open readers: streams of events, and requests that wait for a run. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as RateLimiter from "effect/persistence/RateLimiter"
import * as Scope from "effect/Scope"
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

/** Counts a reader of a principal until its request is over, and fails if its tenant has too many. */
export type Enter = (principal: Principal, request: Scope.Scope) => Effect.Effect<void, Problem>

const full = new Problem({
  status: 429,
  code: "Readers",
  detail: "Your tenant has too many open streams; close one, or try again in 5 seconds.",
  headers: { "retry-after": "5" }
})

/** Makes the counter of a server. */
export const makeReaders = (limit: number | undefined): Enter => {
  if (limit === undefined) return () => Effect.void
  const counts = new Map<string, number>()
  const add = (tenant: string, by: 1 | -1): void => {
    const count = (counts.get(tenant) ?? 0) + by
    if (count > 0) counts.set(tenant, count)
    else counts.delete(tenant)
  }
  return ({ tenant }, request) =>
    Effect.suspend(() => {
      if ((counts.get(tenant) ?? 0) >= limit) return Effect.fail(full)
      add(tenant, 1)
      return Scope.addFinalizer(
        request,
        Effect.sync(() => add(tenant, -1))
      )
    }).pipe(Effect.uninterruptible)
}
