/**
 * Reads OpenDocument texts and presentations: paragraphs, headings, numbered lists, tables, notes, comments, formulas,
 * and slides with their notes.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { DocumentError, Input, Piece } from "../../../core/Document.ts"
import { makeFail } from "../failure.ts"
import { type Counters, countItem, indentOf, makeCounters, parseLevel, parseWhole } from "../labels.ts"
import { makeWriter, type Writer } from "../writer.ts"
import { type Attributes, handleElements, type Handler, skipElements, streamPart } from "../xml.ts"
import { openArchive } from "../zip.ts"
import { handleStyles, outline, readFormulas, readStyles, renderLabel, type Styles } from "./odfStyles.ts"
import { makeScripts, type Script } from "./scripts.ts"

/** Elements that are not shown: deletions, declarations, and content that every slide repeats. */
const skipped = new Set(["tracked-changes", "font-face-decls", "sequence-decls", "forms", "page-number"])

/** Elements of a comment that are not shown. */
const commentDetails = new Set(["date", "date-string", "creator-initials", "sender-initials"])

/** Maximum number of lists that may continue later in the document. */
const maxLists = 10_000

interface Item {
  /** The start of the next paragraph. `undefined` until the item is counted. */
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

/** Tracks the lists of a document, and makes the prefixes of their paragraphs. */
const makeLists = ({ lists: levels }: Styles) => {
  const open: Array<List> = []
  const byName = new Map<string, Counters>()
  const headings = makeCounters()
  const keepCounters = (name: string | undefined, counters: Counters) => {
    if (name !== undefined && (byName.has(name) || byName.size < maxLists)) byName.set(structuredClone(name), counters)
  }
  return {
    beginList: (attributes: Attributes) => {
      const parent = open.at(-1)
      const style = attributes("style-name") ?? parent?.style ?? ""
      const level = parent === undefined ? 0 : Math.min(9, parent.level + 1)
      const isContinued = attributes("continue-numbering") === "true"
      const before =
        byName.get(`id ${attributes("continue-list")}`) ?? (isContinued ? byName.get(`style ${style}`) : undefined)
      const counters = parent?.counters ?? before ?? makeCounters()
      if (parent !== undefined && !isContinued) counters.values[level] = undefined
      open.push({ style, counters, level, item: undefined })
      if (parent !== undefined) return
      keepCounters(`style ${style}`, counters)
      const id = attributes("id")
      keepCounters(id === undefined ? undefined : `id ${id}`, counters)
    },
    endList: () => {
      open.pop()
    },
    beginItem: (attributes: Attributes, hasLabel: boolean) => {
      const list = open.at(-1)
      const start = attributes("start-value")
      if (list !== undefined) {
        list.item = { prefix: undefined, hasLabel, start: start === undefined ? undefined : parseWhole(start, 1) }
      }
    },
    /** Makes the prefix of a paragraph. Only the first paragraph of an item has its number. */
    makePrefix: (): string => {
      const list = open.at(-1)
      if (list === undefined) return ""
      const { counters, item, level, style } = list
      if (item === undefined) return indentOf(level)
      if (item.prefix !== undefined) return item.prefix
      item.prefix = indentOf(level + 1)
      if (!item.hasLabel) return item.prefix
      const listLevels = levels.get(style)
      if (item.start !== undefined) counters.values[level] = undefined
      countItem(counters, level, item.start ?? listLevels?.[level]?.start ?? 1)
      const label = listLevels === undefined ? "-" : renderLabel(listLevels, level, counters)
      return label === "" ? indentOf(level) : `${indentOf(level)}${label} `
    },
    /** Counts a heading. `item` if it stands at the start of a list item. */
    countHeading: (at: number, isCounted: boolean): string => {
      const list = open.at(-1)
      if (list !== undefined) return list.item === undefined || list.item.prefix !== undefined ? "" : "item"
      const outlineLevels = levels.get(outline)
      if (outlineLevels === undefined || !isCounted) return ""
      countItem(headings, at, outlineLevels[at]?.start ?? 1)
      return renderLabel(outlineLevels, at, headings)
    }
  }
}

const handlerOf = (
  writer: Writer,
  styles: Styles,
  formulas: ReadonlyMap<string, string>,
  hasSlides: boolean
): Handler => {
  const lists = makeLists(styles)
  const scripts = makeScripts(writer)
  const spans: Array<Script> = []
  let depth = 0
  let prefix = ""
  let slides = 0
  let isTitle = false
  let isComment = false
  /** True until the first text of the notes of a slide. */
  let beginsNotes = false
  const addText = (text: string) => scripts.text(text, spans.at(-1) ?? "")
  const makeHeadingPrefix = (attributes: Attributes): string => {
    const at = Math.max(1, parseLevel(attributes("outline-level") ?? "1")) - 1
    const number = lists.countHeading(at, attributes("is-list-header") !== "true")
    const label = number === "item" ? lists.makePrefix().trim() : number
    return `${"#".repeat(Math.min(6, at + 1))} ${label === "" || label === "-" ? "" : `${label} `}`
  }
  const paragraphOf = (prefixOf: (attributes: Attributes) => string) => ({
    open: (attributes: Attributes) => {
      depth++
      if (depth === 1) prefix = prefixOf(attributes)
    },
    close: () => {
      depth--
      if (depth > 0) return writer.text(" ")
      scripts.close()
      writer.paragraph(prefix)
    }
  })
  const handler = handleElements(
    {
      page: (attributes) => {
        if (!hasSlides) return
        slides++
        const isHidden = styles.hidden.has(attributes("style-name") ?? "")
        writer.nextPart(`slide ${slides}${isHidden ? " (hidden)" : ""}`)
      },
      notes: { open: () => (beginsNotes = true), close: () => (beginsNotes = false) },
      frame: {
        open: (attributes) => (isTitle = attributes("class") === "title"),
        close: () => (isTitle = false)
      },
      h: paragraphOf(makeHeadingPrefix),
      p: paragraphOf(() => (isTitle ? "# " : lists.makePrefix())),
      list: { open: lists.beginList, close: lists.endList },
      "list-item": (attributes) => lists.beginItem(attributes, true),
      "list-header": (attributes) => lists.beginItem(attributes, false),
      span: {
        open: (attributes) => spans.push(styles.scripts.get(attributes("style-name") ?? "") ?? spans.at(-1) ?? ""),
        close: () => spans.pop()
      },
      s: (attributes) => addText(" ".repeat(Math.min(100, Math.max(1, parseWhole(attributes("c"), 1))))),
      tab: () => addText("\t"),
      "line-break": () => writer.text("\n"),
      object: (attributes) => writer.text(formulas.get((attributes("href") ?? "").replace(/^\.\//, "")) ?? ""),
      note: {
        open: () => {
          scripts.close()
          writer.text(" [note ")
        },
        close: () => writer.text("]")
      },
      "note-body": () => writer.text(": "),
      annotation: {
        open: () => {
          scripts.close()
          isComment = true
          writer.text(" [comment")
        },
        close: () => {
          isComment = false
          writer.text("]")
        }
      },
      creator: {
        open: () => writer.text(isComment ? " by " : ""),
        close: () => writer.text(isComment ? ": " : "")
      },
      "table-row": writer.row,
      "table-cell": writer.cell
    },
    (text) => {
      if (depth === 0) return
      if (beginsNotes && text.trim() !== "") {
        beginsNotes = false
        writer.line("Notes:")
      }
      addText(text.replaceAll(/\s+/g, " "))
    }
  )
  return skipElements(
    (name) => skipped.has(name) || (isComment && commentDetails.has(name)),
    handleStyles(styles, handler)
  )
}

const readBy =
  (format: string, hasSlides: boolean) =>
  ({ bytes }: Input): Stream.Stream<Piece, DocumentError> =>
    Stream.unwrap(
      Effect.gen(function* () {
        const fail = makeFail(format)
        const archive = yield* openArchive(bytes, fail)
        if (!archive.has("content.xml")) return yield* fail("Damaged", "it has no content.xml")
        const { edges, styles } = yield* readStyles(archive, fail)
        const formulas = yield* readFormulas(archive, fail)
        const writer = makeWriter()
        const writeEdges = Stream.suspend(() => {
          if (edges.size > 0 && !hasSlides) writer.part("headers and footers")
          for (const line of hasSlides ? [] : edges) writer.line(line)
          return Stream.fromArray(writer.end())
        })
        return streamPart(archive, "content.xml", fail, writer, handlerOf(writer, styles, formulas, hasSlides)).pipe(
          Stream.concat(writeEdges)
        )
      })
    )

export const readOdt = readBy("OpenDocument text", false)

export const readOdp = readBy("OpenDocument presentation", true)
