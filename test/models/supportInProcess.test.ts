/** The columns of docs/models.md whose models are no server: `effect/ai`, by a scripted provider, and llama.cpp, by a scripted model in the notation of a family, or a tiny computed one. */
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, type Scope, Stream } from "effect"
import { ChatModel, Content, Message } from "effect-deepagents"
import * as EffectAiChatModel from "effect-deepagents/models/bridges/EffectAiChatModel"
import { AiError } from "effect/ai"
import { makeNormalizer } from "../../src/models/internal/turn/normalize.ts"
import { hermes } from "../../src/models/local/internal/codecs/hermes.ts"
import { dialectOf } from "../../src/models/local/internal/session.ts"
import { type Answer, call, finish, type Part, reasoning, requests, script, text } from "./effect-ai/provider.ts"
import { answered, ask, writeCalls } from "./internal/llama/codecs/decode.ts"
import * as Llama from "./llama/models.ts"
import * as Scripted from "./llama/scripted.ts"
import { request } from "./openai/asking.ts"
import { hello, tick, toldOf, tools } from "./support.ts"

const proof = { test: { signature: "proof" } }

/** Requests turns of a provider with these answers. Returns the parts of the last turn, or its failure, and the provider's requests. */
const talk = (answers: ReadonlyArray<Answer>, asked: ReadonlyArray<ChatModel.ModelRequest>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const service = yield* ChatModel.ChatModel
      let parts: ReadonlyArray<ChatModel.TurnPart> = []
      let failure: string | undefined
      for (const one of asked) {
        const session = yield* ChatModel.open(service)
        const seen: Array<ChatModel.TurnPart> = []
        const turn = Stream.runForEach(session.nextTurn(one), (part) => Effect.sync(() => seen.push(part)))
        failure = yield* Effect.match(turn, { onSuccess: () => undefined, onFailure: ({ reason }) => reason._tag })
        parts = seen
      }
      const last = parts.at(-1)
      const message = last?._tag === "TurnDone" ? last.message : undefined
      return { parts, message, failure, service, got: JSON.stringify((yield* requests).map(({ prompt }) => prompt)) }
    })
  ).pipe(Effect.provide(Layer.provideMerge(EffectAiChatModel.layer(), script(answers))))

const askOnce = (answer: Answer, over: Partial<ChatModel.ModelRequest> = {}) =>
  talk([answer], [request(hello, { tools, ...over })])

const cached = { inputTokens: { uncached: 3, total: 10, cacheRead: 7 }, outputTokens: { total: 2 } }

const cutCall: ReadonlyArray<Part> = [
  { type: "tool-params-start", id: "c_1", name: "charge" },
  { type: "tool-params-delta", id: "c_1", delta: '{"a":' }
]

type Rows = { readonly [row: string]: Effect.Effect<string, unknown> }

/** Work of providers, which these layers have no word for. */
const ownOfProviders: Rows = {
  "many requests in a batch, at half the price": Effect.succeed(""),
  "large images and files are uploaded once": Effect.succeed(""),
  "tools change inside of a conversation (`abilities`)": Effect.succeed("")
}

const overEffectAi: Rows = {
  "streams text and tool arguments as they come": Effect.map(
    askOnce([...text("a", "b"), ...call("c_1", "charge", {}), finish("tool-calls")]),
    ({ parts }) => {
      const tags = parts.map(({ _tag }) => _tag)
      return tick(tags.filter((tag) => tag === "TextDelta").length === 2 && tags.includes("ToolCallDelta"))
    }
  ),
  "several calls in one turn": Effect.map(
    askOnce([...call("c_1", "charge", {}), ...call("c_2", "search", {}), finish("tool-calls")]),
    ({ message }) => tick(message?.toolCalls.length === 2)
  ),
  "reasoning is shown": Effect.map(askOnce([...reasoning(["hm"]), ...text("a"), finish()]), ({ parts }) =>
    tick(parts.some(({ _tag }) => _tag === "ReasoningDelta"))
  ),
  "reasoning goes back as the provider wants it": Effect.gen(function* () {
    const first = [...reasoning(["hm"], proof), ...call("c_1", "charge", {}), finish("tool-calls")]
    const { message } = yield* askOnce(first)
    if (message === undefined) return ""
    const result = Message.tool("ok", { toolCallId: message.toolCalls[0]?.id ?? "", toolName: "charge" })
    const { got } = yield* talk([[...text("a"), finish()]], [request([...hello, message, result], { tools })])
    return tick(got.includes("proof"))
  }),
  images: Effect.map(
    askOnce([...text("a"), finish()], {
      messages: [Message.human([Content.image({ base64: "iVBORw0KGgo=", mimeType: "image/png" })])]
    }),
    ({ got, service }) => tick(service.supportsVision && /iVBORw0KGgo=|"data":|image\/png/.test(got))
  ),
  "an answer in a schema, natively": Effect.map(askOnce([...text("a"), finish()]), ({ service }) =>
    tick(service.structuredOutput === "native")
  ),
  "… else by a `final_answer` tool": Effect.map(askOnce([...text("a"), finish()]), ({ service }) =>
    tick(service.structuredOutput !== "native")
  ),
  "prompt cache": Effect.succeed(""),
  "usage with cached tokens": Effect.map(askOnce([...text("a"), finish("stop", { usage: cached })]), ({ message }) =>
    tick(message?.usage?.cacheReadTokens === 7)
  ),
  ...ownOfProviders,
  "a cut stream is a failure, never an answer": Effect.map(askOnce(text("a")), ({ failure, message }) =>
    tick(failure !== undefined && message === undefined)
  ),
  "arguments cut by the output limit are not executed": Effect.map(
    askOnce([...cutCall, finish("length")]),
    ({ message }) => tick(message?.stopReason === "length" && message.toolCalls.length === 0)
  ),
  "a context that is too small is `ContextOverflow`": Effect.map(
    askOnce(
      Stream.fail(
        AiError.make({
          module: "Test",
          method: "streamText",
          reason: new AiError.InvalidRequestError({
            description: "This model's maximum context length is 10 tokens, and the prompt is too long"
          })
        })
      )
    ),
    ({ failure }) => tick(failure === "ContextOverflow")
  ),
  "an interruption ends the request": Effect.gen(function* () {
    const ended = yield* Deferred.make<void>()
    const begun = yield* Deferred.make<void>()
    const endless = Stream.fromEffect(Effect.andThen(Deferred.succeed(begun, undefined), Effect.never)).pipe(
      Stream.ensuring(Deferred.succeed(ended, undefined))
    )
    const fiber = yield* Effect.forkChild(askOnce(endless))
    yield* Deferred.await(begun)
    yield* Fiber.interrupt(fiber)
    return tick(yield* Deferred.isDone(ended))
  }),
  "any history is accepted (another provider's, a cut one)": Effect.map(
    askOnce([...text("a"), finish()], {
      messages: [
        Message.ai("", { model: "other", toolCalls: [{ id: "x".repeat(100), name: "gone", arguments: {} }] }),
        Message.tool("of nothing", { toolCallId: "never", toolName: "gone" }),
        ...hello
      ]
    }),
    ({ message }) => tick(message !== undefined)
  )
}

type Scenario = Parameters<typeof Scripted.layer>[1][number]

/** A turn of a scripted model of the Hermes family. */
const llama = (scenario: Scenario, messages: ReadonlyArray<Message.Message> = hello) =>
  Effect.scoped(Effect.flatMap(Llama.session, (line) => Llama.turn(line, Llama.request(messages, { tools })))).pipe(
    Effect.provide(Scripted.layer(hermes, [scenario]))
  )

/** The result of a tiny model in this process. */
const computed = <A>(use: Effect.Effect<A, unknown, ChatModel.ChatModel | Scope.Scope>) =>
  Effect.scoped(use).pipe(Effect.provide(Llama.layer({ codec: "hermes" })))

/** The same request twice in a session, and the part of the first that the second read. */
const reused = computed(
  Effect.gen(function* () {
    const line = yield* Llama.session
    const asked = Llama.request("short", { parameters: { maxTokens: 2 } })
    yield* Llama.turn(line, asked)
    const { message } = yield* Llama.turn(line, asked)
    return message.usage?.cacheReadTokens ?? 0
  })
)

const oneCall: Scenario = { _tag: "ToolCalls", calls: [{ name: "charge", arguments: {} }] }

const ofLlama: Rows = {
  "streams text and tool arguments as they come": Effect.map(
    llama({ _tag: "Text", pieces: ["a b", writeCalls(hermes, [answered("charge", { to: "Ada" })])] }),
    ({ parts }) => {
      const tags = parts.map(({ _tag }) => _tag)
      return tick(tags.filter((tag) => tag === "TextDelta").length > 1 && tags.includes("ToolCallDelta"))
    }
  ),
  "several calls in one turn": Effect.map(
    llama({ ...oneCall, calls: ["charge", "search"].map((name) => ({ name, arguments: {} })) }),
    ({ message }) => tick(message.toolCalls.length === 2)
  ),
  "reasoning is shown": Effect.map(llama({ _tag: "Text", pieces: ["<think>hm</think>a"] }), ({ parts }) =>
    tick(parts.some(({ _tag }) => _tag === "ReasoningDelta"))
  ),
  "reasoning goes back as the provider wants it": Effect.gen(function* () {
    const pieces = ["<think>hm</think>", writeCalls(hermes, [answered("charge", {})])]
    const { message } = yield* llama({ _tag: "Text", pieces })
    const result = Message.tool("ok", { toolCallId: message.toolCalls[0]?.id ?? "", toolName: "charge" })
    const normalize = makeNormalizer(dialectOf({ provider: "llama", model: "scripted" }))
    const { turns } = normalize([...hello, message, result])
    const prompt = hermes.prompt(ask(turns, { tools })).pieces.map((piece) => piece.text)
    return tick(/<think>\s*hm\s*<\/think>/.test(prompt.join("")))
  }),
  images: computed(ChatModel.ChatModel.useSync(({ supportsVision }) => tick(supportsVision))),
  "an answer in a schema, natively": computed(
    ChatModel.ChatModel.useSync(({ structuredOutput }) => tick(structuredOutput === "native"))
  ),
  "… else by a `final_answer` tool": computed(
    ChatModel.ChatModel.useSync(({ structuredOutput }) => tick(structuredOutput !== "native"))
  ),
  "prompt cache": Effect.map(reused, (tokens) => (tokens > 0 ? "the context itself" : "")),
  "usage with cached tokens": Effect.map(reused, (tokens) => tick(tokens > 0)),
  ...ownOfProviders,
  // There is no stream that somebody else could cut.
  "a cut stream is a failure, never an answer": Effect.succeed(""),
  "arguments cut by the output limit are not executed": Effect.map(
    llama({ _tag: "LengthInArguments", name: "charge", partial: "" }),
    ({ message }) => tick(message.stopReason === "length" && message.toolCalls.length === 0)
  ),
  "a context that is too small is `ContextOverflow`": computed(
    Effect.gen(function* () {
      const line = yield* Llama.session
      const error = yield* Effect.flip(Llama.turn(line, Llama.request("long ".repeat(2_500))))
      return tick(error.reason._tag === "ContextOverflow")
    })
  ),
  "an interruption ends the request": Effect.scoped(
    Effect.gen(function* () {
      const line = yield* Llama.session
      const begun = yield* Deferred.make<void>()
      const fiber = yield* Effect.forkChild(
        Stream.runForEach(line.nextTurn(Llama.request("Go on.")), () => Deferred.succeed(begun, undefined))
      )
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(fiber)
      const { message } = yield* Llama.turn(line, Llama.request("Go on.", { parameters: { maxTokens: 2 } }))
      return tick(message.stopReason === "length")
    })
  ).pipe(Effect.provide(Llama.layer({ model: Llama.endless, codec: "hermes", maxTokens: 900 }))),
  "any history is accepted (another provider's, a cut one)": Effect.map(
    llama({ _tag: "Text", pieces: ["a"] }, [
      Message.ai("", { model: "other", toolCalls: [{ id: "x".repeat(100), name: "gone", arguments: {} }] }),
      Message.tool("of nothing", { toolCallId: "never", toolName: "gone" }),
      ...hello
    ]),
    ({ message }) => tick(Message.text(message) === "a")
  )
}

const columns: { readonly [column: string]: Rows } = { "effect/ai": overEffectAi, "llama.cpp": ofLlama }

for (const [column, rows] of Object.entries(columns)) {
  it.live(`the column ${column} of the table in docs/models.md is what it shows when it is tried`, () =>
    Effect.gen(function* () {
      const told = toldOf(column)
      assert.isNotEmpty(told)
      const found: Array<readonly [string, string]> = []
      for (const [row] of told) found.push([row, yield* rows[row] ?? Effect.succeed("not tried")])
      assert.deepStrictEqual(told, found)
    })
  )
}
