/** Pictures and sound that a model made go back to it as they came, so that it can change them. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { Content, Message } from "effect-deepagents"
import * as GeminiChatModel from "effect-deepagents/models/GeminiChatModel"
import { gemini } from "./ai-sdk/models.ts"
import { ask, askAll, compatible, request, responses } from "./openai/asking.ts"
import { chatProblems } from "./openai/rules.ts"
import { chunk, message, responseEvents } from "./openai/wire.ts"
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

  it.live("Gemini hears sound, and streams arguments if the layer says so", () =>
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

describe("sound that goes back", () => {
  const speak = Message.human("Say hello.")
  const again = Message.human("Slower.")
  const parameters = { modalities: ["text", "audio"], audio: { voice: "alloy", format: "pcm16" } }
  const spoken = (expires_at: number) =>
    Server.chunks([
      chunk({ role: "assistant", audio: { id: "audio_1", transcript: "Hel" } }),
      // Each piece is base64 of its own.
      chunk({ audio: { data: Buffer.from([1]).toString("base64"), transcript: "lo." } }),
      chunk({ audio: { data: Buffer.from([2, 3]).toString("base64") } }),
      chunk({ audio: { data: "no base64!" } }),
      chunk({ audio: { expires_at } }, "stop")
    ])
  const ok = Server.chunks([chunk({ content: "ok" }, "stop")])

  it.live("OpenAI's goes back by its id while that is known, then as its words, as to other models", () =>
    Effect.gen(function* () {
      const now = Math.floor(Date.now() / 1_000)
      const sentBack = (expires: number, model = "gpt-audio") =>
        Effect.gen(function* () {
          const server = yield* Server.make
          server.reply(spoken(expires), ok)
          const first = yield* ask(compatible(server, { model: "gpt-audio", parameters }), request([speak]))
          assert.deepStrictEqual(server.seen[0]?.body.modalities, ["text", "audio"])
          const turn = yield* Message.decode(Message.encode(first.message ?? assert.fail("no turn")))
          assert.strictEqual(Message.text(turn), "Hello.")
          const source = turn.content.flatMap((block) => (block.type === "file" ? [block.source] : []))
          const data = Buffer.from([1, 2, 3]).toString("base64")
          assert.deepStrictEqual(source, [{ kind: "base64", data, mimeType: "audio/pcm;rate=24000" }])
          yield* ask(compatible(server, { model, parameters }), request([speak, turn, again]))
          const { body } = server.seen[1] ?? assert.fail("no second request")
          assert.deepStrictEqual(chatProblems(body), [])
          return body.messages[1]
        })
      const byId = { role: "assistant", content: null, audio: { id: "audio_1" } }
      assert.deepStrictEqual(yield* sentBack(now + 3_600), byId)
      for (const words of [yield* sentBack(now - 1), yield* sentBack(now + 3_600, "gpt-4.1")]) {
        assert.isUndefined(words.audio)
        assert.match(words.content, /^Hello\.\s*\[A file was here \(audio\/pcm/)
      }
    })
  )

  it.live("OpenAI's audio models hear sound, and the others are told that there was some", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(ok, ok)
      const sound = Content.file({ base64: "UklGRg==", mimeType: "audio/wav" })
      const fetchOpenAi: typeof fetch = (_, init) => fetch(`${server.url}/chat/completions`, init)
      for (const model of ["gpt-audio", "gpt-4.1"]) {
        const layer = compatible(server, { model, baseURL: "https://api.openai.com/v1", fetch: fetchOpenAi })
        yield* ask(layer, request([Message.human([sound])]))
      }
      const [heard, told] = server.seen.map(({ body }) => body.messages[0].content)
      assert.deepStrictEqual(heard, [{ type: "input_audio", input_audio: { data: "UklGRg==", format: "wav" } }])
      assert.match(told, /A file was here \(audio\/wav\)/)
    })
  )

  it.live("Gemini's goes back as it came, with the proof of its thoughts", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const parts = [
        { inlineData: { mimeType: "audio/L16;codec=pcm;rate=24000", data: "AQID" }, thoughtSignature: "sig_1" },
        { text: "Hello." }
      ]
      server.reply(Server.raw(gemini(parts, "STOP", {})), Server.raw(gemini([{ text: "ok" }], "STOP", {})))
      const layer = GeminiChatModel.layer({
        model: "gemini-3.5-flash",
        baseURL: server.url,
        apiKey: Redacted.make("k")
      })
      const first = yield* ask(layer, request([speak]))
      const turn = yield* Message.decode(Message.encode(first.message ?? assert.fail("no turn")))
      yield* ask(layer, request([speak, turn, again]))
      assert.deepStrictEqual(server.seen[1]?.body.contents[1], { role: "model", parts })
    })
  )
})
