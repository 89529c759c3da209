/**
 * The columns of docs/models.md whose models are no server: `effect/ai`, by a provider of its own that says what it is told.
 */
import { readFileSync } from "node:fs"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Stream } from "effect"
import { ChatModel, Content, Message } from "effect-deepagents"
import * as EffectAiChatModel from "effect-deepagents/models/EffectAiChatModel"
import { AiError } from "effect/ai"
import { type Answer, call, finish, type Part, reasoning, requests, script, text } from "./effect-ai/provider.ts"
import { request } from "./openai/asking.ts"

const page = readFileSync(new URL("../../docs/models.md", import.meta.url), "utf8")

const hello = [Message.human("hi")]

const tools = ["charge", "search"].map((name) => ({
  name,
  description: "",
  parameters: { type: "object", properties: {} },
  annotations: {}
}))

const proof = { test: { signature: "proof" } }

/** Asks turns of a provider that answers so: the parts of the last one, or its failure, and what the provider got. */
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

const once = (answer: Answer, over: Partial<ChatModel.ModelRequest> = {}) =>
  talk([answer], [request(hello, { tools, ...over })])

const tick = (holds: boolean): string => (holds ? "✓" : "")

const cached = { inputTokens: { uncached: 3, total: 10, cacheRead: 7 }, outputTokens: { total: 2 } }

const cutCall: ReadonlyArray<Part> = [
  { type: "tool-params-start", id: "c_1", name: "charge" },
  { type: "tool-params-delta", id: "c_1", delta: '{"a":' }
]

const rows: { readonly [row: string]: Effect.Effect<string, unknown> } = {
  "streams text and tool arguments as they come": Effect.map(
    once([...text("a", "b"), ...call("c_1", "charge", {}), finish("tool-calls")]),
    ({ parts }) => {
      const tags = parts.map(({ _tag }) => _tag)
      return tick(tags.filter((tag) => tag === "TextDelta").length === 2 && tags.includes("ToolCallDelta"))
    }
  ),
  "several calls in one turn": Effect.map(
    once([...call("c_1", "charge", {}), ...call("c_2", "search", {}), finish("tool-calls")]),
    ({ message }) => tick(message?.toolCalls.length === 2)
  ),
  "reasoning is shown": Effect.map(once([...reasoning(["hm"]), ...text("a"), finish()]), ({ parts }) =>
    tick(parts.some(({ _tag }) => _tag === "ReasoningDelta"))
  ),
  "reasoning goes back as the provider wants it": Effect.gen(function* () {
    const first = [...reasoning(["hm"], proof), ...call("c_1", "charge", {}), finish("tool-calls")]
    const { message } = yield* once(first)
    if (message === undefined) return ""
    const result = Message.tool("ok", { toolCallId: message.toolCalls[0]?.id ?? "", toolName: "charge" })
    const { got } = yield* talk([[...text("a"), finish()]], [request([...hello, message, result], { tools })])
    return tick(got.includes("proof"))
  }),
  images: Effect.map(
    once([...text("a"), finish()], {
      messages: [Message.human([Content.image({ base64: "iVBORw0KGgo=", mimeType: "image/png" })])]
    }),
    ({ got, service }) => tick(service.supportsVision && /iVBORw0KGgo=|"data":|image\/png/.test(got))
  ),
  "an answer in a schema, natively": Effect.map(once([...text("a"), finish()]), ({ service }) =>
    tick(service.structuredOutput === "native")
  ),
  "… else by a `final_answer` tool": Effect.map(once([...text("a"), finish()]), ({ service }) =>
    tick(service.structuredOutput !== "native")
  ),
  "prompt cache": Effect.succeed(""),
  "usage with cached tokens": Effect.map(once([...text("a"), finish("stop", { usage: cached })]), ({ message }) =>
    tick(message?.usage?.cacheReadTokens === 7)
  ),
  "a cut stream is a failure, never an answer": Effect.map(once(text("a")), ({ failure, message }) =>
    tick(failure !== undefined && message === undefined)
  ),
  "arguments cut by the output limit are not executed": Effect.map(
    once([...cutCall, finish("length")]),
    ({ message }) => tick(message?.stopReason === "length" && message.toolCalls.length === 0)
  ),
  "a context that is too small is `ContextOverflow`": Effect.map(
    once(
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
    const fiber = yield* Effect.forkChild(once(endless))
    yield* Deferred.await(begun)
    yield* Fiber.interrupt(fiber)
    return tick(yield* Deferred.isDone(ended))
  }),
  "any history is accepted (another provider's, a cut one)": Effect.map(
    once([...text("a"), finish()], {
      messages: [
        Message.ai("", { model: "other", toolCalls: [{ id: "x".repeat(100), name: "gone", arguments: {} }] }),
        Message.tool("of nothing", { toolCallId: "never", toolName: "gone" }),
        ...hello
      ]
    }),
    ({ message }) => tick(message !== undefined)
  )
}

const cellsOf = (line: string): ReadonlyArray<string> =>
  line
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim())

it.live("the column effect/ai of the table in docs/models.md is what the bridge shows when it is tried", () =>
  Effect.gen(function* () {
    const [, table = ""] = /<!-- support -->\n([\s\S]*?)<!-- \/support -->/.exec(page) ?? []
    const [header = [], , ...lines] = table.trim().split("\n").map(cellsOf)
    const at = header.indexOf("effect/ai")
    const told = lines.map((cells) => [cells[0] ?? "", cells[at] ?? "no such row"] as const)
    const found: Array<readonly [string, string]> = []
    for (const [row] of told) found.push([row, yield* rows[row] ?? Effect.succeed("not tried")])
    assert.deepStrictEqual(told, found)
  })
)
