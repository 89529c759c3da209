/** Decorated stores, and the stores under them: what a process knows of a thread belongs to the store under all. */
import * as Effect from "effect/Effect"
import type { Leaf, NewEntry, Service } from "../core/SessionStore.ts"

/** The store under a decorated one, and the ids that threads have there. */
interface Base {
  readonly store: Service
  readonly idOf: (threadId: string) => string
}

const bases = new WeakMap<Service, Base>()

/** Makes a store known as a decoration of another one: runs on both take turns on the same threads. */
export const decorate = (
  store: Service,
  base: Service,
  idOf: (threadId: string) => string = (threadId) => threadId
): Service => {
  bases.set(store, { store: base, idOf })
  return store
}

/** Gives the store under all decorations, and the id of a thread there. */
export const baseOf = (store: Service, threadId: string): { readonly store: Service; readonly threadId: string } => {
  const base = bases.get(store)
  return base === undefined ? { store, threadId } : baseOf(base.store, base.idOf(threadId))
}

/** Makes a store whose appends are reported: `before` when one begins, `after` with the new leaf and its entries. */
export const watch = (
  store: Service,
  {
    after,
    before
  }: { readonly before: () => void; readonly after: (leaf: Leaf, entries: ReadonlyArray<NewEntry>) => void }
): Service => {
  const append: Service["append"] = (threadId, batch) =>
    Effect.suspend(() => {
      before()
      return Effect.tap(store.append(threadId, batch), (leaf) => Effect.sync(() => after(leaf, batch.entries)))
    })
  return decorate({ ...store, append }, store)
}

export { waitCursor } from "./internal/browsing.ts"
export { decodeHead, encodeHead, type Head } from "./internal/codec.ts"
export { bounded } from "./internal/operation.ts"
