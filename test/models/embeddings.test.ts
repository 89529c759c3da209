import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Redacted } from "effect"
import * as GeminiEmbeddingModel from "effect-deepagents/models/GeminiEmbeddingModel"
import * as OllamaEmbeddingModel from "effect-deepagents/models/OllamaEmbeddingModel"
import { EmbeddingModel } from "effect/ai"
import * as Server from "./servers/openai.ts"

const key = "canary-key-0123456789"

const embedMany = (texts: ReadonlyArray<string>) =>
  Effect.flatMap(EmbeddingModel.EmbeddingModel, (model) => model.embedMany(texts))

const failureOf = (layer: ReturnType<typeof GeminiEmbeddingModel.layer>) =>
  Effect.flip(embedMany(["the harbour at night"]).pipe(Effect.provide(layer)))

describe("GeminiEmbeddingModel", () => {
  const vectors = (...values: ReadonlyArray<ReadonlyArray<number>>) =>
    Server.plain(200, { embeddings: values.map((one) => ({ values: one })), usageMetadata: { promptTokenCount: 4 } })

  const at = ({ url }: Server.Server, options: Partial<Parameters<typeof GeminiEmbeddingModel.layer>[0]> = {}) =>
    GeminiEmbeddingModel.layer({
      model: "gemini-embedding-001",
      baseURL: url,
      apiKey: Redacted.make(key),
      dimensions: 2,
      ...options
    })

  it.live("names the purpose of the vectors, and returns them in order", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(vectors([1, 2], [3, 4]), vectors([5, 6]))
      const layer = at(server, { taskType: "RETRIEVAL_QUERY", batchSize: 2 })
      const { embeddings, usage } = yield* embedMany(["a", "b", "c"]).pipe(Effect.provide(layer))
      assert.deepStrictEqual(
        embeddings.map(({ vector }) => vector),
        [
          [1, 2],
          [3, 4],
          [5, 6]
        ]
      )
      assert.strictEqual(usage.inputTokens, 8)
      const [first] = server.seen
      assert.strictEqual(first?.path, "/v1/models/gemini-embedding-001:batchEmbedContents")
      assert.strictEqual(first?.headers["x-goog-api-key"], key)
      assert.deepStrictEqual(first?.body.requests[1], {
        model: "models/gemini-embedding-001",
        content: { parts: [{ text: "b" }] },
        taskType: "RETRIEVAL_QUERY",
        outputDimensionality: 2
      })
    })
  )

  it.live("asks a project of Google Cloud with a token of the moment, as each of its models wants to be asked", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      let asked = 0
      const vertex = {
        project: "p",
        location: "europe-west4",
        accessToken: Effect.sync(() => Redacted.make(`token-${++asked}`))
      }
      const prediction = (value: number) => ({
        embeddings: { values: [value, 0], statistics: { token_count: 3, truncated: false } }
      })
      const predictions = (...values: ReadonlyArray<number>) =>
        Server.plain(200, { predictions: values.map(prediction) })
      const embedded = (model: string) =>
        Effect.provide(embedMany(["a", "b"]), at(server, { model, vertex, taskType: "CLUSTERING", batchSize: 2 }))
      const models = "/v1/projects/p/locations/europe-west4/publishers/google/models"

      server.reply(predictions(1, 2))
      const texts = yield* embedded("text-embedding-005")
      assert.deepStrictEqual(
        texts.embeddings.map(({ vector }) => vector[0]),
        [1, 2]
      )
      assert.strictEqual(texts.usage.inputTokens, 6)
      assert.strictEqual(server.seen[0]?.path, `${models}/text-embedding-005:predict`)
      assert.deepStrictEqual(server.seen[0]?.body, {
        instances: [
          { content: "a", task_type: "CLUSTERING" },
          { content: "b", task_type: "CLUSTERING" }
        ],
        parameters: { outputDimensionality: 2 }
      })

      server.reply(predictions(3), predictions(4))
      assert.strictEqual((yield* embedded("gemini-embedding-001")).embeddings[1]?.vector[0], 4)
      assert.strictEqual(server.seen[2]?.path, `${models}/gemini-embedding-001:predict`)
      assert.lengthOf(server.seen[2]?.body.instances, 1)

      const one = Server.plain(200, { embedding: { values: [5, 0] }, usageMetadata: { promptTokenCount: 2 } })
      server.reply(one, one)
      const later = yield* embedded("gemini-embedding-2")
      assert.strictEqual(later.usage.inputTokens, 4)
      assert.strictEqual(server.seen[4]?.path, `${models}/gemini-embedding-2:embedContent`)
      assert.deepStrictEqual(server.seen[4]?.body, {
        content: { parts: [{ text: "b" }] },
        taskType: "CLUSTERING",
        outputDimensionality: 2
      })
      assert.deepStrictEqual(
        server.seen.map(({ headers }) => headers["authorization"]),
        [1, 2, 3, 4, 5].map((count) => `Bearer token-${count}`)
      )
      assert.isTrue(server.seen.every(({ headers }) => headers["x-goog-api-key"] === undefined))
    })
  )

  it.live("tells failures by their kind, and neither key nor text", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const replies = [
        [Server.plain(429, { error: { code: 429, message: "slow", status: "RESOURCE_EXHAUSTED" } }), "RateLimitError"],
        [
          Server.plain(400, {
            error: { code: 400, message: `bad ${key}: the harbour at night`, details: [{ reason: "API_KEY_INVALID" }] }
          }),
          "AuthenticationError"
        ],
        [Server.plain(502, "<html>"), "InternalProviderError"],
        [Server.plain(200, "<html>"), "InvalidOutputError"],
        [vectors(), "InvalidOutputError"],
        [Server.plain(200, { embeddings: [{ values: ["1"] }] }), "InvalidOutputError"]
      ] as const
      for (const [reply, tag] of replies) {
        server.reply(reply)
        const failed = yield* failureOf(at(server))
        assert.strictEqual("reason" in failed ? failed.reason._tag : "", tag, String(failed))
        for (const secret of [key, "harbour"]) assert.notInclude(String(failed) + JSON.stringify(failed), secret)
      }
    })
  )

  it.effect("wants a key for Google's own address", () =>
    Effect.gen(function* () {
      const layer = GeminiEmbeddingModel.layer({ model: "gemini-embedding-001", dimensions: 2 }).pipe(
        Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({})))
      )
      const failed = yield* failureOf(layer)
      assert.include(String(failed), "GEMINI_API_KEY")
    })
  )
})

describe("OllamaEmbeddingModel", () => {
  const vectors = (...embeddings: ReadonlyArray<ReadonlyArray<number>>) =>
    Server.plain(200, { model: "m", embeddings, prompt_eval_count: 3 })

  it.live("loads the model as it is told, cuts nothing in silence, and finds out how long vectors are", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(vectors([0, 0]), vectors([1, 2], [3, 4]))
      const layer = OllamaEmbeddingModel.layer({
        model: "nomic-embed-text",
        baseURL: server.url,
        apiKey: Redacted.make(key),
        contextWindowTokens: 8_192,
        keepAlive: Infinity
      })
      const told = yield* Effect.gen(function* () {
        assert.strictEqual(yield* EmbeddingModel.Dimensions, 2)
        return yield* embedMany(["a", "b\ud800"])
      }).pipe(Effect.provide(layer))
      assert.deepStrictEqual(
        told.embeddings.map(({ vector }) => vector),
        [
          [1, 2],
          [3, 4]
        ]
      )
      assert.strictEqual(told.usage.inputTokens, 3)
      const last = server.seen.at(-1)
      assert.strictEqual(last?.path, "/api/embed")
      assert.strictEqual(last?.headers.authorization, `Bearer ${key}`)
      assert.deepStrictEqual(last?.body, {
        model: "nomic-embed-text",
        input: ["a", "b\ufffd"],
        truncate: false,
        keep_alive: -1,
        options: { num_ctx: 8_192 }
      })
    })
  )

  it.live("tells failures by their kind", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const replies = [
        [Server.plain(404, { error: 'model "m" not found, try pulling it first' }), "InvalidRequestError"],
        [Server.plain(400, { error: "the input length exceeds the context length" }), "InvalidRequestError"],
        [Server.plain(500, { error: "out of memory" }), "InternalProviderError"],
        [vectors(), "InvalidOutputError"]
      ] as const
      for (const [reply, tag] of replies) {
        server.reply(reply)
        const failed = yield* failureOf(OllamaEmbeddingModel.layer({ model: "m", baseURL: server.url, dimensions: 2 }))
        assert.strictEqual("reason" in failed ? failed.reason._tag : "", tag, String(failed))
      }
      const nowhere = yield* failureOf(OllamaEmbeddingModel.layer({ model: "m", baseURL: "http://[", dimensions: 2 }))
      assert.include(String(nowhere), "baseURL")
    })
  )
})
