/** Presentations: slides in the order in which they are shown, each with its notes. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { DocumentError, Input, Piece } from "../../../core/Document.ts"
import { failing } from "./failure.ts"
import { mainPart, relationsOf } from "./relations.ts"
import { makeWriter, type Writer } from "./writer.ts"
import { type Handler, pieces, whole, without } from "./xml.ts"
import * as Zip from "./zip.ts"

const fail = failing("presentation")

/** Elements that say again what stands beside them, for older programs. */
const skipped = new Set(["Fallback"])

/** Fields that stand on every slide: its number, the date, the foot. */
const furniture = new Set(["sldNum", "dt", "ftr", "hdr"])

const handlerOf = (writer: Writer): Handler => {
  let inText = 0
  let title = false
  let isFurniture = false
  return without(skipped, {
    open: (name, attributes) => {
      switch (name) {
        case "sp":
          title = false
          isFurniture = false
          return
        case "ph": {
          const type = attributes("type") ?? ""
          title = type === "title" || type === "ctrTitle"
          isFurniture = furniture.has(type)
          return
        }
        case "t":
          inText++
          return
        case "br":
          return writer.text("\n")
        case "tr":
          return writer.row.open()
        case "tc":
          return writer.cell.open()
      }
    },
    text: (text) => {
      if (inText > 0 && !isFurniture) writer.text(text)
    },
    close: (name) => {
      switch (name) {
        case "t":
          inText--
          return
        case "p":
          return writer.paragraph(title ? "# " : "")
        case "sp":
          title = false
          isFurniture = false
          return
        case "tc":
          return writer.cell.close()
        case "tr":
          return writer.row.close()
      }
    }
  })
}

/** The ids of the slides, in their order. */
const slidesOf = (archive: Zip.Archive, path: string): Effect.Effect<ReadonlyArray<string>, DocumentError> => {
  const ids: Array<string> = []
  return whole(archive, path, fail, {
    open: (name, attributes) => {
      // A slide has an id of its own too, without a prefix.
      const id = name === "sldId" ? attributes(":id") : undefined
      if (id !== undefined) ids.push(id)
    },
    text: () => undefined,
    close: () => undefined
  }).pipe(Effect.as(ids))
}

export const read = ({ bytes, from = 1 }: Input): Stream.Stream<Piece, DocumentError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const archive = yield* Zip.open(bytes, fail)
      const main = yield* mainPart(archive, fail, "ppt/presentation.xml")
      const relations = yield* relationsOf(archive, main, fail)
      // No slide is shown twice: a file that says so would have it read any number of times.
      const slides = [...new Set((yield* slidesOf(archive, main)).map((id) => relations.get(id)?.path ?? id))]
      const writer = makeWriter("slide 1")
      const part = (path: string) => pieces(archive, path, fail, writer, handlerOf(writer))
      const slide = (path: string, index: number) =>
        Stream.unwrap(
          Effect.gen(function* () {
            if (index > 0) writer.part(`slide ${index + 1}`)
            if (index + 1 < from) return Stream.empty
            if (!archive.has(path)) {
              writer.text("[this slide is missing in the file]")
              writer.paragraph()
              return Stream.empty
            }
            const notes = [...(yield* relationsOf(archive, path, fail)).values()].find(
              ({ type }) => type === "notesSlide"
            )
            return notes === undefined
              ? part(path)
              : part(path).pipe(
                  Stream.concat(
                    Stream.suspend(() => {
                      writer.paragraph()
                      writer.text("Notes:")
                      writer.paragraph()
                      return part(notes.path)
                    })
                  )
                )
          })
        )
      return Stream.fromIterable(slides).pipe(
        Stream.rechunk(1),
        Stream.map(slide),
        Stream.flatMap((one) => one),
        Stream.concat(Stream.suspend(() => Stream.fromArray(writer.end())))
      )
    })
  )
