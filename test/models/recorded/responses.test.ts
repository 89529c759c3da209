import { assert, describe, it } from "@effect/vitest"
import { Effect, type Layer, Redacted } from "effect"
import { type ChatModel, Message } from "effect-deepagents"
import * as OpenAiChatModel from "effect-deepagents/models/OpenAiChatModel"
import { askAll, key, request, streamed } from "../openai/asking.ts"
import { responsesProblems } from "../openai/rules.ts"
import { responseEvents } from "../openai/wire.ts"
import * as Server from "../servers/openai.ts"
import { call, type Case, cases, makeText, streams } from "./responses.ts"

interface Place {
  readonly stored: boolean
  readonly model: (server: Server.Server) => Layer.Layer<ChatModel.ChatModel, unknown>
}

const apiKey = Redacted.make(key)

const places: Readonly<Record<string, Place>> = {
  "openai, by name": {
    stored: false,
    model: ({ url }) => OpenAiChatModel.layer({ model: "gpt-5.5", baseURL: url, apiKey })
  },
  "azure, a deployment": {
    stored: false,
    model: ({ url }) => OpenAiChatModel.layer({ model: "prod-assistant", azure: { endpoint: url }, apiKey })
  },
  "openai, a fine-tune": {
    stored: false,
    model: ({ url }) => OpenAiChatModel.layer({ model: "ft:gpt-5-mini:org::abc", baseURL: url, apiKey })
  },
  "openai, stored": {
    stored: true,
    model: ({ url }) => OpenAiChatModel.layer({ model: "gpt-5.5", baseURL: url, apiKey, store: true })
  }
}

const definition = (name: string): ChatModel.ToolDefinition => ({
  name,
  description: "",
  parameters: { type: "object", properties: { of: { type: "string" } } },
  annotations: {}
})

const tools = [definition("get_weather"), definition("list_cities")]

const all = Object.entries(cases).flatMap(([name, one]) =>
  Object.entries(streams).map(([how, cut]) => ({
    say: `${name}, ${how}`,
    one,
    events: cut(responseEvents(one.items, one.over))
  }))
)

const stopOf = (one: Case): Message.TurnStop => one.stop ?? (one.calls === undefined ? "stop" : "toolCalls")

describe("answers of the Responses API, decoded and sent back", () => {
  for (const [where, { model, stored }] of Object.entries(places)) {
    it.live(where, () =>
      Effect.gen(function* () {
        const server = yield* Server.make
        server.reply(...all.map(({ events }) => Server.events(events)))
        const outcomes = yield* askAll(
          model(server),
          all.map(() => request([Message.human("Weather?")], { tools }))
        )
        const histories = all.map(({ one, say }, index) => {
          const outcome = outcomes[index]!
          assert.isUndefined(outcome.error, say)
          const message = outcome.message!
          assert.strictEqual(Message.text(message), one.text ?? "", say)
          assert.strictEqual(streamed(outcome, "TextDelta"), one.text ?? "", say)
          assert.strictEqual(
            message.content.map((block) => (block.type === "reasoning" ? block.text : "")).join(""),
            one.reasoning ?? "",
            say
          )
          assert.strictEqual(streamed(outcome, "ReasoningDelta"), one.reasoning ?? "", say)
          assert.strictEqual(message.toolCalls.length, one.calls ?? 0, say)
          assert.strictEqual(message.stopReason, stopOf(one), say)
          const begun = outcome.parts.flatMap((part) =>
            part._tag === "ToolCallStart" && part.providerExecuted !== true ? [part.id] : []
          )
          assert.deepStrictEqual(
            begun,
            message.toolCalls.map(({ id }) => id),
            say
          )
          return JSON.parse(
            JSON.stringify([
              Message.human("Weather?"),
              message,
              ...message.toolCalls.map(({ id, name }) => Message.tool("Sun", { toolCallId: id, toolName: name })),
              Message.human("And now?")
            ])
          ) as ReadonlyArray<Message.Message>
        })
        const before = server.seen.length
        server.reply(...all.map(() => Server.events(responseEvents([makeText("msg_9", "ok")]))))
        yield* askAll(
          model(server),
          histories.map((messages) => request(messages, { tools }))
        )
        for (const [index, { one, say }] of all.entries()) {
          const { body } = server.seen[before + index]!
          assert.deepStrictEqual(responsesProblems(body), [], say)
          const back = body.input.filter(
            (sent: { readonly type?: string; readonly role?: string }) => sent.role !== "user"
          )
          const texts = back.flatMap((sent: { readonly role?: string; readonly content?: unknown }) =>
            sent.role !== "assistant"
              ? []
              : typeof sent.content === "string"
                ? [sent.content]
                : (sent.content as ReadonlyArray<{ readonly text: string }>).map(({ text }) => text)
          )
          const meant = one.items.flatMap((sent) =>
            sent.type === "message"
              ? sent.content.map((part) => (part.type === "output_text" ? part.text : part.refusal))
              : []
          )
          assert.deepStrictEqual(texts, meant, `${say}: the words`)
          const kinds = back.flatMap((sent: { readonly type?: string; readonly role?: string }) =>
            sent.type === "function_call_output" ? [] : [sent.type ?? "message"]
          )
          const expected = one.items.flatMap((sent) =>
            sent.type === "reasoning" && !stored && sent.encrypted_content === null ? [] : [sent.type]
          )
          assert.deepStrictEqual(kinds, expected, `${say}: the items, in their order`)
        }
      })
    )
  }

  it.live("a deployment that turns out to reason is asked for its reasoning from then on", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const over = { model: "gpt-5-2025-08-07" }
      server.reply(
        Server.events(responseEvents([call("call_1", "Paris")], over)),
        Server.events(responseEvents([makeText("msg_1", "ok")], over))
      )
      const layer = places["azure, a deployment"]!.model(server)
      const [outcome] = yield* askAll(layer, [request([Message.human("Weather?")], { tools })])
      const history = [
        Message.human("Weather?"),
        outcome!.message!,
        Message.tool("Sun", { toolCallId: "call_1", toolName: "get_weather" })
      ]
      yield* askAll(layer, [request(history, { tools })])
      assert.isUndefined(server.seen[0]!.body.include)
      assert.deepStrictEqual(server.seen[1]!.body.include, ["reasoning.encrypted_content"])
    })
  )

  it.live("a call goes back with its set of tools, and with who made it", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const model = places["openai, by name"]!.model(server)
      for (const name of ["a call of a set of tools", "a call that a program made"]) {
        const one = cases[name]!
        server.reply(Server.events(responseEvents(one.items)), Server.events(responseEvents([makeText("msg_1", "ok")])))
        const [outcome] = yield* askAll(model, [request([Message.human("?")], { tools })])
        const answer = Message.tool("Sun", { toolCallId: "call_1", toolName: "get_weather" })
        yield* askAll(model, [request([Message.human("?"), outcome!.message!, answer], { tools })])
        const { status: _, ...meant } = one.items[0] as { readonly status: string }
        assert.deepInclude(server.seen.at(-1)!.body.input, meant)
      }
    })
  )

  it.live("a level of thinking becomes an effort that the model takes", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const sendCase = Effect.fnUntraced(function* (
        model: string,
        options: Partial<OpenAiChatModel.Options>,
        level?: string
      ) {
        server.reply(Server.events(responseEvents([makeText("msg_1", "ok")])))
        const layer = OpenAiChatModel.layer({ model, baseURL: server.url, apiKey, ...options })
        yield* askAll(layer, [
          request([Message.human("?")], { parameters: level === undefined ? {} : { thinking: level } })
        ])
        return server.seen.at(-1)!.body.reasoning
      })
      assert.deepStrictEqual(yield* sendCase("gpt-5.5", { thinking: "off" }), { effort: "none" })
      assert.deepStrictEqual(yield* sendCase("gpt-5", { thinking: "off" }), { effort: "minimal" })
      assert.deepStrictEqual(yield* sendCase("o3", { thinking: { budget: 1_000 } }), { effort: "low" })
      assert.deepStrictEqual(yield* sendCase("gpt-5-pro", { thinking: "low" }), { effort: "high" })
      assert.deepStrictEqual(yield* sendCase("gpt-5.5", { thinking: "high", reasoning: { summary: "auto" } }), {
        effort: "high",
        summary: "auto"
      })
      assert.deepStrictEqual(yield* sendCase("gpt-5.5", { thinking: "high" }, "low"), { effort: "low" })
      assert.isUndefined(yield* sendCase("gpt-4.1", { thinking: "high" }))
      assert.isUndefined(yield* sendCase("gpt-5.5", {}))
    })
  )
})
