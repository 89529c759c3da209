/** Relations between the parts of an Office document. */
import * as Effect from "effect/Effect"
import type { DocumentError } from "../../core/Document.ts"
import type { Fail } from "./failure.ts"
import { handleElements, readPart } from "./xml.ts"
import type { Archive } from "./zip.ts"

/** A related part: its path in the archive, and its role, such as `styles` or `comments`. */
export interface Relation {
  readonly path: string
  readonly type: string
}

/** Resolves a path relative to another path of the archive. The result stays inside the archive. */
export const resolvePath = (from: string, target: string): string => {
  const base = target.startsWith("/") ? [] : from.split("/").slice(0, -1)
  const parts: Array<string> = []
  for (const part of [...base, ...target.split("/")]) {
    if (part === "..") parts.pop()
    else if (part !== "" && part !== ".") parts.push(part)
  }
  return parts.join("/")
}

/** Reads the relations of a part, by id. It ignores links to other documents. */
export const readRelations = (
  archive: Archive,
  path: string,
  fail: Fail
): Effect.Effect<ReadonlyMap<string, Relation>, DocumentError> => {
  const slash = path.lastIndexOf("/") + 1
  const relations = new Map<string, Relation>()
  const handler = handleElements({
    Relationship: (attributes) => {
      const id = attributes("Id")
      const target = attributes("Target")
      if (id === undefined || target === undefined || attributes("TargetMode") === "External") return
      const type = attributes("Type") ?? ""
      relations.set(id, { path: resolvePath(path, target), type: type.slice(type.lastIndexOf("/") + 1) })
    }
  })
  return readPart(archive, `${path.slice(0, slash)}_rels/${path.slice(slash)}.rels`, fail, handler).pipe(
    Effect.as(relations)
  )
}

/** Finds the main part of an Office document: by its relations, else at the usual path. */
export const findMainPart = (archive: Archive, fail: Fail, usual: string): Effect.Effect<string, DocumentError> =>
  Effect.flatMap(readRelations(archive, "", fail), (relations) => {
    const named = [...relations.values()].find(({ type }) => type === "officeDocument")?.path ?? usual
    const path = archive.has(named) ? named : usual
    return archive.has(path) ? Effect.succeed(path) : Effect.fail(fail("Damaged", `it has no ${usual}`))
  })
