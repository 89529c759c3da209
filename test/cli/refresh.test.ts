import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { createServer, type RequestListener } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { describe, expect, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer, Redacted } from "effect"
import { ChatModel, Content, Message } from "effect-deepagents"
import { ChatModels } from "effect-deepagents/models"
import * as OllamaChatModel from "effect-deepagents/models/OllamaChatModel"
import { TestClock } from "effect/testing"
import { catalogueLayer } from "../../src/cli/internal/config/catalogue.ts"
import { limitsIn } from "../../src/cli/internal/config/modelLimits.ts"
import { listOllama } from "../../src/cli/internal/config/modelList.ts"
import type { Places } from "../../src/cli/internal/config/places.ts"
import { refresh } from "../../src/cli/internal/config/refreshCatalogue.ts"
import { overlay, parseCatalogue, shipped } from "../../src/models/internal/facts/catalogue.ts"
import { convert, ModelCatalogue } from "../../src/models/ModelCatalogue.ts"
import { claude, turn } from "../models/anthropic/asking.ts"
import { askAll, request } from "../models/openai/asking.ts"
import { chunk } from "../models/openai/wire.ts"
import * as Claude from "../models/servers/anthropic.ts"
import * as Server from "../models/servers/openai.ts"

const places = Effect.map(
  Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "refresh-"))),
    (path) => Effect.promise(() => rm(path, { recursive: true }))
  ),
  (folder): Places => ({ data: folder, config: join(folder, "config"), project: folder })
)

const source = JSON.stringify({
  "gpt-9": {
    litellm_provider: "openai",
    mode: "chat",
    max_input_tokens: 5_000,
    supports_function_calling: true,
    input_cost_per_token: 0.000_001,
    output_cost_per_token: 0.000_002
  }
})

const listenWith = (handle: RequestListener) =>
  Effect.acquireRelease(
    Effect.promise(
      () =>
        new Promise<{ readonly url: string; readonly close: () => void }>((resolve) => {
          const server = createServer(handle)
          server.listen(0, "127.0.0.1", () => {
            const at = server.address()
            const port = typeof at === "object" && at !== null ? at.port : 0
            resolve({ url: `http://127.0.0.1:${port}/prices.json`, close: () => void server.close() })
          })
        })
    ),
    ({ close }) => Effect.sync(close)
  )

const listen = (status: number, text: string) => listenWith((_, response) => void response.writeHead(status).end(text))

describe("deepagents models refresh", () => {
  it.live("keeps the facts of an address, and the user's own rows lie over them", () =>
    Effect.gen(function* () {
      const folder = yield* places
      const { url } = yield* listen(200, source)
      const done = yield* refresh(folder, url)
      expect(done.models).toBeGreaterThanOrEqual(1)
      const read = Effect.map(ModelCatalogue, ({ providers }) => providers["openai"]?.["gpt-9"])
      expect(yield* Effect.provide(read, catalogueLayer(folder))).toMatchObject({ in: 5_000, prices: [1, 2] })
      yield* Effect.promise(async () => {
        const { mkdir } = await import("node:fs/promises")
        await mkdir(folder.config)
        await writeFile(
          join(folder.config, "models.json"),
          JSON.stringify({ providers: { openai: { "gpt-9": { in: 7_000 } } } })
        )
      })
      expect(yield* Effect.provide(read, catalogueLayer(folder))).toMatchObject({ in: 7_000, prices: [1, 2] })
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.live("changes nothing when the address gives no list", () =>
    Effect.gen(function* () {
      const folder = yield* places
      yield* refresh(folder, (yield* listen(200, source)).url)
      const before = yield* Effect.promise(() => readFile(join(folder.data, "models.json"), "utf8"))
      for (const [status, text] of [
        [404, ""],
        [200, "<html>"],
        [200, "{}"]
      ] as const) {
        const error = yield* Effect.flip(refresh(folder, (yield* listen(status, text)).url))
        expect(String(error)).toMatch(/status 404|not of the form/)
      }
      expect(yield* Effect.promise(() => readFile(join(folder.data, "models.json"), "utf8"))).toBe(before)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.effect("gives up on an address that never answers", () =>
    Effect.gen(function* () {
      const folder = yield* places
      const asked = yield* Deferred.make<void>()
      const { url } = yield* listenWith(() => void Effect.runSync(Deferred.succeed(asked, undefined)))
      const refreshing = yield* Effect.forkScoped(Effect.flip(refresh(folder, url)))
      yield* Deferred.await(asked)
      yield* TestClock.adjust("1 minute")
      expect(String(yield* Fiber.join(refreshing))).toMatch(
        /127\.0\.0\.1:\d+ does not answer in time; nothing was changed/
      )
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.live("keeps no numbers that can't be prices or sizes", () =>
    Effect.gen(function* () {
      const folder = yield* places
      const model = JSON.parse(source)["gpt-9"]
      const models = {
        "gpt-8": { ...model, max_input_tokens: -1, max_output_tokens: 0.5 },
        "gpt-7": { ...model, input_cost_per_token: -1 }
      }
      const text = JSON.stringify({ ...models, "gpt-6": { ...model, max_input_tokens: 9 } }).replace(":9,", ":1e999,")
      yield* refresh(folder, (yield* listen(200, text)).url)
      const rows = yield* Effect.provide(ModelCatalogue, catalogueLayer(folder))
      expect(rows.providers["openai"]?.["gpt-8"]).toEqual({ prices: [1, 2] })
      expect(rows.providers["openai"]?.["gpt-7"]).toBeUndefined()
      expect(rows.providers["openai"]?.["gpt-6"]).toEqual({ prices: [1, 2] })
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})

describe("limits that providers list", () => {
  it.live("decide whether a model is asked to think, and let it see, as OpenRouter's list says", () =>
    Effect.gen(function* () {
      const image = { input_modalities: ["text", "image"] }
      const listModel = (id: string, supported_parameters: ReadonlyArray<string>) => ({
        id,
        context_length: 9_000,
        architecture: image,
        supported_parameters
      })
      // A vendor's model keeps what is known of it.
      const known = { id: "openai/gpt-5.4", context_length: 9_000 }
      const body = {
        data: [listModel("acme/thinks", ["tools", "reasoning"]), listModel("acme/talks", ["tools"]), known]
      }
      const text = yield* convert("list", source, Object.fromEntries([limitsIn("openrouter", body)]))
      const rows = Layer.succeed(ModelCatalogue, overlay(shipped, parseCatalogue(text) ?? { providers: {} }))
      const server = yield* Server.make
      server.reply(Server.chunks([chunk({ content: "ok" }, "stop")]))
      const ask = (model: string) =>
        Effect.gen(function* () {
          const layer = ChatModels.resolve(`openrouter:${model}`, {
            apiKey: Redacted.make("k"),
            baseURL: server.url,
            thinking: "high"
          }).pipe(Layer.provide(rows))
          yield* askAll(layer, [request([Message.human([Content.image({ url: "https://example.com/a.png" })])])])
          const { body: sent, text: whole } = server.seen.at(-1) ?? { body: {}, text: "" }
          return [sent.reasoning, whole.includes("https://example.com/a.png")]
        })
      expect(yield* ask("acme/thinks")).toEqual([{ effort: "high" }, true])
      expect(yield* ask("acme/talks")).toEqual([undefined, true])
      expect((yield* ask("openai/gpt-5.4"))[0]).toEqual({ effort: "high" })
    }).pipe(Effect.scoped)
  )

  it.live("decide the effort that Claude is asked for, and when it goes, as Anthropic's list says", () =>
    Effect.gen(function* () {
      const [yes, no] = [{ supported: true }, { supported: false }]
      const effort = { supported: true, low: yes, medium: yes, high: yes, xhigh: no, max: no }
      const capabilities = { image_input: no, effort, thinking: { ...yes, types: {} } }
      const plain = { max_input_tokens: 500_000, max_tokens: 64_000, retires_at: null }
      const [name, rows] = limitsIn("anthropic", {
        data: [
          { id: "claude-opus-5-5", ...plain, capabilities },
          { id: "claude-sonnet-4-5-20250929", ...plain, retires_at: "2027-01-31T00:00:00Z", capabilities: null },
          { id: "claude-haiku-4-5-20251001", ...plain, capabilities: { effort: { ...effort, supported: false } } }
        ]
      })
      const limits = { in: 500_000, out: 64_000 }
      expect([name, rows]).toEqual([
        "anthropic",
        {
          "claude-opus-5-5": { ...limits, vision: false, efforts: "low medium high" },
          "claude-sonnet-4-5": { ...limits, until: "2027-01-31" },
          "claude-haiku-4-5": { ...limits, efforts: "" }
        }
      ])
      const text = yield* convert("list", source, { [name]: rows })
      const facts = Layer.succeed(ModelCatalogue, overlay(shipped, parseCatalogue(text) ?? { providers: {} }))
      const server = yield* Claude.serve(Claude.say("ok"), Claude.say("ok"))
      const model = claude(server, { thinking: "max" })
      yield* turn(model)
      yield* turn(Layer.provide(model, facts))
      expect(server.requests.map(({ body }) => body["output_config"])).toEqual([{ effort: "max" }, { effort: "high" }])
    }).pipe(Effect.scoped)
  )

  it.live("are asked of an Ollama for each of its models, and fill in for a server that tells nothing", () =>
    Effect.gen(function* () {
      const capabilities: { readonly [model: string]: ReadonlyArray<string> } = {
        "qwen3-vl:8b": ["completion", "tools", "vision", "thinking"],
        "llama3.2:3b": ["completion"]
      }
      const { url } = yield* listenWith((incoming, response) => {
        const parts: Array<Buffer> = []
        incoming.on("data", (part: Buffer) => parts.push(part))
        incoming.on("end", () => {
          if (incoming.url === "/api/tags") {
            const models = [...Object.keys(capabilities), "gone:1b"].map((name) => ({ name }))
            return void response.end(JSON.stringify({ models }))
          }
          const { model } = JSON.parse(Buffer.concat(parts).toString("utf8"))
          const info = { "general.architecture": "a", "a.context_length": 16_384 }
          if (capabilities[model] === undefined) return void response.writeHead(404).end("{}")
          response.end(JSON.stringify({ capabilities: capabilities[model], model_info: info }))
        })
      })
      const lists = yield* listOllama(url.replace("/prices.json", ""))
      const rows = Object.fromEntries(lists.map(({ body, name }) => limitsIn(name, body)))
      expect(rows).toEqual({
        ollama: {
          "qwen3-vl:8b": { in: 16_384, vision: true },
          "llama3.2:3b": { in: 16_384, vision: false, efforts: "" }
        }
      })
      expect(yield* listOllama("http://127.0.0.1:1")).toEqual([])
      const text = yield* convert("list", source, rows)
      const facts = Layer.succeed(ModelCatalogue, overlay(shipped, parseCatalogue(text) ?? { providers: {} }))
      const silent = yield* listen(404, "{}")
      const layer = OllamaChatModel.layer({ model: "qwen3-vl:8b", baseURL: silent.url.replace("/prices.json", "") })
      const model = Effect.map(Layer.build(Layer.provide(layer, facts)), Context.get(ChatModel.ChatModel))
      expect(yield* model).toMatchObject({ supportsVision: true, contextWindowTokens: 16_384 })
    }).pipe(Effect.scoped)
  )

  it("are read in the words of each, and prices are left alone", () => {
    expect(
      limitsIn("anthropic", {
        data: [
          {
            id: "claude-9",
            max_input_tokens: 500_000,
            max_tokens: 64_000,
            capabilities: { image_input: { supported: true } }
          }
        ]
      })
    ).toEqual(["anthropic", { "claude-9": { in: 500_000, out: 64_000, vision: true } }])
    expect(
      limitsIn("google", { models: [{ name: "models/gemini-9", inputTokenLimit: 10, outputTokenLimit: 5 }] })
    ).toEqual(["gemini", { "gemini-9": { in: 10, out: 5 } }])
    expect(
      limitsIn("openrouter", {
        data: [
          {
            id: "acme/one",
            context_length: 9,
            pricing: { prompt: "1" },
            architecture: { input_modalities: ["text"] },
            supported_parameters: ["tools"],
            top_provider: { max_completion_tokens: 3 }
          }
        ]
      })
    ).toEqual(["openrouter", { "acme/one": { in: 9, out: 3, vision: false, efforts: "" } }])
    expect(
      limitsIn("mistral", {
        data: [
          { id: "m-1", max_context_length: 9, capabilities: { vision: true, reasoning: false } },
          { id: "m-2", max_context_length: 9, capabilities: { vision: false, reasoning: true } }
        ]
      })
    ).toEqual(["mistral", { "m-1": { in: 9, vision: true, efforts: "" }, "m-2": { in: 9, vision: false } }])
    expect(
      limitsIn("vllm", {
        data: [
          { id: "m", max_model_len: 8 },
          { id: "\u001b[2J", max_model_len: 1 },
          { id: "n", max_model_len: 0.5 },
          { id: "none" },
          7
        ]
      })
    ).toEqual(["vllm", { m: { in: 8 } }])
    expect(limitsIn("groq", "no list")).toEqual(["groq", {}])
  })
})
