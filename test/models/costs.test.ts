/** Costs of answers whose price has more than one rate: tiers of service, and searches by the provider. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { Message } from "effect-deepagents"
import * as GeminiChatModel from "effect-deepagents/models/GeminiChatModel"
import { claude, askToEnd } from "./anthropic/asking.ts"
import { ask, compatible, request } from "./openai/asking.ts"
import { chunk, usageChunk } from "./openai/wire.ts"
import * as Claude from "./servers/anthropic.ts"
import * as Server from "./servers/openai.ts"

const hello = request([Message.human("hello")])

const tokens = { prompt_tokens_details: { cached_tokens: 0 }, completion_tokens: 0, total_tokens: 100_000 }

describe("costs", () => {
  it.live("follow the tier that an answer of Chat Completions names", () =>
    Effect.gen(function* () {
      const costIn = (service_tier: "default" | "flex" | "priority") =>
        Effect.gen(function* () {
          const server = yield* Server.make
          const usage = usageChunk({ ...tokens, prompt_tokens: 100_000 })
          server.reply(Server.chunks([chunk({ content: "ok" }, "stop"), { ...usage, service_tier }]))
          const fetchOpenAi: typeof fetch = (_, init) => fetch(`${server.url}/chat/completions`, init)
          const layer = compatible(server, {
            model: "gpt-6.1-sol",
            baseURL: "https://api.openai.com/v1",
            fetch: fetchOpenAi
          })
          return (yield* ask(layer, hello)).message?.usage?.cost ?? assert.fail("no cost")
        })
      assert.closeTo(yield* costIn("default"), 0.2, 1e-9)
      assert.closeTo(yield* costIn("flex"), 0.1, 1e-9)
      assert.closeTo(yield* costIn("priority"), 0.4, 1e-9)
    })
  )

  it.live("count Claude's searches, a cent each", () =>
    Effect.gen(function* () {
      const costOf = (server_tool_use: object) =>
        Effect.gen(function* () {
          const finalUsage = { output_tokens: 1, server_tool_use }
          const server = yield* Claude.serve(Claude.stream(Claude.answer([{ text: "ok" }], { finalUsage })))
          return (yield* askToEnd(claude(server))).usage?.cost ?? assert.fail("no cost")
        })
      const without = yield* costOf({})
      assert.closeTo((yield* costOf({ web_search_requests: 3, web_fetch_requests: 5 })) - without, 0.03, 1e-9)
    })
  )

  it.live("are multiplied by Claude's fast mode and by a place", () =>
    Effect.gen(function* () {
      const costOf = (model: string, names: object) =>
        Effect.gen(function* () {
          const answer = Claude.answer([{ text: "ok" }], { finalUsage: { output_tokens: 100, ...names } })
          const server = yield* Claude.serve(Claude.stream(answer))
          return (yield* askToEnd(claude(server, { model }))).usage?.cost
        })
      const usual = (yield* costOf("claude-opus-5-5", { speed: "standard", inference_geo: "global" })) ?? 0
      assert.isAbove(usual, 0)
      const fast = yield* costOf("claude-opus-5-5", { speed: "fast", inference_geo: "us" })
      assert.closeTo(fast ?? 0, usual * 2.2, 1e-12)
    })
  )

  it.live("count each search of Gemini, and of models before the third one only the turn", () =>
    Effect.gen(function* () {
      const costOf = (model: string, webSearchQueries: ReadonlyArray<string>) =>
        Effect.gen(function* () {
          const server = yield* Server.make
          const event = {
            candidates: [
              { content: { parts: [{ text: "ok" }] }, finishReason: "STOP", groundingMetadata: { webSearchQueries } }
            ],
            usageMetadata: { promptTokenCount: 1_000, candidatesTokenCount: 0 }
          }
          server.reply(Server.raw(`data: ${JSON.stringify(event)}\n\n`))
          const layer = GeminiChatModel.layer({ model, baseURL: server.url, apiKey: Redacted.make("k") })
          return (yield* ask(layer, hello)).message?.usage?.cost ?? assert.fail("no cost")
        })
      const searches = ["a", "b", "c"]
      const ofNew = (yield* costOf("gemini-3.5-flash", searches)) - (yield* costOf("gemini-3.5-flash", []))
      const ofOld = (yield* costOf("gemini-2.5-flash", searches)) - (yield* costOf("gemini-2.5-flash", []))
      assert.closeTo(ofNew, 3 * 0.014, 1e-9)
      assert.closeTo(ofOld, 0.035, 1e-9)
    })
  )
})
