/** Comments in slides and sheets. */
import * as Effect from "effect/Effect"
import type { DocumentError } from "../../core/Document.ts"
import type { Fail } from "./failure.ts"
import { copyText, nameOf } from "./names.ts"
import { type Attributes, handleElements, readPart } from "./xml.ts"
import type { Archive } from "./zip.ts"

/** Reads the authors of comments from parts of an archive, by id. */
export const readAuthors = (
  archive: Archive,
  paths: ReadonlyArray<string>,
  fail: Fail
): Effect.Effect<ReadonlyMap<string, string>, DocumentError> => {
  const authors = new Map<string, string>()
  const author = (attributes: Attributes) => {
    const id = attributes("id")
    if (id !== undefined) authors.set(copyText(id), nameOf(attributes("name") ?? attributes("displayName")))
  }
  const handler = handleElements({ author, cmAuthor: author, person: author })
  return Effect.forEach(paths, (path) => readPart(archive, path, fail, handler), { discard: true }).pipe(
    Effect.as(authors)
  )
}

/** Renders a comment as one line. `place` is the address of a cell. */
export const renderComment = (text: string, author: string, place = ""): string =>
  `[comment${place === "" ? "" : ` on ${place}`}${author === "" ? "" : ` by ${author}`}] ${text}`
