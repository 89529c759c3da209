import { expect, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Fiber, Redacted, Stream } from "effect"
import { ChatModel, Content, Message } from "effect-deepagents"
import * as BedrockChatModel from "effect-deepagents/models/BedrockChatModel"
import fc from "fast-check"
import { describe } from "vitest"
import { scaled } from "../../scale.ts"
import { askToEnd, failure, message, request, tool, turn } from "../anthropic/asking.ts"
import { answer, type Server } from "../servers/anthropic.ts"
import {
  awsError,
  eventFrame,
  exceptionFrame,
  failures,
  frame,
  framed,
  frames,
  serveBedrock
} from "../servers/bedrock.ts"

const secret = "bedrock-canary-0123456789"

const bedrock = (server: Server, options?: Partial<BedrockChatModel.Options>) =>
  BedrockChatModel.layer({
    model: "eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
    bearerToken: Redacted.make(secret),
    baseURL: server.url,
    ...options
  })

const events = answer([
  { thinking: "hm 🤔", signature: "sig" },
  { text: ["Grüße ", "日本"] },
  { call: "search", id: "toolu_bdrk_1", input: { of: "é" } }
])

const asked = request({ tools: [tool("search")] })

const messageOf = (parts: ReadonlyArray<ChatModel.TurnPart>) => ({ ...message(parts), id: "" })

describe("AWS's event stream", () => {
  it.live("is the answer that the same events are on Anthropic's own API", () =>
    Effect.gen(function* () {
      const server = yield* serveBedrock(framed(events))
      const parts = yield* turn(bedrock(server), asked)
      expect(messageOf(parts)).toMatchObject({
        content: [
          { type: "reasoning", text: "hm 🤔", providerData: { anthropic: { signature: "sig" } } },
          { type: "text", text: "Grüße 日本" }
        ],
        toolCalls: [{ id: "toolu_bdrk_1", name: "search", arguments: { of: "é" } }],
        stopReason: "toolCalls"
      })
    })
  )

  it.live("split at every byte, and at random ones, reads the same", () =>
    Effect.gen(function* () {
      const every = (length: number) => Array.from({ length }, (_, index) => index)
      const random = fc.sample(fc.array(fc.nat(3_000), { maxLength: 30 }), { numRuns: scaled(10), seed: 3 })
      const server = yield* serveBedrock(
        framed(events),
        framed(answer([{ text: "é" }]), { cuts: every }),
        ...random.map((places) => framed(events, { cuts: () => places }))
      )
      const layer = bedrock(server)
      const expected = messageOf(yield* turn(layer, asked))
      expect(Message.text(yield* askToEnd(layer, asked))).toBe("é")
      for (const _ of random) expect(messageOf(yield* turn(layer, asked))).toEqual(expected)
    })
  )

  it.live("with a wrong checksum, of the prelude or of the message, is BadResponse", () =>
    Effect.gen(function* () {
      const good = events.filter(({ type }) => type !== "ping").map(eventFrame)
      const broken = (at: number) => {
        const bytes = Buffer.concat(good)
        bytes[at] = bytes[at]! ^ 1
        return frames([bytes])
      }
      const first = good[0]!.length
      const server = yield* serveBedrock(broken(9), broken(first - 30), broken(first - 2))
      const layer = bedrock(server)
      for (let count = 0; count < 3; count++) {
        expect([count, (yield* failure(layer, asked)).reason._tag]).toEqual([count, "BadResponse"])
      }
    })
  )

  it.live("cut between frames, in one, or by a reset, is never a success", () =>
    Effect.gen(function* () {
      const all = events.filter(({ type }) => type !== "ping").map(eventFrame)
      const bytes = Buffer.concat(all)
      const server = yield* serveBedrock(
        frames(all.slice(0, -1)),
        frames([bytes.subarray(0, bytes.length - 20)]),
        frames([bytes.subarray(0, 40)]),
        frames(all.slice(0, 3), { end: "reset" })
      )
      const layer = bedrock(server)
      const tags: Array<string> = []
      for (let count = 0; count < 4; count++) tags.push((yield* failure(layer, asked)).reason._tag)
      expect(tags).toEqual(["BadResponse", "BadResponse", "BadResponse", "Transport"])
    })
  )

  it.live("with frames that are no events of the model goes on without them", () =>
    Effect.gen(function* () {
      const [first, ...rest] = events.filter(({ type }) => type !== "ping").map(eventFrame)
      const odd = frame({ ":event-type": "initial-response", ":message-type": "event" }, "{}")
      const server = yield* serveBedrock(frames([first!, odd, eventFrame("{}"), ...rest]))
      expect((yield* askToEnd(bedrock(server), asked)).toolCalls).toHaveLength(1)
    })
  )

  it.live.each([
    ["throttlingException", "RateLimited"],
    ["internalServerException", "Overloaded"],
    ["modelStreamErrorException", "Overloaded"],
    ["serviceUnavailableException", "Overloaded"],
    ["modelTimeoutException", "Timeout"],
    ["validationException", "InvalidRequest"]
  ])("an exception after text: %s is %s", ([type = "", reason]) =>
    Effect.gen(function* () {
      const some = answer([{ text: "partial" }])
        .slice(0, 4)
        .map(eventFrame)
      const server = yield* serveBedrock(frames([...some, exceptionFrame(type, "sorry")]))
      const failed = yield* failure(bedrock(server))
      expect([failed.reason._tag, failed.detail, failed.provider, failed.requestId]).toEqual([
        reason,
        "sorry",
        "bedrock",
        "aws-stream"
      ])
    })
  )

  it.live("an error frame, and an error of the model's inside one, are errors", () =>
    Effect.gen(function* () {
      const server = yield* serveBedrock(
        frames([frame({ ":message-type": "error", ":error-code": "InternalFailure", ":error-message": "oops" }, "")]),
        frames([eventFrame({ type: "error", error: { type: "overloaded_error", message: "busy" } })])
      )
      const layer = bedrock(server)
      expect((yield* failure(layer)).detail).toContain("oops")
      expect((yield* failure(layer)).reason._tag).toBe("Overloaded")
    })
  )

  it.live("a guardrail that stepped in is a content filter", () =>
    Effect.gen(function* () {
      const stopped = events.map((event) =>
        event.type === "message_stop" ? { ...event, "amazon-bedrock-guardrailAction": "INTERVENED" } : event
      )
      const server = yield* serveBedrock(framed(stopped))
      expect((yield* askToEnd(bedrock(server), asked)).stopReason).toBe("contentFilter")
    })
  )
})

describe("an HTTP failure of Bedrock", () => {
  it.live.each(failures)("%d %s: %s", ([status, type, text, reason]) =>
    Effect.gen(function* () {
      const server = yield* serveBedrock(awsError(status, type, `${text} ${secret}`, { "retry-after": "3" }))
      const failed = yield* failure(bedrock(server))
      expect([failed.reason._tag, failed.status, failed.requestId]).toEqual([reason, status, "aws-json"])
      expect(failed.detail).toContain(text)
      expect(JSON.stringify(failed)).not.toContain(secret)
      if (reason === "RateLimited") expect(Duration.toMillis(failed.retryAfter ?? 0)).toBe(3_000)
      expect(server.requests).toHaveLength(1)
    })
  )
})

it.live("interruption reaches Bedrock in the middle of an answer", () =>
  Effect.gen(function* () {
    const server = yield* serveBedrock(framed(events.slice(0, 5), { end: "hold" }))
    const begun = yield* Deferred.make<void>()
    const session = yield* Effect.provide(Effect.flatMap(ChatModel.ChatModel, ChatModel.open), bedrock(server))
    const fiber = yield* Effect.forkChild(
      Stream.runForEach(session.nextTurn(asked), () => Deferred.succeed(begun, undefined))
    )
    yield* Deferred.await(begun)
    yield* Fiber.interrupt(fiber)
    expect(yield* Effect.promise(() => server.requests[0]!.closed)).toBeLessThan(20_000)
  })
)

it.live("what Bedrock would have to fetch is a note, sampling parameters need no other version", () =>
  Effect.gen(function* () {
    const server = yield* serveBedrock(framed(events))
    const messages = [Message.human([Content.image({ url: "https://example.com/a.png" })])]
    yield* turn(bedrock(server, { temperature: 0.2 }), request({ messages }))
    const [sent] = server.requests
    expect(sent?.body.messages[0].content[0]).toMatchObject({ type: "text" })
    expect(sent?.body).toMatchObject({ temperature: 0.2, anthropic_version: "bedrock-2023-05-31" })
    expect(sent?.headers["anthropic-version"]).toBeUndefined()
  })
)
