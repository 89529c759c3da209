/** Decides on requests for clients whose protocol goes on with the response that asked. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Decision, Request } from "../../../core/Approval.ts"
import { findInput, observeInput } from "../packets/response.ts"
import { RunsError } from "../service.ts"
import type { ThreadRef } from "../tenant.ts"
import type { TenantCall } from "./route.ts"

/**
 * Finds the input whose requests a client answers again: all of them are decided. `undefined`: they still wait, or are not
 * of the last input.
 */
export const findDecided = Effect.fnUntraced(function* (
  { door: { runs }, tenant }: TenantCall,
  thread: ThreadRef,
  requests: ReadonlyArray<string>
) {
  const { pending } = yield* runs.status(thread)
  if (pending.some(({ id }) => requests.includes(id))) return undefined
  const input = yield* findInput(tenant, runs, thread)
  if (input === undefined) return undefined
  const unknown = new Set(requests)
  yield* Stream.runForEachWhile(observeInput(runs, thread, input.id, input.position), (event) =>
    Effect.sync(() => {
      if (event._tag === "ApprovalRequested") unknown.delete(event.id)
      return unknown.size > 0
    })
  )
  return unknown.size === 0 ? input : undefined
})

/** Decides what a client has an answer for. Gives the events before the decision, and the position behind them. */
export const decideOn = Effect.fnUntraced(function* (
  { door: { runs }, tenant }: TenantCall,
  thread: ThreadRef,
  decide: (request: Request) => Decision | undefined
) {
  const { pending } = yield* runs.status(thread)
  const decisions = pending.flatMap((request) => decide(request) ?? [])
  const input = yield* findInput(tenant, runs, thread)
  if (decisions.length === 0 || input === undefined) {
    return yield* new RunsError({
      reason: "Conflict",
      threadId: thread.id,
      problem: "nothing of this waits for a decision any more; read the thread again"
    })
  }
  const frames = yield* Stream.runCollect(observeInput(runs, thread, input.id, input.position))
  const { position } = yield* runs.decide(thread, decisions)
  return { id: input.id, told: frames, position }
})
