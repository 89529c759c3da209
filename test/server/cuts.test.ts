/** Readers whose connections are cut, and clients who never end their requests. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Schema, Stream } from "effect"
import { Agent, Tool } from "effect-deepagents"
import { Server } from "effect-deepagents/server"
import { MemorySessions } from "effect-deepagents/sessions"
import { Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { HttpServerRequest } from "effect/http"
import { TestClock } from "effect/testing"
import * as Guard from "../../src/server/internal/http/guard.ts"
import { makeBeats, respondEvents } from "../../src/server/internal/http/sse.ts"
import { isFull } from "../scale.ts"
import { ask, readFrames, serve } from "./door.ts"
import { foldFrames, showState, type State } from "./reader.ts"

const add = Tool.make("add", {
  description: "Adds",
  parameters: { n: Schema.Finite },
  execute: ({ n }) => Effect.succeed(`sum ${n}`)
})
const helper = Agent.make({ name: "helper", prompt: "You help.", tools: [add] })

const model = TestChatModel.reactive(({ messages }) => {
  const round = messages.filter(({ role }) => role === "ai").length
  const options = { text: `This is round ${round}.`, chunkSize: 6 }
  return round < 3
    ? TestChatModel.calls(
        [1, 2].map((n) => ({ name: "add", arguments: { n: 10 * round + n } })),
        options
      )
    : TestChatModel.text("That is all of it.", { chunkSize: 6 })
})

const runs = Server.layer({ helper }).pipe(Layer.provide(model))
const services = Layer.mergeAll(MemorySessions.layer, Storage.layerMemory)

describe("a reader over HTTP", () => {
  it.live("that is cut at any event goes on exactly behind it", () =>
    Effect.gen(function* () {
      const url = yield* serve(runs)
      yield* ask(`${url}/threads/t/runs`, { body: { agent: "helper", input: "go" } })
      const at = `${url}/threads/t/events`
      // Cut while it is at work, behind one more event each time: events of the store come again from the last checkpoint.
      let live: State | undefined
      let after: string | undefined
      for (let [isCut, most] = [true, 1]; isCut; most += isFull ? 1 : 3) {
        const some = yield* readFrames(at, { after, isEnough: ({ length }) => length >= most })
        live = foldFrames(some.frames, live)
        after = some.frames.at(-1)?.position ?? after
        isCut = some.isCut
      }
      const { frames } = yield* readFrames(at)
      const whole = showState(foldFrames(frames))
      assert.deepStrictEqual(live === undefined ? undefined : showState(live), whole)
      assert.strictEqual(whole.end, "RunCompleted completed")
      for (const [index, { position }] of frames.entries()) {
        if (!isFull && index % 4 !== 0) continue
        const rest = yield* readFrames(at, { after: position })
        const state = foldFrames(rest.frames, foldFrames(frames.slice(0, index + 1)))
        assert.deepStrictEqual(showState(state), whole, `cut behind ${index}`)
      }
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )

  it.live("that waits before the first input of a thread is told what comes", () =>
    Effect.gen(function* () {
      const url = yield* serve(runs)
      const at = `${url}/threads/t/events?follow=true`
      yield* ask(`${url}/threads/t/runs`, { body: { agent: "helper", input: "go" } })
      const isEnd = (frames: ReadonlyArray<Server.Frame>) => {
        const last = frames.at(-1)
        return last?._tag === "Event" && last.event._tag === "RunCompleted"
      }
      const readers = yield* Effect.forEach(
        Array.from({ length: 20 }, (_, index) => index),
        () => Effect.forkChild(readFrames(at, { isEnough: isEnd }))
      )
      const all = yield* Effect.forEach(readers, Fiber.join)
      const [first] = all
      for (const one of all)
        assert.deepStrictEqual(showState(foldFrames(one.frames)), showState(foldFrames(first?.frames ?? [])))
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )

  it.effect("gets a sign of life every 15 seconds while nothing happens", () =>
    Effect.gen(function* () {
      const beats = yield* makeBeats
      const { body } = respondEvents(
        beats,
        Stream.concat(Stream.make(new TextEncoder().encode("data: 1\n\n")), Stream.never)
      )
      if (body._tag !== "Stream") return assert.fail("no stream")
      const reader = yield* Effect.forkChild(Stream.runCollect(Stream.take(body.stream, 4)))
      yield* TestClock.adjust("31 seconds")
      const text = (yield* Fiber.join(reader)).map((bytes) => new TextDecoder().decode(bytes))
      assert.deepStrictEqual(text, [": beat\n\n", "data: 1\n\n", ": beat\n\n", ": beat\n\n"])
      assert.strictEqual(beats.size, 0)
    }).pipe(Effect.scoped)
  )

  it.effect("is told of a failure behind the head of its response, without internals", () =>
    Effect.gen(function* () {
      const failure = new Server.RunsError({ reason: "NotFound", threadId: "t/acme/x", problem: "secret" })
      const { body } = respondEvents(new Set(), Stream.fail(failure))
      if (body._tag !== "Stream") return assert.fail("no stream")
      const text = (yield* Stream.runCollect(body.stream)).map((bytes) => new TextDecoder().decode(bytes)).join("")
      assert.match(text, /^: beat\n\nevent: error\ndata: \{.*"status":404.*\}\n\n$/)
      assert.notMatch(text, /secret|acme/)
    })
  )
})

describe("a client", () => {
  it.effect("that never ends its body is refused after 30 seconds", () =>
    Effect.gen(function* () {
      const body = new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode("{")) })
      const init = { method: "POST", body, duplex: "half" } as const
      const request = HttpServerRequest.fromWeb(new Request("http://localhost/", init))
      const reading = yield* Effect.forkChild(Effect.flip(Guard.readBody(Guard.make({}), request, Schema.Unknown)))
      yield* TestClock.adjust("31 seconds")
      assert.strictEqual((yield* Fiber.join(reading)).status, 408)
    })
  )
})
