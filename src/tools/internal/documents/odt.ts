/** OpenDocument texts: paragraphs, headings, lists, tables, notes. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { DocumentError, Input, Piece } from "../../../core/Document.ts"
import { failing } from "./failure.ts"
import { makeWriter, type Writer } from "./writer.ts"
import { type Handler, pieces, without } from "./xml.ts"
import * as Zip from "./zip.ts"

const fail = failing("OpenDocument text")

/** Parts that are not shown: texts that were deleted, and the parts that say how the rest looks. */
const skipped = new Set(["tracked-changes", "automatic-styles", "font-face-decls", "sequence-decls", "forms"])

const handlerOf = (writer: Writer): Handler => {
  let depth = 0
  let lists = 0
  let prefix = ""
  return without(skipped, {
    open: (name, attributes) => {
      switch (name) {
        case "h":
        case "p":
          depth++
          if (depth > 1) return
          prefix =
            name === "h"
              ? `${"#".repeat(Math.min(6, Math.max(1, Number(attributes("outline-level") ?? 1) || 1)))} `
              : lists > 0
                ? "- "
                : ""
          return
        case "list":
          lists++
          return
        case "s":
          return writer.text(" ".repeat(Math.min(100, Math.max(1, Number(attributes("c") ?? 1) || 1))))
        case "tab":
          return writer.text("\t")
        case "line-break":
          return writer.text("\n")
        case "note":
        case "annotation":
          return writer.text(" [")
        case "table-row":
          return writer.row.open()
        case "table-cell":
          return writer.cell.open()
      }
    },
    text: (text) => {
      if (depth > 0) writer.text(text.replaceAll(/\s+/g, " "))
    },
    close: (name) => {
      switch (name) {
        case "h":
        case "p":
          depth--
          return depth === 0 ? writer.paragraph(prefix) : writer.text(" ")
        case "list":
          lists--
          return
        case "note":
        case "annotation":
          return writer.text("]")
        case "table-cell":
          return writer.cell.close()
        case "table-row":
          return writer.row.close()
      }
    }
  })
}

export const read = ({ bytes }: Input): Stream.Stream<Piece, DocumentError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const archive = yield* Zip.open(bytes, fail)
      if (!archive.has("content.xml")) return yield* fail("Damaged", "it has no content.xml")
      const writer = makeWriter()
      return pieces(archive, "content.xml", fail, writer, handlerOf(writer)).pipe(
        Stream.concat(Stream.suspend(() => Stream.fromArray(writer.end())))
      )
    })
  )
