import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { type Json, Message } from "effect-deepagents"
import fc from "fast-check"
import { makeChatWriter } from "../../../src/models/internal/openai/chatRequest.ts"
import { makeResponsesWriter } from "../../../src/models/internal/openai/responsesRequest.ts"
import { plain } from "../../../src/models/internal/servers/servers.ts"
import { scaled } from "../../scale.ts"
import * as histories from "../internal/histories.ts"
import * as Server from "../servers/openai.ts"
import { ask, compatible, type Outcome, request, responses } from "./asking.ts"
import { chatProblems, responsesProblems, strictSchema } from "./rules.ts"
import { chunk, functionCall, message, reasoning, responseEvents, usageChunk } from "./wire.ts"

const model = "gpt-5"

/** What this provider's own turns carry, from this model and from another one, in any order. */
const own = (provider: string): histories.Own => {
  const index = fc.nat(5)
  const item = fc.constantFrom<Array<Json.JsonObject>[number]>(
    { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "sealed" },
    { type: "reasoning", id: "rs_2", summary: [{ type: "summary_text", text: "Hm" }] }
  )
  const sealed = fc.constantFrom<Array<Json.JsonObject>[number]>(
    { field: "reasoning_content" },
    { details: [{ type: "reasoning.encrypted", data: "x" }] }
  )
  const search: Json.JsonObject = {
    index: 2,
    item: { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search", query: "x" } }
  }
  return {
    block: fc.oneof(
      fc
        .tuple(index, item)
        .map(([at, it]) => ({ [provider]: { index: at, item: it, id: "msg_1", phase: "commentary" } })),
      sealed.map((it) => ({ [provider]: it }))
    ),
    call: index.map((at) => ({ [provider]: { index: at, id: "fc_1" } })),
    message: fc.tuple(fc.constantFrom(model, "gpt-4.1"), fc.boolean()).map(([by, searched]) => ({
      [provider]: { model: by, stopReason: "completed", ...(searched ? { items: [search] } : {}) }
    }))
  }
}

const tools = fc.constantFrom<ReadonlyArray<ReadonlyArray<string>>[number]>(
  [],
  ["search", "server.tool"],
  ["search", "n".repeat(200), "server_tool", "server.tool"]
)

const definition = (name: string) => ({
  name,
  description: name,
  parameters: { type: "object", properties: {} },
  annotations: {}
})

const asked = fc
  .tuple(histories.history(own("openai")), tools, histories.text)
  .map(([messages, names, systemPrompt]) =>
    request(messages, { tools: names.map(definition), systemPrompt: systemPrompt.trim() === "" ? "" : "Be brief." })
  )

describe("OpenAI's codecs: any history is valid on the wire", () => {
  it("Responses", () => {
    fc.assert(
      fc.property(asked, fc.boolean(), (one, store) => {
        const write = makeResponsesWriter({
          provider: "openai",
          model,
          parameters: [{ store }],
          reasons: !store,
          efforts: undefined
        })
        const written = Result.getOrThrow(write(one))
        assert.deepStrictEqual(responsesProblems(written.body), [])
      }),
      { numRuns: scaled(400) }
    )
  })

  it("Chat Completions", () => {
    fc.assert(
      fc.property(asked, (one) => {
        const write = makeChatWriter({
          provider: "openai",
          model,
          parameters: [],
          ways: plain,
          efforts: undefined
        })
        const written = Result.getOrThrow(write(one))
        assert.deepStrictEqual(chatProblems(written.body), [])
      }),
      { numRuns: scaled(400) }
    )
  })

  it("a session that wrote the history before writes the same as a new one", () => {
    const settings = { provider: "openai", model, parameters: [{ store: false }], reasons: true, efforts: undefined }
    const chat = {
      provider: "openai",
      model,
      parameters: [],
      ways: plain,
      efforts: undefined
    }
    fc.assert(
      fc.property(fc.array(asked, { minLength: 2, maxLength: 4 }), (requests) => {
        const remembering = makeResponsesWriter(settings)
        const rememberingChat = makeChatWriter(chat)
        const all = requests.flatMap((one, index) => [
          one,
          { ...one, messages: [...requests[0]!.messages.slice(0, index), ...one.messages] }
        ])
        for (const one of all) {
          const fresh = Result.getOrThrow(makeResponsesWriter(settings)(one)).body
          assert.deepStrictEqual(Result.getOrThrow(remembering(one)).body, fresh)
          const freshChat = Result.getOrThrow(makeChatWriter(chat)(one)).body
          assert.deepStrictEqual(Result.getOrThrow(rememberingChat(one)).body, freshChat)
        }
      }),
      { numRuns: scaled(100) }
    )
  })

  it("writes earlier messages only once while the history grows (invariant 15)", () => {
    const search = definition("search")
    const turns = Array.from({ length: 4 }, (_, index) => [
      Message.human(`question ${index}`),
      Message.ai("", { toolCalls: [{ id: `c${index}`, name: "search", arguments: {} }] }),
      Message.tool("found", { toolCallId: `c${index}`, toolName: "search" })
    ])
    const shorter = request(turns.slice(0, 3).flat(), { tools: [search] })
    const longer = request(turns.flat(), { tools: [search] })
    const write = makeResponsesWriter({
      provider: "openai",
      model,
      parameters: [{ store: false }],
      reasons: true,
      efforts: undefined
    })
    const writeChat = makeChatWriter({
      provider: "openai",
      model,
      parameters: [],
      ways: plain,
      efforts: undefined
    })
    const before = [Result.getOrThrow(write(shorter)).body.input, Result.getOrThrow(writeChat(shorter)).body.messages]
    const after = [Result.getOrThrow(write(longer)).body.input, Result.getOrThrow(writeChat(longer)).body.messages]
    before.forEach((list, which) => {
      // All but the last turn, to which an answer could still have come.
      for (let index = 0; index < list!.length - 2; index++) assert.strictEqual(after[which]![index], list![index])
    })
  })

  it("the rules see mistakes", () => {
    const loose = { type: "object", properties: { a: { type: "string", minLength: 1 } } }
    assert.isAbove(strictSchema(loose).length, 1)
  })
})

it("the requests of a conversation share the key of a cache, and parameters win over it", () => {
  const keyOf = (
    messages: ReadonlyArray<Message.Message>,
    over: Parameters<typeof request>[1] = {},
    cacheKey?: string
  ) => {
    const write = makeResponsesWriter({
      provider: "openai",
      model,
      parameters: cacheKey === undefined ? [] : [{ promptCacheKey: cacheKey }],
      reasons: true,
      efforts: undefined,
      hasCacheKey: true
    })
    return Result.getOrThrow(write(request(messages, { systemPrompt: "Be brief.", ...over }))).body.prompt_cache_key
  }
  const hello = Message.human("Hello")
  const first = keyOf([hello])
  assert.match(first ?? "", /^deepagents-[\da-z-]+$/)
  assert.strictEqual(keyOf([hello, Message.ai("Hi"), Message.human("And?")]), first)
  assert.notStrictEqual(keyOf([Message.human("Hi")]), first)
  assert.strictEqual(keyOf([hello], {}, "mine"), "mine")
  assert.strictEqual(keyOf([hello], { parameters: { prompt_cache_key: null } }), undefined)
  assert.strictEqual(keyOf([hello], { purpose: "summary" }), undefined)
})

describe("OpenAI's codecs: chunks may be cut anywhere", () => {
  const essence = ({ message: done, parts }: Outcome) => {
    const text = parts.map((part) => (part._tag === "TextDelta" ? part.text : "")).join("")
    const thought = parts.map((part) => (part._tag === "ReasoningDelta" ? part.text : "")).join("")
    return { text, thought, tags: [...new Set(parts.map((part) => part._tag))], done: { ...done, id: "" } }
  }

  const said = "Größe: 日本 👩‍🚀\r\n\u2028 data: event: \n\n\\n"

  const bytes = fc.array(fc.nat(20_000), { maxLength: 12 })

  it.live(
    "Responses",
    Effect.fnUntraced(function* () {
      const server = yield* Server.make
      const events = responseEvents(
        [reasoning("rs_1", [said]), message(said), functionCall("a", "search", JSON.stringify({ q: said }))],
        {},
        3
      )
      server.reply(Server.events(events))
      const whole = essence(yield* ask(responses(server), request([])))
      assert.strictEqual(whole.text, said)
      assert.deepStrictEqual(whole.done.toolCalls![0]!.arguments, { q: said })
      for (const cuts of fc.sample(bytes, 25)) {
        server.reply(Server.events(events, { cuts }))
        assert.deepStrictEqual(essence(yield* ask(responses(server), request([]))), whole)
      }
    })
  )

  it.live(
    "Chat Completions",
    Effect.fnUntraced(function* () {
      const server = yield* Server.make
      const list = [
        chunk({ reasoning_content: said }),
        chunk({ content: said }),
        chunk({
          tool_calls: [{ index: 0, id: "a", function: { name: "search", arguments: JSON.stringify({ q: said }) } }]
        }),
        chunk({}, "tool_calls"),
        usageChunk()
      ]
      server.reply(Server.chunks(list))
      const whole = essence(yield* ask(compatible(server), request([])))
      assert.strictEqual(whole.text, said)
      for (const cuts of fc.sample(bytes, 25)) {
        server.reply(Server.chunks(list, { cuts }))
        assert.deepStrictEqual(essence(yield* ask(compatible(server), request([]))), whole)
      }
    })
  )
})
