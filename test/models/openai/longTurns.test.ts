/** Turns of the Responses API that survive a cut and a crash, and requests that go on from the response before. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Stream } from "effect"
import { Agent, ChatModel, Message, Tool } from "effect-deepagents"
import { Summarization } from "effect-deepagents/middleware"
import * as ToolSelection from "effect-deepagents/middleware/ToolSelection"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { AgentTest } from "effect-deepagents/testing"
import * as Server from "../servers/openai.ts"
import { askAll, request, responses } from "./asking.ts"
import { functionCall, message, response, responseEvents } from "./wire.ts"

const whole = responseEvents([message("A long answer, in several parts.")])

/** The events up to a place, with the connection torn down behind them. */
const cutAt = (to: number) => Server.events(whole.slice(0, to), { ending: "reset" })

const hello = request([Message.human("Think for long.")])

describe("a turn in the background", () => {
  it.live("goes on behind its last event after each cut, and is asked for once", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      // An event that came before comes again.
      server.reply(
        cutAt(5),
        Server.plain(503, { error: { message: "busy" } }),
        Server.events(whole.slice(4, 7), { ending: "reset" }),
        Server.events(whole.slice(7))
      )
      const [outcome] = yield* askAll(responses(server, { background: true }), [hello])
      assert.isUndefined(outcome?.error)
      const text = outcome?.parts.map((part) => (part._tag === "TextDelta" ? part.text : "")).join("")
      assert.strictEqual(text, "A long answer, in several parts.")
      assert.strictEqual(Message.text(outcome?.message ?? assert.fail("no turn")), text)
      const [first, ...others] = server.seen
      assert.deepStrictEqual(
        [first?.method, first?.body.background, first?.body.store, first?.body.stream],
        ["POST", true, true, true]
      )
      assert.deepStrictEqual(
        others.map(({ method, path }) => [method, path]),
        [4, 4, 6].map((last) => ["GET", `/v1/responses/resp_1?stream=true&starting_after=${last}`])
      )
    })
  )

  it.live("fails at once if the server refuses", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(cutAt(3), Server.plain(404, { error: { message: "no such response" } }))
      const [outcome] = yield* askAll(responses(server, { background: true }), [hello])
      assert.isDefined(outcome?.error)
      assert.strictEqual(server.seen.length, 2)
      const refused = yield* Effect.flip(
        Effect.scoped(Layer.build(responses(server, { background: true, store: false })))
      )
      assert.include(refused.message, "store")
    })
  )

  it.live("a left turn is cancelled at the provider", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(Server.events(whole.slice(0, 5), { ending: "hang" }), Server.plain(200, {}))
      yield* Effect.gen(function* () {
        const session = yield* ChatModel.open(yield* ChatModel.ChatModel)
        yield* Stream.runHead(Stream.filter(session.nextTurn(hello), ({ _tag }) => _tag === "TextDelta"))
      }).pipe(Effect.scoped, Effect.provide(responses(server, { background: true })))
      while (server.seen.length < 2) yield* Effect.sleep("5 millis")
      assert.strictEqual(server.seen[1]?.path, "/v1/responses/resp_1/cancel")
    })
  )

  it.live("a run after a crash goes on with the turn that its thread began", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(
        Server.events(whole.slice(0, 5), { ending: "hang" }),
        Server.plain(200, response({ status: "in_progress" })),
        Server.events(whole)
      )
      const layer = responses(server, { background: true })
      const agent = Agent.make({ name: "a", prompt: "You think." })
      const fiber = yield* Effect.forkChild(Agent.run(agent, "Think.", { threadId: "t" }).pipe(Effect.provide(layer)))
      while (server.seen.length === 0) yield* Effect.sleep("5 millis")
      let checkpoint = yield* SessionStore.checkpoint("t")
      while (checkpoint?.state["turn-accepted"] === undefined) {
        yield* Effect.sleep("5 millis")
        checkpoint = yield* SessionStore.checkpoint("t")
      }
      const result = yield* Agent.resume(agent, { checkpoint }).pipe(Effect.provide(layer))
      assert.strictEqual(result.text, "A long answer, in several parts.")
      assert.strictEqual(result.state["turn-accepted"] ?? null, null)
      assert.deepStrictEqual(
        server.seen.slice(0, 3).map(({ method, path }) => [method, path]),
        [
          ["POST", "/v1/responses"],
          ["GET", "/v1/responses/resp_1"],
          ["GET", "/v1/responses/resp_1?stream=true"]
        ]
      )
      assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
      yield* Fiber.interrupt(fiber)
    }).pipe(Effect.provide(Layer.provideMerge(SessionStore.journal, MemorySessions.layer)))
  )

  it.live.each<readonly [string, Server.Reply]>([
    ["gone", Server.plain(404, { error: { message: "gone" } })],
    ["cancelled", Server.plain(200, response({ id: "resp_0", status: "cancelled" }))],
    ["failed", Server.plain(200, response({ id: "resp_0", status: "failed" }))]
  ])("a response that is %s is asked for anew", ([, reply]) =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(reply, Server.events(whole))
      const resume = { openai: { model: "gpt-5", id: "resp_0" } }
      const [outcome] = yield* askAll(responses(server, { background: true }), [{ ...hello, resume }])
      assert.isDefined(outcome?.message)
      assert.deepStrictEqual(
        server.seen.map(({ method }) => method),
        ["GET", "POST"]
      )
    })
  )

  it.live("a response that was over before the run is read, and not asked for again", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const output = [message("All of it."), functionCall("c1", "look", '{"at":1}')]
      server.reply(Server.plain(200, response({ id: "resp_0", output })))
      const resume = { openai: { model: "gpt-5", id: "resp_0" } }
      const [outcome] = yield* askAll(responses(server, { background: true }), [{ ...hello, resume }])
      assert.strictEqual(server.seen.length, 1)
      assert.strictEqual(outcome?.parts[0]?._tag, "TurnAccepted")
      assert.strictEqual(Message.text(outcome?.message ?? assert.fail("no turn")), "All of it.")
      assert.deepStrictEqual(
        outcome?.message?.toolCalls.map(({ arguments: args }) => args),
        [{ at: 1 }]
      )
    })
  )

  it.live("a response that is too old to be streamed is looked at until it is over", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const old = {
        error: { message: "This response can no longer be streamed because it is more than 5 minutes old" }
      }
      server.reply(
        cutAt(5),
        Server.plain(400, old),
        Server.plain(200, response({ status: "in_progress" })),
        Server.plain(503, { error: { message: "busy" } }),
        Server.plain(200, response({ output: [message("A long answer, in several parts.")] }))
      )
      const [outcome] = yield* askAll(responses(server, { background: true }), [hello])
      assert.isUndefined(outcome?.error)
      const text = outcome?.parts.map((part) => (part._tag === "TextDelta" ? part.text : "")).join("")
      assert.strictEqual(text, "A long answer, in several parts.")
      assert.strictEqual(Message.text(outcome?.message ?? assert.fail("no turn")), text)
      assert.deepStrictEqual(
        server.seen.map(({ method, path }) => [method, path.replace(/.*resp_1/, "")]),
        [
          ["POST", "/v1/responses"],
          ["GET", "?stream=true&starting_after=4"],
          ["GET", ""],
          ["GET", ""],
          ["GET", ""]
        ]
      )
    })
  )
})

describe("requests that go on from the response before", () => {
  const call = Server.events(responseEvents([functionCall("c1", "look", "{}")], { id: "resp_a" }))
  const say = (id: string) => Server.events(responseEvents([message("ok")], { id }))
  const look: ChatModel.ToolDefinition = {
    name: "look",
    description: "Looks",
    parameters: { type: "object" },
    annotations: {}
  }

  it.live("send the new messages, and the transcript stays whole", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(call, say("resp_b"), say("resp_c"))
      const first = [Message.human("Look.")]
      const layer = responses(server, { previousResponse: true })
      yield* Effect.gen(function* () {
        const session = yield* ChatModel.open(yield* ChatModel.ChatModel)
        const turn = Effect.fnUntraced(function* (messages: ReadonlyArray<Message.Message>) {
          const parts = yield* Stream.runCollect(
            session.nextTurn(request(messages, { tools: [look], systemPrompt: "S" }))
          )
          const last = parts.at(-1)
          return last?._tag === "TurnDone" ? last.message : assert.fail("no turn")
        })
        const one = yield* turn(first)
        const answered = [...first, one, Message.tool("seen", { toolCallId: "c1", toolName: "look" })]
        const two = yield* turn(answered)
        // A history that begins differently is sent whole.
        yield* turn([Message.human("Other."), ...answered.slice(1), two, Message.human("More.")])
      }).pipe(Effect.scoped, Effect.provide(layer))
      const bodies = server.seen.map(({ body }) => body)
      assert.deepStrictEqual(
        bodies.map(({ previous_response_id }) => previous_response_id),
        [undefined, "resp_a", undefined]
      )
      assert.deepStrictEqual(bodies[1].input, [{ type: "function_call_output", call_id: "c1", output: "seen" }])
      assert.deepStrictEqual([bodies[1].instructions, bodies[1].store, bodies[1].tools.length], ["S", true, 1])
      assert.strictEqual(bodies[2].input.length, 5)
    })
  )

  it.live("send all messages if the response is lost", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const lost = {
        error: { message: "not found", code: "previous_response_not_found", type: "invalid_request_error" }
      }
      server.reply(say("resp_a"), Server.plain(400, lost), say("resp_b"))
      const first = Message.human("One.")
      const handle = Effect.gen(function* () {
        const session = yield* ChatModel.open(yield* ChatModel.ChatModel)
        const parts = yield* Stream.runCollect(session.nextTurn(request([first])))
        const last = parts.at(-1)
        const said = last?._tag === "TurnDone" ? last.message : assert.fail("no turn")
        return yield* Stream.runCollect(session.nextTurn(request([first, said, Message.human("Two.")])))
      })
      const parts = yield* handle.pipe(Effect.scoped, Effect.provide(responses(server, { previousResponse: true })))
      assert.strictEqual(parts.at(-1)?._tag, "TurnDone")
      assert.deepStrictEqual(
        server.seen.map(({ body }) => body.input.length),
        [1, 1, 3]
      )
    })
  )
})

describe("a provider's own actions", () => {
  it.live("OpenAI compacts at the trigger, and Summarization writes no summary of its own", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(Server.events(responseEvents([message("ok")])))
      const agent = Agent.make({
        name: "a",
        prompt: "",
        middleware: [Summarization.make({ by: "provider", trigger: { tokens: 10 }, contextWindowTokens: 1_000 })]
      })
      const result = yield* Agent.run(agent, "word ".repeat(50)).pipe(
        Effect.provide(responses(server, { abilities: ["compaction"] }))
      )
      assert.strictEqual(result.text, "ok")
      assert.strictEqual(server.seen.length, 1)
      assert.deepStrictEqual(server.seen[0]?.body.context_management, [{ type: "compaction", compact_threshold: 10 }])
    })
  )

  it.live("the provider finds tools for ToolSelection, and a model without a search gets search_tools", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(Server.events(responseEvents([message("ok")])), Server.events(responseEvents([message("ok")])))
      const tools = ["a", "b"].map((name) => Tool.make(name, { description: "d", parameters: {}, execute: () => "" }))
      const agent = Agent.make({
        name: "a",
        prompt: "P",
        tools,
        middleware: [ToolSelection.make({ native: true, alwaysOffer: ["a"] })]
      })
      yield* Agent.run(agent, "Hi").pipe(Effect.provide(responses(server, { abilities: ["toolSearch"] })))
      yield* Agent.run(agent, "Hi").pipe(Effect.provide(responses(server)))
      const [native, own] = server.seen.map(({ body }) => body)
      const shape = (body: { readonly tools: ReadonlyArray<Record<string, unknown>> }) =>
        body.tools.map(({ defer_loading, name, type }) => [name ?? type, defer_loading === true])
      assert.deepStrictEqual(shape(native), [
        ["a", false],
        ["b", true],
        ["tool_search", false]
      ])
      assert.notInclude(native.instructions, "search_tools")
      assert.deepStrictEqual(shape(own), [
        ["a", false],
        ["search_tools", false]
      ])
    })
  )
})
