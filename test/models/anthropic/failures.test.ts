import { inspect } from "node:util"
import { expect, it } from "@effect/vitest"
import { Cause, Deferred, Duration, Effect, Exit, Fiber, Logger, Redacted, References, Stream } from "effect"
import { ChatModel, Content, Message, type ModelError } from "effect-deepagents"
import { afterEach, describe, vi } from "vitest"
import { answer, error, hangup, json, say, serve, silence, stream, toSse } from "../servers/anthropic.ts"
import { claude, askToEnd, failure, key, request, tool, turn } from "./asking.ts"

const retryAfter = (of: ModelError.ModelError): number | undefined =>
  of.retryAfter === undefined ? undefined : Duration.toMillis(of.retryAfter)

describe("an HTTP failure is a reason", () => {
  it.live.each<[number, string, string, ModelError.Reason["_tag"], boolean]>([
    [400, "invalid_request_error", "max_tokens: too large", "InvalidRequest", false],
    [401, "authentication_error", "invalid x-api-key", "Authentication", false],
    [402, "billing_error", "pay", "QuotaExhausted", false],
    [403, "permission_error", "not yours", "Permission", false],
    [404, "not_found_error", "model: claude-nope", "InvalidRequest", false],
    [413, "request_too_large", "Request exceeds the maximum size", "ContextOverflow", false],
    [429, "rate_limit_error", "slow down", "RateLimited", true],
    [500, "api_error", "Internal server error", "Overloaded", true],
    [503, "api_error", "unavailable", "Overloaded", true],
    [504, "timeout_error", "took too long", "Timeout", true],
    [529, "overloaded_error", "Overloaded", "Overloaded", true]
  ])("%d %s", ([status, type, message, tag, isRetryable]) =>
    Effect.gen(function* () {
      const server = yield* serve(error(status, type, message))
      const failed = yield* failure(claude(server))
      expect([failed.reason._tag, failed.status, failed.isRetryable, failed.provider, failed.model]).toEqual([
        tag,
        status,
        isRetryable,
        "anthropic",
        "claude-opus-5-5"
      ])
      expect([failed.requestId, failed.detail]).toEqual(["req_json", expect.stringContaining(message)])
      expect(server.requests).toHaveLength(1)
    })
  )

  it.live("the time to wait is read from either header", () =>
    Effect.gen(function* () {
      const server = yield* serve(
        error(429, "rate_limit_error", "slow", { headers: { "retry-after": "7" } }),
        error(429, "rate_limit_error", "slow", { headers: { "retry-after": "7", "retry-after-ms": "250" } }),
        error(529, "overloaded_error", "busy", { headers: { "retry-after": "2" } })
      )
      const layer = claude(server)
      expect(retryAfter(yield* failure(layer))).toBe(7_000)
      expect(retryAfter(yield* failure(layer))).toBe(250)
      expect(retryAfter(yield* failure(layer))).toBe(2_000)
    })
  )

  it.live("a history that does not fit says by how much", () =>
    Effect.gen(function* () {
      const server = yield* serve(
        error(400, "invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum"),
        error(
          400,
          "invalid_request_error",
          "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease input length"
        )
      )
      const layer = claude(server)
      expect((yield* failure(layer)).reason).toEqual({ _tag: "ContextOverflow", used: 208_310, limit: 200_000 })
      expect((yield* failure(layer)).reason).toEqual({ _tag: "ContextOverflow", used: 222_000, limit: 200_000 })
    })
  )

  it.live("a request that a gateway finds too large does not fit either", () =>
    Effect.gen(function* () {
      const server = yield* serve(json(413, "<html>Request Entity Too Large</html>", { "content-type": "text/html" }))
      expect((yield* failure(claude(server))).reason._tag).toBe("ContextOverflow")
    })
  )

  it.live("an account without money is QuotaExhausted, with any status", () =>
    Effect.gen(function* () {
      const server = yield* serve(
        error(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
        error(400, "invalid_request_error", "limit", { code: "enforced_spend_limit_reached" })
      )
      const layer = claude(server)
      expect((yield* failure(layer)).reason._tag).toBe("QuotaExhausted")
      expect((yield* failure(layer)).reason._tag).toBe("QuotaExhausted")
    })
  )

  it.live("a page of a gateway is an error with its status and a short text", () =>
    Effect.gen(function* () {
      const server = yield* serve(json(502, `<html>${"x".repeat(5_000)}</html>`, { "content-type": "text/html" }))
      const failed = yield* failure(claude(server))
      expect([failed.reason._tag, failed.status]).toEqual(["Overloaded", 502])
      expect((failed.detail ?? "").length).toBeLessThan(700)
    })
  )
})

describe("a connection", () => {
  it.live("that breaks before the answer is Transport", () =>
    Effect.gen(function* () {
      const server = yield* serve(hangup)
      expect((yield* failure(claude(server))).reason._tag).toBe("Transport")
    })
  )

  it.live("that nobody accepts is Transport", () =>
    Effect.gen(function* () {
      const failed = yield* failure(claude({ url: "http://127.0.0.1:9", requests: [] }))
      expect([failed.reason._tag, failed.isRetryable]).toEqual(["Transport", true])
    })
  )

  it.live("on which no answer begins in time is Timeout", () =>
    Effect.gen(function* () {
      const server = yield* serve(silence)
      const failed = yield* failure(claude(server, { timeout: "50 millis" }))
      expect([failed.reason._tag, failed.isRetryable]).toEqual(["Timeout", true])
    })
  )
})

describe("interruption reaches the server", () => {
  const whole = toSse(answer([{ text: ["first", "second"] }]))
  const half = whole.slice(0, whole.indexOf('"second"') - 90)

  it.live("in the middle of an answer", () =>
    Effect.gen(function* () {
      const server = yield* serve(stream(half, { end: "hold" }))
      const begun = yield* Deferred.make<void>()
      const session = yield* Effect.provide(Effect.flatMap(ChatModel.ChatModel, ChatModel.open), claude(server))
      const fiber = yield* Effect.forkChild(
        Stream.runForEach(session.nextTurn(request()), () => Deferred.succeed(begun, undefined))
      )
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(fiber)
      expect(yield* Effect.promise(() => server.requests[0]!.closed)).toBeLessThan(20_000)
    })
  )

  it.live("before an answer", () =>
    Effect.gen(function* () {
      const server = yield* serve(silence)
      const fiber = yield* Effect.forkChild(turn(claude(server)))
      while (server.requests.length === 0) yield* Effect.sleep("5 millis")
      yield* Fiber.interrupt(fiber)
      expect(yield* Effect.promise(() => server.requests[0]!.closed)).toBeLessThan(20_000)
    })
  )

  it.live("when the stream is left early", () =>
    Effect.gen(function* () {
      const server = yield* serve(stream(half, { end: "hold" }))
      const session = yield* Effect.provide(Effect.flatMap(ChatModel.ChatModel, ChatModel.open), claude(server))
      yield* Stream.runHead(session.nextTurn(request()))
      expect(yield* Effect.promise(() => server.requests[0]!.closed)).toBeLessThan(20_000)
    })
  )

  it.live("and so does an answer that makes no sense", () =>
    Effect.gen(function* () {
      const server = yield* serve(stream('event: message_start\ndata: "odd"\n\n', { end: "hold" }))
      expect((yield* failure(claude(server))).reason._tag).toBe("BadResponse")
      expect(yield* Effect.promise(() => server.requests[0]!.closed)).toBeLessThan(20_000)
    })
  )
})

describe("no key and no conversation in errors and logs", () => {
  afterEach(() => {
    vi.restoreAllMocks()
    vi.unstubAllEnvs()
  })

  const canaries = {
    system: "CANARY-system-prompt",
    said: "CANARY-what-the-user-said",
    argument: "CANARY-argument-of-a-call",
    result: "CANARY-result-of-a-tool",
    image: "Q0FOQVJZLWltYWdl",
    header: "CANARY-header-secret"
  }
  const asked = request({
    systemPrompt: canaries.system,
    messages: [
      Message.human([Content.text(canaries.said), Content.image({ base64: canaries.image, mimeType: "image/png" })]),
      Message.ai("", { toolCalls: [{ id: "a", name: "search", arguments: { of: canaries.argument } }] }),
      Message.tool(canaries.result, { toolCallId: "a", toolName: "search" })
    ],
    tools: [tool("search")]
  })

  it.live("any text that a server quotes and the SDK would log", () =>
    Effect.gen(function* () {
      vi.stubEnv("ANTHROPIC_LOG", "debug")
      const printed: Array<unknown> = []
      for (const method of ["log", "info", "warn", "error", "debug"] as const) {
        vi.spyOn(console, method).mockImplementation((...args) => void printed.push(...args))
      }
      const quote = [key, ...Object.values(canaries)].join(" and ")
      const partial = [
        ...answer([{ text: "x" }]).slice(0, 3),
        { type: "error", error: { type: "api_error", message: quote } }
      ]
      const server = yield* serve(
        error(401, "authentication_error", `invalid key ${quote}`),
        error(400, "invalid_request_error", quote, { code: key }),
        json(500, quote, { "content-type": "text/plain" }),
        stream(partial),
        stream(`event: message_start\ndata: {${quote}\n\n`),
        hangup
      )
      const layer = claude(server, { headers: { "x-secret": Redacted.make(canaries.header) } })
      const logs: Array<unknown> = []
      for (let count = 0; count < 6; count++) {
        const exit = yield* Effect.exit(turn(layer, asked)).pipe(
          Effect.provide(Logger.layer([Logger.make((entry) => void logs.push(entry.message, entry.cause))])),
          Effect.provideService(References.MinimumLogLevel, "Trace")
        )
        if (Exit.isSuccess(exit)) throw new Error("it should have failed")
        const failed = Cause.squash(exit.cause)
        logs.push(Cause.pretty(exit.cause), inspect(failed, { depth: 20, showHidden: true }), JSON.stringify(failed))
      }
      expect(server.requests[0]?.headers["authorization"]).toBe(`Bearer ${key}`)
      expect(server.requests[0]?.headers["x-secret"]).toBe(canaries.header)
      const everything = inspect([printed, logs], { depth: 20, maxStringLength: null, maxArrayLength: null })
      for (const canary of [key, ...Object.values(canaries)]) {
        expect(server.requests[0]?.raw + JSON.stringify(server.requests[0]?.headers)).toContain(canary)
        expect(everything).not.toContain(canary)
      }
    })
  )

  it.live("the words of the protocol stay, since they help", () =>
    Effect.gen(function* () {
      const said = "messages.3: `tool_use` ids were found without `tool_result` blocks immediately after"
      const server = yield* serve(error(400, "invalid_request_error", said))
      expect((yield* failure(claude(server), asked)).detail).toBe(said)
    })
  )
})

describe("thinking of a conversation that reads differently now", () => {
  const moved = error(
    400,
    "invalid_request_error",
    "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. " +
      'Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
  )

  it.live("is dropped by the API: the request goes out once more and says so, and so do all after it", () =>
    Effect.gen(function* () {
      const server = yield* serve(moved, say("one"), say("two"))
      const session = yield* Effect.provide(Effect.flatMap(ChatModel.ChatModel, ChatModel.open), claude(server))
      yield* Stream.runDrain(session.nextTurn(request()))
      yield* Stream.runDrain(session.nextTurn(request()))
      const told = { type: "adaptive", block_binding: { prefix_mismatch_behavior: "drop_block" } }
      expect(server.requests.map(({ body }) => body.thinking)).toEqual([undefined, told, told])
      expect(server.requests.map(({ headers }) => headers["anthropic-beta"])).toEqual([
        undefined,
        "thinking-binding-controls-2026-08-01",
        "thinking-binding-controls-2026-08-01"
      ])
    })
  )

  it.live("that is refused again is an error", () =>
    Effect.gen(function* () {
      const server = yield* serve(moved)
      expect((yield* failure(claude(server))).reason._tag).toBe("InvalidRequest")
      expect(server.requests).toHaveLength(2)
    })
  )
})

it.live("no credentials at all is Authentication, and says so", () =>
  Effect.gen(function* () {
    vi.stubEnv("ANTHROPIC_API_KEY", undefined)
    vi.stubEnv("ANTHROPIC_AUTH_TOKEN", undefined)
    vi.stubEnv("HOME", "/nowhere")
    vi.stubEnv("ANTHROPIC_CONFIG_DIR", "/nowhere")
    const server = yield* serve(say("hi"))
    const AnthropicChatModel = yield* Effect.promise(() => import("effect-deepagents/models/AnthropicChatModel"))
    const failed = yield* failure(AnthropicChatModel.layer({ model: "claude-opus-5-5", baseURL: server.url }))
    expect([failed.reason._tag, failed.isRetryable]).toEqual(["Authentication", false])
    expect(failed.detail).toContain("apiKey")
    vi.unstubAllEnvs()
  })
)

it.live("a failed turn can be asked for again", () =>
  Effect.gen(function* () {
    const server = yield* serve(error(529, "overloaded_error", "busy"), say("back"))
    expect(Message.text(yield* Effect.retry(askToEnd(claude(server)), { times: 1 }))).toBe("back")
  })
)
