/** Bodies with status 200 that are no stream: failures of gateways, web pages, whole answers. */
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

const request: ChatModel.ModelRequest = {
  messages: [Message.human("hello")],
  systemPrompt: "",
  tools: [],
  toolChoice: "auto",
  parameters: {},
  cacheHints: [],
  purpose: ChatModel.turnPurpose
}

const apiKey = Redacted.make("secret-key")

const layers: {
  readonly [name: string]: (fetch: typeof globalThis.fetch) => Layer.Layer<ChatModel.ChatModel, unknown>
} = {
  Chat: (fetch) => OpenAiCompatibleChatModel.layer({ model: "served", baseURL: "http://gateway/v1", fetch }),
  Responses: (fetch) => OpenAiChatModel.layer({ model: "gpt-5.4", apiKey, fetch }),
  Anthropic: (fetch) => AnthropicChatModel.layer({ model: "claude-sonnet-5-5", apiKey, fetch }),
  Gemini: (fetch) => GeminiChatModel.layer({ model: "gemini-3.1-pro-preview", apiKey, fetch })
}

const turn = (name: string, body: string, type: string) => {
  const answer: typeof globalThis.fetch = async () => new Response(body, { headers: { "content-type": type } })
  const layer = layers[name]?.(answer)
  if (layer === undefined) return Effect.die(`no layer ${name}`)
  return Effect.scoped(
    Effect.gen(function* () {
      const session = yield* ChatModel.open(yield* ChatModel.ChatModel)
      const parts = yield* Stream.runCollect(session.nextTurn(request))
      const last = parts.at(-1)
      return last?._tag === "TurnDone" ? last.message : yield* Effect.die("no message")
    })
  ).pipe(Effect.provide(layer))
}

const failure = (name: string, body: string, type = "application/json") =>
  Effect.map(Effect.flip(turn(name, body, type)), (error) => {
    if (!(error instanceof Error) || !("reason" in error)) return ["", String(error)] as const
    const { reason } = error
    const tag = typeof reason === "object" && reason !== null && "_tag" in reason ? reason._tag : undefined
    return [tag, error.message] as const
  })

const names = Object.keys(layers)

describe("a failure with status 200", () => {
  const bodies: ReadonlyArray<readonly [name: string, body: unknown, reason: string, words: RegExp]> = [
    ["words alone", { error: "bad api key" }, "Authentication", /bad api key/],
    ["an error object", { error: { message: "bad key, get another" } }, "Authentication", /get another/],
    ["a type", { error: { type: "rate_limit_error", message: "slow down" } }, "RateLimited", /slow down/],
    ["an overload", { error: { type: "overloaded_error", message: "busy" } }, "Overloaded", /busy/],
    ["a list", [{ error: { message: "model x does not exist" } }], "InvalidRequest", /model x/],
    ["words beside", { message: "upstream unavailable" }, "Overloaded", /upstream/]
  ]
  for (const [what, body, reason, words] of bodies) {
    it.effect.each(names)(`${what}, at %s`, (name) =>
      Effect.gen(function* () {
        const [tag, message] = yield* failure(name, JSON.stringify(body, undefined, 2))
        expect(tag).toBe(reason)
        expect(message).toMatch(words)
      })
    )
  }

  it.effect.each(names)("a web page, at %s", (name) =>
    Effect.gen(function* () {
      const [tag, message] = yield* failure(name, "<!doctype html><p>Sign in</p>", "text/html")
      expect(tag).toBe("BadResponse")
      expect(message).toContain("a web page")
    })
  )

  it.effect.each(names)("other JSON, and no JSON, at %s", (name) =>
    Effect.gen(function* () {
      expect((yield* failure(name, '{"ok":true}'))[0]).toBe("BadResponse")
      expect((yield* failure(name, '{"ok":'))[0]).toBe("BadResponse")
    })
  )

  it.effect.each(names)("an event named error, at %s", (name) =>
    Effect.gen(function* () {
      const [tag, message] = yield* failure(name, "event: error\ndata: rate limit reached\n\n", "text/event-stream")
      expect(tag).toBe("RateLimited")
      expect(message).toContain("rate limit reached")
    })
  )
})

describe("a whole answer in the place of a stream", () => {
  const call = { id: "call_1", type: "function", function: { name: "read", arguments: '{"path":"a"}' } }
  const answers: { readonly [name: string]: unknown } = {
    Chat: {
      id: "c1",
      object: "chat.completion",
      model: "served",
      choices: [
        { index: 0, finish_reason: "tool_calls", message: { role: "assistant", content: "Look.", tool_calls: [call] } }
      ],
      usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 }
    },
    Responses: {
      id: "resp_1",
      object: "response",
      status: "completed",
      error: null,
      model: "gpt-5.4",
      output: [
        {
          type: "message",
          id: "m",
          role: "assistant",
          content: [{ type: "output_text", text: "Look.", annotations: [] }]
        },
        { type: "function_call", id: "f", call_id: "call_1", name: "read", arguments: '{"path":"a"}' }
      ],
      usage: { input_tokens: 7, output_tokens: 3, total_tokens: 10 }
    },
    Anthropic: {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "claude-sonnet-5-5",
      content: [
        { type: "thinking", thinking: "Hm.", signature: "s1" },
        { type: "text", text: "Look." },
        { type: "tool_use", id: "call_1", name: "read", input: { path: "a" } }
      ],
      stop_reason: "tool_use",
      usage: { input_tokens: 7, output_tokens: 3 }
    },
    Gemini: [
      { candidates: [{ content: { parts: [{ text: "Look." }] } }] },
      {
        candidates: [
          {
            content: { parts: [{ functionCall: { id: "call_1", name: "read", args: { path: "a" } } }] },
            finishReason: "STOP"
          }
        ],
        usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 3 }
      }
    ]
  }
  it.effect.each(names)("%s", (name) =>
    Effect.gen(function* () {
      const message = yield* turn(name, JSON.stringify(answers[name]), "application/json")
      expect(Message.text(message)).toBe("Look.")
      expect(message.toolCalls.map((one) => [one.name, one.arguments])).toEqual([["read", { path: "a" }]])
      expect([message.usage?.inputTokens, message.usage?.outputTokens]).toEqual([7, 3])
    })
  )
})
