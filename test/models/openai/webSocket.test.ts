/** Turns of the Responses API over a WebSocket: what is sent, and every way back to the whole history and to HTTP. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted, Schedule, Schema, Stream } from "effect"
import { Agent, AgentEvent, ChatModel, Message, type ModelError, Tool } from "effect-deepagents"
import * as ModelRetry from "effect-deepagents/middleware/ModelRetry"
import * as OpenAiChatModel from "effect-deepagents/models/OpenAiChatModel"
import { TestClock } from "effect/testing"
import * as Sockets from "../servers/socket.ts"
import { askAll, key, request } from "./asking.ts"
import { functionCall, message, response, responseEvents } from "./wire.ts"

const apiKey = Redacted.make(key)

const layerOf = (server: Sockets.SocketServer, options: Partial<OpenAiChatModel.Options> = {}) =>
  OpenAiChatModel.layer({ model: "gpt-5", baseURL: `${server.url}/v1`, apiKey, webSocket: true, ...options })

const say = (text: string, id: string): Sockets.Reply => ({ events: responseEvents([message(text)], { id }) })
const call = (callId: string, id: string): Sockets.Reply => ({
  events: responseEvents([functionCall(callId, "look", JSON.stringify({ at: id }))], { id })
})

const failure = (code: string, status = 400): Sockets.Reply => ({
  events: [{ type: "error", status, error: { type: "invalid_request_error", code, message: `no: ${code}` } }]
})

const seenOf = ({ seen }: Sockets.SocketServer) =>
  seen.map(({ body, connection }) => [connection, body.previous_response_id, body.input.length])

const begin = Message.human("Begin.")

/** Asks one turn, and one behind its answer. `between` happens between both. */
const askTwice = <E, R>(
  between: (session: ChatModel.ModelSession) => Effect.Effect<unknown, E, R>,
  layer: Layer.Layer<ChatModel.ChatModel, ModelError.ModelError>
) =>
  Effect.gen(function* () {
    const session = yield* ChatModel.open(yield* ChatModel.ChatModel)
    const last = (yield* Stream.runCollect(session.nextTurn(request([begin])))).at(-1)
    const said = last?._tag === "TurnDone" ? last.message : assert.fail("no turn")
    yield* between(session)
    yield* Stream.runDrain(session.nextTurn(request([begin, said, Message.human("On.")])))
  }).pipe(Effect.scoped, Effect.provide(layer))

/** Asks turn after turn: each answer, and a word behind it, are in the next request. */
const converse = (server: Sockets.SocketServer, turns: number, options?: Partial<OpenAiChatModel.Options>) =>
  Effect.gen(function* () {
    const session = yield* ChatModel.open(yield* ChatModel.ChatModel)
    const messages: Array<Message.Message> = [Message.human("Begin.")]
    for (let turn = 0; turn < turns; turn++) {
      const parts = yield* Stream.runCollect(session.nextTurn(request(messages, { systemPrompt: "S" })))
      const last = parts.at(-1)
      messages.push(last?._tag === "TurnDone" ? last.message : assert.fail("no turn"), Message.human("On."))
    }
    return messages.flatMap((one) => (one.role === "ai" ? [Message.text(one)] : []))
  }).pipe(Effect.scoped, Effect.provide(layerOf(server, options)))

const tools = [Tool.make("look", { description: "Looks", parameters: { at: Schema.String }, execute: () => "seen" })]
const agent = Agent.make({ name: "looker", prompt: "You look.", tools })

describe("turns over a WebSocket", () => {
  it.live("share one connection, send the new messages, and the transcript stays whole", () =>
    Effect.gen(function* () {
      const server = yield* Sockets.make
      server.reply(call("c1", "resp_1"), call("c2", "resp_2"), say("Done.", "resp_3"))
      const result = yield* Agent.run(agent, "Look twice.").pipe(Effect.provide(layerOf(server)))
      assert.strictEqual(result.text, "Done.")
      assert.strictEqual(result.messages.length, 6)
      assert.deepStrictEqual([result.usage.inputTokens, result.usage.cacheReadTokens], [300, 180])
      assert.deepStrictEqual(seenOf(server), [
        [0, undefined, 1],
        [0, "resp_1", 1],
        [0, "resp_2", 1]
      ])
      const [first, second] = server.seen.map(({ body }) => body)
      assert.deepStrictEqual(second.input, [{ type: "function_call_output", call_id: "c1", output: "seen" }])
      for (const { body } of server.seen) {
        assert.deepStrictEqual([body.type, body.store, body.instructions], ["response.create", false, "You look."])
        assert.doesNotHaveAnyKeys(body, ["stream", "stream_options", "background", "generate"])
      }
      assert.deepStrictEqual(first.include, ["reasoning.encrypted_content"])
      const [{ headers, path } = assert.fail("no upgrade")] = server.upgrades
      assert.deepStrictEqual([path, headers.authorization], ["/v1/responses", `Bearer ${key}`])
      while (server.open() > 0) yield* Effect.sleep("5 millis")
    })
  )

  it.live("send all messages on a new connection, after a cut and at the end of its hour", () =>
    Effect.gen(function* () {
      const server = yield* Sockets.make
      server.reply(
        say("1", "resp_1"),
        { events: [], end: "cut" },
        say("2", "resp_2"),
        { events: [], end: "close" },
        say("3", "resp_3"),
        failure("websocket_connection_limit_reached"),
        say("4", "resp_4")
      )
      assert.deepStrictEqual(yield* converse(server, 4), ["1", "2", "3", "4"])
      assert.deepStrictEqual(seenOf(server), [
        [0, undefined, 1],
        [0, "resp_1", 1],
        [1, undefined, 3],
        [1, "resp_2", 1],
        [2, undefined, 5],
        [2, "resp_3", 1],
        [3, undefined, 7]
      ])
    })
  )

  it.effect("replace a connection before OpenAI ends it, between two turns", () =>
    Effect.gen(function* () {
      const server = yield* Sockets.make
      server.reply(say("1", "resp_1"), say("2", "resp_2"))
      yield* askTwice(() => TestClock.adjust("56 minutes"), layerOf(server))
      assert.deepStrictEqual(
        seenOf(server).map(([connection]) => connection),
        [0, 1]
      )
    }).pipe(Effect.scoped)
  )

  it.live("send all messages if the server lost the response, on the same connection", () =>
    Effect.gen(function* () {
      const server = yield* Sockets.make
      server.reply(say("1", "resp_1"), failure("previous_response_not_found"), say("2", "resp_2"), say("3", "resp_3"))
      assert.deepStrictEqual(yield* converse(server, 3), ["1", "2", "3"])
      assert.deepStrictEqual(seenOf(server), [
        [0, undefined, 1],
        [0, "resp_1", 1],
        [0, undefined, 3],
        [0, "resp_2", 1]
      ])
    })
  )

  it.live("go over HTTP for the rest of the run if the server takes none, with a warning", () =>
    Effect.gen(function* () {
      const server = yield* Sockets.make
      server.isUpgraded = false
      server.reply(call("c1", "resp_1"), call("c2", "resp_2"), say("Done.", "resp_3"))
      const events = yield* Stream.runCollect(Agent.stream(agent, "Look twice.")).pipe(Effect.provide(layerOf(server)))
      assert.strictEqual(events.at(-1)?._tag, "RunCompleted")
      assert.deepStrictEqual(seenOf(server), [
        [-1, undefined, 1],
        [-1, undefined, 3],
        [-1, undefined, 5]
      ])
      assert.strictEqual(server.upgrades.length, 1)
      const codes = events.flatMap((event) => (event._tag === "Warning" ? [event.code] : []))
      assert.deepStrictEqual(codes, ["websocket"])
    })
  )

  it.live("that are cut in the middle fail as a broken connection, and a retry sends all of it", () =>
    Effect.gen(function* () {
      const server = yield* Sockets.make
      const whole = responseEvents([message("A long answer.")], { id: "resp_2" })
      const half = { events: whole.slice(0, 6), end: "cut" } as const
      server.reply(call("c1", "resp_1"), half, { events: whole })
      const middleware = [ModelRetry.make({ schedule: Schedule.recurs(1) })]
      const retrying = Agent.make({ name: "looker", prompt: "You look.", tools, middleware })
      const events = yield* Stream.runCollect(Agent.stream(retrying, "Look.")).pipe(Effect.provide(layerOf(server)))
      assert.isTrue(events.some(({ _tag }) => _tag === "TurnRestarted"))
      assert.strictEqual(Message.text(AgentEvent.transcript(events).at(-1)!), "A long answer.")
      assert.deepStrictEqual(seenOf(server), [
        [0, undefined, 1],
        [0, "resp_1", 1],
        [1, undefined, 3]
      ])
      server.reply(half)
      const [outcome] = yield* askAll(layerOf(server), [request([Message.human("Look.")])])
      assert.strictEqual(outcome?.error?.reason._tag, "Transport")
    })
  )

  it.live.each<readonly [string, Sockets.Reply, string]>([
    ["a refusal", failure("invalid_prompt"), "InvalidRequest"],
    ["a limit of rate", failure("rate_limit_exceeded", 429), "RateLimited"],
    ["a flat error", { events: [{ type: "error", code: "server_error", message: "oh", param: null }] }, "Overloaded"],
    [
      "a failed response",
      {
        events: [
          {
            type: "response.failed",
            response: response({ status: "failed", error: { code: "server_error", message: "oh" } })
          }
        ]
      },
      "Overloaded"
    ],
    ["no JSON", { events: ["<html>"] }, "BadResponse"],
    ["JSON too deep", { events: [`{"type":"x","y":${"[".repeat(3_000)}${"]".repeat(3_000)}}`] }, "BadResponse"]
  ])("fail by type with %s, and the next turn is sent whole", ([, reply, reason]) =>
    Effect.gen(function* () {
      const server = yield* Sockets.make
      server.reply(reply, say("ok", "resp_2"))
      const hello = request([Message.human("Look.")])
      const [failed, next] = yield* askAll(layerOf(server), [hello, hello])
      assert.strictEqual(failed?.error?.reason._tag, reason)
      assert.notInclude(JSON.stringify(failed?.error), key)
      assert.strictEqual(Message.text(next?.message ?? assert.fail("no turn")), "ok")
      assert.deepStrictEqual(
        seenOf(server).map(([, id, length]) => [id, length]),
        [
          [undefined, 1],
          [undefined, 1]
        ]
      )
    })
  )

  it.live("that are left end with their connection, and the next one opens another", () =>
    Effect.gen(function* () {
      const server = yield* Sockets.make
      server.reply({ events: responseEvents([message("A long answer.")]).slice(0, 6) }, say("ok", "resp_2"))
      const hello = request([Message.human("Look.")])
      yield* Effect.gen(function* () {
        const session = yield* ChatModel.open(yield* ChatModel.ChatModel)
        const left = yield* Effect.forkChild(Stream.runDrain(session.nextTurn(hello)))
        while (server.seen.length === 0) yield* Effect.sleep("5 millis")
        yield* Fiber.interrupt(left)
        while (server.open() > 0) yield* Effect.sleep("5 millis")
        const parts = yield* Stream.runCollect(session.nextTurn(hello))
        assert.strictEqual(parts.at(-1)?._tag, "TurnDone")
      }).pipe(Effect.scoped, Effect.provide(layerOf(server)))
      assert.deepStrictEqual(
        seenOf(server).map(([connection]) => connection),
        [0, 1]
      )
    })
  )

  it.live("leave requests of middleware to HTTP, and ignore events between turns", () =>
    Effect.gen(function* () {
      const server = yield* Sockets.make
      server.reply(say("1", "resp_1"), say("sum", "resp_s"), say("2", "resp_2"))
      yield* askTwice(
        (session) =>
          Effect.gen(function* () {
            yield* Stream.runDrain(session.nextTurn(request([Message.human("Sum.")], { purpose: "summary" })))
            server.tell({ type: "error", error: { code: "late", message: "nobody asked" } })
            yield* Effect.sleep("20 millis")
          }),
        layerOf(server)
      )
      assert.deepStrictEqual(seenOf(server), [
        [0, undefined, 1],
        [-1, undefined, 1],
        [0, "resp_1", 1]
      ])
    })
  )

  it.live("go on from a stored response on a new connection, with previousResponse", () =>
    Effect.gen(function* () {
      const server = yield* Sockets.make
      server.reply({ ...say("1", "resp_1"), end: "close" }, say("2", "resp_2"))
      const closed = Effect.gen(function* () {
        while (server.open() > 0) yield* Effect.sleep("5 millis")
      })
      yield* askTwice(() => closed, layerOf(server, { previousResponse: true }))
      assert.deepStrictEqual(seenOf(server), [
        [0, undefined, 1],
        [1, "resp_1", 1]
      ])
    })
  )

  it.live("give Azure its key as a token, at the path of its v1 API", () =>
    Effect.gen(function* () {
      const server = yield* Sockets.make
      server.reply(say("ok", "resp_1"))
      const azure = { endpoint: server.url, deployment: "my-gpt" }
      yield* askAll(OpenAiChatModel.layer({ model: "gpt-5", azure, apiKey, webSocket: true }), [
        request([Message.human("Hi.")])
      ])
      const [{ headers, path } = assert.fail("no upgrade")] = server.upgrades
      assert.deepStrictEqual([path, headers.authorization], ["/openai/v1/responses", `Bearer ${key}`])
      assert.isUndefined(headers["api-key"])
      assert.strictEqual(server.seen[0]?.body.model, "my-gpt")
    })
  )

  it.live.each<readonly [string, Partial<OpenAiChatModel.Options>]>([
    ["background", { background: true }],
    ["fetch", { fetch: globalThis.fetch }],
    ["azure.apiVersion", { azure: { endpoint: "https://a.example", apiVersion: "2025-04-01-preview" } }]
  ])("are refused with %s", ([name, options]) =>
    Effect.gen(function* () {
      const layer = OpenAiChatModel.layer({ model: "gpt-5", apiKey, webSocket: true, ...options })
      const error = yield* Effect.flip(Effect.scoped(Layer.build(layer)))
      assert.include(error.message, `webSocket does not go with ${name}`)
    })
  )
})
