/** A session sends the same bytes as a fresh session does for the same conversation. A round reads the new messages alone. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Layer, Redacted, Stream } from "effect"
import { ChatModel, type Json, Message } from "effect-deepagents"
import * as AnthropicChatModel from "effect-deepagents/models/AnthropicChatModel"
import * as GeminiChatModel from "effect-deepagents/models/GeminiChatModel"
import * as OllamaChatModel from "effect-deepagents/models/OllamaChatModel"
import * as OpenAiChatModel from "effect-deepagents/models/OpenAiChatModel"
import * as OpenAiCompatibleChatModel from "effect-deepagents/models/OpenAiCompatibleChatModel"
import fc from "fast-check"
import { scaled } from "../scale.ts"
import { message, type Own } from "./internal/histories.ts"

const eventsOf = (...events: ReadonlyArray<object>): string =>
  events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")

const answers: { readonly [path: string]: string } = {
  "/responses": eventsOf({ type: "response.completed", response: { id: "r", status: "completed", output: [] } }),
  "/chat/completions": eventsOf({ choices: [{ index: 0, delta: { content: "a" }, finish_reason: "stop" }] }),
  "/messages": eventsOf(
    { type: "message_start", message: { id: "m", usage: {} } },
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: {} },
    { type: "message_stop" }
  ),
  ":streamGenerateContent": eventsOf({ candidates: [{ content: { parts: [{ text: "a" }] }, finishReason: "STOP" }] }),
  "/api/chat": `${JSON.stringify({ message: { role: "assistant", content: "a" }, done: true, done_reason: "stop" })}\n`
}

/** The bodies that were sent. */
const sent: Array<string> = []

const fetch: typeof globalThis.fetch = async (input, init) => {
  const url = input instanceof Request ? input.url : String(input)
  const path = Object.keys(answers).find((one) => url.includes(one))
  if (path === undefined) return Response.json({})
  sent.push(typeof init?.body === "string" ? init.body : "")
  const type = path === "/api/chat" ? "application/x-ndjson" : "text/event-stream"
  return new Response(answers[path], { headers: { "content-type": type } })
}

const apiKey = Redacted.make("sk-test")
const baseURL = "http://127.0.0.1:1/v1"
const server = { model: "anthropic/claude-opus-5-5", baseURL, fetch }

const layers = {
  responses: OpenAiChatModel.layer({ model: "gpt-5.4", apiKey, baseURL, fetch }),
  chat: OpenAiCompatibleChatModel.layer(server),
  "chat with marks": OpenAiCompatibleChatModel.layer({ ...server, provider: "openrouter" }),
  mistral: OpenAiCompatibleChatModel.layer({ ...server, provider: "mistral" }),
  anthropic: AnthropicChatModel.layer({ model: "claude-opus-5-5", apiKey, fetch }),
  gemini: GeminiChatModel.layer({ model: "gemini-3.1-pro-preview", apiKey, fetch }),
  ollama: OllamaChatModel.layer({ model: "qwen3:8b", fetch })
} satisfies Record<string, Layer.Layer<ChatModel.ChatModel, unknown>>

const search: Json.JsonObject = { type: "server_tool_use", id: "srv_1", name: "web_search", input: {} }
const found: Json.JsonObject = { type: "web_search_tool_result", tool_use_id: "srv_1", content: [] }

/** Data with which each provider changes its form of a message. */
const own: Own = {
  block: fc.constantFrom<ReadonlyArray<Json.JsonObject>[number]>(
    { anthropic: { signature: "s" } },
    { openai: { item: { type: "reasoning", id: "rs_1", encrypted_content: "e" }, index: 0 } },
    { google: { signature: "s" } }
  ),
  call: fc.constantFrom<ReadonlyArray<Json.JsonObject>[number]>(
    { anthropic: { caller: { type: "code_execution_20260120", tool_id: "srv_1" } } },
    { openai: { id: "fc_1", index: 1 } }
  ),
  message: fc.constantFrom<ReadonlyArray<Json.JsonObject>[number]>(
    { anthropic: { layout: [search, "said"] } },
    { anthropic: { layout: [found, "said", "call"] } },
    { anthropic: { layout: [search, found] } },
    { openai: { model: "gpt-5.4", reasons: true } }
  )
}

const tool = (name: string): ChatModel.ToolDefinition => ({
  name,
  description: "Does it.",
  parameters: { type: "object", properties: {} },
  annotations: {}
})

const toolLists = [[], [tool("search")], [tool("server.tool"), tool("server_tool")]]

/** Messages whose options ask for a mark, and further ones of any kind. */
const messages = fc.array(
  fc.tuple(message(own), fc.nat(12)).map(([one, at]): Message.Message => {
    const marks = { anthropic: { cacheControl: { ttl: "1h" } }, openai: { cacheBreakpoint: {} } } as const
    return at === 0 ? { ...one, providerOptions: marks } : one
  }),
  { maxLength: 5 }
)

const change = fc.record({
  after: fc.nat(12),
  add: fc.constantFrom([], [tool("late")]),
  again: fc.constant(["search"])
})

/** Changes of one of two conversations before its request: it grows, is cut, edited inside, or becomes the other. */
const steps = fc.array(
  fc.record({
    of: fc.nat(1),
    event: fc.constantFrom("grow", "grow", "grow", "cut", "edit", "compact", "fork"),
    at: fc.nat(20),
    added: messages,
    hints: fc.array(fc.nat(20), { maxLength: 3 }),
    tools: fc.constantFrom(...toolLists),
    changes: fc.option(fc.array(change, { maxLength: 2 }), { nil: undefined }),
    purpose: fc.constantFrom("turn", "turn", "summary")
  }),
  { minLength: 1, maxLength: 8 }
)

type Step = typeof steps extends fc.Arbitrary<ReadonlyArray<infer One>> ? One : never
type History = ReadonlyArray<Message.Message>

const apply = (histories: readonly [History, History], { added, at, event, of }: Step): History => {
  const [history, other] = of === 0 ? histories : [histories[1], histories[0]]
  switch (event) {
    case "grow":
      return [...history, ...added]
    case "cut":
      return [...history.slice(0, at), ...added]
    case "edit":
      return history.flatMap((one, index) => (index === at % history.length ? added : [one]))
    case "compact":
      return [Message.human("(summary)"), ...history.slice(at)]
    case "fork":
      return other.slice(0, at)
  }
}

const freeze = <A>(value: A): A => {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value
  for (const inner of Object.values(Object.freeze(value))) freeze(inner)
  return value
}

const blank: ChatModel.ModelRequest = {
  messages: [],
  systemPrompt: "You work.",
  tools: [],
  toolChoice: "auto",
  parameters: {},
  cacheHints: [],
  purpose: "turn"
}

const requestsOf = (all: ReadonlyArray<Step>): ReadonlyArray<ChatModel.ModelRequest> => {
  let histories: readonly [History, History] = [[], []]
  return all.map((step) => {
    const messages = freeze(apply(histories, step))
    histories = step.of === 0 ? [messages, histories[1]] : [histories[0], messages]
    return {
      ...blank,
      messages,
      tools: step.tools,
      cacheHints: step.hints.filter((hint) => hint < messages.length),
      purpose: step.purpose,
      toolChanges: step.changes?.map((one) => ({ ...one, remove: [] }))
    }
  })
}

const open = Effect.flatMap(ChatModel.ChatModel, ChatModel.open)

/** Sends a request and gives its body. */
const send = (session: ChatModel.ModelSession, request: ChatModel.ModelRequest) =>
  Effect.map(Effect.exit(Stream.runDrain(session.nextTurn(request))), () => sent.splice(0).join("\n"))

describe.each(Object.entries(layers))("the requests of %s", (_, layer) => {
  it.effect("are the same bytes behind any requests of the session", () =>
    Effect.gen(function* () {
      const services = yield* Effect.context<ChatModel.ChatModel>()
      const bodies = (requests: ReadonlyArray<ChatModel.ModelRequest>) =>
        Effect.gen(function* () {
          const session = yield* open
          return yield* Effect.forEach(requests, (request) => send(session, request))
        }).pipe(Effect.scoped)
      yield* Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(steps, (all) =>
            Effect.runPromiseWith(services)(
              Effect.gen(function* () {
                const requests = requestsOf(all)
                const kept = yield* bodies(requests)
                for (const [at, request] of requests.entries()) {
                  // Claude's tools of the conversation stay in the requests without tools.
                  const offered = requests.slice(0, at).findLast(({ tools }) => tools.length > 0)
                  const before = request.tools.length > 0 || offered === undefined ? [] : [{ ...offered, messages: [] }]
                  const fresh = yield* bodies([...before, request])
                  assert.strictEqual(kept[at], fresh.at(-1))
                  assert.notStrictEqual(kept[at], "")
                }
              })
            )
          ),
          { numRuns: scaled(60) }
        )
      )
    }).pipe(Effect.provide(layer), Effect.orDie)
  )

  it.effect("read only the new messages of a long conversation", () =>
    Effect.gen(function* () {
      let reads = 0
      const watch = (one: Message.Message): Message.Message => {
        const { content } = one
        return Object.defineProperty({ ...one }, "content", {
          enumerable: true,
          get: () => {
            reads++
            return content
          }
        })
      }
      const round = (at: number) =>
        [
          Message.ai("I look.", { toolCalls: [{ id: `c${at}`, name: "search", arguments: { at } }] }),
          Message.tool("found", { toolCallId: `c${at}`, toolName: "search" })
        ].map(watch)
      const messages = [watch(Message.human("go")), ...Array.from({ length: 500 }, (_, at) => round(at)).flat()]
      const session = yield* open
      const next = () => send(session, { ...blank, messages })
      yield* next()
      assert.isAtLeast(reads, 1_000)
      for (let at = 500; at < 510; at++) {
        reads = 0
        messages.push(...round(at))
        yield* next()
        assert.isAtMost(reads, 30)
      }
    }).pipe(Effect.scoped, Effect.provide(layer), Effect.orDie)
  )
})
