/** Answers queries from threads in memory. */
import * as Effect from "effect/Effect"
import type { WaitingRequest } from "../../../core/SessionStore.ts"
import type { Fault, Tables } from "../tables.ts"
import { firstHits, firstThreads, firstWaits, isListed } from "./order.ts"
import * as Memory from "./thread.ts"

/** Looks at a thread. A missing thread gives `absent`. */
export type Look = <A>(threadId: string, absent: A, body: (memory: Memory.Memory) => A) => Effect.Effect<A, Fault>

/** Collects from all threads. */
export type Each = <A>(
  body: (memory: Memory.Memory) => Effect.Effect<ReadonlyArray<A>>
) => Effect.Effect<ReadonlyArray<A>, Fault>

/** The queries about one thread. */
export const readsBy = (look: Look): Pick<Tables, "find" | "entry" | "path" | "labels" | "entries"> => ({
  find: (threadId) => look(threadId, undefined, Memory.info),
  entry: (threadId, id) => look(threadId, undefined, (memory) => Memory.find(memory, id)),
  path: (threadId, from, limit) => look(threadId, [], (memory) => Memory.path(memory, from, limit)),
  labels: (threadId) => look(threadId, [], Memory.labels),
  entries: (threadId, cursor, limit) =>
    look(threadId, { entries: [], next: undefined }, (memory) => Memory.slice(memory, cursor, limit))
})

/** The queries about all threads. `all` are their open requests. */
export const listsBy = (
  each: Each,
  all: Effect.Effect<ReadonlyArray<WaitingRequest>, Fault>
): Pick<Tables, "list" | "search" | "waiting" | "waitingFor"> => ({
  list: (query) =>
    Effect.map(
      each((memory) => Effect.sync(() => [Memory.info(memory)].filter((thread) => isListed(thread, query)))),
      (threads) => firstThreads(threads, query.limit)
    ),
  search: (query) =>
    Effect.map(
      each((memory) => Memory.hits(memory, query)),
      (hits) => firstHits(hits, query.limit)
    ),
  waiting: (query) => Effect.map(all, (waiting) => firstWaits(waiting, query)),
  waitingFor: (requestId) =>
    Effect.map(all, (waiting) => {
      const wanted = waiting.filter(({ request }) => request.id === requestId)
      return firstWaits(wanted, { after: undefined, limit: 1, threadId: undefined })[0]
    })
})
