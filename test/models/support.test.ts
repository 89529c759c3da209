import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { ChatModel, Content, Message, type ModelError } from "effect-deepagents"
import * as AnthropicChatModel from "effect-deepagents/models/AnthropicChatModel"
import * as OpenAiChatModel from "effect-deepagents/models/OpenAiChatModel"
import { KeyValueStore } from "effect/persistence"
import { serve } from "./hostile/server.ts"
import { type Wire, wires } from "./hostile/wires.ts"
import { askAll, request } from "./openai/asking.ts"
import { type Batches, serveClaude, serveOpenAi } from "./servers/batches.ts"
import { hello, tick, toldOf, tools } from "./support.ts"

const json = JSON.stringify

/** Parts that only a provider itself can write: thoughts with their proof, an end by the limit, usage with cached tokens. */
interface Words {
  readonly column: string
  readonly thoughts: ReadonlyArray<string>
  readonly limit: ReadonlyArray<string>
  readonly cached?: unknown
  readonly cache?: string
}

const delta = (index: number, value: object): string => json({ type: "content_block_delta", index, delta: value })

const claude: Omit<Words, "column"> = {
  thoughts: [
    json({ type: "content_block_start", index: 7, content_block: { type: "thinking", thinking: "", signature: "" } }),
    delta(7, { type: "thinking_delta", thinking: "hm" }),
    delta(7, { type: "signature_delta", signature: "proof" }),
    json({ type: "content_block_stop", index: 7 })
  ],
  limit: [
    json({ type: "message_delta", delta: { stop_reason: "max_tokens" }, usage: {} }),
    json({ type: "message_stop" })
  ],
  cached: { output_tokens: 2, cache_read_input_tokens: 7 }
}

const reasoningItem = {
  type: "reasoning",
  id: "rs_1",
  summary: [{ type: "summary_text", text: "hm" }],
  encrypted_content: "proof"
}

const words: { readonly [wire: string]: Words } = {
  OpenAiChatModel: {
    column: "OpenAI Responses",
    thoughts: [
      json({ type: "response.reasoning_summary_text.delta", output_index: 7, item_id: "rs_1", delta: "hm" }),
      json({ type: "response.output_item.done", output_index: 7, item: reasoningItem })
    ],
    limit: [
      json({
        type: "response.incomplete",
        response: { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } }
      })
    ],
    cached: { input_tokens: 10, input_tokens_details: { cached_tokens: 7 }, output_tokens: 2 }
  },
  OpenAiCompatibleChatModel: {
    column: "Chat Completions",
    thoughts: [json({ choices: [{ index: 0, delta: { reasoning_content: "proof" } }] })],
    limit: [json({ choices: [{ index: 0, delta: {}, finish_reason: "length" }] })],
    cached: { prompt_tokens: 10, prompt_tokens_details: { cached_tokens: 7 }, completion_tokens: 2 }
  },
  AnthropicChatModel: { column: "Anthropic", ...claude },
  BedrockChatModel: { column: "Bedrock (Claude)", ...claude },
  BedrockConverseChatModel: {
    column: "Bedrock Converse",
    thoughts: [
      json({ contentBlockDelta: { contentBlockIndex: 7, delta: { reasoningContent: { text: "hm" } } } }),
      json({ contentBlockDelta: { contentBlockIndex: 7, delta: { reasoningContent: { signature: "proof" } } } })
    ],
    limit: [json({ messageStop: { stopReason: "max_tokens" } })],
    cached: { inputTokens: 3, outputTokens: 2, cacheReadInputTokens: 7 }
  },
  GeminiChatModel: {
    column: "Gemini",
    thoughts: [
      json({ candidates: [{ content: { parts: [{ text: "hm", thought: true, thoughtSignature: "proof" }] } }] })
    ],
    limit: [json({ candidates: [{ finishReason: "MAX_TOKENS" }] })],
    cached: { promptTokenCount: 10, cachedContentTokenCount: 7 },
    cache: "by itself"
  },
  OllamaChatModel: {
    column: "Ollama",
    thoughts: [json({ message: { thinking: "proof" }, done: false })],
    limit: [json({ message: {}, done: true, done_reason: "length" })],
    cache: "the context itself"
  }
}

const call = (wire: Wire, id: string, index: number): ReadonlyArray<string> => {
  const [begin, args, end] = wire.call({ id, index, args: "{}" })
  return [begin, args, ...end]
}

/** Asks one turn after the other of a server that answers with these events, the last ones again and again. */
const talk = Effect.fnUntraced(function* (
  wire: Wire,
  answers: ReadonlyArray<ReadonlyArray<string>>,
  requests: (said: Message.AiMessage | undefined) => ReadonlyArray<ChatModel.ModelRequest>
) {
  const bodies: Array<string> = []
  const server = yield* serve((count) => (response, _, text) => {
    bodies.push(text)
    const events = answers[Math.min(count, answers.length - 1)] ?? []
    response.writeHead(200, { "content-type": wire.contentType }).end(Buffer.concat(events.map(wire.frame)))
  })
  const model = wire.model({ url: server.url, timeout: 20_000 })
  const [first] = yield* askAll(model, requests(undefined).slice(0, 1))
  for (const one of requests(first?.message).slice(1)) yield* askAll(model, [one])
  const service = yield* Effect.provide(ChatModel.ChatModel, model)
  return { ...first!, bodies, service }
})

const askOnce = (wire: Wire, events: ReadonlyArray<string>, over: Partial<ChatModel.ModelRequest> = {}) =>
  talk(wire, [events], () => [request(hello, { tools, ...over })])

const apiKey = Redacted.make("sk-canary-support-0123456789")

type Batched = Layer.Layer<ChatModel.ChatModel, ModelError.ModelError, KeyValueStore.KeyValueStore>

const quick = { window: 5, interval: 5 }

/** A server of batches, and the layer that uses it. */
const batched: {
  readonly [wire: string]: readonly [typeof serveOpenAi, (server: Batches) => Batched]
} = {
  OpenAiChatModel: [
    serveOpenAi,
    ({ url }) => OpenAiChatModel.layerBatch({ model: "gpt-5.4", apiKey, baseURL: `${url}/v1`, ...quick })
  ],
  AnthropicChatModel: [
    serveClaude,
    ({ url }) => AnthropicChatModel.layerBatch({ model: "claude-opus-5-5", apiKey, baseURL: url, ...quick })
  ]
}

/** An answer to any upload, in the words of all providers. */
const uploaded = JSON.stringify({
  id: "file-1",
  type: "file",
  file: { name: "files/f1", state: "ACTIVE", expirationTime: "2099-01-01T00:00:00Z" }
})

type Row = (wire: Wire, own: Words) => Effect.Effect<string, unknown, never>

/** The rows of the table, each with a trial of a provider's adapter. */
const rows: { readonly [row: string]: Row } = {
  "streams text and tool arguments as they come": (wire) =>
    Effect.map(
      askOnce(wire, [
        ...wire.open,
        ...wire.text("a"),
        ...wire.text("b", 1),
        ...call(wire, "c_1", 2),
        ...wire.close("calls")
      ]),
      ({ parts }) => {
        const tags = parts.map(({ _tag }) => _tag)
        return tick(tags.filter((tag) => tag === "TextDelta").length === 2 && tags.includes("ToolCallDelta"))
      }
    ).pipe(Effect.scoped),
  "several calls in one turn": (wire) =>
    Effect.map(
      askOnce(wire, [...wire.open, ...call(wire, "c_1", 0), ...call(wire, "c_2", 1), ...wire.close("calls")]),
      ({ message }) => tick(message?.toolCalls.length === 2)
    ).pipe(Effect.scoped),
  "reasoning is shown": (wire, { thoughts }) =>
    Effect.map(askOnce(wire, [...wire.open, ...thoughts, ...wire.text("a"), ...wire.close("stop")]), ({ parts }) =>
      tick(parts.some(({ _tag }) => _tag === "ReasoningDelta"))
    ).pipe(Effect.scoped),
  "reasoning goes back as the provider wants it": (wire, { thoughts }) =>
    Effect.map(
      talk(
        wire,
        [
          [...wire.open, ...thoughts, ...call(wire, "c_1", 8), ...wire.close("calls")],
          [...wire.open, ...wire.text("a"), ...wire.close("stop")]
        ],
        (said) => [
          request(hello, { tools }),
          request(
            said === undefined
              ? hello
              : [...hello, said, Message.tool("ok", { toolCallId: "c_1", toolName: "charge" })],
            {
              tools
            }
          )
        ]
      ),
      ({ bodies }) => tick(bodies.at(-1)?.includes("proof") === true)
    ).pipe(Effect.scoped),
  images: (wire) =>
    Effect.map(
      askOnce(wire, [...wire.open, ...wire.text("a"), ...wire.close("stop")], {
        messages: [Message.human([Content.image({ base64: "iVBORw0KGgo=", mimeType: "image/png" })])]
      }),
      ({ bodies, service }) => {
        const isSent = bodies.at(-1)?.includes("iVBORw0KGgo=") === true
        // A model that is not known to see gets none.
        return isSent === service.supportsVision ? (isSent ? "✓" : "by model") : ""
      }
    ).pipe(Effect.scoped),
  "an answer in a schema, natively": (wire) =>
    Effect.map(
      askOnce(wire, [...wire.open, ...wire.text("{}"), ...wire.close("stop")], {
        tools: [],
        outputSchema: { type: "object", properties: { zebra: { type: "string" } } }
      }),
      ({ bodies, service }) =>
        bodies.at(-1)?.includes("zebra") !== true ? "" : service.structuredOutput === "native" ? "✓" : "by model"
    ).pipe(Effect.scoped),
  "… else by a `final_answer` tool": (wire) =>
    Effect.map(askOnce(wire, [...wire.open, ...wire.text("a"), ...wire.close("stop")]), ({ service }) =>
      tick(service.structuredOutput === "tool")
    ).pipe(Effect.scoped),
  "prompt cache": (wire, { cache }) =>
    Effect.map(
      askOnce(wire, [...wire.open, ...wire.text("a"), ...wire.close("stop")], {
        systemPrompt: "You help.",
        ...(wire.name.startsWith("OpenAi") ? { parameters: { promptCacheKey: "k" } } : {})
      }),
      ({ bodies }) => {
        const body = bodies.at(-1) ?? ""
        if (/"(?:cache_control|cachePoint)"/.test(body)) return "breakpoints"
        return body.includes('"prompt_cache_key":"k"') ? "a key" : (cache ?? "")
      }
    ).pipe(Effect.scoped),
  "usage with cached tokens": (wire, { cached }) =>
    cached === undefined
      ? Effect.succeed("")
      : Effect.map(askOnce(wire, [...wire.open, ...wire.text("a"), ...wire.close("stop", cached)]), ({ message }) =>
          tick(message?.usage?.cacheReadTokens === 7)
        ).pipe(Effect.scoped),
  "many requests in a batch, at half the price": ({ name }) =>
    Effect.gen(function* () {
      const [serveBatches, layerOf] = batched[name] ?? []
      if (serveBatches === undefined || layerOf === undefined) return ""
      const server = yield* serveBatches
      server.isDone = true
      const layer = Layer.provide(layerOf(server), KeyValueStore.layerMemory)
      const [outcome] = yield* askAll(layer, [request([Message.human("say yes")])])
      return tick(
        outcome?.message !== undefined && Message.text(outcome.message) === "YES" && server.batches.length === 1
      )
    }).pipe(Effect.scoped),
  "large images and files are uploaded once": (wire) =>
    Effect.gen(function* () {
      const paths: Array<string> = []
      const server = yield* serve(() => (response, { headers, url = "" }, text) => {
        const isTurn = text.includes('"file-1"') || text.includes("files/f1") || text.includes("cGljdHVyZS")
        paths.push(isTurn ? "turn" : url)
        if (!isTurn) {
          const at = `http://${headers.host}/put/1`
          return void response
            .writeHead(200, { "content-type": "application/json", "x-goog-upload-url": at })
            .end(uploaded)
        }
        const events = [...wire.open, ...wire.text("a"), ...wire.close("stop")]
        response.writeHead(200, { "content-type": wire.contentType }).end(Buffer.concat(events.map(wire.frame)))
      })
      const model = wire.model({ url: server.url, timeout: 20_000, options: { uploads: { above: 10 } } })
      const base64 = Buffer.from("picture".repeat(9)).toString("base64")
      const asked = request([Message.human([Content.image({ base64, mimeType: "image/png" })])])
      // A layer without this option refuses it.
      const outcomes = yield* Effect.orElseSucceed(askAll(model, [asked, asked]), () => [])
      const turns = paths.filter((path) => path === "turn").length
      const isOnce = paths.lastIndexOf("turn") - paths.indexOf("turn") === 1 && paths.at(-1) === "turn"
      return tick(outcomes.length === 2 && turns === 2 && paths.length > 2 && isOnce)
    }).pipe(Effect.scoped),
  "tools change inside of a conversation (`abilities`)": (wire) =>
    Effect.gen(function* () {
      const bodies: Array<string> = []
      const server = yield* serve(() => (response, _, text) => {
        bodies.push(text)
        const events = [...wire.open, ...wire.text("a"), ...wire.close("stop")]
        response.writeHead(200, { "content-type": wire.contentType }).end(Buffer.concat(events.map(wire.frame)))
      })
      const options = { abilities: ["toolChanges"] }
      const toolChanges = [{ after: 0, add: tools.slice(1), again: [], remove: [] }]
      yield* askAll(wire.model({ url: server.url, timeout: 20_000, options }), [request(hello, { tools, toolChanges })])
      return tick(/"(?:additional_tools|tool_addition)"/.test(bodies.at(-1) ?? ""))
    }).pipe(Effect.scoped),
  "a cut stream is a failure, never an answer": (wire) =>
    Effect.map(askOnce(wire, [...wire.open, ...wire.text("a")]), ({ error, message }) =>
      tick(error?.reason._tag === "BadResponse" && message === undefined)
    ).pipe(Effect.scoped),
  "arguments cut by the output limit are not executed": (wire, { limit }) =>
    Effect.map(
      askOnce(wire, [
        ...wire.open,
        // Who sends calls whole has cut off the last one.
        ...(wire.ends === undefined && wire.name !== "OllamaChatModel"
          ? wire.call({ id: "c_1", index: 0, args: '{"a":' }).slice(0, 2).flat()
          : []),
        ...limit
      ]),
      ({ message }) => tick(message?.stopReason === "length" && message.toolCalls.length === 0)
    ).pipe(Effect.scoped),
  "a context that is too small is `ContextOverflow`": (wire) =>
    Effect.gen(function* () {
      const server = yield* serve(() => (response) => {
        response
          .writeHead(400, { "content-type": "application/json" })
          .end(wire.error("This model's maximum context length is 10 tokens, and the prompt is too long"))
      })
      const [outcome] = yield* askAll(wire.model({ url: server.url, timeout: 20_000 }), [request(hello)])
      return tick(outcome?.error?.reason._tag === "ContextOverflow")
    }).pipe(Effect.scoped)
}

describe("the table of what each provider supports, in docs/models.md", () => {
  for (const wire of wires) {
    const own = words[wire.name]!
    it.live(`is right about ${wire.name}`, () =>
      Effect.gen(function* () {
        const cells = new Map(toldOf(own.column))
        const wanted: Array<readonly [string, string]> = []
        for (const [row, probe] of Object.entries(rows)) wanted.push([row, yield* probe(wire, own)])
        const told = wanted.map(([row]) => [row, cells.get(row) ?? "no such row"] as const)
        assert.deepStrictEqual(told, wanted)
      })
    )
  }
})
