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

/** Tells whether a value is within bounds. What is no number can't be told: it fits what restricts. */
const isWithin = (value: Json | undefined, above: number | undefined, below: number | undefined, allows: boolean) => {
  if (above === undefined && below === undefined) return true
  if (value === undefined) return false
  if (typeof value !== "number") return !allows
  return (above === undefined || value > above) && (below === undefined || value < below)
}

const isList = (pattern: Pattern): pattern is Extract<Pattern, ReadonlyArray<unknown>> => Array.isArray(pattern)

/** Matches one value. One that was left out is not what must not be there, where the rule restricts; what allows wants one. */
const matches = (pattern: Pattern, value: Json | undefined, allows: boolean): boolean => {
  if (typeof pattern === "object" && !isList(pattern)) {
    const { above, below, not } = pattern
    if (not === undefined && value === undefined) return false
    if (!isWithin(value, above, below, allows)) return false
    if (not === undefined) return true
    if (value === undefined) return !allows
    // A rule that allows looks widely for the values that must not be there, and one that restricts closely.
    return !(typeof not === "string" ? [not] : not).some((one) => matches(one, value, !allows))
  }
  if (value === undefined) return false
  if (isList(pattern)) return pattern.some((one) => matches(one, value, allows))
  if (typeof pattern === "string") return matchesText(pattern, scalar(value), allows)
  // A tool may take "true" for true: what restricts does so too.
  return value === pattern || (!allows && value === String(pattern))
}

/**
 * Matches the value at a path of names (`options.force`). Of a list, what allows must fit all values, and what restricts
 * any.
 */
const matchesAt = (
  pattern: Pattern,
  value: Json | undefined,
  names: ReadonlyArray<string>,
  allows: boolean
): boolean => {
  if (Array.isArray(value)) {
    if (value.length === 0) return matches(pattern, undefined, allows)
    const fitsOne = (one: Json): boolean => matchesAt(pattern, one, names, allows)
    return allows ? value.every(fitsOne) : value.some(fitsOne)
  }
  const [name, ...rest] = names
  if (name === undefined) return matches(pattern, value, allows)
  return matchesAt(pattern, isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined, rest, allows)
}

/**
 * The ways to read a path: the name of one argument, or names inside of each other. Both, where a call has both: an
 * argument `options.force` must not hide the `force` in `options`.
 */
const readingsOf = (path: string, args: JsonObject): ReadonlyArray<ReadonlyArray<string>> => {
  const names = path.split(".")
  if (!Object.hasOwn(args, path)) return [names]
  return names.length > 1 && Object.hasOwn(args, names[0] ?? "") ? [[path], names] : [[path]]
}

/** Tells whether the arguments of a call fit all patterns. */
export const matchesArguments = (
  patterns: { readonly [name: string]: Pattern },
  args: JsonObject,
  allows: boolean
): boolean =>
  Object.entries(patterns).every(([path, pattern]) => {
    const readings = readingsOf(path, args)
    const fitsOne = (names: ReadonlyArray<string>): boolean => matchesAt(pattern, args, names, allows)
    return allows ? readings.every(fitsOne) : readings.some(fitsOne)
  })
