import { describe, expect, it } from "@effect/vitest"
import { Cause, Deferred, Duration, Effect, Exit, Fiber, Layer, Schema, Stream } from "effect"
import { ChatModel, Content, Message, ModelError } from "effect-deepagents"
import * as LanguageModelFromChatModel from "effect-deepagents/models/bridges/LanguageModelFromChatModel"
import { TestChatModel } from "effect-deepagents/testing"
import { AiError, Chat, LanguageModel, Prompt, Tool as AiTool, Toolkit as AiToolkit } from "effect/ai"

const provided = (turns: ReadonlyArray<TestChatModel.Turn>, options?: Parameters<typeof TestChatModel.script>[1]) =>
  Layer.provideMerge(LanguageModelFromChatModel.layer, TestChatModel.script(turns, options))

const Add = AiTool.make("add", {
  description: "Adds",
  parameters: Schema.Struct({ left: Schema.Finite, right: Schema.Finite }),
  success: Schema.Finite,
  failureMode: "return"
}).annotate(AiTool.Readonly, true)
const sums = AiToolkit.make(Add)
const calculator = sums.toLayer({ add: ({ left, right }) => Effect.succeed(left + right) })

const types = (parts: ReadonlyArray<{ readonly type: string }>): ReadonlyArray<string> => parts.map((part) => part.type)

describe("generateText", () => {
  it.effect("answers with text, reasoning, usage and finish reason", () =>
    Effect.gen(function* () {
      const response = yield* LanguageModel.generateText({ prompt: "Hello" })
      expect(response.text).toBe("Hi 👋")
      expect(response.reasoningText).toBe("Well")
      expect(response.finishReason).toBe("stop")
      expect(response.usage).toMatchObject({
        inputTokens: { total: 10, uncached: 4, cacheRead: 6, cacheWrite: 0 },
        outputTokens: { total: 5, text: 3, reasoning: 2 }
      })
      expect(response.content.find((part) => part.type === "response-metadata")).toMatchObject({ modelId: "scripted" })
    }).pipe(
      Effect.provide(
        provided([
          TestChatModel.text("Hi 👋", {
            reasoning: "Well",
            usage: { inputTokens: 10, outputTokens: 5, cacheReadTokens: 6, reasoningTokens: 2 }
          })
        ])
      )
    )
  )

  it.effect("asks with instructions, messages, tools and tool choice", () =>
    Effect.gen(function* () {
      yield* LanguageModel.generateText({
        prompt: [
          { role: "system", content: "Be brief." },
          {
            role: "user",
            content: [
              { type: "text", text: "Look" },
              { type: "file", mediaType: "image/png", data: new Uint8Array([1, 2, 3]) },
              {
                type: "file",
                mediaType: "application/pdf",
                fileName: "a.pdf",
                data: new URL("https://example.com/a.pdf")
              }
            ]
          },
          { role: "assistant", content: [{ type: "tool-call", id: "1", name: "add", params: { left: 1, right: 1 } }] },
          {
            role: "tool",
            content: [{ type: "tool-result", id: "1", name: "add", isFailure: false, result: { sum: 2 } }]
          }
        ],
        toolkit: sums,
        toolChoice: { oneOf: ["add"], mode: "required" }
      })
      const [request] = yield* TestChatModel.requests
      expect(request).toMatchObject({
        systemPrompt: "Be brief.",
        toolChoice: "required",
        tools: [{ name: "add", description: "Adds", annotations: { readOnly: true } }],
        messages: [
          {
            role: "human",
            content: [
              Content.text("Look"),
              Content.image({ base64: "AQID", mimeType: "image/png" }),
              Content.file({ url: "https://example.com/a.pdf", name: "a.pdf" })
            ]
          },
          { role: "ai", toolCalls: [{ id: "1", name: "add", arguments: { left: 1, right: 1 } }] },
          { role: "tool", toolCallId: "1", isError: false, content: [Content.text(`{"sum":2}`)] }
        ]
      })
    }).pipe(Effect.provide(calculator), Effect.provide(provided(["ok"])))
  )

  it.effect("runs tools; a call that does not decode does not end it", () =>
    Effect.gen(function* () {
      const response = yield* LanguageModel.generateText({ prompt: "1 + 2", toolkit: sums })
      const results = response.toolResults.map(({ id, isFailure, result }) => [id, isFailure ? "failed" : result])
      expect(Object.fromEntries(results)).toEqual({ a: 3, b: "failed", c: "failed" })
    }).pipe(
      Effect.provide(calculator),
      Effect.provide(
        provided([
          TestChatModel.calls([
            { id: "a", name: "add", arguments: { left: 1, right: 2 } },
            { id: "b", name: "add", arguments: { left: "one" } },
            { id: "c", name: "add", raw: `{"left": 1` }
          ])
        ])
      )
    )
  )

  it.effect("fails with ToolNotFoundError on a call of no tool, unless the caller checks calls itself", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(LanguageModel.generateText({ prompt: "x", toolkit: sums }))
      expect(AiError.isAiError(error) && error.reason).toMatchObject({
        _tag: "ToolNotFoundError",
        toolName: "subtract",
        availableTools: ["add"]
      })
      const response = yield* LanguageModel.generateText({
        prompt: "x",
        toolkit: sums,
        disableToolCallResolution: true,
        toolCallValidation: "deferred"
      })
      expect(response.toolCalls).toMatchObject([{ name: "subtract" }])
    }).pipe(
      Effect.provide(calculator),
      Effect.provide(
        provided([TestChatModel.calls([{ name: "subtract" }]), TestChatModel.calls([{ name: "subtract" }])])
      )
    )
  )

  it.effect("refuses tools that only a provider can run", () =>
    Effect.gen(function* () {
      const Search = AiTool.providerDefined({ id: "x.search", customName: "Search", providerName: "search" })
      const error = yield* Effect.flip(LanguageModel.generateText({ prompt: "x", toolkit: AiToolkit.make(Search()) }))
      expect(error).toMatchObject({ reason: { _tag: "ToolConfigurationError", toolName: "Search" } })
    }).pipe(Effect.provide(provided([])))
  )

  const origin = { provider: "acme", detail: "because" }
  const reasons: ReadonlyArray<readonly [ModelError.Reason, AiError.AiErrorReason["_tag"]]> = [
    [{ _tag: "RateLimited", retryAfter: Duration.seconds(4) }, "RateLimitError"],
    [{ _tag: "Overloaded" }, "InternalProviderError"],
    [{ _tag: "Timeout" }, "NetworkError"],
    [{ _tag: "Transport" }, "NetworkError"],
    [{ _tag: "Authentication" }, "AuthenticationError"],
    [{ _tag: "Permission" }, "AuthenticationError"],
    [{ _tag: "InvalidRequest" }, "InvalidRequestError"],
    [{ _tag: "ContextOverflow", limit: 5 }, "InvalidRequestError"],
    [{ _tag: "ContentFiltered" }, "ContentPolicyError"],
    [{ _tag: "QuotaExhausted" }, "QuotaExhaustedError"],
    [{ _tag: "BadResponse" }, "InvalidOutputError"],
    [{ _tag: "Unsupported" }, "InvalidRequestError"],
    [{ _tag: "Unpriced" }, "InvalidRequestError"],
    [{ _tag: "Unknown" }, "UnknownError"]
  ]
  it.effect.each(reasons.map(([reason, expected]) => [reason._tag, expected, reason] as const))(
    "a model that fails with %s fails with %s, as retryable as before",
    ([, expected, reason]) =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(LanguageModel.generateText({ prompt: "x" }))
        expect(error.reason._tag).toBe(expected)
        expect(error.isRetryable).toBe(new ModelError.ModelError({ ...origin, reason }).isRetryable)
        if (reason._tag === "RateLimited") expect(error.retryAfter).toEqual(Duration.seconds(4))
      }).pipe(
        Effect.provide(provided([TestChatModel.fail(new ModelError.ModelError({ ...origin, reason, status: 418 }))]))
      )
  )
})

describe("generateObject", () => {
  const Person = Schema.Struct({ name: Schema.String, born: Schema.Finite })
  const schema = Person.annotate({ identifier: "Person" })

  it.effect("uses the model's JSON mode if it has one", () =>
    Effect.gen(function* () {
      const response = yield* LanguageModel.generateObject({ prompt: "Ada", schema })
      expect(response.value).toEqual({ name: "Ada", born: 1815 })
      const [request] = yield* TestChatModel.requests
      expect(request?.outputSchema).toMatchObject({ type: "object", required: ["name", "born"] })
      expect(request?.tools).toEqual([])
    }).pipe(Effect.provide(provided([`{"name":"Ada","born":1815}`])))
  )

  it.effect("uses a tool if it has none", () =>
    Effect.gen(function* () {
      const response = yield* LanguageModel.generateObject({ prompt: "Ada", schema })
      expect(response.value).toEqual({ name: "Ada", born: 1815 })
      expect(response.toolCalls).toEqual([])
      const [request] = yield* TestChatModel.requests
      expect(request).toMatchObject({ tools: [{ name: "Person" }], toolChoice: { tool: "Person" } })
      expect(request).not.toHaveProperty("outputSchema")
    }).pipe(
      Effect.provide(
        provided([TestChatModel.calls([{ name: "Person", arguments: { name: "Ada", born: 1815 } }])], {
          structuredOutput: "tool"
        })
      )
    )
  )

  it.effect("fails, typed, on an answer that is no such object", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(LanguageModel.generateObject({ prompt: "Ada", schema }))
      expect(error).toMatchObject({ reason: { _tag: "StructuredOutputError", responseText: "I can't" } })
    }).pipe(Effect.provide(provided(["I can't"])))
  )
})

describe("streamText", () => {
  it.effect("streams as it comes, with ids that pair starts and ends", () =>
    Effect.gen(function* () {
      const parts = yield* Stream.runCollect(LanguageModel.streamText({ prompt: "Hello" }))
      expect(types(parts)).toEqual([
        "reasoning-start",
        "reasoning-delta",
        "reasoning-delta",
        "text-start",
        "text-delta",
        "text-delta",
        "response-metadata",
        "reasoning-end",
        "text-end",
        "finish"
      ])
      expect(Prompt.fromResponseParts(parts).content[0]?.content).toMatchObject([
        { type: "reasoning", text: "Well…" },
        { type: "text", text: "Hi 👋" }
      ])
    }).pipe(Effect.provide(provided([TestChatModel.text("Hi 👋", { reasoning: "Well…", chunkSize: 3 })])))
  )

  it.effect("runs tools; a call that does not decode does not end the stream", () =>
    Effect.gen(function* () {
      const parts = yield* Stream.runCollect(LanguageModel.streamText({ prompt: "1 + 2", toolkit: sums }))
      const results = parts.flatMap((part) => (part.type === "tool-result" ? [[part.id, part.isFailure]] : []))
      expect(Object.fromEntries(results)).toEqual({ a: false, b: true })
      expect(types(parts)).toContain("tool-params-delta")
      expect(parts.at(-1)).toMatchObject({ type: "finish", reason: "tool-calls" })
    }).pipe(
      Effect.provide(calculator),
      Effect.provide(
        provided([
          TestChatModel.calls(
            [
              { id: "a", name: "add", arguments: { left: 1, right: 2 } },
              { id: "b", name: "add", raw: "oops" }
            ],
            { chunkSize: 4 }
          )
        ])
      )
    )
  )

  it.effect("fails like the model, after the parts before", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const error = yield* LanguageModel.streamText({ prompt: "x" }).pipe(
        Stream.runForEach((part) => Effect.sync(() => seen.push(part.type))),
        Effect.flip
      )
      expect(seen).toEqual(["text-start", "text-delta"])
      expect(error.reason._tag).toBe("InternalProviderError")
      const cut = yield* Effect.flip(Stream.runDrain(LanguageModel.streamText({ prompt: "x" })))
      expect(cut.reason._tag).toBe("InvalidOutputError")
    }).pipe(
      Effect.provide(
        provided([
          TestChatModel.fail({ _tag: "Overloaded" }, { after: "Hel" }),
          TestChatModel.parts([{ _tag: "TextDelta", text: "Hel" }])
        ])
      )
    )
  )

  it.effect("does not pass off a turn that was begun anew as one", () =>
    Effect.gen(function* () {
      const fresh = yield* Stream.runCollect(LanguageModel.streamText({ prompt: "x" }))
      expect(types(fresh)).toEqual(["text-start", "text-delta", "response-metadata", "text-end", "finish"])
      const error = yield* Effect.flip(Stream.runDrain(LanguageModel.streamText({ prompt: "x" })))
      expect(error.reason._tag).toBe("InvalidOutputError")
    }).pipe(
      Effect.provide(
        provided([
          TestChatModel.parts([
            { _tag: "TurnRestarted", reason: "retry" },
            { _tag: "TextDelta", text: "Hello" },
            { _tag: "TurnDone", message: Message.ai("Hello") }
          ]),
          TestChatModel.parts([
            { _tag: "TextDelta", text: "He" },
            { _tag: "TurnRestarted", reason: "retry" },
            { _tag: "TextDelta", text: "Hello" },
            { _tag: "TurnDone", message: Message.ai("Hello") }
          ])
        ])
      )
    )
  )

  it.effect("closes the session with the stream, and interrupts the model when it is left", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const started = yield* Deferred.make<void>()
      const model = ChatModel.ChatModel.of({
        modelId: "m",
        provider: "p",
        supportsVision: true,
        contextWindowTokens: undefined,
        makeSession: Effect.acquireRelease(
          Effect.sync(() => {
            log.push("open")
            const hang = Stream.concat(Stream.succeed({ _tag: "TextDelta", text: "a" } as const), Stream.never)
            return {
              nextTurn: () =>
                hang.pipe(
                  Stream.tap(() => Deferred.succeed(started, undefined)),
                  Stream.ensuring(Effect.sync(() => log.push("stopped")))
                )
            }
          }),
          () => Effect.sync(() => log.push("closed"))
        )
      })
      const layer = LanguageModelFromChatModel.layer.pipe(Layer.provide(Layer.succeed(ChatModel.ChatModel, model)))
      const fiber = yield* Effect.forkChild(
        Stream.runDrain(LanguageModel.streamText({ prompt: "x" })).pipe(Effect.provide(layer))
      )
      yield* Deferred.await(started)
      expect(log).toEqual(["open"])
      yield* Fiber.interrupt(fiber)
      expect(log.toSorted()).toEqual(["closed", "open", "stopped"])
    })
  )
})

describe("a Chat", () => {
  const signed = Message.ai(
    [
      Content.reasoning("one", { acme: { signature: "s1" } }),
      Content.reasoning("", { acme: { redacted: "xyz" } }),
      Content.text("Adding")
    ],
    {
      id: "m1",
      toolCalls: [{ id: "c1", name: "add", arguments: { left: 1, right: 2 }, providerData: { acme: { item: "i" } } }],
      providerData: { acme: { response: "r1" } }
    }
  )

  it.effect.each(["streamText", "generateText"] as const)(
    "gives the model back what it attached, through %s",
    (method) =>
      Effect.gen(function* () {
        const chat = yield* Chat.fromPrompt("1 + 2")
        if (method === "streamText") yield* Stream.runDrain(chat.streamText({ prompt: [], toolkit: sums }))
        else yield* chat.generateText({ prompt: [], toolkit: sums })
        // It survives the export that effect/ai persists.
        const restored = yield* Chat.fromJson(yield* chat.exportJson)
        yield* restored.generateText({ prompt: "Thanks" })
        const [, request] = yield* TestChatModel.requests
        const [, again, result] = request?.messages ?? []
        expect(again?.content).toEqual(signed.content)
        expect(again).toMatchObject({ role: "ai", toolCalls: signed.toolCalls, providerData: signed.providerData })
        expect(result).toMatchObject({ role: "tool", toolCallId: "c1", content: [Content.text("3")] })
      }).pipe(Effect.provide(calculator), Effect.provide(provided([TestChatModel.message(signed), "You're welcome"])))
  )

  it.effect("returns as two parts the parts that were streamed as one", () =>
    Effect.gen(function* () {
      const two = [Content.reasoning("one", { acme: { n: 1 } }), Content.reasoning("two", { acme: { n: 2 } })]
      const chat = yield* Chat.fromPrompt("Think")
      yield* Stream.runDrain(chat.streamText({ prompt: [] })).pipe(
        Effect.provide(provided([TestChatModel.message(Message.ai([...two, Content.text("Hm")]))]))
      )
      yield* Effect.gen(function* () {
        yield* chat.generateText({ prompt: "And?" })
        const [request] = yield* TestChatModel.requests
        expect(request?.messages[1]?.content).toEqual([...two, Content.text("Hm")])
      }).pipe(Effect.provide(provided(["Yes"])))
    })
  )
})

it.effect("an image for a model without vision is said to have been there", () =>
  Effect.gen(function* () {
    yield* LanguageModel.generateText({
      prompt: [{ role: "user", content: [{ type: "file", mediaType: "image/png", data: new Uint8Array([1]) }] }]
    })
    const [request] = yield* TestChatModel.requests
    expect(request?.messages[0]?.content).toMatchObject([{ type: "text" }])
  }).pipe(Effect.provide(provided(["ok"], { supportsVision: false })))
)

it.effect("a defect of the model stays one", () =>
  Effect.gen(function* () {
    const exit = yield* Effect.exit(LanguageModel.generateText({ prompt: "x" }))
    expect(Exit.isFailure(exit) && Cause.hasDies(exit.cause)).toBe(true)
  }).pipe(Effect.provide(provided([() => Effect.die("broken")])))
)
