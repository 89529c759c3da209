import { assert, describe, it } from "@effect/vitest"
import { MockLanguageModelV4 } from "ai/test"
import { Deferred, Duration, Effect, Fiber, Redacted, Stream } from "effect"
import { Agent, ChatModel, Content, Message, Sources } from "effect-deepagents"
import * as AiSdkChatModel from "effect-deepagents/models/bridges/AiSdkChatModel"
import { askAll, type Outcome, request } from "../openai/asking.ts"
import { type Answer, call, finish, mock, mockV3, type Part, text } from "./models.ts"

const tools: ReadonlyArray<ChatModel.ToolDefinition> = [
  {
    name: "files.read",
    description: "Reads a file",
    parameters: { type: "object", properties: { path: { type: "string" } } },
    annotations: {}
  }
]

const hello = [Message.human("Hello")]

const ask = Effect.fnUntraced(function* (
  answer: Answer,
  over: Partial<ChatModel.ModelRequest> = {},
  options?: Parameters<typeof AiSdkChatModel.layer>[1]
) {
  const [outcome] = yield* askAll(AiSdkChatModel.layer(mock([answer]), options), [request(hello, over)])
  return outcome as Outcome
})

const messageOf = (outcome: Outcome) => outcome.message ?? assert.fail(String(outcome.error))

/** What the model is shown of an answer in the request after it. */
const sentBack = Effect.fnUntraced(function* (
  parts: ReadonlyArray<Part>,
  results: (message: Message.AiMessage) => ReadonlyArray<Message.Message> = () => [],
  provider?: string
) {
  const model = mock([parts, [...text("ok"), finish()]], provider === undefined ? {} : { provider })
  const layer = AiSdkChatModel.layer(model)
  const [first] = yield* askAll(layer, [request(hello, { tools })])
  const message = messageOf(first as Outcome)
  const history = [...hello, message, ...results(message), Message.human("And then?")]
  yield* askAll(layer, [request(history, { tools })])
  const prompt = model.doStreamCalls[1]?.prompt ?? []
  return { message, prompt, assistant: prompt.find(({ role }) => role === "assistant")?.content ?? [], model }
})

describe("a turn", () => {
  it.effect("has text, reasoning, calls, usage and the provider's id", () =>
    Effect.gen(function* () {
      const outcome = yield* ask(
        [
          { type: "stream-start", warnings: [] },
          { type: "response-metadata", id: "resp_1", modelId: "model-1-0815" },
          { type: "reasoning-start", id: "r" },
          { type: "reasoning-delta", id: "r", delta: "Let me " },
          { type: "reasoning-delta", id: "r", delta: "see." },
          { type: "reasoning-end", id: "r" },
          ...text("I ", "read."),
          ...call("call_1", "files_read", '{"path":"a"}'),
          finish("tool-calls")
        ],
        { tools }
      )
      const message = messageOf(outcome)
      assert.strictEqual(Message.text(message), "I read.")
      assert.strictEqual(Message.reasoning(message), "Let me see.")
      assert.deepStrictEqual(
        message.toolCalls.map(({ arguments: args, id, name }) => [id, name, args]),
        [["call_1", "files.read", { path: "a" }]]
      )
      assert.deepStrictEqual(message.usage, {
        inputTokens: 100,
        outputTokens: 50,
        cacheReadTokens: 60,
        cacheWriteTokens: 10,
        reasoningTokens: 20
      })
      assert.strictEqual(message.model, "model-1-0815")
      assert.deepStrictEqual(
        outcome.parts.map((part) => part._tag),
        ["ReasoningDelta", "ReasoningDelta", "TextDelta", "TextDelta", "ToolCallStart", "ToolCallDelta", "TurnDone"]
      )
    })
  )

  it.effect("stops for the reason that the provider gives", () =>
    Effect.gen(function* () {
      const stops = [
        [finish("stop"), "stop"],
        [finish("length"), "length"],
        [finish("content-filter"), "contentFilter"],
        [finish("content-filter", "refusal"), "refusal"],
        [finish("other", "pause_turn"), "pause"],
        [finish("other", "something_new"), "stop"]
      ] as const
      for (const [end, reason] of stops) {
        assert.strictEqual(messageOf(yield* ask([...text("So"), end])).stopReason, reason)
      }
      const called = yield* ask([...call("a", "files_read", "{}"), finish("stop")], { tools })
      assert.strictEqual(messageOf(called).stopReason, "toolCalls")
    })
  )

  it.effect("that was cut, or ended in an error, is a failure", () =>
    Effect.gen(function* () {
      const cut = [
        text("So"),
        [...text("So"), finish("interrupted", undefined)],
        [...text("So"), { type: "finish", usage: finish.length, finishReason: { unified: "other", raw: undefined } }]
      ]
      for (const parts of cut) {
        assert.strictEqual((yield* ask(parts as ReadonlyArray<Part>)).error?.reason._tag, "BadResponse")
      }
      const ended = yield* ask([...text("So"), finish("error", "MALFORMED_FUNCTION_CALL")])
      assert.isTrue(ended.error?.isRetryable)
      assert.include(ended.error?.message, "MALFORMED_FUNCTION_CALL")
    })
  )

  it.effect("keeps two texts apart that are said at the same time or with the same id", () =>
    Effect.gen(function* () {
      const message = messageOf(
        yield* ask([
          { type: "text-start", id: "a" },
          { type: "text-start", id: "b" },
          { type: "text-delta", id: "b", delta: "two" },
          { type: "text-delta", id: "a", delta: "one" },
          { type: "text-end", id: "a" },
          { type: "text-end", id: "b" },
          ...text("three"),
          ...text("four"),
          { type: "text-delta", id: "stray", delta: "five" },
          finish()
        ])
      )
      assert.deepStrictEqual(
        message.content.map((block) => block.type === "text" && block.text),
        ["one", "two", "three", "four", "five"]
      )
    })
  )

  it.effect("has calls without ids, told twice, cut and never completed", () =>
    Effect.gen(function* () {
      const twice = messageOf(
        yield* ask(
          [
            ...call("a", "files_read", '{"path":"1"}'),
            { type: "tool-call", toolCallId: "a", toolName: "files_read", input: '{"path":"1"}' },
            { type: "tool-call", toolCallId: "a", toolName: "files_read", input: '{"path":"2"}' },
            { type: "tool-call", toolCallId: "", toolName: "files_read", input: '{"path":"3"}' },
            { type: "tool-call", toolCallId: "", toolName: "files_read", input: '{"path":"3"}' },
            finish("tool-calls")
          ],
          { tools }
        )
      )
      assert.deepStrictEqual(
        twice.toolCalls.map((one) => one.arguments["path"]),
        ["1", "3", "3"]
      )
      assert.strictEqual(twice.malformedToolCalls.length, 1)
      assert.strictEqual(new Set(twice.toolCalls.map(({ id }) => id)).size, 3)

      const open = messageOf(
        yield* ask([...call("a", "files_read", '{"path":"1"}').slice(0, 2), finish("tool-calls")], { tools })
      )
      assert.deepStrictEqual(open.toolCalls[0]?.arguments, { path: "1" })
      const cut = messageOf(yield* ask([...call("a", "files_read", "").slice(0, 1), finish("length")], { tools }))
      assert.strictEqual(cut.toolCalls.length, 0)
      assert.strictEqual(cut.malformedToolCalls.length, 1)
    })
  )

  it.effect("has usage only if some is told, and adds up a missing total", () =>
    Effect.gen(function* () {
      const nothing = { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined }
      const none = { inputTokens: nothing, outputTokens: { total: undefined, text: undefined, reasoning: undefined } }
      const end = (usage: unknown) => ({ ...finish(), usage }) as Part
      assert.isUndefined(messageOf(yield* ask([...text("a"), end(none)])).usage)
      assert.isUndefined(messageOf(yield* ask([...text("a"), end(undefined)])).usage)
      const parts = {
        inputTokens: { ...nothing, noCache: 5, cacheRead: 7 },
        outputTokens: { total: undefined, text: 3, reasoning: 4 },
        raw: { cost: 0.25 }
      }
      const usage = messageOf(yield* ask([...text("a"), end(parts)])).usage
      assert.deepStrictEqual(usage, {
        inputTokens: 12,
        outputTokens: 7,
        cacheReadTokens: 7,
        cacheWriteTokens: 0,
        reasoningTokens: 4,
        cost: 0.25
      })
      const odd = { inputTokens: { total: -5, cacheRead: Number.NaN }, outputTokens: { total: "many" } }
      assert.strictEqual(messageOf(yield* ask([...text("a"), end(odd)])).usage?.inputTokens, 0)
    })
  )

  it.effect("cites its sources, in the text if the provider names the place", () =>
    Effect.gen(function* () {
      const source = { type: "source", sourceType: "url", id: "1", url: "https://a.example/x", title: "A" } as const
      const message = messageOf(
        yield* ask([
          source,
          { type: "source", sourceType: "url", id: "2", url: "https://b.example/" },
          { type: "source", sourceType: "document", id: "3", mediaType: "application/pdf", title: "Report" },
          { type: "text-start", id: "t" },
          { type: "text-delta", id: "t", delta: "Ulm is a town." },
          {
            type: "text-end",
            id: "t",
            citations: [
              { source, startIndex: 0, endIndex: 3, citedText: "Ulm" },
              { source, startIndex: 5, endIndex: 99 }
            ]
          },
          finish()
        ])
      )
      const [block] = message.content
      const citations = block?.type === "text" ? (block.citations ?? []) : []
      assert.deepStrictEqual(
        citations.map(({ end, quote, source, start }) => [source.key, start, end, quote]),
        [
          ["https://a.example/x", 0, 3, "Ulm"],
          ["https://a.example/x", undefined, undefined, undefined],
          ["https://b.example/", undefined, undefined, undefined],
          ["Report", undefined, undefined, undefined]
        ]
      )
      const agent = Agent.make({ name: "a", prompt: "" })
      const result = yield* Agent.run(agent, "?").pipe(
        Effect.provide(AiSdkChatModel.layer(mock([[source, ...text("Yes."), finish()]])))
      )
      assert.deepStrictEqual(Sources.of(result), [{ number: 1, source: Sources.make(source) }])
    })
  )

  it.effect("has the files that the model made", () =>
    Effect.gen(function* () {
      const message = messageOf(
        yield* ask([
          { type: "file", mediaType: "image/png", data: { type: "data", data: new Uint8Array([1, 2, 3]) } },
          { type: "file", mediaType: "audio/wav", data: { type: "data", data: "AAAA" } },
          { type: "file", mediaType: "image/png", data: { type: "url", url: new URL("https://a.example/x.png") } },
          finish()
        ])
      )
      assert.deepStrictEqual(message.content, [
        Content.image({ base64: "AQID", mimeType: "image/png" }),
        Content.file({ base64: "AAAA", mimeType: "audio/wav" }),
        Content.image({ url: "https://a.example/x.png" })
      ])
    })
  )

  it.effect("that the provider wants to ask about is a failure which says so", () =>
    Effect.gen(function* () {
      const { error } = yield* ask([{ type: "tool-approval-request", approvalId: "1", toolCallId: "a" }, finish()])
      assert.strictEqual(error?.reason._tag, "Unsupported")
    })
  )

  it.effect("says each of the provider's warnings once", () =>
    Effect.gen(function* () {
      const start: Part = {
        type: "stream-start",
        warnings: [
          { type: "unsupported", feature: "topK" },
          { type: "other", message: "so" }
        ]
      }
      const model = mock([
        [start, ...text("a"), finish()],
        [start, ...text("b"), finish()]
      ])
      const outcomes = yield* askAll(AiSdkChatModel.layer(model), [
        request(hello, { parameters: { top_k: 3 } }),
        request(hello, { parameters: { top_k: 4 } })
      ])
      const warnings = outcomes.map(({ parts }) =>
        parts.flatMap((part) => (part._tag === "Warning" ? [part.code] : []))
      )
      assert.deepStrictEqual(warnings, [["parameters", "provider"], []])
    })
  )
})

describe("the next request", () => {
  const signed: ReadonlyArray<Part> = [
    { type: "reasoning-start", id: "r" },
    { type: "reasoning-delta", id: "r", delta: "hm" },
    { type: "reasoning-end", id: "r", providerMetadata: { acme: { signature: "s1" } } },
    { type: "text-start", id: "t", providerMetadata: { acme: { itemId: "msg_1" } } },
    { type: "text-delta", id: "t", delta: "Reading." },
    { type: "text-end", id: "t" },
    ...call("call_1", "files_read", "{}").slice(0, 3),
    {
      type: "tool-call",
      toolCallId: "call_1",
      toolName: "files_read",
      input: "{}",
      providerMetadata: { acme: { thoughtSignature: "s2" } }
    },
    finish("tool-calls")
  ]

  it.effect("returns the provider's attached data", () =>
    Effect.gen(function* () {
      const { assistant, prompt } = yield* sentBack(signed, () => [
        Message.tool("text of a", { toolCallId: "call_1", toolName: "files.read" })
      ])
      assert.deepStrictEqual(assistant, [
        { type: "reasoning", text: "hm", providerOptions: { acme: { signature: "s1" } } },
        { type: "text", text: "Reading.", providerOptions: { acme: { itemId: "msg_1" } } },
        {
          type: "tool-call",
          toolCallId: "call_1",
          toolName: "files_read",
          input: {},
          providerOptions: { acme: { thoughtSignature: "s2" } }
        }
      ])
      assert.deepStrictEqual(prompt.find(({ role }) => role === "tool")?.content, [
        {
          type: "tool-result",
          toolCallId: "call_1",
          toolName: "files_read",
          output: { type: "text", value: "text of a" }
        }
      ])
    })
  )

  it.effect("sends another provider none of this one's attached data", () =>
    Effect.gen(function* () {
      const [first] = yield* askAll(AiSdkChatModel.layer(mock([signed])), [request(hello, { tools })])
      const other = mock([[...text("ok"), finish()]], { provider: "other.chat" })
      yield* askAll(AiSdkChatModel.layer(other), [request([...hello, messageOf(first as Outcome)], { tools })])
      const asked = JSON.stringify(other.doStreamCalls[0]?.prompt)
      assert.include(asked, "Reading.")
      for (const secret of ["s1", "s2", "msg_1", '"hm"']) assert.notInclude(asked, secret)
    })
  )

  it.effect("returns tools of the provider's own in their places", () =>
    Effect.gen(function* () {
      const { assistant, message } = yield* sentBack([
        ...text("Searching."),
        {
          type: "tool-call",
          toolCallId: "srv_1",
          toolName: "web_search",
          input: '{"query":"ulm"}',
          providerExecuted: true
        },
        { type: "tool-result", toolCallId: "srv_1", toolName: "web_search", result: ["…"], preliminary: true },
        {
          type: "tool-result",
          toolCallId: "srv_1",
          toolName: "web_search",
          result: [{ url: "https://a.example/" }],
          providerMetadata: { acme: { blob: "b" } }
        },
        { type: "custom", kind: "acme.compaction", providerMetadata: { acme: { state: "c" } } },
        ...text("Found."),
        finish()
      ])
      assert.deepStrictEqual(message.toolCalls, [])
      assert.deepStrictEqual(assistant, [
        { type: "text", text: "Searching." },
        {
          type: "tool-call",
          toolCallId: "srv_1",
          toolName: "web_search",
          input: { query: "ulm" },
          providerExecuted: true
        },
        {
          type: "tool-result",
          toolCallId: "srv_1",
          toolName: "web_search",
          output: { type: "json", value: [{ url: "https://a.example/" }] },
          providerOptions: { acme: { blob: "b" } }
        },
        { type: "custom", kind: "acme.compaction", providerOptions: { acme: { state: "c" } } },
        { type: "text", text: "Found." }
      ])
    })
  )

  it.effect("knows a call of the provider's own that only its end tells", () =>
    Effect.gen(function* () {
      const parts: ReadonlyArray<Part> = [
        { type: "tool-input-start", id: "srv_1", toolName: "x_search" },
        { type: "tool-input-delta", id: "srv_1", delta: '{"query":' },
        { type: "tool-input-delta", id: "srv_1", delta: '"ulm"}' },
        { type: "tool-input-end", id: "srv_1" },
        {
          type: "tool-call",
          toolCallId: "srv_1",
          toolName: "x_search",
          input: '{"query":"ulm"}',
          providerExecuted: true
        },
        { type: "tool-result", toolCallId: "srv_1", toolName: "x_search", result: [] },
        ...text("Found."),
        finish()
      ]
      const { assistant, message } = yield* sentBack(parts)
      assert.deepStrictEqual([message.toolCalls, message.malformedToolCalls, message.stopReason], [[], [], "stop"])
      assert.deepStrictEqual(
        (typeof assistant === "string" ? [] : assistant).map(({ type }) => type),
        ["tool-call", "tool-result", "text"]
      )
      const starts = (yield* ask(parts, { tools })).parts.filter(({ _tag }) => _tag === "ToolCallStart")
      assert.deepStrictEqual(starts, [{ _tag: "ToolCallStart", id: "srv_1", name: "x_search", providerExecuted: true }])
    })
  )

  it.effect("leaves out a call of the provider's own that was never answered", () =>
    Effect.gen(function* () {
      const hosted: Part = {
        type: "tool-call",
        toolCallId: "srv_1",
        toolName: "web_search",
        input: "{}",
        providerExecuted: true
      }
      const cut = yield* sentBack([...text("So"), hosted, finish("length")])
      assert.deepStrictEqual(cut.assistant, [{ type: "text", text: "So" }])
      const paused = yield* sentBack([...text("So"), hosted, finish("other", "pause_turn")])
      assert.strictEqual(paused.assistant.length, 2)
    })
  )

  it.effect("names the container in which Claude ran code", () =>
    Effect.gen(function* () {
      const end: Part = { ...finish(), providerMetadata: { anthropic: { container: { id: "cont_1" } } } } as Part
      const { model } = yield* sentBack([...text("ran"), end], () => [], "anthropic.messages")
      assert.deepStrictEqual(model.doStreamCalls[1]?.providerOptions, { anthropic: { container: { id: "cont_1" } } })
    })
  )

  it.effect("marks the cacheable parts for Claude", () =>
    Effect.gen(function* () {
      const model = mock([[...text("ok"), finish()]], { provider: "anthropic.messages" })
      const history = [Message.human("a"), Message.ai("b"), Message.human("c"), Message.ai("d"), Message.human("e")]
      yield* askAll(AiSdkChatModel.layer(model), [request(history, { systemPrompt: "Be brief.", cacheHints: [2] })])
      const marks = model.doStreamCalls[0]?.prompt.map(({ providerOptions }) => providerOptions !== undefined)
      assert.deepStrictEqual(marks, [true, false, false, true, false, true])
    })
  )

  it.effect("says images and files as the model takes them, and a note in the place of others", () =>
    Effect.gen(function* () {
      const shown = Message.human([
        Content.image({ base64: "iVBORw0KGgo=", mimeType: "image/png" }),
        Content.image({ url: "https://cdn.example/cat.png" }),
        Content.image({ url: "https://elsewhere.example/cat.png" }),
        Content.image({ url: "data:image/gif;base64,R0lGODlh" }),
        Content.file({ base64: btoa("a,b\n1,2"), mimeType: "text/csv", name: "t.csv" }),
        Content.file({ base64: "AAAA", mimeType: "application/zip", name: "x.zip" }),
        Content.image({ fileId: "file-1" })
      ])
      const model = mock([[...text("ok"), finish()]])
      yield* askAll(AiSdkChatModel.layer(model), [request([shown])])
      const content = model.doStreamCalls[0]?.prompt[0]?.content ?? []
      assert.deepStrictEqual(
        typeof content === "string"
          ? content
          : content.map((part) =>
              part.type === "text" ? part.text : part.type === "file" ? [part.mediaType, part.data] : part.type
            ),
        [
          ["image/png", { type: "data", data: "iVBORw0KGgo=" }],
          ["image/*", { type: "url", url: new URL("https://cdn.example/cat.png") }],
          "[An image was here (https://elsewhere.example/cat.png). It could not be passed on to this model.]",
          ["image/gif", { type: "data", data: "R0lGODlh" }],
          '<file name="t.csv">\na,b\n1,2\n</file>',
          "[A file was here, x.zip (application/zip). It could not be passed on to this model.]",
          "[An image was here (file id file-1). It could not be passed on to this model.]"
        ]
      )
      const older = mockV3([[...text("ok"), finish()]])
      yield* askAll(AiSdkChatModel.layer(older), [
        request([Message.human([Content.image({ base64: "AAAA", mimeType: "image/png" })])])
      ])
      assert.deepStrictEqual(older.doStreamCalls[0]?.prompt[0]?.content, [
        { type: "file", mediaType: "image/png", data: "AAAA" }
      ])
    })
  )
})

describe("a call", () => {
  it.effect("has the settings of the layer, and those of the request over them", () =>
    Effect.gen(function* () {
      const model = mock([[...text("ok"), finish()]])
      const search = { type: "provider", id: "acme.search", args: { max: 3 }, isProviderExecuted: true } as const
      const bash = { type: "provider", id: "acme.bash", args: {}, isProviderExecuted: false } as const
      const layer = AiSdkChatModel.layer(model, {
        temperature: 0.5,
        topP: 0.9,
        thinking: "high",
        headers: { "x-team": Redacted.make("team") },
        providerOptions: { acme: { tier: "fast", deep: { a: 1 } } },
        providerTools: { search, bash, "files.read": bash }
      })
      const parameters = { temperature: 0, topP: null, providerOptions: { acme: { deep: { b: 2 } }, other: { x: 1 } } }
      yield* askAll(layer, [request(hello, { tools, parameters, toolChoice: { tool: "files.read" } })])
      const { abortSignal, prompt, ...call } = model.doStreamCalls[0] ?? assert.fail("not called")
      assert.deepStrictEqual(call, {
        temperature: 0,
        reasoning: "high",
        headers: { "x-team": "team" },
        providerOptions: { acme: { tier: "fast", deep: { b: 2 } }, other: { x: 1 } },
        toolChoice: { type: "tool", toolName: "files_read" },
        tools: [
          { type: "function", name: "files_read", description: "Reads a file", inputSchema: tools[0]?.parameters },
          { type: "provider", id: "acme.search", name: "search", args: { max: 3 } }
        ]
      } as never)
      assert.isFalse(abortSignal?.aborted)
      assert.strictEqual(prompt.length, 1)
    })
  )

  it.effect("refuses settings that the run makes", () =>
    Effect.gen(function* () {
      const { error } = yield* ask([...text("ok"), finish()], { parameters: { prompt: [] } })
      assert.strictEqual(error?.reason._tag, "InvalidRequest")
      assert.include(error?.message, '"prompt"')
    })
  )

  it.effect("requests an answer in a schema natively if the layer says so", () =>
    Effect.gen(function* () {
      const model = mock([[...text('{"name":"Ada","age":null}'), finish()]])
      const outputSchema = {
        type: "object",
        properties: { name: { type: "string" }, age: { type: "number" } },
        required: ["name"]
      }
      const layer = AiSdkChatModel.layer(model, { structuredOutput: "native" })
      const [outcome] = yield* askAll(layer, [request(hello, { outputSchema })])
      assert.strictEqual(model.doStreamCalls[0]?.responseFormat?.type, "json")
      assert.strictEqual(Message.text(messageOf(outcome as Outcome)), '{"name":"Ada"}')
    })
  )

  it.effect("is of a model whose facts are known, or told", () =>
    Effect.gen(function* () {
      const service = (layer: ReturnType<typeof AiSdkChatModel.layer>) => Effect.provide(ChatModel.ChatModel, layer)
      const of = (provider: string, modelId: string) =>
        service(AiSdkChatModel.layer(new MockLanguageModelV4({ provider, modelId })))
      const claude = yield* of("amazon-bedrock", "eu.anthropic.claude-sonnet-4-5-20250929-v1:0")
      assert.strictEqual(claude.contextWindowTokens, 200_000)
      assert.strictEqual(claude.prices?.input, 3)
      const gpt = yield* of("azure.responses", "gpt-5-mini")
      assert.strictEqual(gpt.structuredOutput, "native")
      assert.strictEqual(gpt.prices?.output, 2)
      const unknown = yield* of("acme.chat", "gpt-5-mini")
      assert.deepStrictEqual(
        [unknown.supportsVision, unknown.contextWindowTokens, unknown.structuredOutput, unknown.prices],
        [true, undefined, "tool", undefined]
      )
      const told = yield* service(AiSdkChatModel.layer(mock([]), { contextWindowTokens: 7, supportsVision: false }))
      assert.deepStrictEqual([told.contextWindowTokens, told.supportsVision], [7, false])
    })
  )

  it.effect("of a model of an older specification fails when the layer is built", () =>
    Effect.gen(function* () {
      const old = Object.assign(mock([]), { specificationVersion: "v2" })
      const layer = AiSdkChatModel.layer(old)
      const error = yield* Effect.flip(Effect.provide(ChatModel.ChatModel, layer))
      assert.strictEqual(error.reason._tag, "Unsupported")
      assert.include(error.message, "not v2")
    })
  )
})

describe("a failure", () => {
  const failing = Effect.fnUntraced(function* (error: unknown) {
    const outcome = yield* ask({ error })
    return outcome.error ?? assert.fail("it did not fail")
  })
  const makeNamed = (name: string, fields: object = {}) => Object.assign(new Error(`${name} said`), { name, ...fields })
  const api = (statusCode: number, body: unknown, headers: Record<string, string> = {}) =>
    makeNamed("AI_APICallError", {
      statusCode,
      responseHeaders: headers,
      responseBody: typeof body === "string" ? body : JSON.stringify(body)
    })

  it.effect("is told by its kind", () =>
    Effect.gen(function* () {
      const kinds = [
        [api(429, {}, { "retry-after-ms": "1500" }), "RateLimited"],
        [api(429, { error: { code: "insufficient_quota", message: "no money" } }), "QuotaExhausted"],
        [api(401, { error: { message: "who are you" } }), "Authentication"],
        [api(403, "<html>"), "Permission"],
        [api(529, {}), "Overloaded"],
        [api(400, { error: { message: "maximum context length is 4096 tokens" } }), "ContextOverflow"],
        [
          api(400, [
            {
              error: {
                code: 400,
                message: "The input token count (9) exceeds the maximum number of tokens allowed (7)"
              }
            }
          ]),
          "ContextOverflow"
        ],
        [api(400, { type: "error", error: { type: "invalid_request_error", message: "bad" } }), "InvalidRequest"],
        [api(200, "{"), "BadResponse"],
        [makeNamed("AI_APICallError", { cause: Object.assign(new Error(), { code: "ECONNREFUSED" }) }), "Transport"],
        [makeNamed("AI_LoadAPIKeyError"), "Authentication"],
        [makeNamed("AI_UnsupportedFunctionalityError"), "Unsupported"],
        [makeNamed("AI_InvalidPromptError"), "InvalidRequest"],
        [makeNamed("AI_JSONParseError"), "BadResponse"],
        [makeNamed("AI_TypeValidationError"), "BadResponse"],
        [new TypeError("fetch failed", { cause: Object.assign(new Error(), { code: "ECONNRESET" }) }), "Transport"],
        [new TypeError("x is not a function"), "BadResponse"],
        ["just words", "Transport"],
        [undefined, "Transport"]
      ] as const
      for (const [error, tag] of kinds) assert.strictEqual((yield* failing(error)).reason._tag, tag, String(error))
      const limited = yield* failing(kinds[0][0])
      assert.deepStrictEqual(limited.retryAfter, Duration.millis(1500))
      assert.deepStrictEqual((yield* failing(kinds[5][0])).reason, { _tag: "ContextOverflow", limit: 4096 })
    })
  )

  it.effect("in the middle of a stream is told as well", () =>
    Effect.gen(function* () {
      const errors = [
        [{ type: "overloaded_error", message: "busy" }, "Overloaded"],
        [{ error: { code: 429, message: "slow down" } }, "RateLimited"],
        [{ statusCode: 503, message: "x", data: {} }, "Overloaded"],
        [api(500, {}), "Overloaded"],
        ["something", "BadResponse"],
        [null, "BadResponse"]
      ] as const
      for (const [error, tag] of errors) {
        const outcome = yield* ask([...text("So"), { type: "error", error }, finish("error")])
        assert.strictEqual(outcome.error?.reason._tag, tag)
        assert.isTrue(outcome.parts.some((part) => part._tag === "TextDelta"))
      }
    })
  )

  it.effect("contains neither a key nor the conversation", () =>
    Effect.gen(function* () {
      const words = "My grandmother lives in the yellow house at the harbour of Ulm"
      const model = mock([
        {
          error: api(401, {
            error: { message: `bad key sk-live-0123456789abcdef, Bearer team-header-secret, in: ${words}` }
          })
        }
      ])
      const [outcome] = yield* askAll(
        AiSdkChatModel.layer(model, { headers: { authorization: Redacted.make("Bearer team-header-secret") } }),
        [request([Message.human(words)])]
      )
      const told = JSON.stringify(outcome?.error) + String(outcome?.error)
      for (const secret of ["0123456789", "team-header", "grandmother", "harbour"]) assert.notInclude(told, secret)
      assert.include(told, "bad key")
    })
  )

  it.effect("reads hostile parts as valid ones, or drops them", () =>
    Effect.gen(function* () {
      let deep: unknown = "x"
      for (let level = 0; level < 5_000; level++) deep = [deep]
      const hostile: ReadonlyArray<unknown> = [
        { type: "tool-result", toolCallId: "a", toolName: "b", result: deep },
        { type: "text-delta", id: "t", delta: 7 },
        { type: "text-delta" },
        { type: "tool-input-delta", id: "nobody", delta: "x" },
        { type: "tool-call", toolCallId: "a", toolName: "files_read", input: { path: deep } },
        { type: "source", sourceType: "url", id: "1" },
        { type: "file", mediaType: "image/png", data: "" },
        { type: "custom", kind: "none", providerMetadata: deep },
        { type: "text-end", id: "t", citations: [null, 7, { source: null }] },
        { type: "tomorrow" },
        { type: "__proto__", constructor: 1 },
        {},
        7,
        null
      ]
      for (const part of hostile) {
        const outcome = yield* ask([part as Part, ...text("\ud800 fine"), finish()], { tools })
        const tag = outcome.error?.reason._tag
        assert.isTrue(tag === undefined || tag === "BadResponse", String(outcome.error))
        // It can be told again.
        if (outcome.message !== undefined)
          yield* askAll(AiSdkChatModel.layer(mock([text("x")])), [request([outcome.message])])
      }
    })
  )
})

describe("interruption", () => {
  it.effect("aborts the call, also before its answer begins", () =>
    Effect.gen(function* () {
      const started = yield* Deferred.make<AbortSignal | undefined>()
      const model = new MockLanguageModelV4({
        doStream: ({ abortSignal }) => {
          Deferred.doneUnsafe(started, Effect.succeed(abortSignal))
          return new Promise(() => undefined)
        }
      })
      const session = yield* Effect.flatMap(ChatModel.ChatModel, ChatModel.open).pipe(
        Effect.provide(AiSdkChatModel.layer(model))
      )
      const fiber = yield* Effect.forkChild(Stream.runDrain(session.nextTurn(request(hello))))
      const signal = yield* Deferred.await(started)
      yield* Fiber.interrupt(fiber)
      assert.isTrue(signal?.aborted)
    }).pipe(Effect.scoped)
  )

  it.effect("cancels a stream, which is never read far ahead of its reader", () =>
    Effect.gen(function* () {
      let given = 0
      const cancelled = yield* Deferred.make<void>()
      const endless: ReadableStream<Part> = new ReadableStream<Part>(
        {
          pull: (controller) =>
            controller.enqueue(
              given++ === 0 ? { type: "text-start", id: "t" } : { type: "text-delta", id: "t", delta: "x" }
            ),
          cancel: () => void Deferred.doneUnsafe(cancelled, Effect.void)
        },
        { highWaterMark: 0 }
      )
      const model = new MockLanguageModelV4({ doStream: async () => ({ stream: endless }) })
      const session = yield* Effect.flatMap(ChatModel.ChatModel, ChatModel.open).pipe(
        Effect.provide(AiSdkChatModel.layer(model))
      )
      yield* Stream.runDrain(Stream.take(session.nextTurn(request(hello)), 3))
      yield* Deferred.await(cancelled)
      assert.isBelow(given, 1_000)
    }).pipe(Effect.scoped)
  )
})
