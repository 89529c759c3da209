/**
 * Number formats of spreadsheets. A number keeps all its digits; its format adds the percent sign, the zeros before and
 * behind it, the separators of thousands and the currency. Nothing is rounded or hidden.
 */
import { dateOf, isDate } from "./numbers.ts"

/** Shows a number as its cell does. */
export type Show = (value: string, from1904: boolean) => string

interface Pattern {
  readonly prefix: string
  readonly suffix: string
  /** The places before the point, and the texts between them. */
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

const patternOf = (section: string): Pattern | undefined => {
  let prefix = ""
  let suffix = ""
  const places: Array<string> = []
  let decimals = 0
  let hasPoint = false
  let hasThousands = false
  let isPercent = false
  const literal = (text: string) => {
    if (places.length === 0) prefix += text
    else suffix += text
  }
  for (const [, quoted, escaped, bracket, character] of section.matchAll(pieces)) {
    if (quoted !== undefined || escaped !== undefined) literal(quoted ?? escaped ?? "")
    else if (bracket !== undefined) literal(currency.exec(bracket)?.[1] ?? "")
    else if (character === undefined) continue
    else if (character === "0" || character === "#" || character === "?") {
      if (hasPoint) {
        if (character === "0") decimals++
      } else {
        // A text between two places, as in `000-0000`.
        if (suffix !== "") places.push(suffix)
        suffix = ""
        places.push(character)
      }
    } else if (character === ".") hasPoint = true
    else if (character === ",") hasThousands ||= !hasPoint && places.length > 0 && suffix === ""
    else if (character === "%") {
      isPercent = true
      literal("%")
    } else if (/[Ee/@]/.test(character)) return undefined
    else literal(character)
  }
  // Commas behind the last place divide by a thousand: here the number stays whole.
  const divides = /[0#?],+(?:[^0#?,]|$)/.test(section.replaceAll(/"[^"]*"|\\./g, ""))
  return places.length === 0
    ? undefined
    : { prefix, suffix, places, decimals, hasThousands: hasThousands || divides, isPercent }
}

const grouped = (digits: string): string => digits.replaceAll(/\B(?=(?:\d{3})+$)/g, ",")

/** The digits before the point in their places, from the right. */
const placed = (digits: string, places: ReadonlyArray<string>): string => {
  let left = digits
  let text = ""
  for (const [index, place] of [...places.entries()].toReversed()) {
    const isPlace = place === "0" || place === "#" || place === "?"
    if (isPlace && left !== "") {
      text = left.slice(-1) + text
      left = left.slice(0, -1)
    } else if (isPlace) text = (place === "0" ? "0" : "") + text
    else if (left !== "" || places.slice(0, index).includes("0")) text = place + text
  }
  return left + text
}

/** The digits of a number, as spreadsheets count them: 15 of them, and none that arithmetic on bits has added. */
const plain = (value: number): string => {
  const rounded = Number(value.toPrecision(15))
  return Math.abs(rounded) >= 1e21
    ? rounded.toString()
    : /e/.test(String(rounded))
      ? rounded.toFixed(20).replace(/0+$/, "")
      : String(rounded)
}

const byPattern = (value: number, pattern: Pattern): string => {
  const text = plain(pattern.isPercent ? value * 100 : value)
  if (!/^\d+(?:\.\d+)?$/.test(text)) return text
  const [before = "", behind = ""] = text.split(".")
  const digits = pattern.hasThousands
    ? grouped(before.padStart(pattern.places.filter((place) => place === "0").length, "0"))
    : placed(before === "0" ? "" : before, pattern.places) || "0"
  const decimals = behind.padEnd(pattern.decimals, "0")
  return `${pattern.prefix}${digits}${decimals === "" ? "" : `.${decimals}`}${pattern.suffix}`.trim()
}

/** A number as text that was written with more digits than it has. */
const general = (value: string): string =>
  value.length > 16 && /[.eE]/.test(value) && Number.isFinite(Number(value))
    ? String(Number(Number(value).toPrecision(15)))
    : value

const elapsed = /^(?:\[[^\]]*\])*\[h+\]/i

/** Hours that go on counting behind 24, with minutes and seconds. */
const elapsedOf = (days: number): string => {
  const seconds = Math.round(Math.abs(days) * 86_400)
  const two = (value: number) => String(value).padStart(2, "0")
  const text = `${Math.floor(seconds / 3_600)}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`
  return days < 0 ? `-${text}` : text
}

/** Makes what shows the numbers of a format. */
export const showBy = (id: number, code: string | undefined): Show => {
  const shown = code ?? builtIn[id]
  if (shown !== undefined && elapsed.test(shown)) {
    return (value) => (Number.isFinite(Number(value)) ? elapsedOf(Number(value)) : value)
  }
  if (isDate(id, code)) return (value, from1904) => dateOf(Number(value), from1904) ?? value
  if (shown === undefined || /^general$/i.test(shown)) return general
  const [positive, negative, zero] = sectionsOf(shown).map(patternOf)
  if (positive === undefined) return general
  return (value) => {
    const number = Number(value)
    if (value.trim() === "" || !Number.isFinite(number)) return value
    if (number > 0) return byPattern(number, positive)
    // A zero that is shown as a dash, or as spaces, stays a number.
    if (number === 0) return byPattern(0, zero?.places.some((place) => /[0#]/.test(place)) === true ? zero : positive)
    const text = byPattern(-number, negative ?? positive)
    // A colour alone does not tell a negative number here.
    return negative !== undefined && /[-(−]/.test(text) ? text : `-${text}`
  }
}
