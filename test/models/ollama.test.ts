import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Context, Effect, Layer, Redacted, Schema, Stream } from "effect"
import { Agent, ChatModel, Content, Message, Tool } from "effect-deepagents"
import { ChatModels } from "effect-deepagents/models"
import * as OllamaChatModel from "effect-deepagents/models/OllamaChatModel"
import { ask, askAll, request, streamed } from "./openai/asking.ts"
import * as Server from "./servers/openai.ts"

const makeShown = (over: object = {}) =>
  Server.plain(200, {
    capabilities: ["completion", "tools", "thinking", "vision"],
    model_info: { "general.architecture": "qwen3", "qwen3.context_length": 40_960 },
    ...over
  })

const lines = (...list: ReadonlyArray<object>) =>
  Server.raw(list.map((line) => `${JSON.stringify(line)}\n`).join(""), {
    headers: { "content-type": "application/x-ndjson" }
  })

const makeSaid = (message: object) => ({
  model: "qwen3:8b",
  created_at: "2026-01-01T00:00:00Z",
  message: { role: "assistant", content: "", ...message },
  done: false
})

const over = (done_reason = "stop") => ({
  ...makeSaid({}),
  done: true,
  done_reason,
  total_duration: 1,
  prompt_eval_count: 30,
  eval_count: 12
})

const at = (server: Server.Server, options: Partial<OllamaChatModel.Options> = {}) =>
  OllamaChatModel.layer({ model: "qwen3:8b", baseURL: server.url, ...options })

const weather = {
  name: "get_weather",
  description: "Tells the weather.",
  parameters: { type: "object", properties: { of: { type: "string" } }, required: ["of"] },
  annotations: {}
}

const hello = request([Message.human("hello")], { systemPrompt: "Be brief." })

const facts = (layer: Layer.Layer<ChatModel.ChatModel, unknown>) =>
  Effect.scoped(Effect.map(Layer.build(layer), (context) => Context.get(context, ChatModel.ChatModel)))

interface Case {
  readonly lines: ReadonlyArray<object>
  readonly text?: string
  readonly reasoning?: string
  readonly calls?: ReadonlyArray<object>
  readonly stop?: Message.TurnStop
}

const call = (name: string, args: unknown, id?: string) => ({ id, function: { name, arguments: args } })

const cases: Readonly<Record<string, Case>> = {
  text: { lines: [makeSaid({ content: "It is " }), makeSaid({ content: "sunny." }), over()], text: "It is sunny." },
  "text of many scripts": {
    lines: [makeSaid({ content: "Grüße 👋🏽 " }), makeSaid({ content: "你好" }), over()],
    text: "Grüße 👋🏽 你好"
  },
  thinking: {
    lines: [makeSaid({ thinking: "H" }), makeSaid({ thinking: "m." }), makeSaid({ content: "Sun." }), over()],
    text: "Sun.",
    reasoning: "Hm."
  },
  "thinking in tags": {
    lines: [makeSaid({ content: "<think>Hm.</think>\n\nSun." }), over()],
    text: "Sun.",
    reasoning: "Hm."
  },
  "a call": {
    lines: [makeSaid({ tool_calls: [call("get_weather", { of: "Paris" }, "call_1")] }), over()],
    calls: [{ of: "Paris" }]
  },
  "a call without an id": {
    lines: [makeSaid({ tool_calls: [call("get_weather", { of: "Paris" })] }), over()],
    calls: [{ of: "Paris" }]
  },
  "calls in one line": {
    lines: [
      makeSaid({ tool_calls: [call("get_weather", { of: "Paris" }), call("get_weather", { of: "Rome" })] }),
      over()
    ],
    calls: [{ of: "Paris" }, { of: "Rome" }]
  },
  "calls in several lines": {
    lines: [
      makeSaid({ tool_calls: [call("get_weather", { of: "Paris" })] }),
      makeSaid({ tool_calls: [call("get_weather", { of: "Rome" })] }),
      over()
    ],
    calls: [{ of: "Paris" }, { of: "Rome" }]
  },
  "thinking, text and a call": {
    lines: [
      makeSaid({ thinking: "Hm." }),
      makeSaid({ content: "I look." }),
      makeSaid({ tool_calls: [call("get_weather", {})] }),
      over()
    ],
    text: "I look.",
    reasoning: "Hm.",
    calls: [{}]
  },
  "arguments as text": {
    lines: [makeSaid({ tool_calls: [call("get_weather", '{"of":"Paris"}')] }), over()],
    calls: [{ of: "Paris" }]
  },
  "a cut text": { lines: [makeSaid({ content: "It" }), over("length")], text: "It", stop: "length" },
  "an end with the last word": { lines: [{ ...over(), message: { role: "assistant", content: "ok" } }], text: "ok" }
}

describe("OllamaChatModel", () => {
  it.live("learns the model's abilities, and loads it with a given context", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(makeShown())
      const model = yield* facts(at(server))
      assert.strictEqual(model.contextWindowTokens, 32_768)
      assert.isTrue(model.supportsVision)
      assert.strictEqual(server.seen[0]!.path, "/api/show")
      server.reply(makeShown())
      assert.strictEqual(
        (yield* facts(at(server, { contextWindowTokens: 8_192, supportsVision: false }))).contextWindowTokens,
        8_192
      )
      server.reply(makeShown({ model_info: { "gemma.context_length": 2_048 }, capabilities: ["completion"] }))
      const small = yield* facts(at(server))
      assert.deepInclude(small, { contextWindowTokens: 2_048, supportsVision: false })
    })
  )

  it.live("sends the set parameters, under the API's names, and nothing else", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(makeShown(), lines(makeSaid({ content: "ok" }), over()), lines(makeSaid({ content: "ok" }), over()))
      const layer = at(server, {
        thinking: "off",
        keepAlive: "30 minutes",
        temperature: 0.5,
        maxOutputTokens: 100,
        stop: ["END"],
        parameters: { mirostat: 1, keep_alive: "1h" }
      })
      yield* askAll(layer, [
        hello,
        request([Message.human("hello")], { parameters: { thinking: "high", num_ctx: 1_024 } })
      ])
      const [, first, second] = server.seen
      assert.strictEqual(first!.path, "/api/chat")
      assert.deepStrictEqual(first!.body, {
        model: "qwen3:8b",
        messages: [
          { role: "system", content: "Be brief." },
          { role: "user", content: "hello" }
        ],
        options: { num_ctx: 32_768, temperature: 0.5, num_predict: 100, stop: ["END"], mirostat: 1 },
        keep_alive: "1h",
        think: false,
        truncate: false,
        shift: false,
        stream: true
      })
      assert.strictEqual(second!.body.think, true)
      assert.strictEqual(second!.body.options.num_ctx, 1_024)
      server.reply(makeShown(), lines(makeSaid({ content: "ok" }), over()))
      const forever = at(server, {
        keepAlive: Infinity,
        apiKey: Redacted.make("secret-key"),
        model: "gpt-oss:20b",
        thinking: "off"
      })
      yield* ask(forever, hello)
      assert.strictEqual(server.seen.at(-1)!.body.keep_alive, -1)
      assert.strictEqual(server.seen.at(-1)!.body.think, "low")
      assert.strictEqual(server.seen.at(-1)!.headers.authorization, "Bearer secret-key")
      const error = (yield* ask(at(server), request([Message.human("x")], { parameters: { messages: [] } }))).error
      assert.include(String(error), `parameters can't set "messages"`)
    })
  )

  for (const [name, one] of Object.entries(cases)) {
    it.live(`${name}: decoded and sent back`, () =>
      Effect.gen(function* () {
        const server = yield* Server.make
        server.reply(makeShown(), lines(...one.lines), lines(makeSaid({ content: "ok" }), over()))
        const layer = Layer.fresh(at(server))
        const tools = [weather]
        const context = yield* Layer.build(layer)
        const model = Layer.succeedContext(context)
        const outcome = yield* ask(model, request([Message.human("Weather?")], { tools }))
        assert.isUndefined(outcome.error)
        const message = outcome.message!
        assert.strictEqual(Message.text(message), one.text ?? "")
        assert.strictEqual(streamed(outcome, "TextDelta"), one.text ?? "")
        assert.strictEqual(Message.reasoning(message) ?? "", one.reasoning ?? "")
        assert.deepStrictEqual(
          message.toolCalls.map((called) => called.arguments),
          (one.calls ?? []) as never
        )
        assert.strictEqual(message.stopReason, one.stop ?? (one.calls === undefined ? "stop" : "toolCalls"))
        assert.deepInclude(message.usage, { inputTokens: 30, outputTokens: 12 })
        const picture = Content.image({ base64: "iVBORw0KGgo=", mimeType: "image/png" })
        const results = message.toolCalls.map(({ id, name: called }) =>
          Message.tool([Content.text("Sun"), picture], { toolCallId: id, toolName: called })
        )
        const history = JSON.parse(
          JSON.stringify([Message.human("Weather?"), message, ...results, Message.human([picture])])
        )
        yield* ask(model, request(history, { tools }))
        const { messages } = server.seen.at(-1)!.body
        const back = messages[1]
        assert.strictEqual(back.role, "assistant")
        assert.strictEqual(back.content, one.text ?? "")
        assert.strictEqual(back.thinking, one.reasoning)
        assert.deepStrictEqual(
          (back.tool_calls ?? []).map(
            (sent: { readonly function: { readonly arguments: unknown } }) => sent.function.arguments
          ),
          one.calls ?? []
        )
        const answers = messages.filter(({ role }: { readonly role: string }) => role === "tool")
        assert.strictEqual(answers.length, results.length)
        for (const answer of answers) assert.strictEqual(answer.tool_name, "get_weather")
        assert.deepInclude(messages.at(-1).images, "iVBORw0KGgo=")
        assert.isUndefined(messages.at(-1).images.find((data: string) => data.startsWith("data:")))
      }).pipe(Effect.scoped)
    )
  }

  it.live("another model's thoughts are not its own", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(makeShown(), lines(makeSaid({ content: "ok" }), over()))
      const history = [
        Message.human("a"),
        Message.ai([Content.reasoning("Hm.", { ollama: { model: "other" } }), Content.text("b")]),
        Message.human("c")
      ]
      yield* ask(at(server), request(history))
      assert.deepStrictEqual(server.seen.at(-1)!.body.messages[1], { role: "assistant", content: "b" })
    })
  )

  it.live("a call is forced by the grammar of its arguments, and an answer in a schema by its own", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const given = '{"of":"Paris"}'
      server.reply(
        makeShown(),
        lines(makeSaid({ content: given.slice(0, 5) }), makeSaid({ content: given.slice(5) }), over())
      )
      const outcome = yield* ask(
        at(server),
        request([Message.human("?")], { tools: [weather], toolChoice: { tool: "get_weather" } })
      )
      const { body } = server.seen.at(-1)!
      assert.deepStrictEqual(body.format, weather.parameters)
      assert.isUndefined(body.tools)
      assert.strictEqual(Message.text(outcome.message!), "")
      assert.deepStrictEqual(outcome.message!.toolCalls[0]!.arguments, { of: "Paris" })
      assert.deepStrictEqual(
        outcome.parts.map(({ _tag }) => _tag),
        ["ToolCallStart", "ToolCallDelta", "ToolCallDelta", "TurnDone"]
      )
      server.reply(makeShown(), lines(makeSaid({ content: "{}" }), over()))
      const outputSchema = { type: "object", properties: {} }
      yield* ask(at(server), request([Message.human("?")], { outputSchema }))
      assert.deepStrictEqual(server.seen.at(-1)!.body.format, outputSchema)
      server.reply(makeShown(), lines(makeSaid({ content: '{"of":' }), over("length")))
      const cut = yield* ask(at(server), request([Message.human("?")], { tools: [weather], toolChoice: "required" }))
      assert.strictEqual(cut.message!.malformedToolCalls.length, 1)
      assert.strictEqual(cut.message!.stopReason, "length")
    })
  )

  it.live("an agent with tools gives its answer in a schema when it is asked again, without them", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(
        makeShown(),
        lines(makeSaid({ tool_calls: [call("get_weather", { of: "Paris" })] }), over()),
        lines(makeSaid({ content: "It is sunny, 21 degrees." }), over()),
        lines(makeSaid({ content: '{"degrees":21}' }), over())
      )
      const agent = Agent.make({
        name: "a",
        prompt: "",
        output: Schema.Struct({ degrees: Schema.Finite }),
        tools: [
          Tool.make("get_weather", {
            description: "",
            parameters: { of: Schema.String },
            execute: () => Effect.succeed("21, sunny")
          })
        ]
      })
      const result = yield* Agent.run(agent, "How warm?").pipe(Effect.provide(at(server)))
      assert.deepStrictEqual(result.output, { degrees: 21 })
      assert.isUndefined(server.seen[2]!.body.format)
      assert.strictEqual(server.seen[3]!.body.format.properties.degrees.type, "number")
      assert.isUndefined(server.seen[3]!.body.tools)
    })
  )

  it.live("reports the problem: no such model, a full context, no server, no tools", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(Server.plain(404, {}), Server.plain(404, { error: 'model "nope" not found' }))
      const missing = (yield* ask(at(server), hello)).error!
      assert.strictEqual(missing.reason._tag, "InvalidRequest")
      assert.include(missing.message, "not found")
      server.reply(makeShown(), Server.plain(400, { error: "the input length exceeds the context length" }))
      assert.strictEqual((yield* ask(at(server), hello)).error!.reason._tag, "ContextOverflow")
      server.reply(makeShown(), lines(makeSaid({ content: "a" }), { error: "llama runner process has terminated" }))
      assert.strictEqual((yield* ask(at(server), hello)).error!.reason._tag, "Overloaded")
      const nowhere = OllamaChatModel.layer({ model: "m", baseURL: "http://127.0.0.1:1" })
      assert.strictEqual((yield* ask(nowhere, hello)).error!.reason._tag, "Transport")
      const bad = yield* Effect.flip(
        Effect.scoped(Layer.build(OllamaChatModel.layer({ model: "m", baseURL: "http://" })))
      )
      assert.include(bad.message, "baseURL is no address")
      server.reply(
        makeShown({ capabilities: ["completion"] }),
        lines(makeSaid({ content: "a" }), over()),
        lines(makeSaid({ content: "a" }), over())
      )
      const asked = request([Message.human("?")], { tools: [weather], parameters: { thinking: "high" } })
      const [first, second] = yield* askAll(at(server), [asked, asked])
      assert.isUndefined(server.seen.at(-1)!.body.think)
      assert.include(JSON.stringify(first!.parts[0]), "can't call tools")
      assert.strictEqual(second!.parts[0]!._tag, "TextDelta")
    })
  )

  it.live("a variable names the server; an address may end as others want it", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      for (const url of [
        server.url,
        server.url.replace(/\/v1$/, "/"),
        server.url.replace(/^http:\/\/(.*)\/v1$/, "$1")
      ]) {
        server.reply(makeShown(), lines(makeSaid({ content: "ok" }), over()))
        const env = { OLLAMA_BASE_URL: url }
        const layer = ChatModels.resolve("ollama:qwen3:8b", { thinking: "off" })
        const outcome = yield* ask(
          layer.pipe(Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env })))),
          hello
        )
        assert.strictEqual(Message.text(outcome.message!), "ok")
        assert.strictEqual(server.seen.at(-1)!.path, "/api/chat")
        assert.strictEqual(server.seen.at(-1)!.body.think, false)
      }
    })
  )

  it.live("leaving the stream ends the request", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(
        makeShown(),
        Server.raw(`${JSON.stringify(makeSaid({ content: "a" }))}\n`, {
          ending: "hang",
          headers: { "content-type": "application/x-ndjson" }
        })
      )
      const seen = yield* Effect.gen(function* () {
        const session = yield* ChatModel.open(yield* ChatModel.ChatModel)
        return yield* Stream.runCollect(Stream.take(session.nextTurn(hello), 1))
      }).pipe(Effect.scoped, Effect.provide(at(server)))
      assert.strictEqual(seen.length, 1)
    })
  )
})
