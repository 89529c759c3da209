/** Reads the sections of EPUB books in reading order. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { DocumentError, Input, Piece } from "../../core/Document.ts"
import { decodePart } from "../../support/text/percent.ts"
import { makeFail } from "./failure.ts"
import { loadParser, streamHtml } from "./html.ts"
import { resolvePath } from "./relations.ts"
import { makeWriter, streamParts } from "./writer.ts"
import { handleElements, readPart } from "./xml.ts"
import { type Archive, openArchive } from "./zip.ts"

const fail = makeFail("book")

/** Finds the package file, which lists the content of the book. */
const findPackage = (archive: Archive): Effect.Effect<string, DocumentError> => {
  let path: string | undefined
  const handler = handleElements({ rootfile: (attributes) => (path ??= attributes("full-path")) })
  return readPart(archive, "META-INF/container.xml", fail, handler).pipe(
    Effect.flatMap(() =>
      path === undefined || !archive.has(path) ? fail("Damaged", "it does not say what is in it") : Effect.succeed(path)
    )
  )
}

/** Reads the paths of the sections, in the order of the spine. A repeated section counts once. */
const readSections = (archive: Archive, path: string): Effect.Effect<ReadonlyArray<string>, DocumentError> => {
  const items = new Map<string, string>()
  const spine: Array<string> = []
  const handler = handleElements({
    item: (attributes) => {
      const href = (attributes("href") ?? "").split("#", 1)[0] ?? ""
      items.set(attributes("id") ?? "", resolvePath(path, decodePart(href)))
    },
    itemref: (attributes) => spine.push(attributes("idref") ?? "")
  })
  return readPart(archive, path, fail, handler).pipe(
    Effect.map(() => [...new Set(spine.flatMap((id) => items.get(id) ?? []))])
  )
}

export const readEpub = ({ bytes, from = 1 }: Input): Stream.Stream<Piece, DocumentError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const module = yield* loadParser
      const archive = yield* openArchive(bytes, fail)
      if (archive.has("META-INF/rights.xml")) return yield* fail("Encrypted", "it is protected by its publisher")
      const sections = yield* Effect.flatMap(findPackage(archive), (path) => readSections(archive, path))
      const writer = makeWriter()
      const labelOf = (_: string, number: number) => `section ${number}`
      return streamParts(writer, sections, { from, labelOf }, (path) =>
        streamHtml(module, Stream.decodeText(archive.bytes(path)), writer, true)
      )
    })
  )
