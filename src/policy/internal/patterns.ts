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
const further = new Set("\n\r;&|<>`$(){}")

/** Signs that stand in a pattern for one character (`?`), for some (`*`) or for anything (`**`), beside code points. */
const one = -1
const some = -2
const any = -3

const compiled = new Map<string, ReadonlyArray<number>>()

const compile = (pattern: string): ReadonlyArray<number> => {
  const known = compiled.get(pattern)
  if (known !== undefined) return known
  const made = (pattern.match(/\*{2,}|[^]/gu) ?? []).map((text) => {
    if (text === "?") return one
    if (text === "*") return some
    return text.startsWith("*") ? any : (text.codePointAt(0) ?? one)
  })
  if (compiled.size < 10_000) compiled.set(pattern, made)
  return made
}

/** The longest text that a pattern is tried on, in characters: a longer one is taken as if it were the worst. */
const maxLength = 100_000

/** A step up in a path, which leads out of what the pattern names. */
const climbs = (text: string): boolean => /(^|[/\\])\.\.([/\\]|$)/.test(text)

/**
 * Walks all ways to fit a text at once, so that no text takes more than its length times that of the pattern. In what
 * allows, `*` and `?` stop at what would let more through than is meant.
 */
const fits = (parts: ReadonlyArray<number>, text: string, allows: boolean): boolean => {
  const end = parts.length
  let reached = new Uint8Array(end + 1)
  let next = new Uint8Array(end + 1)
  // Whatever came as far as a part that takes anything need not be looked for before it.
  let from = 0
  let to = 0
  const reach = (places: Uint8Array, first: number): void => {
    for (let place = first; ; place++) {
      places[place] = 1
      if (place > to) to = place
      const part = parts[place]
      const takesAll = part === any || (part === some && !allows)
      if (takesAll && place > from) from = place
      if (!takesAll && part !== some) return
    }
  }
  reach(reached, 0)
  for (const character of text) {
    const code = character.codePointAt(0)
    const isPlain = !allows || !further.has(character)
    const last = to
    to = 0
    next.fill(0)
    for (let place = from; place <= last; place++) {
      if (reached[place] === 0) continue
      const part = parts[place]
      if (part === any || (part === some && isPlain)) reach(next, place)
      else if (part === one ? isPlain : part === code) reach(next, place + 1)
    }
    ;[reached, next] = [next, reached]
    if (to === 0 && reached[0] === 0) return false
  }
  return reached[end] === 1
}

const matchesText = (pattern: string, text: string, allows: boolean): boolean => {
  if (text.length > maxLength) return !allows
  if (allows && climbs(text) && !pattern.includes("**") && pattern !== text) return false
  return fits(compile(pattern), text, allows)
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
