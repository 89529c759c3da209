import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Duration, Effect, Layer, Redacted, Schema } from "effect"
import { Agent, ChatModel, Content, Message, ModelError, Sources, Tool } from "effect-deepagents"
import * as GeminiChatModel from "effect-deepagents/models/GeminiChatModel"
import { gemini } from "./ai-sdk/models.ts"
import { askAll, type Outcome, request } from "./openai/asking.ts"
import * as OpenAi from "./servers/openai.ts"

const key = "AIza-canary-key-0123456789"

const at = (server: OpenAi.Server, options: Partial<GeminiChatModel.Options> = {}) =>
  GeminiChatModel.layer({ model: "gemini-3.5-flash", baseURL: server.url, apiKey: Redacted.make(key), ...options })

const hello = [Message.human("Hello")]

const stream = (parts: ReadonlyArray<object>, finishReason: string | null = "STOP", more: object = {}): OpenAi.Reply =>
  OpenAi.raw(gemini(parts, finishReason, more))

const events = (...list: ReadonlyArray<unknown>): OpenAi.Reply =>
  OpenAi.raw(list.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""))

/** Asks with one reply, and looks at the request. */
const ask = Effect.fnUntraced(function* (
  reply: OpenAi.Reply,
  over: Partial<ChatModel.ModelRequest> = {},
  options: Partial<GeminiChatModel.Options> = {},
  messages: ReadonlyArray<Message.Message> = hello
) {
  const server = yield* OpenAi.make
  server.reply(reply)
  const [outcome] = yield* askAll(at(server, options), [request(messages, over)])
  return { outcome: outcome as Outcome, body: server.seen[0]?.body, seen: server.seen[0] }
})

const tools: ReadonlyArray<ChatModel.ToolDefinition> = [
  { name: "files.read", description: "Reads", parameters: { type: "object", properties: {} }, annotations: {} }
]

const weather = Tool.make("weather", {
  description: "Tells the weather",
  parameters: { city: Schema.String },
  execute: ({ city }) => Effect.succeed(`sunny in ${city}`)
})

describe("GeminiChatModel", () => {
  it.live("an agent with a tool sends back the proofs of its thoughts, in their places", () =>
    Effect.gen(function* () {
      const server = yield* OpenAi.make
      server.reply(
        stream([
          { text: "Let me ", thought: true },
          { text: "see.", thought: true },
          { text: "Looking." },
          { functionCall: { id: "c1", name: "weather", args: { city: "Ulm" } }, thoughtSignature: "sig_1" },
          { functionCall: { name: "weather", args: { city: "Bonn" } } }
        ]),
        stream([{ text: "Sunny." }, { text: "", thoughtSignature: "sig_2" }]),
        stream([{ text: "Still." }])
      )
      const agent = Agent.make({ name: "a", prompt: "You tell the weather.", tools: [weather] })
      const model = at(server)
      const first = yield* Agent.run(agent, "Weather?").pipe(Effect.provide(model))
      assert.strictEqual(first.text, "Sunny.")
      assert.deepStrictEqual(
        [first.usage.inputTokens, first.usage.outputTokens, first.usage.reasoningTokens, first.usage.cacheReadTokens],
        [200, 100, 40, 120]
      )
      const [one, two] = server.seen
      assert.strictEqual(one?.path, "/v1/models/gemini-3.5-flash:streamGenerateContent?alt=sse")
      assert.strictEqual(one?.headers["x-goog-api-key"], key)
      assert.deepStrictEqual(one?.body.systemInstruction, { parts: [{ text: "You tell the weather." }] })
      assert.strictEqual(one?.body.tools[0].functionDeclarations[0].name, "weather")
      assert.deepStrictEqual(two?.body.contents.slice(1), [
        {
          role: "model",
          parts: [
            { text: "Looking." },
            { functionCall: { id: "c1", name: "weather", args: { city: "Ulm" } }, thoughtSignature: "sig_1" },
            { functionCall: { name: "weather", args: { city: "Bonn" } } }
          ]
        },
        {
          role: "user",
          parts: [
            { functionResponse: { id: "c1", name: "weather", response: { output: "sunny in Ulm" } } },
            { functionResponse: { name: "weather", response: { output: "sunny in Bonn" } } }
          ]
        }
      ])
      yield* Agent.run(agent, "And now?", { history: first.messages }).pipe(Effect.provide(model))
      const third = server.seen[2]?.body.contents
      assert.deepStrictEqual(third.at(-2), { role: "model", parts: [{ text: "Sunny.", thoughtSignature: "sig_2" }] })
    }).pipe(Effect.scoped)
  )

  it.live("assembles arguments that come in parts, and runs no call with half of them", () =>
    Effect.gen(function* () {
      const part = (functionCall: object) => gemini([{ functionCall }], null)
      const go = { willContinue: true }
      const putArgument = (jsonPath: string, value: object) => part({ ...go, partialArgs: [{ jsonPath, ...value }] })
      const chunks = (...list: ReadonlyArray<string>) => OpenAi.raw(list.join(""))
      const whole = chunks(
        part({ name: "files_read", id: "c1", ...go }),
        putArgument("$.location", { stringValue: "San ", ...go }),
        putArgument("$.location", { stringValue: "Francisco", ...go }),
        putArgument("$.location", go),
        putArgument("$.days[1]['max temp']", { numberValue: 20.5 }),
        putArgument("$.days[0].sunny", { boolValue: true }),
        putArgument('$["__proto__"]', { nullValue: "NULL_VALUE" }),
        part({}),
        part({ name: "files_read", args: { location: "Ulm" } }),
        part({ name: "files_read", partialArgs: [{ jsonPath: "$.location", stringValue: "Bonn" }] }),
        gemini([{ text: "" }])
      )
      const { outcome } = yield* ask(whole, { tools })
      assert.deepStrictEqual(
        outcome.message?.toolCalls.map(({ arguments: args }) => JSON.stringify(args)),
        [
          '{"location":"San Francisco","days":[{"sunny":true},{"max temp":20.5}],"__proto__":null}',
          '{"location":"Ulm"}',
          '{"location":"Bonn"}'
        ]
      )
      const bad = [
        chunks(
          part({ name: "files_read", ...go }),
          putArgument("$.a", { stringValue: "x", ...go }),
          gemini([{ text: "" }])
        ),
        ...[
          "$.a.b",
          "$",
          "$.list[99999]",
          `$.list${"[9999]".repeat(60)}`,
          "$..a",
          "$.a[?(@.b)]",
          `$${".a".repeat(100)}`
        ].map((path) =>
          chunks(
            part({ name: "files_read", ...go }),
            putArgument("$.a", { stringValue: "x" }),
            putArgument(path, { numberValue: 1 }),
            part({}),
            gemini([{ text: "" }])
          )
        )
      ]
      for (const reply of bad) {
        const { message } = (yield* ask(reply, { tools })).outcome
        assert.deepStrictEqual([message?.toolCalls.length, message?.malformedToolCalls.length], [0, 1])
      }
    })
  )

  it.live("calls that another model made are excused, once a turn", () =>
    Effect.gen(function* () {
      const history = [
        ...hello,
        Message.ai("", {
          toolCalls: [
            { id: "x1", name: "files.read", arguments: {} },
            { id: "x2", name: "files.read", arguments: {}, providerData: { anthropic: { caller: {} } } }
          ]
        }),
        Message.tool("a", { toolCallId: "x1", toolName: "files.read" }),
        Message.tool("no", { toolCallId: "x2", toolName: "files.read", isError: true })
      ]
      const { body } = yield* ask(stream([{ text: "ok" }]), { tools }, {}, history)
      assert.deepStrictEqual(body.contents[1].parts, [
        { functionCall: { name: "files_read", args: {} }, thoughtSignature: "skip_thought_signature_validator" },
        { functionCall: { name: "files_read", args: {} } }
      ])
      assert.deepStrictEqual(body.contents[2].parts[1].functionResponse.response, { error: "no" })
      const older = yield* ask(stream([{ text: "ok" }]), { tools }, { model: "gemini-2.5-flash" }, history)
      assert.notInclude(JSON.stringify(older.body), "thoughtSignature")
    }).pipe(Effect.scoped)
  )

  it.live("stops for the reason that Google gives", () =>
    Effect.gen(function* () {
      const reasons = [
        ["STOP", "stop"],
        ["MAX_TOKENS", "length"],
        ["SAFETY", "contentFilter"],
        ["RECITATION", "contentFilter"],
        ["SOMETHING_NEW", "stop"]
      ] as const
      for (const [reason, stop] of reasons) {
        const { outcome } = yield* ask(stream([{ text: "So" }], reason))
        assert.strictEqual(outcome.message?.stopReason, stop)
      }
      const bad = yield* ask(
        events({
          candidates: [
            { finishReason: "MALFORMED_FUNCTION_CALL", finishMessage: "Malformed function call: print(default_api)" }
          ]
        })
      )
      assert.strictEqual(bad.outcome.message?.stopReason, "toolCalls")
      assert.include(bad.outcome.message?.malformedToolCalls[0]?.raw, "default_api")
      const both = yield* ask(
        events({
          candidates: [
            {
              content: { parts: [{ functionCall: { name: "search", args: [] } }] },
              finishReason: "MALFORMED_FUNCTION_CALL",
              finishMessage: "Malformed function call: print(default_api)"
            }
          ]
        })
      )
      assert.deepStrictEqual(
        both.outcome.message?.malformedToolCalls.map(({ raw }) => raw.includes("default_api")),
        [false, true]
      )
      const blocked = yield* ask(events({ promptFeedback: { blockReason: "PROHIBITED_CONTENT" } }))
      assert.strictEqual(blocked.outcome.error?.reason._tag, "ContentFiltered")
    }).pipe(Effect.scoped)
  )

  it.live("cites the findings of its search, in the text", () =>
    Effect.gen(function* () {
      const server = yield* OpenAi.make
      server.reply(
        stream([{ text: "Über Ulm: it has " }, { text: "a minster." }], "STOP", {
          groundingMetadata: {
            groundingChunks: [
              { web: { uri: "https://a.example/", title: "A" } },
              { web: { uri: "https://b.example/", title: "B" } },
              { retrievedContext: { title: "Report", text: "…" } },
              {}
            ],
            groundingSupports: [
              { segment: { startIndex: 11, endIndex: 28, text: "it has a minster." }, groundingChunkIndices: [0, 99] },
              { segment: { text: "not in the text" }, groundingChunkIndices: [1] }
            ]
          }
        })
      )
      const agent = Agent.make({ name: "a", prompt: "" })
      const result = yield* Agent.run(agent, "?").pipe(
        Effect.provide(at(server, { serverTools: [{ googleSearch: {} }] }))
      )
      assert.deepStrictEqual(server.seen[0]?.body.tools, [{ googleSearch: {} }])
      const [block] = result.messages.at(-1)?.content ?? []
      const citations = block?.type === "text" ? (block.citations ?? []) : []
      assert.deepStrictEqual(
        citations.map(({ end, source, start }) => [source.key, block?.type === "text" && block.text.slice(start, end)]),
        [
          ["https://a.example/", "it has a minster."],
          ["Report", "Über Ulm: it has a minster."]
        ]
      )
      assert.strictEqual(Sources.of(result).length, 2)
    }).pipe(Effect.scoped)
  )

  it.live("returns Google's executed code in its place, and repeats no such turn", () =>
    Effect.gen(function* () {
      const parts = [
        { text: "Counting." },
        { executableCode: { language: "PYTHON", code: "print(1)" }, thoughtSignature: "sig" },
        { codeExecutionResult: { outcome: "OUTCOME_OK", output: "1" } },
        { text: "One." }
      ]
      const { outcome } = yield* ask(stream(parts))
      assert.isTrue(outcome.parts.some((part) => part._tag === "ToolCallStart" && part.providerExecuted))
      const message = outcome.message ?? assert.fail("no answer")
      assert.deepStrictEqual(message.toolCalls, [])
      const next = yield* ask(stream([{ text: "ok" }]), {}, {}, [...hello, message, Message.human("And?")])
      assert.deepStrictEqual(next.body.contents[1].parts, parts)
    }).pipe(Effect.scoped)
  )

  it.live("requests a form of the answer in the API's words", () =>
    Effect.gen(function* () {
      const { body } = yield* ask(
        stream([{ text: '{"a":1}' }]),
        {
          tools,
          toolChoice: { tool: "files.read" },
          outputSchema: { type: "object", properties: { a: { type: "number" } }, required: ["a"] },
          parameters: { temperature: 0, topP: null, safetySettings: [] }
        },
        { thinking: "high", topP: 0.5, maxOutputTokens: 9, stop: ["END"], parameters: { labels: { team: "x" } } }
      )
      assert.deepStrictEqual(body.toolConfig, {
        functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["files_read"] }
      })
      assert.deepStrictEqual(body.labels, { team: "x" })
      assert.deepStrictEqual(body.safetySettings, [])
      const { responseJsonSchema, ...config } = body.generationConfig
      assert.strictEqual(responseJsonSchema.type, "object")
      assert.deepStrictEqual(config, {
        temperature: 0,
        maxOutputTokens: 9,
        stopSequences: ["END"],
        thinkingConfig: { includeThoughts: true, thinkingLevel: "high" },
        responseMimeType: "application/json"
      })
      const older = yield* ask(stream([{ text: "x" }]), {}, { model: "gemini-2.5-flash", thinking: { budget: 512 } })
      assert.deepStrictEqual(older.body.generationConfig.thinkingConfig, { includeThoughts: true, thinkingBudget: 512 })
      const refused = yield* ask(stream([{ text: "x" }]), { parameters: { contents: [] } })
      assert.strictEqual(refused.outcome.error?.reason._tag, "InvalidRequest")
    }).pipe(Effect.scoped)
  )

  it.live("shows images and files, and a note in place of unsupported ones", () =>
    Effect.gen(function* () {
      const shown = Message.human([
        Content.image({ base64: "iVBORw0KGgo=", mimeType: "image/png" }),
        Content.file({ base64: "JVBERi0=", mimeType: "application/pdf" }),
        Content.file({ fileId: "files/abc-123" }),
        Content.file({ url: "https://www.youtube.com/watch?v=1" }),
        Content.file({ url: "gs://bucket/a.mp4" }),
        Content.file({ base64: btoa("a,b"), mimeType: "text/csv" }),
        Content.image({ url: "https://elsewhere.example/cat.png" }),
        Content.image({ fileId: "file-of-another" })
      ])
      const { body } = yield* ask(stream([{ text: "x" }]), {}, {}, [shown])
      const parts: ReadonlyArray<Record<string, unknown>> = body.contents[0].parts
      assert.deepStrictEqual(parts.slice(0, 5), [
        { inlineData: { mimeType: "image/png", data: "iVBORw0KGgo=" } },
        { inlineData: { mimeType: "application/pdf", data: "JVBERi0=" } },
        { fileData: { fileUri: "https://generativelanguage.googleapis.com/v1beta/files/abc-123" } },
        { fileData: { fileUri: "https://www.youtube.com/watch?v=1" } },
        { fileData: { fileUri: "gs://bucket/a.mp4" } }
      ])
      assert.include(parts[5]?.["text"], "a,b")
      for (const part of parts.slice(6)) assert.include(part["text"], "could not be passed on")
    }).pipe(Effect.scoped)
  )

  it.live("has the pictures that it drew", () =>
    Effect.gen(function* () {
      const { outcome } = yield* ask(stream([{ inlineData: { mimeType: "image/png", data: "AAAA" } }]))
      assert.deepStrictEqual(outcome.message?.content, [Content.image({ base64: "AAAA", mimeType: "image/png" })])
    }).pipe(Effect.scoped)
  )

  it.live("on Vertex AI, it is asked with a token of its own for each request", () =>
    Effect.gen(function* () {
      const server = yield* OpenAi.make
      server.reply(
        stream([{ text: "a" }]),
        stream([{ text: "b" }]),
        OpenAi.plain(401, { error: { message: "token-2" } })
      )
      let asked = 0
      const layer = GeminiChatModel.layer({
        model: "gemini-3.1-pro-preview",
        baseURL: server.url,
        vertex: {
          project: "my project",
          location: "europe-west4",
          accessToken: Effect.sync(() => Redacted.make(`token-${asked++}-0123456789`))
        }
      })
      const outcomes = yield* askAll(layer, [request(hello), request(hello), request(hello)])
      assert.deepStrictEqual(
        server.seen.map(({ headers }) => headers.authorization),
        [0, 1, 2].map((index) => `Bearer token-${index}-0123456789`)
      )
      assert.strictEqual(
        server.seen[0]?.path,
        "/v1/projects/my%20project/locations/europe-west4/publishers/google/models/gemini-3.1-pro-preview:streamGenerateContent?alt=sse"
      )
      assert.isUndefined(server.seen[0]?.headers["x-goog-api-key"])
      assert.strictEqual(outcomes[2]?.error?.reason._tag, "Authentication")
      const expired = new ModelError.ModelError({ provider: "vertex", reason: { _tag: "Authentication" } })
      const without = GeminiChatModel.layer({
        model: "gemini-3.5-flash",
        baseURL: server.url,
        vertex: { project: "p", accessToken: Effect.fail(expired) }
      })
      assert.strictEqual((yield* askAll(without, [request(hello)]))[0]?.error, expired)
    }).pipe(Effect.scoped)
  )

  it.live("tells failures by their kind, with the wait that Google asks for, and without the conversation", () =>
    Effect.gen(function* () {
      const error = (code: number, status: string, message: string, details: ReadonlyArray<object> = []) =>
        OpenAi.plain(code, { error: { code, status, message, details } })
      const words = "my grandmother lives in the yellow house at the harbour"
      const replies = [
        [error(429, "RESOURCE_EXHAUSTED", "slow down", [{ retryDelay: "7.5s" }]), "RateLimited"],
        [error(400, "INVALID_ARGUMENT", "API key not valid.", [{ reason: "API_KEY_INVALID" }]), "Authentication"],
        [error(403, "PERMISSION_DENIED", "no"), "Permission"],
        [error(404, "NOT_FOUND", "models/x is not found"), "InvalidRequest"],
        [error(503, "UNAVAILABLE", "The model is overloaded."), "Overloaded"],
        [
          error(400, "INVALID_ARGUMENT", "The input token count (9) exceeds the maximum number of tokens allowed (7)."),
          "ContextOverflow"
        ],
        [OpenAi.plain(500, [{ error: { code: 500, message: `broken: ${words} ${key}` } }]), "Overloaded"],
        [OpenAi.plain(502, "<html>bad gateway</html>"), "Overloaded"],
        [events({ candidates: [{ content: { parts: [{ text: "So" }] } }] }), "BadResponse"],
        [
          events(
            { candidates: [{ content: { parts: [{ text: "So" }] } }] },
            { error: { code: 503, status: "UNAVAILABLE", message: "gone" } }
          ),
          "Overloaded"
        ],
        [OpenAi.raw("data: {nonsense\n\n"), "BadResponse"],
        [OpenAi.raw("data: [1,2]\n\n"), "BadResponse"],
        [OpenAi.raw('[{"error":{"code":429,"message":"slow"}}]'), "RateLimited"],
        [OpenAi.raw(""), "BadResponse"],
        [OpenAi.reset, "Transport"]
      ] as const
      const server = yield* OpenAi.make
      for (const [reply, tag] of replies) {
        server.reply(reply)
        const [outcome] = yield* askAll(at(server), [request([Message.human(words)])])
        assert.strictEqual(outcome?.error?.reason._tag, tag, String(outcome?.error))
        const told = String(outcome?.error) + JSON.stringify(outcome?.error)
        for (const secret of [key, "grandmother"]) assert.notInclude(told, secret)
      }
      server.reply(replies[0][0])
      const [limited] = yield* askAll(at(server), [request(hello)])
      assert.deepStrictEqual(limited?.error?.retryAfter, Duration.millis(7_500))
    }).pipe(Effect.scoped)
  )

  it.live("reads odd answers correctly", () =>
    Effect.gen(function* () {
      let deep: unknown = "x"
      for (let level = 0; level < 2_000; level++) deep = [deep]
      const finish = { candidates: [{ finishReason: "STOP" }], usageMetadata: { promptTokenCount: -3 } }
      const odd = [
        {},
        { candidates: null },
        { candidates: [null] },
        { candidates: [{ content: null }] },
        { candidates: [{ content: { parts: [null, 7, {}, { text: 7 }, { functionCall: null }] } }] },
        { candidates: [{ content: { parts: [{ functionCall: { args: [] } }] } }] },
        { candidates: [{ content: { parts: [{ inlineData: {} }] } }] },
        { candidates: [{ groundingMetadata: { groundingChunks: 7, groundingSupports: [null, {}] } }] },
        { candidates: [{ content: { parts: [{ functionCall: { name: "files_read", args: { deep } } }] } }] }
      ]
      const server = yield* OpenAi.make
      for (const event of odd) {
        server.reply(events(event, { candidates: [{ content: { parts: [{ text: "\ud800 ok" }] } }] }, finish))
        const [outcome] = yield* askAll(at(server), [request(hello, { tools })])
        const tag = outcome?.error?.reason._tag
        assert.isTrue(tag === undefined || tag === "BadResponse", String(outcome?.error))
        assert.isAtLeast(outcome?.message?.usage?.inputTokens ?? 0, 0)
      }
    }).pipe(Effect.scoped)
  )

  it.effect("reads its key, and knows its models", () =>
    Effect.gen(function* () {
      const env = (variables: Record<string, string>) => ConfigProvider.layer(ConfigProvider.fromUnknown(variables))
      const model = (options: GeminiChatModel.Options, variables: Record<string, string> = { GEMINI_API_KEY: key }) =>
        Effect.provide(ChatModel.ChatModel, GeminiChatModel.layer(options).pipe(Layer.provide(env(variables))))
      const flash = yield* model({ model: "models/gemini-3.5-flash" })
      assert.deepStrictEqual(
        [flash.provider, flash.contextWindowTokens, flash.structuredOutput, flash.supportsVision],
        ["gemini", 1_048_576, "native", true]
      )
      assert.isDefined(flash.prices)
      assert.strictEqual((yield* model({ model: "gemini-2.5-pro" })).structuredOutput, "tool")
      assert.strictEqual((yield* model({ model: "gemini-9-ultra" })).contextWindowTokens, 1_048_576)
      const error = yield* Effect.flip(model({ model: "gemini-3.5-flash" }, {}))
      assert.include(error.message, "GEMINI_API_KEY")
    })
  )
})
