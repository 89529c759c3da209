/** Inputs and decisions at the same time: inputs of one id, inputs that do not wait, several decisions on one request. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Latch, Layer, Schedule, type Scope } from "effect"
import { Agent, Message, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { Server } from "effect-deepagents/server"
import { MemorySessions } from "effect-deepagents/sessions"
import { Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { TestRunner } from "effect/cluster"
import { type Answer, ask, serve } from "./door.ts"

let gate = Latch.makeUnsafe(false)
let paid = 0
const pay = Tool.make("pay", {
  description: "Pays",
  parameters: {},
  execute: () => Effect.sync(() => `paid ${++paid}`)
})
const helper = Agent.make({
  name: "helper",
  prompt: "",
  tools: [pay],
  middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
})
const model = TestChatModel.reactive(({ messages }) => {
  const last = messages.at(-1)
  if (last?.role === "tool") return "It is done."
  if (last !== undefined && Message.text(last) === "wait")
    return () => Effect.as(gate.await, TestChatModel.text("Hello."))
  return last !== undefined && Message.text(last).includes("pay")
    ? TestChatModel.calls([
        { name: "pay", arguments: {} },
        { name: "pay", arguments: {} }
      ])
    : "Hello."
})
/** The runs of one process, and the runs of a cluster. */
const kinds = {
  alone: Server.layer({ helper }).pipe(Layer.provide(model)),
  clustered: Server.layerCluster({ helper }).pipe(Layer.provide([model, TestRunner.layer]))
}
const services = Layer.mergeAll(MemorySessions.layer, Storage.layerMemory)

const live = (name: string, test: (url: string) => Effect.Effect<void, unknown, Scope.Scope>) => {
  for (const [kind, runs] of Object.entries(kinds)) {
    it.live(`${name} (${kind})`, () =>
      Effect.flatMap(serve(runs), test).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
    )
  }
}

const start = (url: string, thread: string, more: object) =>
  ask(`${url}/threads/${thread}/runs`, { body: { agent: "helper", input: "Hi", ...more } })

const atOnce = (count: number, each: (index: number) => Effect.Effect<Answer>) =>
  Effect.all(
    Array.from({ length: count }, (_, index) => each(index)),
    { concurrency: "unbounded" }
  )

const countBy = (answers: ReadonlyArray<Answer>, key: (answer: Answer) => string) =>
  answers.reduce<Record<string, number>>((counts, one) => ({ ...counts, [key(one)]: (counts[key(one)] ?? 0) + 1 }), {})

describe("inputs at once", () => {
  live("with one id are one if they say the same, and a conflict if they do not", (url) =>
    Effect.gen(function* () {
      const same = yield* atOnce(20, () => start(url, "same", { id: "1" }))
      assert.deepStrictEqual(
        countBy(same, (one) => `${one.status} ${String(one.at("isNew"))}`),
        { "202 true": 1, "202 false": 19 }
      )
      const others = yield* atOnce(20, (index) => start(url, "other", { id: "1", input: `Text ${index}` }))
      assert.deepStrictEqual(
        countBy(others, (one) => `${one.status} ${String(one.at("code"))}`),
        { "202 undefined": 1, "409 Conflict": 19 }
      )
      for (const thread of ["same", "other"]) {
        yield* ask(`${url}/threads/${thread}/events`)
        assert.strictEqual((yield* ask(`${url}/threads/${thread}/history`)).at("messages", "length"), 2)
      }
    })
  )

  live("that do not wait for others are one, and its repetitions", (url) =>
    Effect.gen(function* () {
      gate = Latch.makeUnsafe(false)
      const answers = yield* atOnce(20, (index) =>
        start(url, "t", { input: "wait", id: `${index % 10}`, busy: "refuse" })
      )
      const taken = answers.filter(({ status }) => status === 202)
      assert.lengthOf(
        taken.filter((one) => one.at("isNew") === true),
        1
      )
      assert.lengthOf([...new Set(taken.map((one) => one.at("runId")))], 1)
      for (const one of answers) assert.oneOf(one.at("code"), [undefined, "Busy"])
      yield* gate.open
      yield* ask(`${url}/threads/t/events`)
      assert.strictEqual((yield* ask(`${url}/threads/t/history`)).at("messages", "length"), 2)
      // The way is free again.
      assert.strictEqual((yield* start(url, "t", { id: "next", busy: "refuse" })).status, 202)
    })
  )
})

describe("decisions in one packet", () => {
  live("count by the first one on each request", (url) =>
    Effect.gen(function* () {
      paid = 0
      yield* start(url, "t", { input: "pay" })
      yield* ask(`${url}/threads/t/events`)
      const state = yield* ask(`${url}/threads/t/state`)
      const [first, second] = [state.at("pending", 0, "id"), state.at("pending", 1, "id")]
      const decisions = [
        { _tag: "Reject", id: first },
        { _tag: "Approve", id: first },
        { _tag: "Approve", id: second },
        { _tag: "Reject", id: second }
      ]
      assert.strictEqual((yield* ask(`${url}/threads/t/decisions`, { body: { decisions } })).status, 202)
      assert.match((yield* ask(`${url}/threads/t/events`)).text, /"_tag":"RunCompleted"[^\n]*"completed"/u)
      assert.strictEqual(paid, 1)
    })
  )
})

describe("mail whose write is done and fails for the caller", () => {
  for (const [kind, runs] of Object.entries(kinds)) {
    it.live(`is worked on once when it comes again (${kind})`, () =>
      Effect.gen(function* () {
        const storage = yield* Storage.Storage
        const before = paid
        let isCut = false
        const cutting = Layer.succeed(Storage.Storage, {
          table: (name) => {
            const table = storage.table(name)
            return {
              ...table,
              swap: (space, key, expected, next) =>
                Effect.tap(table.swap(space, key, expected, next), () =>
                  isCut && space === "mail" && expected === undefined
                    ? Effect.fail({ reason: "Unavailable" as const, problem: "cut off" })
                    : Effect.void
                )
            }
          }
        })
        const url = yield* Effect.provide(serve(runs), cutting)
        const twice = Effect.fnUntraced(function* (path: string, body: object) {
          isCut = true
          assert.strictEqual((yield* ask(`${url}/threads/t/${path}`, { body })).status, 503)
          isCut = false
          const again = yield* ask(`${url}/threads/t/${path}`, { body })
          assert.deepStrictEqual([again.status, again.at("isNew")], [202, false])
        })
        const input = { agent: "helper", input: "pay", id: "1" }
        yield* twice("runs", input)
        yield* ask(`${url}/threads/t/events`)
        const state = yield* ask(`${url}/threads/t/state`)
        const requests = [0, 1].map((index) => state.at("pending", index, "id"))
        assert.strictEqual(state.at("state"), "waiting")
        yield* twice("decisions", { decisions: requests.map((id) => ({ _tag: "Approve", id })) })
        yield* Effect.repeat(ask(`${url}/threads/t/state`), {
          until: (one) => one.at("state") === "idle",
          schedule: Schedule.spaced("50 millis"),
          times: 100
        })
        const history = yield* ask(`${url}/threads/t/history`)
        assert.deepStrictEqual([paid - before, history.at("messages", "length")], [2, 5])
      }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
    )
  }
})
