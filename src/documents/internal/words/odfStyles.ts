/** The styles of OpenDocument: how lists count, what is raised or lowered, what is hidden. */
import * as Effect from "effect/Effect"
import type { DocumentError } from "../../../core/Document.ts"
import { cut, joinLines } from "../../../support/text/text.ts"
import type { Fail } from "../failure.ts"
import { type Counters, levelOf, numeralOf, type Numerals, wholeOf } from "../labels.ts"
import { type Attributes, whole } from "../xml.ts"
import type { Archive } from "../zip.ts"
import type { Script } from "./scripts.ts"

/** A level of a list: its numerals, or none for a bullet. */
export interface Level {
  readonly numerals: Numerals | undefined
  readonly hasLabel: boolean
  readonly prefix: string
  readonly suffix: string
  readonly start: number
  /** How many levels the number shows. */
  readonly shown: number
}

export interface Styles {
  readonly scripts: Map<string, Script>
  readonly hidden: Set<string>
  readonly lists: Map<string, Array<Level | undefined>>
}

/** The list of headings, under a name that no style can have. */
export const outline = "\0"

/** The styles that are kept of a document. */
const maxStyles = 10_000

export const makeStyles = (): Styles => ({ scripts: new Map(), hidden: new Set(), lists: new Map() })

const own = (text: string | undefined): string => structuredClone(cut(text ?? "", 100, ""))

const numerals = new Map<string, Numerals>([
  ["1", "decimal"],
  ["a", "letters"],
  ["A", "LETTERS"],
  ["i", "roman"],
  ["I", "ROMAN"]
])

const levelFrom = (attributes: Attributes, isBullet: boolean): Level => {
  const format = attributes("num-format") ?? ""
  return {
    numerals: isBullet ? undefined : (numerals.get(format) ?? "decimal"),
    hasLabel: isBullet || format !== "",
    prefix: structuredClone(cut(attributes("num-prefix") ?? "", 20, "")),
    suffix: structuredClone(cut(attributes("num-suffix") ?? "", 20, "")),
    start: wholeOf(attributes("start-value"), 1),
    shown: Math.max(1, levelOf(attributes("display-levels") ?? "1"))
  }
}

/** The label of the item that was counted last; empty for a level without one. */
export const labelOf = (levels: ReadonlyArray<Level | undefined>, at: number, { values }: Counters): string => {
  const level = levels[at]
  if (level === undefined || !level.hasLabel) return ""
  if (level.numerals === undefined) return "-"
  const numbers: Array<string> = []
  for (let one = Math.max(0, at - level.shown + 1); one <= at; one++) {
    const other = levels[one]
    if (other?.numerals !== undefined && other.hasLabel)
      numbers.push(numeralOf(other.numerals, values[one] ?? other.start))
  }
  return `${level.prefix}${numbers.join(".")}${level.suffix}`.trim()
}

/** Reads elements of styles, in whichever part they are. */
export const makeReader = ({ hidden, lists, scripts }: Styles) => {
  let style = ""
  let levels: Array<Level | undefined> | undefined
  let count = 0
  const isFull = () => count++ >= maxStyles
  return (name: string, attributes: Attributes): void => {
    switch (name) {
      case "style":
        style = own(attributes("name"))
        return
      case "text-properties": {
        const position = attributes("text-position") ?? ""
        const script = /^(?:super|[1-9])/.test(position) ? "^" : /^(?:sub|-)/.test(position) ? "_" : undefined
        if (script !== undefined && !isFull()) scripts.set(style, script)
        return
      }
      case "table-properties":
        if (attributes("display") === "false" && !isFull()) hidden.add(style)
        return
      case "drawing-page-properties":
        if (attributes("visibility") === "hidden" && !isFull()) hidden.add(style)
        return
      case "list-style":
      case "outline-style":
        levels = isFull() ? undefined : []
        if (levels !== undefined) lists.set(name === "outline-style" ? outline : own(attributes("name")), levels)
        return
      case "list-level-style-number":
      case "outline-level-style":
      case "list-level-style-bullet":
      case "list-level-style-image": {
        const at = levelOf(attributes("level")) - 1
        const isBullet = name.endsWith("bullet") || name.endsWith("image")
        if (levels !== undefined && at >= 0) levels[at] = levelFrom(attributes, isBullet)
        return
      }
    }
  }
}

/** Headers and footers that are shown, and how much of one. */
const maxEdges = 100
const edgeLength = 2_000

const edge = /^(header|footer)(?:-left|-first)?$/

/** Reads the styles of a document, and its headers and footers, each once. */
export const stylesOf = (
  archive: Archive,
  fail: Fail
): Effect.Effect<{ readonly styles: Styles; readonly edges: ReadonlySet<string> }, DocumentError> => {
  const styles = makeStyles()
  const read = makeReader(styles)
  const edges = new Set<string>()
  let isMaster = false
  let inside: string | undefined
  let text = ""
  return whole(archive, "styles.xml", fail, {
    open: (name, attributes) => {
      read(name, attributes)
      if (name === "master-styles") isMaster = true
      else if (isMaster && inside === undefined) inside = edge.exec(name)?.[1]
      else if (name === "p" || name === "s" || name === "tab") text += " "
    },
    text: (piece) => {
      if (inside !== undefined && text.length < edgeLength) text += piece
    },
    close: (name) => {
      if (inside === undefined || !edge.test(name)) return
      const shown = cut(joinLines(text), edgeLength)
      if (shown !== "" && edges.size < maxEdges) edges.add(`${inside}: ${structuredClone(shown)}`)
      inside = undefined
      text = ""
    }
  }).pipe(Effect.as({ styles, edges }))
}

const maxFormulas = 1_000
const formulaLength = 2_000

/** Reads the formulas of a document, as their editor writes them, by the folder of each. */
export const formulasOf = (archive: Archive, fail: Fail): Effect.Effect<ReadonlyMap<string, string>, DocumentError> =>
  Effect.gen(function* () {
    const folders: Array<string> = []
    yield* whole(archive, "META-INF/manifest.xml", fail, {
      open: (name, attributes) => {
        const isFormula = attributes("media-type") === "application/vnd.oasis.opendocument.formula"
        const path = attributes("full-path") ?? ""
        if (name !== "file-entry" || !isFormula || path === "/" || folders.length >= maxFormulas) return
        folders.push(own(path).replace(/\/$/, ""))
      },
      text: () => undefined,
      close: () => undefined
    })
    const formulas = new Map<string, string>()
    for (const folder of folders) {
      let inside = false
      let text = ""
      yield* whole(archive, `${folder}/content.xml`, fail, {
        open: (name) => {
          if (name === "annotation") inside = true
        },
        text: (piece) => {
          if (inside && text.length < formulaLength) text += piece
        },
        close: (name) => {
          if (name === "annotation") inside = false
        }
      })
      formulas.set(folder, structuredClone(cut(joinLines(text), formulaLength)))
    }
    return formulas
  })
