import * as SchemaIssue from "effect/SchemaIssue"
import { isObject } from "../Json.ts"

const format = SchemaIssue.makeFormatterStandardSchemaV1()

/** One thing that a schema had against a value. */
export interface Problem {
  readonly keys: ReadonlyArray<PropertyKey>
  readonly path: string
  readonly expected: string
}

/** `["files", 0, "path"]` as `files[0].path`. */
const render = (keys: ReadonlyArray<PropertyKey>): string =>
  keys.reduce<string>(
    (path, key) => (typeof key === "number" ? `${path}[${key}]` : path === "" ? String(key) : `${path}.${String(key)}`),
    ""
  )

/** The problems of a schema issue, in order. */
export const problems = (issue: SchemaIssue.Issue): ReadonlyArray<Problem> =>
  format(issue).issues.map((one) => {
    const keys = (one.path ?? []).map((segment) => (typeof segment === "object" ? segment.key : segment))
    return { keys, path: render(keys), expected: one.message.replace(/^Expected /, "") }
  })

/** The value at a path, `undefined` where there is none. */
export const at = (value: unknown, keys: ReadonlyArray<PropertyKey>): unknown => {
  let current: unknown = value
  for (const key of keys) {
    if (Array.isArray(current) && typeof key === "number") current = current[key]
    else if (isObject(current) && typeof key === "string") current = current[key]
    else return undefined
  }
  return current
}

const briefLimit = 80

/** A value on one short line, for errors. */
export const brief = (value: unknown): string => {
  const text = value === undefined ? "nothing" : (JSON.stringify(value) ?? typeof value)
  return text.length <= briefLimit ? text : `${text.slice(0, briefLimit)}…`
}
