/** The relations of a part of an Office document: what its ids stand for. */
import * as Effect from "effect/Effect"
import type { DocumentError } from "../../core/Document.ts"
import type { Fail } from "./failure.ts"
import { whole } from "./xml.ts"
import type { Archive } from "./zip.ts"

/** A related part: where it is, and what it is to the other. */
export interface Relation {
  readonly path: string
  readonly type: string
}

/** A path in an archive, from the folder of another one. Nothing leads out of the archive. */
export const resolve = (from: string, target: string): string => {
  const base = target.startsWith("/") ? [] : from.split("/").slice(0, -1)
  const parts: Array<string> = []
  for (const part of [...base, ...target.split("/")]) {
    if (part === "..") parts.pop()
    else if (part !== "" && part !== ".") parts.push(part)
  }
  return parts.join("/")
}

/** Reads the relations of a part, by id. Those that lead out of the document are left out. */
export const relationsOf = (
  archive: Archive,
  path: string,
  fail: Fail
): Effect.Effect<ReadonlyMap<string, Relation>, DocumentError> => {
  const slash = path.lastIndexOf("/") + 1
  const found = new Map<string, Relation>()
  return whole(archive, `${path.slice(0, slash)}_rels/${path.slice(slash)}.rels`, fail, {
    open: (name, attributes) => {
      const id = attributes("Id")
      const target = attributes("Target")
      if (name !== "Relationship" || id === undefined || target === undefined) return
      if (attributes("TargetMode") === "External") return
      const type = attributes("Type") ?? ""
      found.set(id, { path: resolve(path, target), type: type.slice(type.lastIndexOf("/") + 1) })
    },
    text: () => undefined,
    close: () => undefined
  }).pipe(Effect.as(found))
}

/** The main part of an Office document; the usual one, if nothing says so. */
export const mainPart = (archive: Archive, fail: Fail, usual: string): Effect.Effect<string, DocumentError> =>
  Effect.flatMap(relationsOf(archive, "", fail), (relations) => {
    const named = [...relations.values()].find(({ type }) => type === "officeDocument")?.path ?? usual
    const path = archive.has(named) ? named : usual
    return archive.has(path) ? Effect.succeed(path) : Effect.fail(fail("Damaged", `it has no ${usual}`))
  })
