import { expect, it } from "@effect/vitest"
import { Effect, Layer, Logger, References, Stream } from "effect"
import { ChatModel, Message } from "effect-deepagents"
import fc from "fast-check"
import { describe, vi } from "vitest"
import { answer, type Event, json, say, serve, stream, toSse } from "../servers/anthropic.ts"
import { claude, askToEnd, failure, message, request, tool, turn } from "./asking.ts"

const mixed = answer(
  [
    { thinking: ["Let me ", "think 🤔"], signature: "sig-1" },
    { redacted: "opaque" },
    { text: ["Grüße, ", "日本", " 👩‍👩‍👧"] },
    { call: "search", id: "toolu_1", input: { of: 'a "quoted" \\ path', list: [1, { deep: "é" }] } },
    { call: "search", id: "toolu_2", input: {} }
  ],
  {
    usage: { input_tokens: 10, cache_read_input_tokens: 100, cache_creation_input_tokens: 20, output_tokens: 1 },
    finalUsage: { output_tokens: 50, output_tokens_details: { thinking_tokens: 30 } }
  }
)

const asked = request({ tools: [tool("search")] })

/** What a watcher sees, with the deltas joined. */
const summarize = (parts: ReadonlyArray<ChatModel.TurnPart>) => {
  let text = ""
  let reasoning = ""
  const calls: Record<string, string> = {}
  for (const part of parts) {
    if (part._tag === "TextDelta") text += part.text
    if (part._tag === "ReasoningDelta") reasoning += part.text
    if (part._tag === "ToolCallStart") calls[part.id] = `${part.name} `
    if (part._tag === "ToolCallDelta") calls[part.id] += part.delta
  }
  const { id: _, ...said } = message(parts)
  return { text, reasoning, calls, said }
}

describe("an answer of the Messages API", () => {
  it.live("leaves nothing behind on signals that outlive it", () =>
    Effect.gen(function* () {
      const turns = 6
      const server = yield* serve(...Array.from({ length: turns }, () => stream(mixed)))
      const layer = claude(server)
      const spy = vi.spyOn(EventTarget.prototype, "addEventListener")
      yield* Effect.forEach(Array.from({ length: turns }), () => turn(layer, asked))
      const counts = new Map<unknown, number>()
      for (const target of spy.mock.contexts) counts.set(target, (counts.get(target) ?? 0) + 1)
      spy.mockRestore()
      const signals = [...counts].flatMap(([target, count]) => (target instanceof AbortSignal ? [count] : []))
      expect(signals.length).toBeGreaterThan(0)
      expect(Math.max(...signals)).toBeLessThan(turns)
    })
  )

  it.live("is parts as they come, then the whole message", () =>
    Effect.gen(function* () {
      const server = yield* serve(stream(mixed))
      const parts = yield* turn(claude(server), asked)
      expect(parts.map((part) => part._tag)).toEqual([
        "ReasoningDelta",
        "ReasoningDelta",
        "TextDelta",
        "TextDelta",
        "TextDelta",
        "ToolCallStart",
        "ToolCallDelta",
        "ToolCallDelta",
        "ToolCallStart",
        "ToolCallDelta",
        "ToolCallDelta",
        "TurnDone"
      ])
      const { said } = summarize(parts)
      expect(said).toEqual({
        role: "ai",
        content: [
          { type: "reasoning", text: "Let me think 🤔", providerData: { anthropic: { signature: "sig-1" } } },
          { type: "reasoning", text: "", providerData: { anthropic: { redacted: "opaque" } } },
          { type: "text", text: "Grüße, 日本 👩‍👩‍👧" }
        ],
        toolCalls: [
          { id: "toolu_1", name: "search", arguments: { of: 'a "quoted" \\ path', list: [1, { deep: "é" }] } },
          { id: "toolu_2", name: "search", arguments: {} }
        ],
        malformedToolCalls: [],
        stopReason: "toolCalls",
        model: "claude-opus-5-5",
        usage: {
          inputTokens: 130,
          outputTokens: 50,
          cacheReadTokens: 100,
          cacheWriteTokens: 20,
          reasoningTokens: 30,
          cost: (10 * 4 + 100 * 0.2 + 20 * 5 + 50 * 20) / 1_000_000
        },
        providerData: { anthropic: { stopReason: "tool_use", id: "msg_01" } }
      })
    })
  )

  it.live("is the same however its bytes are cut, with comments and pings between", () =>
    Effect.gen(function* () {
      const raw = toSse(mixed).replaceAll("\n\n", '\n\n: keep-alive\n\nevent: ping\ndata: {"type": "ping"}\n\n')
      const whole = yield* serve(stream(mixed))
      const expected = summarize(yield* turn(claude(whole), asked))
      const length = new TextEncoder().encode(raw).length
      const cuts = [
        ...fc.sample(fc.array(fc.nat(length), { minLength: 1, maxLength: 40 }), { numRuns: 25, seed: 7 }),
        Array.from({ length: 400 }, (_, index) => index + 700)
      ]
      const server = yield* serve(...cuts.map((places) => stream(raw, { cuts: () => places })))
      const layer = claude(server)
      for (const _ of cuts) expect(summarize(yield* turn(layer, asked))).toEqual(expected)
    })
  )

  it.live("with CRLF line ends reads the same", () =>
    Effect.gen(function* () {
      const server = yield* serve(stream(toSse(mixed).replaceAll("\n", "\r\n")))
      expect((yield* askToEnd(claude(server), asked)).toolCalls).toHaveLength(2)
    })
  )

  it.live("of megabytes of arguments arrives whole", () =>
    Effect.gen(function* () {
      const of = 'é"\\'.repeat(300_000)
      const server = yield* serve(stream(answer([{ call: "search", id: "toolu_1", input: { of } }])))
      const said = yield* askToEnd(claude(server), asked)
      expect(said.toolCalls[0]?.arguments).toEqual({ of })
    })
  )

  it.live("comes part by part: the first is there while the server still writes", () =>
    Effect.gen(function* () {
      const events = answer([{ text: ["first", "second"] }])
      const raw = toSse(events)
      const server = yield* serve(stream(raw, { cuts: () => [raw.indexOf('"second"') - 80], end: "hold" }))
      const session = yield* Effect.provide(Effect.flatMap(ChatModel.ChatModel, ChatModel.open), claude(server))
      const first = yield* Stream.runHead(session.nextTurn(request()))
      expect(first).toMatchObject({ value: { _tag: "TextDelta", text: "first" } })
    })
  )
})

describe("the ends of a turn", () => {
  it.live.each([
    ["end_turn", "stop"],
    ["stop_sequence", "stop"],
    ["max_tokens", "length"],
    ["model_context_window_exceeded", "length"],
    ["refusal", "refusal"],
    ["pause_turn", "pause"],
    ["something_new", "stop"],
    ["constructor", "stop"],
    ["__proto__", "stop"]
  ])("%s is %s, the raw word is kept", ([stop = "", stopReason]) =>
    Effect.gen(function* () {
      const server = yield* serve(stream(answer([{ text: "hm" }], { stop })))
      const said = yield* askToEnd(claude(server))
      expect([said.stopReason, said.providerData]).toEqual([
        stopReason,
        { anthropic: { stopReason: stop, id: "msg_01" } }
      ])
    })
  )

  it.live("a refusal says why, a stop sequence which", () =>
    Effect.gen(function* () {
      const details = { type: "refusal", category: "cyber", explanation: "no" }
      const server = yield* serve(
        stream(answer([], { stop: "refusal", stopDetails: details })),
        stream(answer([{ text: "a" }], { stop: "stop_sequence", stopSequence: "END" }))
      )
      const layer = claude(server)
      expect((yield* askToEnd(layer)).providerData).toMatchObject({ anthropic: { stopDetails: details } })
      expect((yield* askToEnd(layer)).providerData).toMatchObject({ anthropic: { stopSequence: "END" } })
    })
  )

  it.live("an empty answer is a message without content", () =>
    Effect.gen(function* () {
      const server = yield* serve(stream(answer([])))
      expect(yield* askToEnd(claude(server))).toMatchObject({ content: [], toolCalls: [], stopReason: "stop" })
    })
  )

  it.live("calls make it a tool turn, for any stop reason; no calls make it none", () =>
    Effect.gen(function* () {
      const server = yield* serve(
        stream(answer([{ call: "search", id: "a", input: {} }], { stop: "end_turn" })),
        stream(answer([{ text: "done" }], { stop: "tool_use" }))
      )
      const layer = claude(server)
      expect((yield* askToEnd(layer)).stopReason).toBe("toolCalls")
      expect((yield* askToEnd(layer)).stopReason).toBe("stop")
    })
  )
})

describe("malformed calls are kept raw", () => {
  it.live.each([
    ["cut by the length limit", '{"of": "a', "max_tokens"],
    ["not JSON", "{of: a}", "tool_use"],
    ["not an object", "[1, 2]", "tool_use"]
  ])("%s", ([, raw = "", stop = ""]) =>
    Effect.gen(function* () {
      const server = yield* serve(stream(answer([{ call: "search", id: "a", input: raw }], { stop })))
      const said = yield* askToEnd(claude(server), asked)
      expect(said.toolCalls).toEqual([])
      expect(said.malformedToolCalls).toMatchObject([{ id: "a", name: "search", raw }])
    })
  )

  it.live("cut before its arguments began is not a call without arguments", () =>
    Effect.gen(function* () {
      const server = yield* serve(stream(answer([{ call: "search", id: "a", input: "" }], { stop: "max_tokens" })))
      expect((yield* askToEnd(claude(server), asked)).malformedToolCalls).toHaveLength(1)
    })
  )

  it.live("a block that never ended is one too", () =>
    Effect.gen(function* () {
      const events = answer([{ call: "search", id: "a", input: '{"of": "a' }]).filter(
        (event) => event.type !== "content_block_stop"
      )
      const server = yield* serve(stream(events))
      expect((yield* askToEnd(claude(server), asked)).malformedToolCalls).toHaveLength(1)
    })
  )
})

describe("a broken stream is never a success", () => {
  it.live("cut anywhere before message_stop it is BadResponse, after any parts", () =>
    Effect.gen(function* () {
      const raw = toSse(mixed)
      const whole = raw.indexOf("event: message_stop")
      const places = [0, 1, 200, raw.indexOf("text_delta"), raw.indexOf("message_delta"), whole - 1, whole + 10]
      const server = yield* serve(...places.map((at) => stream(raw.slice(0, at))))
      const layer = claude(server)
      for (const at of places) {
        const error = yield* failure(layer, asked)
        expect([at, error.reason._tag, error.isRetryable]).toEqual([at, "BadResponse", true])
      }
    })
  )

  it.live("a connection that breaks in the middle is Transport", () =>
    Effect.gen(function* () {
      const raw = toSse(mixed)
      const server = yield* serve(stream(raw.slice(0, raw.indexOf("message_delta")), { end: "reset" }))
      expect((yield* failure(claude(server), asked)).reason._tag).toBe("Transport")
    })
  )

  it.live.each([
    ["not JSON", "event: message_start\ndata: {nonsense\n\n"],
    ["not an object", 'event: message_start\ndata: "text"\n\n'],
    ["a page", "<!doctype html><html><body>Sign in</body></html>"],
    [
      "a delta of nothing",
      toSse([
        ...answer([]).slice(0, 1),
        { type: "content_block_delta", index: 3, delta: { type: "text_delta", text: "x" } },
        ...answer([]).slice(2)
      ])
    ],
    ["an end without a beginning", toSse([{ type: "message_stop" }])],
    ["an end without a reason", toSse(answer([{ text: "x" }]).filter((event) => event.type !== "message_delta"))],
    [
      "a block that begins twice",
      toSse([...answer([]).slice(0, 1), ...answer([{ text: "" }]).slice(2, 3), ...answer([{ text: "" }]).slice(2, 3)])
    ]
  ])("garbage: %s", ([, raw = ""]) =>
    Effect.gen(function* () {
      const server = yield* serve(stream(raw))
      expect((yield* failure(claude(server))).reason._tag).toBe("BadResponse")
    })
  )

  it.live("also for who opens the session without the core", () =>
    Effect.gen(function* () {
      const server = yield* serve(stream(toSse(mixed).slice(0, 900)))
      const session = yield* Effect.flatMap(ChatModel.ChatModel, (model) => model.makeSession).pipe(
        Effect.provide(claude(server))
      )
      expect((yield* Effect.flip(Stream.runDrain(session.nextTurn(asked)))).reason._tag).toBe("BadResponse")
    })
  )

  it.live("JSON with status 200 is BadResponse", () =>
    Effect.gen(function* () {
      const server = yield* serve(json(200, { id: "msg", content: [] }))
      expect((yield* failure(claude(server))).reason._tag).toBe("BadResponse")
    })
  )

  it.live.each([
    ["overloaded_error", "Overloaded"],
    ["rate_limit_error", "RateLimited"],
    ["api_error", "Overloaded"],
    ["invalid_request_error", "InvalidRequest"],
    ["authentication_error", "Authentication"],
    ["permission_error", "Permission"],
    ["billing_error", "QuotaExhausted"],
    ["timeout_error", "Timeout"],
    ["request_too_large", "ContextOverflow"],
    ["a_new_error", "Unknown"]
  ])("an error event after text: %s is %s", ([type, reason]) =>
    Effect.gen(function* () {
      const events: ReadonlyArray<Event> = [
        ...answer([{ text: "partial" }]).slice(0, 4),
        { type: "error", error: { type, message: "sorry" } }
      ]
      const server = yield* serve(stream(events))
      const error = yield* failure(claude(server))
      expect([error.reason._tag, error.detail, error.status, error.requestId]).toEqual([
        reason,
        "sorry",
        undefined,
        "req_stream"
      ])
    })
  )

  it.live("keeps the parts before an error", () =>
    Effect.gen(function* () {
      const server = yield* serve(
        stream([
          ...answer([{ text: "partial" }]).slice(0, 4),
          { type: "error", error: { type: "overloaded_error", message: "" } }
        ])
      )
      const said: Array<string> = []
      yield* Effect.flatMap(Effect.flatMap(ChatModel.ChatModel, ChatModel.open), (session) =>
        Stream.runForEach(session.nextTurn(request()), (part) => Effect.sync(() => void said.push(part._tag)))
      ).pipe(Effect.flip, Effect.provide(claude(server)))
      expect(said).toEqual(["TextDelta"])
    })
  )

  it.live("does not wait for the end of the connection after message_stop, and ignores it", () =>
    Effect.gen(function* () {
      const server = yield* serve(stream(mixed, { end: "hold" }), stream(mixed, { end: "reset" }))
      const layer = claude(server)
      expect((yield* askToEnd(layer, asked)).toolCalls).toHaveLength(2)
      expect((yield* askToEnd(layer, asked)).toolCalls).toHaveLength(2)
      expect(yield* Effect.promise(() => server.requests[0]!.closed)).toBeLessThan(20_000)
    })
  )
})

describe("unknown parts", () => {
  it.live("is ignored, and logged once", () =>
    Effect.gen(function* () {
      const [start, ping, ...rest] = answer([{ text: "fine" }])
      const odd: ReadonlyArray<Event> = [
        start!,
        ping!,
        { type: "content_block_start", index: 9, content_block: { type: "hologram" } },
        { type: "content_block_delta", index: 9, delta: { type: "hologram_delta", light: 1 } },
        { type: "message_aside", note: "x" },
        ...rest
      ]
      const logs: Array<unknown> = []
      const server = yield* serve(stream(odd))
      const session = yield* Effect.provide(Effect.flatMap(ChatModel.ChatModel, ChatModel.open), claude(server))
      const ask = Stream.runCollect(session.nextTurn(request())).pipe(
        Effect.provide(Logger.layer([Logger.make(({ message: said }) => void logs.push(said))])),
        Effect.provideService(References.MinimumLogLevel, "Debug")
      )
      expect(Message.text(message(yield* ask))).toBe("fine")
      yield* ask
      const joined = JSON.stringify(logs)
      expect(joined.match(/message_aside/g)).toHaveLength(1)
      expect(joined.match(/hologram/g)).toHaveLength(1)
    })
  )
})

describe("blocks of Anthropic's own tools", () => {
  const server_tool = { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "x" } }
  const found = { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [{ type: "web_search_result" }] }

  it.live("are shown as done by the provider, are no calls of the message, and go back as they came", () =>
    Effect.gen(function* () {
      const server = yield* serve(
        stream(
          answer(
            [
              { text: "Searching." },
              { server: "web_search", id: "srvtoolu_1", input: { query: "x" } },
              { block: found },
              { text: "Found.", citations: [{ type: "web_search_result_location", url: "u" }] }
            ],
            { stop: "pause_turn" }
          )
        ),
        say("on")
      )
      const layer = claude(server, { serverTools: [{ type: "web_search_20260318", name: "web_search" }] })
      const parts = yield* turn(layer)
      expect(parts).toContainEqual({
        _tag: "ToolCallStart",
        id: "srvtoolu_1",
        name: "web_search",
        providerExecuted: true
      })
      const said = message(parts)
      expect([said.stopReason, said.toolCalls]).toEqual(["pause", []])
      yield* turn(layer, request({ messages: [Message.human("Hello"), said] }))
      const [, sent] = server.requests
      expect(sent?.body.tools).toMatchObject([{ type: "web_search_20260318" }])
      expect(sent?.body.messages.at(-1).content).toMatchObject([
        { type: "text", text: "Searching." },
        { ...server_tool },
        { ...found },
        { type: "text", text: "Found.", citations: [{ url: "u" }] }
      ])
    })
  )
})

it.live("thinking, text and calls of an answer go back in the order in which they came", () =>
  Effect.gen(function* () {
    const blocks = [
      { thinking: "one", signature: "s1" },
      { call: "search", id: "toolu_1", input: { of: "a" } },
      { thinking: "", signature: "s2" },
      { text: "and" },
      { call: "search", id: "toolu_2", input: {} }
    ]
    const server = yield* serve(stream(answer(blocks)), say("ok"))
    const layer = claude(server)
    const said = yield* askToEnd(layer, asked)
    const results = said.toolCalls.map(({ id }) => Message.tool("r", { toolCallId: id, toolName: "search" }))
    yield* turn(layer, request({ tools: [tool("search")], messages: [Message.human("Hello"), said, ...results] }))
    const decoded = yield* Message.decode(Message.encode(said))
    expect(decoded).toEqual(said)
    expect(server.requests[1]?.body.messages[1].content).toMatchObject([
      { type: "thinking", thinking: "one", signature: "s1" },
      { type: "tool_use", id: "toolu_1", input: { of: "a" } },
      { type: "thinking", thinking: "", signature: "s2" },
      { type: "text", text: "and" },
      { type: "tool_use", id: "toolu_2", input: {} }
    ])
  })
)

it.live("the layer is one: sessions share the client, and a turn can be asked for again", () =>
  Effect.gen(function* () {
    const server = yield* serve(say("one"), say("two"))
    const twice = Effect.gen(function* () {
      const session = yield* ChatModel.open(yield* ChatModel.ChatModel)
      const ask = session.nextTurn(request())
      const texts = [yield* Stream.runCollect(ask), yield* Stream.runCollect(ask)].map((parts) =>
        Message.text(message(parts))
      )
      return texts
    })
    expect(yield* Effect.provide(twice, Layer.fresh(claude(server)))).toEqual(["one", "two"])
    expect(server.requests[0]?.raw).toBe(server.requests[1]?.raw)
  })
)
