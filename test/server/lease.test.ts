/** Several processes with one mailbox: one of them has it, and another one takes over. */
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, Effect, Fiber, Layer, Schedule, Stream } from "effect"
import { Agent } from "effect-deepagents"
import { Schedules, Server } from "effect-deepagents/server"
import { MemorySessions } from "effect-deepagents/sessions"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
import { Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { bundle } from "../bundle.ts"
import { endChild, startServer } from "../child.ts"
import { ask, readFrames } from "./door.ts"
import { foldFrames, showState } from "./reader.ts"

const post = (url: string, thread: string, input: string, id: string) =>
  ask(`${url}/threads/${thread}/runs`, { token: "token", body: { agent: "helper", input, id } })

/** Asks until the server takes it. */
const takeInput = (url: string, thread: string, input: string, id: string) =>
  Effect.repeat(post(url, thread, input, id), {
    until: ({ status }) => status !== 503,
    schedule: Schedule.spaced("100 millis")
  })

const stateOf = (url: string, thread: string) =>
  Effect.map(ask(`${url}/threads/${thread}/state`, { token: "token" }), ({ at }) => at("state"))

const isEnd = (frame: Server.Frame) => frame._tag === "Event" && frame.event._tag === "RunCompleted"

describe("two processes on one SQLite file", () => {
  it.live(
    "run no thread twice: the second one refuses with Retry-After, and takes over after kill -9, and after an end",
    () =>
      Effect.gen(function* () {
        const folder = mkdtempSync(join(tmpdir(), "leased-"))
        const file = bundle(new URL("children/leasedServer.ts", import.meta.url))
        const one = yield* startServer(file, [folder])
        const two = yield* startServer(file, [folder])
        // Both have the schedule, whose ticks come at each second.
        yield* Schedules.add({
          name: "tick",
          cron: "* * * * * *",
          timeZone: "UTC",
          tenant: "local",
          agent: "helper",
          thread: "ticks",
          input: "Tick"
        }).pipe(
          Effect.provide(Storage.layerSql.pipe(Layer.provide(SqliteClient.layer({ file: join(folder, "threads.db") }))))
        )
        assert.strictEqual((yield* post(one.url, "t", "Note all", "1")).status, 202)
        yield* readFrames(`${one.url}/threads/t/events`, {
          token: "token",
          isEnough: (frames) =>
            frames.filter((frame) => frame._tag === "Event" && frame.event._tag === "ToolCalled").length === 2
        })
        // A reader of the one that stands by, to the end of the second input.
        const reading = yield* Effect.forkChild(
          readFrames(`${two.url}/threads/t/events?follow=true`, {
            token: "token",
            isEnough: (frames) => frames.filter(isEnd).length === 2
          })
        )
        const refused = yield* post(two.url, "t", "And then?", "2")
        assert.deepStrictEqual([refused.status, refused.at("code")], [503, "Unavailable"])
        assert.match(refused.header("retry-after") ?? "", /^[12]$/)
        assert.strictEqual((yield* post(two.url, "new", "Hello", "3")).status, 503)
        assert.strictEqual((yield* ask(`${two.url}/threads/t/cancel`, { token: "token", body: {} })).status, 503)
        // It reads, and it knows that the thread is at work.
        assert.strictEqual(yield* stateOf(two.url, "t"), "working")
        assert.strictEqual((yield* ask(`${two.url}/threads/t`, { token: "token", method: "DELETE" })).status, 409)
        assert.strictEqual((yield* post(two.url, "t", "Note all", "1")).at("isNew"), false)

        yield* endChild(one.child, "SIGKILL")
        writeFileSync(join(folder, "go"), "")
        assert.strictEqual((yield* takeInput(two.url, "t", "And then?", "2")).status, 202)
        const whole = showState(
          foldFrames((yield* readFrames(`${two.url}/threads/t/events`, { token: "token" })).frames)
        )
        assert.deepStrictEqual(
          whole.messages.flatMap(([role, id]) => (role === "human" ? [id] : [])),
          ["input:1", "input:2"]
        )
        assert.strictEqual(whole.end, "RunCompleted completed")
        const { frames: followed } = yield* Fiber.join(reading)
        assert.deepStrictEqual(showState(foldFrames(followed)), whole)
        assert.notInclude(
          followed.map(({ _tag }) => _tag),
          "Reset"
        )
        const saves = followed.flatMap((one) =>
          one._tag === "Event" && one.event._tag === "CheckpointSaved" ? [one.event.step] : []
        )
        assert.deepStrictEqual(saves, [...new Set(saves)])
        assert.deepStrictEqual(readFileSync(join(folder, "effects"), "utf8").trim().split("\n"), [
          `0 ${one.child.pid}`,
          `1 ${two.child.pid}`,
          `2 ${two.child.pid}`
        ])

        // The next one stands by, until this one ends and says so.
        const three = yield* startServer(file, [folder])
        assert.strictEqual((yield* post(three.url, "t", "Hello", "4")).status, 503)
        yield* endChild(two.child, "SIGTERM")
        assert.strictEqual((yield* takeInput(three.url, "t", "Hello", "4")).status, 202)
        yield* readFrames(`${three.url}/threads/t/events`, { token: "token" })
        // The ticks of three processes: each once, by its time.
        const { frames } = yield* readFrames(`${three.url}/threads/ticks/events?follow=true`, {
          token: "token",
          isEnough: (some) => showState(foldFrames(some)).messages.filter(([role]) => role === "human").length > 3
        })
        const ticks = showState(foldFrames(frames)).messages.flatMap(([role, id]) => (role === "human" ? [id] : []))
        assert.strictEqual(new Set(ticks).size, ticks.length)
      }).pipe(Effect.scoped),
    240_000
  )
})

describe("a process that can't renew its lease", () => {
  it.live("ends its runs, refuses inputs, and leaves its mail to the next one, which loses none", () =>
    Effect.gen(function* () {
      const storage = yield* Storage.Storage
      let isCut = false
      const cut = Layer.succeed(Storage.Storage, {
        table: (name) => {
          const table = storage.table(name)
          return {
            ...table,
            swap: (space, ...rest) =>
              isCut && space === "lease"
                ? Effect.fail({ reason: "Unavailable", problem: "cut off" })
                : table.swap(space, ...rest)
          }
        }
      })
      const helper = Agent.make({ name: "helper", prompt: "You help." })
      const build = (model: Parameters<typeof TestChatModel.script>[0]) =>
        Effect.map(
          Layer.build(
            Layer.fresh(Server.layer({ helper }, { lease: "300 millis" })).pipe(
              Layer.provide(Layer.fresh(TestChatModel.script(model)))
            )
          ),
          (context) => Context.get(context, Server.Runs)
        )
      const one = yield* Effect.provide(build([TestChatModel.hangAfter("hal")]), cut)
      const two = yield* build(["It is done.", "That, too.", "And that."])
      const acme = yield* Server.tenant({ tenant: "acme", id: "ada", roles: [] })
      const thread = yield* acme.thread("t")
      const input = { agent: "helper", input: "Go" }
      yield* one.start(thread, { ...input, id: "1" })
      yield* one.start(thread, { ...input, id: "2" })
      yield* Stream.runDrain(
        Stream.takeUntil(one.observe(thread), (frame) => frame._tag === "Event" && frame.event._tag === "TextDelta")
      )
      assert.strictEqual((yield* Effect.flip(two.start(thread, { ...input, id: "3" }))).reason, "Unavailable")
      isCut = true
      yield* Effect.retry(two.start(thread, { ...input, id: "3" }), Schedule.spaced("20 millis"))
      assert.strictEqual((yield* Effect.flip(one.start(thread, { ...input, id: "4" }))).reason, "Unavailable")
      // The reader of the first one is not told of an end that did not come.
      const left = showState(foldFrames(yield* Stream.runCollect(one.observe(thread))))
      const whole = showState(foldFrames(yield* Stream.runCollect(two.observe(thread))))
      assert.notInclude(left.end, "Interrupted")
      assert.deepStrictEqual(
        whole.messages.flatMap(([role, id]) => (role === "human" ? [id] : [])),
        ["input:1", "input:2", "input:3"]
      )
      const answers = JSON.stringify(whole.messages)
      for (const answer of ["It is done.", "That, too.", "And that."]) assert.include(answers, answer)
      assert.strictEqual(whole.end, "RunCompleted completed")
      assert.strictEqual((yield* two.status(thread)).state, "idle")
      isCut = false
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(Layer.mergeAll(MemorySessions.layer, Storage.layerMemory))))
  )
})

describe("a process whose clock is ahead", () => {
  it.live("leaves the mailbox to the process that renews its lease", () =>
    Effect.gen(function* () {
      const helper = Agent.make({ name: "helper", prompt: "You help." })
      const build = Effect.map(
        Layer.build(
          Layer.fresh(Server.layer({ helper }, { lease: "2 seconds" })).pipe(
            Layer.provide(Layer.fresh(TestChatModel.script(["It is done."], { exhaustive: false })))
          )
        ),
        (context) => Context.get(context, Server.Runs)
      )
      const clock = yield* Clock.Clock
      const ahead: Clock.Clock = {
        ...clock,
        currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + 30_000,
        currentTimeMillis: Effect.map(clock.currentTimeMillis, (now) => now + 30_000),
        sleep: (duration) => clock.sleep(duration)
      }
      const acme = yield* Server.tenant({ tenant: "acme", id: "ada", roles: [] })
      const thread = yield* acme.thread("t")
      const one = yield* build
      const two = yield* Effect.provideService(build, Clock.Clock, ahead)
      for (let look = 0; look < 3; look++) {
        const refused = yield* Effect.flip(two.start(thread, { agent: "helper", input: "Go", id: "2" }))
        assert.strictEqual(refused.reason, "Unavailable")
        yield* Effect.sleep("500 millis")
      }
      yield* one.start(thread, { agent: "helper", input: "Go", id: "1" })
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(Layer.mergeAll(MemorySessions.layer, Storage.layerMemory))))
  )
})
