/** The index of a folder: its documents, searched by words. The tools of an agent open it for each call. */
import { createHash } from "node:crypto"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import type { Tool } from "../../../core/Tool.ts"
import * as Rag from "../../../rag/Rag.ts"
import { RagError } from "../../../rag/RagError.ts"
import { RagIndex, type Space } from "../../../rag/RagIndex.ts"
import type { Places } from "../config/places.ts"
import { layerOrFail, orFail } from "../failure.ts"

interface Retrieval {
  readonly tools: ReadonlyArray<Tool>
  readonly problems: ReadonlyArray<string>
}

/** The file of the index of all folders. */
export const indexFile = ({ data }: Places): string => join(data, "index.db")

/** The namespace of a folder, by its real path. */
export const namespaceOf = Effect.fnUntraced(function* ({ project }: Places) {
  const fs = yield* FileSystem.FileSystem
  const real = yield* Effect.orElseSucceed(fs.realPath(project), () => project)
  return `folder/${createHash("sha256").update(real).digest("hex").slice(0, 32)}`
})

/** The index of the user. Its modules load with the first use. */
export const indexLayer = (file: string) =>
  Layer.unwrap(
    Effect.map(
      Effect.promise(() =>
        Promise.all([import("../../../rag/SqliteIndex.ts"), import("../../../sessions/SqliteClient.ts")])
      ),
      ([SqliteIndex, SqliteClient]) => Layer.provide(SqliteIndex.layer, SqliteClient.layer({ file }))
    )
  )

/** Opens the namespace of a folder for one operation. */
const useSpace = <A>(
  file: string,
  namespace: string,
  use: (space: Space<undefined>) => Effect.Effect<A, RagError>
): Effect.Effect<A, RagError> =>
  RagIndex.use((index) => Effect.flatMap(index.space(namespace), use)).pipe(
    Effect.provide(indexLayer(file)),
    Effect.mapError((error) =>
      error._tag === "RagError"
        ? error
        : new RagError({ operation: "open", namespace, reason: { _tag: "Unavailable", problem: error.message } })
    )
  )

/** The documents of a folder. No file stays open between two operations. */
const spaceOf = Effect.fnUntraced(function* (places: Places) {
  const namespace = yield* namespaceOf(places)
  const file = indexFile(places)
  const on = <A>(use: (space: Space<undefined>) => Effect.Effect<A, RagError>) => useSpace(file, namespace, use)
  const space: Space<undefined> = {
    namespace,
    model: undefined,
    hashes: (filter) => on((one) => one.hashes(filter)),
    put: (entries) => on((one) => one.put(entries)),
    remove: (documents) => on((one) => one.remove(documents)),
    words: (text, search) => on((one) => one.words(text, search)),
    nearest: (vector, search) => on((one) => one.nearest(vector, search)),
    around: (chunk, options) => on((one) => one.around(chunk, options)),
    sources: (filter) => on((one) => one.sources(filter))
  }
  return space
})

/** Reports whether an index was ever made. */
const hasFile = (places: Places) =>
  FileSystem.FileSystem.use((fs) => Effect.orElseSucceed(fs.exists(indexFile(places)), () => false))

/** The space of a folder with documents; `undefined` without any. */
export const filledSpace = Effect.fnUntraced(function* (places: Places) {
  if (!(yield* hasFile(places))) return undefined
  const space = yield* spaceOf(places)
  const sources = yield* orFail("failed")(space.sources())
  return sources.length === 0 ? undefined : space
})

/** Reports whether files of code are indexed. */
export const hasCode = (space: Space<undefined>) =>
  Effect.map(orFail("failed")(space.sources({ metadata: { kind: "code" } })), (sources) => sources.length > 0)

const toolsOf = Effect.fnUntraced(function* (places: Places) {
  const space = yield* filledSpace(places)
  if (space === undefined) return []
  return (yield* hasCode(space)) ? [...Rag.make({ space }), Rag.codeSearch({ space })] : Rag.make({ space })
})

/** The tools that search the documents of an indexed folder. An index that can't be read is a problem to show. */
export const retrievalTools = (places: Places) =>
  Effect.match(toolsOf(places), {
    onFailure: ({ message }): Retrieval => ({ tools: [], problems: [`${message} (its tools are left out)`] }),
    onSuccess: (tools): Retrieval => ({ tools, problems: [] })
  })

/** Removes the index of a folder. */
export const dropIndex = Effect.fnUntraced(function* (places: Places) {
  if (!(yield* hasFile(places))) return
  const namespace = yield* namespaceOf(places)
  yield* RagIndex.use((index) => index.drop(namespace)).pipe(
    Effect.provide(layerOrFail("failed")(indexLayer(indexFile(places))))
  )
})
