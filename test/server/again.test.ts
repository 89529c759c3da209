/** Repeated requests, and changes of a thread by others: clients and readers learn of them at once. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Scope, Stream } from "effect"
import { Agent, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { Server } from "effect-deepagents/server"
import { MemorySessions } from "effect-deepagents/sessions"
import { Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import { ask, readFrames, serve } from "./door.ts"
import { foldFrames, showState } from "./reader.ts"

const model = TestChatModel.reactive(({ messages }) => {
  const last = messages.at(-1)
  if (last?.role === "tool") return "It is paid."
  return JSON.stringify(last?.content).includes("pay")
    ? TestChatModel.calls([{ name: "pay", arguments: {} }])
    : "Hello."
})

/** An agent whose tool waits for a gate. */
const agentOf = (gate: Effect.Effect<void>) =>
  Agent.make({
    name: "helper",
    prompt: "",
    tools: [Tool.make("pay", { description: "Pays", parameters: {}, execute: () => Effect.as(gate, "paid") })],
    middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
  })

const runsOf = (gate: Effect.Effect<void> = Effect.void) =>
  Server.layer({ helper: agentOf(gate) }).pipe(Layer.provide(model))

const services = Layer.mergeAll(MemorySessions.layer, Storage.layerMemory)

const start = (url: string, thread: string, input: string, id: string) =>
  ask(`${url}/threads/${encodeURIComponent(thread)}/runs`, { body: { agent: "helper", input, id } })

describe("a decision that is sent again while its run is at work", () => {
  it.live("is answered at once by every protocol, waits no longer, and counts once", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      let paid = 0
      const begun = yield* Deferred.make<void>()
      const pays = Effect.suspend(() => {
        paid++
        return Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(gate))
      })
      const url = yield* serve(runsOf(pays), { protocols: ["aiSdk", "agUi"] })
      yield* start(url, "t", "pay", "1")
      yield* readFrames(`${url}/threads/t/events`)
      const id = (yield* ask(`${url}/threads/t/state`)).at("pending", 0, "id")
      const decide = ask(`${url}/threads/t/decisions`, { body: { decisions: [{ _tag: "Approve", id }] } })
      const first = yield* decide
      yield* Deferred.await(begun)
      const chat = {
        id: "t",
        messages: [
          {
            id: "x",
            role: "assistant",
            parts: [{ type: "dynamic-tool", state: "approval-responded", approval: { id, approved: true } }]
          }
        ]
      }
      const again = yield* Effect.all([decide, ask(`${url}/api/chat`, { body: chat })], { concurrency: 2 }).pipe(
        Effect.timeout("30 seconds")
      )
      assert.deepStrictEqual([again[0].status, again[0].at("isNew")], [202, false])
      assert.strictEqual(again[0].at("position"), first.at("position"))
      assert.strictEqual(again[1].status, 409)
      const state = yield* ask(`${url}/threads/t/state`)
      assert.deepStrictEqual([state.at("state"), state.at("pending", "length")], ["working", 0])
      yield* Deferred.succeed(gate, undefined)
      const { frames } = yield* readFrames(`${url}/threads/t/events`)
      // The run is over: the decision has the same name still.
      const late = yield* decide
      assert.deepStrictEqual([late.at("runId"), late.at("isNew")], [first.at("runId"), false])
      assert.strictEqual(showState(foldFrames(frames)).end, "RunCompleted completed")
      assert.strictEqual(paid, 1)
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )
})

describe("a reader that follows an idle thread", () => {
  it.live("learns at once that it was rewound, and that it is gone", () =>
    Effect.gen(function* () {
      const url = yield* serve(runsOf())
      yield* start(url, "t", "one", "1")
      yield* readFrames(`${url}/threads/t/events`)
      yield* start(url, "t", "two", "2")
      const { frames } = yield* readFrames(`${url}/threads/t/events`)
      const at = `${url}/threads/t/events?follow=true`
      const since = (all: ReadonlyArray<Server.Frame>) => all.slice(all.findLastIndex(({ _tag }) => _tag === "Reset"))
      const isReset = (all: ReadonlyArray<Server.Frame>) =>
        since(all)[0]?._tag === "Reset" && showState(foldFrames(since(all))).messages.length === 2
      let reading = 0
      const isEnough = (all: ReadonlyArray<Server.Frame>) => {
        if (all.length === 1) reading++
        return isReset(all)
      }
      const readers = yield* Effect.forEach([frames.at(-1)?.position, undefined], (after) =>
        Effect.forkChild(readFrames(at, { after, isEnough }))
      )
      const history = yield* ask(`${url}/threads/t/history`)
      while (reading === 0) yield* Effect.sleep("10 millis")
      yield* Effect.sleep("50 millis")
      yield* ask(`${url}/threads/t/rewind`, { body: { entry: history.at("messages", 1, "entry") } })
      for (const reader of readers) {
        const seen = yield* Fiber.join(reader)
        assert.deepStrictEqual(
          showState(foldFrames(since(seen.frames))).messages.map(([role]) => role),
          ["human", "ai"]
        )
      }
      const before = reading
      const left = yield* Effect.forkChild(readFrames(at, { isEnough }))
      while (reading === before) yield* Effect.sleep("10 millis")
      yield* ask(`${url}/threads/t`, { method: "DELETE" })
      assert.isFalse((yield* Fiber.join(left)).isCut)
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )

  it.effect("does not keep its log: after a minute, only those at its end go on exactly", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(Layer.fresh(runsOf()), scope)
      yield* Effect.gen(function* () {
        const runs = yield* Server.Runs
        const tenant = yield* Server.tenant({ tenant: "acme", id: "ada", roles: [] })
        const thread = yield* tenant.thread("t")
        yield* runs.start(thread, { agent: "helper", input: "one", id: "1" })
        const frames = yield* Stream.runCollect(runs.observe(thread))
        const [middle, end] = [frames[3]?.position, frames.at(-1)?.position]
        const followed: Array<Server.Frame> = []
        yield* Effect.forkChild(
          Stream.runForEach(runs.observe(thread, { after: end, follow: true }), (frame) =>
            Effect.sync(() => followed.push(frame))
          ),
          { startImmediately: true }
        )
        const from = (after: Server.Position | undefined) => Stream.runCollect(runs.observe(thread, { after }))
        yield* TestClock.adjust("50 seconds")
        assert.deepStrictEqual(yield* from(middle), frames.slice(4))
        yield* TestClock.adjust("11 seconds")
        assert.strictEqual((yield* from(middle))[0]?._tag, "Reset")
        assert.deepStrictEqual(yield* from(end), [])
        // The remaining reader gets the next run, without a reset.
        yield* runs.start(thread, { agent: "helper", input: "two", id: "2" })
        const next = yield* from(end)
        yield* Effect.yieldNow
        assert.isTrue(next.every(({ _tag }) => _tag === "Event"))
        assert.deepStrictEqual(followed, next)
      }).pipe(Effect.provideContext(context))
      yield* Scope.close(scope, Exit.void)
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )
})

describe("the id of a thread", () => {
  it.live("has up to 255 characters of any kind on all routes", () =>
    Effect.gen(function* () {
      const url = yield* serve(runsOf())
      const ids = ["a", "a".repeat(100), "a".repeat(101), "é/%?#&ü€".repeat(31), `${"a".repeat(254)}b`, "/".repeat(255)]
      for (const [index, id] of ids.entries()) {
        const path = `${url}/threads/${encodeURIComponent(id)}`
        assert.strictEqual((yield* start(url, id, `Input ${index}`, "1")).status, 202, id)
        yield* readFrames(`${path}/events`)
        assert.strictEqual((yield* ask(path)).at("id"), id)
        assert.strictEqual((yield* ask(`${path}/history`)).at("messages", "length"), 2)
      }
      assert.deepStrictEqual((yield* ask(`${url}/threads`)).at("threads", "length"), ids.length)
      const tooLong = yield* ask(`${url}/threads/${"a".repeat(256)}`)
      assert.deepStrictEqual([tooLong.status, tooLong.at("code")], [400, "InvalidId"])
      for (const id of ids) {
        assert.strictEqual(
          (yield* ask(`${url}/threads/${encodeURIComponent(id)}`, { token: "token-of-eve" })).status,
          404
        )
        assert.strictEqual((yield* ask(`${url}/threads/${encodeURIComponent(id)}`, { method: "DELETE" })).status, 204)
      }
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )
})
