/** Compares a value with a partial description of it. */
import * as Equal from "effect/Equal"
import * as Predicate from "effect/Predicate"

/** Describes a value: some fields of an object, all elements of an array, a pattern of a text, a predicate, or a value. */
export type Expectation<A> =
  | ((actual: A) => boolean)
  | (A extends string
      ? A | RegExp
      : A extends ReadonlyArray<infer B>
        ? ReadonlyArray<Expectation<B>>
        : A extends object
          ? { readonly [Key in keyof A]?: Expectation<A[Key]> | undefined }
          : A)

const longest = 300

const show = (value: unknown): string => {
  if (Predicate.isRegExp(value)) return String(value)
  if (typeof value === "function") return "a value for which the predicate holds"
  const text = value === undefined ? "nothing" : JSON.stringify(value)
  return text.length > longest ? `${text.slice(0, longest)}…` : text
}

/** Renders one difference with its path. */
export const difference = (path: string, expected: unknown, actual: unknown): string =>
  `${path}: expected ${show(expected)}, got ${show(actual)}`

/** Lists the differences between a value and its description, each with its path. Equal values have none. */
export const differences = (path: string, expected: unknown, actual: unknown): ReadonlyArray<string> => {
  if (expected === undefined) return []
  if (Predicate.isRegExp(expected)) {
    return typeof actual === "string" && expected.test(actual) ? [] : [difference(path, expected, actual)]
  }
  if (typeof expected === "function") return expected(actual) === true ? [] : [difference(path, expected, actual)]
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual)) return [difference(path, expected, actual)]
    const unequal = expected.flatMap((one, index) =>
      index < actual.length ? differences(`${path}[${index}]`, one, actual[index]) : []
    )
    return expected.length === actual.length
      ? unequal
      : [...unequal, `${path}: expected ${expected.length} elements, got ${actual.length}: ${show(actual)}`]
  }
  if (Predicate.isObject(expected) && Predicate.isObject(actual)) {
    if (Equal.equals(expected, actual)) return []
    return Object.entries(expected).flatMap(([key, one]) =>
      differences(`${path}.${key}`, one, Predicate.hasProperty(actual, key) ? actual[key] : undefined)
    )
  }
  return Equal.equals(expected, actual) ? [] : [difference(path, expected, actual)]
}
