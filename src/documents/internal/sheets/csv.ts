/**
 * Reads CSV with any common separator.
 *
 * Effect's `Csv` rejects files that break the rules, with whole chunks of good rows. This reader accepts quotes inside
 * of cells, and rows of any length.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { DocumentError, Input, Piece } from "../../../core/Document.ts"
import { textOf } from "../../../support/text/charset.ts"
import { paragraphLength } from "../limits.ts"
import { makeWriter } from "../writer.ts"
import { makeRows, type Rows } from "./rows.ts"

const separators = [",", ";", "\t", "|"] as const

/** Finds the most frequent separator of the first line, outside of quotes. */
const findSeparator = (line: string): string => {
  const plain = line.replaceAll(/"[^"]*"/g, "")
  const count = (one: string) => plain.split(one).length
  return separators.reduce((best: string, one) => (count(one) > count(best) ? one : best), ",")
}

const readFirstLine = (texts: Stream.Stream<string>): Effect.Effect<string> =>
  Effect.map(Stream.runHead(Stream.filter(texts, (text) => text !== "")), (head) =>
    head._tag === "None" ? "" : (head.value.slice(0, 65_536).split(/\r?\n/, 1)[0] ?? "")
  )

/** Reads the cells of chunks of text. Only a quote at the start of a cell opens a quoted cell. */
const makeReader = (separator: string, rows: Rows) => {
  let number = 1
  let column = 0
  let cell = ""
  let hasRow = false
  let state: "start" | "plain" | "quoted" | "quote" = "start"
  const openRow = () => {
    if (!hasRow) rows.open(number)
    hasRow = true
  }
  const endCell = () => {
    openRow()
    rows.cell(column, cell)
    column++
    cell = ""
    state = "start"
  }
  const endRow = () => {
    endCell()
    rows.close()
    number++
    column = 0
    hasRow = false
  }
  const addCharacter = (character: string) => {
    if (cell.length < paragraphLength) cell += character
  }
  const readCharacter = (character: string) => {
    // A missing quote must not swallow the rest of the file.
    const isQuoted = state === "quoted" && !(character === "\n" && cell.length >= paragraphLength)
    if (isQuoted) {
      if (character === '"') state = "quote"
      else addCharacter(character)
    } else if (state === "quote" && character === '"') {
      addCharacter('"')
      state = "quoted"
    } else if (character === separator) endCell()
    else if (character === "\n") endRow()
    else if (character === '"' && state === "start") state = "quoted"
    else if (character !== "\r") {
      addCharacter(character)
      state = "plain"
    }
  }
  return {
    write: (text: string) => {
      for (let at = 0; at < text.length; at++) readCharacter(text.charAt(at))
    },
    end: () => {
      if (hasRow || cell !== "") endRow()
    }
  }
}

export const readCsv = ({ bytes, mimeType, name }: Input): Stream.Stream<Piece, DocumentError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const texts = textOf(bytes, mimeType)
      const isTabs = /\.tsv$/i.test(name ?? "") || mimeType?.startsWith("text/tab-separated-values") === true
      const writer = makeWriter()
      const reader = makeReader(isTabs ? "\t" : findSeparator(yield* readFirstLine(texts)), makeRows(writer))
      return Stream.mapAccumArray(
        texts,
        () => reader,
        (own, batch) => {
          for (const text of batch) own.write(text)
          return [own, writer.take()] as const
        },
        {
          onHalt: (own) => {
            own.end()
            return writer.end()
          }
        }
      )
    })
  )
