import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Context, Effect, Layer, Redacted, Schema } from "effect"
import { Agent, ChatModel, Content, type Json, Message, Tool, Usage } from "effect-deepagents"
import { ChatModels } from "effect-deepagents/models"
import * as AnthropicChatModel from "effect-deepagents/models/AnthropicChatModel"
import * as OllamaChatModel from "effect-deepagents/models/OllamaChatModel"
import * as OpenAiChatModel from "effect-deepagents/models/OpenAiChatModel"
import * as OpenAiCompatibleChatModel from "effect-deepagents/models/OpenAiCompatibleChatModel"
import { TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import corrections from "../../scripts/models/corrections.json" with { type: "json" }
import { findFacts, pricingOf } from "../../src/models/internal/facts/facts.ts"
import catalogue from "../../src/models/internal/facts/models.json" with { type: "json" }
import { servers } from "../../src/models/internal/servers/servers.ts"
import { makeCallIds } from "../../src/models/internal/turn/callIds.ts"
import { scaled } from "../scale.ts"
import { ask, askAll, request } from "./openai/asking.ts"
import { chunk, usageChunk } from "./openai/wire.ts"
import * as Server from "./servers/openai.ts"

const apiKey = Redacted.make("sk-of-a-test")

const at = (server: Server.Server, spec: string, options: ChatModels.Options = {}) =>
  ChatModels.resolve(spec, { baseURL: server.url, apiKey, ...options })

const ok = Server.chunks([chunk({ content: "ok" }), chunk({}, "stop")])

const hello = request([Message.human("hello")])

const facts = (layer: Layer.Layer<ChatModel.ChatModel, unknown>) =>
  Effect.scoped(Effect.map(Layer.build(layer), (context) => Context.get(context, ChatModel.ChatModel)))

const chat = (baseURL: string, fetch: typeof globalThis.fetch) =>
  OpenAiCompatibleChatModel.layer({ model: "m", baseURL, fetch })

const nowhere = { baseURL: "http://127.0.0.1:1", apiKey }

describe("facts of models by name", () => {
  it.effect("window, vision, prices and structured output, for each provider", () =>
    Effect.gen(function* () {
      for (const [spec, window, sees, output, input] of [
        ["gemini:gemini-3.1-pro-preview", 1_048_576, true, "native", 2],
        ["gemini:gemini-2.5-flash", 1_048_576, true, "tool", 0.3],
        ["xai:grok-4.3", 1_000_000, true, "native", 1.25],
        ["mistral:mistral-large-latest", 262_144, true, "tool", 0.5],
        ["deepseek:deepseek-v4-pro", 1_000_000, false, "tool", 1.32],
        ["groq:openai/gpt-oss-120b", 131_072, false, "tool", 0.15],
        ["together:zai-org/GLM-5.1", 202_752, false, "tool", 1.4],
        ["fireworks:accounts/fireworks/models/kimi-k2p6", 262_144, true, "tool", 0.95],
        ["cerebras:gpt-oss-120b", 131_072, false, "tool", 0.35],
        ["openrouter:anthropic/claude-sonnet-4.5", 200_000, true, "tool", undefined],
        ["openrouter:google/gemini-3.5-flash:free", 1_048_576, true, "tool", undefined],
        ["openrouter:openai/gpt-5.5", 922_000, true, "tool", undefined],
        ["openai:gpt-5.5-2026-04-23", 922_000, true, "native", 5],
        ["anthropic:claude-opus-5-5", 1_000_000, true, "native", 4]
      ] as const) {
        const model = yield* facts(ChatModels.resolve(spec, nowhere))
        assert.strictEqual(model.contextWindowTokens, window, spec)
        assert.strictEqual(model.supportsVision, sees, spec)
        assert.strictEqual(model.structuredOutput, output, spec)
        assert.strictEqual(model.prices?.input, input, spec)
      }
    })
  )

  it.effect("options win over known facts, of an own provider too", () =>
    Effect.gen(function* () {
      const given = {
        contextWindowTokens: 1_234,
        supportsVision: false,
        structuredOutput: "tool" as const,
        prices: { input: 7, output: 8 }
      }
      const own = { name: "mine", layer: () => TestChatModel.reactive(() => TestChatModel.text("ok")) }
      for (const spec of ["gemini:gemini-3.1-pro-preview", "anthropic:claude-opus-5-5", "openai:gpt-5.5", "mine:x"]) {
        const model = yield* facts(ChatModels.resolve(spec, { ...nowhere, ...given, providers: [own] }))
        assert.deepInclude(model, given, spec)
      }
    })
  )

  it.live("warns once of the assumptions for an unknown model, and not for a known or described one", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const warnings = Effect.fnUntraced(function* (spec: string, options?: ChatModels.Options) {
        server.reply(ok, ok)
        const outcomes = yield* askAll(at(server, spec, options), [hello, hello])
        return outcomes.map(({ parts }) => parts.flatMap((part) => (part._tag === "Warning" ? [part.message] : [])))
      })
      const [first, second] = yield* warnings("gemini:gemini-9-ultra")
      assert.strictEqual(first!.length, 1)
      for (const word of [
        "gemini:gemini-9-ultra",
        "1048576 tokens",
        "it reads images",
        "prices are unknown",
        "contextWindowTokens"
      ]) {
        assert.include(first![0], word)
      }
      assert.deepStrictEqual(second, [])
      assert.deepStrictEqual(yield* warnings("gemini:gemini-3.5-flash"), [[], []])
      const told = { contextWindowTokens: 1_000, supportsVision: true }
      assert.deepStrictEqual(yield* warnings("gemini:gemini-9-ultra", told), [[], []])
      assert.strictEqual((yield* warnings("vllm:some/model"))[0]!.length, 1)
    })
  )

  it("tables hold possible values only", () => {
    for (const [name, models] of Object.entries(catalogue.providers)) {
      for (const model of Object.keys(models)) {
        const told = findFacts(name, model)
        if (told === undefined) continue
        const { contextWindowTokens, maxOutputTokens = 1, prices, tiers = {} } = told
        assert.isAtLeast(contextWindowTokens, 2_000, `${name}:${model}`)
        assert.isAtLeast(maxOutputTokens, 1, `${name}:${model}`)
        for (const one of [prices, ...(prices?.long ?? []), ...Object.values(tiers)]) {
          if (one === undefined) continue
          assert.isAtLeast(one.output, one.input * 0.9, `${name}:${model}`)
          assert.isAtMost(one.cacheRead ?? 0, one.input, `${name}:${model}`)
        }
        const sizes = prices?.long?.map(({ above }) => above) ?? []
        assert.deepStrictEqual(
          sizes,
          sizes.toSorted((left, right) => left - right)
        )
        for (const above of sizes) assert.isAtMost(above, contextWindowTokens, `${name}:${model}`)
      }
    }
  })

  it.effect("a model that its provider takes away says so, from 30 days before, with the model in its place", () =>
    Effect.gen(function* () {
      const warned = Effect.gen(function* () {
        const server = yield* Server.make
        server.reply(ok, ok)
        const outcomes = yield* askAll(at(server, "mistral:mistral-large-2512"), [hello, hello])
        return outcomes.flatMap(({ parts }) => parts.flatMap((part) => (part._tag === "Warning" ? [part.message] : [])))
      })
      yield* TestClock.setTime(Date.parse("2027-03-30"))
      assert.deepStrictEqual(yield* warned, [])
      yield* TestClock.setTime(Date.parse("2027-04-01"))
      assert.deepStrictEqual(yield* warned, ["mistral:mistral-large-2512 is taken away by its provider on 2027-04-30."])
      yield* TestClock.setTime(Date.parse("2027-05-01"))
      assert.match((yield* warned)[0] ?? "", /was taken away/)
    })
  )

  it("a correction says why, and stands in the tables", () => {
    for (const [provider, rows] of Object.entries(corrections)) {
      for (const [model, { why, ...row }] of Object.entries(rows)) {
        assert.isAtLeast(why.length, 10, `${provider}:${model}`)
        const models: { readonly [model: string]: object } =
          Object.entries(catalogue.providers).find(([name]) => name === provider)?.[1] ?? {}
        assert.deepInclude(models[model], row, `${provider}:${model}`)
      }
    }
  })

  it("costs follow the size of a request, its tier, and its searches", () => {
    const usage = (inputTokens: number) =>
      Usage.make({ inputTokens, outputTokens: 1_000_000, cacheReadTokens: 100_000 })
    const sol = pricingOf(findFacts("openai", "gpt-6-sol"))
    // 100,000 of the tokens from the cache, at 0.2; a long request costs twice, and one before others, too.
    assert.closeTo(sol(usage(200_000)).cost ?? 0, 0.2 + 0.02 + 10, 1e-9)
    assert.closeTo(sol(usage(300_000)).cost ?? 0, 0.8 + 0.04 + 15, 1e-9)
    assert.closeTo(sol(usage(200_000), { tier: "flex" }).cost ?? 0, 0.1 + 0.01 + 5, 1e-9)
    assert.closeTo(sol(usage(300_000), { tier: "priority", searches: 3 }).cost ?? 0, 1.6 + 0.08 + 30 + 0.03, 1e-9)
    assert.closeTo(sol(usage(200_000), { tier: "constructor" }).cost ?? 0, 0.2 + 0.02 + 10, 1e-9)
    assert.strictEqual(sol({ ...usage(200_000), cost: 7 }, { searches: 9 }).cost, 7)
    const told = pricingOf(findFacts("openai", "gpt-6-sol"), { input: 1, output: 1 })
    assert.isUndefined(told(usage(1)).cost)
  })
})

describe("thinking, in the words of every provider", () => {
  const table: ReadonlyArray<
    readonly [spec: string, thinking: ChatModels.Options["thinking"], fields: Json.JsonObject]
  > = [
    ["gemini:gemini-3.1-pro-preview", "off", { reasoning_effort: "low" }],
    ["gemini:gemini-2.5-flash", "off", { reasoning_effort: "none" }],
    [
      "gemini:gemini-3.5-flash",
      { budget: 800 },
      { extra_body: { google: { thinking_config: { thinking_budget: 800 } } } }
    ],
    ["xai:grok-4.3", "off", { reasoning_effort: "none" }],
    ["xai:grok-4.20-0309-non-reasoning", "high", {}],
    ["mistral:mistral-small-latest", "low", { reasoning_effort: "none" }],
    ["mistral:mistral-small-latest", "medium", { reasoning_effort: "high" }],
    ["mistral:mistral-large-latest", "high", {}],
    ["deepseek:deepseek-v4-pro", "off", { thinking: { type: "disabled" } }],
    ["deepseek:deepseek-v4-pro", "low", { thinking: { type: "enabled" }, reasoning_effort: "high" }],
    ["groq:openai/gpt-oss-120b", "off", { reasoning_effort: "low" }],
    ["groq:llama-3.3-70b-versatile", "high", {}],
    ["together:zai-org/GLM-5.1", "off", { reasoning: { enabled: false } }],
    ["together:zai-org/GLM-5.2", "high", { reasoning: { enabled: true }, reasoning_effort: "high" }],
    ["together:openai/gpt-oss-120b", "medium", { reasoning_effort: "medium" }],
    ["fireworks:accounts/fireworks/models/glm-5p2", "off", { reasoning_effort: "none" }],
    ["cerebras:gpt-oss-120b", "high", { reasoning_effort: "high" }],
    ["openrouter:anthropic/claude-sonnet-4.5", "off", { reasoning: { effort: "none" } }],
    ["openrouter:anthropic/claude-sonnet-4.5", { budget: 4_000 }, { reasoning: { max_tokens: 4_000 } }],
    ["lm-studio:qwen3", "medium", { reasoning_effort: "medium" }],
    ["llama-server:qwen3", "off", { chat_template_kwargs: { enable_thinking: false } }],
    ["vllm:Qwen/Qwen3-32B", "high", { chat_template_kwargs: { enable_thinking: true }, reasoning_effort: "high" }]
  ]

  it.live("each server is told in its own fields, and a model that can't is not told", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      for (const [spec, thinking, fields] of table) {
        const plain = {
          model: spec.slice(spec.indexOf(":") + 1),
          messages: [{ role: "user", content: "hello" }],
          stream: true
        }
        server.reply(ok)
        yield* ask(at(server, spec, { thinking }), hello)
        const { stream_options: _, ...sent } = server.seen.at(-1)!.body
        const body = JSON.parse(
          JSON.stringify(sent).replace(/\[\{"type":"text","text":("hello"),"cache_control":[^\]]*\]/, "$1")
        )
        assert.deepStrictEqual(body, { ...plain, ...fields }, `${spec}, ${JSON.stringify(thinking)}`)
      }
    })
  )

  it.live("a request wins over the layer, null takes it back, and the server's own field is its own", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const sendThinking = Effect.fnUntraced(function* (
        spec: string,
        thinking: "off" | "high",
        parameters: Json.JsonObject
      ) {
        server.reply(ok)
        yield* ask(at(server, spec, { thinking }), request([Message.human("hello")], { parameters }))
        return server.seen.at(-1)!.body
      })
      assert.strictEqual((yield* sendThinking("xai:grok-4.3", "off", { thinking: "high" })).reasoning_effort, "high")
      assert.isUndefined((yield* sendThinking("xai:grok-4.3", "high", { thinking: null })).reasoning_effort)
      assert.strictEqual(
        (yield* sendThinking("xai:grok-4.3", "off", { reasoningEffort: "medium" })).reasoning_effort,
        "medium"
      )
      const deepseek = yield* sendThinking("deepseek:deepseek-v4-pro", "high", { thinking: { type: "adaptive" } })
      assert.deepStrictEqual(deepseek.thinking, { type: "adaptive" })
    })
  )

  it.live("an agent sets it for any model that runs it", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(ok)
      const agent = Agent.make({ name: "a", prompt: "", parameters: { thinking: "low" } })
      yield* Agent.run(agent, "hi").pipe(Effect.provide(at(server, "gemini:gemini-3.5-flash")))
      assert.strictEqual(server.seen[0]!.body.reasoning_effort, "low")
      assert.isUndefined(server.seen[0]!.body.thinking)
    })
  )
})

describe("servers' own ways", () => {
  it.live("Mistral's words about a wrong request are kept", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const detail = [
        { type: "extra_forbidden", loc: ["body", "stream_options"], msg: "Extra inputs are not permitted", input: {} }
      ]
      server.reply(
        Server.plain(422, { object: "error", message: { detail }, type: "invalid_request_error", code: null })
      )
      const { error } = yield* ask(at(server, "mistral:mistral-large-latest"), hello)
      assert.include(error!.message, "body.stream_options: Extra inputs are not permitted")
    })
  )

  it.live("xAI tells the cost of an answer", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(
        Server.chunks([chunk({ content: "ok" }, "stop"), usageChunk({ cost_in_usd_ticks: 37_756_000 })]),
        Server.chunks([
          chunk({ content: "ok" }, "stop"),
          usageChunk({
            prompt_tokens: 12,
            completion_tokens: 2,
            total_tokens: 354,
            prompt_tokens_details: { cached_tokens: 0 },
            completion_tokens_details: { reasoning_tokens: 340 }
          })
        ])
      )
      const [first, second] = yield* askAll(at(server, "xai:grok-4.3"), [hello, hello])
      assert.strictEqual(first!.message!.usage!.cost, 0.0037756)
      assert.deepInclude(second!.message!.usage, { inputTokens: 12, outputTokens: 342, reasoningTokens: 340 })
    })
  )

  const weather = Tool.make("get_weather", {
    description: "",
    parameters: { of: Schema.String },
    execute: ({ of }) => Effect.succeed(`sunny in ${of}`)
  })

  const failedCall = (failed_generation: string) => ({
    error: {
      message: "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
      type: "invalid_request_error",
      code: "tool_use_failed",
      failed_generation
    }
  })

  for (const [how, reply] of [
    ["as an answer", (text: string) => Server.plain(400, failedCall(text))],
    ["in the stream", (text: string) => Server.chunks([chunk({ content: "I look." }), failedCall(text)])]
  ] as const) {
    it.live(`the model can repair a call that Groq could not read, ${how}`, () =>
      Effect.gen(function* () {
        const server = yield* Server.make
        server.reply(
          reply('<function=get_weather>{"of": "Paris"</function>'),
          reply('{"name": "get_weather", "arguments": {"of": "Rome"}}'),
          ok
        )
        const agent = Agent.make({ name: "a", prompt: "", tools: [weather] })
        const { text } = yield* Agent.run(agent, "Weather?").pipe(
          Effect.provide(at(server, "groq:openai/gpt-oss-120b"))
        )
        assert.strictEqual(text, "ok")
        const [first, second] = server.seen
          .at(-1)!
          .body.messages.filter(({ role }: { readonly role: string }) => role === "tool")
        assert.include(first.content, "not a JSON object")
        assert.include(second.content, "sunny in Rome")
      })
    )
  }

  it.live("any other failure stays one", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const failure = failedCall("")
      server.reply(
        Server.plain(429, failure),
        Server.plain(400, { error: { ...failure.error, code: "other", failed_generation: "x" } })
      )
      const layer = at(server, "groq:openai/gpt-oss-120b")
      assert.strictEqual((yield* ask(layer, hello)).error!.reason._tag, "RateLimited")
      assert.strictEqual((yield* ask(layer, hello)).error!.reason._tag, "InvalidRequest")
    })
  )

  it.live("sources come wherever servers put them", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const urls = (message: Message.AiMessage | undefined) =>
        message!.content
          .flatMap((block) => (block.type === "text" ? (block.citations ?? []) : []))
          .map(({ source }) => source.url)
      const found = { results: [{ title: "W", url: "https://example.org/w", content: "sunny", score: 0.9 }] }
      server.reply(
        Server.chunks([
          chunk({ executed_tools: [{ index: 0, type: "search", arguments: "{}", output: "", search_results: found }] }),
          chunk({ content: "Sunny." }, "stop")
        ]),
        Server.chunks([{ ...chunk({ content: "Sunny." }, "stop"), citations: ["https://example.org/w"] }]),
        Server.chunks([
          chunk(
            {
              content: "Sunny.",
              annotations: [
                {
                  type: "url_citation",
                  url_citation: { url: "https://example.org/w", title: "W", start_index: 0, end_index: 5 }
                }
              ]
            },
            "stop"
          )
        ])
      )
      const outcomes = yield* askAll(at(server, "groq:groq/compound"), [hello, hello, hello])
      for (const { message } of outcomes) assert.deepStrictEqual(urls(message), ["https://example.org/w"])
    })
  )
})

describe("sources without end", () => {
  it.live("are no more than a server that says much", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const many = Array.from({ length: 300_000 }, () => ({}))
      server.reply(
        Server.chunks([chunk({ content: "a", annotations: many }, "stop")]),
        Server.chunks([{ ...chunk({ content: "a" }, "stop"), search_results: many }]),
        Server.chunks([{ ...chunk({ content: "a" }, "stop"), citations: many.map(() => "") }])
      )
      const outcomes = yield* askAll(at(server, "groq:groq/compound"), [hello, hello, hello])
      for (const { message } of outcomes) assert.strictEqual(Message.text(message!), "a")
    })
  )
})

describe("files, by server", () => {
  const pdf = Content.file({ base64: "JVBERi0xLjQK", mimeType: "application/pdf", name: "a.pdf" })
  const wav = Content.file({ base64: "UklGRg==", mimeType: "audio/wav", name: "a.wav" })
  const markdown = Content.file({ base64: "IyBIaQ==", mimeType: "text/markdown; charset=utf-8", name: 'x"\n<b>.md' })
  const word = Content.file({ base64: "UEsDBA==", mimeType: "application/vnd.ms-word", name: "a.doc" })
  const broken = Content.file({ base64: "//79", mimeType: "text/plain", name: "latin.txt" })

  it.live("text stands in the text; a PDF and a recording go to models that read them, and are noted elsewhere", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const kinds = Effect.fnUntraced(function* (layer: Layer.Layer<ChatModel.ChatModel, unknown>) {
        server.reply(ok)
        yield* ask(layer, request([Message.human([pdf, wav, markdown, word, broken])]))
        const { content } = server.seen.at(-1)!.body.messages[0]
        const text =
          typeof content === "string"
            ? content
            : content.map((part: { readonly text?: string }) => part.text ?? "").join("\n")
        assert.include(text, `<file name="x' <b>.md">\n# Hi\n</file>`)
        assert.include(text, "a.doc")
        assert.include(text, "latin.txt")
        return typeof content === "string"
          ? []
          : content.flatMap(({ type }: { readonly type: string }) => (type === "text" ? [] : [type]))
      })
      const custom = (options: Partial<OpenAiCompatibleChatModel.Options>) =>
        OpenAiCompatibleChatModel.layer({ model: "m", baseURL: server.url, ...options })
      assert.deepStrictEqual(yield* kinds(custom({})), ["file", "input_audio"])
      assert.deepStrictEqual(yield* kinds(at(server, "openrouter:openai/gpt-5.5")), ["file", "input_audio"])
      assert.deepStrictEqual(yield* kinds(at(server, "mistral:mistral-large-latest")), ["document_url"])
      assert.deepStrictEqual(yield* kinds(at(server, "gemini:gemini-3.5-flash")), ["input_audio"])
      for (const name of [
        "groq",
        "xai",
        "deepseek",
        "together",
        "fireworks",
        "cerebras",
        "lm-studio",
        "llama-server",
        "vllm"
      ]) {
        assert.deepStrictEqual(yield* kinds(at(server, `${name}:m`)), [], name)
      }
    })
  )
})

describe("call ids of so many letters and digits", () => {
  it("are of that form, each its own, the same for the same history, for any earlier ids", () => {
    const id = fc.oneof(
      fc.string({ maxLength: 12 }),
      fc.stringMatching(/^[a-z0-9]{9}$/),
      fc.constantFrom("call_1", "aaaaaaaaa")
    )
    fc.assert(
      fc.property(fc.array(id, { maxLength: 60 }), fc.nat(60), (given, keep) => {
        const ids = makeCallIds(9, true)
        const all = given.map(ids.take)
        for (const one of all) assert.match(one, /^[a-zA-Z0-9]{9}$/)
        assert.strictEqual(new Set(all).size, all.length)
        const again = makeCallIds(9, true)
        assert.deepStrictEqual(given.map(again.take), all)
        again.rewind(keep)
        assert.deepStrictEqual(given.slice(keep).map(again.take), all.slice(keep))
        const [first] = given
        if (first !== undefined && /^[a-zA-Z0-9]{9}$/.test(first)) assert.strictEqual(all[0], first)
      }),
      { numRuns: scaled(300) }
    )
    const ids = makeCallIds(9, true)
    const many = Array.from({ length: 20_000 }, (_, index) => ids.take(`toolu_${index}`))
    assert.strictEqual(new Set(many).size, many.length)
  })
})

describe("Gemini's signatures", () => {
  it.live("older models get no word that stands for one", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const history = [
        Message.human("a"),
        Message.ai("", { toolCalls: [{ id: "c1", name: "f", arguments: {} }] }),
        Message.tool("b", { toolCallId: "c1", toolName: "f" })
      ]
      for (const [model, has] of [
        ["gemini-2.5-flash", false],
        ["gemma-4-31b-it", false],
        ["gemini-3.5-flash", true],
        ["gemini-flash-latest", true]
      ] as const) {
        server.reply(ok)
        yield* ask(at(server, `gemini:${model}`), request(history))
        const [call] = server.seen.at(-1)!.body.messages[1].tool_calls
        assert.strictEqual(call.extra_content !== undefined, has, model)
      }
    })
  )
})

describe("addresses", () => {
  it.effect("a server is known by its address, too", () =>
    Effect.gen(function* () {
      for (const [baseURL, window] of [
        ["https://api.mistral.ai/v1", 262_144],
        ["https://eu.api.mistral.ai/v1", 262_144],
        ["https://api.mistral.ai.evil.example/v1", undefined],
        ["http://localhost:9/v1", undefined]
      ] as const) {
        const layer = OpenAiCompatibleChatModel.layer({ model: "mistral-large-latest", baseURL })
        assert.strictEqual((yield* facts(layer)).contextWindowTokens, window, baseURL)
      }
    })
  )

  it.effect("prices of long requests are checked as all prices are", () =>
    Effect.gen(function* () {
      const long: ReadonlyArray<object> = [{ above: 200_000, input: 2 }]
      const prices = { input: 1, output: 1, long } as Usage.Prices
      const error = yield* Effect.flip(facts(ChatModels.resolve("vllm:m", { prices })))
      assert.include(String(error), "prices.long[0].output")
    })
  )

  it.effect("names each provider's key if it is missing", () =>
    Effect.gen(function* () {
      for (const { key, name } of servers) {
        if (key === undefined) continue
        const error = yield* Effect.flip(
          facts(ChatModels.resolve(`${name}:x`)).pipe(
            Effect.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env: {} })))
          )
        )
        assert.include(String(error), `set ${key}`)
      }
    })
  )

  it.effect("a local server takes its key from its variable, and a refusal names it", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const server = yield* Server.make
        const withEnv = (env: Record<string, string>) =>
          ChatModels.resolve("vllm:m").pipe(
            Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env: { VLLM_BASE_URL: server.url, ...env } })))
          )
        server.reply(ok, Server.plain(401, { error: "unauthorized" }))
        yield* ask(withEnv({ VLLM_API_KEY: "sk-local" }), hello)
        assert.strictEqual(server.seen[0]?.headers.authorization, "Bearer sk-local")
        const { error } = yield* ask(withEnv({}), hello)
        assert.include(error?.message, 'no key was sent; give apiKey, or set VLLM_API_KEY for "vllm:…"')
        // No layer of its own reads a variable for another server.
        for (const layer of [
          OpenAiCompatibleChatModel.layer({ model: "m", baseURL: server.url }),
          OpenAiChatModel.layer({ model: "m", baseURL: server.url })
        ]) {
          server.reply(Server.plain(401, { error: "unauthorized" }))
          assert.match((yield* ask(layer, hello)).error?.message ?? "", /no key was sent; give apiKey\)/)
        }
      })
    )
  )

  it.effect("a server without Responses, asked as OpenAI is, names what to use", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const server = yield* Server.make
        server.reply(Server.plain(404, { error: "Unknown request URL: POST /v1/responses" }))
        const { error } = yield* ask(at(server, "openai:m"), hello)
        assert.include(error?.message, "If this server speaks Chat Completions, use OpenAiCompatibleChatModel")
        for (const missing of [
          { message: "The model `m` was not found", code: "model_not_found" },
          { message: "model 'm' not found, try pulling it first" },
          { message: "The model `m` does not exist", type: "NotFoundError" }
        ]) {
          server.reply(Server.plain(404, { error: missing }))
          const { message = "" } = (yield* ask(at(server, "openai:m"), hello)).error ?? {}
          assert.notInclude(message, "Chat Completions", "the path is right, and the model is not")
          assert.include(message, "is the base URL right, and the model's name?")
        }
        server.reply(Server.plain(404, { error: "no such model" }))
        const compatible = yield* ask(at(server, "vllm:m"), hello)
        assert.include(compatible.error?.message, "is the base URL right, and the model's name?")
      })
    )
  )

  it.live("names a server that is not started with its address, and its start command", () =>
    Effect.gen(function* () {
      const refused = Object.assign(new TypeError("fetch failed"), { cause: { code: "ECONNREFUSED" } })
      const fetch = () => Promise.reject(refused)
      for (const [layer, words] of [
        [
          OllamaChatModel.layer({ model: "m", fetch }),
          /^ollama\/m: nothing listens at http:\/\/localhost:11434; start Ollama \(ollama serve\), or change its address, baseURL$/
        ],
        [
          chat("http://user:pw@127.0.0.1:1234/v1", fetch),
          /nothing listens at http:\/\/127\.0\.0\.1:1234; start the server of LM Studio \(lms server start\), or/
        ],
        [
          AnthropicChatModel.layer({ model: "m", apiKey, baseURL: "http://localhost:9", fetch }),
          /nothing listens at http:\/\/localhost:9; start the server, or change its address, baseURL$/
        ],
        [chat("http://localhost:9/v1", fetch), /nothing listens at http:\/\/localhost:9; start the server, or/],
        [
          chat("https://models.example/v1?key=secret", fetch),
          /ECONNREFUSED at https:\/\/models\.example; is the address right\?$/
        ]
      ] as const) {
        const { error } = yield* ask(layer, hello)
        assert.match(error?.message ?? "", words)
        assert.strictEqual(error?.isRefused, !words.source.includes("models"))
      }
    })
  )
})
