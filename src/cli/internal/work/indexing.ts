/** Indexes the files of a folder. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Documents from "../../../documents/Documents.ts"
import * as Indexer from "../../../rag/Indexer.ts"
import { RagIndex } from "../../../rag/RagIndex.ts"
import { readPermits } from "../approvals/permits.ts"
import { makeFolder } from "../config/places.ts"
import { layerOrFail } from "../failure.ts"
import type { Context } from "./app.ts"
import { machine } from "./host.ts"
import { indexFile, indexLayer, namespaceOf } from "./retrieval.ts"

/** Indexes the files of the working folder, or of a folder in it. The rules that hide files hold here, too. */
export const indexFolder = Effect.fnUntraced(function* (context: Context, folder: string) {
  const { places } = context
  yield* makeFolder(places.data)
  const namespace = yield* namespaceOf(places)
  const { hidden } = yield* readPermits(context, [])
  return Stream.unwrap(
    Effect.map(
      RagIndex.use((index) => index.space(namespace)),
      (space) => Indexer.folder(space, folder, { formats: Documents.formats })
    )
  ).pipe(
    Stream.provide(layerOrFail("failed")(indexLayer(indexFile(places)))),
    Stream.provide(machine(context, undefined, hidden))
  )
})
