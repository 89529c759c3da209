/** Styles of OpenDocument: list numbering, superscripts and subscripts, hidden parts. */
import * as Effect from "effect/Effect"
import type { DocumentError } from "../../../core/Document.ts"
import { cut, joinLines } from "../../../support/text/text.ts"
import type { Fail } from "../failure.ts"
import { type Counters, formatNumber, type Numerals, parseLevel, parseWhole } from "../labels.ts"
import { copyText } from "../names.ts"
import { type Attributes, handleElements, type Handler, readPart } from "../xml.ts"
import type { Archive } from "../zip.ts"
import type { Script } from "./scripts.ts"

/** A level of a list. A bullet has no numerals. */
export interface Level {
  readonly numerals: Numerals | undefined
  readonly hasLabel: boolean
  readonly prefix: string
  readonly suffix: string
  readonly start: number
  /** Number of levels that the label shows. */
  readonly shown: number
}

export interface Styles {
  readonly scripts: Map<string, Script>
  readonly hidden: Set<string>
  readonly lists: Map<string, Array<Level | undefined>>
}

/** Key of the numbering of headings. No style can have this name. */
export const outline = "\0"

/** Maximum number of styles of a document. */
const maxStyles = 10_000

export const makeStyles = (): Styles => ({ scripts: new Map(), hidden: new Set(), lists: new Map() })

const numerals = new Map<string, Numerals>([
  ["1", "decimal"],
  ["a", "letters"],
  ["A", "LETTERS"],
  ["i", "roman"],
  ["I", "ROMAN"]
])

const readLevel = (attributes: Attributes, isBullet: boolean): Level => {
  const format = attributes("num-format") ?? ""
  return {
    numerals: isBullet ? undefined : (numerals.get(format) ?? "decimal"),
    hasLabel: isBullet || format !== "",
    prefix: copyText(attributes("num-prefix"), 20),
    suffix: copyText(attributes("num-suffix"), 20),
    start: parseWhole(attributes("start-value"), 1),
    shown: Math.max(1, parseLevel(attributes("display-levels") ?? "1"))
  }
}

/** Renders the label of the item that was counted last. Empty for a level without labels. */
export const renderLabel = (levels: ReadonlyArray<Level | undefined>, at: number, { values }: Counters): string => {
  const level = levels[at]
  if (level === undefined || !level.hasLabel) return ""
  if (level.numerals === undefined) return "-"
  const numbers: Array<string> = []
  for (let one = Math.max(0, at - level.shown + 1); one <= at; one++) {
    const other = levels[one]
    if (other?.numerals !== undefined && other.hasLabel)
      numbers.push(formatNumber(other.numerals, values[one] ?? other.start))
  }
  return `${level.prefix}${numbers.join(".")}${level.suffix}`.trim()
}

/** Makes a handler that collects styles, in any part of a document. */
const collectStyles = ({ hidden, lists, scripts }: Styles): Handler => {
  let style = ""
  let levels: Array<Level | undefined> | undefined
  let count = 0
  const isFull = () => count++ >= maxStyles
  const hide = (attribute: string, value: string) => (attributes: Attributes) => {
    if (attributes(attribute) === value && !isFull()) hidden.add(style)
  }
  const beginList = (nameOf: (attributes: Attributes) => string) => (attributes: Attributes) => {
    levels = isFull() ? undefined : []
    if (levels !== undefined) lists.set(nameOf(attributes), levels)
  }
  const addLevel = (isBullet: boolean) => (attributes: Attributes) => {
    const at = parseLevel(attributes("level")) - 1
    if (levels !== undefined && at >= 0) levels[at] = readLevel(attributes, isBullet)
  }
  return handleElements({
    style: (attributes) => (style = copyText(attributes("name"))),
    "text-properties": (attributes) => {
      const position = attributes("text-position") ?? ""
      const script = /^(?:super|[1-9])/.test(position) ? "^" : /^(?:sub|-)/.test(position) ? "_" : undefined
      if (script !== undefined && !isFull()) scripts.set(style, script)
    },
    "table-properties": hide("display", "false"),
    "drawing-page-properties": hide("visibility", "hidden"),
    "list-style": beginList((attributes) => copyText(attributes("name"))),
    "outline-style": beginList(() => outline),
    "list-level-style-number": addLevel(false),
    "outline-level-style": addLevel(false),
    "list-level-style-bullet": addLevel(true),
    "list-level-style-image": addLevel(true)
  })
}

/** Collects the automatic styles of a content part, and passes other elements to its handler. */
export const handleStyles = (styles: Styles, handler: Handler): Handler => {
  const collector = collectStyles(styles)
  let inStyles = false
  return {
    open: (name, attributes) => {
      if (name === "automatic-styles") inStyles = true
      if (inStyles) collector.open(name, attributes)
      else handler.open(name, attributes)
    },
    text: handler.text,
    close: (name) => {
      if (!inStyles) handler.close(name)
      else if (name === "automatic-styles") inStyles = false
    }
  }
}

/** Maximum number of headers and footers, and characters of one. */
const maxEdges = 100
const edgeLength = 2_000

const edge = /^(header|footer)(?:-left|-first)?$/

/** Reads the styles of a document, and its headers and footers. Equal ones are read once. */
export const readStyles = (
  archive: Archive,
  fail: Fail
): Effect.Effect<{ readonly styles: Styles; readonly edges: ReadonlySet<string> }, DocumentError> => {
  const styles = makeStyles()
  const collector = collectStyles(styles)
  const edges = new Set<string>()
  let isMaster = false
  let inside: string | undefined
  let text = ""
  return readPart(archive, "styles.xml", fail, {
    open: (name, attributes) => {
      collector.open(name, attributes)
      if (name === "master-styles") isMaster = true
      else if (isMaster && inside === undefined) inside = edge.exec(name)?.[1]
      else if (name === "p" || name === "s" || name === "tab") text += " "
    },
    text: (piece) => {
      if (inside !== undefined && text.length < edgeLength) text += piece
    },
    close: (name) => {
      if (inside === undefined || !edge.test(name)) return
      const line = cut(joinLines(text), edgeLength)
      if (line !== "" && edges.size < maxEdges) edges.add(`${inside}: ${structuredClone(line)}`)
      inside = undefined
      text = ""
    }
  }).pipe(Effect.as({ styles, edges }))
}

const maxFormulas = 1_000
const formulaLength = 2_000

/** Reads formulas as their editor writes them, by folder. */
export const readFormulas = (archive: Archive, fail: Fail): Effect.Effect<ReadonlyMap<string, string>, DocumentError> =>
  Effect.gen(function* () {
    const folders: Array<string> = []
    const entry = (attributes: Attributes) => {
      const isFormula = attributes("media-type") === "application/vnd.oasis.opendocument.formula"
      const path = attributes("full-path") ?? ""
      if (!isFormula || path === "/" || folders.length >= maxFormulas) return
      folders.push(copyText(path).replace(/\/$/, ""))
    }
    yield* readPart(archive, "META-INF/manifest.xml", fail, handleElements({ "file-entry": entry }))
    const formulas = new Map<string, string>()
    for (const folder of folders) {
      let inside = false
      let text = ""
      const annotation = { open: () => (inside = true), close: () => (inside = false) }
      const handler = handleElements({ annotation }, (piece) => {
        if (inside && text.length < formulaLength) text += piece
      })
      yield* readPart(archive, `${folder}/content.xml`, fail, handler)
      formulas.set(folder, structuredClone(cut(joinLines(text), formulaLength)))
    }
    return formulas
  })
