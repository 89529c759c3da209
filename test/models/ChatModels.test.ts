import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Context, Effect, Layer, Redacted } from "effect"
import { Agent, ChatModel, type ModelError } from "effect-deepagents"
import { ChatModels } from "effect-deepagents/models"
import * as AnthropicChatModel from "effect-deepagents/models/AnthropicChatModel"
import * as BedrockChatModel from "effect-deepagents/models/BedrockChatModel"
import * as OpenAiChatModel from "effect-deepagents/models/OpenAiChatModel"
import * as OpenAiCompatibleChatModel from "effect-deepagents/models/OpenAiCompatibleChatModel"
import { TestChatModel } from "effect-deepagents/testing"
import * as OpenAiServer from "./servers/openai.ts"

const agent = Agent.make({ name: "a", prompt: "", parameters: { temperature: 0.5 } })

const scripted = (name: string, seen: Array<unknown>) => ({
  name,
  layer: (model: string) =>
    TestChatModel.reactive((request) => {
      seen.push(request.parameters)
      return TestChatModel.text(`I am ${model}`)
    })
})

const unauthorised = () => Response.json({ error: { message: "wrong key" } }, { status: 401 })

describe("ChatModels.resolve", () => {
  it.effect("cuts at the first colon, and finds a provider in any case, with or without - and _", () =>
    Effect.gen(function* () {
      const providers = [scripted("my-provider", [])]
      for (const spec of ["my-provider:a:b", "My_Provider:a:b", "MYPROVIDER:a:b"]) {
        const result = yield* Agent.run(agent, "hi").pipe(Effect.provide(ChatModels.resolve(spec, { providers })))
        assert.strictEqual(result.text, "I am a:b")
      }
    })
  )

  it.effect("an unknown provider is a typed error that lists the known; so is a name without a model", () =>
    Effect.gen(function* () {
      for (const spec of ["acme:x", "anthropic", "anthropic:", "", null, undefined]) {
        const error = yield* Effect.flip(
          Agent.run(agent, "hi").pipe(Effect.provide(ChatModels.resolve(spec as string)))
        )
        assert.strictEqual(error._tag, "UnknownProvider")
        for (const known of ["anthropic", "openai", "bedrock", "llama", "ollama"]) assert.include(error.message, known)
      }
    })
  )

  it.effect("suggests a provider for a misspelt one", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Agent.run(agent, "hi").pipe(Effect.provide(ChatModels.resolve("opnai:x"))))
      assert.include(error.message, 'Did you mean "openai"?')
    })
  )

  it.effect("a key that is not there is named, for each provider that needs one", () =>
    Effect.gen(function* () {
      for (const [spec, key] of [
        ["anthropic:claude-x", "ANTHROPIC_API_KEY"],
        ["openai:gpt-x", "OPENAI_API_KEY"],
        ["openrouter:a/b", "OPENROUTER_API_KEY"],
        ["groq:x", "GROQ_API_KEY"],
        ["deepseek:x", "DEEPSEEK_API_KEY"],
        ["together:x", "TOGETHER_API_KEY"],
        ["mistral:x", "MISTRAL_API_KEY"],
        ["xai:x", "XAI_API_KEY"],
        ["gemini:x", "GEMINI_API_KEY"]
      ] as const) {
        const error = yield* Effect.flip(
          Agent.run(agent, "hi").pipe(
            Effect.provide(ChatModels.resolve(spec)),
            Effect.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env: { GROQ_API_KEY: " " } })))
          )
        )
        assert.strictEqual(error._tag, "ModelError")
        assert.match(error.message, new RegExp(`^[^ ]+: there is no API key: set ${key}, or give apiKey$`))
        assert.notInclude(error.message, "was not accepted")
      }
    })
  )

  it.live("a key that no header can have is told as one, and not tried again", () =>
    Effect.gen(function* () {
      for (const spec of ["anthropic:claude-x", "openai:gpt-x", "groq:x", "gemini:x"]) {
        for (const key of ["sk-canary-…", "sk-canary\n1"]) {
          const options = { apiKey: Redacted.make(key), baseURL: "http://127.0.0.1:1" }
          const error = yield* Effect.flip(
            Agent.run(agent, "hi").pipe(Effect.provide(ChatModels.resolve(spec, options)))
          )
          assert(error._tag === "ModelError")
          assert.strictEqual(error.reason._tag, "Authentication", `${spec} ${error.message}`)
          assert.match(error.message, /has a character that can't be sent.*copy the key anew/)
          assert.notInclude(error.message, "canary")
        }
      }
    })
  )

  it.effect("an address without its scheme is told as one, and nothing is sent to the provider in its place", () =>
    Effect.gen(function* () {
      for (const spec of ["anthropic:claude-x", "openai:gpt-x", "groq:x", "vllm:x", "gemini:x"]) {
        for (const baseURL of ["nonsense", "localhost:8000/v1", "ftp://x", ""]) {
          const options = { apiKey: Redacted.make("sk-test"), baseURL }
          const run = Agent.run(agent, "hi").pipe(Effect.provide(ChatModels.resolve(spec, options)))
          const error = yield* Effect.flip(run)
          const wanted = /the base URL must begin with https:\/\/ or http:\/\//
          assert.match(error.message, wanted, `${spec} ${baseURL}`)
        }
      }
    })
  )

  it.live("a variable moves OpenAI, and its key goes there", () =>
    Effect.gen(function* () {
      const server = yield* OpenAiServer.make
      server.reply(OpenAiServer.plain(400, { error: { message: "not today" } }))
      const env = { OPENAI_BASE_URL: `${server.url}/v1`, OPENAI_API_KEY: "sk-moved" }
      const error = yield* Effect.flip(
        Agent.run(agent, "hi").pipe(
          Effect.provide(ChatModels.resolve("openai:gpt-x")),
          Effect.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env })))
        )
      )
      assert.include(String(error), "not today")
      assert.strictEqual(server.seen[0]?.headers.authorization, "Bearer sk-moved")
    }).pipe(Effect.scoped)
  )

  it.live("a refused key, and an address where nothing listens, are told with their variables", () =>
    Effect.gen(function* () {
      const server = yield* OpenAiServer.make
      const keys = { ANTHROPIC_API_KEY: "sk-canary", OPENAI_API_KEY: "sk-canary", GEMINI_API_KEY: "sk-canary" }
      const env = { ...keys, GROQ_API_KEY: "sk-canary", VLLM_API_KEY: "sk-canary", OLLAMA_API_KEY: "sk-canary" }
      const failureOf = (layer: Layer.Layer<ChatModel.ChatModel, unknown>, variables: Record<string, string> = env) =>
        Effect.map(
          Effect.flip(
            Agent.run(agent, "hi").pipe(
              Effect.provide(layer),
              Effect.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env: variables })))
            )
          ),
          String
        )
      for (const [layer, variable] of [
        [ChatModels.resolve("anthropic:claude-x", { baseURL: server.url }), "ANTHROPIC_API_KEY"],
        [AnthropicChatModel.layerConfig({ model: "claude-x", baseURL: server.url }), "ANTHROPIC_API_KEY"],
        [ChatModels.resolve("openai:gpt-x", { baseURL: server.url }), "OPENAI_API_KEY"],
        [OpenAiChatModel.layer({ model: "gpt-x", fetch: () => Promise.resolve(unauthorised()) }), "OPENAI_API_KEY"],
        [ChatModels.resolve("gemini:x", { baseURL: server.url }), "GEMINI_API_KEY"],
        [ChatModels.resolve("groq:x", { baseURL: server.url }), "GROQ_API_KEY"],
        [ChatModels.resolve("vllm:x", { baseURL: server.url }), "VLLM_API_KEY"]
      ] as const) {
        server.reply(OpenAiServer.plain(401, { error: { message: "wrong key" } }))
        const message = yield* failureOf(layer)
        assert.match(message, new RegExp(`status 401.*wrong key.*its variable is ${variable}`))
        assert.notInclude(message, "canary")
      }
      const apiKey = Redacted.make("sk-own")
      server.reply(OpenAiServer.plain(401, { error: { message: "wrong key" } }))
      assert.notInclude(yield* failureOf(ChatModels.resolve("groq:x", { baseURL: server.url, apiKey })), "GROQ_API_KEY")
      const { url } = yield* Effect.scoped(OpenAiServer.make)
      const message = yield* failureOf(ChatModels.resolve("ollama:m"), { OLLAMA_BASE_URL: url })
      assert.match(message, /nothing listens at http:.*, baseURL or OLLAMA_BASE_URL$/)
    }).pipe(Effect.scoped)
  )

  it.effect("profiles: the provider's, the exact model's over them, a request's over all", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const profiles: ChatModels.Options["profiles"] = [
        { provider: "mine", model: "small", parameters: { top_p: 0.2, seed: 7 } },
        { provider: "Mine", parameters: { top_p: 0.9, top_k: 40, temperature: 1 } },
        { provider: "other", parameters: { top_k: 1 } }
      ]
      const options = { providers: [scripted("mine", seen)], profiles }
      yield* Agent.run(agent, "hi").pipe(Effect.provide(ChatModels.resolve("mine:small", options)))
      yield* Agent.run(agent, "hi").pipe(Effect.provide(ChatModels.resolve("mine:large", options)))
      assert.deepStrictEqual(seen, [
        { top_p: 0.2, top_k: 40, temperature: 0.5, seed: 7 },
        { top_p: 0.9, top_k: 40, temperature: 0.5 }
      ])
    })
  )

  it.effect("options that are undefined are as if they were not given, for every provider", () =>
    Effect.gen(function* () {
      const nothing = {
        baseURL: undefined,
        headers: undefined,
        fetch: undefined,
        timeout: undefined,
        parameters: undefined,
        temperature: undefined,
        contextWindowTokens: undefined,
        supportsVision: undefined,
        prices: undefined,
        structuredOutput: undefined
      }
      const apiKey = Redacted.make("a-key-of-a-test")
      const facts = (layer: Layer.Layer<ChatModel.ChatModel, ModelError.ModelError>) =>
        Effect.map(Layer.build(layer), (context) => {
          const { makeSession: _, ...rest } = Context.get(context, ChatModel.ChatModel)
          return rest
        })
      for (const [given, bare] of [
        [
          AnthropicChatModel.layer({
            ...nothing,
            model: "claude-opus-5-5",
            apiKey,
            thinking: undefined,
            cache: undefined
          }),
          AnthropicChatModel.layer({ model: "claude-opus-5-5", apiKey })
        ],
        [
          BedrockChatModel.layer({ ...nothing, model: "anthropic.claude-opus-5-5-v1:0", region: undefined }),
          BedrockChatModel.layer({ model: "anthropic.claude-opus-5-5-v1:0" })
        ],
        [
          OpenAiChatModel.layer({ ...nothing, model: "gpt-5.5", apiKey, azure: undefined, store: undefined }),
          OpenAiChatModel.layer({ model: "gpt-5.5", apiKey })
        ],
        [
          OpenAiCompatibleChatModel.layer({
            ...nothing,
            model: "m",
            apiKey,
            provider: undefined,
            thinkTags: undefined
          }),
          OpenAiCompatibleChatModel.layer({ model: "m", apiKey })
        ]
      ] as const) {
        assert.deepStrictEqual(yield* facts(given), yield* facts(bare))
      }
    }).pipe(Effect.scoped)
  )
})
