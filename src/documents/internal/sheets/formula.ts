/**
 * Formulas of Office as text on one line: `x^(2)`, `a_(1)`, `(a)/(b)`, `√(x)`, `∑_(i=1)^(n) x`. Numbers stay what they
 * are: a power is never a digit beside another.
 */
import { paragraphLength } from "../limits.ts"
import type { Attributes } from "../xml.ts"

/** Reads the elements of a formula. `close` returns the text with the last of them. */
export interface Formula {
  readonly open: (name: string, attributes: Attributes) => void
  readonly text: (text: string) => void
  readonly close: () => string | undefined
}

interface Frame {
  readonly name: string
  text: string
  /** The arguments by their names, and those of a row, a matrix or brackets in their order. */
  readonly parts: { [name: string]: string }
  readonly list: Array<string>
  /** The properties: which sign, which brackets. */
  readonly properties: { [name: string]: string }
}

const makeFrame = (name: string): Frame => ({ name, text: "", parts: {}, list: [], properties: {} })

/** Elements that are arguments of what is around them. */
const parts = new Set(["e", "num", "den", "sup", "sub", "deg", "lim", "fName"])

const properties = new Set(["chr", "begChr", "endChr", "sepChr", "type", "pos"])

const atom = /^(?:[\p{L}\p{N}.,'’]*|\([^()]*\))$/u

/** What an exponent stands on: in brackets, unless it is a name, a number, or has brackets. */
const baseOf = (text: string): string => (text.length <= 64 && atom.test(text) ? text : `(${text})`)

const below = (text: string | undefined): string => (text === undefined || text === "" ? "" : `_(${text})`)

const above = (text: string | undefined): string => (text === undefined || text === "" ? "" : `^(${text})`)

const render = ({ list, name, parts: part, properties: property, text }: Frame): string => {
  const { deg = "", den = "", e = "", fName = "", lim, num = "", sub, sup } = part
  switch (name) {
    case "f":
      return property["type"] === "noBar" ? `binom(${num}, ${den})` : `(${num})/(${den})`
    case "sSup":
    case "sSub":
    case "sSubSup":
      return `${baseOf(e)}${below(sub)}${above(sup)}`
    case "sPre":
      return `${below(sub)}${above(sup)}${e}`
    case "rad":
      return `√${deg.trim() === "" ? "" : `[${deg}]`}(${e})`
    case "nary":
      return `${property["chr"] ?? "∫"}${below(sub)}${above(sup)} ${baseOf(e)}`
    case "d":
      return `${property["begChr"] ?? "("}${list.join(property["sepChr"] ?? "|")}${property["endChr"] ?? ")"}`
    case "mr":
      return list.join(", ")
    case "m":
      return `[${list.join("; ")}]`
    case "eqArr":
      return list.join("; ")
    case "limLow":
      return `${e}${below(lim)}`
    case "limUpp":
      return `${e}${above(lim)}`
    case "func":
      return `${fName}${e.startsWith("(") ? e : `(${e})`}`
    case "acc":
      return `${baseOf(e)}${property["chr"] ?? "\u0302"}`
    case "bar":
      return `${property["pos"] === "top" ? "overline" : "underline"}(${e})`
    default:
      return text + list.join("")
  }
}

export const makeFormula = (): Formula => {
  const frames: Array<Frame> = []
  /** Characters that are kept, so that a formula of any size takes no more than a paragraph. */
  let kept = 0
  let inText = 0
  return {
    open: (name, attributes) => {
      if (name === "t") inText++
      // The properties of an element are in an element of their own in it.
      const owner = frames.at(-2)
      const value = properties.has(name) ? attributes("val") : undefined
      if (owner !== undefined && value !== undefined) owner.properties[name] = value.slice(0, 8)
      frames.push(makeFrame(name))
    },
    text: (text) => {
      const frame = frames.at(-1)
      if (frame === undefined || inText === 0 || kept > paragraphLength) return
      kept += text.length
      frame.text += text.slice(0, paragraphLength)
    },
    close: () => {
      const frame = frames.pop()
      if (frame === undefined) return ""
      if (frame.name === "t") inText--
      kept += 16
      const text = frame.name.endsWith("Pr") || kept > 2 * paragraphLength ? "" : render(frame)
      const parent = frames.at(-1)
      if (parent === undefined) return text
      if (text === "" && !parts.has(frame.name)) return undefined
      if (frame.name === "e" || frame.name === "mr") parent.list.push(text)
      if (parts.has(frame.name)) parent.parts[frame.name] = text
      else if (frame.name !== "mr") parent.text += text
      return undefined
    }
  }
}
