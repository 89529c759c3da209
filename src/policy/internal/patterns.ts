/**
 * Patterns of names and of arguments, in the rules of a policy.
 */
import { isObject, type Json, type JsonObject } from "../../core/Json.ts"

/** A pattern of an argument: a text with wildcards, a value, one of several patterns, or bounds. */
export type Pattern =
  | string
  | number
  | boolean
  | ReadonlyArray<string | number | boolean>
  | { readonly above?: number; readonly below?: number; readonly not?: string | ReadonlyArray<string> }

/** The characters by which a shell, or a list of lines, goes on to something else. */
const further = "\\n\\r;&|<>`$(){}"

const escaped = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)

const compiled = new Map<string, RegExp>()

/**
 * The expression of a text with wildcards: `**` is anything, `*` anything within its bounds, `?` one character. In what
 * allows, `*` and `?` stop at what would let more through than is meant.
 */
const expression = (pattern: string, allows: boolean): RegExp => {
  const key = `${allows ? "+" : "-"}${pattern}`
  const known = compiled.get(key)
  if (known !== undefined) return known
  const one = allows ? `[^${further}]` : "[^]"
  const source = pattern
    .split(/(\*{2,}|\*|\?)/)
    .map((part) => (part.startsWith("**") ? "[^]*" : part === "*" ? `${one}*` : part === "?" ? one : escaped(part)))
    .join("")
  const made = new RegExp(`^${source}$`, "u")
  if (compiled.size < 10_000) compiled.set(key, made)
  return made
}

/** The longest text that a pattern is tried on, in characters: a longer one is taken as if it were the worst. */
const maxLength = 100_000

/** A step up in a path, which leads out of what the pattern names. */
const climbs = (text: string): boolean => /(^|[/\\])\.\.([/\\]|$)/.test(text)

const matchesText = (pattern: string, text: string, allows: boolean): boolean => {
  if (text.length > maxLength) return !allows
  // Two runs of anything beside each other would be tried in every way to part them.
  if (pattern.split(/\*+/).length > 12) return !allows
  if (allows && climbs(text) && !pattern.includes("**") && pattern !== text) return false
  return expression(pattern, allows).test(text)
}

/** Tells whether a name fits a pattern of names. */
export const matchesName = (pattern: string, name: string): boolean => matchesText(pattern, name, false)

export const isWild = (name: string): boolean => /[*?]/.test(name)

const scalar = (value: Json): string => (typeof value === "string" ? value : JSON.stringify(value))

const matches = (pattern: Pattern, value: Json, allows: boolean): boolean => {
  // A list fits if what it is asked about could be any of it: all of it for what allows, any of it for what does not.
  if (Array.isArray(value) && !Array.isArray(pattern) && typeof pattern !== "object") {
    return (
      value.length > 0 &&
      (allows
        ? value.every((one) => matches(pattern, one, allows))
        : value.some((one) => matches(pattern, one, allows)))
    )
  }
  if (typeof pattern === "string") return matchesText(pattern, scalar(value), allows)
  if (typeof pattern !== "object") return value === pattern
  if (Array.isArray(pattern)) return pattern.some((one) => matches(one, value, allows))
  const { above, below, not } = pattern as Exclude<Pattern, string | number | boolean | ReadonlyArray<unknown>>
  if (above !== undefined && !(typeof value === "number" && value > above)) return false
  if (below !== undefined && !(typeof value === "number" && value < below)) return false
  if (not === undefined) return true
  // What must not be there is looked for widely by what allows, and closely by what does not.
  return !(typeof not === "string" ? [not] : not).some((one) => matches(one, value, !allows))
}

/** The value at a path of names: `options.force`. */
const at = (args: JsonObject, path: string): Json | undefined => {
  if (Object.hasOwn(args, path)) return args[path]
  let current: Json | undefined = args
  for (const name of path.split(".")) {
    if (!isObject(current) || !Object.hasOwn(current, name)) return undefined
    current = current[name]
  }
  return current
}

/** Tells whether the arguments of a call fit all patterns. */
export const matchesArguments = (
  patterns: { readonly [name: string]: Pattern },
  args: JsonObject,
  allows: boolean
): boolean =>
  Object.entries(patterns).every(([path, pattern]) => {
    const value = at(args, path)
    return value !== undefined && matches(pattern, value, allows)
  })
