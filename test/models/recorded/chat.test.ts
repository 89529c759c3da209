import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Result } from "effect"
import { type ChatModel, Content, type Json, Message } from "effect-deepagents"
import { ChatModels } from "effect-deepagents/models"
import fc from "fast-check"
import { makeChatWriter } from "../../../src/models/internal/openai/chatRequest.ts"
import { servers } from "../../../src/models/internal/servers/servers.ts"
import { scaled } from "../../scale.ts"
import { history } from "../internal/histories.ts"
import { askAll, request, streamed } from "../openai/asking.ts"
import * as Server from "../servers/openai.ts"
import { chunksOf, cuts, type Meaning, meanings, spent, type Way, ways } from "./chat.ts"
import { rules } from "./rules.ts"

const tool = (name: string): ChatModel.ToolDefinition => ({
  name,
  description: `Does ${name}.`,
  parameters: { type: "object", properties: { of: { type: "string" } } },
  annotations: {}
})

const tools = [tool("get_weather"), tool("list_cities")]

const at = (server: Server.Server, way: Way, model = way.model) =>
  ChatModels.resolve(`${way.name}:${model}`, { baseURL: server.url }).pipe(
    Layer.provide(
      ConfigProvider.layer(ConfigProvider.fromEnv({ env: way.key === undefined ? {} : { [way.key]: "sk-of-a-test" } }))
    )
  )

/** A turn of another provider, with ids and reasoning that mean nothing here. */
const foreign: ReadonlyArray<Message.Message> = [
  Message.human("Before"),
  Message.ai([Content.reasoning("Hm.", { anthropic: { signature: "sig" } }), Content.text("I look.")], {
    toolCalls: [{ id: "toolu_01A09q90qw90lq917835lq9", name: "get_weather", arguments: { of: "Rome" } }],
    providerData: { anthropic: { stopReason: "tool_use" } }
  }),
  Message.tool("Rain", { toolCallId: "toolu_01A09q90qw90lq917835lq9", toolName: "get_weather" }),
  Message.ai("It rains.")
]

const png = "iVBORw0KGgo="

/** The history with an answer in it, as a run goes on: results with a picture, and what a person says to it. */
const after = (message: Message.AiMessage): ReadonlyArray<Message.Message> => [
  ...foreign,
  Message.human([
    Content.text("What of this?"),
    Content.file({ base64: "YSxiCjEsMg==", mimeType: "text/csv", name: "data.csv" })
  ]),
  message,
  ...message.toolCalls.map((call, index) =>
    Message.tool(index === 0 ? [Content.text("Sun"), Content.image({ base64: png, mimeType: "image/png" })] : "Sun", {
      toolCallId: call.id,
      toolName: call.name
    })
  ),
  Message.human("And now?")
]

const checkMeaning = (meaning: Meaning, outcome: { readonly message: Message.AiMessage | undefined }, say: string) => {
  const message = outcome.message
  if (message === undefined) return assert.fail(`${say}: no message`)
  assert.strictEqual(Message.text(message), meaning.text ?? "", say)
  assert.strictEqual(Message.reasoning(message) ?? "", meaning.reasoning ?? "", say)
  assert.deepStrictEqual(
    message.toolCalls.map((call): { readonly name: string; readonly arguments: Json.JsonObject } => ({
      name: call.name,
      arguments: call.arguments
    })),
    meaning.calls ?? [],
    say
  )
  assert.strictEqual(new Set(message.toolCalls.map(({ id }) => id)).size, message.toolCalls.length, say)
  assert.deepStrictEqual(message.malformedToolCalls, [], say)
  const thought = meaning.reasoning === undefined ? 0 : spent.thought
  assert.strictEqual(message.usage?.inputTokens, spent.input, say)
  assert.strictEqual(message.usage?.outputTokens, spent.said + thought, say)
  const isCut = meaning.finish === "length"
  const isFiltered = meaning.finish === "content_filter"
  const isCall = (meaning.calls ?? []).length > 0
  assert.strictEqual(
    message.stopReason,
    isCut ? "length" : isFiltered ? "contentFilter" : isCall ? "toolCalls" : "stop",
    say
  )
  return message
}

describe("any history is valid for each server", () => {
  for (const { name, ways: own } of servers) {
    it(name, () => {
      const block = fc.constantFrom<ReadonlyArray<Json.JsonObject>[number]>(
        { [name]: { field: name === "mistral" ? "content" : "reasoning" } },
        { [name]: { field: name === "mistral" ? "content" : "reasoning" } },
        { [name]: name === "openrouter" ? { details: [{ type: "reasoning.text", text: "Hm." }] } : {} },
        { [name]: { field: 7, extra: "no" } }
      )
      const call = fc.constantFrom<ReadonlyArray<Json.JsonObject>[number]>(
        { [name]: { extra: { google: { thought_signature: "sig" } } } },
        { [name]: { extra: 3 } },
        {}
      )
      const message = fc.constantFrom<ReadonlyArray<Json.JsonObject>[number]>(
        { [name]: { model: "a-model", stopReason: "stop" } },
        { [name]: { model: "another", extra: [] } }
      )
      const choice = fc.constantFrom<ChatModel.ToolChoice>("auto", "none", "required", { tool: "get_weather" })
      const efforts = fc.constantFrom(undefined, [], ["none", "high"] as const)
      const thinking = fc.constantFrom(undefined, "off", "high", { budget: 0 } as const)
      fc.assert(
        fc.property(
          history({ block, call, message }),
          choice,
          efforts,
          thinking,
          (messages, toolChoice, taken, level) => {
            const write = makeChatWriter({
              provider: name,
              model: "a-model",
              parameters: level === undefined ? [] : [{ thinking: level }],
              ways: own,
              efforts: taken,
              isMarked: own.cacheMarks !== undefined
            })
            const written = write(request(messages, { tools, toolChoice, systemPrompt: "Be brief." }))
            assert.deepStrictEqual(rules[name]!(Result.getOrThrow(written).body), [])
          }
        ),
        { numRuns: scaled(120) }
      )
    })
  }
})

describe("answers of servers of Chat Completions, decoded and sent back", () => {
  for (const way of ways) {
    it.live(way.name, () =>
      Effect.gen(function* () {
        const server = yield* Server.make
        const problems = rules[way.name]!
        const cases = Object.entries(meanings).flatMap(([name, meaning]) =>
          Object.entries(cuts).map(([how, size]) => ({ say: `${way.name}, ${name}, ${how}`, meaning, size }))
        )
        server.reply(...cases.map(({ meaning, size }) => Server.chunks(chunksOf(way, meaning, size))))
        const hello = request([Message.human("Weather?")], { tools })
        const outcomes = yield* askAll(
          at(server, way),
          cases.map(() => hello)
        )
        const histories = cases.map(({ meaning, say }, index) => {
          const outcome = outcomes[index]!
          assert.isUndefined(outcome.error, say)
          const message = checkMeaning(meaning, outcome, say)
          assert.strictEqual(streamed(outcome, "TextDelta"), Message.text(message), say)
          assert.strictEqual(streamed(outcome, "ReasoningDelta"), Message.reasoning(message) ?? "", say)
          // A thread is kept as JSON between rounds, and goes on with this model or with another one.
          return JSON.parse(JSON.stringify(after(message))) as ReadonlyArray<Message.Message>
        })
        for (const model of [way.model, way.other]) {
          const before = server.seen.length
          const requests = histories.map((messages, index) =>
            request(messages, {
              tools,
              toolChoice: index % 2 === 0 ? "auto" : { tool: "get_weather" },
              systemPrompt: "Be brief."
            })
          )
          server.reply(...requests.map(() => Server.chunks(chunksOf(way, { text: "ok" }, 7))))
          yield* askAll(at(server, way, model), requests)
          for (const [index, { meaning, say }] of cases.entries()) {
            const { body } = server.seen[before + index]!
            assert.deepStrictEqual(problems(body), [], `${say}, sent back to ${model}`)
            assert.include(JSON.stringify(body), "a,b", `${say}: the text of a file`)
            const said = body.messages.findLast(
              ({ content, role }: { readonly role: string; readonly content: unknown }) =>
                role === "assistant" && content !== "(The results were read.)"
            )
            if (model === way.model) assert.isTrue(way.echo(said, meaning.reasoning ?? ""), `${say}, echo`)
          }
        }
      })
    )
  }
})
