import { assert, describe, it } from "@effect/vitest"
import { Cause, Duration, Effect, Exit, Fiber, Stream } from "effect"
import { ChatModel, IdGenerator, Message, ModelError, Usage } from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"

const request = (...messages: ReadonlyArray<Message.Message>): ChatModel.ModelRequest => ({
  messages,
  systemPrompt: "Be brief.",
  tools: [],
  toolChoice: "auto",
  parameters: {},
  cacheHints: [],
  purpose: ChatModel.turnPurpose
})

/** One turn of the model in the context, asked as the loop asks. */
const stream = (asked = request(Message.human("Hi"))) =>
  Stream.unwrap(
    Effect.gen(function* () {
      const session = yield* ChatModel.open(yield* ChatModel.ChatModel)
      return session.nextTurn(asked)
    })
  )

const turn = (asked?: ChatModel.ModelRequest) => Stream.runCollect(stream(asked))

const finishTurn = (parts: ReadonlyArray<ChatModel.TurnPart>): Message.AiMessage => {
  const last = parts.at(-1)
  assert(last?._tag === "TurnDone")
  return last.message
}

const tags = (parts: ReadonlyArray<ChatModel.TurnPart>) => parts.map((part) => part._tag)

describe("TestChatModel", () => {
  describe("a turn", () => {
    it.effect("of text is one delta and a message that stops", () =>
      Effect.gen(function* () {
        const parts = yield* turn()
        assert.deepStrictEqual(parts[0], { _tag: "TextDelta", text: "Hello" })
        assert.lengthOf(parts, 2)
        const message = finishTurn(parts)
        assert.strictEqual(Message.text(message), "Hello")
        assert.strictEqual(message.stopReason, "stop")
        assert.strictEqual(message.model, "scripted")
        assert.isUndefined(message.usage)
      }).pipe(Effect.provide(TestChatModel.script(["Hello"])))
    )

    it.effect("with calls streams each call's arguments, and numbers the calls over the script", () =>
      Effect.gen(function* () {
        const parts = yield* turn()
        assert.deepStrictEqual(parts.slice(0, -1), [
          { _tag: "ReasoningDelta", text: "hm" },
          { _tag: "TextDelta", text: "Let me see." },
          { _tag: "ToolCallStart", id: "call-1", name: "look" },
          { _tag: "ToolCallDelta", id: "call-1", delta: `{"at":"it"}` },
          { _tag: "ToolCallStart", id: "mine", name: "ask" },
          { _tag: "ToolCallDelta", id: "mine", delta: "{}" }
        ])
        const message = finishTurn(parts)
        assert.deepStrictEqual(message.toolCalls, [
          { id: "call-1", name: "look", arguments: { at: "it" } },
          { id: "mine", name: "ask", arguments: {} }
        ])
        assert.strictEqual(message.stopReason, "toolCalls")
        assert.strictEqual(Message.reasoning(message), "hm")
        assert.deepStrictEqual(Message.callIds(finishTurn(yield* turn())), ["call-2"])
      }).pipe(
        Effect.provide(
          TestChatModel.script([
            TestChatModel.calls(
              [
                { name: "look", arguments: { at: "it" } },
                { name: "ask", id: "mine" }
              ],
              {
                text: "Let me see.",
                reasoning: "hm"
              }
            ),
            TestChatModel.calls([{ name: "look" }])
          ])
        )
      )
    )

    it.effect("is cut at chunkSize, never inside of a character", () =>
      Effect.gen(function* () {
        const text = yield* turn()
        assert.deepStrictEqual(text.slice(0, -1), [
          { _tag: "TextDelta", text: "a😀" },
          { _tag: "TextDelta", text: "b" }
        ])
        const call = yield* turn()
        assert.deepStrictEqual(
          call.map((part) => (part._tag === "ToolCallDelta" ? part.delta : part._tag)),
          ["ToolCallStart", `{"x`, `":1`, "}", "TurnDone"]
        )
        const pieces = yield* turn()
        assert.deepStrictEqual(tags(pieces), ["TextDelta", "TextDelta", "TurnDone"])
        assert.strictEqual(Message.text(finishTurn(pieces)), "It has shipped.")
      }).pipe(
        Effect.provide(
          TestChatModel.script([
            TestChatModel.text("a😀b", { chunkSize: 2 }),
            TestChatModel.calls([{ name: "f", arguments: { x: 1 } }], { chunkSize: 3 }),
            TestChatModel.text(["It has ", "shipped."])
          ])
        )
      )
    )

    it.effect("can be malformed, raw, hosted, cut by length, and billed", () =>
      Effect.gen(function* () {
        const malformed = finishTurn(yield* turn())
        assert.deepStrictEqual(malformed.malformedToolCalls, [
          { id: "call-1", name: "f", raw: "{oops", problem: "the arguments are not a JSON object" }
        ])
        assert.strictEqual(malformed.stopReason, "toolCalls")

        const hosted = yield* turn()
        assert.deepStrictEqual(hosted.slice(0, 3), [
          { _tag: "ToolCallStart", id: "call-2", name: "web_search", providerExecuted: true },
          { _tag: "ToolCallDelta", id: "call-2", delta: `{"q":"x"}` },
          { _tag: "TextDelta", text: "Found it." }
        ])
        assert.deepStrictEqual(finishTurn(hosted).toolCalls, [])
        assert.strictEqual(finishTurn(hosted).stopReason, "stop")

        const cut = finishTurn(yield* turn())
        assert.strictEqual(cut.stopReason, "length")
        assert.deepStrictEqual(cut.usage, Usage.make({ inputTokens: 1_000_000, cost: 3 }))
        assert.deepStrictEqual(cut.providerData, { signature: "s" })

        assert.strictEqual(finishTurn(yield* turn()).id, "given")
      }).pipe(
        Effect.provide(
          TestChatModel.script(
            [
              TestChatModel.malformed("{oops", { name: "f" }),
              TestChatModel.calls([{ name: "web_search", arguments: { q: "x" }, providerExecuted: true }], {
                text: "Found it."
              }),
              TestChatModel.text("It", {
                stopReason: "length",
                usage: { inputTokens: 1_000_000 },
                providerData: { signature: "s" }
              }),
              TestChatModel.message(Message.ai("as is", { id: "given" }))
            ],
            { prices: { input: 3, output: 15 } }
          )
        )
      )
    )

    it.effect("takes its message's id from the IdGenerator", () =>
      Effect.gen(function* () {
        assert.strictEqual(finishTurn(yield* turn()).id, "fixed")
      }).pipe(
        Effect.provide(TestChatModel.script(["Hello"])),
        Effect.provideService(IdGenerator.IdGenerator, () => "fixed")
      )
    )

    it.effect("may be made from the request, by an effect too", () =>
      Effect.gen(function* () {
        assert.strictEqual(Message.text(finishTurn(yield* turn(request(Message.human("one"))))), "you said one")
        assert.strictEqual(Message.text(finishTurn(yield* turn(request(Message.human("two"))))), "two, after a while")
      }).pipe(
        Effect.provide(
          TestChatModel.script([
            ({ messages }) => `you said ${Message.text(messages[0]!)}`,
            ({ messages }) => Effect.succeed(TestChatModel.text(`${Message.text(messages[0]!)}, after a while`))
          ])
        )
      )
    )
  })

  describe("trouble", () => {
    it.effect("fails after the first parts, with an error of this model", () =>
      Effect.gen(function* () {
        const seen: Array<ChatModel.TurnPart> = []
        const error = yield* stream().pipe(
          Stream.runForEach((part) => Effect.sync(() => seen.push(part))),
          Effect.flip
        )
        assert.deepStrictEqual(seen, [{ _tag: "TextDelta", text: "I th" }])
        assert.strictEqual(error.reason._tag, "Overloaded")
        assert.strictEqual(error.provider, "acme")
        assert.strictEqual(error.model, "m-1")

        const own = yield* Effect.flip(turn())
        assert.strictEqual(own.provider, "other")
        const cut = yield* Effect.flip(turn())
        assert.strictEqual(cut.reason._tag, "BadResponse")
      }).pipe(
        Effect.provide(
          TestChatModel.script(
            [
              TestChatModel.fail({ _tag: "Overloaded" }, { after: "I th" }),
              TestChatModel.fail(new ModelError.ModelError({ provider: "other", reason: { _tag: "Transport" } })),
              TestChatModel.parts([{ _tag: "TextDelta", text: "I" }])
            ],
            { provider: "acme", modelId: "m-1" }
          )
        )
      )
    )

    it.effect("hangs until it is interrupted", () =>
      Effect.gen(function* () {
        const seen: Array<string> = []
        const fiber = yield* stream().pipe(
          Stream.runForEach((part) => Effect.sync(() => seen.push(part._tag))),
          Effect.forkChild
        )
        yield* TestClock.adjust("1 day")
        assert.deepStrictEqual(seen, ["TextDelta"])
        assert.isUndefined(fiber.pollUnsafe())
        yield* Fiber.interrupt(fiber)
        const silent = yield* Effect.timeoutOption(turn(), "1 minute").pipe(Effect.forkChild)
        yield* TestClock.adjust("1 minute")
        assert.strictEqual((yield* Fiber.join(silent))._tag, "None")
      }).pipe(Effect.provide(TestChatModel.script([TestChatModel.hangAfter("thinking"), TestChatModel.hang])))
    )

    it.effect("waits before a turn and between its parts by the Clock", () =>
      Effect.gen(function* () {
        const seen: Array<string> = []
        const fiber = yield* stream().pipe(
          Stream.runForEach((part) => Effect.sync(() => seen.push(part._tag))),
          Effect.forkChild
        )
        yield* TestClock.adjust("999 millis")
        assert.deepStrictEqual(seen, [])
        yield* TestClock.adjust("1 millis")
        assert.deepStrictEqual(seen, ["TextDelta"])
        yield* TestClock.adjust("100 millis")
        assert.deepStrictEqual(seen, ["TextDelta", "TextDelta"])
        yield* TestClock.adjust("100 millis")
        assert.deepStrictEqual(seen, ["TextDelta", "TextDelta", "TurnDone"])
        yield* Fiber.join(fiber)
      }).pipe(
        Effect.provide(
          TestChatModel.script([
            TestChatModel.text(["a", "b"], { delay: "1 second", chunkDelay: Duration.millis(100) })
          ])
        )
      )
    )
  })

  describe("the script", () => {
    it.effect("records requests as they were", () =>
      Effect.gen(function* () {
        const history: Array<Message.Message> = [Message.human("one")]
        yield* turn({ ...request(), messages: history })
        history.push(Message.human("two"))
        yield* turn({ ...request(), messages: history, systemPrompt: "Else." })
        const seen = yield* TestChatModel.requests
        assert.deepStrictEqual(
          seen.map((one) => [one.systemPrompt, one.messages.map(Message.text)]),
          [
            ["Be brief.", ["one"]],
            ["Else.", ["one", "two"]]
          ]
        )
      }).pipe(Effect.provide(TestChatModel.script(["1", "2"])))
    )

    it.effect("reports the request when it has no more turns, and no retry can help", () =>
      Effect.gen(function* () {
        yield* turn()
        const error = yield* Effect.flip(
          turn(request(Message.human("Hi"), Message.tool("42 is late", { toolCallId: "a", toolName: "lookup" })))
        )
        assert.strictEqual(error.reason._tag, "InvalidRequest")
        assert.isFalse(error.isRetryable)
        assert.include(error.message, "the script has 1 turn and was asked for turn 2")
        assert.include(error.message, `the last message was (tool "lookup"): 42 is late`)
        assert.lengthOf(yield* TestChatModel.requests, 2)
      }).pipe(Effect.provide(TestChatModel.script(["only one"])))
    )

    it.effect("fails a test that left turns unused", () =>
      Effect.gen(function* () {
        const exit = yield* Effect.exit(Effect.provide(turn(), TestChatModel.script(["one", "two", "three"])))
        assert(Exit.isFailure(exit))
        assert.include(Cause.pretty(exit.cause), "2 of the script's 3 turns were never asked for")
      })
    )

    it.effect("adds nothing to a test that failed already, or that allows unused turns", () =>
      Effect.gen(function* () {
        const failed = yield* Effect.exit(Effect.provide(Effect.fail("mine"), TestChatModel.script(["one"])))
        assert.deepStrictEqual(failed, Exit.fail("mine"))
        const left = yield* Effect.provide(
          TestChatModel.unused,
          TestChatModel.script(["one", "two"], { exhaustive: false })
        )
        assert.strictEqual(left, 2)
      })
    )

    it.effect("is shared by all who use its layer, and new for each layer that is built", () =>
      Effect.gen(function* () {
        const layer = TestChatModel.script(["one", "two"])
        const both = Effect.provide(
          Effect.map(Effect.all([turn(), turn()]), (turns) => turns.map((parts) => Message.text(finishTurn(parts)))),
          layer
        )
        assert.deepStrictEqual(yield* both, ["one", "two"])
        assert.deepStrictEqual(yield* both, ["one", "two"])
      })
    )

    it.effect("reactive: answers forever, by request and index", () =>
      Effect.gen(function* () {
        const texts = yield* Effect.forEach([1, 2, 3], () =>
          Effect.map(turn(), (parts) => Message.text(finishTurn(parts)))
        )
        assert.deepStrictEqual(texts, ["0 Hi", "1 Hi", "2 Hi"])
        assert.strictEqual(yield* TestChatModel.unused, 0)
      }).pipe(Effect.provide(TestChatModel.reactive(({ messages }, index) => `${index} ${Message.text(messages[0]!)}`)))
    )
  })

  it.effect("describes the model as told", () =>
    Effect.gen(function* () {
      const model = yield* ChatModel.ChatModel
      assert.strictEqual(model.contextWindowTokens, 1000)
      assert.isFalse(model.supportsVision)
      assert.strictEqual(model.structuredOutput, "tool")
    }).pipe(
      Effect.provide(
        TestChatModel.script([], { contextWindowTokens: 1000, supportsVision: false, structuredOutput: "tool" })
      )
    )
  )
})
