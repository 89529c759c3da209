/**
 * Reads workbooks: sheets in order, row by row, with comments. A formula is shown by its stored value, else as it is.
 * Hidden parts are marked.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { DocumentError, Input, Piece } from "../../../core/Document.ts"
import { cut, joinLines } from "../../../support/text/text.ts"
import { oneLine } from "../../../support/text/untrusted.ts"
import { readAuthors, renderComment } from "../comments.ts"
import { makeFail } from "../failure.ts"
import { paragraphLength } from "../limits.ts"
import { copyText, nameOf } from "../names.ts"
import { findMainPart, readRelations } from "../relations.ts"
import { makeWriter, streamParts, type Writer } from "../writer.ts"
import { type Attributes, handleElements, type Handler, readPart, streamPart } from "../xml.ts"
import { type Archive, openArchive } from "../zip.ts"
import { type Formatter, makeFormatter } from "./cellFormats.ts"
import { parseColumn } from "./numbers.ts"
import { makeHidden, makeRows } from "./rows.ts"

const fail = makeFail("workbook")

/** Maximum number of authors of comments. */
const maxAuthors = 10_000

const isOn = (value: string | undefined): boolean => value === "1" || value === "true"

interface Book {
  readonly texts: ReadonlyArray<string>
  /** Formatters by number of style. */
  readonly formatters: ReadonlyArray<Formatter>
  readonly from1904: boolean
}

/** Reads the texts that cells share, without their pronunciation. */
const readTexts = (archive: Archive, path: string): Effect.Effect<ReadonlyArray<string>, DocumentError> => {
  const texts: Array<string> = []
  let text = ""
  let inText = false
  let skip = 0
  const handler = handleElements(
    {
      si: { open: () => (text = ""), close: () => texts.push(structuredClone(cut(text, paragraphLength))) },
      rPh: { open: () => skip++, close: () => skip-- },
      t: { open: () => (inText = skip === 0), close: () => (inText = false) }
    },
    (piece) => {
      if (inText) text += piece
    }
  )
  return readPart(archive, path, fail, handler).pipe(Effect.as(texts))
}

const readFormatters = (archive: Archive, path: string): Effect.Effect<ReadonlyArray<Formatter>, DocumentError> => {
  const codes = new Map<number, string>()
  const cache = new Map<number, Formatter>()
  const formatters: Array<Formatter> = []
  let inCells = false
  const handler = handleElements({
    numFmt: (attributes) => codes.set(Number(attributes("numFmtId")), copyText(attributes("formatCode"), 255)),
    cellXfs: { open: () => (inCells = true), close: () => (inCells = false) },
    xf: (attributes) => {
      if (!inCells) return
      const id = Number(attributes("numFmtId"))
      const formatter = cache.get(id) ?? makeFormatter(id, codes.get(id))
      cache.set(id, formatter)
      formatters.push(formatter)
    }
  })
  return readPart(archive, path, fail, handler).pipe(Effect.as(formatters))
}

interface Sheet {
  readonly name: string
  readonly id: string
  readonly isHidden: boolean
}

interface Sheets {
  readonly sheets: ReadonlyArray<Sheet>
  readonly from1904: boolean
}

const readSheets = (archive: Archive, path: string): Effect.Effect<Sheets, DocumentError> => {
  const sheets: Array<Sheet> = []
  let from1904 = false
  const handler = handleElements({
    workbookPr: (attributes) => (from1904 = isOn(attributes("date1904"))),
    sheet: (attributes) => {
      const isHidden = /^(?:veryH|h)idden$/.test(attributes("state") ?? "")
      sheets.push({ name: attributes("name") ?? "", id: attributes(":id") ?? "", isHidden })
    }
  })
  return readPart(archive, path, fail, handler).pipe(Effect.map(() => ({ sheets, from1904 })))
}

const formatValue = (book: Book, type: string, style: number, value: string): string => {
  switch (type) {
    case "s":
      return book.texts[Number(value)] ?? ""
    case "b":
      return value === "1" ? "TRUE" : value === "0" ? "FALSE" : value
    case "n":
      return value === "" ? value : (book.formatters[style]?.(value, book.from1904) ?? value)
    default:
      return value
  }
}

const handlerOf = (writer: Writer, book: Book): Handler => {
  const rows = makeRows(writer)
  const hidden = makeHidden(writer)
  let row = 0
  let column = 0
  let type = "n"
  let style = 0
  let value = ""
  let formula = ""
  let inside: "value" | "formula" | "phonetic" | undefined
  const leave = () => (inside = undefined)
  const valueElement = {
    open: () => (inside ??= "value"),
    close: () => {
      if (inside === "value") leave()
    }
  }
  return handleElements(
    {
      cols: {
        close: () => {
          hidden.write()
          writer.paragraph()
        }
      },
      col: (attributes) => {
        const [first, last] = [Number(attributes("min")) - 1, Number(attributes("max")) - 1]
        const isRange = first >= 0 && last >= first && last < 16_384
        if (isRange && isOn(attributes("hidden"))) hidden.add(first, last)
      },
      row: {
        open: (attributes) => {
          row = Number(attributes("r") ?? row + 1)
          column = 0
          rows.open(row, isOn(attributes("hidden")) ? " (hidden)" : "")
        },
        close: rows.close
      },
      c: {
        open: (attributes) => {
          column = parseColumn(attributes("r") ?? "") ?? column
          type = attributes("t") ?? "n"
          style = Number(attributes("s") ?? 0)
          value = ""
          formula = ""
        },
        close: () => {
          const text = formatValue(book, type, style, value)
          rows.cell(column, text === "" && formula !== "" ? `=${formula}` : text)
          column++
        }
      },
      v: valueElement,
      t: valueElement,
      f: { open: () => (inside = "formula"), close: leave },
      rPh: { open: () => (inside = "phonetic"), close: leave }
    },
    (text) => {
      if (inside === "value" && value.length < paragraphLength) value += text
      else if (inside === "formula" && formula.length < paragraphLength) formula += text
    }
  )
}

/**
 * Writes the comments of a sheet. The file has a threaded comment twice: the older form has an author whose name begins
 * with `tc=`.
 */
const commentsOf = (writer: Writer, people: ReadonlyMap<string, string>): Handler => {
  const authors: Array<string> = []
  let author = ""
  let text = ""
  let inside: "author" | "text" | undefined
  let place = ""
  let by = ""
  const comment = {
    open: (attributes: Attributes) => {
      place = cut(oneLine(attributes("ref") ?? ""), 20)
      by = people.get(attributes("personId") ?? "") ?? authors[Number(attributes("authorId"))] ?? ""
      text = ""
    },
    close: () => {
      const line = joinLines(text)
      if (line !== "" && !by.startsWith("tc=")) writer.line(renderComment(line, by, place))
    }
  }
  const textElement = { open: () => (inside = "text"), close: () => (inside = undefined) }
  return handleElements(
    {
      author: {
        open: () => {
          inside = "author"
          author = ""
        },
        close: () => {
          inside = undefined
          if (authors.length < maxAuthors) authors.push(nameOf(author))
        }
      },
      comment,
      threadedComment: comment,
      t: textElement,
      text: textElement
    },
    (piece) => {
      if (inside === "author" && author.length < 100) author += piece
      if (inside === "text" && text.length < paragraphLength) text += piece
    }
  )
}

const labelOf = ({ isHidden, name }: Sheet): string =>
  `sheet ${JSON.stringify(nameOf(name))}${isHidden ? " (hidden)" : ""}`

export const readXlsx = ({ bytes, from = 1 }: Input): Stream.Stream<Piece, DocumentError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const archive = yield* openArchive(bytes, fail)
      const main = yield* findMainPart(archive, fail, "xl/workbook.xml")
      const relations = yield* readRelations(archive, main, fail)
      const pathOf = (role: string) => [...relations.values()].find(({ type }) => type === role)?.path ?? ""
      const { from1904, sheets } = yield* readSheets(archive, main)
      const texts = yield* readTexts(archive, pathOf("sharedStrings"))
      const formatters = yield* readFormatters(archive, pathOf("styles"))
      const people = yield* readAuthors(archive, [pathOf("person")], fail)
      const writer = makeWriter()
      const streamComments = (path: string) =>
        Stream.unwrap(
          Effect.map(readRelations(archive, path, fail), (related) =>
            Stream.fromIterable(related.values()).pipe(
              Stream.filter(({ type }) => type === "comments" || type === "threadedComment"),
              Stream.flatMap((one) => streamPart(archive, one.path, fail, writer, commentsOf(writer, people)))
            )
          )
        )
      return streamParts(writer, sheets, { from, labelOf }, ({ id }) => {
        const path = relations.get(id)?.path ?? ""
        if (!archive.has(path)) {
          writer.line("[this sheet is missing in the file]")
          return Stream.empty
        }
        return streamPart(archive, path, fail, writer, handlerOf(writer, { texts, formatters, from1904 })).pipe(
          Stream.concat(streamComments(path))
        )
      })
    })
  )
