/** Common parts of Google's services. */
import * as Predicate from "effect/Predicate"
import { type Answer, jsonOf, judged, type Refusal } from "./http.ts"

const tooOften = new Set(["rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded"])

const reasonsOf = (json: unknown): ReadonlyArray<unknown> => {
  const error = Predicate.isObject(json) ? json["error"] : undefined
  const errors = Predicate.isObject(error) ? error["errors"] : undefined
  return Array.isArray(errors)
    ? errors.map((one: unknown) => (Predicate.isObject(one) ? one["reason"] : undefined))
    : []
}

/** Google says with status 403, and without a header, that it is asked too often. */
export const refusal = (answer: Answer): Refusal | undefined =>
  answer.status === 403 && reasonsOf(jsonOf(answer)).some((reason) => tooOften.has(String(reason)))
    ? { problem: judged(answer), isRateLimit: true }
    : undefined
