/** Checks both directions against OpenAI's own description of its API, if there is a copy of it: `OPENAI_OPENAPI=openapi.json npx vitest run test/models/recorded/openapi.test.ts`. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { type ChatModel, type Json, Message } from "effect-deepagents"
import * as OpenAiChatModel from "effect-deepagents/models/OpenAiChatModel"
import * as OpenAiCompatibleChatModel from "effect-deepagents/models/OpenAiCompatibleChatModel"
import { makeCheck } from "../../../scripts/wires/openapi.ts"
import { askAll, request } from "../openai/asking.ts"
import { chunk, responseEvents, usageChunk } from "../openai/wire.ts"
import * as Server from "../servers/openai.ts"
import { cases, makeText } from "./responses.ts"

const path = process.env["OPENAI_OPENAPI"]

const makeAssert = (document: string) => {
  const check = makeCheck(document)
  return (schema: string, value: unknown, say: string): void => assert.isUndefined(check(schema, value), say)
}

const tools: ReadonlyArray<ChatModel.ToolDefinition> = ["get_weather", "list_cities"].map((name) => ({
  name,
  description: "Does it.",
  parameters: { type: "object", properties: { of: { type: "string" } } } satisfies Json.JsonObject,
  annotations: {}
}))

const history = (message: Message.AiMessage): ReadonlyArray<Message.Message> => [
  Message.human("Weather?"),
  message,
  ...message.toolCalls.map(({ id, name }) => Message.tool("Sun", { toolCallId: id, toolName: name })),
  Message.human("And now?")
]

const apiKey = Redacted.make("sk-of-a-test")

describe.skipIf(path === undefined)("OpenAI's own description of its API", () => {
  const check = path === undefined ? () => undefined : makeAssert(readFileSync(path, "utf8"))

  for (const store of [false, true]) {
    it.live(`Responses, ${store ? "stored" : "not stored"}`, () =>
      Effect.gen(function* () {
        const server = yield* Server.make
        const model = OpenAiChatModel.layer({
          model: "gpt-5.5",
          baseURL: server.url,
          apiKey,
          store,
          thinking: "low",
          maxOutputTokens: 1_000,
          parallelToolCalls: true
        })
        for (const [name, one] of Object.entries(cases)) {
          const events = responseEvents(one.items, one.over)
          for (const event of events) check("ResponseStreamEvent", event, `${name}, ${event.type}`)
          server.reply(Server.events(events), Server.events(responseEvents([makeText("msg_9", "ok")])))
          const [outcome] = yield* askAll(model, [request([Message.human("Weather?")], { tools })])
          const again = request(history(outcome!.message!), {
            tools,
            systemPrompt: "Be brief.",
            toolChoice: "required"
          })
          yield* askAll(model, [again])
          for (const { body } of server.seen.slice(-2)) check("CreateResponse", body, `${name}, the request`)
        }
      })
    )
  }

  it.live("Chat Completions", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const model = OpenAiCompatibleChatModel.layer({
        model: "gpt-5.5",
        provider: "openai",
        baseURL: server.url,
        apiKey,
        thinking: "low",
        maxOutputTokens: 1_000,
        stop: ["END"]
      })
      const call = {
        index: 0,
        id: "call_1",
        type: "function" as const,
        function: { name: "get_weather", arguments: '{"of":"Paris"}' }
      }
      for (const chunks of [
        [chunk({ role: "assistant", content: "" }), chunk({ content: "Sun." }), chunk({}, "stop"), usageChunk()],
        [chunk({ role: "assistant", tool_calls: [call] }), chunk({}, "tool_calls"), usageChunk()],
        [chunk({ role: "assistant", refusal: "I can't." }), chunk({}, "stop"), usageChunk()]
      ]) {
        for (const one of chunks) check("CreateChatCompletionStreamResponse", one, "a chunk")
        server.reply(Server.chunks(chunks), Server.chunks([chunk({ content: "ok" }, "stop")]))
        const [outcome] = yield* askAll(model, [request([Message.human("Weather?")], { tools })])
        const outputSchema = { type: "object", properties: { a: { type: "string" } }, required: ["a"] }
        yield* askAll(model, [request(history(outcome!.message!), { tools, systemPrompt: "Be brief.", outputSchema })])
        for (const { body } of server.seen.slice(-2)) check("CreateChatCompletionRequest", body, "the request")
      }
    })
  )
})
