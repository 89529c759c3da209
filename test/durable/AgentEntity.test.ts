import { assert, describe, it } from "@effect/vitest"
import { DateTime, Effect, Exit, Fiber, Latch, Layer, Schema, Stream } from "effect"
import { Agent, Approval, Message, Middleware, StopWhen, Tool, ToolOutput } from "effect-deepagents"
import { AgentClient, AgentEntity, type ThreadEvent, Wait } from "effect-deepagents/durable"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { SessionStore } from "effect-deepagents/sessions"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import { Sharding } from "effect/cluster"
import { TestClock } from "effect/testing"
import { makeSpanRecorder } from "../spans.ts"
import { runner, ticking } from "./entities.ts"

const pay = (ran: Array<number>) =>
  Tool.make("pay", {
    description: "Pays",
    parameters: { n: Schema.Int },
    execute: ({ n }) => Effect.sync(() => (ran.push(n), `paid ${n}`))
  })

const calls = (name: string, args: Record<string, number>) => TestChatModel.calls([{ name, arguments: args }])

const roles = (messages: ReadonlyArray<Message.Message>) => messages.map(({ role }) => role)

describe("AgentEntity", () => {
  it.effect("an input is taken once, inputs queue, and the history is the conversation", () =>
    Effect.gen(function* () {
      const ran: Array<number> = []
      const entity = AgentEntity.make({
        name: "a",
        agent: Agent.make({ name: "a", prompt: "", tools: [pay(ran)] })
      })
      yield* Effect.gen(function* () {
        const client = yield* AgentClient.of(entity, "t")
        assert.deepStrictEqual(yield* client.history, [])
        const all = yield* Effect.all(
          [client.send("one", { id: "1" }), client.send("two", { id: "2" }), client.send("one", { id: "1" })],
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(
          all.map(({ text }) => text),
          ["first", "second", "first"]
        )
        assert.deepStrictEqual(ran, [7])
        const history = yield* client.history
        assert.deepStrictEqual(roles(history), ["human", "ai", "tool", "ai", "human", "ai"])
        assert.deepStrictEqual(AgentTest.pairingProblems(history), [])
        const other = yield* AgentClient.of(entity, "u")
        assert.deepStrictEqual(yield* other.history, [])
      }).pipe(ticking, Effect.provide(runner(entity)))
    }).pipe(Effect.provide(TestChatModel.script([calls("pay", { n: 7 }), "first", "second"])))
  )

  it.effect("makes a span of each request to a thread, without its content", () =>
    Effect.gen(function* () {
      const { spans, tracer } = makeSpanRecorder()
      const entity = AgentEntity.make({ name: "a", agent: Agent.make({ name: "a", prompt: "" }) })
      yield* Effect.gen(function* () {
        const client = yield* AgentClient.of(entity, "t")
        yield* client.send("my secret")
        yield* client.history
      }).pipe(ticking, Effect.withTracer(tracer), Effect.provide(runner(entity)))
      const own = spans.filter(({ name }) => name.startsWith("AgentClient."))
      assert.deepStrictEqual(
        own.map(({ attributes, name }) => [name, attributes.get("thread.id")]),
        [
          ["AgentClient.send", "t"],
          ["AgentClient.history", "t"]
        ]
      )
      assert.isFalse(own.some(({ attributes }) => JSON.stringify([...attributes]).includes("secret")))
    }).pipe(Effect.provide(TestChatModel.script(["done"])))
  )

  it.effect("a thread waits for a decision, and the same decision counts once", () =>
    Effect.gen(function* () {
      const ran: Array<number> = []
      const entity = AgentEntity.make({
        name: "a",
        agent: Agent.make({
          name: "a",
          prompt: "",
          tools: [pay(ran)],
          middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
        })
      })
      yield* Effect.gen(function* () {
        const client = yield* AgentClient.of(entity, "t")
        const first = yield* client.send("go", { id: "1" })
        assert.strictEqual(first.stopReason, "suspended")
        assert.isUndefined(first.output)
        assert.deepStrictEqual(ran, [])
        const wrong = yield* Effect.flip(client.decide([Approval.approve({ id: "nobody" })]))
        assert.strictEqual(wrong._tag, "AgentError")
        const decisions = first.pending.map((request) => Approval.approve(request))
        const second = yield* client.decide(decisions)
        assert.strictEqual(second.text, "done")
        assert.deepStrictEqual(yield* client.decide(decisions), second)
        // Sent in other words, it is late.
        assert.strictEqual((yield* client.decide(decisions, { id: "again" })).text, "done")
        assert.deepStrictEqual(ran, [5])
      }).pipe(ticking, Effect.provide(runner(entity)))
    }).pipe(Effect.provide(TestChatModel.script([calls("pay", { n: 5 }), "done"])))
  )

  it.effect("an agent that waits is woken when its time has come", () =>
    Effect.gen(function* () {
      const entity = AgentEntity.make({
        name: "a",
        agent: Agent.make({ name: "a", prompt: "", middleware: [Wait.make()] })
      })
      yield* Effect.gen(function* () {
        const client = yield* AgentClient.of(entity, "t")
        const first = yield* ticking(client.send("go", { id: "1" }))
        assert.strictEqual(first.stopReason, "suspended")
        yield* TestClock.adjust("59 minutes")
        assert.deepStrictEqual(roles(yield* ticking(client.history)), ["human", "ai"])
        yield* TestClock.adjust("2 minutes")
        const history = yield* ticking(
          Effect.repeat(Effect.delay(client.history, "1 second"), { until: (messages) => messages.length === 4 })
        )
        assert.deepStrictEqual(roles(history), ["human", "ai", "tool", "ai"])
        assert.include(Message.text(history[2] ?? Message.human("")), "1970-01-01T01:0")
      }).pipe(Effect.provide(runner(entity)))
    }).pipe(Effect.provide(TestChatModel.script([calls("wait", { seconds: 3600 }), "done"])))
  )

  it.effect("a post for a later time is not given before it", () =>
    Effect.gen(function* () {
      const entity = AgentEntity.make({ name: "a", agent: Agent.make({ name: "a", prompt: "" }) })
      yield* Effect.gen(function* () {
        const client = yield* AgentClient.of(entity, "t")
        const now = yield* DateTime.now
        yield* ticking(client.post("later", { id: "1", at: DateTime.add(now, { hours: 1 }) }))
        yield* TestClock.adjust("30 minutes")
        assert.deepStrictEqual(yield* ticking(client.history), [])
        yield* TestClock.adjust("31 minutes")
        assert.strictEqual((yield* ticking(client.send("later", { id: "1" }))).text, "good morning")
      }).pipe(Effect.provide(runner(entity)))
    }).pipe(Effect.provide(TestChatModel.script(["good morning"])))
  )

  it.effect("watches stored events from any step on without gaps, and live events", () =>
    Effect.gen(function* () {
      const begun = yield* Latch.make()
      const watched = yield* Latch.make()
      const look = Tool.make("look", {
        description: "",
        parameters: {},
        execute: () => Effect.andThen(begun.open, Effect.as(watched.await, "seen"))
      })
      const entity = AgentEntity.make({ name: "a", agent: Agent.make({ name: "a", prompt: "", tools: [look] }) })
      yield* Effect.gen(function* () {
        const client = yield* AgentClient.of(entity, "t")
        const sending = yield* Effect.forkChild(client.send("go", { id: "1" }))
        yield* begun.await
        // A reader that leaves takes no events of the others along.
        yield* client.events().pipe(Stream.take(1), Stream.runDrain)
        const seen: Array<ThreadEvent.ThreadEvent> = []
        const watching = yield* client.events().pipe(
          Stream.tap((event) => (event._tag === "Stored" && event.step === 2 ? watched.open : Effect.void)),
          Stream.tap((event) => Effect.sync(() => seen.push(event))),
          Stream.filter((event) =>
            event._tag === "Live" ? event.event._tag === "RunCompleted" : event.entry._tag === "RunSettled"
          ),
          // The one and the other.
          Stream.take(2),
          Stream.runDrain,
          Effect.forkChild
        )
        yield* Fiber.join(sending)
        yield* Fiber.join(watching)
        const stored = seen.flatMap((event) => (event._tag === "Stored" ? [event] : []))
        assert.deepStrictEqual(
          stored.map(({ step }) => step),
          stored.map((_, index) => index + 1)
        )
        assert.isTrue(seen.some((event) => event._tag === "Live" && event.event._tag === "TextDelta"))
        const rest = yield* client.events({ after: 3 }).pipe(Stream.take(stored.length - 3), Stream.runCollect)
        assert.deepStrictEqual(rest, stored.slice(3))
      }).pipe(ticking, Effect.provide(runner(entity)))
    }).pipe(Effect.provide(TestChatModel.script([calls("look", {}), "done"])))
  )

  it.effect("steers and interrupts a run, leaves a valid thread, and goes on with the next input", () =>
    Effect.gen(function* () {
      const begun = yield* Latch.make()
      const slow = Tool.make("slow", {
        description: "",
        parameters: {},
        execute: () => Effect.andThen(begun.open, Effect.never)
      })
      const quick = Tool.make("quick", {
        description: "",
        parameters: {},
        execute: () => Effect.andThen(begun.open, Effect.as(steered.await, "ok"))
      })
      const steered = yield* Latch.make()
      const entity = AgentEntity.make({
        name: "a",
        agent: Agent.make({ name: "a", prompt: "", tools: [slow, quick] })
      })
      const again = AgentEntity.make({ name: "again", agent: entity.agent })
      yield* Effect.gen(function* () {
        const client = yield* AgentClient.of(entity, "t")
        assert.isFalse(yield* client.interrupt)
        assert.strictEqual((yield* Effect.flip(client.steer("hello")))._tag, "NotRunning")
        const first = yield* Effect.forkChild(client.send("go", { id: "1" }))
        yield* begun.await
        yield* client.steer("and this")
        yield* steered.open
        assert.strictEqual((yield* Fiber.join(first)).text, "with this")
        begun.closeUnsafe()
        const second = yield* Effect.forkChild(client.send("on", { id: "2" }))
        yield* begun.await
        assert.isTrue(yield* client.interrupt)
        const outcome = yield* Fiber.join(second)
        assert.strictEqual(outcome.stopReason, "interrupted")
        // It stays so for a later client: nothing continues it.
        const finder = yield* AgentClient.of(again, "t")
        assert.deepStrictEqual(yield* finder.send("on", { id: "2" }), outcome)
        assert.strictEqual((yield* client.send("go on", { id: "3" })).text, "last")
        const history = yield* client.history
        assert.deepStrictEqual(AgentTest.pairingProblems(history), [])
        assert.isTrue(history.some((message) => Message.text(message) === "and this"))
        // Another client reads from the thread, and each input has its own outcome.
        const reader = yield* AgentClient.of(again, "t")
        assert.strictEqual((yield* reader.send("go", { id: "1" })).text, "with this")
        assert.strictEqual((yield* reader.send("go on", { id: "3" })).text, "last")
        assert.deepStrictEqual(yield* client.history, history)
      }).pipe(ticking, Effect.provide(AgentEntity.layer(again).pipe(Layer.provideMerge(runner(entity)))))
    }).pipe(Effect.provide(TestChatModel.script([calls("quick", {}), "with this", calls("slow", {}), "last"])))
  )

  const answer = (value: number) => TestChatModel.calls([{ name: Tool.finalAnswer, arguments: { value } }])
  const said = Message.ai("I look", { toolCalls: [{ id: "c", name: "look", arguments: {} }], stopReason: "toolCalls" })
  const endings: ReadonlyArray<readonly [string, ReadonlyArray<TestChatModel.Turn | string>, object?]> = [
    ["an answer", ["done"]],
    ["an answer without words, after a turn with some", [TestChatModel.message(said), ""]],
    ["the output of a tool", [calls("direct", {})]],
    ["a stop condition", [TestChatModel.message(said)], { stopWhen: [StopWhen.rounds(1)] }],
    ["a limit of rounds", [calls("look", {}), "so far"], { maxRounds: 1 }],
    ["a refusal", [TestChatModel.text("no", { stopReason: "refusal" })]]
  ]
  for (const [what, script, options] of endings) {
    it.effect(`reads the returned outcome from the thread: ${what}`, () =>
      Effect.gen(function* () {
        const tools = [
          Tool.make("look", { description: "", parameters: {}, execute: () => Effect.succeed("seen") }),
          Tool.make("direct", {
            description: "",
            parameters: {},
            execute: () => Effect.succeed(ToolOutput.make("it", { returnDirect: true }))
          })
        ]
        const entity = AgentEntity.make({
          name: "a",
          agent: Agent.make({ name: "a", prompt: "", tools, ...options })
        })
        const again = AgentEntity.make({ name: "again", agent: entity.agent })
        yield* Effect.gen(function* () {
          const outcome = yield* (yield* AgentClient.of(entity, "t")).send("go", { id: "1" })
          assert.deepStrictEqual(yield* (yield* AgentClient.of(again, "t")).send("go", { id: "1" }), outcome)
        }).pipe(ticking, Effect.provide(AgentEntity.layer(again).pipe(Layer.provideMerge(runner(entity)))))
      }).pipe(Effect.provide(TestChatModel.script(script)))
    )
  }

  for (const mode of ["native", "tool"] as const) {
    it.effect(`reads the returned outcome from the thread: an output, ${mode}`, () =>
      Effect.gen(function* () {
        const output = Schema.Struct({ value: Schema.Finite })
        const entity = AgentEntity.make({ name: "a", agent: Agent.make({ name: "a", prompt: "", output }), output })
        const again = AgentEntity.make({ name: "again", agent: entity.agent, output })
        yield* Effect.gen(function* () {
          const outcome = yield* (yield* AgentClient.of(entity, "t")).send("go", { id: "1" })
          assert.deepStrictEqual(outcome.output, { value: 7 })
          assert.deepStrictEqual(yield* (yield* AgentClient.of(again, "t")).send("go", { id: "1" }), outcome)
        }).pipe(ticking, Effect.provide(AgentEntity.layer(again).pipe(Layer.provideMerge(runner(entity)))))
      }).pipe(
        Effect.provide(
          TestChatModel.script([mode === "tool" ? answer(7) : '```json\n{ "value": 7 }\n```'], {
            structuredOutput: mode
          })
        )
      )
    )
  }

  it.effect("who sent may leave: the run goes on", () =>
    Effect.gen(function* () {
      const begun = yield* Latch.make()
      const goOn = yield* Latch.make()
      const slow = Tool.make("slow", {
        description: "",
        parameters: {},
        execute: () => Effect.andThen(begun.open, Effect.as(goOn.await, "ok"))
      })
      const entity = AgentEntity.make({ name: "a", agent: Agent.make({ name: "a", prompt: "", tools: [slow] }) })
      yield* Effect.gen(function* () {
        const client = yield* AgentClient.of(entity, "t")
        const sending = yield* Effect.forkChild(client.send("go", { id: "1" }))
        const watching = yield* Effect.forkChild(Stream.runDrain(client.events()))
        yield* begun.await
        yield* Fiber.interrupt(watching)
        yield* Fiber.interrupt(sending)
        yield* goOn.open
        assert.strictEqual((yield* client.send("go", { id: "1" })).text, "done")
      }).pipe(ticking, Effect.provide(runner(entity)))
    }).pipe(Effect.provide(TestChatModel.script([calls("slow", {}), "done"])))
  )

  it.effect("removes an idle thread from memory, and restores its messages", () =>
    Effect.gen(function* () {
      const entity = AgentEntity.make({ name: "a", agent: Agent.make({ name: "a", prompt: "" }) })
      yield* Effect.gen(function* () {
        const sharding = yield* Sharding.Sharding
        const client = yield* AgentClient.of(entity, "t")
        yield* ticking(client.send("one"))
        assert.strictEqual(yield* sharding.activeEntityCount, 1)
        yield* TestClock.adjust("3 minutes")
        assert.strictEqual(yield* sharding.activeEntityCount, 0)
        yield* ticking(client.send("two"))
        assert.deepStrictEqual(roles(yield* ticking(client.history)), ["human", "ai", "human", "ai"])
      }).pipe(Effect.provide(runner(entity)))
    }).pipe(Effect.provide(TestChatModel.script(["first", "second"])))
  )

  it.effect(
    "a runner that loses the thread to another writer in the middle of a call goes on from the thread's state",
    () =>
      Effect.gen(function* () {
        let ran = 0
        const begun = yield* Latch.make()
        const goOn = yield* Latch.make()
        const slow = Tool.make("slow", {
          description: "",
          parameters: {},
          execute: () =>
            Effect.suspend(() => {
              ran++
              return Effect.andThen(begun.open, Effect.as(goOn.await, "ok"))
            })
        })
        const entity = AgentEntity.make({ name: "a", agent: Agent.make({ name: "a", prompt: "", tools: [slow] }) })
        yield* Effect.gen(function* () {
          const client = yield* AgentClient.of(entity, "t")
          const sending = yield* Effect.forkChild(client.send("go", { id: "1" }))
          yield* begun.await
          const store = yield* SessionStore.SessionStore
          const leaf = yield* store.leaf("t")
          const entry = { _tag: "Compaction", tokensBefore: 2, tokensAfter: 1 } as const
          yield* store.append("t", { leaf: leaf.id, entries: [{ id: "another", entry }] })
          yield* goOn.open
          assert.strictEqual((yield* Fiber.join(sending)).text, "done")
          assert.strictEqual(ran, 1)
          const history = yield* client.history
          assert.deepStrictEqual(
            history.map((message) => (message.role === "tool" ? message.isError : message.role)),
            ["human", "ai", true, "ai"]
          )
        }).pipe(ticking, Effect.provide(runner(entity)))
      }).pipe(Effect.provide(TestChatModel.script([calls("slow", {}), "done"])))
  )

  it.effect("a failure comes back as itself, and the thread goes on with the next input", () =>
    Effect.gen(function* () {
      const entity = AgentEntity.make({ name: "a", agent: Agent.make({ name: "a", prompt: "" }) })
      yield* Effect.gen(function* () {
        const client = yield* AgentClient.of(entity, "t")
        const error = yield* Effect.flip(client.send("one", { id: "1" }))
        assert(error._tag === "ModelError")
        assert.strictEqual(error.reason._tag, "Overloaded")
        assert.strictEqual((yield* Effect.flip(client.send("one", { id: "1" })))._tag, "ModelError")
        assert.strictEqual((yield* client.send("two", { id: "2" })).text, "done")
      }).pipe(ticking, Effect.provide(runner(entity)))
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.fail({ _tag: "Overloaded" }), "done"])))
  )

  it.effect("a run that dies is answered, not begun again", () =>
    Effect.gen(function* () {
      let asked = 0
      const agent = Agent.make({
        name: "a",
        prompt: "",
        middleware: [
          Middleware.make({
            name: "breaks",
            beforeModel: () =>
              Effect.suspend(() => {
                asked++
                return Effect.die(new Error("broken"))
              })
          })
        ]
      })
      const entity = AgentEntity.make({ name: "a", agent })
      yield* Effect.gen(function* () {
        const client = yield* AgentClient.of(entity, "t")
        const exit = yield* Effect.exit(client.send("one", { id: "1" }))
        assert.isTrue(Exit.hasDies(exit))
        yield* TestClock.adjust("1 minute")
        assert.strictEqual(asked, 1)
      }).pipe(ticking, Effect.provide(runner(entity)))
    }).pipe(Effect.provide(TestChatModel.script([])))
  )
})
