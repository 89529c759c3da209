/**
 * Number formats of spreadsheets. A format adds percent signs, zeros, separators of thousands and currencies. It never
 * rounds or hides a number.
 */
import { formatDate, isDateFormat } from "./numbers.ts"

/** Formats a number as its cell does. */
export type Formatter = (value: string, from1904: boolean) => string

interface Pattern {
  readonly prefix: string
  readonly suffix: string
  /** Placeholders of digits before the point, and texts between them. */
  readonly places: ReadonlyArray<string>
  readonly decimals: number
  readonly hasThousands: boolean
  readonly isPercent: boolean
}

const builtIn: { readonly [id: number]: string } = {
  1: "0",
  2: "0.00",
  3: "#,##0",
  4: "#,##0.00",
  9: "0%",
  10: "0.00%",
  37: "#,##0;(#,##0)",
  38: "#,##0;(#,##0)",
  39: "#,##0.00;(#,##0.00)",
  40: "#,##0.00;(#,##0.00)",
  46: "[h]:mm:ss"
}

/** A piece of a format: a quoted text, an escaped character, a space, a bracket, or a character. */
const pieces = /"([^"]*)"|\\(.)|[_*].|\[([^\]]*)\]|([\s\S])/g

const maxCode = 200

const sectionsOf = (code: string): ReadonlyArray<string> => {
  const sections = [""]
  for (const { 0: piece } of code.slice(0, maxCode).matchAll(pieces)) {
    if (piece === ";") sections.push("")
    else sections[sections.length - 1] += piece
  }
  return sections
}

/** The sign of a currency in brackets, as in `[$€-407]`. */
const currency = /^\$([^-]*)/

const isPlace = (character: string): boolean => character === "0" || character === "#" || character === "?"

const parsePattern = (section: string): Pattern | undefined => {
  let prefix = ""
  let suffix = ""
  const places: Array<string> = []
  let decimals = 0
  let hasPoint = false
  let hasThousands = false
  const addText = (text: string) => {
    if (places.length === 0) prefix += text
    else suffix += text
  }
  const addPlace = (character: string) => {
    if (!hasPoint) {
      // A text between two places, as in `000-0000`.
      if (suffix !== "") places.push(suffix)
      suffix = ""
      places.push(character)
    } else if (character === "0") decimals++
  }
  const addCharacter = (character: string) => {
    if (isPlace(character)) addPlace(character)
    else if (character === ".") hasPoint = true
    else if (character === ",") hasThousands ||= !hasPoint && places.length > 0 && suffix === ""
    else addText(character)
  }
  const plain = section.replaceAll(/"[^"]*"|\\.|[_*].|\[[^\]]*\]/g, "")
  if (/[Ee/@]/.test(plain)) return undefined
  for (const [, quoted, escaped, bracket, character = ""] of section.matchAll(pieces)) {
    if (bracket !== undefined) addText(currency.exec(bracket)?.[1] ?? "")
    else if (quoted !== undefined || escaped !== undefined) addText(quoted ?? escaped ?? "")
    else if (character !== "") addCharacter(character)
  }
  // Commas after the last place divide by a thousand: here the number stays whole.
  const divides = /[0#?],+(?:[^0#?,]|$)/.test(section.replaceAll(/"[^"]*"|\\./g, ""))
  if (places.length === 0) return undefined
  return { prefix, suffix, places, decimals, hasThousands: hasThousands || divides, isPercent: plain.includes("%") }
}

const groupThousands = (digits: string): string => digits.replaceAll(/\B(?=(?:\d{3})+$)/g, ",")

/** Puts the digits before the point in their places, from the right. */
const fillPlaces = (digits: string, places: ReadonlyArray<string>): string => {
  let remaining = digits
  let text = ""
  for (const [index, place] of [...places.entries()].toReversed()) {
    if (isPlace(place) && remaining !== "") {
      text = remaining.slice(-1) + text
      remaining = remaining.slice(0, -1)
    } else if (isPlace(place)) text = (place === "0" ? "0" : "") + text
    else if (remaining !== "" || places.slice(0, index).includes("0")) text = place + text
  }
  return remaining + text
}

/** Writes a number with 15 digits, as spreadsheets do, without errors of binary arithmetic. */
const writeDigits = (value: number): string => {
  const rounded = Number(value.toPrecision(15))
  return Math.abs(rounded) >= 1e21
    ? rounded.toString()
    : /e/.test(String(rounded))
      ? rounded.toFixed(20).replace(/0+$/, "")
      : String(rounded)
}

const applyPattern = (value: number, pattern: Pattern): string => {
  const text = writeDigits(pattern.isPercent ? value * 100 : value)
  if (!/^\d+(?:\.\d+)?$/.test(text)) return text
  const [before = "", behind = ""] = text.split(".")
  const digits = pattern.hasThousands
    ? groupThousands(before.padStart(pattern.places.filter((place) => place === "0").length, "0"))
    : fillPlaces(before === "0" ? "" : before, pattern.places) || "0"
  const decimals = behind.padEnd(pattern.decimals, "0")
  return `${pattern.prefix}${digits}${decimals === "" ? "" : `.${decimals}`}${pattern.suffix}`.trim()
}

/** Rounds a stored number with more than 15 digits. */
const formatGeneral = (value: string): string =>
  value.length > 16 && /[.eE]/.test(value) && Number.isFinite(Number(value))
    ? String(Number(Number(value).toPrecision(15)))
    : value

const elapsed = /^(?:\[[^\]]*\])*\[h+\]/i

/** Formats a duration as hours, minutes and seconds. Hours may exceed 24. */
const formatElapsed = (days: number): string => {
  const seconds = Math.round(Math.abs(days) * 86_400)
  const two = (value: number) => String(value).padStart(2, "0")
  const text = `${Math.floor(seconds / 3_600)}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`
  return days < 0 ? `-${text}` : text
}

/** Makes the formatter of a number format. `code` overrides the built-in format of `id`. */
export const makeFormatter = (id: number, code: string | undefined): Formatter => {
  const format = code ?? builtIn[id]
  if (format !== undefined && elapsed.test(format)) {
    return (value) => (Number.isFinite(Number(value)) ? formatElapsed(Number(value)) : value)
  }
  if (isDateFormat(id, code)) return (value, from1904) => formatDate(Number(value), from1904) ?? value
  if (format === undefined || /^general$/i.test(format)) return formatGeneral
  const [positive, negative, zero] = sectionsOf(format).map(parsePattern)
  if (positive === undefined) return formatGeneral
  return (value) => {
    const number = Number(value)
    if (value.trim() === "" || !Number.isFinite(number)) return value
    if (number > 0) return applyPattern(number, positive)
    // A format may show zero as a dash or as spaces: here it stays a number.
    if (number === 0)
      return applyPattern(0, zero?.places.some((place) => /[0#]/.test(place)) === true ? zero : positive)
    const text = applyPattern(-number, negative ?? positive)
    // Text has no colours, so a negative number needs a sign or brackets.
    return negative !== undefined && /[-(−]/.test(text) ? text : `-${text}`
  }
}
