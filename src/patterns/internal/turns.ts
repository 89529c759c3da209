/** The state of a thread between the turns that a program gives it. */
import * as Effect from "effect/Effect"
import type { SessionError } from "../../core/SessionError.ts"
import type { Service } from "../../core/SessionStore.ts"
import { loadThread } from "../../sessions/journal.ts"

/** Reports whether the last turn ended without its answer. Other outcomes are those of runs that are over. */
export const isCutOff = (ended: string | undefined): boolean =>
  ended === undefined || ended === "failed" || ended === "interrupted"

/** Waits until nothing of the thread waits for a person. The decider resumes the turn. */
export const untilDecided = Effect.fnUntraced(function* (
  store: Service,
  threadId: string
): Effect.fn.Return<void, SessionError> {
  while ((yield* store.waiting({ threadId, limit: 1 })).items.length > 0) yield* Effect.sleep("1 second")
  while ((yield* loadThread(store, threadId)).ended === "suspended") yield* Effect.sleep("1 second")
})
