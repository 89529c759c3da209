/**
 * The requests that the threads of a store wait for. A thread is read again only when something was written to it.
 */
import * as Effect from "effect/Effect"
import { byTime, type Request } from "../../core/Approval.ts"
import * as Checkpoint from "../../core/Checkpoint.ts"
import type { SessionError } from "../../core/SessionError.ts"
import type { Listing, Service, Thread } from "../../core/SessionStore.ts"
import { loadThread } from "../../sessions/SessionStore.ts"
import { defined } from "../../support/defined.ts"
import { bookId } from "./book.ts"

/** A request of a thread. */
export interface Pending {
  readonly threadId: string
  readonly request: Request
}

const pageSize = 200

/** Tells of a thread whose last run came to an end of its own: nothing waits in it. */
const isOver = (store: Service, { leaf, threadId }: Thread): Effect.Effect<boolean, SessionError> =>
  leaf.id === null
    ? Effect.succeed(true)
    : Effect.map(store.load(threadId, { from: leaf.id, limit: 3 }), ({ entries }) =>
        entries.some(({ entry }) => entry._tag === "RunSettled" && entry.outcome !== "suspended")
      )

/** Makes a reader of all threads, which knows what it has read. */
export const make = (store: Service) => {
  const known = new Map<string, { readonly leaf: string | null; readonly found: ReadonlyArray<Pending> }>()

  const of = Effect.fnUntraced(function* (thread: Thread) {
    const { leaf, threadId } = thread
    const before = known.get(threadId)
    if (before?.leaf === leaf.id) return before.found
    const checkpoint = (yield* isOver(store, thread)) ? undefined : (yield* loadThread(store, threadId)).checkpoint
    // A thread whose state can't be read waits for nobody here: its next run says what is wrong.
    const requests =
      checkpoint === undefined ? [] : yield* Effect.orElseSucceed(Checkpoint.pending(checkpoint), () => [])
    // A request that only waits for its time needs nobody.
    const found = requests.flatMap((request) => (request.rule === byTime ? [] : [{ threadId, request }]))
    known.set(threadId, { leaf: leaf.id, found })
    return found
  })

  const ofOne = (threadId: string): Effect.Effect<ReadonlyArray<Pending>, SessionError> =>
    Effect.catchIf(Effect.flatMap(store.info(threadId), of), isGone, () => Effect.succeed([]))

  const all = Effect.gen(function* () {
    const found: Array<Pending> = []
    const seen = new Set<string>()
    let cursor: string | undefined
    do {
      const page: Listing<Thread> = yield* store.list(defined({ limit: pageSize, cursor }))
      for (const thread of page.items) {
        if (thread.threadId === bookId || seen.has(thread.threadId)) continue
        seen.add(thread.threadId)
        found.push(...(yield* Effect.catchIf(of(thread), isGone, () => Effect.succeed([]))))
      }
      cursor = page.next ?? undefined
    } while (cursor !== undefined)
    for (const threadId of known.keys()) if (!seen.has(threadId)) known.delete(threadId)
    return found
  })

  return { all, ofOne }
}

/** Tells of a thread that was deleted, or can't be read: the others are listed all the same. */
const isGone = ({ reason }: SessionError): boolean => reason._tag === "NotFound" || reason._tag === "Corrupt"
