import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import type { Layer } from "effect"
import { type ChatModel, Message } from "effect-deepagents"
import { threadTime } from "../../spent.ts"
import * as Server from "../servers/openai.ts"
import { ask, compatible, leave, request, responses } from "./asking.ts"
import { chunk, functionCall, message, response, responseEvents } from "./wire.ts"

const hello = request([Message.human("hello")])

type Model = Layer.Layer<ChatModel.ChatModel, unknown>

const apis: ReadonlyArray<readonly [string, (server: Server.Server) => Model]> = [
  ["OpenAiChatModel", (server) => responses(server)],
  ["OpenAiCompatibleChatModel", (server) => compatible(server)]
]

const json = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`

const answer = responseEvents([message("Hello there"), functionCall("a", "search", '{"q":"x"}')])

/** The parts before the end, of each API. */
const partial = {
  OpenAiChatModel: answer.slice(0, -1).map(json).join(""),
  OpenAiCompatibleChatModel: [chunk({ content: "Hello there" })].map(json).join("")
} as const

for (const [name, model] of apis) {
  const begun = partial[name as keyof typeof partial]

  describe(`${name}: a broken stream is never a success`, () => {
    const cases: ReadonlyArray<readonly [string, Server.Reply, string, RegExp]> = [
      ["cut before the end marker", Server.raw(begun), "BadResponse", /stream ended before/],
      ["an end marker without an end", Server.raw(`${begun}data: [DONE]\n\n`), "BadResponse", /stream ended before/],
      ["an empty stream", Server.raw(""), "BadResponse", /stream ended before/],
      ["a chunk that is not JSON", Server.raw(`${begun}data: {"type": oops\n\n`), "BadResponse", /not JSON/],
      ["a chunk that is not an object", Server.raw(`${begun}data: 5\n\n`), "BadResponse", /not a JSON object/],
      [
        "a web page",
        Server.raw("<html>Sign in</html>", { headers: { "content-type": "text/html" } }),
        "BadResponse",
        /answered with a web page; is the base URL right/
      ],
      ["a connection that is torn down", Server.raw(begun, { ending: "reset" }), "Transport", /connection failed/],
      ["a connection torn down before anything", Server.reset, "Transport", /ECONNRESET|UND_ERR_SOCKET/],
      [
        "an error in the middle",
        Server.raw(
          `${begun}${json({ error: { message: "The engine is on fire", type: "server_error", code: "server_error" } })}`
        ),
        "Overloaded",
        /engine is on fire/
      ],
      [
        "an error of the proxy in the middle",
        Server.raw(`${begun}${json({ error: { message: "Provider returned error", code: 429 } })}`),
        "RateLimited",
        /Provider returned error/
      ]
    ]
    for (const [what, reply, reason, pattern] of cases) {
      it.live(what, () =>
        Effect.gen(function* () {
          const server = yield* Server.make
          server.reply(reply)
          const { error, message: done, parts } = yield* ask(model(server), hello)
          assert.isUndefined(done)
          assert.strictEqual(error!.reason._tag, reason)
          assert.match(error!.message, pattern)
          assert.isTrue(error!.isRetryable)
          if (reply._tag === "Stream" && reply.text.startsWith(begun) && what !== "a connection that is torn down") {
            assert.isTrue(parts.length > 0)
          }
          assert.strictEqual(server.seen.length, 1)
        })
      )
    }
  })

  describe(`${name}: the meaning of a status`, () => {
    const error = (message: string, code?: string, type?: string) => ({ error: { message, code, type, param: null } })
    const cases: ReadonlyArray<readonly [number, unknown, string, Readonly<Record<string, string>>?]> = [
      [400, error("Invalid value", "invalid_value", "invalid_request_error"), "InvalidRequest"],
      [400, error("Too much", "context_length_exceeded", "invalid_request_error"), "ContextOverflow"],
      [400, error("Filtered by Azure", "content_filter"), "ContentFiltered"],
      [401, error("Incorrect API key", "invalid_api_key", "invalid_request_error"), "Authentication"],
      [401, error("You didn't provide an API key", undefined, "invalid_request_error"), "Authentication"],
      [402, error("Insufficient Balance", undefined, "unknown_error"), "QuotaExhausted"],
      [403, error("Not for you"), "Permission"],
      [404, error("No such model", "model_not_found", "invalid_request_error"), "InvalidRequest"],
      [404, "<html>nginx</html>", "InvalidRequest"],
      [404, { error: "model 'x' not found, try pulling it first" }, "InvalidRequest"],
      [408, "", "Timeout"],
      [413, error("Payload too large"), "ContextOverflow"],
      [
        422,
        { detail: [{ type: "missing", loc: ["body", "model"], msg: "Field required", input: {} }] },
        "InvalidRequest"
      ],
      [429, error("Slow down", "rate_limit_exceeded", "requests"), "RateLimited"],
      [429, error("You exceeded your current quota", "insufficient_quota", "insufficient_quota"), "QuotaExhausted"],
      [429, error("Rate limit reached: maximum context length tokens per min (TPM)"), "RateLimited"],
      [500, error("Oops", undefined, "server_error"), "Overloaded"],
      [500, { object: "error", message: "boom", code: 500 }, "Overloaded"],
      [502, "<html>Bad gateway</html>", "Overloaded"],
      [503, error("Overloaded"), "Overloaded"],
      [504, "", "Timeout"],
      [529, { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }, "Overloaded"]
    ]
    for (const [status, body, reason] of cases) {
      it.live(`${status} ${JSON.stringify(body).slice(0, 60)}`, () =>
        Effect.gen(function* () {
          const server = yield* Server.make
          server.reply(Server.plain(status, body, { "x-request-id": "req_1" }))
          const { error: failure } = yield* ask(model(server), hello)
          assert.strictEqual(failure!.reason._tag, reason)
          assert.strictEqual(failure!.status, status)
          assert.strictEqual(failure!.requestId, "req_1")
          // The SDK would have tried again.
          assert.strictEqual(server.seen.length, 1)
        })
      )
    }

    it.live("the provider's words are in the error", () =>
      Effect.gen(function* () {
        const server = yield* Server.make
        server.reply(
          Server.plain(422, { detail: [{ loc: ["body", "model"], msg: "Field required", input: { a: 1 } }] }),
          Server.plain(400, { object: "error", message: "boom", code: 400 })
        )
        const first = yield* ask(model(server), hello)
        assert.include(first.error!.message, "body.model: Field required")
        const second = yield* ask(model(server), hello)
        assert.include(second.error!.message, "boom")
      })
    )

    it.live("retry-after in its three forms", () =>
      Effect.gen(function* () {
        const server = yield* Server.make
        const forms = [
          [{ "retry-after": "7" }, 7000],
          [{ "retry-after": "7", "retry-after-ms": "250" }, 250],
          [{ date: "Wed, 21 Oct 2026 07:28:00 GMT", "retry-after": "Wed, 21 Oct 2026 07:28:30 GMT" }, 30_000]
        ] as const
        for (const [headers, millis] of forms) {
          server.reply(Server.plain(429, error("Slow down"), headers))
          const { error: failure } = yield* ask(model(server), hello)
          assert.strictEqual(Duration.toMillis(failure!.retryAfter!), millis)
        }
      })
    )

    const overflows: ReadonlyArray<readonly [string, number?, number?]> = [
      [
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
        8192,
        9001
      ],
      ["Your input exceeds the context window of this model. Please adjust your input and try again."],
      ["the request exceeds the available context size (4096 tokens), try increasing it", 4096],
      [
        "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens",
        131072,
        140000
      ],
      ["This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 131072, 537812],
      ["Trying to keep the first 5000 tokens when context the overflows. greater than the context length"],
      ["Please reduce the length of the messages or completion."],
      ["The input (9000 tokens) is longer than the model's context length (8192 tokens).", 8192, 9000],
      ["Input length (265330) exceeds model's maximum context length (262144).", 262144]
    ]
    for (const [said, limit, used] of overflows) {
      it.live(`overflow: ${said.slice(0, 50)}`, () =>
        Effect.gen(function* () {
          const server = yield* Server.make
          server.reply(Server.plain(400, error(said)))
          const { error: failure } = yield* ask(model(server), hello)
          const { reason } = failure!
          assert.strictEqual(reason._tag, "ContextOverflow")
          if (reason._tag !== "ContextOverflow") return
          if (limit !== undefined) assert.strictEqual(reason.limit, limit)
          if (used !== undefined) assert.strictEqual(reason.used, used)
        })
      )
    }

    it.live("nobody there", () =>
      Effect.gen(function* () {
        const server = yield* Effect.scoped(Server.make)
        const { error: failure } = yield* ask(model(server), hello)
        assert.strictEqual(failure!.reason._tag, "Transport")
        assert.isTrue(failure!.isRefused, failure!.message)
      })
    )
  })

  describe(`${name}: interruption aborts the request (invariant 9)`, () => {
    const cases: ReadonlyArray<readonly [string, Server.Reply]> = [
      ["in the middle of a stream", Server.raw(begun, { ending: "hang" })],
      ["before the answer begins", Server.hang]
    ]
    for (const [what, reply] of cases) {
      it.live(what, () =>
        Effect.gen(function* () {
          const server = yield* Server.make
          server.reply(reply)
          const took = yield* leave(model(server), server, hello)
          assert.isBelow(took.interrupted, 10_000)
          assert.isBelow(took.closed, 20_000)
        })
      )
    }
  })
}

describe("a connection that is held or dropped behind the end marker does no harm", () => {
  const whole = {
    OpenAiChatModel: answer.map(json).join(""),
    OpenAiCompatibleChatModel: json(chunk({ content: "Hello there" }, "stop"))
  } as const
  for (const [name, model] of apis) {
    for (const ending of ["hang", "reset"] as const) {
      it.live(`${name}, ${ending}`, () =>
        Effect.gen(function* () {
          const server = yield* Server.make
          server.reply(Server.raw(whole[name as keyof typeof whole], { ending }))
          const { error, message: done } = yield* ask(model(server), hello)
          assert.isUndefined(error)
          assert.strictEqual(Message.text(done!), "Hello there")
        })
      )
    }
  }
})

describe("OpenAiChatModel: failures that the API tells in its events", () => {
  const failed = (code: string, message: string) =>
    Server.events(responseEvents([], { status: "failed", error: { code: code as "server_error", message } }))
  const cases: ReadonlyArray<readonly [string, Server.Reply, string]> = [
    ["a server error", failed("server_error", "Sorry"), "Overloaded"],
    ["a rate limit", failed("rate_limit_exceeded", "Slow down"), "RateLimited"],
    ["a policy", failed("bio_policy", "No"), "ContentFiltered"],
    ["an overflow", failed("context_length_exceeded", "Your input exceeds the context window"), "ContextOverflow"],
    ["an image", failed("invalid_image", "Not a picture"), "InvalidRequest"],
    [
      "a named error event",
      Server.events([{ type: "error", code: "server_error", message: "x" } as { type: string }]),
      "Overloaded"
    ],
    [
      "an error event without a name",
      Server.raw(json({ type: "error", code: "rate_limit_exceeded", message: "x" })),
      "RateLimited"
    ],
    ["no reason at all", Server.raw(json({ type: "response.failed", response: response({}) })), "BadResponse"]
  ]
  for (const [what, reply, reason] of cases) {
    it.live(what, () =>
      Effect.gen(function* () {
        const server = yield* Server.make
        server.reply(reply)
        const { error } = yield* ask(responses(server), hello)
        assert.strictEqual(error!.reason._tag, reason)
      })
    )
  }
})

it.live("a text of many megabytes in one piece leaves the process time for others", () =>
  Effect.gen(function* () {
    const server = yield* Server.make
    const text = 'a "word", and '.repeat(1_200_000)
    server.reply(Server.events(responseEvents([message(text)], {}, text.length)))
    let longest = 0
    let before = threadTime()
    const watch = setInterval(() => {
      longest = Math.max(longest, threadTime() - before)
      before = threadTime()
    }, 5)
    const { error, message: done } = yield* ask(responses(server), hello)
    clearInterval(watch)
    assert.isUndefined(error)
    assert.strictEqual(Message.text(done!).length, text.length)
    assert.isBelow(longest, 1_000)
  })
)

describe("OpenAiCompatibleChatModel: servers that break down politely", () => {
  it.live("a stream without a finish_reason is no answer, also behind [DONE], and the error says why", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(Server.chunks([chunk({ content: "All of it." })]))
      const { error, message: done } = yield* ask(compatible(server), hello)
      assert.isUndefined(done)
      assert.strictEqual(error!.reason._tag, "BadResponse")
      assert.match(error!.message, /before a finish_reason, so the answer may be cut off; a server must send one/)
    })
  )

  it.live("a finish_reason that is a breakdown is a failure", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(
        Server.raw(json({ choices: [{ delta: { content: "x" }, finish_reason: "insufficient_system_resource" }] }))
      )
      const { error } = yield* ask(compatible(server), hello)
      assert.strictEqual(error!.reason._tag, "Overloaded")
    })
  )
})
