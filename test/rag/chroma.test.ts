/** An index in a Chroma server obeys the rules of every index. CHROMA_URL names a server, such as `chroma run --port 8000`. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { RagIndex } from "effect-deepagents/rag"
import * as ChromaIndex from "effect-deepagents/rag/ChromaIndex"
import * as RagIndexConformance from "effect-deepagents/rag/RagIndexConformance"
import { FetchHttpClient, HttpClient, HttpClientRequest, HttpClientResponse } from "effect/http"
import { scaled } from "../scale.ts"
import { holdsApart } from "./tenants.ts"

const url = process.env["CHROMA_URL"] ?? ""

/** An index in a database of its own. */
const layer = Layer.unwrap(
  Effect.gen(function* () {
    const name = `test-${crypto.randomUUID()}`
    const request = HttpClientRequest.post(`${url}/api/v2/tenants/default_tenant/databases`)
    yield* HttpClient.execute(HttpClientRequest.bodyJsonUnsafe(request, { name }))
    return ChromaIndex.layer({ url, database: name })
  })
).pipe(Layer.provide(FetchHttpClient.layer))

describe.runIf(url !== "")("ChromaIndex on a server", () => {
  for (const check of RagIndexConformance.suite(layer)) it.live(check.name, () => check.run, 60_000)

  it.live(
    "gives a tenant its own documents that hold the filter, and nothing of others",
    () => Effect.provide(holdsApart(scaled(60)), layer),
    120_000
  )
})

const answering = (status: number, body: string) =>
  Layer.succeed(
    HttpClient.HttpClient,
    HttpClient.make((request) =>
      Effect.succeed(HttpClientResponse.fromWeb(request, new Response(body, { status, headers: request.headers })))
    )
  )

describe("ChromaIndex without a good server", () => {
  const problemOf = (client: Layer.Layer<HttpClient.HttpClient>) =>
    RagIndex.RagIndex.use((index) => index.space("a")).pipe(
      Effect.flip,
      Effect.map(({ message }) => message),
      Effect.provide(
        Layer.provide(ChromaIndex.layer({ url: "http://127.0.0.1:9", apiKey: Redacted.make("hidden-key") }), client)
      )
    )

  it.live("says what to do, and never the key", () =>
    Effect.gen(function* () {
      const away = yield* problemOf(FetchHttpClient.layer)
      expect(away).toContain("check the address")
      const refused = yield* problemOf(answering(401, "no hidden"))
      expect(refused).toContain("the server answered 401; check the key")
      expect(yield* problemOf(answering(200, "<html>"))).toContain("is no JSON; check the address")
      expect(yield* problemOf(answering(200, "{}"))).toContain("none of Chroma's API v2")
      expect(yield* problemOf(answering(500, "x".repeat(9_000)))).toHaveLength(
        (yield* problemOf(answering(500, "x".repeat(5_000)))).length
      )
      expect(away + refused).not.toContain("hidden-key")
    })
  )
})
