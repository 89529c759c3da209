/** Looks up a table by a key that others chose. */

/** Reads an own value of a table, never one of its prototype: `constructor` is in no table. */
export const valueAt = <A>(table: { readonly [key: string]: A }, key: string | undefined): A | undefined =>
  key !== undefined && Object.hasOwn(table, key) ? table[key] : undefined
