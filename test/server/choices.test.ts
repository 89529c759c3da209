/** What inputs choose for their threads: models, each made once, and levels of thinking. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Layer } from "effect"
import { Agent, ChatModel, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { Server } from "effect-deepagents/server"
import { MemorySessions } from "effect-deepagents/sessions"
import { Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { ask, serve } from "./door.ts"

const services = Layer.mergeAll(MemorySessions.layer, Storage.layerMemory)
const helper = Agent.make({ name: "helper", prompt: "You help." })

const start = (url: string, thread: string, more: object) =>
  ask(`${url}/threads/${thread}/runs`, { body: { agent: "helper", input: "Hello", ...more } })
const wait = (url: string, thread: string) => ask(`${url}/threads/${thread}/events`)

describe("a model that inputs choose", () => {
  it.live("is made once for runs that begin at once, and again after a failure, which keeps nothing open", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      let [made, open] = [0, 0]
      const careful = Layer.effect(
        ChatModel.ChatModel,
        Effect.gen(function* () {
          const isFirst = ++made === 1
          yield* Effect.acquireRelease(
            Effect.sync(() => ++open),
            () => Effect.sync(() => --open)
          )
          if (isFirst) return yield* Effect.fail("no key")
          yield* Deferred.await(gate)
          return yield* ChatModel.ChatModel
        })
      ).pipe(Layer.provide(TestChatModel.reactive(() => "Careful words.")))
      const runs = Server.layer({ helper }, { models: { careful } }).pipe(Layer.provide(TestChatModel.script([])))
      const url = yield* serve(runs)
      yield* start(url, "failed", { model: "careful" })
      assert.match((yield* wait(url, "failed")).text, /"_tag":"RunFailed"/u)
      assert.deepStrictEqual([made, open], [1, 0])
      const threads = ["a", "b", "c", "d", "e"]
      for (const thread of threads) assert.strictEqual((yield* start(url, thread, { model: "careful" })).status, 202)
      // All of them want it before it is there, and one leaves.
      yield* Effect.sleep("50 millis")
      assert.strictEqual((yield* ask(`${url}/threads/a/cancel`, { body: {} })).at("isCancelled"), true)
      yield* Deferred.succeed(gate, undefined)
      for (const thread of threads.slice(1)) assert.include((yield* wait(url, thread)).text, "Careful words.")
      assert.deepStrictEqual([made, open], [2, 1])
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )
})

describe("a level of thinking that inputs choose", () => {
  it.live("is that of the thread's turns, also behind a decision and a restart, until it is taken back", () =>
    Effect.gen(function* () {
      const asked: Array<unknown> = []
      const model = TestChatModel.reactive(({ messages, parameters }) => {
        asked.push(parameters["thinking"])
        return messages.at(-1)?.role === "human" ? TestChatModel.calls([{ name: "pay", arguments: {} }]) : "It is paid."
      })
      const pay = Tool.make("pay", { description: "Pays", parameters: {}, execute: () => Effect.succeed("paid") })
      const payer = Agent.make({
        name: "helper",
        prompt: "",
        parameters: { thinking: "low" },
        tools: [pay],
        middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
      })
      const runs = Server.layer({ helper: payer }, { thinking: ["off", "high"] }).pipe(Layer.provide(model))
      const pending = (url: string) =>
        Effect.map(ask(`${url}/threads/t/state`), (state) => ({
          decisions: [{ _tag: "Approve", id: state.at("pending", 0, "id") }]
        }))
      yield* Effect.scoped(
        Effect.gen(function* () {
          const url = yield* serve(runs)
          assert.deepStrictEqual((yield* ask(`${url}/agents`)).at("thinking"), ["off", "high"])
          for (const wrong of ["max", "hihg", "", "__proto__"]) {
            const refused = yield* start(url, "t", { thinking: wrong })
            assert.deepStrictEqual([refused.status, refused.at("code")], [400, "InvalidInput"], wrong)
          }
          yield* start(url, "t", { thinking: "high", id: "1" })
          yield* wait(url, "t")
          assert.strictEqual((yield* ask(`${url}/threads/t`)).at("thinking"), "high")
        })
      )
      const url = yield* serve(runs)
      const body = yield* pending(url)
      while ((yield* ask(`${url}/threads/t/decisions`, { body })).status === 503) yield* Effect.sleep(50)
      yield* wait(url, "t")
      assert.deepStrictEqual(asked, ["high", "high"])
      yield* start(url, "t", { thinking: null, id: "2" })
      yield* wait(url, "t")
      assert.isUndefined((yield* ask(`${url}/threads/t`)).at("thinking"))
      assert.deepStrictEqual(asked, ["high", "high", "low"])
      // Another thread has its own.
      yield* start(url, "u", { thinking: "off" })
      yield* wait(url, "u")
      assert.strictEqual(asked.at(-1), "off")
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )
})
