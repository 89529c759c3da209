/**
 * An index in a Chroma server, for programs that have one already. It needs no package: it speaks version 2 of its API.
 *
 * A namespace is two collections: one has the texts and their words, the other one the vectors. Chroma finds the chunks
 * that have the words of a query, and BM25 is computed here, over 10,000 of them at most. A search finds a document
 * wholly or not at all, whenever a writer is killed. Of concurrent writers of one document, the last one stays.
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { RagIndex } from "effect-deepagents/rag"
 * import * as ChromaIndex from "effect-deepagents/rag/ChromaIndex"
 *
 * const layer = ChromaIndex.layer({ url: "http://127.0.0.1:8000" }).pipe(Layer.provide(FetchHttpClient.layer))
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
import { makeChromaTables } from "./internal/remote/chroma.ts"
import { makeSend } from "./internal/remote/server.ts"
import { makeRemoteIndex } from "./internal/remote/space.ts"
import * as shapes from "./internal/shapes.ts"
import { RagIndex } from "./RagIndex.ts"

/** Options of {@link layer}. */
export interface Options {
  /** The address of the server, such as `http://127.0.0.1:8000`. */
  readonly url: string
  /** Chroma's tenant. Default: `default_tenant`. */
  readonly tenant?: string | undefined
  /** Chroma's database. Default: `default_database`. */
  readonly database?: string | undefined
  /** The token of the server, for its header `x-chroma-token`. Default: none. */
  readonly apiKey?: Redacted.Redacted | undefined
}

const refuseLayer = makeLayerCheck("ChromaIndex.layer", shapes.chromaIndexLayer)

/** Keeps the index in collections whose names begin with `rag_`. Operations fail with `Unavailable` if the server is away. */
export const layer = (options: Options): Layer.Layer<RagIndex, never, HttpClient> =>
  refuseLayer(options) ??
  Layer.effect(
    RagIndex,
    Effect.map(HttpClient, (client) => {
      const { apiKey, database = "default_database", tenant = "default_tenant", url } = options
      const path = `/api/v2/tenants/${encodeURIComponent(tenant)}/databases/${encodeURIComponent(database)}`
      return makeRemoteIndex(makeChromaTables(makeSend(client, { url, apiKey, header: "x-chroma-token" }), path))
    })
  )
