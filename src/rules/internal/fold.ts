/** Folds texts, so that a rule that restricts holds for all forms of a text that a tool may treat alike. */
import { normaliseName } from "../../support/text/names.ts"
import { decodePart } from "../../support/text/percent.ts"

/** Invisible characters, except white space. */
const unseen = /(?!\s)[\p{Cc}\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}]/gu

const plain = /^[\u0020-\u007e]*$/

const spaced = (text: string): string => text.replaceAll(/\s+/g, " ").trim()

/**
 * Folds case, width, composition, white space and invisible characters. It joins forms of one letter, but not letters
 * that look alike (a Latin and a Cyrillic `a`).
 */
export const fold = (text: string): string => {
  if (plain.test(text)) return spaced(text.toLowerCase())
  const letters = text.replaceAll(unseen, "").normalize("NFKC").replaceAll("\u3002", ".")
  // Upper case joins letters that lower case leaves apart: "ß" and "ss", the two forms of a small sigma.
  const lower = letters.toUpperCase().toLowerCase().normalize("NFKC").replaceAll("i\u0307", "i").replaceAll("ς", "σ")
  return spaced(lower.replaceAll(unseen, ""))
}

/** The dots at the end of a word. They don't change a host, or a file on Windows. */
const trailingDots = /(?<=[\p{L}\p{N}])\.+(?=$|[\s/:;,>)\]"'#])/gu

const withoutDots = (text: string): string => (text.includes(".") ? text.replaceAll(trailingDots, "") : text)

const patterns = new Map<string, ReadonlyArray<string>>()

/** The forms of a pattern. Its wildcards stay. */
export const patternForms = (pattern: string): ReadonlyArray<string> => {
  const cachedForms = patterns.get(pattern)
  if (cachedForms !== undefined) return cachedForms
  const folded = fold(pattern)
  const forms = [...new Set([folded, withoutDots(folded)])]
  if (patterns.size < 10_000) patterns.set(pattern, forms)
  return forms
}

/** The separators of items in a text, and of commands in a line. */
const separators = /[,;&|\n\r\u2028\u2029\u060c\u3001]+/

/** Characters that no address has outside of quotes. */
const aroundAddresses = /[^\p{L}\p{N}.@_%+-]+/u

const escapes = /(?:%[0-9a-f]{2})+/gi

/** The forms of a text for a rule that restricts: the whole, its items, its addresses. */
export interface Forms {
  readonly whole: ReadonlyArray<string>
  readonly items: ReadonlyArray<string>
  readonly addresses: ReadonlyArray<string>
}

const addressesIn = (text: string): ReadonlyArray<string> => {
  if (!text.includes("@")) return []
  // An address may have comments, and spaces beside its signs.
  const bare = text.replaceAll(/\([^()]*\)/g, "").replaceAll(/ ?([@.]) ?/g, "$1")
  return [text, bare].flatMap((one) => one.split(aroundAddresses)).filter((word) => word.includes("@"))
}

const withDots = (texts: Iterable<string>): ReadonlyArray<string> => [
  ...new Set([...texts].flatMap((text) => [text, withoutDots(text)]))
]

/** Steps of a path that lead nowhere. */
const roundabout = /^\.\/|\/\.{0,2}(?:\/|$)|\\/

/** Removes steps that lead nowhere: `./a//b/../c/` is `a/c`. */
const straighten = (text: string): string => {
  const [first = "", ...others] = text.replaceAll("\\", "/").split("/")
  const parts = first === "." ? [] : [first]
  for (const part of others) {
    if (part === "" || part === ".") continue
    // A step up stays where the folder above is unknown.
    const last = parts.at(-1)
    if (part !== ".." || last === undefined || last === "..") parts.push(part)
    else if (last !== "") parts.pop()
  }
  return parts.join("/")
}

/** The forms of a text: folded, as a shell reads its quotes, as a URL and as a path is read. */
export const formsOf = (text: string): Forms => {
  const folded = fold(text)
  const whole = withDots([
    folded,
    ...(text.includes("%") ? [fold(text.replaceAll(escapes, decodePart))] : []),
    ...(/["'\\]/.test(folded) ? [fold(folded.replaceAll(/["'\\]/g, ""))] : []),
    ...(roundabout.test(folded) ? [straighten(folded)] : [])
  ])
  // Folding removes line breaks, and makes separators of wide commas.
  const items = new Set(separators.test(text) ? text.split(separators).map(fold) : [])
  for (const form of whole) if (separators.test(form)) for (const item of form.split(separators)) items.add(item.trim())
  items.delete("")
  return {
    whole,
    items: withDots(items),
    addresses: [...new Set(whole.flatMap(addressesIn).map(withoutDots))]
  }
}

/** A name without case, width, spaces, `-` and `_`. */
export const foldName = (name: string): string => normaliseName(fold(name)).replaceAll(" ", "")
