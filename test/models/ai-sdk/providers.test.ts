/** Packages of the AI SDK at servers that speak their wire: what goes back in the second round of an agent. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Agent, Message, Tool } from "effect-deepagents"
import * as AiSdkChatModel from "effect-deepagents/models/bridges/AiSdkChatModel"
import { askAll, request } from "../openai/asking.ts"
import { chunk, functionCall, message, reasoning, responseEvents, usageChunk } from "../openai/wire.ts"
import * as Anthropic from "../servers/anthropic.ts"
import * as OpenAi from "../servers/openai.ts"
import { anthropic, compatible, gemini, google, openai } from "./models.ts"

const weather = Tool.make("weather", {
  description: "Tells the weather",
  parameters: { city: Schema.String },
  execute: ({ city }) => Effect.succeed(`sunny in ${city}`)
})

const agent = Agent.make({ name: "meteorologist", prompt: "You tell the weather.", tools: [weather] })

/** An agent with a tool, in two rounds, and the second request. */
const run = Effect.fnUntraced(function* (
  model: (url: string) => ReturnType<typeof openai>,
  replies: ReadonlyArray<OpenAi.Reply>,
  options?: Parameters<typeof AiSdkChatModel.layer>[1]
) {
  const server = yield* OpenAi.make
  server.reply(...replies)
  const result = yield* Agent.run(agent, "Weather in Ulm?").pipe(
    Effect.provide(AiSdkChatModel.layer(model(server.url), options))
  )
  return { result, body: server.seen[1]?.body, bodies: server.seen.map((one) => one.body) }
})

describe("@ai-sdk/openai", () => {
  it.live("gets its encrypted reasoning back, and reports cached and thinking tokens", () =>
    Effect.gen(function* () {
      const { bodies, body, result } = yield* run(
        openai,
        [
          OpenAi.events(
            responseEvents([reasoning("rs_1", ["thinking"]), functionCall("call_1", "weather", '{"city":"Ulm"}')])
          ),
          OpenAi.events(responseEvents([message("Sunny.")]))
        ],
        { providerOptions: { openai: { store: false, reasoningSummary: "auto" } } }
      )
      assert.strictEqual(result.text, "Sunny.")
      assert.deepStrictEqual(result.usage.reasoningTokens, 40)
      assert.deepStrictEqual(result.usage.cacheReadTokens, 120)
      assert.include(bodies[0].include, "reasoning.encrypted_content")
      const types = body.input.map((item: { readonly type?: string; readonly role?: string }) => item.type ?? item.role)
      assert.deepStrictEqual(types, ["developer", "user", "reasoning", "function_call", "function_call_output"])
      assert.strictEqual(body.input[2].encrypted_content, "sealed rs_1")
      assert.strictEqual(body.input[4].output, "sunny in Ulm")
    }).pipe(Effect.scoped)
  )

  it.live("asks for an answer in a schema by its own means", () =>
    Effect.gen(function* () {
      const server = yield* OpenAi.make
      server.reply(OpenAi.events(responseEvents([message('{"celsius":21}')])))
      const told = Agent.make({ name: "a", prompt: "", output: Schema.Struct({ celsius: Schema.Finite }) })
      const { output } = yield* Agent.run(told, "?").pipe(Effect.provide(AiSdkChatModel.layer(openai(server.url))))
      assert.deepStrictEqual(output, { celsius: 21 })
      const format = server.seen[0]?.body.text.format
      assert.deepStrictEqual([format.type, format.strict], ["json_schema", true])
    }).pipe(Effect.scoped)
  )
})

describe("@ai-sdk/openai-compatible", () => {
  it.live("gets its reasoning back in the field that it knows", () =>
    Effect.gen(function* () {
      const { body, result } = yield* run(compatible, [
        OpenAi.chunks([
          chunk({ reasoning_content: "thinking" }),
          chunk({
            tool_calls: [
              { index: 0, id: "c1", type: "function", function: { name: "weather", arguments: '{"city":"Ulm"}' } }
            ]
          }),
          chunk({}, "tool_calls"),
          usageChunk()
        ]),
        OpenAi.chunks([chunk({ content: "Sunny." }), chunk({}, "stop"), usageChunk()])
      ])
      assert.strictEqual(result.text, "Sunny.")
      const assistant = body.messages.find((one: { readonly role: string }) => one.role === "assistant")
      assert.strictEqual(assistant.reasoning_content, "thinking")
      assert.strictEqual(assistant.tool_calls[0].id, "c1")
      assert.strictEqual(result.usage.outputTokens, 100)
    }).pipe(Effect.scoped)
  )

  it.live("that breaks in the middle of a stream fails with its text so far", () =>
    Effect.gen(function* () {
      const server = yield* OpenAi.make
      const broken = [
        [OpenAi.chunks([chunk({ content: "So" }), { error: { message: "GPU fell off", code: 503 } }]), "Overloaded"],
        [OpenAi.chunks([chunk({ content: "So" })]), "BadResponse"],
        [OpenAi.raw('data: {"choices":[{"delta":{"content":"So"}}]}\n\ndata: {nonsense\n\n'), "BadResponse"],
        [OpenAi.raw("data: [1,2]\n\n"), "BadResponse"],
        [OpenAi.chunks([]), "BadResponse"],
        [OpenAi.plain(200, "<html>login</html>"), "BadResponse"],
        [OpenAi.plain(404, "<html>nothing here</html>"), "InvalidRequest"],
        [OpenAi.reset, "Transport"]
      ] as const
      for (const [reply, tag] of broken) {
        server.reply(reply)
        const [outcome] = yield* askAll(AiSdkChatModel.layer(compatible(server.url)), [request([Message.human("?")])])
        assert.strictEqual(outcome?.error?.reason._tag, tag, outcome?.error?.message)
      }
      server.reply(OpenAi.chunks([chunk({ content: "So" }), chunk({}, "something_new" as never)]))
      const [odd] = yield* askAll(AiSdkChatModel.layer(compatible(server.url)), [request([Message.human("?")])])
      assert.strictEqual(odd?.message?.stopReason, "stop")
    }).pipe(Effect.scoped)
  )
})

describe("@ai-sdk/google", () => {
  it.live("gets its thought signatures back", () =>
    Effect.gen(function* () {
      const { body, result } = yield* run(google, [
        OpenAi.raw(
          gemini([
            { text: "thinking", thought: true },
            { functionCall: { name: "weather", args: { city: "Ulm" } }, thoughtSignature: "sig_1" }
          ])
        ),
        OpenAi.raw(
          gemini([{ text: "Sunny." }], "STOP", {
            groundingMetadata: { groundingChunks: [{ web: { uri: "https://a.example/", title: "A" } }] }
          })
        )
      ])
      assert.strictEqual(result.text, "Sunny.")
      assert.strictEqual(result.usage.outputTokens, 100)
      const parts = body.contents.flatMap((one: { readonly parts: ReadonlyArray<object> }) => one.parts)
      const call = parts.find((part: object) => "functionCall" in part)
      assert.strictEqual(call.thoughtSignature, "sig_1")
      assert.isTrue(parts.some((part: object) => "functionResponse" in part))
      const last = result.newMessages.at(-1)
      const [block] = last?.content ?? []
      assert.deepStrictEqual(block?.type === "text" && block.citations?.map(({ source }) => source.url), [
        "https://a.example/"
      ])
    }).pipe(Effect.scoped)
  )
})

describe("@ai-sdk/anthropic", () => {
  it.live("gets its signed thoughts back, and a request that the API's rules allow", () =>
    Effect.gen(function* () {
      const server = yield* Anthropic.serve(
        Anthropic.stream(
          Anthropic.answer(
            [
              { thinking: "thinking", signature: "sig_1" },
              { text: "Let me look." },
              { call: "weather", id: "toolu_1", input: { city: "Ulm" } }
            ],
            { stop: "tool_use" }
          )
        ),
        Anthropic.say("Sunny.")
      )
      const { text, usage } = yield* Agent.run(agent, "Weather in Ulm?").pipe(
        Effect.provide(AiSdkChatModel.layer(anthropic(server.url)))
      )
      assert.strictEqual(text, "Sunny.")
      assert.isAbove(usage.inputTokens, 0)
      const { messages, system } = server.requests[1]?.body ?? {}
      assert.deepStrictEqual(
        messages[1].content.map((part: { readonly type: string }) => part.type),
        ["thinking", "text", "tool_use"]
      )
      assert.strictEqual(messages[1].content[0].signature, "sig_1")
      assert.deepStrictEqual(system[0].cache_control, { type: "ephemeral" })
      assert.deepStrictEqual(messages[2].content[0].cache_control, { type: "ephemeral" })
    }).pipe(Effect.scoped)
  )

  it.live("waits as long as it was asked to", () =>
    Effect.gen(function* () {
      const server = yield* Anthropic.serve(
        Anthropic.error(429, "rate_limit_error", "slow down", { headers: { "retry-after": "3" } })
      )
      const [outcome] = yield* askAll(AiSdkChatModel.layer(anthropic(server.url)), [request([Message.human("?")])])
      assert.deepStrictEqual(outcome?.error?.reason._tag, "RateLimited")
      assert.include(outcome?.error?.message, "slow down")
      assert.strictEqual(server.requests.length, 1)
    }).pipe(Effect.scoped)
  )
})
