/** Pictures that a model drew go back to it as they came, so that it can change them. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { Content, Message } from "effect-deepagents"
import * as GeminiChatModel from "effect-deepagents/models/GeminiChatModel"
import { gemini } from "./ai-sdk/models.ts"
import { askAll, request, responses } from "./openai/asking.ts"
import { message, responseEvents } from "./openai/wire.ts"
import * as Server from "./servers/openai.ts"

const draw = Message.human("Draw a cat.")
const bluer = Message.human("Make it bluer.")
const png = "iVBORw0KGgo="

describe("pictures that go back", () => {
  it.live("OpenAI gets the item that it drew, with and without storage", () =>
    Effect.gen(function* () {
      const item = {
        type: "image_generation_call",
        id: "ig_1",
        status: "completed",
        result: png,
        output_format: "png",
        revised_prompt: "A cat."
      } as const
      for (const store of [false, true]) {
        const server = yield* Server.make
        server.reply(
          Server.events(responseEvents([item, message("Here.")])),
          Server.events(responseEvents([message("ok")]))
        )
        const layer = responses(server, { store })
        const [first] = yield* askAll(layer, [request([draw])])
        const turn = first?.message ?? assert.fail("no turn")
        assert.deepStrictEqual(Message.images(turn).length, 1)
        // The data is kept once.
        const stored = yield* Message.decode(Message.encode(turn))
        assert.strictEqual(JSON.stringify(stored).split(png).length, 2)
        yield* askAll(layer, [request([draw, stored, bluer])])
        assert.deepStrictEqual(server.seen[1]?.body.input[1], item)
      }
    })
  )

  it.live("another model is told that there was one", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(Server.events(responseEvents([message("ok")])))
      const foreign = Message.ai([Content.image({ base64: png, mimeType: "image/png" })])
      yield* askAll(responses(server), [request([draw, foreign, bluer])])
      assert.match(JSON.stringify(server.seen[0]?.body.input[1]), /An image was here/)
    })
  )

  it.live("Gemini gets the picture with the proof of its thoughts, in its place", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const parts = [
        { text: "Here:" },
        { inlineData: { mimeType: "image/png", data: png }, thoughtSignature: "sig_1" },
        { text: "Done." }
      ]
      server.reply(Server.raw(gemini(parts, "STOP", {})), Server.raw(gemini([{ text: "ok" }], "STOP", {})))
      const layer = GeminiChatModel.layer({
        model: "gemini-3.5-flash",
        baseURL: server.url,
        apiKey: Redacted.make("k")
      })
      const [first] = yield* askAll(layer, [request([draw])])
      const turn = yield* Message.decode(Message.encode(first?.message ?? assert.fail("no turn")))
      yield* askAll(layer, [request([draw, turn, bluer])])
      assert.deepStrictEqual(server.seen[1]?.body.contents[1], { role: "model", parts })
    })
  )

  it.live("Gemini hears sound, and streams arguments where the layer says so", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(Server.raw(gemini([{ text: "ok" }], "STOP", {})))
      const sound = Content.file({ base64: "UklGRg==", mimeType: "audio/wav" })
      const layer = GeminiChatModel.layer({
        model: "gemini-3.5-flash",
        baseURL: server.url,
        apiKey: Redacted.make("k"),
        streamArguments: true
      })
      yield* askAll(layer, [request([Message.human([sound])])])
      assert.deepStrictEqual(server.seen[0]?.body.contents[0].parts, [
        { inlineData: { mimeType: "audio/wav", data: "UklGRg==" } }
      ])
      assert.isTrue(server.seen[0]?.body.toolConfig.functionCallingConfig.streamFunctionCallArguments)
    })
  )
})
