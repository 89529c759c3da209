/** Books: their sections in the order in which they are read. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { DocumentError, Input, Piece } from "../../core/Document.ts"
import { decodePart } from "../../support/text/percent.ts"
import { failing } from "./failure.ts"
import * as Html from "./html.ts"
import { resolve } from "./relations.ts"
import { makeWriter } from "./writer.ts"
import { whole } from "./xml.ts"
import * as Zip from "./zip.ts"

const fail = failing("book")

const nothing = () => undefined

/** The path of the file that says what is in the book. */
const packageOf = (archive: Zip.Archive): Effect.Effect<string, DocumentError> => {
  let path: string | undefined
  return whole(archive, "META-INF/container.xml", fail, {
    open: (name, attributes) => {
      if (name === "rootfile") path ??= attributes("full-path")
    },
    text: nothing,
    close: nothing
  }).pipe(
    Effect.flatMap(() =>
      path === undefined || !archive.has(path) ? fail("Damaged", "it does not say what is in it") : Effect.succeed(path)
    )
  )
}

/** The paths of the sections, in the order of the spine. */
const sectionsOf = (archive: Zip.Archive, path: string): Effect.Effect<ReadonlyArray<string>, DocumentError> => {
  const items = new Map<string, string>()
  const spine: Array<string> = []
  return whole(archive, path, fail, {
    open: (name, attributes) => {
      if (name === "item") {
        const href = (attributes("href") ?? "").split("#", 1)[0] ?? ""
        items.set(attributes("id") ?? "", resolve(path, decodePart(href)))
      }
      if (name === "itemref") spine.push(attributes("idref") ?? "")
    },
    text: nothing,
    close: nothing
  }).pipe(
    // No section is read twice: a file that says so would have it read any number of times.
    Effect.map(() => [...new Set(spine.flatMap((id) => items.get(id) ?? []))])
  )
}

const texts = (archive: Zip.Archive, path: string): Stream.Stream<string, DocumentError> =>
  Stream.decodeText(archive.bytes(path))

export const read = ({ bytes, from = 1 }: Input): Stream.Stream<Piece, DocumentError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const module = yield* Html.parser
      const archive = yield* Zip.open(bytes, fail)
      if (archive.has("META-INF/rights.xml")) return yield* fail("Encrypted", "it is protected by its publisher")
      const sections = yield* Effect.flatMap(packageOf(archive), (path) => sectionsOf(archive, path))
      const writer = makeWriter("section 1")
      const section = (path: string, index: number) =>
        Stream.suspend(() => {
          if (index > 0) writer.part(`section ${index + 1}`)
          return index + 1 < from ? Stream.empty : Html.pieces(module, texts(archive, path), writer, true)
        })
      return Stream.fromIterable(sections).pipe(
        Stream.rechunk(1),
        Stream.map(section),
        Stream.flatMap((one) => one),
        Stream.concat(Stream.suspend(() => Stream.fromArray(writer.end())))
      )
    })
  )
