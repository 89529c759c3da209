/** Patterns of names and of arguments, in the rules of a policy. */
import { isObject, type Json, type JsonObject } from "../../core/Json.ts"
import { fold, foldName, type Forms, formsOf, patternForms } from "./fold.ts"

/** A pattern of an argument: a text with wildcards, a value, one of several patterns, or bounds. */
export type Pattern =
  | string
  | number
  | boolean
  | ReadonlyArray<string | number | boolean>
  | { readonly above?: number; readonly below?: number; readonly not?: string | ReadonlyArray<string> }

/**
 * The way to match.
 *
 * - `closely`: for rules that allow; wildcards stop at separators
 * - `exactly`: without folding
 * - `widely`: for rules that restrict; texts are folded, and objects are searched
 */
export type Way = "closely" | "exactly" | "widely"

/** The characters that begin another command in a shell, or another line. */
const further = new Set("\n\r;&|<>`$(){}")

/** Further characters that end a word, an item of a list, or an address. */
const ending = /[\s\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point},"'\u060c\u3001]/u

/** Checks whether a word ends at a character of any width. */
const endsWord = (character: string): boolean => {
  if (ending.test(character)) return true
  const form = character > "\u007f" ? character.normalize("NFKC") : character
  return form !== character && [...form].some((one) => further.has(one) || ending.test(one))
}

/** Codes of wildcards beside code points: `?`, `*` in a word, `*` between spaces, and `**`. */
const one = -1
const some = -2
const words = -3
const any = -4

const compiled = new Map<string, ReadonlyArray<number>>()

const compile = (pattern: string): ReadonlyArray<number> => {
  const cachedTokens = compiled.get(pattern)
  if (cachedTokens !== undefined) return cachedTokens
  const parts = pattern.match(/\*{2,}|[^]/gu) ?? []
  const tokens = parts.map((text, index) => {
    if (text === "?") return one
    if (text === "*") return (parts[index - 1] ?? " ") === " " && (parts[index + 1] ?? " ") === " " ? words : some
    return text.startsWith("**") ? any : (text.codePointAt(0) ?? one)
  })
  if (compiled.size < 10_000) compiled.set(pattern, tokens)
  return tokens
}

/** The longest text for patterns, in characters. A longer text fits each rule that restricts, and no rule that allows. */
const maxLength = 100_000

/** A step up in a path, or a name that a shell may expand to a step up (`.*`, `.[.]`). */
const stepUp = /(^|[/\\\s])\.(?:\.|\?|\*|\[[^\]/\\]*\])+([/\\\s]|$)/

/** Checks for a step up, also one that appears when a shell removes quotes and backslashes. */
const climbs = (text: string): boolean =>
  text.includes(".") && (stepUp.test(text) || (/["'\\]/.test(text) && stepUp.test(text.replaceAll(/["'\\]/g, ""))))

/**
 * Checks whether a text fits a pattern. It follows all ways at once, so the time is at most the length of the text times
 * the length of the pattern. With `allows`, wildcards stop at separators.
 */
const fits = (parts: ReadonlyArray<number>, text: string, allows: boolean): boolean => {
  const end = parts.length
  let reached = new Uint8Array(end + 1)
  let next = new Uint8Array(end + 1)
  // Behind a part that takes anything, earlier places don't matter.
  let from = 0
  let to = 0
  const reach = (places: Uint8Array, first: number): void => {
    for (let place = first; ; place++) {
      places[place] = 1
      if (place > to) to = place
      const part = parts[place]
      const takesSome = part === some || part === words
      const takesAll = part === any || (takesSome && !allows)
      if (takesAll && place > from) from = place
      if (!takesAll && !takesSome) return
    }
  }
  reach(reached, 0)
  for (const character of text) {
    const code = character.codePointAt(0)
    const isPlain = !allows || !further.has(character)
    const isInWord = !allows || (isPlain && !endsWord(character))
    const last = to
    to = 0
    next.fill(0)
    for (let place = from; place <= last; place++) {
      if (reached[place] === 0) continue
      const part = parts[place]
      if (part === any || (part === words && isPlain) || (part === some && isInWord)) reach(next, place)
      else if (part === one ? isInWord : part === code) reach(next, place + 1)
    }
    ;[reached, next] = [next, reached]
    if (to === 0 && reached[0] === 0) return false
  }
  return reached[end] === 1
}

const fitsClosely = (pattern: string, text: string): boolean => {
  if (text.length > maxLength) return false
  if (pattern !== text && !pattern.includes("**") && climbs(text)) return false
  return fits(compile(pattern), text, true)
}

const split = new Map<string, ReadonlyArray<string> | undefined>()

/** The texts between the wildcards of a pattern; `undefined` for patterns that need {@link fits}. */
const textsOf = (pattern: string): ReadonlyArray<string> | undefined => {
  if (split.has(pattern)) return split.get(pattern)
  const texts = pattern.includes("?") || !pattern.isWellFormed() ? undefined : pattern.split(/\*+/)
  if (split.size < 10_000) split.set(pattern, texts)
  return texts
}

/** Checks whether a text has these texts in order: the first at its beginning, the last at its end. */
const hasInOrder = (texts: ReadonlyArray<string>, text: string): boolean => {
  const [first = "", ...others] = texts
  const last = others.pop()
  if (last === undefined) return text === first
  if (!text.startsWith(first)) return false
  let from = first.length
  for (const other of others) {
    const place = text.indexOf(other, from)
    if (place === -1) return false
    from = place + other.length
  }
  return text.length - last.length >= from && text.endsWith(last)
}

const fitsExactly = (pattern: string, text: string): boolean => {
  if (text.length > maxLength) return true
  const texts = textsOf(pattern)
  return texts === undefined ? fits(compile(pattern), text, false) : hasInOrder(texts, text)
}

/** A cache of the forms of a call's texts, for all rules. */
export type FormsBy = Map<string, Forms>

const formsIn = (cache: FormsBy, text: string): Forms => {
  const before = cache.get(text)
  if (before !== undefined) return before
  const forms = formsOf(text)
  cache.set(text, forms)
  return forms
}

const fitsWidely = (pattern: string, text: string, cache: FormsBy): boolean => {
  if (fitsExactly(pattern, text)) return true
  const { addresses, items, whole } = formsIn(cache, text)
  return patternForms(pattern).some((folded) => {
    const fitsOne = (form: string): boolean => fitsExactly(folded, form)
    // Each item is a part of the whole.
    const isInside = folded.startsWith("*") && folded.endsWith("*")
    return (
      whole.some(fitsOne) || (!isInside && items.some(fitsOne)) || (folded.includes("@") && addresses.some(fitsOne))
    )
  })
}

/** Matches patterns in one way, over the texts of one call. */
interface Matcher {
  readonly way: Way
  readonly cache: FormsBy
}

const matchesText = ({ cache, way }: Matcher, pattern: string, text: string): boolean => {
  if (way === "widely") return fitsWidely(pattern, text, cache)
  return way === "closely" ? fitsClosely(pattern, text) : fitsExactly(pattern, text)
}

const foldSigns = (name: string): string => fold(name).replaceAll("-", "_")

/** Checks whether a name fits a pattern. For a rule that restricts, case, `-` and `_` make no difference. */
export const matchesName = (pattern: string, name: string, restricts: boolean): boolean =>
  fitsExactly(pattern, name) || (restricts && fitsExactly(foldSigns(pattern), foldSigns(name)))

export const isWild = (name: string): boolean => /[*?]/.test(name)

const scalar = (value: Json): string => (typeof value === "string" ? value : JSON.stringify(value))

/** Checks whether a value is within bounds. A value that is no number fits rules that restrict. */
const isWithin = (value: Json | undefined, above: number | undefined, below: number | undefined, allows: boolean) => {
  if (above === undefined && below === undefined) return true
  if (value === undefined) return false
  if (typeof value !== "number") return !allows
  return (above === undefined || value > above) && (below === undefined || value < below)
}

const yes = new Set(["true", "1", "yes", "y", "on", "t"])
const no = new Set(["false", "0", "no", "n", "off", "f"])

/** Checks whether a tool may read a value as this number or boolean. */
const isLike = (pattern: number | boolean, value: Json): boolean => {
  if (typeof value === "object") return false
  const text = fold(String(value))
  if (typeof pattern === "boolean") return (pattern ? yes : no).has(text)
  return typeof value === "boolean" ? Number(value) === pattern : text !== "" && Number(text) === pattern
}

const isList = (pattern: Pattern): pattern is Extract<Pattern, ReadonlyArray<unknown>> => Array.isArray(pattern)

/** The names and values in an object or a list, at any depth. */
const leavesOf = (value: Json): ReadonlyArray<Json> => {
  if (Array.isArray(value)) return value.flatMap(leavesOf)
  return isObject(value) ? Object.entries(value).flatMap(([key, item]) => [key, ...leavesOf(item)]) : [value]
}

const matchesScalar = (matching: Matcher, pattern: string | number | boolean, value: Json): boolean => {
  if (typeof pattern === "string") {
    if (matchesText(matching, pattern, scalar(value))) return true
    return matching.way === "widely" && typeof value === "object" && value !== null
      ? leavesOf(value).some((leaf) => matchesText(matching, pattern, scalar(leaf)))
      : false
  }
  if (value === pattern) return true
  // A tool may read "true" as true, so a rule that restricts does too.
  if (matching.way === "exactly") return value === String(pattern)
  return matching.way === "widely" && leavesOf(value).some((leaf) => isLike(pattern, leaf))
}

/** Matches one value. A missing value fits `not` in rules that restrict, and nothing in rules that allow. */
const matches = (matching: Matcher, pattern: Pattern, value: Json | undefined): boolean => {
  const allows = matching.way === "closely"
  if (typeof pattern === "object" && !isList(pattern)) {
    const { above, below, not } = pattern
    if (not === undefined && value === undefined) return false
    if (!isWithin(value, above, below, allows)) return false
    if (not === undefined) return true
    if (value === undefined) return !allows
    // For exceptions the ways change places: a rule that allows matches them widely.
    const other: Matcher = { ...matching, way: allows ? "widely" : "closely" }
    return !(typeof not === "string" ? [not] : not).some((one) => matches(other, one, value))
  }
  if (value === undefined) return false
  if (isList(pattern)) return pattern.some((one) => matches(matching, one, value))
  return matchesScalar(matching, pattern, value)
}

/** The values under a name. For a rule that restricts, the case of the name makes no difference. */
const valuesOf = ({ way }: Matcher, value: Json | undefined, name: string): ReadonlyArray<Json | undefined> => {
  if (!isObject(value)) return [undefined]
  const own = Object.hasOwn(value, name) ? value[name] : undefined
  if (way !== "widely") return [own]
  const key = foldName(name)
  return [own, ...Object.entries(value).flatMap(([other, item]) => (foldName(other) === key ? [item] : []))]
}

/** Matches the value at a path of names (`options.force`). A rule that allows must fit all values of a list. */
const matchesAt = (
  matching: Matcher,
  pattern: Pattern,
  value: Json | undefined,
  names: ReadonlyArray<string>
): boolean => {
  if (Array.isArray(value)) {
    if (value.length === 0) return matches(matching, pattern, undefined)
    const fitsOne = (one: Json): boolean => matchesAt(matching, pattern, one, names)
    return matching.way === "closely" ? value.every(fitsOne) : value.some(fitsOne)
  }
  const [name, ...rest] = names
  if (name === undefined) return matches(matching, pattern, value)
  return valuesOf(matching, value, name).some((one) => matchesAt(matching, pattern, one, rest))
}

/**
 * The ways to read a path: as the name of one argument, and as names inside of each other. An argument `options.force`
 * must not hide the `force` in `options`.
 */
const readingsOf = ({ way }: Matcher, path: string, args: JsonObject): ReadonlyArray<ReadonlyArray<string>> => {
  const names = path.split(".")
  if (names.length === 1) return [names]
  const [first = ""] = names
  const readings = Object.hasOwn(args, path) ? (Object.hasOwn(args, first) ? [[path], names] : [[path]]) : [names]
  if (way !== "widely") return readings
  const has = (name: string): boolean => Object.keys(args).some((own) => foldName(own) === foldName(name))
  return [...readings, ...(has(path) ? [[path]] : []), ...(has(first) ? [names] : [])]
}

/**
 * Checks whether the arguments of a call fit all patterns. `views` are the model's arguments, and the arguments that the
 * tool runs with. `closely` and `exactly` a pattern must fit in all views, `widely` in one.
 */
export const matchesArguments = (
  patterns: { readonly [name: string]: Pattern },
  views: ReadonlyArray<JsonObject>,
  way: Way,
  cache: FormsBy
): boolean => {
  const matching: Matcher = { way, cache }
  return Object.entries(patterns).every(([path, pattern]) => {
    const fitsIn = (args: JsonObject): boolean => {
      const readings = readingsOf(matching, path, args)
      const fitsOne = (names: ReadonlyArray<string>): boolean => matchesAt(matching, pattern, args, names)
      return way === "closely" ? readings.every(fitsOne) : readings.some(fitsOne)
    }
    return way === "widely" ? views.some(fitsIn) : views.every(fitsIn)
  })
}
