/** Reads PDFs page by page. On Node, each document has its own thread. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import type { DocumentError, Input, Piece } from "../../../core/Document.ts"
import { isNode } from "../../../support/effect/threads.ts"
import { openHere } from "./pdfHere.ts"
import type { OpenFile } from "./pdfOpened.ts"
import { makeOpener } from "./pdfThread.ts"

const scan = "[no text on this page; it may be a scan or a picture]\n"

/** Opens PDFs: in a thread on Node, and in the main thread elsewhere. */
export const Opener = Context.Reference<OpenFile>("effect-deepagents/documents/Documents/Opener", {
  defaultValue: () => (isNode() ? makeOpener({}) : openHere)
})

const pieceOf = (number: number, text: string): Piece => ({
  part: number,
  label: `page ${number}`,
  text: text === "" ? scan : `${text}\n`
})

export const readPdf = ({ bytes, from = 1, password }: Input): Stream.Stream<Piece, DocumentError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const open = yield* Opener
      const { count, text } = yield* open(bytes, password === undefined ? undefined : Redacted.value(password))
      const start = Math.max(1, Math.floor(from))
      if (start > count) return Stream.empty
      return Stream.range(start, count).pipe(
        Stream.rechunk(1),
        Stream.mapEffect((number) => Effect.map(text(number), (pageText) => pieceOf(number, pageText)))
      )
    })
  )
