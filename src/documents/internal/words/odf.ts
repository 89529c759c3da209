/**
 * OpenDocument texts and presentations: paragraphs, headings, lists with their numbers, tables, notes, comments,
 * formulas; slides with their notes.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { DocumentError, Input, Piece } from "../../../core/Document.ts"
import { failing } from "../failure.ts"
import { count, type Counters, indentOf, levelOf, makeCounters, wholeOf } from "../labels.ts"
import { makeWriter, type Writer } from "../writer.ts"
import { type Attributes, type Handler, pieces, without } from "../xml.ts"
import * as Zip from "../zip.ts"
import { formulasOf, labelOf, makeReader, outline, type Styles, stylesOf } from "./odfStyles.ts"
import { makeScripts, type Script } from "./scripts.ts"

/** Parts that are not shown: texts that were deleted, declarations, and what stands on every slide. */
const skipped = new Set(["tracked-changes", "font-face-decls", "sequence-decls", "forms", "page-number"])

/** What a comment says of itself beside its author. */
const muted = new Set(["date", "date-string", "creator-initials", "sender-initials"])

/** The lists that may go on later in the document. */
const maxLists = 10_000

interface Item {
  /** The beginning of the next paragraph of the item; `undefined` until its number is counted. */
  prefix: string | undefined
  readonly hasLabel: boolean
  readonly start: number | undefined
}

interface List {
  readonly style: string
  readonly counters: Counters
  readonly level: number
  item: Item | undefined
}

/** Follows the lists of a document, and writes the beginnings of their paragraphs. */
const makeLists = ({ lists: levels }: Styles) => {
  const open: Array<List> = []
  const byName = new Map<string, Counters>()
  const headings = makeCounters()
  const remember = (name: string | undefined, counters: Counters) => {
    if (name !== undefined && (byName.has(name) || byName.size < maxLists)) byName.set(structuredClone(name), counters)
  }
  return {
    list: (attributes: Attributes) => {
      const parent = open.at(-1)
      const style = attributes("style-name") ?? parent?.style ?? ""
      const level = parent === undefined ? 0 : Math.min(9, parent.level + 1)
      const goesOn = attributes("continue-numbering") === "true"
      const before =
        byName.get(`id ${attributes("continue-list")}`) ?? (goesOn ? byName.get(`style ${style}`) : undefined)
      const counters = parent?.counters ?? before ?? makeCounters()
      if (parent !== undefined && !goesOn) counters.values[level] = undefined
      open.push({ style, counters, level, item: undefined })
      if (parent !== undefined) return
      remember(`style ${style}`, counters)
      const id = attributes("id")
      remember(id === undefined ? undefined : `id ${id}`, counters)
    },
    endList: () => {
      open.pop()
    },
    item: (attributes: Attributes, hasLabel: boolean) => {
      const list = open.at(-1)
      const start = attributes("start-value")
      if (list !== undefined) {
        list.item = { prefix: undefined, hasLabel, start: start === undefined ? undefined : wholeOf(start, 1) }
      }
    },
    /** The beginning of a paragraph. Only the first one of an item has its number. */
    prefix: (): string => {
      const list = open.at(-1)
      if (list === undefined) return ""
      const { counters, item, level, style } = list
      if (item === undefined) return indentOf(level)
      if (item.prefix !== undefined) return item.prefix
      item.prefix = indentOf(level + 1)
      if (!item.hasLabel) return item.prefix
      const known = levels.get(style)
      if (item.start !== undefined) counters.values[level] = undefined
      count(counters, level, item.start ?? known?.[level]?.start ?? 1)
      const label = known === undefined ? "-" : labelOf(known, level, counters)
      return label === "" ? indentOf(level) : `${indentOf(level)}${label} `
    },
    heading: (at: number, isCounted: boolean): string => {
      const list = open.at(-1)
      if (list !== undefined) return list.item === undefined || list.item.prefix !== undefined ? "" : "item"
      const known = levels.get(outline)
      if (known === undefined || !isCounted) return ""
      count(headings, at, known[at]?.start ?? 1)
      return labelOf(known, at, headings)
    }
  }
}

const handlerOf = (
  writer: Writer,
  styles: Styles,
  formulas: ReadonlyMap<string, string>,
  hasSlides: boolean
): Handler => {
  const readStyle = makeReader(styles)
  const lists = makeLists(styles)
  const scripts = makeScripts(writer)
  const spans: Array<Script> = []
  let inStyles = false
  let depth = 0
  let prefix = ""
  let slides = 0
  let isTitle = false
  /** The depth in elements of a comment that are not its text. */
  let mutes = 0
  let isComment = false
  /** True until the first text of the notes of a slide. */
  let beginsNotes = false
  const add = (text: string) => scripts.text(text, spans.at(-1) ?? "")
  const headingPrefix = (attributes: Attributes): string => {
    const at = Math.max(1, levelOf(attributes("outline-level") ?? "1")) - 1
    const number = lists.heading(at, attributes("is-list-header") !== "true")
    const label = number === "item" ? lists.prefix().trim() : number
    return `${"#".repeat(Math.min(6, at + 1))} ${label === "" || label === "-" ? "" : `${label} `}`
  }
  return without(skipped, {
    open: (name, attributes) => {
      if (name === "automatic-styles") inStyles = true
      if (inStyles) return readStyle(name, attributes)
      if (mutes > 0 || (isComment && muted.has(name))) {
        mutes++
        return
      }
      switch (name) {
        case "page": {
          if (!hasSlides) return
          slides++
          const label = `slide ${slides}${styles.hidden.has(attributes("style-name") ?? "") ? " (hidden)" : ""}`
          return slides === 1 ? writer.name(label) : writer.part(label)
        }
        case "notes":
          beginsNotes = true
          return
        case "frame":
          isTitle = attributes("class") === "title"
          return
        case "h":
        case "p":
          depth++
          if (depth > 1) return
          prefix = name === "h" ? headingPrefix(attributes) : isTitle ? "# " : lists.prefix()
          return
        case "list":
          return lists.list(attributes)
        case "list-item":
        case "list-header":
          return lists.item(attributes, name === "list-item")
        case "span":
          spans.push(styles.scripts.get(attributes("style-name") ?? "") ?? spans.at(-1) ?? "")
          return
        case "s":
          return add(" ".repeat(Math.min(100, Math.max(1, wholeOf(attributes("c"), 1)))))
        case "tab":
          return add("\t")
        case "line-break":
          return writer.text("\n")
        case "object": {
          const path = (attributes("href") ?? "").replace(/^\.\//, "")
          return writer.text(formulas.get(path) ?? "")
        }
        case "note":
          scripts.close()
          return writer.text(" [note ")
        case "annotation":
          scripts.close()
          isComment = true
          return writer.text(" [comment")
        case "creator":
          return writer.text(isComment ? " by " : "")
        case "note-body":
          return writer.text(": ")
        case "table-row":
          return writer.row.open()
        case "table-cell":
          return writer.cell.open()
      }
    },
    text: (text) => {
      if (depth === 0 || mutes > 0) return
      if (beginsNotes && text.trim() !== "") {
        beginsNotes = false
        writer.text("Notes:")
        writer.paragraph()
      }
      add(text.replaceAll(/\s+/g, " "))
    },
    close: (name) => {
      if (inStyles) {
        if (name === "automatic-styles") inStyles = false
        return
      }
      if (mutes > 0) {
        mutes--
        return
      }
      switch (name) {
        case "h":
        case "p":
          depth--
          if (depth > 0) return writer.text(" ")
          scripts.close()
          return writer.paragraph(prefix)
        case "frame":
          isTitle = false
          return
        case "notes":
          beginsNotes = false
          return
        case "list":
          return lists.endList()
        case "span":
          spans.pop()
          return
        case "creator":
          return writer.text(isComment ? ": " : "")
        case "annotation":
          isComment = false
          return writer.text("]")
        case "note":
          return writer.text("]")
        case "table-cell":
          return writer.cell.close()
        case "table-row":
          return writer.row.close()
      }
    }
  })
}

const readBy =
  (name: string, hasSlides: boolean) =>
  ({ bytes }: Input): Stream.Stream<Piece, DocumentError> =>
    Stream.unwrap(
      Effect.gen(function* () {
        const fail = failing(name)
        const archive = yield* Zip.open(bytes, fail)
        if (!archive.has("content.xml")) return yield* fail("Damaged", "it has no content.xml")
        const { edges, styles } = yield* stylesOf(archive, fail)
        const formulas = yield* formulasOf(archive, fail)
        const writer = makeWriter()
        const last = Effect.sync(() => {
          if (edges.size > 0 && !hasSlides) writer.part("headers and footers")
          for (const line of hasSlides ? [] : edges) {
            writer.text(line)
            writer.paragraph()
          }
          return writer.end()
        })
        return pieces(archive, "content.xml", fail, writer, handlerOf(writer, styles, formulas, hasSlides)).pipe(
          Stream.concat(Stream.unwrap(Effect.map(last, Stream.fromArray)))
        )
      })
    )

export const readText = readBy("OpenDocument text", false)

export const readSlides = readBy("OpenDocument presentation", true)
