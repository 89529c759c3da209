/**
 * An index in a Qdrant server, for programs that have one already. It needs no package: it speaks its HTTP API.
 *
 * A namespace is two collections: one has the texts, with their words as sparse vectors that the server scores (BM25), the
 * other one the vectors. A search finds a document wholly or not at all, whenever a writer is killed. Of concurrent
 * writers of one document, the last one stays. It was checked against recorded answers, not against a server.
 *
 * ```ts
 * import { Effect, Layer, Redacted } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { RagIndex } from "effect-deepagents/rag"
 * import * as QdrantIndex from "effect-deepagents/rag/QdrantIndex"
 *
 * const layer = QdrantIndex.layer({ url: "http://127.0.0.1:6333", apiKey: Redacted.make("…") }).pipe(
 *   Layer.provide(FetchHttpClient.layer)
 * )
 *
 * const sources = Effect.gen(function* () {
 *   const space = yield* RagIndex.RagIndex.use((index) => index.space("handbook"))
 *   return yield* space.sources()
 * }).pipe(Effect.provide(layer))
 * ```
 */
import * as Effect from "effect/Effect"
import { HttpClient } from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import { makeLayerCheck } from "../support/options/check.ts"
import { makeQdrantTables } from "./internal/remote/qdrant.ts"
import { makeSend } from "./internal/remote/server.ts"
import { makeRemoteIndex } from "./internal/remote/space.ts"
import * as shapes from "./internal/shapes.ts"
import { RagIndex } from "./RagIndex.ts"

/** Options of {@link layer}. */
export interface Options {
  /** The address of the server, such as `http://127.0.0.1:6333`. */
  readonly url: string
  /** The API key. Default: none. */
  readonly apiKey?: Redacted.Redacted | undefined
}

const refuseLayer = makeLayerCheck("QdrantIndex.layer", shapes.qdrantIndexLayer)

/** Keeps the index in collections whose names begin with `rag_`. Operations fail with `Unavailable` if the server is away. */
export const layer = (options: Options): Layer.Layer<RagIndex, never, HttpClient> =>
  refuseLayer(options) ??
  Layer.effect(
    RagIndex,
    Effect.map(HttpClient, (client) =>
      makeRemoteIndex(makeQdrantTables(makeSend(client, { ...options, header: "api-key" })))
    )
  )
