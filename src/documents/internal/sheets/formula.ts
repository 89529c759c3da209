/**
 * Formulas of Office as text on one line: `x^(2)`, `a_(1)`, `(a)/(b)`, `√(x)`, `∑_(i=1)^(n) x`. Exponents have brackets, so
 * that digits never touch.
 */
import { paragraphLength } from "../limits.ts"
import type { ScriptWriter } from "../words/scripts.ts"
import type { Writer } from "../writer.ts"
import type { Attributes, Handler } from "../xml.ts"

interface Frame {
  readonly name: string
  text: string
  /** The arguments by name. Rows, matrices and brackets list theirs in order. */
  readonly parts: { [name: string]: string }
  readonly list: Array<string>
  /** The properties, such as the operator or the brackets. */
  readonly properties: { [name: string]: string }
}

const makeFrame = (name: string): Frame => ({ name, text: "", parts: {}, list: [], properties: {} })

/** Elements that are arguments of their parent. */
const parts = new Set(["e", "num", "den", "sup", "sub", "deg", "lim", "fName"])

const properties = new Set(["chr", "begChr", "endChr", "sepChr", "type", "pos"])

const atom = /^(?:[\p{L}\p{N}.,'’]*|\([^()]*\))$/u

/** Puts the base of an exponent in brackets, unless it is a name, a number, or has brackets. */
const renderBase = (text = ""): string => (text.length <= 64 && atom.test(text) ? text : `(${text})`)

const renderBelow = (text = ""): string => (text === "" ? "" : `_(${text})`)

const renderAbove = (text = ""): string => (text === "" ? "" : `^(${text})`)

const renderScripts = ({ parts: { sub, sup } }: Frame): string => renderBelow(sub) + renderAbove(sup)

const renderPower = (frame: Frame): string => renderBase(frame.parts["e"]) + renderScripts(frame)

/** Renders each element of a formula from its arguments. Other elements render their text. */
const renderers: { readonly [element: string]: (frame: Frame) => string } = {
  f: ({ parts: { den = "", num = "" }, properties: { type } }) =>
    type === "noBar" ? `binom(${num}, ${den})` : `(${num})/(${den})`,
  sSup: renderPower,
  sSub: renderPower,
  sSubSup: renderPower,
  sPre: (frame) => renderScripts(frame) + (frame.parts["e"] ?? ""),
  rad: ({ parts: { deg = "", e = "" } }) => `√${deg.trim() === "" ? "" : `[${deg}]`}(${e})`,
  nary: (frame) => `${frame.properties["chr"] ?? "∫"}${renderScripts(frame)} ${renderBase(frame.parts["e"])}`,
  d: ({ list, properties: { begChr = "(", endChr = ")", sepChr = "|" } }) => `${begChr}${list.join(sepChr)}${endChr}`,
  mr: ({ list }) => list.join(", "),
  m: ({ list }) => `[${list.join("; ")}]`,
  eqArr: ({ list }) => list.join("; "),
  limLow: ({ parts: { e = "", lim } }) => e + renderBelow(lim),
  limUpp: ({ parts: { e = "", lim } }) => e + renderAbove(lim),
  func: ({ parts: { e = "", fName = "" } }) => `${fName}${e.startsWith("(") ? e : `(${e})`}`,
  acc: ({ parts: { e }, properties: { chr = "\u0302" } }) => renderBase(e) + chr,
  bar: ({ parts: { e = "" }, properties: { pos } }) => `${pos === "top" ? "overline" : "underline"}(${e})`
}

const table = new Map(Object.entries(renderers))

const render = (frame: Frame): string => table.get(frame.name)?.(frame) ?? frame.text + frame.list.join("")

/** Reads the elements of a formula. `close` returns the text at the end of the formula. */
const makeFormula = () => {
  const frames: Array<Frame> = []
  /** Number of characters in memory. */
  let size = 0
  let inText = 0
  return {
    open: (name: string, attributes: Attributes) => {
      if (name === "t") inText++
      // The properties of an element are in a child element.
      const owner = frames.at(-2)
      const value = properties.has(name) ? attributes("val") : undefined
      if (owner !== undefined && value !== undefined) owner.properties[name] = value.slice(0, 8)
      frames.push(makeFrame(name))
    },
    text: (text: string) => {
      const frame = frames.at(-1)
      if (frame === undefined || inText === 0 || size > paragraphLength) return
      size += text.length
      frame.text += text.slice(0, paragraphLength)
    },
    close: (): string | undefined => {
      const frame = frames.pop()
      if (frame === undefined) return ""
      if (frame.name === "t") inText--
      size += 16
      const text = frame.name.endsWith("Pr") || size > 2 * paragraphLength ? "" : render(frame)
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

/** Writes formulas, and passes other elements to a handler. */
export const handleFormulas = (writer: Writer, scripts: ScriptWriter, handler: Handler): Handler => {
  let formula: ReturnType<typeof makeFormula> | undefined
  return {
    open: (name, attributes) => {
      if (formula === undefined && name === "oMath") {
        scripts.close()
        formula = makeFormula()
      }
      return (formula ?? handler).open(name, attributes)
    },
    text: (text) => (formula ?? handler).text(text),
    close: (name) => {
      if (formula === undefined) return handler.close(name)
      const text = formula.close()
      if (text === undefined) return
      formula = undefined
      writer.text(text)
    }
  }
}
