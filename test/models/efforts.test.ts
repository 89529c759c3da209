/** Levels of thinking beyond high, and efforts that a server refuses. */
import { describe, expect, it } from "@effect/vitest"
import { ChatModel, Message } from "effect-deepagents"
import * as AnthropicChatModel from "effect-deepagents/models/AnthropicChatModel"
import * as GeminiChatModel from "effect-deepagents/models/GeminiChatModel"
import * as OpenAiChatModel from "effect-deepagents/models/OpenAiChatModel"
import * as OpenAiCompatibleChatModel from "effect-deepagents/models/OpenAiCompatibleChatModel"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"

const request = (parameters: ChatModel.ModelRequest["parameters"]): ChatModel.ModelRequest => ({
  messages: [Message.human("hello")],
  systemPrompt: "",
  tools: [],
  toolChoice: "auto",
  parameters,
  cacheHints: [],
  purpose: ChatModel.turnPurpose
})

const apiKey = Redacted.make("secret-key")

type Fetch = typeof globalThis.fetch

interface Way {
  readonly layer: (fetch: Fetch) => Layer.Layer<ChatModel.ChatModel, unknown>
  readonly answer: unknown
  /** The effort in a body. */
  readonly read: RegExp
}

const chat = {
  choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: "ok" } }]
}

const ways: { readonly [name: string]: Way } = {
  Responses: {
    layer: (fetch) => OpenAiChatModel.layer({ model: "gpt-9-unknown", apiKey, fetch }),
    answer: { object: "response", status: "completed", output: [] },
    read: /"effort":"(\w+)"/
  },
  Chat: {
    layer: (fetch) => OpenAiCompatibleChatModel.layer({ model: "served", baseURL: "http://server/v1", fetch }),
    answer: chat,
    read: /"reasoning_effort":"(\w+)"/
  },
  Anthropic: {
    layer: (fetch) => AnthropicChatModel.layer({ model: "claude-opus-5-5", apiKey, fetch }),
    answer: { type: "message", content: [{ type: "text", text: "ok" }], stop_reason: "end_turn" },
    read: /"effort":"(\w+)"/
  },
  Gemini: {
    layer: (fetch) => GeminiChatModel.layer({ model: "gemini-3.5-flash", apiKey, fetch }),
    answer: { candidates: [{ content: { parts: [{ text: "ok" }] }, finishReason: "STOP" }] },
    read: /"thinkingLevel":"(\w+)"/
  }
}

/** A server that refuses some efforts, in words. */
const serve = (
  { answer, read }: Way,
  refused: ReadonlyArray<string>,
  words = (effort: string) => `Unsupported value: reasoning effort '${effort}' is not supported with this model`
) => {
  const efforts: Array<string | undefined> = []
  const fetch: Fetch = async (_, init) => {
    const effort = read.exec(typeof init?.body === "string" ? init.body : "")?.[1]
    efforts.push(effort)
    if (effort === undefined || !refused.includes(effort)) return Response.json(answer)
    const error = { type: "invalid_request_error", message: words(effort), status: "INVALID_ARGUMENT" }
    return Response.json({ error }, { status: 400 })
  }
  return { fetch, efforts }
}

const ask = (way: Way, fetch: Fetch, asked: ReadonlyArray<ChatModel.ModelRequest>) =>
  Effect.gen(function* () {
    const model = yield* ChatModel.ChatModel
    for (const one of asked) {
      // Each run has a session of its own.
      const session = yield* ChatModel.open(model)
      yield* Stream.runDrain(session.nextTurn(one))
    }
  }).pipe(Effect.scoped, Effect.provide(way.layer(fetch)))

describe("a level of thinking that a server refuses", () => {
  for (const [name, way] of Object.entries(ways)) {
    it.effect(`is lowered once, and remembered, at ${name}`, () =>
      Effect.gen(function* () {
        const { efforts, fetch } = serve(way, ["xhigh", "max"])
        const max = request({ thinking: "max" })
        yield* ask(way, fetch, [max, max, request({ thinking: "xhigh" }), request({ thinking: "low" })])
        expect(efforts.slice(-3)).toEqual(["high", "high", "low"])
        expect(efforts.length).toBeLessThanOrEqual(6)
        expect(efforts.slice(0, -3).at(-1)).toBe("high")
      })
    )

    it.effect(`fails when nothing is left, at ${name}`, () =>
      Effect.gen(function* () {
        const { efforts, fetch } = serve(way, ["none", "minimal", "low", "medium", "high", "xhigh", "max"])
        const error = yield* Effect.flip(ask(way, fetch, [request({ thinking: "max" })]))
        expect(String(error)).toContain("effort")
        expect(efforts.length).toBeLessThanOrEqual(7)
        expect(new Set(efforts).size).toBe(efforts.length)
      })
    )
  }

  it.effect.each([
    ["Anthropic", "messages.1.content.0: `thinking` blocks in the latest assistant message cannot be modified", 1],
    ["Responses", "Item 'rs_1' of type 'reasoning' was provided without its required following item.", 1],
    ["Gemini", "Thinking level MAX is not supported for this model.", 2],
    ["Chat", "This model does not support reasoning.", 2],
    ["Chat", "thinking is not supported by this model", 2]
  ] as const)("is lowered only for words about it: %s: %s", ([name, words, requests]) =>
    Effect.gen(function* () {
      const way = ways[name]
      if (way === undefined) return
      const { efforts, fetch } = serve(way, ["high", "max", "HIGH"], () => words)
      yield* Effect.exit(ask(way, fetch, [request({ thinking: "high" })]))
      expect(efforts.length > 1).toBe(requests > 1)
    })
  )

  it.effect("is not changed where it is an option of the provider's own", () =>
    Effect.gen(function* () {
      const way = ways["Chat"]
      if (way === undefined) return
      const { efforts, fetch } = serve(way, ["xhigh"])
      yield* Effect.flip(ask(way, fetch, [request({ reasoning_effort: "xhigh" })]))
      expect(efforts).toEqual(["xhigh"])
    })
  )
})

describe("levels beyond high", () => {
  const sendEffort = (layer: (fetch: Fetch) => Layer.Layer<ChatModel.ChatModel, unknown>, level: "xhigh" | "max") =>
    Effect.gen(function* () {
      const way = ways["Anthropic"]
      if (way === undefined) return ""
      let text = ""
      const fetch: Fetch = async (_, init) => {
        text = typeof init?.body === "string" ? init.body : ""
        return Response.json(way.answer)
      }
      yield* ask({ ...way, layer }, fetch, [request({ thinking: level })])
      return text
    })

  it.effect.each([
    ["claude-opus-5-5", "xhigh", '"effort":"xhigh"'],
    ["claude-opus-5-5", "max", '"effort":"max"'],
    ["claude-opus-4-6", "xhigh", '"effort":"high"'],
    ["claude-opus-4-6", "max", '"effort":"max"'],
    ["claude-opus-4-5", "xhigh", '"budget_tokens":32768']
  ] as const)("%s takes %s as %s", ([model, level, field]) =>
    Effect.gen(function* () {
      expect(yield* sendEffort((fetch) => AnthropicChatModel.layer({ model, apiKey, fetch }), level)).toContain(field)
    })
  )
})
