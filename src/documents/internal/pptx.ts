/** Reads presentations: slides in the order of the show, each with its notes and comments. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { DocumentError, Input, Piece } from "../../core/Document.ts"
import { joinLines } from "../../support/text/text.ts"
import { readAuthors, renderComment } from "./comments.ts"
import { makeFail } from "./failure.ts"
import { paragraphLength } from "./limits.ts"
import { findMainPart, readRelations } from "./relations.ts"
import { handleFormulas } from "./sheets/formula.ts"
import { makeScripts, type Script } from "./words/scripts.ts"
import { makeWriter, streamParts, type Writer } from "./writer.ts"
import { type Attributes, handleElements, type Handler, readPart, skipElements, streamPart } from "./xml.ts"
import { type Archive, openArchive } from "./zip.ts"

const fail = makeFail("presentation")

/** Elements that repeat their neighbours for older programs. */
const skipped = new Set(["Fallback"])

/** Fields that every slide repeats: number, date, footer, header. */
const repeated = new Set(["sldNum", "dt", "ftr", "hdr"])

const handlerOf = (writer: Writer): Handler => {
  const scripts = makeScripts(writer)
  let inText = 0
  let isTitle = false
  let isRepeated = false
  let script: Script = ""
  const setShape = (type: string) => {
    isTitle = type === "title" || type === "ctrTitle"
    isRepeated = repeated.has(type)
  }
  const handler = handleElements(
    {
      sld: (attributes) => {
        if (/^(?:0|false)$/.test(attributes("show") ?? "1")) writer.line("[this slide is hidden]")
      },
      r: () => (script = ""),
      rPr: (attributes) => {
        const baseline = Number(attributes("baseline") ?? 0)
        script = baseline > 0 ? "^" : baseline < 0 ? "_" : ""
      },
      sp: { open: () => setShape(""), close: () => setShape("") },
      ph: (attributes) => setShape(attributes("type") ?? ""),
      t: { open: () => inText++, close: () => inText-- },
      p: {
        close: () => {
          scripts.close()
          script = ""
          writer.paragraph(isTitle ? "# " : "")
        }
      },
      br: () => writer.text("\n"),
      tr: writer.row,
      tc: writer.cell
    },
    (text) => {
      if (inText > 0 && !isRepeated) scripts.text(text, script)
    }
  )
  return skipElements((name) => skipped.has(name), handleFormulas(writer, scripts, handler))
}

/** Writes the comments on a slide, and their replies. */
const commentsOf = (writer: Writer, authors: ReadonlyMap<string, string>): Handler => {
  let inText = false
  let author = ""
  let text = ""
  const endComment = () => {
    const line = joinLines(text)
    text = ""
    if (line !== "") writer.line(renderComment(line, author))
  }
  const comment = {
    open: (attributes: Attributes) => {
      endComment()
      author = authors.get(attributes("authorId") ?? "") ?? ""
    },
    // The text of a comment follows its replies.
    close: endComment
  }
  const texts = { open: () => (inText = true), close: () => (inText = false) }
  return handleElements({ cm: comment, reply: comment, t: texts, text: texts, p: () => (text += " ") }, (piece) => {
    if (inText && text.length < paragraphLength) text += piece
  })
}

/** Reads the ids of the slides in their order. */
const readSlideIds = (archive: Archive, path: string): Effect.Effect<ReadonlyArray<string>, DocumentError> => {
  const ids: Array<string> = []
  // A slide also has an `id` without prefix, of another meaning.
  const handler = handleElements({ sldId: (attributes) => ids.push(attributes(":id") ?? "") })
  return readPart(archive, path, fail, handler).pipe(Effect.as(ids))
}

export const readPptx = ({ bytes, from = 1 }: Input): Stream.Stream<Piece, DocumentError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const archive = yield* openArchive(bytes, fail)
      const main = yield* findMainPart(archive, fail, "ppt/presentation.xml")
      const relations = yield* readRelations(archive, main, fail)
      // A repeated slide is shown once, so that a small file can't have endless text.
      const ids = (yield* readSlideIds(archive, main)).filter((id) => id !== "")
      const slides = [...new Set(ids.map((id) => relations.get(id)?.path ?? id))]
      const authors = yield* readAuthors(
        archive,
        [...relations.values()].flatMap(({ path, type }) => (/^(?:commentA|a)uthors$/.test(type) ? [path] : [])),
        fail
      )
      const writer = makeWriter()
      const streamText = (path: string) => streamPart(archive, path, fail, writer, handlerOf(writer))
      const streamNotes = (path: string) =>
        Stream.suspend(() => {
          writer.paragraph()
          writer.line("Notes:")
          return streamText(path)
        })
      const streamComments = (path: string) =>
        Stream.suspend(() => {
          writer.paragraph()
          return streamPart(archive, path, fail, writer, commentsOf(writer, authors))
        })
      const streamSlide = (path: string) =>
        Stream.unwrap(
          Effect.map(readRelations(archive, path, fail), (relations) => {
            const pathsOf = (role: string) =>
              [...relations.values()].flatMap(({ path, type }) => (type === role ? [path] : []))
            return streamText(path).pipe(
              Stream.concat(Stream.flatMap(Stream.fromIterable(pathsOf("notesSlide").slice(0, 1)), streamNotes)),
              Stream.concat(Stream.flatMap(Stream.fromIterable(pathsOf("comments")), streamComments))
            )
          })
        )
      const labelOf = (_: string, number: number) => `slide ${number}`
      return streamParts(writer, slides, { from, labelOf }, (path) => {
        if (archive.has(path)) return streamSlide(path)
        writer.line("[this slide is missing in the file]")
        return Stream.empty
      })
    })
  )
