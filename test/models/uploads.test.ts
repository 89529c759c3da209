/** Large images and files: uploaded once, sent by their ids, renewed when the provider does not have them any more. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Layer, Redacted, Stream } from "effect"
import { ChatModel, Content, Message } from "effect-deepagents"
import * as AnthropicChatModel from "effect-deepagents/models/AnthropicChatModel"
import * as GeminiChatModel from "effect-deepagents/models/GeminiChatModel"
import * as OpenAiChatModel from "effect-deepagents/models/OpenAiChatModel"
import { KeyValueStore } from "effect/persistence"
import { message, responseEvents } from "./openai/wire.ts"
import { answer, toSse } from "./servers/anthropic.ts"

const apiKey = Redacted.make("sk-canary-upload-0123456789")

/** A provider in this process: its uploads, and the requests for turns. */
interface Provider {
  readonly fetch: typeof globalThis.fetch
  readonly uploads: Array<{ readonly size: number; readonly type: string; readonly headers: Headers }>
  readonly turns: Array<{ readonly body: string; readonly headers: Headers }>
  /** The ids that the provider deleted. */
  readonly gone: Set<string>
}

interface Kind {
  /** The path of uploads with content. */
  readonly path: RegExp
  readonly idOf: (count: number) => string
  readonly file: (id: string) => object
  readonly turn: () => string
  readonly failure: (id: string) => readonly [status: number, body: object]
  readonly layer: (
    provider: Provider,
    uploads: OpenAiChatModel.Options["uploads"]
  ) => Layer.Layer<ChatModel.ChatModel, unknown>
  readonly idIn: (body: string) => ReadonlyArray<string>
}

const sse = (events: ReadonlyArray<object>): string =>
  events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")

const kinds: { readonly [name: string]: Kind } = {
  OpenAI: {
    path: /\/v1\/files$/,
    idOf: (count) => `file-${count}`,
    file: (id) => ({ id, object: "file", expires_at: 9_999_999_999 }),
    turn: () => sse(responseEvents([message("ok")])),
    failure: (id) => [400, { error: { message: `No such File object: ${id}`, type: "invalid_request_error" } }],
    layer: ({ fetch }, uploads) => OpenAiChatModel.layer({ model: "gpt-5.4", apiKey, fetch, uploads }),
    idIn: (body) => [...body.matchAll(/"file_id":"([^"]+)"/g)].map(([, id = ""]) => id)
  },
  Anthropic: {
    path: /\/v1\/files/,
    idOf: (count) => `file_${count}`,
    file: (id) => ({ id, type: "file", expires_at: "2099-01-01T00:00:00Z" }),
    turn: () => toSse(answer([{ text: "ok" }])),
    failure: (id) => [404, { type: "error", error: { type: "not_found_error", message: `File not found: ${id}` } }],
    layer: ({ fetch }, uploads) => AnthropicChatModel.layer({ model: "claude-opus-5-5", apiKey, fetch, uploads }),
    idIn: (body) => [...body.matchAll(/"file_id":"([^"]+)"/g)].map(([, id = ""]) => id)
  },
  Gemini: {
    path: /\/put\//,
    idOf: (count) => `files/f${count}`,
    file: (id) => ({ file: { name: id, state: "ACTIVE", expirationTime: "2099-01-01T00:00:00Z" } }),
    turn: () => sse([{ candidates: [{ content: { parts: [{ text: "ok" }] }, finishReason: "STOP" }] }]),
    failure: (id) => [
      403,
      {
        error: {
          code: 403,
          status: "PERMISSION_DENIED",
          message: `You do not have permission to access the File ${id} or it may not exist.`
        }
      }
    ],
    layer: ({ fetch }, uploads) => GeminiChatModel.layer({ model: "gemini-3.8-flash", apiKey, fetch, uploads }),
    idIn: (body) => [...body.matchAll(/"fileUri":"[^"]*\/(files\/[^"]+)"/g)].map(([, id = ""]) => id)
  }
}

const bytesOf = async (body: unknown): Promise<{ readonly size: number; readonly type: string }> => {
  const form = body instanceof FormData ? body : undefined
  const file = form?.get("file")
  if (file instanceof File) return { size: file.size, type: file.type }
  return { size: body instanceof Uint8Array ? body.length : 0, type: "" }
}

const makeProvider = (kind: Kind): Provider => {
  const uploads: Provider["uploads"] = []
  const turns: Provider["turns"] = []
  const gone = new Set<string>()
  const fetch: Provider["fetch"] = async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input.toString())
    // The SDKs look once whether `fetch` takes forms.
    if (url.protocol === "data:") return new Response()
    const headers = new Headers(init?.headers)
    if (url.pathname.startsWith("/upload/")) {
      return new Response("", { headers: { "x-goog-upload-url": `${url.origin}/put/1` } })
    }
    if (kind.path.test(url.pathname)) {
      uploads.push({ ...(await bytesOf(init?.body)), headers })
      return Response.json(kind.file(kind.idOf(uploads.length)))
    }
    const body = typeof init?.body === "string" ? init.body : ""
    turns.push({ body, headers })
    const lost = kind.idIn(body).find((id) => gone.has(id))
    if (lost !== undefined) {
      const [status, failure] = kind.failure(lost)
      return Response.json(failure, { status })
    }
    return new Response(kind.turn(), { headers: { "content-type": "text/event-stream" } })
  }
  return { fetch, uploads, turns, gone }
}

const base64 = (size: number): string => Buffer.alloc(size, 7).toString("base64")

const pdf = (size: number) => Content.file({ base64: base64(size), mimeType: "application/pdf", name: "report.pdf" })

const picture = (size: number) => Content.image({ base64: base64(size), mimeType: "image/png" })

const request = (messages: ReadonlyArray<Message.Message>): ChatModel.ModelRequest => ({
  messages,
  systemPrompt: "",
  tools: [],
  toolChoice: "auto",
  parameters: {},
  cacheHints: [],
  purpose: "turn"
})

const ask = (...messages: ReadonlyArray<Message.Message>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const session = yield* ChatModel.open(yield* ChatModel.ChatModel)
      yield* Stream.runDrain(session.nextTurn(request(messages)))
    })
  )

const uploads = { above: 1_000 }

describe.each(Object.entries(kinds))("large inputs of %s", (name, kind) => {
  it.live("are uploaded once, and each request holds their id", () =>
    Effect.gen(function* () {
      const provider = makeProvider(kind)
      const large = Message.human([Content.text("Read."), pdf(3_000), picture(2_000), pdf(500)])
      yield* Effect.gen(function* () {
        yield* ask(large)
        yield* ask(large, Message.ai("ok"), Message.human([pdf(3_000)]))
        yield* Effect.all([ask(Message.human([pdf(4_000)])), ask(Message.human([pdf(4_000)]))], { concurrency: 2 })
      }).pipe(Effect.provide(kind.layer(provider, uploads)))
      assert.deepStrictEqual(
        provider.uploads.map(({ size }) => size),
        [3_000, 2_000, 4_000]
      )
      const [first, second] = [kind.idOf(1), kind.idOf(2)]
      assert.deepStrictEqual(
        provider.turns.map(({ body }) => kind.idIn(body)),
        [[first, second], [first, second, first], [kind.idOf(3)], [kind.idOf(3)]]
      )
      // The small one is inside of the request, the large ones are not.
      for (const { body } of provider.turns) assert.notInclude(body, base64(1_000))
      assert.include(provider.turns[0]?.body, base64(500))
      if (name === "Anthropic") {
        for (const { headers } of provider.turns) assert.include(headers.get("anthropic-beta"), "files-api-2025-04-14")
      }
    })
  )

  it.live("are uploaded again if the provider lost them, once", () =>
    Effect.gen(function* () {
      const provider = makeProvider(kind)
      provider.gone.add(kind.idOf(1))
      const large = Message.human([pdf(3_000)])
      yield* Effect.gen(function* () {
        yield* ask(large)
        provider.gone.add(kind.idOf(2))
        provider.gone.add(kind.idOf(3))
        const error = yield* Effect.flip(ask(large))
        assert.strictEqual(error._tag, "ModelError")
      }).pipe(Effect.provide(kind.layer(provider, uploads)))
      assert.deepStrictEqual(
        provider.turns.map(({ body }) => kind.idIn(body)[0]),
        [1, 2, 2, 3].map(kind.idOf)
      )
    })
  )

  it.live("keep their ids in a store, for other processes", () =>
    Effect.gen(function* () {
      const provider = makeProvider(kind)
      const store = yield* KeyValueStore.KeyValueStore
      const large = Message.human([pdf(3_000)])
      yield* ask(large).pipe(Effect.provide(kind.layer(provider, { ...uploads, store })))
      yield* ask(large).pipe(Effect.provide(kind.layer(provider, { ...uploads, store })))
      assert.strictEqual(provider.uploads.length, 1)
      yield* ask(large).pipe(Effect.provide(kind.layer(provider, uploads)))
      assert.strictEqual(provider.uploads.length, 2)
    }).pipe(Effect.provide(KeyValueStore.layerMemory))
  )

  it.live("go with the request where nobody asked for uploads", () =>
    Effect.gen(function* () {
      const provider = makeProvider(kind)
      yield* ask(Message.human([pdf(3_000)])).pipe(Effect.provide(kind.layer(provider, undefined)))
      assert.strictEqual(provider.uploads.length, 0)
      assert.include(provider.turns[0]?.body, base64(3_000))
    })
  )
})

describe("uploads to Gemini", () => {
  it.live("send the content to no other server", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const fetch: typeof globalThis.fetch = async (input) => {
        seen.push(new Request(input).url)
        return new Response("", { headers: { "x-goog-upload-url": "https://elsewhere.example/put" } })
      }
      const layer = GeminiChatModel.layer({ model: "gemini-3.8-flash", apiKey, fetch, uploads })
      const error = yield* Effect.flip(ask(Message.human([pdf(3_000)])).pipe(Effect.provide(layer)))
      assert.strictEqual(error.reason._tag, "BadResponse")
      assert.deepStrictEqual(seen, ["https://generativelanguage.googleapis.com/upload/v1beta/files"])
    })
  )

  it.live("with a date of expiry in the past are made anew", () =>
    Effect.gen(function* () {
      const kind = kinds["Gemini"] ?? assert.fail("no Gemini")
      const old = {
        ...kind,
        file: (id: string) => ({ file: { name: id, state: "ACTIVE", expirationTime: "2020-01-01T00:00:00Z" } })
      }
      const provider = makeProvider(old)
      yield* Effect.gen(function* () {
        yield* ask(Message.human([pdf(3_000)]))
        yield* ask(Message.human([pdf(3_000)]))
      }).pipe(Effect.provide(kind.layer(provider, uploads)))
      assert.strictEqual(provider.uploads.length, 2)
    })
  )
})
