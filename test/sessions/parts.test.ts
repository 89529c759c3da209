/** Parts of a turn that is being streamed: at most 100 ms of it are not stored, and a reader finds a partial answer. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Result, Schema, Stream } from "effect"
import { Agent, type AgentEvent, Checkpoint, Message, SessionError, Tool } from "effect-deepagents"
import { Chat, MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import * as FastCheck from "fast-check"
import { type Part, partial } from "../../src/core/thread/parts.ts"
import { loadThread, makeJournal } from "../../src/sessions/journal.ts"
import { scaled } from "../scale.ts"

const words = Array.from({ length: 60 }, (_, n) => `word${n} `)
const slowly = TestChatModel.text(words, { chunkDelay: "10 millis" })

const write = Tool.make("write", {
  description: "Writes",
  parameters: { text: Schema.String },
  execute: () => Effect.succeed("written")
})
const agent = Agent.make({ name: "a", prompt: "", tools: [write] })

const sessions = SessionStore.journalWith({ parts: true }).pipe(Layer.provideMerge(MemorySessions.layer))

/** The thread as a new process would find it. */
let found = 0
const crash = (threadId = "t") =>
  Effect.gen(function* () {
    const store = yield* SessionStore.SessionStore
    const id = `found-${++found}`
    yield* store.import(store.export(threadId), { threadId: id })
    return id
  })

const lastOf = (threadId: string) =>
  Effect.map(SessionStore.checkpoint(threadId), (checkpoint) => checkpoint?.messages.at(-1))

const tagsOf = (threadId: string) =>
  SessionStore.SessionStore.use((store) =>
    Effect.map(store.load(threadId), ({ entries }) => entries.map(({ entry }) => entry._tag))
  )

/** Begins a run, and gives it so much time. */
const beginRun = <O, E, R>(agent: Agent.Agent<O, E, R>, millis: number, input: Agent.Input = "go") =>
  Effect.gen(function* () {
    const events: Array<AgentEvent.AgentEvent> = []
    const fiber = yield* Effect.forkChild(
      Stream.runForEach(Agent.stream(agent, input, { threadId: "t" }), (event) => Effect.sync(() => events.push(event)))
    )
    for (let at = 0; at < millis; at += 5) yield* TestClock.adjust("5 millis")
    return { events, fiber }
  })

const saidIn = (events: ReadonlyArray<AgentEvent.AgentEvent>) =>
  events.map((event) => (event._tag === "TextDelta" ? event.text : "")).join("")

const makeModel = (...turns: ReadonlyArray<TestChatModel.Turn>) =>
  Effect.provide(Layer.merge(sessions, TestChatModel.script(turns)))

describe("parts of a turn", () => {
  it.effect("are stored while it is streamed, 100 ms late at most, whenever it is looked at", () =>
    Effect.gen(function* () {
      const { events, fiber } = yield* beginRun(agent, 0)
      for (let at = 0; at < 590; at += 5) {
        yield* TestClock.adjust("5 millis")
        const last = yield* lastOf("t")
        const said = saidIn(events)
        if (!Message.isPartial(last)) {
          assert.isAtMost(at, 100)
          continue
        }
        assert.isTrue(said.startsWith(Message.text(last)))
        assert.isAtMost(said.slice(Message.text(last).length).split(" ").length - 1, 10)
      }
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(fiber)
      // The turn that ended took their place.
      const { messages = [] } = (yield* SessionStore.checkpoint("t")) ?? {}
      assert.deepStrictEqual(
        messages.map((message) => [message.role, Message.isPartial(message)]),
        [
          ["human", false],
          ["ai", false]
        ]
      )
      assert.strictEqual(Message.text(messages[1]!), words.join(""))
      assert.notInclude(yield* tagsOf("t"), "Part")
    }).pipe(makeModel(slowly))
  )

  it.effect("are bytes that grow with the text, not with its square", () =>
    Effect.gen(function* () {
      yield* Effect.flatMap(beginRun(agent, 590), ({ fiber }) => Fiber.interrupt(fiber))
      const store = yield* SessionStore.SessionStore
      const lines = yield* Stream.runCollect(store.export("t"))
      const parts = lines.filter((line) => line.includes('"Part"'))
      assert.isAbove(parts.length, 5)
      assert.isBelow(parts.join("").length, words.join("").length + parts.length * 350)
    }).pipe(makeModel(slowly))
  )

  it.effect("are not stored unless the journal is told to", () =>
    Effect.gen(function* () {
      const { fiber } = yield* beginRun(agent, 400)
      assert.deepStrictEqual(yield* tagsOf("t"), ["RunStarted", "Message", "Step"])
      yield* Fiber.interrupt(fiber)
    }).pipe(
      Effect.provide(
        Layer.merge(SessionStore.journal.pipe(Layer.provideMerge(MemorySessions.layer)), TestChatModel.script([slowly]))
      )
    )
  )

  it.effect("are stored by a chat that is told to", () =>
    Effect.gen(function* () {
      const chat = yield* Chat.make(agent, "t", { parts: true })
      const fiber = yield* Effect.forkChild(chat.send("go"))
      yield* TestClock.adjust("5 millis")
      for (let at = 0; at < 40; at++) yield* TestClock.adjust("10 millis")
      const history = yield* chat.history
      assert.isTrue(Message.isPartial(history.at(-1)))
      yield* Fiber.interrupt(fiber)
    }).pipe(Effect.provide(Layer.merge(MemorySessions.layer, TestChatModel.script([slowly]))))
  )
})

describe("after a crash in the middle of a turn", () => {
  it.effect("asks for the turn again, and reports its partial text without an answer", () =>
    Effect.gen(function* () {
      const { fiber } = yield* beginRun(agent, 400)
      const threadId = yield* crash()
      const partial = yield* lastOf(threadId)
      assert.isTrue(Message.isPartial(partial))
      yield* Fiber.interrupt(fiber)
      const events = yield* Stream.runCollect(Agent.stream(agent, Checkpoint.resume(undefined), { threadId }))
      const loaded = events.find(({ _tag }) => _tag === "CheckpointLoaded")
      assert.deepStrictEqual(loaded?._tag === "CheckpointLoaded" ? loaded.partial : undefined, partial)
      const requests = yield* TestChatModel.requests
      assert.deepStrictEqual(
        requests[1]?.messages.map(({ role }) => role),
        ["human"]
      )
      const { messages = [] } = (yield* SessionStore.checkpoint(threadId)) ?? {}
      assert.deepStrictEqual(messages.map(Message.text), ["go", "whole"])
      // A reader finds it in the thread.
      assert.include(yield* tagsOf(threadId), "Part")
    }).pipe(makeModel(slowly, "whole"))
  )

  it.effect("a new input is answered behind the partial answer, marked as one", () =>
    Effect.gen(function* () {
      const { fiber } = yield* beginRun(agent, 400)
      const threadId = yield* crash()
      yield* Fiber.interrupt(fiber)
      const { text } = yield* Agent.run(agent, "go on", { threadId })
      assert.strictEqual(text, "the rest")
      const [, second] = yield* TestChatModel.requests
      assert.deepStrictEqual(
        second?.messages.map((message) => [message.role, Message.isPartial(message)]),
        [
          ["human", false],
          ["ai", true],
          ["human", false]
        ]
      )
      assert.isTrue(words.join("").startsWith(Message.text(second!.messages[1]!)))
      const { messages = [] } = (yield* SessionStore.checkpoint(threadId)) ?? {}
      assert.deepStrictEqual(
        messages.map(({ role }) => role),
        ["human", "ai", "human", "ai"]
      )
      assert.deepStrictEqual(messages[1], second?.messages[1])
    }).pipe(makeModel(slowly, "the rest"))
  )

  it.effect("arguments that were being written are kept, and never run", () =>
    Effect.gen(function* () {
      const { fiber } = yield* beginRun(agent, 400)
      const threadId = yield* crash()
      yield* Fiber.interrupt(fiber)
      const partial = yield* lastOf(threadId)
      assert.isTrue(Message.isPartial(partial))
      if (!Message.isPartial(partial)) return
      assert.deepStrictEqual(partial.toolCalls, [])
      const [call] = partial.malformedToolCalls
      assert.strictEqual(call?.name, "write")
      assert.match(call?.raw ?? "", /^\{"text":"x{20,}$/)
      const { messages } = yield* Agent.run(agent, "go on", { threadId })
      assert.deepStrictEqual(AgentTest.pairingProblems(messages), [])
      const answer = messages.find(({ role }) => role === "tool")
      assert.match(Message.text(answer!), /not executed/)
      const stored = (yield* SessionStore.checkpoint(threadId))?.messages ?? []
      assert.deepStrictEqual(stored, messages)
      // Resumed, it is asked for again.
      const again = yield* crash()
      yield* Agent.resume(agent, { threadId: again })
      assert.strictEqual((yield* TestChatModel.requests).length, 3)
    }).pipe(
      makeModel(
        TestChatModel.calls([{ name: "write", arguments: { text: "x".repeat(200) } }], {
          chunkSize: 1,
          chunkDelay: "10 millis"
        }),
        "the rest",
        "again"
      )
    )
  )

  it.effect("a structured answer that was being written is no answer", () =>
    Effect.gen(function* () {
      const structured = Agent.make({ name: "s", prompt: "", output: Schema.Struct({ text: Schema.String }) })
      const { fiber } = yield* beginRun(structured, 400)
      const threadId = yield* crash()
      yield* Fiber.interrupt(fiber)
      const last = yield* lastOf(threadId)
      assert.isTrue(Message.isPartial(last))
      const { output } = yield* Agent.resume(structured, { threadId })
      assert.deepStrictEqual(output, { text: "whole" })
    }).pipe(
      makeModel(
        TestChatModel.text(`{"text":"${"y".repeat(200)}"}`, { chunkSize: 1, chunkDelay: "10 millis" }),
        `{"text":"whole"}`
      )
    )
  )

  it.effect("a second crash shows the second turn, as far as it went", () =>
    Effect.gen(function* () {
      const { fiber } = yield* beginRun(agent, 400)
      const first = yield* crash()
      yield* Fiber.interrupt(fiber)
      const resumed = yield* Effect.forkChild(Agent.resume(agent, { threadId: first }))
      for (let at = 0; at < 40; at++) yield* TestClock.adjust("5 millis")
      const second = yield* crash(first)
      yield* Fiber.interrupt(resumed)
      const { messages = [] } = (yield* SessionStore.checkpoint(second)) ?? {}
      assert.deepStrictEqual(
        messages.map(({ role }) => role),
        ["human", "ai"]
      )
      assert.match(Message.text(messages[1]!), /^other/)
    }).pipe(
      makeModel(
        slowly,
        TestChatModel.text(
          Array.from({ length: 60 }, () => "other "),
          { chunkDelay: "10 millis" }
        )
      )
    )
  )

  it.effect("excludes text before a restart of the turn", () =>
    Effect.gen(function* () {
      const { fiber } = yield* beginRun(agent, 600)
      const last = yield* lastOf(yield* crash())
      assert.match(last === undefined ? "" : Message.text(last), /^second/)
      assert.notInclude(JSON.stringify(last), "first")
      yield* Fiber.interrupt(fiber)
    }).pipe(
      makeModel(
        TestChatModel.parts(
          [
            ...Array.from({ length: 30 }, () => ({ _tag: "TextDelta", text: "first " }) as const),
            { _tag: "ToolCallStart", id: "c", name: "write" },
            { _tag: "TurnRestarted", reason: "again" },
            ...Array.from({ length: 300 }, () => ({ _tag: "TextDelta", text: "second " }) as const)
          ],
          { chunkDelay: "10 millis" }
        )
      )
    )
  )

  it.effect("an interruption keeps the parts that it kept before", () =>
    Effect.gen(function* () {
      const { events, fiber } = yield* beginRun(agent, 400)
      yield* Fiber.interrupt(fiber)
      const last = yield* lastOf("t")
      assert.strictEqual(Message.text(last!), saidIn(events))
      assert.notInclude(yield* tagsOf("t"), "Part")
    }).pipe(makeModel(slowly))
  )
})

/** A store of which the answers to parts go wrong as `fail` says. */
const shaky = (fail: (isPart: boolean) => "well" | "refused" | "lost" | "hangs") =>
  Layer.effect(
    SessionStore.SessionStore,
    Effect.map(SessionStore.SessionStore, (store): SessionStore.Service => ({
      ...store,
      append: (threadId, batch) => {
        const isPart = batch.entries.some(({ entry }) => entry._tag === "Part")
        const unavailable = SessionError.make("append", threadId, { _tag: "Unavailable", problem: "it is away" })
        switch (fail(isPart)) {
          case "well":
            return store.append(threadId, batch)
          case "refused":
            return Effect.fail(unavailable)
          case "lost":
            return Effect.andThen(store.append(threadId, batch), Effect.fail(unavailable))
          case "hangs":
            return Effect.never
        }
      }
    }))
  ).pipe(Layer.provide(MemorySessions.layer))

const onShaky = (fail: Parameters<typeof shaky>[0], ...turns: ReadonlyArray<TestChatModel.Turn>) =>
  Effect.provide(
    Layer.merge(
      SessionStore.journalWith({ parts: true }).pipe(Layer.provideMerge(shaky(fail))),
      TestChatModel.script(turns)
    )
  )

describe("a store that does not take parts", () => {
  it.effect("stops nothing: there is one warning, and the message is stored", () =>
    Effect.gen(function* () {
      const { events, fiber } = yield* beginRun(agent, 900)
      yield* Fiber.join(fiber)
      const warnings = events.filter((event) => event._tag === "Warning" && event.code === "parts-not-stored")
      assert.strictEqual(warnings.length, 1)
      assert.strictEqual(Message.text((yield* lastOf("t"))!), words.join(""))
    }).pipe(onShaky((isPart) => (isPart ? "refused" : "well"), slowly))
  )

  it.effect("or that does not answer, slows nothing, and gets one part at a time", () => {
    let parts = 0
    return Effect.gen(function* () {
      const { events, fiber } = yield* beginRun(agent, 610)
      assert.strictEqual(saidIn(events), words.join(""))
      assert.strictEqual(parts, 1)
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(Message.text((yield* lastOf("t"))!), words.join(""))
    }).pipe(onShaky((isPart) => (isPart && ++parts > 0 ? "hangs" : "well"), slowly))
  })

  it.effect("or whose answers are lost, doubles nothing and loses nothing", () =>
    Effect.gen(function* () {
      const check = (fates: ReadonlyArray<"well" | "refused" | "lost">, millis: number) => {
        let at = 0
        return Effect.gen(function* () {
          const { events, fiber } = yield* beginRun(agent, millis)
          const last = yield* lastOf("t")
          if (Message.isPartial(last)) assert.isTrue(saidIn(events).startsWith(Message.text(last)))
          yield* TestClock.adjust("2 seconds")
          yield* Fiber.join(fiber)
          const { messages = [] } = (yield* SessionStore.checkpoint("t")) ?? {}
          assert.deepStrictEqual(messages.map(Message.text), ["go", words.join("")])
          assert.notInclude(yield* tagsOf("t"), "Part")
        }).pipe(onShaky((isPart) => (isPart ? (fates[at++ % fates.length] ?? "well") : "well"), slowly))
      }
      const fates = FastCheck.array(FastCheck.constantFrom("well", "refused", "lost"), { minLength: 1, maxLength: 6 })
      for (const [fate, millis] of FastCheck.sample(
        FastCheck.tuple(fates, FastCheck.integer({ min: 50, max: 590 })),
        scaled(12)
      )) {
        yield* check(fate, millis)
      }
    })
  )

  it.effect("somebody who writes meanwhile ends the parts and the run, as without them", () =>
    Effect.gen(function* () {
      const { events, fiber } = yield* beginRun(agent, 200)
      const store = yield* SessionStore.SessionStore
      const leaf = yield* store.leaf("t")
      yield* store.append("t", {
        leaf: leaf.id,
        entries: [{ id: "x", entry: { _tag: "Message", message: Message.human("me first") } }]
      })
      for (let at = 0; at < 200; at++) yield* TestClock.adjust("5 millis")
      const exit = yield* Effect.result(Fiber.join(fiber))
      assert.isTrue(Result.isFailure(exit) && exit.failure._tag === "AgentError")
      assert.strictEqual(events.filter((event) => event._tag === "Warning").length, 1)
      assert.strictEqual((yield* store.leaf("t")).id, "x")
    }).pipe(makeModel(slowly))
  )
})

describe("parts as they are read", () => {
  const pieces = FastCheck.array(FastCheck.string({ unit: "binary", maxLength: 20 }), { maxLength: 12 })

  it("any text comes back whole up to the cut, with overlaps and half characters", () => {
    const back = (text: string, length: number) => text.slice(text.length - length)
    FastCheck.assert(
      FastCheck.property(pieces, pieces, (text, args) => {
        const parts: Array<Part> = []
        let [said, raw] = ["", ""]
        for (let n = 0; n < Math.max(text.length, args.length); n++) {
          const overlap = Math.min(said.length, n % 3)
          const [more = "", written = ""] = [text[n], args[n]]
          const own = [
            { _tag: "Text", from: said.length - overlap, text: back(said, overlap) + more },
            { _tag: "Call", id: "__proto__", name: "constructor", from: raw.length, text: written }
          ] as const
          parts.push({ _tag: "Part", turn: "x", model: "m", pieces: own })
          said += more
          raw += written
        }
        const message = partial(parts)
        assert.strictEqual(message === undefined ? "" : Message.text(message), said)
        assert.strictEqual(message?.malformedToolCalls[0]?.raw ?? "", raw)
      }),
      { numRuns: scaled(200) }
    )
  })

  it.effect("with any other entries stored meanwhile, a crash at any point finds all parts before it", () =>
    Effect.gen(function* () {
      const store = yield* SessionStore.SessionStore
      const journal = makeJournal(store, { parts: true })
      const steps = FastCheck.array(FastCheck.constantFrom("part", "part", "state", "message", "restart", "failed"), {
        maxLength: 20
      })
      for (const [n, all] of FastCheck.sample(steps, scaled(60)).entries()) {
        const thread = yield* journal.open(`t${n}`)
        let [said, turn] = ["", 0]
        const messages: Array<string> = []
        const begin = thread.append([
          { _tag: "RunStarted", runId: "r", agent: "a" },
          { _tag: "Message", message: Message.human("go") }
        ])
        yield* begin
        messages.push("go")
        for (const [at, step] of all.entries()) {
          if (step === "part") {
            const pieces = [{ _tag: "Text", from: said.length, text: `${at} ` } as const]
            yield* thread.part!({ _tag: "Part", turn: `${turn}`, model: "m", pieces })
            said += `${at} `
          }
          if (step === "state") yield* thread.append([{ _tag: "State", slot: "s", value: at }])
          if (step === "restart") {
            turn++
            if (said !== "") {
              const pieces = [{ _tag: "Text", from: 0, text: "x" } as const]
              yield* thread.part!({ _tag: "Part", turn: `${turn}`, model: "m", pieces })
              said = "x"
            }
          }
          if (step === "message") {
            yield* thread.append([
              { _tag: "Message", message: Message.ai(`${at}`) },
              { _tag: "Message", message: Message.human("on") }
            ])
            messages.push(`${at}`, "on")
          }
          if (step === "failed") {
            yield* thread.append([{ _tag: "RunSettled", runId: "r", outcome: "failed" }])
            yield* thread.append([{ _tag: "RunStarted", runId: "r", agent: "a" }])
          }
          if (step === "message" || step === "failed") [said, turn] = ["", turn + 1]
          const foundMessages = (yield* SessionStore.checkpoint(`t${n}`))?.messages ?? []
          assert.deepStrictEqual(foundMessages.map(Message.text), said === "" ? messages : [...messages, said])
          assert.strictEqual(Message.isPartial(foundMessages.at(-1)), said !== "")
          // Another process reads what the store remembers of the thread.
          const read = yield* loadThread({ ...store }, `t${n}`)
          assert.deepStrictEqual(read.checkpoint?.messages, foundMessages)
        }
      }
    }).pipe(Effect.provide(MemorySessions.layer))
  )

  it.effect("half of a character waits for the other half", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const { fiber } = yield* beginRun(agent, 100)
      assert.strictEqual(Message.text((yield* lastOf("t"))!), "a")
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.interrupt(fiber)
    }).pipe(makeModel(TestChatModel.hangAfter([{ _tag: "TextDelta", text: "a\ud83d" }])))
  )
})
