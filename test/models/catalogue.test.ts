/** The catalogue of models: rows of one's own over it, its age, its source. */
import { readFileSync } from "node:fs"
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { ChatModel } from "effect-deepagents"
import { ChatModels } from "effect-deepagents/models"
import * as ModelCatalogue from "effect-deepagents/models/ModelCatalogue"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { TestClock } from "effect/testing"
import corrections from "../../scripts/models/corrections.json" with { type: "json" }
import { overlay, parseCatalogue, shipped } from "../../src/models/internal/facts/catalogue.ts"
import { findIn, pricingOf } from "../../src/models/internal/facts/facts.ts"
import { fromLitellm } from "../../src/models/internal/facts/litellm.ts"

const apiKey = Redacted.make("secret-key")

const own = JSON.stringify({
  providers: {
    openai: { "gpt-9": { in: 123_456, vision: false, prices: [1, 2, 0.5], batch: [0.5, 1], efforts: "low high" } },
    anthropic: { "claude-opus-5-5": { prices: [40, 200] }, "claude-future-7": { in: 5_000_000, prices: [1, 1] } },
    gemini: { "gemini-9": { in: 9_000, prices: [1, 1] } },
    openrouter: { "acme/model": { in: 7_000, prices: [1, 1] } },
    groq: { broken: { in: "many" }, fine: { in: 8_000, later: { field: true } } }
  },
  later: "unknown"
})

const withFile = <A, E>(
  text: string,
  use: (layer: Layer.Layer<never, ModelCatalogue.CatalogueError>) => Effect.Effect<A, E>
) =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const path = `${yield* fs.makeTempDirectoryScoped()}/models.json`
    yield* fs.writeFileString(path, text)
    return yield* use(ModelCatalogue.layerFile(path).pipe(Layer.provide(NodeServices.layer)))
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))

const modelOf = (spec: string, catalogue: Layer.Layer<never, ModelCatalogue.CatalogueError>) =>
  Effect.scoped(Layer.build(ChatModels.resolve(spec, { apiKey }).pipe(Layer.provide(catalogue)))).pipe(
    Effect.flatMap((context) => Effect.provide(ChatModel.ChatModel, context))
  )

describe("rows of one's own", () => {
  it.live.each([
    ["openai:gpt-9", 123_456, 1],
    ["anthropic:claude-opus-5-5", 1_000_000, 40],
    ["anthropic:claude-future-7", 5_000_000, 1],
    ["google:gemini-9", 9_000, 1],
    ["openrouter:acme/model", 7_000, 1],
    ["groq:fine", 8_000, undefined]
  ] as const)("from a file, %s has a window of %s and an input price of %s", ([spec, window, price]) =>
    Effect.gen(function* () {
      const model = yield* withFile(own, (layer) => modelOf(spec, layer))
      expect([model.contextWindowTokens, model.prices?.input]).toEqual([window, price])
    })
  )

  it.effect("from an address", () =>
    Effect.gen(function* () {
      const client = HttpClient.make((request) =>
        Effect.succeed(
          HttpClientResponse.fromWeb(request, new Response(own, { status: request.url.endsWith("x") ? 404 : 200 }))
        )
      )
      const layer = (url: string) =>
        ModelCatalogue.layerUrl(url).pipe(Layer.provide(Layer.succeed(HttpClient.HttpClient, client)))
      expect((yield* modelOf("openai:gpt-9", layer("https://prices/a"))).contextWindowTokens).toBe(123_456)
      const error = yield* Effect.flip(modelOf("openai:gpt-9", layer("https://prices/x")))
      expect(String(error)).toContain("status 404")
    })
  )

  it.live.each(["no JSON", "[]", '{"providers":[]}', '{"providers":{"openai":3}}'])(
    "a file that is %s is refused",
    (text) =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(withFile(text, (layer) => modelOf("openai:gpt-9", layer)))
        expect(String(error)).toContain("not of the form")
      })
  )

  it("win over those below, field by field, and leave the rest", () => {
    const rows = parseCatalogue(own)
    const whole = overlay(shipped, rows ?? { providers: {} })
    expect(whole.providers["anthropic"]?.["claude-opus-5-5"]).toMatchObject({ in: 1_000_000, prices: [40, 200] })
    expect(Object.keys(whole.providers["groq"] ?? {})).toEqual(
      expect.arrayContaining(["fine", "llama-3.3-70b-versatile"])
    )
    expect(whole.providers["groq"]).not.toHaveProperty("broken")
    expect(whole.asOf).toBe(shipped.asOf)
    expect(overlay(shipped, { asOf: "2030-01-01", providers: {} }).asOf).toBe("2030-01-01")
  })

  it("price a batch by its own rate", () => {
    const facts = findIn(overlay(shipped, parseCatalogue(own) ?? { providers: {} }), "openai", "gpt-9")
    const usage = {
      inputTokens: 1_000_000,
      outputTokens: 0,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
      reasoningTokens: 0
    }
    expect([pricingOf(facts)(usage).cost, pricingOf(facts)(usage, { tier: "batch" }).cost]).toEqual([1, 0.5])
    expect(findIn(shipped, "anthropic", "claude-opus-5-5")?.tiers?.["batch"]?.input).toBe(2)
  })
})

describe("an old catalogue", () => {
  const day = Date.parse(shipped.asOf)

  it.effect("says so, from eight weeks on, unless a newer one lies over it", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(day + 55 * 86_400_000)
      expect(yield* ModelCatalogue.describeAge).toBeUndefined()
      yield* TestClock.setTime(day + 70 * 86_400_000)
      expect(yield* ModelCatalogue.describeAge).toContain("10 weeks old")
      const newer = { asOf: new Date(day + 60 * 86_400_000).toISOString().slice(0, 10), providers: {} }
      const described = withFile(JSON.stringify(newer), (layer) => Effect.provide(ModelCatalogue.describeAge, layer))
      expect(yield* described).toBeUndefined()
    })
  )
})

const price = 0.000_001
const litellm = {
  sample_spec: { mode: "chat" },
  "gpt-x": {
    litellm_provider: "openai",
    mode: "chat",
    max_input_tokens: 1_000,
    supports_function_calling: true,
    supports_reasoning: true,
    supports_xhigh_reasoning_effort: true,
    input_cost_per_token: price,
    output_cost_per_token: 2 * price,
    input_cost_per_token_batches: price / 2,
    output_cost_per_token_batches: price
  },
  "gemini/gemini-9-flash": {
    litellm_provider: "gemini",
    mode: "chat",
    max_input_tokens: 1_000,
    supports_function_calling: true,
    supports_reasoning: true,
    supports_minimal_reasoning_effort: false,
    deprecation_date: "2030-01-01",
    successor_model: "gemini/gemini-10-flash",
    input_cost_per_token: price,
    output_cost_per_token: price
  }
}

describe("the source", () => {
  it.effect("is converted: prices, batch, and efforts by the rule of a family", () =>
    Effect.gen(function* () {
      const text = yield* ModelCatalogue.convert("litellm", JSON.stringify(litellm))
      const { providers } = parseCatalogue(text) ?? { providers: {} }
      expect(providers["openai"]?.["gpt-x"]).toEqual({
        in: 1_000,
        efforts: "low medium high xhigh",
        prices: [1, 2],
        batch: [0.5, 1]
      })
      expect(providers["gemini"]?.["gemini-9-flash"]?.efforts).toBe("low medium high")
      expect(providers["gemini"]?.["gemini-9-flash"]).toMatchObject({ until: "2030-01-01", next: "gemini-10-flash" })
      expect(Object.keys(providers["openai"] ?? {})).toEqual(expect.arrayContaining(["gpt-5.4"]))
      expect(String(yield* Effect.flip(ModelCatalogue.convert("it", "{}")))).toContain("it can't be used")
    })
  )

  const path = process.env["LITELLM_PRICES"]

  it.skipIf(path === undefined)(
    "differs from the catalogue in nothing but the corrections, each with its reason",
    () => {
      const source = JSON.parse(readFileSync(path ?? "", "utf8"))
      expect(fromLitellm(source, corrections)).toEqual(shipped.providers)
      const reasons = Object.values(corrections).flatMap((rows) => Object.values<{ readonly why: string }>(rows))
      expect(reasons.filter(({ why }) => why.length < 10)).toEqual([])
    }
  )

  it("has a window for every model, which compaction stays below", () => {
    const rows = Object.values(shipped.providers).flatMap((models) => Object.entries(models))
    expect(rows.length).toBeGreaterThan(400)
    expect(rows.filter(([, { in: input }]) => input !== undefined && input * 0.85 >= input)).toEqual([])
  })
})
