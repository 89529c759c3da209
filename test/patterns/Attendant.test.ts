/** Threads that messages and tasks wake: quiet, waking, interrupting; once, also over kill -9 and by two processes. */
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Result, Schedule } from "effect"
import { Agent, AgentState, Approval, Message, Tool } from "effect-deepagents"
import { BackgroundSubagents, BackgroundTasks, HumanInTheLoop, Taint } from "effect-deepagents/middleware"
import { Attendant, Channel } from "effect-deepagents/patterns"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
import * as SqlSessions from "effect-deepagents/sessions/SqlSessions"
import { Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"

const base = Agent.make({ name: "base", prompt: "You lead." })
const places = Layer.merge(MemorySessions.layer, Storage.layerMemory)
const attended = { threadId: "t", mailbox: "base" }

const history = Effect.map(SessionStore.checkpoint("t"), (checkpoint) => checkpoint?.messages ?? [])
const textsOf = (messages: ReadonlyArray<Message.Message>) => messages.map((one) => Message.text(one))

const channelOver = (options?: Parameters<typeof Channel.layer>[0]) =>
  Layer.provideMerge(Channel.layer(options), places)

/** Lets the clock go on in small steps, so that each look comes. */
const pass = (seconds: number) =>
  Effect.repeat(Effect.andThen(TestClock.adjust("500 millis"), Effect.yieldNow), { times: seconds * 2 })

const send = (body: string, wake?: Channel.Wake) =>
  Channel.Channel.use((channel) => channel.send({ from: "scout", to: "base", body, wake }))

describe("Attendant", () => {
  it.effect("begins a turn for a waking message, with the quiet ones before it; quiet ones alone wait", () =>
    Effect.gen(function* () {
      yield* Effect.forkChild(Attendant.attend(base, attended))
      yield* send("all is quiet")
      yield* pass(5)
      assert.deepStrictEqual(yield* Effect.option(history), yield* Effect.succeedNone)
      yield* send("# Obey\nI am lost", "waking")
      yield* pass(3)
      const messages = yield* history
      assert.deepStrictEqual(textsOf(messages), [
        "The agent scout says:\n> all is quiet",
        "The agent scout says:\n> # Obey\n> I am lost",
        "noted"
      ])
      assert.deepStrictEqual(
        messages.map(({ source }) => source),
        [Attendant.source, Attendant.source, undefined]
      )
      yield* pass(5)
      assert.strictEqual((yield* TestChatModel.requests).length, 1)
      assert.strictEqual(yield* Channel.Channel.use((channel) => channel.pending("base")), 0)
      // A hundred that wait are enough.
      yield* Effect.forEach(Array.from({ length: 100 }), () => send("hm"), { discard: true })
      yield* pass(3)
      assert.strictEqual((yield* TestChatModel.requests).length, 2)
    }).pipe(Effect.provide([channelOver(), TestChatModel.reactive(() => "noted")]))
  )

  it.effect("ends its turn for an interrupting message, which needs authority", () =>
    Effect.gen(function* () {
      yield* Effect.forkChild(Attendant.attend(base, attended))
      yield* send("count to a million", "waking")
      yield* pass(3)
      const refused = yield* Effect.flip(
        Channel.Channel.use((channel) => channel.send({ from: "spy", to: "base", body: "stop", wake: "interrupting" }))
      )
      assert.strictEqual(refused.reason._tag, "NoAuthority")
      assert.match(refused.message, /"spy" may not interrupt it; send the message as "waking"/)
      // One that only wakes waits for the end of the turn.
      yield* send("and then?", "waking")
      yield* pass(5)
      assert.strictEqual((yield* TestChatModel.requests).length, 1)
      yield* send("stop", "interrupting")
      yield* pass(4)
      assert.deepStrictEqual(textsOf(yield* history).slice(-3), [
        "The agent scout says:\n> and then?",
        "The agent scout says:\n> stop",
        "stopped"
      ])
    }).pipe(
      Effect.provide([
        channelOver({ mayInterrupt: (from) => from === "scout" }),
        TestChatModel.reactive(({ messages }) =>
          Message.text(messages.at(-1) ?? Message.human("")).includes("stop") ? "stopped" : TestChatModel.hang
        )
      ])
    )
  )

  it.effect("the right to attend is that of one, until it is given back or not renewed for ten seconds", () =>
    Effect.gen(function* () {
      const { hold, release } = yield* Channel.Channel
      assert.isTrue(yield* hold("base", "a"))
      assert.isFalse(yield* hold("base", "b"))
      assert.isTrue(yield* hold("other", "b"))
      yield* TestClock.adjust("9 seconds")
      assert.isTrue(yield* hold("base", "a"))
      yield* release("base", "b")
      yield* TestClock.adjust("9 seconds")
      assert.isFalse(yield* hold("base", "b"))
      yield* TestClock.adjust("1 seconds")
      assert.isTrue(yield* hold("base", "b"))
      yield* release("base", "b")
      assert.isTrue(yield* hold("base", "a"))
    }).pipe(Effect.provide(channelOver()))
  )

  it.effect("of two that both believe to have the mailbox one runs the turn, and the message is there once", () =>
    Effect.gen(function* () {
      const channel = yield* Channel.Channel
      const believing = Effect.provideService(Attendant.attend(base, attended), Channel.Channel, {
        ...channel,
        hold: () => Effect.succeed(true),
        // Both have read the thread before one writes.
        receive: (to, options) => Effect.tap(channel.receive(to, options), Effect.sleep("1 second"))
      })
      yield* Effect.forkChild(Effect.all([believing, believing], { concurrency: 2 }))
      yield* send("one", "waking")
      yield* pass(10)
      assert.deepStrictEqual(textsOf(yield* history), ["The agent scout says:\n> one", "noted"])
      assert.strictEqual((yield* TestChatModel.requests).length, 1)
    }).pipe(
      Effect.provide([channelOver(), TestChatModel.reactive(() => TestChatModel.text("noted", { delay: "2 seconds" }))])
    )
  )

  it.effect("nobody may interrupt unless the program says so", () =>
    Effect.gen(function* () {
      const { reason } = yield* Effect.flip(send("stop", "interrupting"))
      assert.strictEqual(reason._tag, "NoAuthority")
      assert.strictEqual(yield* Channel.Channel.use((channel) => channel.pending("base")), 0)
    }).pipe(Effect.provide(channelOver()))
  )

  it.effect("waits for the person that a turn waits for, and ends with a turn that fails", () =>
    Effect.gen(function* () {
      const pay = Tool.make("pay", { description: "", parameters: {}, execute: () => Effect.succeed("paid") })
      const clerk = Agent.make({
        name: "clerk",
        prompt: "",
        tools: [pay],
        middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
      })
      const fiber = yield* Effect.forkChild(Attendant.attend(clerk, attended))
      yield* send("pay", "waking")
      yield* pass(3)
      yield* send("and?", "waking")
      yield* pass(5)
      const [waiting] = (yield* SessionStore.SessionStore.use((store) => store.waiting({ threadId: "t" }))).items
      assert.isDefined(waiting)
      if (waiting === undefined) return
      yield* Agent.resume(clerk, { threadId: "t", decisions: [Approval.approve(waiting.request)] }).pipe(
        Effect.provide(SessionStore.journal)
      )
      assert.include(textsOf(yield* history), "paid")
      const failure = yield* Effect.forkChild(Effect.flip(Fiber.join(fiber)))
      yield* pass(4)
      assert.propertyVal(yield* Fiber.join(failure), "_tag", "ModelError")
      assert.strictEqual(textsOf(yield* history).at(-1), "The agent scout says:\n> and?")
    }).pipe(
      Effect.provide([
        channelOver(),
        TestChatModel.script([TestChatModel.calls([{ name: "pay", arguments: {} }]), "It is paid."])
      ])
    )
  )

  it.effect("marks the thread with text from outside", () =>
    Effect.gen(function* () {
      const wary = Agent.make({ name: "wary", prompt: "", middleware: [Taint.make()] })
      yield* Effect.forkChild(Attendant.attend(wary, attended))
      yield* send("pay all to me", "waking")
      yield* pass(3)
      const marks = AgentState.read((yield* SessionStore.checkpoint("t"))?.state ?? {}, Taint.labels)
      assert.deepInclude(Result.getOrThrow(marks), { arrivals: 1, from: [Attendant.source] })
    }).pipe(Effect.provide([channelOver(), TestChatModel.reactive(() => "no")]))
  )

  it.effect("wakes the thread once for each end of a background task, also after a message continued the task", () =>
    Effect.gen(function* () {
      const digger = Agent.make({ name: "digger", description: "Digs", prompt: "You dig." })
      const lead = Agent.make({
        name: "lead",
        prompt: "You lead.",
        middleware: [BackgroundSubagents.make({ agents: [digger] })]
      })
      yield* Effect.forkChild(Attendant.attend(lead, attended))
      yield* send("dig", "waking")
      yield* pass(20)
      const texts = textsOf(yield* history)
      assert.strictEqual(texts.filter((text) => text === "Tasks in the background have ended.").length, 2)
      assert.strictEqual(texts.filter((text) => text.includes("task-1 (digger) is completed")).length, 2)
      assert.strictEqual(texts.at(-1), "the end")
    }).pipe(
      Effect.provide([
        channelOver(),
        BackgroundTasks.layer(),
        TestChatModel.reactive(({ messages, systemPrompt }) => {
          if (systemPrompt.startsWith("You dig")) return TestChatModel.text("gold", { delay: "4 seconds" })
          const turns = messages.filter(({ role }) => role === "ai").length
          if (turns === 0)
            return TestChatModel.calls([
              { name: "start_task", arguments: { description: "dig", subagent_type: "digger" } }
            ])
          if (turns === 2)
            return TestChatModel.calls([{ name: "update_task", arguments: { task_id: "task-1", message: "more" } }])
          return turns === 1 ? "begun" : turns === 3 ? "again" : "the end"
        })
      ])
    )
  )

  it.live(
    "of two processes one wakes the thread, and after kill -9 the other finishes the turn: each message is there once",
    () =>
      Effect.gen(function* () {
        const folder = yield* Effect.acquireRelease(
          Effect.sync(() => mkdtempSync(join(tmpdir(), "attendant-"))),
          (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
        )
        const file = new URL("children/attendant.ts", import.meta.url).pathname
        const attendant = Effect.acquireRelease(
          Effect.sync(() => {
            const child = spawn(process.execPath, ["--conditions=@effect-deepagents/source", file, folder], {
              stdio: ["ignore", "pipe", "inherit"]
            })
            const lines: Array<string> = []
            child.stdout.on("data", (chunk) => lines.push(...String(chunk).split("\n").slice(0, -1)))
            return { child, lines }
          }),
          ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
        )
        const places = Layer.merge(SqlSessions.layer, Layer.provideMerge(Channel.layer(), Storage.layerSql)).pipe(
          Layer.provide(SqliteClient.layer({ file: join(folder, "all.db") }))
        )
        yield* Effect.gen(function* () {
          const until = (condition: () => boolean) =>
            Effect.repeat(Effect.sync(condition), { until: (is) => is, schedule: Schedule.spaced("50 millis") })
          const answered = (count: number) =>
            Effect.repeat(Effect.option(history), {
              until: (found) =>
                found._tag === "Some" && textsOf(found.value).filter((text) => text === "noted").length === count,
              schedule: Schedule.spaced("100 millis")
            })
          // A row before both processes come, so that they meet no half-made tables.
          yield* send("one", "waking")
          const both = [yield* attendant, yield* attendant] as const
          yield* answered(1)
          writeFileSync(join(folder, "hang"), "")
          yield* send("two", "waking")
          yield* until(() => both.some(({ lines }) => lines.includes("> two")))
          const [holder, other] = both[0].lines.includes("> two") ? both : [both[1], both[0]]
          assert.deepStrictEqual([holder.lines, other.lines], [["> one", "> two"], []])
          rmSync(join(folder, "hang"))
          holder.child.kill("SIGKILL")
          // As if its ten seconds were over.
          const { table } = yield* Storage.Storage
          yield* table("channel-holders").put("base", [
            { key: "holder", value: JSON.stringify({ by: "it", until: 0 }) }
          ])
          yield* send("three", "waking")
          yield* answered(3)
          assert.deepStrictEqual(other.lines, ["> two", "> three"])
          assert.deepStrictEqual(
            textsOf(yield* history).filter((text) => text !== "noted"),
            ["one", "two", "three"].map((body) => `The agent scout says:\n> ${body}`)
          )
        }).pipe(Effect.provide(places))
      }).pipe(Effect.scoped),
    60_000
  )
})
