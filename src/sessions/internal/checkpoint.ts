/** Reads the checkpoint of a thread from its entries. */
import * as Effect from "effect/Effect"
import type { Checkpoint } from "../../core/Checkpoint.ts"
import type { SessionError } from "../../core/SessionError.ts"
import type { Leaf, Page, Service, StoredEntry, Thread } from "../../core/SessionStore.ts"
import { baseOf } from "../decorated.ts"
import { add, checkpointOf, emptySum, recentOf, type Sum, weightOf } from "./recent.ts"

/**
 * A thread at one moment: its leaf, its checkpoint, and the outcome of its last run (`RunSettled`) if that is its end.
 */
export interface LoadedThread {
  readonly leaf: Leaf
  readonly checkpoint: Checkpoint | undefined
  readonly ended: string | undefined
}

/** The outcome of the run that wrote the last entries: its settlement and its usage. */
const outcomeOf = ({ beforeLast, last }: Sum): string | undefined => {
  const settled = [last, beforeLast].find((entry) => entry?._tag === "RunSettled")
  return settled?._tag === "RunSettled" ? settled.outcome : undefined
}

const toLoaded = (leaf: Leaf, sum: Sum): LoadedThread => ({
  leaf,
  checkpoint: leaf.id === null ? undefined : checkpointOf(sum),
  ended: outcomeOf(sum)
})

/** Reads the whole path to the leaf, page by page, and weighs its messages. */
const readPath = Effect.fnUntraced(function* (
  store: Service,
  { leaf, threadId }: Thread
): Effect.fn.Return<{ readonly sum: Sum; readonly weight: number }, SessionError> {
  const pages: Array<ReadonlyArray<StoredEntry>> = []
  let from = leaf.id
  while (from !== null) {
    const page: Page = yield* store.load(threadId, { from, limit: 10_000 })
    pages.push(page.entries)
    from = page.next
  }
  const sum = emptySum()
  let weight = 0
  for (const page of pages.toReversed()) {
    for (const { entry, id } of page) {
      if (entry._tag === "Message") weight += weightOf(entry)
      add(sum, id, entry)
    }
  }
  return { sum, weight }
})

/** Loads a thread at the given leaf. It comes from memory if nobody wrote since. */
export const loadAt = (store: Service, thread: Thread): Effect.Effect<LoadedThread, SessionError> => {
  const base = baseOf(store, thread.threadId)
  const recent = recentOf(base.store)
  const cachedSum = recent?.get({ ...thread, threadId: base.threadId })
  if (cachedSum !== undefined) return Effect.succeed(toLoaded(thread.leaf, cachedSum))
  return Effect.map(readPath(store, thread), ({ sum, weight }) => {
    const loaded = toLoaded(thread.leaf, sum)
    recent?.put({ ...thread, threadId: base.threadId }, sum, weight)
    return loaded
  })
}

/** Loads a thread at its leaf. */
export const load = (store: Service, threadId: string): Effect.Effect<LoadedThread, SessionError> =>
  Effect.flatMap(store.info(threadId), (thread) => loadAt(store, thread))
