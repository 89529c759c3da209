// What a model's wire costs, beside the vendor's SDK alone in the same process, interleaved (medians):
// - decode: microseconds for one event of a long answer over HTTP, and its growth with ten times the events
// - encode: milliseconds from a turn's start to its request, for a round behind 2,000 messages, when the code is warm
// node --conditions=@effect-deepagents/source test/bench/wires.mjs [decode|encode] [events]
import { createServer } from "node:http"
import { Anthropic } from "@anthropic-ai/sdk"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import { OpenAI } from "openai"
import * as ChatModel from "../../src/core/ChatModel.ts"
import * as Message from "../../src/core/Message.ts"
import * as AnthropicChatModel from "../../src/models/AnthropicChatModel.ts"
import * as GeminiChatModel from "../../src/models/GeminiChatModel.ts"
import * as OpenAiChatModel from "../../src/models/OpenAiChatModel.ts"
import * as OpenAiCompatibleChatModel from "../../src/models/OpenAiCompatibleChatModel.ts"

const [, , what = "all", given = "20000"] = process.argv
const count = Number(given)
const events = (list) => list.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("")
const many = (size, make) => Array.from({ length: size }, (_, index) => make(` word${index}`))

const answers = {
  "/v1/responses": (size) => {
    const text = many(size, (word) => word).join("")
    const item = { id: "m", type: "message", role: "assistant", status: "completed" }
    const at = { item_id: "m", output_index: 0, content_index: 0 }
    const done = { ...item, content: [{ type: "output_text", text, annotations: [], logprobs: [] }] }
    const usage = { input_tokens: 1, output_tokens: size, total_tokens: size + 1 }
    const response = { id: "r", object: "response", status: "completed", model: "gpt-5.4", output: [done], usage }
    return events([
      { type: "response.output_item.added", output_index: 0, item: { ...item, content: [] } },
      ...many(size, (delta) => ({
        type: "response.output_text.delta",
        ...at,
        delta,
        logprobs: [],
        sequence_number: 4
      })),
      { type: "response.output_item.done", output_index: 0, item: done },
      { type: "response.completed", response }
    ])
  },
  "/v1/chat/completions": (size) => {
    const piece = (delta, finish_reason = null) =>
      `data: ${JSON.stringify({
        id: "chatcmpl-1",
        object: "chat.completion.chunk",
        created: 1,
        model: "served",
        choices: [{ index: 0, delta, logprobs: null, finish_reason }]
      })}\n\n`
    return `${many(size, (content) => piece({ content })).join("")}${piece({}, "stop")}data: [DONE]\n\n`
  },
  "/v1/messages": (size) =>
    events([
      { type: "message_start", message: { id: "m", model: "claude-sonnet-5-5", usage: { input_tokens: 1 } } },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      ...many(size, (text) => ({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } })),
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: size } },
      { type: "message_stop" }
    ])
}

const request = (messages) => ({
  messages,
  systemPrompt: "You work.",
  tools: [],
  toolChoice: "auto",
  parameters: {},
  cacheHints: [],
  purpose: "turn"
})

const key = Redacted.make("key")
const layers = (baseURL, fetch) => ({
  Responses: OpenAiChatModel.layer({ model: "gpt-5.4", apiKey: key, baseURL, fetch }),
  Chat: OpenAiCompatibleChatModel.layer({ model: "served", baseURL, fetch }),
  Anthropic: AnthropicChatModel.layer({
    model: "claude-sonnet-5-5",
    apiKey: key,
    baseURL: baseURL.replace(/\/v1$/, ""),
    fetch
  }),
  Gemini: GeminiChatModel.layer({ model: "gemini-3.1-pro-preview", apiKey: key, baseURL, fetch })
})

const median = (numbers) => numbers.toSorted((left, right) => left - right)[numbers.length >> 1]

const decode = async () => {
  const made = new Map()
  const sizes = [count, count * 10]
  for (const [path, answer] of Object.entries(answers)) {
    for (const size of sizes) made.set(`${path}?${size}`, Buffer.from(answer(size)))
  }
  let size = count
  const server = createServer((incoming, response) => {
    incoming.resume().on("end", () => {
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.end(made.get(`${incoming.url.split("?")[0]}?${size}`))
    })
  })
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve))
  const baseURL = `http://127.0.0.1:${server.address().port}/v1`
  const openai = new OpenAI({ apiKey: "key", baseURL, maxRetries: 0 })
  const anthropic = new Anthropic({ apiKey: "key", baseURL: baseURL.slice(0, -3), maxRetries: 0 })
  const drain = async (stream) => {
    let seen = 0
    for await (const event of await stream) seen += event === undefined ? 0 : 1
    if (seen < size) throw new Error("events are missing")
  }
  const messages = [{ role: "user", content: "hello" }]
  const vendors = {
    Responses: () => drain(openai.responses.create({ model: "gpt-5.4", input: "hello", stream: true })),
    Chat: () => drain(openai.chat.completions.create({ model: "served", messages, stream: true })),
    Anthropic: () =>
      drain(anthropic.messages.create({ model: "claude-sonnet-5-5", max_tokens: 99, messages, stream: true }))
  }
  const own = layers(baseURL)
  const turn = (name) => () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const session = yield* ChatModel.open(yield* ChatModel.ChatModel)
        let seen = 0
        yield* Stream.runForEachArray(session.nextTurn(request([Message.human("hello")])), (parts) =>
          Effect.sync(() => {
            seen += parts.length
          })
        )
        if (seen < size) throw new Error("parts are missing")
      }).pipe(Effect.scoped, Effect.provide(own[name]))
    )
  const time = async (work) => {
    const from = performance.now()
    await work()
    return ((performance.now() - from) * 1_000) / size
  }
  for (const name of Object.keys(vendors)) {
    const times = { own: [], vendor: [], grown: [] }
    for (let round = 0; round < 10; round++) {
      size = sizes[0]
      const [ours, theirs] = [await time(turn(name)), await time(vendors[name])]
      if (round < 3) continue
      times.own.push(ours)
      times.vendor.push(theirs)
    }
    size = sizes[1]
    for (let round = 0; round < 3; round++) times.grown.push(await time(turn(name)))
    const [ours, theirs, grown] = [median(times.own), median(times.vendor), median(times.grown)]
    console.log(
      `decode ${name}: ${ours.toFixed(2)} µs an event, the SDK alone ${theirs.toFixed(2)} (${(ours / theirs).toFixed(2)} ×), growth ${(grown / ours).toFixed(2)}`
    )
  }
  server.close()
  server.closeAllConnections()
}

/** A realistic history: a call of a tool and its result in turn. */
const history = (length) =>
  Array.from({ length }, (_, index) =>
    index % 2 === 0
      ? Message.ai(`Step ${index}: ${"look at the file. ".repeat(8)}`, {
          id: `m${index}`,
          toolCalls: [{ id: `c${index}`, name: "read", arguments: { path: `/src/file-${index}.ts`, from: index } }],
          stopReason: "toolCalls"
        })
      : Message.tool("line of a file\n".repeat(36), { id: `m${index}`, toolCallId: `c${index - 1}`, toolName: "read" })
  )

const encode = async () => {
  let sent = 0
  let bytes = 0
  const fetch = async (url, { body }) => {
    sent = performance.now()
    bytes = Buffer.byteLength(body)
    const path = Object.keys(answers).find((one) => String(url).includes(one)) ?? "gemini"
    return new Response(answers[path]?.(1) ?? gemini, { headers: { "content-type": "text/event-stream" } })
  }
  const gemini = `data: ${JSON.stringify({ candidates: [{ content: { parts: [{ text: "a" }] }, finishReason: "STOP" }] })}\n\n`
  const own = layers("http://nowhere/v1", fetch)
  for (const [name, layer] of Object.entries(own)) {
    const messages = [Message.human("Begin."), ...history(2_000)]
    const times = []
    await Effect.runPromise(
      Effect.gen(function* () {
        const session = yield* ChatModel.open(yield* ChatModel.ChatModel)
        for (let round = 0; round < 200; round++) {
          const from = performance.now()
          yield* Stream.runDrain(session.nextTurn(request(messages)))
          times.push(sent - from)
          messages.push(...history(2).map((message) => ({ ...message, id: `${message.id}-${round}` })))
        }
      }).pipe(Effect.scoped, Effect.provide(layer))
    )
    const from = performance.now()
    for (let round = 0; round < 20; round++) JSON.stringify(messages)
    const text = (performance.now() - from) / 20
    console.log(
      `encode ${name}: first ${times[0].toFixed(1)} ms, then ${median(times.slice(100)).toFixed(2)} ms for ${bytes} bytes (JSON of the history alone ${text.toFixed(2)} ms)`
    )
  }
}

if (what !== "encode") await decode()
if (what !== "decode") await encode()
