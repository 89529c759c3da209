/** Durable waits for the decisions on requests. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as DurableClock from "effect/workflow/DurableClock"
import * as DurableDeferred from "effect/workflow/DurableDeferred"
import type { WorkflowEngine, WorkflowInstance } from "effect/workflow/WorkflowEngine"
import { approve, Decision, type Request } from "../../core/Approval.ts"
import * as Wait from "../Wait.ts"

/** Makes the deferred of the decision on a request. The first decision counts. */
export const deferredFor = (requestId: string) => DurableDeferred.make(`decision/${requestId}`, { success: Decision })

/** The end of a request without a decision: the end of a wait, or the expiry. */
const timeoutOf = (request: Request): { readonly at: number; readonly decision: Decision | null } | undefined => {
  const over = Wait.until(request)
  if (over !== undefined) return { at: over, decision: approve(request) }
  return request.expiresAt === undefined ? undefined : { at: request.expiresAt, decision: null }
}

const awaitDecision = Effect.fnUntraced(function* (request: Request) {
  const decision = DurableDeferred.await(deferredFor(request.id))
  const due = timeoutOf(request)
  if (due === undefined) return yield* decision
  const now = yield* Clock.currentTimeMillis
  const clock = DurableClock.sleep({
    name: request.id,
    duration: Math.max(1, due.at - now),
    // A wait in memory would need a process for its whole time.
    inMemoryThreshold: 0
  })
  return yield* DurableDeferred.raceAll({
    name: request.id,
    success: Schema.NullOr(Decision),
    error: Schema.Never,
    effects: [decision, Effect.as(clock, due.decision)]
  })
})

/** Waits until all requests are decided or expired. Nothing stays in memory meanwhile. */
export const decisionsOn = (
  requests: ReadonlyArray<Request>
): Effect.Effect<ReadonlyArray<Decision>, never, WorkflowEngine | WorkflowInstance> =>
  Effect.map(Effect.forEach(requests, awaitDecision, { concurrency: "unbounded" }), (decisions) =>
    decisions.flatMap((decision) => decision ?? [])
  )
