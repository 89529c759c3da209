import { assert, describe, it } from "@effect/vitest"
import {
  Config,
  ConfigProvider,
  Context,
  Effect,
  Layer,
  Logger,
  References,
  Redacted,
  Schema,
  Stream,
  Tracer
} from "effect"
import { Agent, ChatModel, Message, ModelError, Tool } from "effect-deepagents"
import * as OpenAiChatModel from "effect-deepagents/models/OpenAiChatModel"
import * as OpenAiCompatibleChatModel from "effect-deepagents/models/OpenAiCompatibleChatModel"
import { makeSpanRecorder } from "../../spans.ts"
import * as Server from "../servers/openai.ts"
import { ask, askAll, compatible, key, request, responses } from "./asking.ts"
import { responsesProblems } from "./rules.ts"
import { chunk, functionCall, message, reasoning, responseEvents } from "./wire.ts"

const environment = (values: Readonly<Record<string, string>>) =>
  ConfigProvider.layer(ConfigProvider.fromUnknown(values))

const build = <E>(layer: Layer.Layer<ChatModel.ChatModel, E>, values: Readonly<Record<string, string>> = {}) =>
  Layer.build(layer).pipe(
    Effect.map((context) => Context.get(context, ChatModel.ChatModel)),
    Effect.scoped,
    Effect.provide(environment(values))
  )

const hello = request([Message.human("hello")])

describe("the source of the key", () => {
  it.live("from the environment, and a missing one says what to set", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(build(OpenAiChatModel.layer({ model: "gpt-5" })))
      assert.strictEqual(error.reason._tag, "Authentication")
      assert.include(error.message, "set OPENAI_API_KEY")
      const azure = { endpoint: "https://example.openai.azure.com" }
      const missing = yield* Effect.flip(build(OpenAiChatModel.layerConfig({ model: "gpt-5", azure })))
      assert.include(missing.message, "set AZURE_OPENAI_API_KEY")
      const blank = yield* Effect.flip(build(OpenAiChatModel.layer({ model: "gpt-5" }), { OPENAI_API_KEY: " " }))
      assert.include(blank.message, "set OPENAI_API_KEY")
      yield* build(OpenAiChatModel.layer({ model: "gpt-5" }), { OPENAI_API_KEY: key })
    })
  )

  it.live("Azure takes a token of Entra ID for each request, in the place of a key", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(
        Server.events(responseEvents([message("ok")])),
        Server.plain(401, { error: { message: "expired: token-1-0123456789" } })
      )
      let asked = 0
      const azure = {
        endpoint: server.url.replace(/\/v1$/, ""),
        accessToken: Effect.sync(() => Redacted.make(`token-${asked++}-0123456789`))
      }
      const [first, second] = yield* askAll(OpenAiChatModel.layer({ model: "prod", azure }), [hello, hello])
      assert.strictEqual(first?.message === undefined ? "" : Message.text(first.message), "ok")
      assert.deepStrictEqual(
        server.seen.map(({ headers, path }) => [path, headers.authorization, headers["api-key"]]),
        [0, 1].map((index) => ["/openai/v1/responses", `Bearer token-${index}-0123456789`, undefined])
      )
      assert.strictEqual(second?.error?.reason._tag, "Authentication")
      assert.notInclude(JSON.stringify(second?.error), "token-1")
      const expired = new ModelError.ModelError({ provider: "azure-openai", reason: { _tag: "Authentication" } })
      const none = OpenAiChatModel.layer({ model: "prod", azure: { ...azure, accessToken: Effect.fail(expired) } })
      assert.strictEqual((yield* ask(none, hello)).error, expired)
    })
  )

  it.live("any option may be a config, and a missing one fails like a config", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const layer = OpenAiCompatibleChatModel.layerConfig({
        model: Config.String("MODEL"),
        baseURL: Config.String("BASE_URL"),
        apiKey: Config.Redacted("OPENROUTER_API_KEY"),
        temperature: 0.1
      })
      const values = { MODEL: "m", BASE_URL: server.url, OPENROUTER_API_KEY: `${key}\n` }
      server.reply(Server.chunks([chunk({ content: "hi" }, "stop")]))
      yield* ask(Layer.provide(layer, environment(values)), hello)
      assert.strictEqual(server.seen[0]!.headers.authorization, `Bearer ${key}`)
      assert.deepInclude(server.seen[0]!.body, { model: "m", temperature: 0.1 })
      const error = yield* Effect.flip(build(layer, { MODEL: "m" }))
      assert.strictEqual(error._tag, "ConfigError")
    })
  )

  it.live("no key of the environment goes to another server", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(Server.events(responseEvents([message("ok")])))
      const layer = OpenAiChatModel.layer({ model: "gpt-5", baseURL: server.url })
      yield* ask(Layer.provide(layer, environment({ OPENAI_API_KEY: key })), hello)
      assert.strictEqual(server.seen[0]!.headers.authorization, undefined)
    })
  )
})

describe("the known facts of a model", () => {
  it.live("comes from the table, the options win, and an unknown model works", () =>
    Effect.gen(function* () {
      const apiKey = Redacted.make(key)
      const known = yield* build(OpenAiChatModel.layer({ model: "gpt-5-2025-08-07", apiKey }))
      assert.deepInclude(known, {
        modelId: "gpt-5-2025-08-07",
        provider: "openai",
        supportsVision: true,
        contextWindowTokens: 272_000,
        structuredOutput: "native"
      })
      assert.deepStrictEqual(known.prices, { input: 1.25, output: 10, cacheRead: 0.125 })
      const unknown = yield* build(OpenAiChatModel.layer({ model: "gpt-99", apiKey }))
      assert.deepInclude(unknown, { supportsVision: true, contextWindowTokens: undefined })
      assert.isUndefined(unknown.prices)
      const own = yield* build(
        OpenAiChatModel.layer({
          model: "gpt-5",
          apiKey,
          contextWindowTokens: 10,
          supportsVision: false,
          prices: { input: 1, output: 2 },
          structuredOutput: "tool"
        })
      )
      assert.deepInclude(own, { supportsVision: false, contextWindowTokens: 10, structuredOutput: "tool" })
      assert.deepStrictEqual(own.prices, { input: 1, output: 2 })
      const local = yield* build(OpenAiCompatibleChatModel.layer({ model: "llama3", baseURL: "http://localhost:1/v1" }))
      assert.deepInclude(local, {
        provider: "openai-compatible",
        supportsVision: false,
        contextWindowTokens: undefined,
        structuredOutput: "tool"
      })
    })
  )
})

describe("secrets", () => {
  const canary = "CANARY-in-the-conversation-42"
  const asked = request([Message.human(`My secret is ${canary}.`), Message.ai("Noted."), Message.human("Go on.")], {
    systemPrompt: "The vault's code is 9876-PROMPT-CANARY-XYZ"
  })
  const echo = (server: Server.Server) =>
    `You said {"Authorization":"Bearer ${key}"} and "My secret is ${canary}." and 9876-PROMPT-CANARY-XYZ at ${server.url}`
  const replies: ReadonlyArray<readonly [string, (server: Server.Server) => Server.Reply]> = [
    [
      "a status",
      (server) => Server.plain(400, { error: { message: echo(server), code: echo(server), type: echo(server) } })
    ],
    ["a page", (server) => Server.plain(500, echo(server))],
    [
      "a list",
      (server) => Server.plain(422, { detail: [{ msg: echo(server), loc: [echo(server)], input: echo(server) }] })
    ],
    ["a stream", (server) => Server.raw(`data: ${JSON.stringify({ error: { message: echo(server) } })}\n\n`)],
    ["garbage", (server) => Server.raw(`data: {${echo(server)}\n\n`)],
    ["a reset", () => Server.reset]
  ]
  for (const [name, model] of [
    ["responses", responses],
    ["compatible", compatible]
  ] as const) {
    for (const [what, reply] of replies) {
      it.live(`no key and no word of the conversation is in an error, a log or a span: ${name}, ${what}`, () =>
        Effect.gen(function* () {
          const server = yield* Server.make
          server.reply(reply(server))
          const seen: Array<unknown> = []
          const logger = Logger.make((entry) => void seen.push(entry.message, entry.cause))
          const { spans, tracer } = makeSpanRecorder()
          const outcome = yield* ask(
            model(server, { headers: { "x-gateway-key": Redacted.make("gateway-secret-0123") } }),
            asked
          ).pipe(
            Effect.withSpan("test"),
            Effect.provideService(Tracer.Tracer, tracer),
            Effect.provide(Logger.layer([logger])),
            Effect.provideService(References.MinimumLogLevel, "All")
          )
          const error = outcome.error!
          const everything = [
            error.message,
            String(error),
            JSON.stringify(error),
            JSON.stringify(Schema.encodeSync(Schema.Defect())(error)),
            String(error.cause),
            error.stack,
            ...seen.map((one) => JSON.stringify(one) + String(one)),
            ...spans.map((span) => JSON.stringify([span.name, ...span.attributes]))
          ].join("\n")
          for (const secret of [key, canary, "PROMPT-CANARY", "gateway-secret"]) assert.notInclude(everything, secret)
        })
      )
    }
  }
})

describe("the layer's output", () => {
  it.live("unknown events once, at debug level; lost constraints once, as a warning", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const odd = [{ type: "response.telepathy" }, ...responseEvents([message("{}")])]
      for (let turn = 0; turn < 2; turn++) server.reply(Server.events(odd))
      const said: Array<string> = []
      const logger = Logger.make(({ logLevel, message: text }) => void said.push(`${logLevel} ${String(text)}`))
      const outputSchema = { type: "object", properties: { a: { type: "string", minLength: 3 } } }
      yield* Effect.gen(function* () {
        const model = yield* ChatModel.ChatModel
        for (let turn = 0; turn < 2; turn++) {
          const session = yield* ChatModel.open(model)
          yield* session.nextTurn({ ...hello, outputSchema: { ...outputSchema } }).pipe(
            Stream.runForEach((part) =>
              Effect.sync(() => void (part._tag === "Warning" ? said.push(`Warning ${part.message}`) : undefined))
            ),
            Effect.exit
          )
        }
      }).pipe(
        Effect.scoped,
        Effect.provide(responses(server)),
        Effect.provide(Logger.layer([logger])),
        Effect.provideService(References.MinimumLogLevel, "All")
      )
      assert.strictEqual(
        said.filter((line) => line.startsWith("Debug") && line.includes("response.telepathy")).length,
        1
      )
      assert.strictEqual(said.filter((line) => line.startsWith("Warning") && line.includes("$.a: minLength")).length, 1)
      assert.strictEqual(said.length, 2)
    })
  )
})

describe("an agent on it", () => {
  it.live("thinks, calls tools in parallel and answers in a schema", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(
        Server.events(
          responseEvents([
            reasoning("rs_1", ["Two cities."]),
            functionCall("c1", "weather", '{"city":"Oslo"}'),
            functionCall("c2", "weather", '{"city":"Rome"}')
          ])
        ),
        Server.events(responseEvents([message('{"warmer":"Rome","by":12,"note":null}')]))
      )
      const weather = Tool.make("weather", {
        description: "The weather of a city.",
        parameters: { city: Schema.String },
        execute: ({ city }) => Effect.succeed(city === "Rome" ? "20" : "8")
      })
      const agent = Agent.make({
        name: "forecaster",
        prompt: "You compare cities.",
        tools: [weather],
        output: Schema.Struct({
          warmer: Schema.String,
          by: Schema.Finite,
          note: Schema.optionalKey(Schema.String)
        })
      })
      const result = yield* Agent.run(agent, "Oslo or Rome?").pipe(Effect.provide(responses(server)))
      assert.deepStrictEqual(result.output, { warmer: "Rome", by: 12 })
      assert.strictEqual(result.usage.outputTokens, 100)
      for (const { body } of server.seen) assert.deepStrictEqual(responsesProblems(body), [])
      assert.deepStrictEqual(
        // oxlint-disable-next-line typescript/no-explicit-any
        server.seen[1]!.body.input.map((item: any) => item.type ?? item.role),
        ["user", "reasoning", "function_call", "function_call", "function_call_output", "function_call_output"]
      )
    })
  )

  it.live("an answer that a compatible server can't be held to comes by a tool", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(
        Server.chunks([
          chunk({ tool_calls: [{ index: 0, id: "a", function: { name: "final_answer", arguments: '{"n":3}' } }] }),
          chunk({}, "tool_calls")
        ])
      )
      const agent = Agent.make({ name: "counter", prompt: "Count.", output: Schema.Struct({ n: Schema.Finite }) })
      const { output } = yield* Agent.run(agent, "one two three").pipe(Effect.provide(compatible(server)))
      assert.deepStrictEqual(output, { n: 3 })
    })
  )
})
