/**
 * One run of a process at a time is at work on a thread, whoever begins it.
 */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Logger, Stream } from "effect"
import { Agent, AgentError, type ChatModel, Journal, Message, Tool } from "effect-deepagents"
import { Chat, MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"
import { makeJournal } from "../../src/sessions/journal.ts"

const agent = Agent.make({ name: "a", prompt: "" })

const echo = TestChatModel.reactive(({ messages }) => {
  const last = messages.findLast(({ role }) => role === "human")
  return `re: ${last === undefined ? "" : Message.text(last)}`
})

const sessions = SessionStore.journal.pipe(Layer.provideMerge(MemorySessions.layer))
const refusing = SessionStore.journalWith({ busy: "refuse" }).pipe(Layer.provideMerge(MemorySessions.layer))

const texts = (threadId: string) =>
  Effect.map(SessionStore.checkpoint(threadId), (checkpoint) =>
    (checkpoint?.messages ?? []).map((message) => Message.text(message))
  )

const reasonOf = (error: unknown): string =>
  error instanceof AgentError.AgentError && error.reason._tag === "Thread"
    ? error.reason.error.reason._tag
    : String(error)

/** An agent with a tool that does something while its run is at work. */
const doing = <E, R>(work: Effect.Effect<string, E, R>) =>
  Agent.make({
    name: "outer",
    prompt: "",
    tools: [Tool.make("work", { description: "", parameters: {}, execute: () => Effect.orDie(work) })]
  })
const work = TestChatModel.calls([{ name: "work", arguments: {} }])

describe("turns of a thread", () => {
  it.effect("requests with a chat each, and runs, queue: each reads the messages of the one before", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      yield* Effect.all(
        [
          Effect.flatMap(Chat.make(agent, "t"), (chat) => chat.send("a")),
          Effect.flatMap(Chat.make(agent, "t"), (chat) => Stream.runDrain(chat.stream("b"))),
          Agent.run(agent, "c", { threadId: "t" }),
          Stream.runDrain(Agent.stream(agent, "d", { threadId: "t" })),
          Effect.scoped(Effect.flatMap(Agent.start(agent, "e", { threadId: "t" }), (handle) => handle.await))
        ],
        { concurrency: "unbounded" }
      ).pipe(Effect.provide(Logger.layer([Logger.make(({ message }) => void log.push(String(message)))])))
      const said = yield* texts("t")
      assert.strictEqual(said.length, 10)
      for (let index = 0; index < 10; index += 2) assert.strictEqual(said[index + 1], `re: ${said[index]}`)
      assert.deepStrictEqual(log, [])
    }).pipe(Effect.provide([echo, sessions]))
  )

  it.effect("a run that must not wait fails before anything is asked or stored", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const go = yield* Deferred.make<void>()
      const slow = doing(Effect.as(Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(go)), "ok"))
      const first = yield* Effect.forkChild(Agent.run(slow, "one", { threadId: "t" }))
      yield* Deferred.await(begun)
      const before = yield* texts("t")
      assert.strictEqual(reasonOf(yield* Effect.flip(Agent.run(agent, "two", { threadId: "t" }))), "Busy")
      const chat = yield* Chat.make(agent, "t", { busy: "refuse" })
      assert.strictEqual((yield* Effect.flip(chat.send("three")))._tag, "ChatBusy")
      assert.strictEqual((yield* Effect.flip(Stream.runDrain(chat.stream("three"))))._tag, "ChatBusy")
      assert.deepStrictEqual(yield* texts("t"), before)
      assert.strictEqual((yield* Agent.run(agent, "x", { threadId: "other" })).text, "elsewhere")
      yield* Deferred.succeed(go, undefined)
      assert.strictEqual((yield* Fiber.join(first)).text, "done")
      assert.strictEqual((yield* chat.send("four")).text, "last")
    }).pipe(Effect.provide([TestChatModel.script([work, "elsewhere", "done", "last"]), refusing]))
  )

  it.effect("a turn is given back however its run ends, and by who waited and left", () =>
    Effect.gen(function* () {
      const never = doing(Effect.never)
      for (let round = 0; round < 3; round++) {
        const first = yield* Effect.forkChild(Agent.run(never, "one", { threadId: "t" }))
        for (let step = 0; step < round * 5; step++) yield* Effect.yieldNow
        const waiting = yield* Effect.forkChild(Agent.run(agent, "left", { threadId: "t" }))
        yield* Effect.yieldNow
        yield* Fiber.interrupt(waiting)
        yield* Fiber.interrupt(first)
      }
      yield* Stream.runDrain(Stream.take(Agent.stream(never, "one", { threadId: "t" }), 2))
      yield* Effect.flip(Agent.run(agent, "one", { threadId: "t", history: [] }))
      assert.strictEqual((yield* Agent.run(agent, "last", { threadId: "t" })).text, "re: last")
    }).pipe(
      Effect.provide([
        TestChatModel.reactive(({ messages, tools }) => {
          const last = messages.findLast(({ role }) => role === "human")
          return tools.length > 0 ? work : `re: ${last === undefined ? "" : Message.text(last)}`
        }),
        sessions
      ])
    )
  )

  it.live("returns a turn when storing the end of its run fails", () =>
    Effect.gen(function* () {
      const journal = makeJournal(yield* SessionStore.SessionStore)
      const breaking: Journal.Journal["Service"] = {
        ...journal,
        open: (threadId) =>
          Effect.map(journal.open(threadId), (thread) => ({ ...thread, append: () => Effect.die("the disk is gone") }))
      }
      const broken = Effect.provideService(Agent.run(agent, "one", { threadId: "t" }), Journal.Journal, breaking)
      assert.isTrue(Exit.hasDies(yield* Effect.exit(broken)))
      assert.strictEqual((yield* Agent.run(agent, "two", { threadId: "t" })).text, "re: two")
    }).pipe(Effect.timeout("5 seconds"), Effect.provide([echo, sessions]))
  )

  const inner: Record<
    string,
    Effect.Effect<string, unknown, ChatModel.ChatModel | Journal.Journal | SessionStore.SessionStore>
  > = {
    "a run": Effect.map(Effect.flip(Agent.run(agent, "in", { threadId: "t" })), reasonOf),
    "a chat": Effect.map(
      Effect.flip(Effect.flatMap(Chat.make(agent, "t"), (chat) => chat.send("in"))),
      (error) => error._tag
    ),
    "a run in a run of another thread": Effect.map(
      Effect.flip(
        Effect.flatMap(
          Agent.run(doing(Effect.map(Effect.flip(Agent.run(agent, "in", { threadId: "t" })), reasonOf)), "between", {
            threadId: "u"
          }),
          ({ messages }) => Effect.fail(Message.text(messages[2] ?? Message.human("")))
        )
      ),
      String
    )
  }
  for (const [what, nested] of Object.entries(inner)) {
    it.live(`${what} inside of a run on the same thread is refused, it does not wait for ever`, () =>
      Effect.gen(function* () {
        const { messages } = yield* Agent.run(doing(nested), "out", { threadId: "t" })
        assert.include(["Busy", "ChatBusy"], Message.text(messages[2] ?? Message.human("")))
      }).pipe(
        Effect.timeout("5 seconds"),
        Effect.provide([
          TestChatModel.reactive(({ messages }) => (messages.at(-1)?.role === "tool" ? "done" : work)),
          sessions
        ])
      )
    )
  }

  it.live("two runs that begin runs on each other's threads don't wait for each other for ever", () =>
    Effect.gen(function* () {
      const both = [yield* Deferred.make<void>(), yield* Deferred.make<void>()] as const
      const crossing = (mine: 0 | 1, other: string) =>
        doing(
          Effect.gen(function* () {
            yield* Deferred.succeed(both[mine], undefined)
            yield* Effect.all(both.map((one) => Deferred.await(one)))
            return yield* Effect.match(Agent.run(agent, "in", { threadId: other }), {
              onFailure: reasonOf,
              onSuccess: ({ text }) => text
            })
          })
        )
      const results = yield* Effect.all(
        [Agent.run(crossing(0, "u"), "out", { threadId: "t" }), Agent.run(crossing(1, "t"), "out", { threadId: "u" })],
        { concurrency: 2 }
      )
      const said = results.map(({ messages }) => Message.text(messages[2] ?? Message.human("")))
      assert.deepStrictEqual(said.toSorted(), ["Busy", "in there"])
    }).pipe(
      Effect.timeout("5 seconds"),
      Effect.provide([
        TestChatModel.reactive(({ messages, tools }) =>
          tools.length === 0 ? "in there" : messages.at(-1)?.role === "tool" ? "done" : work
        ),
        sessions
      ])
    )
  )

  it.live("of two runs that wait for the same thread, a leaving one does not hide the other", () =>
    Effect.gen(function* () {
      const left = yield* Deferred.make<void>()
      const run = (threadId: string) =>
        Effect.match(Agent.run(agent, "in", { threadId }), { onFailure: reasonOf, onSuccess: ({ text }) => text })
      const two = doing(
        Effect.gen(function* () {
          const leaving = yield* Effect.forkChild(run("u"))
          const staying = yield* Effect.forkChild(run("u"))
          for (let step = 0; step < 50; step++) yield* Effect.yieldNow
          yield* Fiber.interrupt(leaving)
          yield* Deferred.succeed(left, undefined)
          return yield* Fiber.join(staying)
        })
      )
      const one = doing(Effect.andThen(Deferred.await(left), run("t")))
      const results = yield* Effect.all(
        [
          Agent.run(one, "out", { threadId: "u" }),
          Effect.andThen(Effect.yieldNow, Agent.run(two, "out", { threadId: "t" }))
        ],
        { concurrency: 2 }
      )
      const said = results.map(({ messages }) => Message.text(messages[2] ?? Message.human("")))
      assert.deepStrictEqual(said, ["Busy", "in there"])
    }).pipe(
      Effect.timeout("5 seconds"),
      Effect.provide([
        TestChatModel.reactive(({ messages, tools }) =>
          tools.length === 0 ? "in there" : messages.at(-1)?.role === "tool" ? "done" : work
        ),
        sessions
      ])
    )
  )

  it.live("work that a run leaves behind may use its thread afterwards", () =>
    Effect.gen(function* () {
      const done = yield* Deferred.make<string, unknown>()
      const over = yield* Deferred.make<void>()
      const later = Effect.andThen(Deferred.await(over), Agent.run(agent, "later", { threadId: "t" }))
      const leaves = doing(
        Effect.as(
          Effect.forkDetach(
            Effect.onExit(
              Effect.map(later, ({ text }) => text),
              (exit) => Deferred.done(done, exit)
            )
          ),
          "ok"
        )
      )
      yield* Agent.run(leaves, "out", { threadId: "t" })
      yield* Deferred.succeed(over, undefined)
      assert.strictEqual(yield* Deferred.await(done), "said")
    }).pipe(Effect.timeout("5 seconds"), Effect.provide([TestChatModel.script([work, "done", "said"]), sessions]))
  )
})
