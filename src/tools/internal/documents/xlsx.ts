/**
 * Workbooks: the sheets in their order, row by row; dates as dates, formulas by their value, or as they are where no
 * value was stored.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { DocumentError, Input, Piece } from "../../../core/Document.ts"
import { cut } from "../../../support/text.ts"
import { oneLine } from "../../../support/untrusted.ts"
import { failing } from "./failure.ts"
import { paragraphLength } from "./limits.ts"
import { columnOf, dateOf, isDate } from "./numbers.ts"
import { mainPart, type Relation, relationsOf } from "./relations.ts"
import { makeRows } from "./rows.ts"
import { makeWriter, type Writer } from "./writer.ts"
import { type Handler, pieces, whole } from "./xml.ts"
import * as Zip from "./zip.ts"

const fail = failing("workbook")

interface Book {
  readonly texts: ReadonlyArray<string>
  /** True if the style of this number shows a date. */
  readonly dates: ReadonlyArray<boolean>
  readonly from1904: boolean
}

const nothing = () => undefined

/** The texts that cells share. What a text says about its pronunciation is no part of it. */
const textsOf = (archive: Zip.Archive, path: string): Effect.Effect<ReadonlyArray<string>, DocumentError> => {
  const texts: Array<string> = []
  let text = ""
  let inText = false
  let skip = 0
  return whole(archive, path, fail, {
    open: (name) => {
      if (name === "si") text = ""
      else if (name === "rPh") skip++
      else if (name === "t") inText = skip === 0
    },
    text: (piece) => {
      if (inText) text += piece
    },
    close: (name) => {
      if (name === "t") inText = false
      else if (name === "rPh") skip--
      // A text is cut out of the chunk that it came in: it must not keep all of that.
      else if (name === "si") texts.push(structuredClone(cut(text, paragraphLength)))
    }
  }).pipe(Effect.as(texts))
}

const datesOf = (archive: Zip.Archive, path: string): Effect.Effect<ReadonlyArray<boolean>, DocumentError> => {
  const codes = new Map<number, string>()
  const dates: Array<boolean> = []
  let inCells = false
  return whole(archive, path, fail, {
    open: (name, attributes) => {
      if (name === "numFmt") codes.set(Number(attributes("numFmtId")), attributes("formatCode") ?? "")
      else if (name === "cellXfs") inCells = true
      else if (name === "xf" && inCells) {
        const id = Number(attributes("numFmtId"))
        dates.push(isDate(id, codes.get(id)))
      }
    },
    text: nothing,
    close: (name) => {
      if (name === "cellXfs") inCells = false
    }
  }).pipe(Effect.as(dates))
}

interface Sheets {
  readonly sheets: ReadonlyArray<{ readonly name: string; readonly id: string }>
  readonly from1904: boolean
}

const sheetsOf = (archive: Zip.Archive, path: string): Effect.Effect<Sheets, DocumentError> => {
  const sheets: Array<Sheets["sheets"][number]> = []
  let from1904 = false
  return whole(archive, path, fail, {
    open: (name, attributes) => {
      if (name === "workbookPr") from1904 = /^(?:1|true)$/.test(attributes("date1904") ?? "")
      if (name === "sheet") sheets.push({ name: attributes("name") ?? "", id: attributes(":id") ?? "" })
    },
    text: nothing,
    close: nothing
  }).pipe(Effect.map(() => ({ sheets, from1904 })))
}

const valueOf = (book: Book, type: string, style: number, value: string): string => {
  switch (type) {
    case "s":
      return book.texts[Number(value)] ?? ""
    case "b":
      return value === "1" ? "TRUE" : value === "0" ? "FALSE" : value
    case "n":
      return book.dates[style] === true && value !== "" ? (dateOf(Number(value), book.from1904) ?? value) : value
    default:
      return value
  }
}

const handlerOf = (writer: Writer, book: Book): Handler => {
  const rows = makeRows(writer)
  let row = 0
  let column = 0
  let type = "n"
  let style = 0
  let value = ""
  let formula = ""
  let inside: "value" | "formula" | "phonetic" | undefined
  return {
    open: (name, attributes) => {
      switch (name) {
        case "row":
          row = Number(attributes("r") ?? row + 1)
          column = 0
          return rows.open(row)
        case "c":
          column = columnOf(attributes("r") ?? "") ?? column
          type = attributes("t") ?? "n"
          style = Number(attributes("s") ?? 0)
          value = ""
          formula = ""
          return
        case "v":
        case "t":
          if (inside === undefined) inside = "value"
          return
        case "f":
          inside = "formula"
          return
        case "rPh":
          inside = "phonetic"
          return
      }
    },
    text: (text) => {
      if (inside === "value" && value.length < paragraphLength) value += text
      else if (inside === "formula" && formula.length < paragraphLength) formula += text
    },
    close: (name) => {
      switch (name) {
        case "v":
        case "t":
          if (inside === "value") inside = undefined
          return
        case "f":
        case "rPh":
          inside = undefined
          return
        case "c": {
          const shown = valueOf(book, type, style, value)
          rows.cell(column, shown === "" && formula !== "" ? `=${formula}` : shown)
          column++
          return
        }
        case "row":
          return rows.close()
      }
    }
  }
}

export const read = ({ bytes, from = 1 }: Input): Stream.Stream<Piece, DocumentError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const archive = yield* Zip.open(bytes, fail)
      const main = yield* mainPart(archive, fail, "xl/workbook.xml")
      const relations = yield* relationsOf(archive, main, fail)
      const pathOf = (type: string) => [...relations.values()].find((one: Relation) => one.type === type)?.path ?? ""
      const { from1904, sheets } = yield* sheetsOf(archive, main)
      const texts = yield* textsOf(archive, pathOf("sharedStrings"))
      const dates = yield* datesOf(archive, pathOf("styles"))
      const label = (name: string) => `sheet ${JSON.stringify(cut(oneLine(name), 100))}`
      const writer = makeWriter(label(sheets[0]?.name ?? ""))
      const sheet = ({ id, name }: Sheets["sheets"][number], index: number) =>
        Stream.suspend(() => {
          if (index > 0) writer.part(label(name))
          const path = relations.get(id)?.path ?? ""
          if (index + 1 < from) return Stream.empty
          if (!archive.has(path)) {
            writer.text("[this sheet is missing in the file]")
            writer.paragraph()
            return Stream.empty
          }
          return pieces(archive, path, fail, writer, handlerOf(writer, { texts, dates, from1904 }))
        })
      return Stream.fromIterable(sheets).pipe(
        Stream.rechunk(1),
        Stream.map(sheet),
        Stream.flatMap((one) => one),
        Stream.concat(Stream.suspend(() => Stream.fromArray(writer.end())))
      )
    })
  )
