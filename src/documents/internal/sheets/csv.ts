/**
 * Tables as text with separators: rows, in the separator that they are in.
 *
 * Effect's `Csv` refuses what is not written by the rules, and says no row of a chunk in which something is wrong.
 * Tables of people have quotes in the middle of cells and rows of any length: this reader takes all of them.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { DocumentError, Input, Piece } from "../../../core/Document.ts"
import { textOf } from "../../../support/text/charset.ts"
import { paragraphLength } from "../limits.ts"
import { makeWriter } from "../writer.ts"
import { makeRows, type Rows } from "./rows.ts"

const separators = [",", ";", "\t", "|"] as const

/** The separator that the first line has most of, quoted cells aside. */
const separatorOf = (line: string): string => {
  const plain = line.replaceAll(/"[^"]*"/g, "")
  const count = (one: string) => plain.split(one).length
  return separators.reduce((best: string, one) => (count(one) > count(best) ? one : best), ",")
}

const firstLine = (texts: Stream.Stream<string>): Effect.Effect<string> =>
  Effect.map(Stream.runHead(Stream.filter(texts, (text) => text !== "")), (head) =>
    head._tag === "None" ? "" : (head.value.slice(0, 65_536).split(/\r?\n/, 1)[0] ?? "")
  )

/** Reads cells of a text that comes in chunks. Only a quote at the beginning of a cell opens one that is quoted. */
const makeReader = (separator: string, rows: Rows) => {
  let number = 1
  let column = 0
  let cell = ""
  let hasRow = false
  let state: "start" | "plain" | "quoted" | "quote" = "start"
  const open = () => {
    if (!hasRow) rows.open(number)
    hasRow = true
  }
  const endCell = () => {
    open()
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
  const add = (character: string) => {
    if (cell.length < paragraphLength) cell += character
  }
  const step = (character: string) => {
    // A quote that nobody closed must not hide all that follows.
    const isQuoted = state === "quoted" && !(character === "\n" && cell.length >= paragraphLength)
    if (isQuoted) {
      if (character === '"') state = "quote"
      else add(character)
    } else if (state === "quote" && character === '"') {
      add('"')
      state = "quoted"
    } else if (character === separator) endCell()
    else if (character === "\n") endRow()
    else if (character === '"' && state === "start") state = "quoted"
    else if (character !== "\r") {
      add(character)
      state = "plain"
    }
  }
  return {
    write: (text: string) => {
      for (let at = 0; at < text.length; at++) step(text.charAt(at))
    },
    end: () => {
      if (hasRow || cell !== "") endRow()
    }
  }
}

export const read = ({ bytes, mimeType, name }: Input): Stream.Stream<Piece, DocumentError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const texts = textOf(bytes, mimeType)
      const isTabs = /\.tsv$/i.test(name ?? "") || mimeType?.startsWith("text/tab-separated-values") === true
      const writer = makeWriter()
      const reader = makeReader(isTabs ? "\t" : separatorOf(yield* firstLine(texts)), makeRows(writer))
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
