/** Presentations: slides in the order in which they are shown, each with its notes and comments. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { DocumentError, Input, Piece } from "../../core/Document.ts"
import { cut, joinLines } from "../../support/text/text.ts"
import { oneLine } from "../../support/text/untrusted.ts"
import { failing } from "./failure.ts"
import { paragraphLength } from "./limits.ts"
import { mainPart, relationsOf } from "./relations.ts"
import { type Formula, makeFormula } from "./sheets/formula.ts"
import { makeScripts, type Script } from "./words/scripts.ts"
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
  const scripts = makeScripts(writer)
  let script: Script = ""
  let formula: Formula | undefined
  return without(skipped, {
    open: (name, attributes) => {
      if (formula !== undefined) return formula.open(name, attributes)
      switch (name) {
        case "sld":
          if (!/^(?:0|false)$/.test(attributes("show") ?? "1")) return
          writer.text("[this slide is hidden]")
          return writer.paragraph()
        case "oMath":
          scripts.close()
          formula = makeFormula()
          return formula.open(name, attributes)
        case "r":
          script = ""
          return
        case "rPr": {
          const baseline = Number(attributes("baseline") ?? 0)
          script = baseline > 0 ? "^" : baseline < 0 ? "_" : ""
          return
        }
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
      if (formula !== undefined) formula.text(text)
      else if (inText > 0 && !isFurniture) scripts.text(text, script)
    },
    close: (name) => {
      if (formula !== undefined) {
        const text = formula.close()
        if (text === undefined) return
        formula = undefined
        return writer.text(text)
      }
      switch (name) {
        case "t":
          inText--
          return
        case "p":
          scripts.close()
          script = ""
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

const nothing = () => undefined

const nameOf = (text: string | undefined): string => structuredClone(cut(oneLine(text ?? ""), 100))

/** The names of those who write comments, by their ids. */
const authorsOf = (
  archive: Zip.Archive,
  paths: ReadonlyArray<string>
): Effect.Effect<ReadonlyMap<string, string>, DocumentError> => {
  const authors = new Map<string, string>()
  const read = (path: string) =>
    whole(archive, path, fail, {
      open: (name, attributes) => {
        const id = name === "cmAuthor" || name === "author" ? attributes("id") : undefined
        if (id !== undefined) authors.set(structuredClone(cut(id, 100, "")), nameOf(attributes("name")))
      },
      text: nothing,
      close: nothing
    })
  return Effect.forEach(paths, read, { discard: true }).pipe(Effect.as(authors))
}

/** Writes the comments on a slide, and the answers to them. */
const commentsOf = (writer: Writer, authors: ReadonlyMap<string, string>): Handler => {
  let inText = false
  let by = ""
  let text = ""
  const end = () => {
    const shown = joinLines(text)
    text = ""
    if (shown === "") return
    writer.text(`[comment${by === "" ? "" : ` by ${by}`}] ${shown}`)
    writer.paragraph()
  }
  return {
    open: (name, attributes) => {
      if (name === "cm" || name === "reply") {
        end()
        by = authors.get(attributes("authorId") ?? "") ?? ""
      }
      if (name === "t" || name === "text") inText = true
      if (name === "p") text += " "
    },
    text: (piece) => {
      if (inText && text.length < paragraphLength) text += piece
    },
    close: (name) => {
      if (name === "t" || name === "text") inText = false
      // The text of a comment comes behind the answers to it.
      if (name === "cm" || name === "reply") end()
    }
  }
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
    text: nothing,
    close: nothing
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
      const authors = yield* authorsOf(
        archive,
        [...relations.values()].flatMap(({ path, type }) => (/^(?:commentA|a)uthors$/.test(type) ? [path] : []))
      )
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
            const related = [...(yield* relationsOf(archive, path, fail)).values()]
            const notes = related.filter(({ type }) => type === "notesSlide").slice(0, 1)
            const comments = related.filter(({ type }) => type === "comments")
            const noted = Stream.fromIterable(notes).pipe(
              Stream.flatMap((one) => {
                writer.paragraph()
                writer.text("Notes:")
                writer.paragraph()
                return part(one.path)
              })
            )
            const commented = Stream.fromIterable(comments).pipe(
              Stream.flatMap((one) => {
                writer.paragraph()
                return pieces(archive, one.path, fail, writer, commentsOf(writer, authors))
              })
            )
            return part(path).pipe(Stream.concat(noted), Stream.concat(commented))
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
