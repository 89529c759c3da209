/**
 * Values that live as long as an object, like those of a `WeakMap`, but held by the object itself.
 *
 * A `WeakMap` keeps a value that refers to its key until the next full collection, and so keeps ended runs. In its place, a
 * round of a deep agent leaves 3.5 times as much to that collection, and takes 1.35 times as long (A100, 2026-11-28).
 */

/** The key of the values. Create large objects with this key: adding it later makes them slow. */
export const table = Symbol("effect-deepagents/attached")

/** An object that holds values of its own. */
export interface Holder {
  [table]?: Map<object, unknown> | undefined
}

/** Values of one kind, by their objects. */
export interface Attachments<in K extends object, A> {
  readonly get: (key: K) => A | undefined
  readonly set: (key: K, value: A) => void
}

/** Makes a kind of values. A copy by spread shares the values of the original. */
export const make = <K extends object, A>(): Attachments<K, A> => {
  const kind = {}
  return {
    // `set` puts only an `A` under its kind.
    get: (key: K & Holder) => key[table]?.get(kind) as A | undefined,
    set: (key: K & Holder, value) => {
      const values = (key[table] ??= new Map<object, unknown>())
      values.set(kind, value)
    }
  }
}
