/** Renders the issues of a schema as problems: path, expected and actual value. */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as SchemaIssue from "effect/SchemaIssue"
import { cut } from "./text.ts"

const format = SchemaIssue.makeFormatterStandardSchemaV1()

/** One problem of a value. */
export interface Problem {
  readonly keys: ReadonlyArray<PropertyKey>
  readonly path: string
  readonly expected: string
}

/** `["files", 0, "path"]` as `files[0].path`. */
export const render = (keys: ReadonlyArray<PropertyKey>): string =>
  keys.reduce<string>(
    (path, key) => (typeof key === "number" ? `${path}[${key}]` : path === "" ? String(key) : `${path}.${String(key)}`),
    ""
  )

/** `Schema.Number` is a number or a literal for infinities; for a reader it is a number. */
const infinities = / \| "Infinity" \| "-Infinity" \| "NaN"/

const expectedBy = (message: string): string =>
  message
    .replace(/^Expected /, "")
    .replace(/^Missing key$/, "a value")
    .replace(infinities, "")
    .replace("no excess property", "no such field")

/** The problems of an issue itself, under the keys that lead to it. */
const leaves = (issue: SchemaIssue.Issue, above: ReadonlyArray<PropertyKey>): ReadonlyArray<Problem> =>
  format(issue).issues.map((one) => {
    const own = (one.path ?? []).map((segment) => (typeof segment === "object" ? segment.key : segment))
    const keys = [...above, ...own]
    return { keys, path: render(keys), expected: expectedBy(one.message) }
  })

/** True for an issue about something inside of the value. */
const isInside = (issue: SchemaIssue.Issue): boolean => {
  if (issue._tag === "Pointer") return true
  if (issue._tag === "Encoding" || issue._tag === "Filter") return isInside(issue.issue)
  return (issue._tag === "Composite" || issue._tag === "AnyOf") && issue.issues.some(isInside)
}

/** A union without a matching member. It names all members, not only those with the value's type. */
const wholeUnion = (issue: SchemaIssue.AnyOf): SchemaIssue.Issue => new SchemaIssue.AnyOf(issue.ast, [])

const flatten = (issue: SchemaIssue.Issue, keys: ReadonlyArray<PropertyKey>): ReadonlyArray<Problem> => {
  if (issue._tag === "Pointer") return flatten(issue.issue, [...keys, ...issue.path])
  if (issue._tag === "Encoding") return flatten(issue.issue, keys)
  if (issue._tag === "AnyOf" && !isInside(issue)) return leaves(wholeUnion(issue), keys)
  return issue._tag === "Composite" || issue._tag === "AnyOf"
    ? issue.issues.flatMap((one) => flatten(one, keys))
    : leaves(issue, keys)
}

/** The problems of a schema issue, in order. */
export const problems = (issue: SchemaIssue.Issue): ReadonlyArray<Problem> => flatten(issue, [])

/** The value at a path; `undefined` if the path does not exist. */
export const at = (value: unknown, keys: ReadonlyArray<PropertyKey>): unknown => {
  let current: unknown = value
  for (const key of keys) {
    if (Array.isArray(current) && typeof key === "number") current = current[key]
    else if (Predicate.isObject(current) && typeof key === "string") current = current[key]
    else return undefined
  }
  return current
}

const briefLimit = 80

/** A value on one short line, for errors. */
export const brief = (value: unknown): string => {
  if (value === undefined) return "nothing"
  // A value with too deep nesting can't be written out.
  const text = Result.getOrElse(
    Result.try(() => JSON.stringify(value)),
    () => undefined
  )
  return cut(text ?? typeof value, briefLimit)
}
