/** Common parts of Google's services. */
import * as Predicate from "effect/Predicate"
import { type Answer, jsonOf, describeFailure, type Refusal } from "./http.ts"

const tooOften = new Set(["rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded"])

const reasonsOf = (json: unknown): ReadonlyArray<unknown> => {
  const error = Predicate.isObject(json) ? json["error"] : undefined
  const errors = Predicate.isObject(error) ? error["errors"] : undefined
  return Array.isArray(errors)
    ? errors.map((one: unknown) => (Predicate.isObject(one) ? one["reason"] : undefined))
    : []
}

/** Finds a rate limit: Google sends it with status 403 and no header. */
export const refusal = (answer: Answer): Refusal | undefined =>
  answer.status === 403 && reasonsOf(jsonOf(answer)).some((reason) => tooOften.has(String(reason)))
    ? { problem: describeFailure(answer), isRateLimit: true }
    : undefined
