import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Agent, AgentEvent, type ChatModel, Message, Tool } from "effect-deepagents"
import { ResponseCache } from "effect-deepagents/middleware"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import { KeyValueStore } from "effect/persistence"
import { TestClock } from "effect/testing"
import { agentWith, prompt } from "./run.ts"

/** A store that can be looked into. */
const shelf = () => {
  const entries = new Map<string, string>()
  const layer = Layer.succeed(
    KeyValueStore.KeyValueStore,
    KeyValueStore.makeStringOnly({
      get: (key) => Effect.sync(() => entries.get(key)),
      set: (key, value) => Effect.sync(() => void entries.set(key, value)),
      remove: (key) => Effect.sync(() => void entries.delete(key)),
      clear: Effect.sync(() => entries.clear()),
      size: Effect.sync(() => entries.size),
      keys: Effect.sync(() => [...entries.keys()])
    })
  )
  return { entries, layer }
}

const counting = (answer: (index: number) => TestChatModel.Turn, options?: TestChatModel.Options) => {
  const asked: Array<ChatModel.ModelRequest> = []
  const layer = TestChatModel.reactive((request) => {
    asked.push(request)
    return answer(asked.length - 1)
  }, options)
  return { asked, layer }
}

const usage = { inputTokens: 10, outputTokens: 5 }

describe("ResponseCache", () => {
  it.effect("answers the second time from the store, without usage, and says so", () =>
    Effect.gen(function* () {
      const { entries, layer: store } = shelf()
      const { asked, layer } = counting(() => TestChatModel.text(["a ", "b"], { usage, reasoning: "hm" }))
      const agent = agentWith(ResponseCache.make())
      const once = yield* Agent.run(agent, prompt).pipe(Effect.provide([layer, store]))
      const { events } = yield* AgentTest.collect(agent, prompt).pipe(Effect.provide([layer, store]))
      assert.strictEqual(asked.length, 1)
      assert.strictEqual(entries.size, 1)
      assert.strictEqual(once.usage.inputTokens, 10)
      const last = events.at(-1)
      assert.isTrue(last?._tag === "RunCompleted" && last.usage.inputTokens === 0)
      const said = events.flatMap((event) => {
        if (event._tag === "TextDelta" || event._tag === "ReasoningDelta") return [event.text]
        return event._tag === "Custom" ? [event.name] : []
      })
      assert.deepStrictEqual(said, ["response-cache", "hm", "a b"])
      const messages = events.flatMap((event) => (event._tag === "MessageAppended" ? [event.message] : []))
      assert.notStrictEqual(messages.at(-1)?.id, once.messages.at(-1)?.id)
      assert.isTrue(events.every((event) => Schema.is(Schema.Json)(AgentEvent.encode(event))))
    })
  )

  it.effect("recognises a run with tools with any ids of its calls", () =>
    Effect.gen(function* () {
      const { layer: store } = shelf()
      let ran = 0
      const look = Tool.make("look", {
        description: "Looks",
        parameters: { at: Schema.String },
        execute: ({ at }) => Effect.sync(() => `${at}: ${++ran > 0}`)
      })
      const { asked, layer } = counting((index) =>
        index === 0 ? TestChatModel.calls([{ name: "look", arguments: { at: "x" } }]) : TestChatModel.text("done")
      )
      const agent = Agent.make({ name: "a", prompt: "", tools: [look], middleware: [ResponseCache.make()] })
      for (let times = 0; times < 3; times++) {
        const { text } = yield* Agent.run(agent, prompt).pipe(Effect.provide([layer, store]))
        assert.strictEqual(text, "done")
      }
      assert.deepStrictEqual([asked.length, ran], [2, 3])
    })
  )

  it.effect("asks anew for anything that the model is told differently", () =>
    Effect.gen(function* () {
      const { layer: store } = shelf()
      const { asked, layer } = counting(() => TestChatModel.text("x"))
      const other = counting(() => TestChatModel.text("x"), { modelId: "other" })
      const cache = ResponseCache.make()
      const tool = Tool.make("t", { description: "", parameters: {}, execute: () => Effect.succeed("") })
      const agents = [
        Agent.make({ name: "a", prompt: "1", middleware: [cache] }),
        Agent.make({ name: "a", prompt: "2", middleware: [cache] }),
        Agent.make({ name: "a", prompt: "1", middleware: [cache], tools: [tool] })
      ]
      const inputs = [prompt, `${prompt}.`, [Message.human(prompt, { images: [{ url: "https://a.example/" }] })]]
      for (let times = 0; times < 2; times++) {
        for (const agent of agents) {
          for (const input of inputs) yield* Agent.run(agent, input).pipe(Effect.provide([layer, store]))
          yield* Agent.run(agent, prompt).pipe(Effect.provide([other.layer, store]))
        }
      }
      assert.deepStrictEqual([asked.length, other.asked.length], [9, 3])
    })
  )

  it.effect("keeps no partial answer, and no answer for which a provider may have acted", () =>
    Effect.gen(function* () {
      const { entries, layer: store } = shelf()
      const hosted = [
        { _tag: "ToolCallStart", id: "1", name: "web_search", providerExecuted: true },
        { _tag: "TurnDone", message: Message.ai("found") }
      ] as const
      const turns = [
        TestChatModel.fail({ _tag: "Overloaded" }, { after: "So" }),
        TestChatModel.text("So", { stopReason: "refusal" }),
        TestChatModel.text("So", { stopReason: "contentFilter" }),
        TestChatModel.text("So", { stopReason: "length" }),
        TestChatModel.parts(hosted)
      ]
      const { asked, layer } = counting((index) => turns[index] ?? TestChatModel.parts(hosted))
      const agent = agentWith(ResponseCache.make())
      for (const _ of turns) yield* Effect.exit(Agent.run(agent, prompt).pipe(Effect.provide([layer, store])))
      assert.strictEqual(entries.size, 0)
      const allowing = agentWith(ResponseCache.make({ providerTools: true }))
      for (let times = 0; times < 2; times++) {
        yield* Agent.run(allowing, prompt).pipe(Effect.provide([layer, store]))
      }
      assert.strictEqual(asked.length, turns.length + 1)
    })
  )

  it.effect("keeps an answer for the given time, and compares the given parts", () =>
    Effect.gen(function* () {
      const { layer: store } = shelf()
      const { asked, layer } = counting(() => TestChatModel.text("x"))
      const agent = agentWith(ResponseCache.make({ ttl: "1 hour" }))
      const ask = Agent.run(agent, prompt).pipe(Effect.provide([layer, store]))
      yield* ask
      yield* TestClock.adjust("59 minutes")
      yield* ask
      assert.strictEqual(asked.length, 1)
      yield* TestClock.adjust("1 minute")
      yield* ask
      yield* ask
      assert.strictEqual(asked.length, 2)
      const never = agentWith(ResponseCache.make({ when: () => false }))
      yield* Agent.run(never, prompt).pipe(Effect.provide([layer, store]))
      assert.strictEqual(asked.length, 3)
    })
  )

  it.effect("keeps neither questions nor a key", () =>
    Effect.gen(function* () {
      const { entries, layer: store } = shelf()
      const { layer } = counting(() => TestChatModel.text("Emma is by Jane Austen."))
      const agent = Agent.make({ name: "a", prompt: "The door code is kolibri.", middleware: [ResponseCache.make()] })
      yield* Agent.run(agent, "My key is sk-0123456789abcdef").pipe(Effect.provide([layer, store]))
      const kept = JSON.stringify([...entries])
      for (const secret of ["kolibri", "sk-0", "0123456789abcdef"]) assert.notInclude(kept, secret)
      assert.include(kept, "Austen")
    })
  )

  it.effect("a store that fails, or holds anything, costs a question and no more", () =>
    Effect.gen(function* () {
      const { entries, layer: store } = shelf()
      const { asked, layer } = counting(() => TestChatModel.text("x"))
      const agent = agentWith(ResponseCache.make())
      yield* Agent.run(agent, prompt).pipe(Effect.provide([layer, store]))
      const [key = ""] = entries.keys()
      const garbage = [
        "",
        "{",
        "null",
        "{}",
        '{"at":1}',
        '{"at":0,"message":{"v":1,"role":"human","id":"","content":[]}}'
      ]
      for (const entry of garbage) {
        entries.set(key, entry)
        assert.strictEqual((yield* Agent.run(agent, prompt).pipe(Effect.provide([layer, store]))).text, "x")
      }
      assert.strictEqual(asked.length, garbage.length + 1)

      const broken = (method: string) =>
        Effect.fail(new KeyValueStore.KeyValueStoreError({ method, key: "k", message: "disk full" }))
      const down = Layer.succeed(
        KeyValueStore.KeyValueStore,
        KeyValueStore.makeStringOnly({
          get: () => broken("get"),
          set: () => broken("set"),
          remove: () => broken("remove"),
          clear: broken("clear"),
          size: broken("size"),
          keys: broken("keys")
        })
      )
      const { events } = yield* AgentTest.collect(agent, prompt).pipe(Effect.provide([layer, down]))
      const warnings = events.flatMap((event) => (event._tag === "Warning" ? [event.code] : []))
      assert.deepStrictEqual(warnings, ["response-cache", "response-cache"])
      assert.strictEqual(events.at(-1)?._tag, "RunCompleted")
    })
  )

  it.live("asked twice at once, it gives both an answer, and later one of them", () =>
    Effect.gen(function* () {
      const { layer: store } = shelf()
      const { asked, layer } = counting((index) => TestChatModel.text(`${index}`, { delay: "1 millis" }))
      const agent = agentWith(ResponseCache.make())
      const ask = Effect.map(Agent.run(agent, prompt), ({ text }) => text)
      const answers = yield* Effect.all([ask, ask], { concurrency: 2 }).pipe(Effect.provide([layer, store]))
      assert.deepStrictEqual(answers.toSorted(), ["0", "1"])
      assert.include(answers, yield* ask.pipe(Effect.provide([layer, store])))
      assert.strictEqual(asked.length, 2)
    })
  )
})
