import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Redacted } from "effect"
import * as OpenAiEmbeddingModel from "effect-deepagents/models/OpenAiEmbeddingModel"
import { EmbeddingModel } from "effect/ai"
import * as Server from "../servers/openai.ts"

const key = "sk-canary-key-0123456789"

/** A server's answer: the vector of the n-th text is `[n, 1]`, in any order. */
const vectors = (count: number, from = 0, usage: object = { prompt_tokens: count }) =>
  Server.plain(200, {
    object: "list",
    data: Array.from({ length: count }, (_, index) => ({ index, embedding: [from + index, 1] })).toReversed(),
    usage
  })

const at = (server: Server.Server, options: Partial<Parameters<typeof OpenAiEmbeddingModel.layer>[0]> = {}) =>
  OpenAiEmbeddingModel.layer({ model: "embed", baseURL: server.url, apiKey: Redacted.make(key), ...options })

const embedMany = (texts: ReadonlyArray<string>) =>
  Effect.flatMap(EmbeddingModel.EmbeddingModel, (model) => model.embedMany(texts))

describe("OpenAiEmbeddingModel", () => {
  it.live("gives vectors in the order of the texts, and the tokens", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(vectors(1), vectors(3))
      const { dimensions, told } = yield* Effect.gen(function* () {
        const dimensions = yield* EmbeddingModel.Dimensions
        return { dimensions, told: yield* embedMany(["a", "b\ud800", "c"]) }
      }).pipe(Effect.provide(at(server)))
      assert.strictEqual(dimensions, 2)
      assert.deepStrictEqual(
        told.embeddings.map(({ vector }) => vector),
        [
          [0, 1],
          [1, 1],
          [2, 1]
        ]
      )
      assert.strictEqual(told.usage.inputTokens, 3)
      const [, second] = server.seen
      assert.strictEqual(second?.path, "/v1/embeddings")
      assert.strictEqual(second?.headers.authorization, `Bearer ${key}`)
      assert.deepStrictEqual(second?.body, { model: "embed", input: ["a", "b\ufffd", "c"], encoding_format: "float" })
    }).pipe(Effect.scoped)
  )

  it.live("sends many texts in several requests, and asks for the length that it is told", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(vectors(2), vectors(2, 2), vectors(1, 4, {}))
      const { embeddings, usage } = yield* embedMany(["a", "b", "c", "d", "e"]).pipe(
        Effect.provide(at(server, { batchSize: 2, dimensions: 2 }))
      )
      assert.deepStrictEqual(
        embeddings.map(({ vector }) => vector[0]),
        [0, 1, 2, 3, 4]
      )
      assert.strictEqual(usage.inputTokens, 4)
      assert.deepStrictEqual(
        server.seen.map(({ body }) => [body.input.length, body.dimensions]),
        [
          [2, 2],
          [2, 2],
          [1, 2]
        ]
      )
    }).pipe(Effect.scoped)
  )

  it.live("fails with the server's words, and never with invalid vectors", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const replies = [
        [Server.plain(429, { error: { message: "slow down" } }, { "retry-after": "3" }), "RateLimitError"],
        [Server.plain(401, { error: { message: `bad key ${key}` } }), "AuthenticationError"],
        [Server.plain(404, "<html>"), "InvalidRequestError"],
        [Server.plain(500, {}), "InternalProviderError"],
        [Server.plain(200, "<html>"), "InvalidOutputError"],
        [Server.plain(200, {}), "InvalidOutputError"],
        [vectors(1), "InvalidOutputError"],
        [Server.plain(200, { data: [{ embedding: [1, "2"] }, { embedding: [1, 2] }] }), "InvalidOutputError"],
        [Server.plain(200, { data: [{ embedding: [1] }, { embedding: [1, 2] }] }), "InvalidOutputError"],
        [Server.plain(200, { data: [{ embedding: [] }, { embedding: [] }] }), "InvalidOutputError"],
        [Server.reset, "NetworkError"]
      ] as const
      for (const [reply, tag] of replies) {
        server.reply(reply)
        const error = yield* Effect.flip(embedMany(["a", "b"]).pipe(Effect.provide(at(server, { dimensions: 2 }))))
        assert.strictEqual(error._tag === "AiError" ? error.reason._tag : error._tag, tag)
        assert.notInclude(JSON.stringify(error) + String(error), key)
      }
      server.reply(Server.hang)
      const late = yield* Effect.flip(
        embedMany(["a"]).pipe(Effect.provide(at(server, { dimensions: 2, timeout: "50 millis" })))
      )
      assert.strictEqual(late._tag === "AiError" && late.reason._tag, "NetworkError")
    }).pipe(Effect.scoped)
  )

  it.live("reads its key from the environment, and gives none to a server that is not OpenAI's", () =>
    Effect.gen(function* () {
      const env = (variables: Record<string, string>) => ConfigProvider.layer(ConfigProvider.fromUnknown(variables))
      const bare = OpenAiEmbeddingModel.layer({ model: "embed", dimensions: 2 })
      const error = yield* Effect.flip(Effect.provide(EmbeddingModel.Dimensions, bare.pipe(Layer.provide(env({})))))
      assert.include(error.message, "OPENAI_API_KEY")
      const server = yield* Server.make
      server.reply(vectors(1))
      const local = OpenAiEmbeddingModel.layer({ model: "embed", baseURL: server.url })
      yield* Effect.provide(EmbeddingModel.Dimensions, local.pipe(Layer.provide(env({ OPENAI_API_KEY: key }))))
      assert.isUndefined(server.seen[0]?.headers.authorization)
    }).pipe(Effect.scoped)
  )
})
