/** Removes undefined fields: for JSON, and for schemas with optional keys. */

/** The record with its fields that may be `undefined` as optional ones. */
export type Defined<T> = {
  readonly [Key in keyof T as undefined extends T[Key] ? never : Key]: T[Key]
} & { readonly [Key in keyof T as undefined extends T[Key] ? Key : never]?: Exclude<T[Key], undefined> }

/** Leaves out the fields that are `undefined`. */
export const defined = <const T extends object>(fields: T): Defined<T> => {
  const result: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(fields)) if (value !== undefined) result[key] = value
  // Every field of `T` that is not `undefined` is present.
  return result as Defined<T>
}
