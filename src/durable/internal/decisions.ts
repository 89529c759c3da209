/** Durable waits for the decisions on requests. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as DurableClock from "effect/workflow/DurableClock"
import * as DurableDeferred from "effect/workflow/DurableDeferred"
import type { WorkflowEngine, WorkflowInstance } from "effect/workflow/WorkflowEngine"
import { approve, Decision, type Request } from "../../core/Approval.ts"
import * as Wait from "../Wait.ts"

/** The place of the decision on a request. The first one counts. */
export const deferredFor = (requestId: string) => DurableDeferred.make(`decision/${requestId}`, { success: Decision })

/** The end of a request without a decision, and its time: a wait is over, or a decision would come too late. */
const byItself = (request: Request): { readonly at: number; readonly decision: Decision | null } | undefined => {
  const over = Wait.until(request)
  if (over !== undefined) return { at: over, decision: approve(request) }
  return request.expiresAt === undefined ? undefined : { at: request.expiresAt, decision: null }
}

const decided = Effect.fnUntraced(function* (request: Request) {
  const decision = DurableDeferred.await(deferredFor(request.id))
  const due = byItself(request)
  if (due === undefined) return yield* decision
  const now = yield* Clock.currentTimeMillis
  const clock = DurableClock.sleep({
    name: request.id,
    duration: Math.max(1, due.at - now),
    // A process that waits in memory would have to live as long.
    inMemoryThreshold: 0
  })
  return yield* DurableDeferred.raceAll({
    name: request.id,
    success: Schema.NullOr(Decision),
    error: Schema.Never,
    effects: [decision, Effect.as(clock, due.decision)]
  })
})

/** Waits until all requests are decided on, or over. Nothing is in memory meanwhile. */
export const decisionsOn = (
  requests: ReadonlyArray<Request>
): Effect.Effect<ReadonlyArray<Decision>, never, WorkflowEngine | WorkflowInstance> =>
  Effect.map(Effect.forEach(requests, decided, { concurrency: "unbounded" }), (decisions) =>
    decisions.flatMap((decision) => decision ?? [])
  )
