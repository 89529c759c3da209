import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Stream } from "effect"
import { Agent, Approval, Message, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { Branch, Chat, MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"

const texts = (messages: ReadonlyArray<Message.Message>) => messages.map((message) => Message.text(message))
const agent = Agent.make({ name: "a", prompt: "" })

/** An agent whose tool waits until it is let go on. */
const waiting = Effect.map(Effect.all([Deferred.make<void>(), Deferred.make<void>()]), ([begun, go]) => ({
  begun,
  go,
  agent: Agent.make({
    name: "a",
    prompt: "",
    tools: [
      Tool.make("wait", {
        description: "",
        parameters: {},
        execute: () => Effect.as(Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(go)), "done")
      })
    ]
  })
}))
const wait = TestChatModel.calls([{ name: "wait", arguments: {} }])

describe("Chat", () => {
  it.effect("each turn goes on with the one before, in this chat and in the next", () =>
    Effect.gen(function* () {
      const chat = yield* Chat.make(agent, "t", { metadata: { title: "first" } })
      assert.deepStrictEqual(yield* chat.history, [])
      assert.strictEqual((yield* chat.send("one")).text, "1")
      const events = yield* Stream.runCollect(chat.stream("two"))
      assert.strictEqual(events.at(-1)?._tag, "RunCompleted")
      const again = yield* Chat.make(agent, "t", { metadata: { title: "second" } })
      yield* again.send("three")
      assert.deepStrictEqual(texts(yield* again.history), ["one", "1", "two", "2", "three", "3"])
      const store = yield* SessionStore.SessionStore
      const { items } = yield* store.list({ where: { title: "first" } })
      assert.deepStrictEqual(
        items.map(({ threadId }) => threadId),
        ["t"],
        "metadata of a thread that is there are left alone"
      )
    }).pipe(Effect.provide([TestChatModel.script(["1", "2", "3"]), MemorySessions.layer]))
  )

  it.effect("tells its status: empty, done, failed, and imported conversations", () =>
    Effect.gen(function* () {
      const chat = yield* Chat.make(agent, "t")
      assert.deepStrictEqual(yield* chat.status, { state: "empty", pending: [] })
      yield* chat.send("one")
      assert.strictEqual((yield* chat.status).state, "done")
      yield* Effect.flip(chat.send("two"))
      assert.strictEqual((yield* chat.status).state, "unfinished")
      const store = yield* SessionStore.SessionStore
      for (const [threadId, messages, state] of [
        ["asked", [Message.human("a")], "unfinished"],
        ["answered", [Message.human("a"), Message.ai("b")], "done"]
      ] as const) {
        yield* store.create({ threadId })
        const entries = messages.map((message) => ({ id: message.id, entry: { _tag: "Message" as const, message } }))
        yield* store.append(threadId, { leaf: null, entries })
        assert.strictEqual((yield* (yield* Chat.make(agent, threadId)).status).state, state)
      }
    }).pipe(
      Effect.provide([
        TestChatModel.script(["1", TestChatModel.fail({ _tag: "Authentication" })]),
        MemorySessions.layer
      ])
    )
  )

  it.effect("begins anew by reset, and goes on from a summary by compact; earlier messages stay in the thread", () =>
    Effect.gen(function* () {
      const chat = yield* Chat.make(agent, "t")
      assert.strictEqual(yield* chat.compact(Branch.summarizer), undefined)
      yield* chat.send("one")
      yield* chat.reset
      assert.deepStrictEqual(yield* chat.history, [])
      yield* chat.send("two")
      assert.include(yield* chat.compact(Branch.summarizer), "> a summary")
      yield* chat.send("three")
      const [first, ...rest] = texts(yield* chat.history)
      assert.include(first, "> a summary")
      assert.deepStrictEqual(rest, ["three", "4"])
      const store = yield* SessionStore.SessionStore
      for (const word of ["one", "two"]) {
        const { items } = yield* store.search(word)
        assert.strictEqual(items.length, 1, word)
      }
    }).pipe(Effect.provide([TestChatModel.script(["1", "2", "a summary", "4"]), MemorySessions.layer]))
  )

  it.effect("neither resets nor compacts while a turn is at work", () =>
    Effect.gen(function* () {
      const { agent: slow, begun, go } = yield* waiting
      const chat = yield* Chat.make(slow, "t", { busy: "refuse" })
      const turn = yield* Effect.forkChild(chat.send("one"))
      yield* Deferred.await(begun)
      assert.strictEqual((yield* Effect.flip(chat.reset))._tag, "ChatBusy")
      assert.strictEqual((yield* Effect.flip(chat.compact(Branch.summarizer)))._tag, "ChatBusy")
      yield* Deferred.succeed(go, undefined)
      assert.strictEqual((yield* Fiber.join(turn)).text, "end")
    }).pipe(Effect.provide([TestChatModel.script([wait, "end"]), MemorySessions.layer]))
  )

  it.effect("a turn waits for the one before it", () =>
    Effect.gen(function* () {
      const { agent: slow, begun, go } = yield* waiting
      const chat = yield* Chat.make(slow, "t")
      const first = yield* Effect.forkChild(chat.send("one"))
      yield* Deferred.await(begun)
      const second = yield* Effect.forkChild(Stream.runDrain(chat.stream("two")))
      const third = yield* Effect.forkChild(chat.send("three"))
      yield* Effect.yieldNow
      assert.notInclude(texts(yield* chat.history), "two")
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.joinAll([first, second, third])
      assert.deepStrictEqual(texts(yield* chat.history), ["one", "", "done", "1", "two", "2", "three", "3"])
    }).pipe(Effect.provide([TestChatModel.script([wait, "1", "2", "3"]), MemorySessions.layer]))
  )

  it.effect("a turn is refused during another one, and taken after it, however that ended", () =>
    Effect.gen(function* () {
      const { agent: slow, begun } = yield* waiting
      const chat = yield* Chat.make(slow, "t", { busy: "refuse" })
      const first = yield* Effect.forkChild(chat.send("one"))
      yield* Deferred.await(begun)
      const error = yield* Effect.flip(chat.send("two"))
      assert.strictEqual(error._tag, "ChatBusy")
      assert.strictEqual((yield* Effect.flip(Stream.runDrain(chat.stream("two"))))._tag, "ChatBusy")
      yield* Fiber.interrupt(first)
      assert.strictEqual((yield* chat.send("three")).text, "3")
      const left = chat.stream("four").pipe(
        Stream.takeUntil((event) => event._tag === "TextDelta"),
        Stream.runDrain
      )
      yield* left
      assert.strictEqual((yield* chat.send("five")).text, "5")
    }).pipe(Effect.provide([TestChatModel.script([wait, "3", "4", "5"]), MemorySessions.layer]))
  )

  it.effect("a suspended turn goes on with a decision", () =>
    Effect.gen(function* () {
      const remove = Tool.make("remove", { description: "", parameters: {}, execute: () => Effect.succeed("removed") })
      const careful = Agent.make({
        name: "a",
        prompt: "",
        tools: [remove],
        middleware: [HumanInTheLoop.make({ tools: { remove: true } })]
      })
      const chat = yield* Chat.make(careful, "t")
      const { pending } = yield* chat.send("one")
      const decisions = pending.map((request) => Approval.approve(request))
      yield* chat.resume({ decisions })
      assert.deepStrictEqual(texts(yield* chat.history), ["one", "", "removed", "ok"])
    }).pipe(
      Effect.provide([
        TestChatModel.script([TestChatModel.calls([{ name: "remove", arguments: {} }]), "ok"]),
        MemorySessions.layer
      ])
    )
  )

  it.effect("a chat whose thread another process wrote to meanwhile gets a conflict", () =>
    Effect.gen(function* () {
      const { agent: slow, begun, go } = yield* waiting
      const chat = yield* Chat.make(slow, "t")
      const first = yield* Effect.forkChild(Effect.flip(chat.send("one")))
      yield* Deferred.await(begun)
      const store = yield* SessionStore.SessionStore
      const { id } = yield* store.leaf("t")
      const entry = { _tag: "Message", message: Message.human("two") } as const
      yield* store.append("t", { leaf: id, entries: [{ id: "elsewhere", entry }] })
      yield* Deferred.succeed(go, undefined)
      const error = yield* Fiber.join(first)
      assert(error._tag === "AgentError" && error.reason._tag === "Thread")
      assert.strictEqual(error.reason.error.reason._tag, "Conflict")
    }).pipe(Effect.provide([TestChatModel.script([wait]), MemorySessions.layer]))
  )
})
