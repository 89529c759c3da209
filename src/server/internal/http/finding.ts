/** Finds runs by the ids of their inputs, for protocols whose clients know a run by an id. */
import * as Effect from "effect/Effect"
import { findInput, findPlace } from "../packets/response.ts"
import type { Position } from "../position.ts"
import { RunsError } from "../service.ts"
import type { ThreadRef } from "../tenant.ts"
import type { Failure } from "./problem.ts"
import type { TenantCall } from "./route.ts"

/** A run, and the position before it; one that waits for its turn has none yet. */
export interface RunPlace {
  readonly id: string
  readonly thread: ThreadRef
  readonly place: Position | "queued"
}

/** Finds a run: at work, waiting for its turn, or in the thread. */
export const findRun = Effect.fnUntraced(function* (
  { door: { runs } }: TenantCall,
  thread: ThreadRef,
  id: string
): Effect.fn.Return<RunPlace, Failure> {
  const { input, queued } = yield* runs.status(thread)
  if (input?.id === id) return { id, thread, place: input.position }
  if (queued.includes(id)) return { id, thread, place: "queued" }
  const place = yield* findPlace(thread, id)
  if (place !== undefined) return { id, thread, place }
  const problem = "there is no such run in this thread"
  return yield* new RunsError({ reason: "NotFound", threadId: thread.id, problem })
})

/** Reports whether a run is at work, also on a decision. */
export const isAtWork = Effect.fnUntraced(function* (
  { door: { runs }, tenant }: TenantCall,
  thread: ThreadRef,
  id: string
) {
  const { input, state } = yield* runs.status(thread)
  if (state !== "working") return false
  return (input ?? (yield* findInput(tenant, runs, thread)))?.id === id
})
