/** Searches join words and vectors, and explain each score. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Redacted, Stream } from "effect"
import {
  Chunker,
  EmbeddingCache,
  HashingEmbedding,
  Indexer,
  MemoryIndex,
  RagIndex,
  Rerank,
  Retriever
} from "effect-deepagents/rag"
import { Storage } from "effect-deepagents/stores"
import { EmbeddingModel } from "effect/ai"
import { HttpClient, HttpClientResponse } from "effect/http"
import { TestClock } from "effect/testing"

const day = 86_400_000

const documents = [
  { id: "leave", text: "Employees have thirty days of leave a year.", at: 0 },
  { id: "leave-new", text: "Employees have thirty days of leave a year, by the new rule.", at: 100 * day },
  { id: "pay", text: "Wages are paid at the end of each month." },
  { id: "desk", text: "Desks are shared. Chairs are not." }
]

const filled = Effect.gen(function* () {
  const space = yield* RagIndex.RagIndex.use((index) => index.space("a", HashingEmbedding.model()))
  const model = yield* EmbeddingModel.EmbeddingModel
  for (const document of documents) {
    const chunks = Chunker.chunk(document, { tokens: 6, overlap: 0 })
    const { embeddings } = yield* model.embedMany(chunks.map(({ text }) => text))
    yield* space.put([{ document, hash: "1", chunks, vectors: embeddings.map(({ vector }) => vector) }])
  }
  return space
})

const layers = Layer.merge(MemoryIndex.layer, HashingEmbedding.layer())

describe("search", () => {
  it.effect("joins both lists by rank, and tells each hit's rank in them", () =>
    Effect.gen(function* () {
      const space = yield* filled
      const hits = yield* Retriever.search(space, "days of leave", { limit: 2 })
      const [first] = hits
      expect(hits.length).toBe(2)
      expect(first?.chunk.document.startsWith("leave")).toBe(true)
      const { joined, vectors, words } = first?.trace ?? { joined: 0 }
      expect(joined).toBeCloseTo(0.5 / (60 + (words?.rank ?? 0)) + 0.5 / (60 + (vectors?.rank ?? 0)), 10)
      const near = yield* Retriever.search(space, "days of leave", { alpha: 1 })
      expect(near.every(({ trace }) => trace.words === undefined)).toBe(true)
      const worded = yield* Retriever.search(space, "days of leave", { alpha: 0 })
      expect(worded.every(({ trace }) => trace.vectors === undefined)).toBe(true)
      expect((yield* Retriever.words(space, "wages")).map(({ chunk }) => chunk.document)).toEqual(["pay"])
    }).pipe(Effect.provide(layers))
  )

  it.effect("halves the score of a document at its half-life", () =>
    Effect.gen(function* () {
      const space = yield* filled
      yield* TestClock.setTime(100 * day)
      const hits = yield* Retriever.search(space, "days of leave", { limit: 10, halfLife: "100 days" })
      const of = (id: string) => hits.find(({ chunk }) => chunk.document === id)?.trace.recency
      expect([of("leave"), of("leave-new"), of("pay")]).toEqual([0.5, 1, undefined])
    }).pipe(Effect.provide(layers))
  )

  it.effect("gives the neighbours of a hit", () =>
    Effect.gen(function* () {
      const space = yield* filled
      const [hit] = yield* Retriever.search(space, "chairs", { limit: 1, above: 2, below: 2 })
      expect([hit?.above.map(({ chunk }) => chunk.text), hit?.below.length]).toEqual([["Desks are shared."], 0])
    }).pipe(Effect.provide(layers))
  )

  it.effect("orders the best hits anew, and fails with the reranker", () =>
    Effect.gen(function* () {
      const space = yield* filled
      const rerank: Rerank.Reranker = (_, passages) =>
        Effect.succeed(passages.map((text) => (text.includes("Wages") ? 0.9 : 0.1)))
      const [first] = yield* Retriever.search(space, "days of leave and wages", { limit: 2, rerank })
      expect([first?.chunk.document, first?.score, first?.trace.reranked]).toEqual(["pay", 0.9, 0.9])
      const failing: Rerank.Reranker<string> = () => Effect.fail("away")
      const error = yield* Effect.flip(Retriever.search(space, "leave", { rerank: failing }))
      expect(error).toBe("away")
    }).pipe(Effect.provide(layers))
  )

  it.effect("finds nothing for a blank text, and sends models neither empty, endless nor half texts", () =>
    Effect.gen(function* () {
      const space = yield* filled
      const asked: Array<string> = []
      const model = yield* EmbeddingModel.EmbeddingModel
      const strict = yield* EmbeddingModel.make({
        embedMany: ({ inputs }) => {
          asked.push(...inputs)
          return Effect.map(model.embedMany(inputs), ({ embeddings }) => ({
            usage: { inputTokens: undefined },
            results: embeddings.map(({ vector }) => [...vector])
          }))
        }
      })
      const rerank: Rerank.Reranker = (query, passages) => {
        asked.push(query)
        return Effect.succeed(passages.map((passage) => (passage.includes("leave") ? 1 : 0)))
      }
      const find = (text: string) =>
        Effect.provideService(Retriever.search(space, text, { rerank }), EmbeddingModel.EmbeddingModel, strict)
      for (const blank of ["", " \n\t", "\u3000"]) {
        expect(yield* find(blank)).toEqual([])
        expect(yield* Retriever.words(space, blank)).toEqual([])
      }
      expect(asked).toEqual([])
      for (const text of [
        `days of leave ${"x ".repeat(500_000)}`,
        "leave \uD800",
        `leave ${"👩".repeat(2_000)}`,
        "\0leave"
      ]) {
        expect((yield* find(text))[0]?.chunk.document).toMatch(/^leave/)
      }
      expect(asked).toHaveLength(8)
      expect(asked.every((one) => one.length <= 4_000 && one.isWellFormed() && !one.includes("\0"))).toBe(true)
      yield* Indexer.run(space, Stream.make({ id: "half", text: "A half \uDC00 character." })).pipe(
        Stream.runDrain,
        Effect.provideService(EmbeddingModel.EmbeddingModel, strict)
      )
      expect(asked.at(-1)).toContain("A half \uFFFD character.")
    }).pipe(Effect.provide(layers))
  )

  it.effect("prefixes queries as the model wants, and refuses another model", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const space = yield* RagIndex.RagIndex.use((index) =>
        index.space("b", { id: "toy", dimensions: 2, query: "query: ", passage: "passage: " })
      )
      const toy = yield* EmbeddingModel.make({
        embedMany: ({ inputs }) => {
          asked.push(...inputs)
          return Effect.succeed({ usage: { inputTokens: undefined }, results: inputs.map(() => [1, 0, 0]) })
        }
      })
      const error = yield* Retriever.search(space, "x").pipe(
        Effect.provideService(EmbeddingModel.EmbeddingModel, toy),
        Effect.flip
      )
      expect(asked).toEqual(["query: x"])
      expect(error).toMatchObject({ _tag: "RagError", reason: { _tag: "OtherModel" } })
      expect(String(error.message)).toContain("index its documents again")
    }).pipe(Effect.provide(layers))
  )
})

describe("Rerank.byServer", () => {
  const served = (body: unknown, status = 200) =>
    Layer.succeed(
      HttpClient.HttpClient,
      HttpClient.make((request) =>
        Effect.succeed(HttpClientResponse.fromWeb(request, new Response(JSON.stringify(body), { status })))
      )
    )
  const rerank = Rerank.byServer({ url: "https://example.com/rerank", model: "m", apiKey: Redacted.make("secret") })

  it.effect("reads the scores by index, and squeezes logits", () =>
    Effect.gen(function* () {
      const results = [
        { index: 1, relevance_score: 0.75 },
        { index: 0, relevance_score: 0.25 },
        { index: 9, relevance_score: 1 }
      ]
      expect(yield* Effect.provide(rerank("q", ["a", "b", "c"]), served({ results }))).toEqual([0.25, 0.75, 0])
      const logits = {
        results: [
          { index: 0, relevance_score: 0 },
          { index: 1, relevance_score: -9 }
        ]
      }
      const [even, low] = yield* Effect.provide(rerank("q", ["a", "b"]), served(logits))
      expect(even).toBe(0.5)
      expect(low).toBeLessThan(0.001)
    })
  )

  it.effect("fails without the key in its message", () =>
    Effect.gen(function* () {
      for (const layer of [served({ error: "no" }, 401), served({ results: "none" }), served([])]) {
        const error = yield* Effect.flip(Effect.provide(rerank("q", ["a"]), layer))
        expect(error._tag).toBe("RerankError")
        expect(error.message).not.toContain("secret")
      }
    })
  )
})

describe("EmbeddingCache", () => {
  it.effect("embeds no text twice, and keeps models apart", () =>
    Effect.gen(function* () {
      const asked: Array<ReadonlyArray<string>> = []
      const counted = Layer.effect(
        EmbeddingModel.EmbeddingModel,
        EmbeddingModel.make({
          embedMany: ({ inputs }) => {
            asked.push(inputs)
            return Effect.succeed({ usage: { inputTokens: 1 }, results: inputs.map((text) => [text.length, 0.1]) })
          }
        })
      )
      const storage = yield* Storage.Storage
      const embed = (model: string, texts: ReadonlyArray<string>) =>
        EmbeddingModel.EmbeddingModel.use((service) => service.embedMany(texts)).pipe(
          Effect.map(({ embeddings }) => embeddings.map(({ vector }) => vector)),
          Effect.provide(EmbeddingCache.layer({ model }).pipe(Layer.provide(counted))),
          Effect.provideService(Storage.Storage, storage)
        )
      const first = yield* embed("m", ["a", "bb", "a"])
      const second = yield* embed("m", ["bb", "ccc"])
      yield* embed("other", ["a"])
      expect(asked).toEqual([["a", "bb"], ["ccc"], ["a"]])
      expect([first[1], second[0]]).toEqual([second[0], [2, Math.fround(0.1)]])
    }).pipe(Effect.provide(Storage.layerMemory))
  )
})
