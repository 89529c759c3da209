import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { Message } from "effect-deepagents"
import * as BedrockConverseChatModel from "effect-deepagents/models/BedrockConverseChatModel"
import * as GeminiChatModel from "effect-deepagents/models/GeminiChatModel"
import * as OllamaChatModel from "effect-deepagents/models/OllamaChatModel"
import { askAll, compatible, request, responses } from "./openai/asking.ts"
import { chunk, message, responseEvents, usageChunk } from "./openai/wire.ts"
import * as Server from "./servers/openai.ts"

const key = Redacted.make("sk-canary-key-0123456789")

const said = Server.events(responseEvents([message("ok")]))
const chunked = Server.chunks([chunk({ content: "ok" }), chunk({}, "stop"), usageChunk()])
const gemini = Server.raw(
  `data: ${JSON.stringify({ candidates: [{ content: { parts: [{ text: "ok" }] }, finishReason: "STOP" }], usageMetadata: {} })}\n\n`
)
const line = Server.raw(`${JSON.stringify({ message: { content: "ok" }, done: true, done_reason: "stop" })}\n`)
const shown = Server.plain(200, { capabilities: ["completion", "tools"] })

/** Models without a switch for thinking, each with its server's answers to two turns. */
const models: {
  readonly [name: string]: readonly [
    (server: Server.Server) => Parameters<typeof askAll>[0],
    ...replies: ReadonlyArray<Server.Reply>
  ]
} = {
  OpenAiChatModel: [(server) => responses(server, { model: "gpt-4.1" }), said, said],
  OpenAiCompatibleChatModel: [
    (server) => compatible(server, { provider: "groq", model: "llama-3.3-70b-versatile" }),
    chunked,
    chunked
  ],
  GeminiChatModel: [
    ({ url }) => GeminiChatModel.layer({ model: "gemini-2.0-flash", baseURL: url, apiKey: key }),
    gemini,
    gemini
  ],
  OllamaChatModel: [({ url }) => OllamaChatModel.layer({ model: "llama3", baseURL: url }), shown, line, line],
  BedrockConverseChatModel: [
    ({ url }) =>
      BedrockConverseChatModel.layer({
        model: "us.meta.llama3-3-70b-instruct-v1:0",
        region: "us-east-1",
        bearerToken: key,
        baseURL: url
      }),
    Server.plain(400, { message: "no" }),
    Server.plain(400, { message: "no" })
  ]
}

describe("thinking that a model can't be told of", () => {
  for (const [name, [model, ...replies]] of Object.entries(models)) {
    it.live(`${name} says once that it is left out`, () =>
      Effect.gen(function* () {
        const server = yield* Server.make
        server.reply(...replies)
        const asked = request([Message.human("hi")], { parameters: { thinking: "high" } })
        const outcomes = yield* askAll(model(server), [asked, asked])
        const warnings = outcomes.map(({ parts }) => parts.filter((part) => part._tag === "Warning"))
        assert.deepStrictEqual(
          warnings.map((list) => list.length),
          [1, 0]
        )
        assert.strictEqual(warnings[0]?.[0]?.code, "thinking")
        assert.notMatch(server.seen.at(-1)?.text ?? "", /think|reason/i)
      })
    )

    it.live(`${name} sends nothing if it is off`, () =>
      Effect.gen(function* () {
        const server = yield* Server.make
        server.reply(...replies)
        const asked = request([Message.human("hi")], { parameters: { thinking: "off" } })
        const [outcome] = yield* askAll(model(server), [asked])
        assert.isFalse(outcome?.parts.some((part) => part._tag === "Warning"))
      })
    )
  }
})
