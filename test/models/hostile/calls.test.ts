import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Message } from "effect-deepagents"
import { claude, askToEnd as claudeSays } from "../anthropic/asking.ts"
import { ask, compatible, request, responses } from "../openai/asking.ts"
import { chunk, functionCall, message, reasoning, response, responseEvents } from "../openai/wire.ts"
import * as Anthropic from "../servers/anthropic.ts"
import * as Server from "../servers/openai.ts"

const hello = request([Message.human("hello")])

const call = (id: string, n: number, over: object = {}) => functionCall(id, "charge", JSON.stringify({ n }), over)

/** The events of a response of which the last one says something else than those before it. */
const ending = (
  items: Parameters<typeof responseEvents>[0],
  output: Parameters<typeof responseEvents>[0],
  indices: (index: number) => unknown = (index) => index
) =>
  responseEvents(items).map((event): { readonly type: string } => {
    if (event.type === "response.completed") return { ...event, response: response({ output: [...output] }) } as never
    if ("output_index" in event) return { ...event, output_index: indices(event.output_index) } as never
    return event
  })

const asksFor = (events: ReadonlyArray<{ readonly type: string }>) =>
  Effect.gen(function* () {
    const server = yield* Server.make
    server.reply(Server.events(events))
    const { error, message: answer } = yield* ask(responses(server), hello)
    assert.isUndefined(error)
    return answer!
  })

const charged = ({ malformedToolCalls, toolCalls }: Message.AiMessage) => ({
  good: toolCalls.map((one) => one.arguments["n"]),
  bad: malformedToolCalls.map((one) => one.problem)
})

describe("OpenAiChatModel: an item is one item, however it is numbered", () => {
  const thought = reasoning("rs_1", ["hm"])
  const cases: ReadonlyArray<readonly [string, ReadonlyArray<{ readonly type: string }>]> = [
    ["the final list leaves the reasoning out", ending([thought, call("a", 1)], [call("a", 1)])],
    ["the indices have gaps", ending([thought, call("a", 1)], [thought, call("a", 1)], (index) => index * 2)],
    ["the indices are negative", ending([thought, call("a", 1)], [thought, call("a", 1)], (index) => -1 - index)],
    ["the indices are huge", ending([thought, call("a", 1)], [thought, call("a", 1)], (index) => 1e15 + index)],
    ["the indices are all the same", ending([thought, call("a", 1)], [thought, call("a", 1)], () => 0)],
    ["the indices are texts", ending([thought, call("a", 1)], [thought, call("a", 1)], String)],
    ["there are no indices", ending([thought, call("a", 1)], [thought, call("a", 1)], () => undefined)],
    ["the items have other ids in the final list", ending([call("a", 1)], [call("a", 1, { id: "fc_other" })])],
    ["the items have no ids", ending([call("a", 1, { id: undefined })], [call("a", 1, { id: undefined })])],
    ["the final list says it twice", ending([thought, call("a", 1)], [call("a", 1), thought, call("a", 1)])],
    ["the stream says it twice", ending([call("a", 1), call("a", 1, { id: "fc_b" })], [call("a", 1)])],
    ["it comes only at the end", ending([], [thought, call("a", 1)])],
    ["the final list is empty", ending([thought, call("a", 1)], [])]
  ]
  it.live.each(cases)("%s", ([, events]) =>
    Effect.gen(function* () {
      assert.deepStrictEqual(charged(yield* asksFor(events)), { good: [1], bad: [] })
    })
  )

  it.live("two calls are two, in order, wherever they stand", () =>
    Effect.gen(function* () {
      for (const indices of [(index: number) => index, (index: number) => index * 3 - 1, () => 0]) {
        const both = [call("a", 1), call("b", 2)]
        assert.deepStrictEqual(charged(yield* asksFor(ending(both, both, indices))), { good: [1, 2], bad: [] })
      }
    })
  )

  it.live("two calls with one id are not both executed", () =>
    Effect.gen(function* () {
      const both = [call("a", 1), call("a", 2, { id: "fc_b" })]
      const answer = charged(yield* asksFor(ending(both, both)))
      assert.deepStrictEqual(answer, { good: [1], bad: ["another call of the same answer has its id"] })
    })
  )

  it.live("a text is said once", () =>
    Effect.gen(function* () {
      const items = [message("Let me see. ", { id: "msg_1" }), message("It is 36.", { id: "msg_2" })]
      const renamed = [message("Let me see. ", { id: "msg_x" }), message("It is 36.", { id: "msg_y" })]
      for (const events of [
        ending(items, items, (index) => index * 2),
        ending(items, renamed),
        ending(items, items.slice(1))
      ]) {
        assert.strictEqual(Message.text(yield* asksFor(events)), "Let me see. It is 36.")
      }
    })
  )

  it.live("keeps a text at any content index", () =>
    Effect.gen(function* () {
      const events = responseEvents([message("Hello")])
        .filter(({ type }) => !type.endsWith(".done") && type !== "response.output_item.added")
        .map((event): { readonly type: string } =>
          "content_index" in event ? ({ ...event, content_index: 7 } as never) : event
        )
      const cut = events.map((event) =>
        event.type === "response.completed" ? ({ type: event.type, response: response({}) } as never) : event
      )
      assert.strictEqual(Message.text(yield* asksFor(cut)), "Hello")
    })
  )
})

const piece = (index: number | undefined, id: string, args: string, name?: string) => ({
  ...(index === undefined ? {} : { index }),
  id,
  type: "function",
  function: { arguments: args, ...(name === undefined ? {} : { name }) }
})

describe("OpenAiCompatibleChatModel: a call is one call, however it is named", () => {
  const asks = (pieces: ReadonlyArray<object>) =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const chunks = pieces.map((one) => chunk({ tool_calls: [one] } as never))
      server.reply(Server.chunks([...chunks, chunk({}, "tool_calls")]))
      const { error, message: answer } = yield* ask(compatible(server), hello)
      assert.isUndefined(error)
      assert.strictEqual(new Set(answer!.toolCalls.map(({ id }) => id)).size, answer!.toolCalls.length)
      return charged(answer!)
    })

  it.live("two calls of one id at two indices are two", () =>
    Effect.gen(function* () {
      const whole = [piece(0, "a", '{"n":1}', "charge"), piece(1, "a", '{"n":2}', "charge")]
      assert.deepStrictEqual(yield* asks(whole), { good: [1, 2], bad: [] })
      const interleaved = [
        piece(0, "a", "", "charge"),
        piece(1, "a", "", "charge"),
        piece(0, "a", '{"n"'),
        piece(1, "a", '{"n":'),
        piece(0, "", ":1}"),
        piece(1, "", "2}")
      ]
      assert.deepStrictEqual(yield* asks(interleaved), { good: [1, 2], bad: [] })
    })
  )

  it.live("one call that is told twice is one", () =>
    Effect.gen(function* () {
      const twice = [piece(0, "a", '{"n":1}', "charge"), piece(1, "a", '{"n":1}', "charge")]
      assert.deepStrictEqual(yield* asks(twice), { good: [1], bad: [] })
    })
  )

  it.live("pieces with an id and another index in each belong to their id", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* asks([piece(0, "a", '{"n"', "charge"), piece(1, "a", ":1}")]), {
        good: [1],
        bad: []
      })
    })
  )

  it.live("indices may be texts, or missing", () =>
    Effect.gen(function* () {
      const texts = [
        { ...piece(0, "a", '{"n":', "charge"), index: "0" },
        { ...piece(0, "b", '{"n":', "charge"), index: "1" },
        { index: "0", function: { arguments: "1}" } },
        { index: "1", function: { arguments: "2}" } }
      ]
      assert.deepStrictEqual(yield* asks(texts), { good: [1, 2], bad: [] })
      const none = [piece(undefined, "a", '{"n":1}', "charge"), piece(undefined, "b", '{"n":2}', "charge")]
      assert.deepStrictEqual(yield* asks(none), { good: [1, 2], bad: [] })
    })
  )
})

describe("AnthropicChatModel: a call is one call", () => {
  const asks = (...calls: ReadonlyArray<readonly [string, number]>) =>
    Effect.gen(function* () {
      const blocks = calls.map(([id, n]) => ({ call: "charge", id, input: { n } }))
      const server = yield* Anthropic.serve(Anthropic.stream(Anthropic.answer(blocks)))
      return yield* claudeSays(claude(server))
    })

  it.live("that is told twice is one, and two of one id are not both executed", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(charged(yield* asks(["a", 1], ["a", 1])), { good: [1], bad: [] })
      const clash = charged(yield* asks(["a", 1], ["a", 2]))
      assert.deepStrictEqual(clash, { good: [1], bad: ["another call of the same answer has its id"] })
    })
  )

  it.live("without an id it gets one", () =>
    Effect.gen(function* () {
      const { toolCalls } = yield* asks(["", 1], ["", 2])
      assert.strictEqual(new Set(toolCalls.map(({ id }) => id)).size, 2)
      assert.isFalse(toolCalls.some(({ id }) => id === ""))
    })
  )
})
