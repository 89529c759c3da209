/**
 * Workbooks: the sheets in their order, row by row, with their comments. Numbers are shown by their formats, formulas by
 * their value, or as they are where no value was stored. Hidden sheets, rows and columns are marked.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { DocumentError, Input, Piece } from "../../../core/Document.ts"
import { cut, joinLines } from "../../../support/text/text.ts"
import { oneLine } from "../../../support/text/untrusted.ts"
import { failing } from "../failure.ts"
import { paragraphLength } from "../limits.ts"
import { mainPart, type Relation, relationsOf } from "../relations.ts"
import { makeWriter, type Writer } from "../writer.ts"
import { type Handler, pieces, whole } from "../xml.ts"
import * as Zip from "../zip.ts"
import { type Show, showBy } from "./cellFormats.ts"
import { columnOf, lettersOf } from "./numbers.ts"
import { makeRows } from "./rows.ts"

const fail = failing("workbook")

/** The authors and the hidden ranges of columns that are kept of a sheet. */
const maxAuthors = 10_000
const maxRanges = 50

const isOn = (value: string | undefined): boolean => value === "1" || value === "true"

interface Book {
  readonly texts: ReadonlyArray<string>
  /** Shows a number in the style of this number. */
  readonly shows: ReadonlyArray<Show>
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

const showsOf = (archive: Zip.Archive, path: string): Effect.Effect<ReadonlyArray<Show>, DocumentError> => {
  const codes = new Map<number, string>()
  const known = new Map<number, Show>()
  const shows: Array<Show> = []
  let inCells = false
  return whole(archive, path, fail, {
    open: (name, attributes) => {
      if (name === "numFmt") {
        codes.set(Number(attributes("numFmtId")), structuredClone(cut(attributes("formatCode") ?? "", 255, "")))
      } else if (name === "cellXfs") inCells = true
      else if (name === "xf" && inCells) {
        const id = Number(attributes("numFmtId"))
        const show = known.get(id) ?? showBy(id, codes.get(id))
        known.set(id, show)
        shows.push(show)
      }
    },
    text: nothing,
    close: (name) => {
      if (name === "cellXfs") inCells = false
    }
  }).pipe(Effect.as(shows))
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

const sheetsOf = (archive: Zip.Archive, path: string): Effect.Effect<Sheets, DocumentError> => {
  const sheets: Array<Sheet> = []
  let from1904 = false
  return whole(archive, path, fail, {
    open: (name, attributes) => {
      if (name === "workbookPr") from1904 = /^(?:1|true)$/.test(attributes("date1904") ?? "")
      if (name !== "sheet") return
      const isHidden = /^(?:veryH|h)idden$/.test(attributes("state") ?? "")
      sheets.push({ name: attributes("name") ?? "", id: attributes(":id") ?? "", isHidden })
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
      return value === "" ? value : (book.shows[style]?.(value, book.from1904) ?? value)
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
  let hidden: Array<string> = []
  return {
    open: (name, attributes) => {
      switch (name) {
        case "col": {
          const [first, last] = [Number(attributes("min")) - 1, Number(attributes("max")) - 1]
          if (!isOn(attributes("hidden")) || !(first >= 0 && last >= first && last < 16_384)) return
          if (hidden.length < maxRanges) {
            hidden.push(first === last ? lettersOf(first) : `${lettersOf(first)} to ${lettersOf(last)}`)
          }
          return
        }
        case "row":
          row = Number(attributes("r") ?? row + 1)
          column = 0
          return rows.open(row, isOn(attributes("hidden")) ? " (hidden)" : "")
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
        case "cols":
          if (hidden.length > 0) writer.text(`[hidden columns: ${hidden.join(", ")}]`)
          hidden = []
          return writer.paragraph()
      }
    }
  }
}

/** The names of those who write comments, by their ids. */
const peopleOf = (archive: Zip.Archive, path: string): Effect.Effect<ReadonlyMap<string, string>, DocumentError> => {
  const people = new Map<string, string>()
  return whole(archive, path, fail, {
    open: (name, attributes) => {
      const id = name === "person" ? attributes("id") : undefined
      if (id !== undefined) people.set(structuredClone(cut(id, 100, "")), nameOf(attributes("displayName")))
    },
    text: nothing,
    close: nothing
  }).pipe(Effect.as(people))
}

const nameOf = (text: string | undefined): string => structuredClone(cut(oneLine(text ?? ""), 100))

/**
 * Writes the comments of a sheet, of both kinds. One in a thread is in the file twice: its older form is by an author
 * who is called after it.
 */
const commentsOf = (writer: Writer, people: ReadonlyMap<string, string>): Handler => {
  const authors: Array<string> = []
  let author = ""
  let text = ""
  let inside: "author" | "text" | undefined
  let place = ""
  let by = ""
  return {
    open: (name, attributes) => {
      switch (name) {
        case "author":
          inside = "author"
          author = ""
          return
        case "comment":
        case "threadedComment":
          place = cut(oneLine(attributes("ref") ?? ""), 20)
          by = people.get(attributes("personId") ?? "") ?? authors[Number(attributes("authorId"))] ?? ""
          text = ""
          return
        case "t":
        case "text":
          inside = "text"
          return
      }
    },
    text: (piece) => {
      if (inside === "author" && author.length < 100) author += piece
      if (inside === "text" && text.length < paragraphLength) text += piece
    },
    close: (name) => {
      switch (name) {
        case "author":
          inside = undefined
          if (authors.length < maxAuthors) authors.push(nameOf(author))
          return
        case "t":
        case "text":
          inside = undefined
          return
        case "comment":
        case "threadedComment": {
          const shown = joinLines(text)
          if (shown === "" || by.startsWith("tc=")) return
          writer.text(`[comment on ${place}${by === "" ? "" : ` by ${by}`}] ${shown}`)
          return writer.paragraph()
        }
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
      const shows = yield* showsOf(archive, pathOf("styles"))
      const people = yield* peopleOf(archive, pathOf("person"))
      const label = (sheet: Sheet | undefined) =>
        `sheet ${JSON.stringify(cut(oneLine(sheet?.name ?? ""), 100))}${sheet?.isHidden === true ? " (hidden)" : ""}`
      const writer = makeWriter(label(sheets[0]))
      const comments = (path: string) =>
        Stream.unwrap(
          Effect.map(relationsOf(archive, path, fail), (related) =>
            Stream.fromIterable(related.values()).pipe(
              Stream.filter(({ type }) => type === "comments" || type === "threadedComment"),
              Stream.flatMap((one) => pieces(archive, one.path, fail, writer, commentsOf(writer, people)))
            )
          )
        )
      const sheet = (one: Sheet, index: number) =>
        Stream.suspend(() => {
          const { id } = one
          if (index > 0) writer.part(label(one))
          const path = relations.get(id)?.path ?? ""
          if (index + 1 < from) return Stream.empty
          if (!archive.has(path)) {
            writer.text("[this sheet is missing in the file]")
            writer.paragraph()
            return Stream.empty
          }
          return pieces(archive, path, fail, writer, handlerOf(writer, { texts, shows, from1904 })).pipe(
            Stream.concat(comments(path))
          )
        })
      return Stream.fromIterable(sheets).pipe(
        Stream.rechunk(1),
        Stream.map(sheet),
        Stream.flatMap((one) => one),
        Stream.concat(Stream.suspend(() => Stream.fromArray(writer.end())))
      )
    })
  )
