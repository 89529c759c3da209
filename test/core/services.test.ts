import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, FileSystem, Layer, Logger, Path, Schema, Stream } from "effect"
import { Agent, ChatModel, type Json, Message, MessageLog, ModelError, Tool } from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"
import * as TestJournal from "./journal.ts"

const step = Tool.make("step", {
  description: "",
  parameters: { n: Schema.Int },
  execute: ({ n }) => Effect.succeed(`did ${n}`)
})

const agent = Agent.make({ name: "logged", prompt: "", tools: [step] })

describe("message log", () => {
  it.effect("memory: every message at its append, with its path; sub-agents too", () => {
    const entries: Array<MessageLog.Entry> = []
    return Effect.gen(function* () {
      const parent = Agent.make({ name: "parent", prompt: "", tools: [Agent.asTool(agent)] })
      yield* Agent.run(parent, "go", { threadId: "t" })
      assert.deepStrictEqual(
        entries.map(({ context, message }) => `${context.path.join("/")} ${context.round} ${message.role}`),
        [
          "parent 0 human",
          "parent 1 ai",
          "parent/logged 0 human",
          "parent/logged 1 ai",
          "parent/logged 1 tool",
          "parent/logged 2 ai",
          "parent 1 tool",
          "parent 2 ai"
        ]
      )
      assert.isTrue(entries.every(({ context }) => context.threadId === "t"))
    }).pipe(
      Effect.provide([
        MessageLog.layerMemory(entries),
        TestJournal.layer({}),
        TestChatModel.script([
          TestChatModel.calls([{ name: "logged", arguments: { task: "t" } }]),
          TestChatModel.calls([{ name: "step", arguments: { n: 1 } }]),
          "child done",
          "done"
        ])
      ])
    )
  })

  it.effect("memory: one agent's own log, by Agent.provide", () => {
    const entries: Array<MessageLog.Entry> = []
    return Effect.gen(function* () {
      yield* Agent.run(Agent.provide(agent, MessageLog.layerMemory(entries)), "go")
      assert.strictEqual(entries.length, 2)
    }).pipe(Effect.provide(TestChatModel.script(["done"])))
  })

  it.effect("memory: an interrupted run's partial answer is logged too", () => {
    const entries: Array<MessageLog.Entry> = []
    return Effect.gen(function* () {
      const running = yield* Agent.stream(agent, "go").pipe(
        Stream.takeUntil((event) => event._tag === "TextDelta"),
        Stream.runDrain,
        Effect.forkChild
      )
      yield* Fiber.join(running)
      assert.deepStrictEqual(
        entries.map(({ message }) => Message.text(message)),
        ["go", "half"]
      )
    }).pipe(Effect.provide([MessageLog.layerMemory(entries), TestChatModel.script([TestChatModel.hangAfter("half")])]))
  })

  it.effect("JSONL: appends one line a message, readable by Message.decode", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const path = yield* Path.Path
        const file = path.join(yield* fs.makeTempDirectoryScoped(), "log.jsonl")
        yield* fs.writeFileString(file, '{"before":true}\n')
        const runs = Effect.all([Agent.run(agent, "one"), Agent.run(agent, "two")], { concurrency: 2 })
        yield* runs.pipe(
          Effect.provide([
            MessageLog.layerJsonl(file),
            TestChatModel.reactive((request) =>
              request.messages.length === 1
                ? TestChatModel.calls([{ name: "step", arguments: { n: 1 } }])
                : TestChatModel.text("done\nwith a line")
            )
          ])
        )
        const lines = (yield* fs.readFileString(file)).trimEnd().split("\n")
        assert.strictEqual(lines.length, 1 + 2 * 4)
        const entries = lines.slice(1).map((line) => JSON.parse(line) as Record<string, unknown>)
        const messages = yield* Effect.forEach(entries, (entry) => Message.decode(entry["message"]))
        assert.strictEqual(messages.filter((message) => message.role === "ai").length, 4)
        assert.deepStrictEqual(Object.keys(entries[0] ?? {}), ["at", "agent", "path", "runId", "round", "message"])
      })
    ).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("JSONL: a message that can't be written as JSON is left out, and the run goes on", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const file = `${yield* fs.makeTempDirectoryScoped()}/log.jsonl`
        let deep: Json.Json = 1
        for (let level = 0; level < 100_000; level++) deep = [deep]
        const turn = TestChatModel.text("said", { providerData: { deep } })
        const result = yield* Agent.run(agent, "go").pipe(
          Effect.provide([MessageLog.layerJsonl(file), TestChatModel.script([turn])])
        )
        assert.strictEqual(result.text, "said")
        assert.strictEqual((yield* fs.readFileString(file)).trimEnd().split("\n").length, 1)
      })
    ).pipe(Effect.provide(NodeServices.layer), Effect.provide(Logger.layer([])))
  )

  it.effect("JSONL: a file that can't be opened is a typed error before anything runs", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(
        Agent.run(agent, "go").pipe(Effect.provide(MessageLog.layerJsonl("/no/such/folder/log.jsonl")))
      )
      assert.strictEqual(error._tag, "PlatformError")
    }).pipe(Effect.provide([NodeServices.layer, TestChatModel.script([])]), Effect.provide(Logger.layer([])))
  )
})

describe("ChatModel.fromAsyncIterable", () => {
  const onError = (cause: unknown) =>
    new ModelError.ModelError({ provider: "p", reason: { _tag: "Transport" }, detail: String(cause) })

  it.effect("gives everything in order, and the source is never far ahead of a slow reader", () =>
    Effect.gen(function* () {
      let produced = 0
      let consumed = 0
      let most = 0
      const source = async function* () {
        for (; produced < 5000; produced++) yield produced
      }
      yield* ChatModel.fromAsyncIterable(source, onError).pipe(
        Stream.rechunk(1),
        Stream.runForEach((n) =>
          Effect.suspend(() => {
            assert.strictEqual(n, consumed)
            consumed++
            most = Math.max(most, produced - consumed)
            return consumed % 50 === 0
              ? Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))
              : Effect.void
          })
        )
      )
      assert.strictEqual(consumed, 5000)
      assert.isBelow(most, 1200)
    })
  )

  it.effect("maps an error of the source, after the parts before it", () =>
    Effect.gen(function* () {
      const seen: Array<number> = []
      const source = async function* () {
        yield 1
        throw new Error("reset")
      }
      const error = yield* ChatModel.fromAsyncIterable(source, onError).pipe(
        Stream.runForEach((n) => Effect.sync(() => seen.push(n))),
        Effect.flip
      )
      assert.deepStrictEqual(seen, [1])
      assert.include(error.detail, "reset")
    })
  )

  it.effect("leaving early aborts the signal and returns the iterator; reading to the end does neither", () =>
    Effect.gen(function* () {
      const run = (take: number) =>
        Effect.gen(function* () {
          const seen = { aborted: false, returned: false }
          const source = (signal: AbortSignal) => {
            signal.addEventListener("abort", () => (seen.aborted = true))
            let n = 0
            return {
              [Symbol.asyncIterator]: () => ({
                next: () =>
                  Promise.resolve(
                    n < 3 ? { done: false as const, value: n++ } : { done: true as const, value: undefined }
                  ),
                return: () => {
                  seen.returned = true
                  return Promise.resolve({ done: true as const, value: undefined })
                }
              })
            }
          }
          yield* ChatModel.fromAsyncIterable(source, onError).pipe(
            Stream.rechunk(1),
            Stream.take(take),
            Stream.runDrain
          )
          return seen
        })
      assert.deepStrictEqual(yield* run(10), { aborted: false, returned: false })
    })
  )

  it.effect("sources that wait for nothing, one after another, do not keep the event loop from its turn", () =>
    Effect.gen(function* () {
      const source = async function* () {
        yield 1
      }
      const turnOfEventLoop = Effect.promise(() => new Promise<string>((resolve) => setImmediate(resolve, "turned")))
      const reading = Effect.forever(Stream.runDrain(ChatModel.fromAsyncIterable(source, onError)), {
        disableYield: true
      })
      assert.strictEqual(yield* Effect.race(reading, turnOfEventLoop), "turned")
    })
  )

  it.effect("joins parts that a source sends without waiting", () =>
    Effect.gen(function* () {
      const words = async function* () {
        yield* ["one", "two", "three"]
      }
      const shouted = async function* () {
        for await (const word of words()) yield word.toUpperCase()
      }
      const pieces = yield* Stream.runCollect(Stream.chunks(ChatModel.fromAsyncIterable(shouted, onError)))
      assert.deepStrictEqual(pieces, [["ONE", "TWO", "THREE"]])
    })
  )

  it.effect("a source that never answers is left at once when the reader is interrupted", () =>
    Effect.gen(function* () {
      let aborted = false
      const source = (signal: AbortSignal) => {
        signal.addEventListener("abort", () => (aborted = true))
        return { [Symbol.asyncIterator]: () => ({ next: () => new Promise<IteratorResult<number>>(() => {}) }) }
      }
      const running = yield* Effect.forkChild(Stream.runDrain(ChatModel.fromAsyncIterable(source, onError)), {
        startImmediately: true
      })
      yield* Fiber.interrupt(running)
      assert.isTrue(aborted)
    })
  )
})

describe("providing a model to one agent", () => {
  it.effect("a sub-agent runs on its own model, its parent on the other", () =>
    Effect.gen(function* () {
      const child = Agent.make({ name: "child", description: "", prompt: "" }).pipe(
        Agent.provide(TestChatModel.script(["from the small model"], { modelId: "small" }))
      )
      const parent = Agent.make({ name: "parent", prompt: "", tools: [Agent.asTool(child)] })
      const events = yield* Stream.runCollect(Agent.stream(parent, "go"))
      const models = events.flatMap((event) => (event._tag === "RunStarted" ? [event.model] : []))
      assert.deepStrictEqual(models, ["big", "small"])
    }).pipe(
      Effect.provide(
        TestChatModel.script([TestChatModel.calls([{ name: "child", arguments: { task: "t" } }]), "done"], {
          modelId: "big"
        })
      )
    )
  )

  it.effect("a layer that can't be built fails the run with its own error", () =>
    Effect.gen(function* () {
      const broken = Layer.effect(ChatModel.ChatModel, Effect.fail("no key" as const))
      const error = yield* Effect.flip(Agent.run(Agent.provide(agent, broken), "go"))
      assert.strictEqual(error, "no key")
    })
  )
})
