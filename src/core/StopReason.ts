/** The reason why a run ended. */
import * as Schema from "effect/Schema"

/**
 * - `completed`: the model gave its answer (or a tool gave it by `returnDirect`)
 * - `stopCondition`: `stopWhen`, or a middleware, said so
 * - `maxRounds`, `duplicateRounds`, `budget:…`: a limit; the answer was forced without tools
 * - `suspended`: a gate wants a decision; `pending` says which
 * - `refused`: the model or its provider's filter refused, or a guardrail answered instead
 * - `length`: the answer was cut by the model's output limit
 */
export const StopReason = Schema.Literals([
  "completed",
  "stopCondition",
  "maxRounds",
  "duplicateRounds",
  "budget:tokens",
  "budget:cost",
  "budget:toolCalls",
  "budget:rounds",
  "budget:time",
  "suspended",
  "refused",
  "length"
])
export type StopReason = typeof StopReason.Type
