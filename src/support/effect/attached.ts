/**
 * Values that belong to an object for as long as it lives, as in a `WeakMap`.
 *
 * A `WeakMap` keeps a value that leads back to its key until the next full collection, and the key with it, so that each
 * of the many runs of a process would grow old. Here the object holds its values itself.
 */

/** The key of the values of an object. One that is made with it stays fast: what is added to a large one makes it a table. */
export const table = Symbol("effect-deepagents/attached")

/** An object that holds values of its own. */
export interface Holder {
  [table]?: Map<object, unknown> | undefined
}

/** Values of one kind, by the objects that they belong to. */
export interface Attached<in K extends object, A> {
  readonly get: (key: K) => A | undefined
  readonly set: (key: K, value: A) => void
}

/** Makes a kind of values. An object that is copied by a spread shares its values with the copy. */
export const make = <K extends object, A>(): Attached<K, A> => {
  const kind = {}
  return {
    // A value under a kind was set by it.
    get: (key: K & Holder) => key[table]?.get(kind) as A | undefined,
    set: (key: K & Holder, value) => {
      const values = (key[table] ??= new Map<object, unknown>())
      values.set(kind, value)
    }
  }
}
