import { expect, it } from "@effect/vitest"
import { Config, ConfigProvider, Effect, Layer, Redacted, Schema, Stream } from "effect"
import { Agent, ChatModel, Message, Tool } from "effect-deepagents"
import * as AnthropicChatModel from "effect-deepagents/models/AnthropicChatModel"
import * as BedrockChatModel from "effect-deepagents/models/BedrockChatModel"
import { afterEach, describe, vi } from "vitest"
import { answer, error, json, say, serve, stream, toSse } from "../servers/anthropic.ts"
import { claude, askToEnd, failure, key, request, tool, turn } from "./asking.ts"

afterEach(() => {
  vi.unstubAllEnvs()
})

/** The request that an option leads to. */
const sendRequest = (options: Partial<AnthropicChatModel.Options>, asked?: ChatModel.ModelRequest) =>
  Effect.gen(function* () {
    const server = yield* serve(say("ok"))
    yield* turn(claude(server, options), asked)
    return server.requests[0]!
  })

describe("a request", () => {
  it.live("holds the conversation, and only the set parameters", () =>
    Effect.gen(function* () {
      const { body, headers, method, url } = yield* sendRequest({ cache: "off" })
      expect([method, url]).toEqual(["POST", "/v1/messages"])
      expect(body).toEqual({
        model: "claude-opus-5-5",
        system: [{ type: "text", text: "You are an agent." }],
        messages: [{ role: "user", content: [{ type: "text", text: "Hello" }] }],
        max_tokens: 32_000,
        stream: true
      })
      expect(headers).toMatchObject({ authorization: `Bearer ${key}`, "anthropic-version": "2026-10-21" })
      expect(headers["anthropic-beta"]).toBeUndefined()
    })
  )

  it.live("has Claude's own client tools in the place of the agent's tools of their names", () =>
    Effect.gen(function* () {
      const serverTools = [
        { type: "bash_20250124", name: "bash" },
        { type: "text_editor_20250728", name: "str_replace_based_edit_tool" },
        { type: "memory_20250818", name: "memory" },
        { type: "computer_20251124", name: "computer", display_width_px: 800, display_height_px: 600 },
        { type: "web_search_20260318", name: "web_search" }
      ]
      const names = ["memory", "other", "bash", "computer", "str_replace_based_edit_tool"]
      const { body } = yield* sendRequest({ serverTools, cache: "off" }, request({ tools: names.map(tool) }))
      expect(body.tools.slice(0, -1)).toEqual(serverTools)
      expect(body.tools.at(-1).name).toBe("other")
      for (const left of ["memory", "bash", "computer", "str_replace_based_edit_tool"]) {
        const server = yield* serve(say("ok"))
        const tools = names.filter((name) => name !== left).map(tool)
        const { detail, reason } = yield* failure(claude(server, { serverTools }), request({ tools }))
        expect(reason._tag).toBe("Unsupported")
        expect(detail).toContain(`give the agent a tool named ${left}`)
        // Nothing is paid for, and a request beside the turns is no matter of tools.
        expect(server.requests).toEqual([])
        yield* turn(claude(server, { serverTools }), request({ purpose: "summary" }))
      }
    })
  )

  it.live("carries every option in the API's words", () =>
    Effect.gen(function* () {
      const { body, headers } = yield* sendRequest({
        maxTokens: 100,
        stopSequences: ["END"],
        thinking: "adaptive",
        showThinking: true,
        effort: "low",
        serviceTier: "standard_only",
        metadata: { userId: "u-1" },
        betas: ["context-1m-2025-08-07", "other-1"],
        headers: { "x-team": "blue" }
      })
      expect(body).toMatchObject({
        max_tokens: 100,
        stop_sequences: ["END"],
        thinking: { type: "adaptive", display: "summarized" },
        output_config: { effort: "low" },
        service_tier: "standard_only",
        metadata: { user_id: "u-1" }
      })
      expect(headers).toMatchObject({ "anthropic-beta": "context-1m-2025-08-07,other-1", "x-team": "blue" })
    })
  )

  it.live("with sampling parameters uses the last API version that knows them", () =>
    Effect.gen(function* () {
      const { body, headers } = yield* sendRequest({ model: "claude-sonnet-4-5", temperature: 0.5, topP: 0.9, topK: 4 })
      expect(body).toMatchObject({ temperature: 0.5, top_p: 0.9, top_k: 4 })
      expect(headers["anthropic-version"]).toBe("2023-06-01")
    })
  )

  it.live("thinks within a budget, between calls too on request, and leaves room for the answer", () =>
    Effect.gen(function* () {
      const { body, headers } = yield* sendRequest({
        model: "claude-sonnet-4-5",
        thinking: { budget: 40_000, interleaved: true }
      })
      expect(body.thinking).toEqual({ type: "enabled", budget_tokens: 40_000 })
      expect(body.max_tokens).toBe(44_096)
      expect(headers["anthropic-beta"]).toBe("interleaved-thinking-2025-05-14")
    })
  )

  it.live.each([
    ["claude-opus-5", "disabled"],
    ["claude-sonnet-5-5", "between_tools"]
  ])("thinking is turned off as %s wants it", ([model = "", type]) =>
    Effect.gen(function* () {
      expect((yield* sendRequest({ model, thinking: "off" })).body.thinking).toEqual({ type })
    })
  )

  it.live("of an unknown model has safe defaults", () =>
    Effect.gen(function* () {
      const { body } = yield* sendRequest({ model: "my-own-model" })
      expect([body.model, body.max_tokens]).toEqual(["my-own-model", 8_192])
    })
  )

  it.live("its own parameters win over the layer's, by either name, and null takes one out", () =>
    Effect.gen(function* () {
      const { body } = yield* sendRequest(
        { maxTokens: 100, effort: "low", stopSequences: ["END"], parameters: { speed: "fast", container: "c" } },
        request({
          parameters: { maxTokens: 7, stop_sequences: null, container: null, effort: "high" },
          outputSchema: { type: "object", properties: {} }
        })
      ).pipe(Effect.catchTag("ModelError", (failed) => Effect.succeed({ body: failed.detail })))
      // `speed` is not in the rules of the test server: it came through.
      expect(body).toBe("against the rules: speed: Extra inputs are not permitted")
      const plain = yield* sendRequest(
        { maxTokens: 100, effort: "low", stopSequences: ["END"] },
        request({
          parameters: { maxTokens: 7, stop_sequences: null, effort: "high" },
          outputSchema: { type: "object", properties: {} }
        })
      )
      expect(plain.body).toMatchObject({
        max_tokens: 7,
        output_config: { effort: "high", format: { type: "json_schema" } }
      })
      expect(plain.body.stop_sequences).toBeUndefined()
    })
  )

  it.live.each(["messages", "model", "system", "tools", "stream"])("parameters can't set %s", (name) =>
    Effect.gen(function* () {
      const server = yield* serve(say("ok"))
      const failed = yield* failure(claude(server), request({ parameters: { [name]: "x" } }))
      expect([failed.reason._tag, server.requests.length]).toEqual(["InvalidRequest", 0])
      expect(failed.detail).toContain(`"${name}"`)
    })
  )
})

describe("tools", () => {
  const offered = request({ tools: [tool("search"), tool("read_file")] })

  it.live("are told with their schema; to choose freely nothing is said", () =>
    Effect.gen(function* () {
      const { body } = yield* sendRequest({ cache: "off" }, offered)
      expect(body.tools[0]).toEqual({
        name: "search",
        description: "Does search.",
        input_schema: { type: "object", properties: { of: { type: "string" } } }
      })
      expect(body.tool_choice).toBeUndefined()
    })
  )

  it.live.each<[ChatModel.ToolChoice, unknown]>([
    ["none", { type: "none" }],
    ["required", { type: "any" }],
    [{ tool: "search" }, { type: "tool", name: "search" }]
  ])("tool choice %j", ([toolChoice, expected]) =>
    Effect.gen(function* () {
      const { body } = yield* sendRequest({ model: "claude-opus-5" }, { ...offered, toolChoice })
      expect(body.tool_choice).toEqual(expected)
    })
  )

  it.live.each<Partial<AnthropicChatModel.Options>>([
    { model: "claude-opus-5-5" },
    { model: "claude-sonnet-4-5", thinking: { budget: 2_048 } }
  ])("a model that can't be made to call is asked to: %j", (options) =>
    Effect.gen(function* () {
      const { body } = yield* sendRequest({ ...options, cache: "off" }, { ...offered, toolChoice: { tool: "search" } })
      expect(body.tool_choice).toBeUndefined()
      expect(body.messages.at(-1).content.at(-1)).toEqual({ type: "text", text: "Call the tool search now." })
    })
  )

  it.live("a name that the API refuses comes back as the tool's own", () =>
    Effect.gen(function* () {
      const server = yield* serve((got) => stream(answer([{ call: got.body.tools[0].name, id: "a", input: {} }])))
      const parts = yield* turn(claude(server), request({ tools: [tool("mcp.server/search")] }))
      expect(server.requests[0]?.body.tools[0].name).toBe("mcp_server_search")
      expect(parts[0]).toMatchObject({ _tag: "ToolCallStart", name: "mcp.server/search" })
      expect(parts.at(-1)).toMatchObject({ message: { toolCalls: [{ name: "mcp.server/search" }] } })
    })
  )

  it.live("a schema with alternatives at the top becomes acceptable to the API", () =>
    Effect.gen(function* () {
      const either = {
        ...tool("either"),
        parameters: { anyOf: [{ type: "object", properties: { a: { type: "string" } } }] }
      }
      expect((yield* sendRequest({}, request({ tools: [either] }))).body.tools[0].input_schema.type).toBe("object")
    })
  )
})

describe("an answer in a schema", () => {
  const outputSchema = {
    type: "object",
    properties: { city: { type: "string", minLength: 2 }, at: { type: "string", format: "date-time" } },
    required: ["city"],
    additionalProperties: false
  }

  it.live("is requested by the API's own means, without unenforced parts", () =>
    Effect.gen(function* () {
      const { body } = yield* sendRequest({}, request({ outputSchema }))
      expect(body.output_config).toEqual({
        format: {
          type: "json_schema",
          schema: {
            type: "object",
            properties: {
              city: { type: "string", description: "(minLength: 2)" },
              at: { type: "string", format: "date-time" }
            },
            required: ["city"],
            additionalProperties: false
          }
        }
      })
    })
  )

  it.live("that the API has no form for is asked for in words", () =>
    Effect.gen(function* () {
      const tree = {
        type: "object",
        properties: { children: { type: "array", items: { $ref: "#/$defs/Node" } } },
        required: ["children"],
        additionalProperties: false,
        $defs: {
          Node: {
            type: "object",
            properties: { children: { type: "array", items: { $ref: "#/$defs/Node" } } },
            required: ["children"],
            additionalProperties: false
          }
        }
      }
      const { body } = yield* sendRequest({}, request({ outputSchema: tree }))
      expect(body.output_config).toBeUndefined()
      expect(body.system.at(-1).text).toContain('"#/$defs/Node"')
    })
  )

  it.live("comes out of an agent decoded, natively if the model can and by a tool if not", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "a", prompt: "p", tools: [], output: Schema.Struct({ city: Schema.String }) })
      const native = yield* serve(say('{"city": "Bern"}'))
      const byTool = yield* serve((got) =>
        stream(answer([{ call: got.body.tools.at(-1).name, id: "a", input: { city: "Bern" } }]))
      )
      const ask = Agent.run(agent, "where?")
      const one = yield* Effect.provide(ask, claude(native))
      const two = yield* Effect.provide(ask, claude(byTool, { model: "claude-opus-4-1" }))
      expect([one.output, two.output]).toEqual([{ city: "Bern" }, { city: "Bern" }])
      expect(native.requests[0]?.body.output_config.format.type).toBe("json_schema")
      expect(byTool.requests[0]?.body.output_config).toBeUndefined()
    })
  )
})

it.live("an agent goes round: calls, results, an answer, each request valid", () =>
  Effect.gen(function* () {
    const add = Tool.make("add", {
      description: "Adds",
      parameters: { left: Schema.Finite, right: Schema.Finite },
      execute: ({ left, right }) => Effect.succeed(String(left + right))
    })
    const server = yield* serve(
      stream(
        answer([
          { thinking: "hm", signature: "s" },
          { call: "add", id: "toolu_1", input: { left: 1, right: 2 } },
          { call: "add", id: "toolu_2", input: '{"left": 3' }
        ])
      ),
      say("3, and the other was not JSON")
    )
    const agent = Agent.make({ name: "adder", prompt: "You add.", tools: [add] })
    const result = yield* Effect.provide(Agent.run(agent, "1 + 2, 3 +"), claude(server))
    expect(result.text).toBe("3, and the other was not JSON")
    const [, second] = server.requests
    expect(second?.body.messages[2].content).toMatchObject([
      { type: "tool_result", tool_use_id: "toolu_1", content: [{ text: "3" }] },
      { type: "tool_result", tool_use_id: "toolu_2", is_error: true }
    ])
    expect(result.usage.cost).toBeGreaterThan(0)
  })
)

describe("the layer", () => {
  const modelOf = (options: Partial<AnthropicChatModel.Options>) =>
    Effect.provide(ChatModel.ChatModel, claude({ url: "http://127.0.0.1:9", requests: [] }, options))

  it.effect("knows its model", () =>
    Effect.gen(function* () {
      expect(yield* modelOf({ model: "claude-sonnet-4-5-20250929" })).toMatchObject({
        modelId: "claude-sonnet-4-5-20250929",
        provider: "anthropic",
        supportsVision: true,
        contextWindowTokens: 200_000,
        structuredOutput: "native",
        prices: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 }
      })
      expect(yield* modelOf({ cache: { ttl: "1h" } })).toMatchObject({ prices: { cacheWrite: 8 } })
    })
  )

  it.effect("takes facts about an unknown model", () =>
    Effect.gen(function* () {
      const prices = { input: 1, output: 2 }
      const overrides = { contextWindowTokens: 5, supportsVision: true, prices, structuredOutput: "native" } as const
      expect(yield* modelOf({ model: "mine", ...overrides })).toMatchObject(overrides)
      const unknown = yield* modelOf({ model: "mine" })
      expect(unknown).toMatchObject({ supportsVision: false, structuredOutput: "tool", contextWindowTokens: undefined })
      expect(unknown.prices).toBeUndefined()
    })
  )

  it.live("a model without vision is not sent images", () =>
    Effect.gen(function* () {
      const messages = [Message.human("see", { images: [{ url: "https://example.com/a.png" }] })]
      const { raw } = yield* sendRequest({ supportsVision: false }, request({ messages }))
      expect(raw).not.toContain("example.com")
    })
  )

  it.live("prompts beyond 100,000 tokens cost more if the model's prices say so", () =>
    Effect.gen(function* () {
      const usage = (input: number) => ({ usage: { input_tokens: input }, finalUsage: { output_tokens: 1_000_000 } })
      const server = yield* serve(
        stream(answer([{ text: "a" }], usage(100_000))),
        stream(answer([{ text: "a" }], usage(100_001)))
      )
      const layer = claude(server, { model: "claude-haiku-5-5" })
      expect((yield* askToEnd(layer)).usage?.cost).toBeCloseTo(0.01 + 0.5, 6)
      expect((yield* askToEnd(layer)).usage?.cost).toBeCloseTo(0.0500005 + 2.5, 6)
    })
  )

  it.live("reads its key, and any other option, from Config", () =>
    Effect.gen(function* () {
      const server = yield* serve(say("ok"))
      const layer = AnthropicChatModel.layerConfig({
        model: Config.String("MODEL"),
        baseURL: server.url,
        maxTokens: 9
      })
      const provider = ConfigProvider.fromUnknown({ ANTHROPIC_API_KEY: "from-config", MODEL: "claude-opus-5" })
      yield* Effect.provideService(turn(layer), ConfigProvider.ConfigProvider, provider)
      expect(server.requests[0]?.headers["authorization"]).toBe("Bearer from-config")
      expect(server.requests[0]?.body).toMatchObject({ model: "claude-opus-5", max_tokens: 9 })
    })
  )

  it.live("names a wrong option before it looks for a key", () =>
    Effect.gen(function* () {
      const options: object = { model: "claude-opus-5", maxToken: 9 }
      const bedrock: object = { model: "anthropic.claude", maxToken: 9 }
      const layers = [
        AnthropicChatModel.layerConfig(options as AnthropicChatModel.Options),
        BedrockChatModel.layerConfig(bedrock as BedrockChatModel.Options)
      ]
      for (const layer of layers) {
        const build = Effect.scoped(Layer.build(layer))
        const empty = ConfigProvider.fromUnknown({})
        const error = yield* Effect.flip(Effect.provideService(build, ConfigProvider.ConfigProvider, empty))
        expect(error.message).toContain('There is no option "maxToken"')
      }
    })
  )

  it.live("without a key leaves it to the SDK to find one", () =>
    Effect.gen(function* () {
      vi.stubEnv("ANTHROPIC_API_KEY", "from-env")
      const server = yield* serve(say("ok"))
      yield* turn(AnthropicChatModel.layer({ model: "claude-opus-5", baseURL: server.url }))
      expect(server.requests[0]?.headers["authorization"]).toBe("Bearer from-env")
    })
  )

  it.live("takes another fetch and another place", () =>
    Effect.gen(function* () {
      const server = yield* serve(say("ok"))
      const urls: Array<string> = []
      const fetch: typeof globalThis.fetch = (input, init) => {
        urls.push(new Request(input).url)
        return globalThis.fetch(`${server.url}/v1/messages`, init)
      }
      yield* turn(claude({ url: "https://gateway.example/anthropic/", requests: [] }, { fetch }))
      expect(urls).toEqual(["https://gateway.example/anthropic/v1/messages"])
    })
  )

  it.live("keeps the connection from turn to turn, though the response ends after the answer", () =>
    Effect.gen(function* () {
      const raw = `${toSse(answer([{ text: "ok" }]))}: bye\n\n`
      const server = yield* serve(stream(raw, { cuts: (length) => [length - 7], pause: 40 }))
      const layer = claude(server)
      const ask = Effect.gen(function* () {
        const session = yield* ChatModel.open(yield* ChatModel.ChatModel)
        for (let round = 0; round < 3; round++) {
          yield* Stream.runDrain(session.nextTurn(request()))
          yield* Effect.sleep("500 millis")
        }
      })
      yield* Effect.provide(ask, layer)
      expect([server.requests.length, server.connections()]).toEqual([3, 1])
    })
  )
})

describe("countTokens", () => {
  const options = (url: string): AnthropicChatModel.Options => ({
    model: "claude-opus-5-5",
    apiKey: Redacted.make(key),
    baseURL: url,
    maxTokens: 5,
    serviceTier: "auto"
  })

  it.live("asks for the prompt that the layer would send", () =>
    Effect.gen(function* () {
      const server = yield* serve(json(200, { input_tokens: 42 }), say("ok"))
      const asked = request({
        tools: [tool("search")],
        messages: [Message.human("Hello"), Message.ai("hi"), Message.human("and?")]
      })
      expect(yield* AnthropicChatModel.countTokens(options(server.url), asked)).toBe(42)
      yield* turn(AnthropicChatModel.layer(options(server.url)), asked)
      const [count, ask] = server.requests
      expect(count?.url).toBe("/v1/messages/count_tokens")
      const { max_tokens: _, service_tier: __, stream: ___, ...prompt } = ask?.body ?? {}
      expect(count?.body).toEqual(prompt)
    })
  )

  it.live("fails as a turn does", () =>
    Effect.gen(function* () {
      const server = yield* serve(error(429, "rate_limit_error", "slow"), json(200, { tokens: "many" }))
      const count = Effect.flip(
        AnthropicChatModel.countTokens(options(server.url), { messages: [Message.human("Hello")] })
      )
      expect((yield* count).reason._tag).toBe("RateLimited")
      expect((yield* count).reason._tag).toBe("BadResponse")
    })
  )
})
