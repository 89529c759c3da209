import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Latch, Layer, Option, Schema } from "effect"
import { Agent, AgentState, Approval, Message, Middleware, SessionError, Tool, ToolContext } from "effect-deepagents"
import { DurableAgent, Wait } from "effect-deepagents/durable"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import { WorkflowEngine } from "effect/workflow"

const places = Layer.mergeAll(WorkflowEngine.layerMemory, MemorySessions.layer)

const counter = (name: string, annotations: Tool.Annotations = {}) => {
  const ran: Array<number> = []
  const tool = Tool.make(name, {
    description: name,
    parameters: { n: Schema.Int },
    annotations,
    execute: ({ n }) => Effect.sync(() => (ran.push(n), `${name} ${n}`))
  })
  return { ran, tool }
}

const calls = (...wanted: ReadonlyArray<readonly [string, number]>) =>
  TestChatModel.calls(wanted.map(([name, n]) => ({ name, arguments: { n } })))

const messagesOf = (threadId: string) =>
  Effect.map(SessionStore.checkpoint(threadId), (checkpoint) => checkpoint?.messages ?? [])

/** What the thread waits for, when it is something else than before. */
const askThread = (threadId: string, before?: string) =>
  Effect.andThen(
    Effect.promise(() => new Promise((resolve) => setImmediate(resolve))),
    DurableAgent.pending(threadId)
  ).pipe(
    Effect.flatMap(([request]) =>
      request === undefined || request.id === before ? Effect.fail("not yet") : Effect.succeed(request)
    ),
    Effect.retry({ times: 1_000 })
  )

const sent = { threadId: "t", inputId: "1", input: "go" }

describe("DurableAgent", () => {
  it.effect("an input is taken once: the same id gives the same outcome, and asks nothing again", () =>
    Effect.gen(function* () {
      const { ran, tool } = counter("pay")
      const durable = DurableAgent.make({ name: "d", agent: Agent.make({ name: "a", prompt: "", tools: [tool] }) })
      yield* Effect.gen(function* () {
        const first = yield* DurableAgent.execute(durable, sent)
        const second = yield* DurableAgent.execute(durable, { ...sent, input: "other words" })
        assert.deepStrictEqual(second, first)
        assert.strictEqual(first.output, "done")
        assert.strictEqual(first.stopReason, "completed")
        assert.deepStrictEqual(ran, [7])
        assert.strictEqual((yield* TestChatModel.requests).length, 2)
        const third = yield* DurableAgent.execute(durable, { ...sent, inputId: "2", input: "more" })
        assert.strictEqual(third.text, "more done")
        const messages = yield* messagesOf("t")
        assert.deepStrictEqual(AgentTest.pairingProblems(messages), [])
        assert.deepStrictEqual(
          messages.map(({ role }) => role),
          ["human", "ai", "tool", "ai", "human", "ai"]
        )
      }).pipe(Effect.provide(DurableAgent.layer(durable)))
    }).pipe(Effect.provide([places, TestChatModel.script([calls(["pay", 7]), "done", "more done"])]))
  )

  it.effect("refuses an input and an outcome that are too large to be read again, before they are stored", () =>
    Effect.gen(function* () {
      const durable = DurableAgent.make({ name: "d", agent: Agent.make({ name: "a", prompt: "" }) })
      yield* Effect.gen(function* () {
        const large = { ...sent, input: "x".repeat(17_000_000) }
        for (const attempt of [
          Effect.asVoid(DurableAgent.execute(durable, large)),
          Effect.asVoid(DurableAgent.start(durable, large)),
          // Its text is there twice in an outcome: as text and as output.
          Effect.asVoid(DurableAgent.execute(durable, sent))
        ]) {
          const error = yield* Effect.flip(attempt)
          assert.isTrue(error._tag === "AgentError" && error.reason._tag === "Thread")
          if (error._tag === "AgentError" && error.reason._tag === "Thread") {
            assert.strictEqual(error.reason.error.reason._tag, "TooLarge")
          }
        }
        assert.strictEqual((yield* DurableAgent.execute(durable, { ...sent, inputId: "2" })).text, "short")
      }).pipe(Effect.provide(DurableAgent.layer(durable)))
    }).pipe(Effect.provide([places, TestChatModel.script(["y".repeat(9_000_000), "short"])]))
  )

  it.effect("a run waits for a decision without running, and goes on when it is there", () =>
    Effect.gen(function* () {
      const { ran, tool } = counter("pay")
      const agent = Agent.make({
        name: "a",
        prompt: "",
        tools: [tool],
        middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
      })
      const durable = DurableAgent.make({ name: "d", agent })
      yield* Effect.gen(function* () {
        const executionId = yield* DurableAgent.start(durable, sent)
        const result = yield* Effect.repeat(DurableAgent.poll(durable, executionId), { until: Option.isSome })
        assert.strictEqual(Option.getOrThrow(result)._tag, "Suspended")
        const pending = yield* DurableAgent.pending("t")
        const [one, two] = pending
        assert(one !== undefined && two !== undefined)
        const early = yield* Effect.flip(DurableAgent.decide(durable, sent, [Approval.approve({ id: "nobody" })]))
        assert.include(early.message, "nothing waits")
        yield* DurableAgent.decide(durable, sent, [Approval.approve(one)])
        yield* DurableAgent.decide(durable, sent, [Approval.reject(two, "no")])
        const outcome = yield* DurableAgent.execute(durable, sent)
        assert.strictEqual(outcome.text, "done")
        assert.deepStrictEqual(ran, [1])
        assert.deepStrictEqual(yield* DurableAgent.pending("t"), [])
        assert.deepStrictEqual(AgentTest.pairingProblems(yield* messagesOf("t")), [])
      }).pipe(Effect.provide(DurableAgent.layer(durable)))
    }).pipe(Effect.provide([places, TestChatModel.script([calls(["pay", 1], ["pay", 2]), "done"])]))
  )

  it.effect("an agent waits by a durable clock; a request that expires is asked about again", () =>
    Effect.gen(function* () {
      const { ran, tool } = counter("pay")
      const agent = Agent.make({
        name: "a",
        prompt: "",
        tools: [tool],
        middleware: [Wait.make(), HumanInTheLoop.make({ tools: { pay: true }, expiresIn: "1 hour" })]
      })
      const durable = DurableAgent.make({ name: "d", agent })
      yield* Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(DurableAgent.execute(durable, sent))
        const waits = yield* askThread("t")
        assert.strictEqual(waits.toolName, "wait")
        yield* TestClock.adjust("1 day")
        const [first] = yield* DurableAgent.pending("t")
        assert.strictEqual(first?.toolName, "wait", "two days are not over")
        yield* TestClock.adjust("25 hours")
        const pays = yield* askThread("t", waits.id)
        assert.strictEqual(pays.toolName, "pay")
        yield* TestClock.adjust("2 hours")
        const again = yield* askThread("t", pays.id)
        assert.strictEqual(again.toolName, "pay")
        yield* DurableAgent.decide(durable, sent, [Approval.approve(again)])
        yield* TestClock.adjust("2 hours")
        assert.strictEqual((yield* Fiber.join(fiber)).text, "done")
        assert.deepStrictEqual(ran, [3])
      }).pipe(Effect.provide(DurableAgent.layer(durable)))
    }).pipe(
      Effect.provide([
        places,
        TestChatModel.script([
          TestChatModel.calls([{ name: "wait", arguments: { seconds: 2 * 24 * 3600 } }]),
          calls(["pay", 3]),
          "done"
        ])
      ])
    )
  )

  it.effect("passes an interruption to the tool, and leaves a valid thread", () =>
    Effect.gen(function* () {
      const begun = yield* Latch.make()
      let cleaned = false
      const slow = Tool.make("slow", {
        description: "",
        parameters: {},
        execute: () =>
          Effect.andThen(
            begun.open,
            Effect.onInterrupt(Effect.never, () => Effect.sync(() => (cleaned = true)))
          )
      })
      const durable = DurableAgent.make({ name: "d", agent: Agent.make({ name: "a", prompt: "", tools: [slow] }) })
      yield* Effect.gen(function* () {
        const executionId = yield* DurableAgent.start(durable, sent)
        yield* begun.await
        yield* DurableAgent.interrupt(durable, executionId)
        assert.isTrue(cleaned)
        assert.deepStrictEqual(AgentTest.pairingProblems(yield* messagesOf("t")), [])
      }).pipe(Effect.provide(DurableAgent.layer(durable)))
    }).pipe(Effect.provide([places, TestChatModel.script([TestChatModel.calls([{ name: "slow", arguments: {} }])])]))
  )

  it.effect("keeps failures typed, also of middleware", () =>
    Effect.gen(function* () {
      class Broke extends Schema.TaggedError<Broke>()("Broke", { why: Schema.String }) {}
      const agent = Agent.make({
        name: "a",
        prompt: "",
        middleware: [Middleware.make<Broke>({ name: "m", beforeModel: () => Effect.fail(new Broke({ why: "so" })) })]
      })
      const durable = DurableAgent.make({ name: "d", agent, error: Broke })
      const error = yield* Effect.flip(DurableAgent.execute(durable, sent)).pipe(
        Effect.provide(DurableAgent.layer(durable))
      )
      assert(error._tag === "Broke")
      assert.strictEqual(error.why, "so")
      const failing = DurableAgent.make({ name: "f", agent: Agent.make({ name: "a", prompt: "" }) })
      const exit = yield* Effect.exit(DurableAgent.execute(failing, { ...sent, threadId: "u" })).pipe(
        Effect.provide(DurableAgent.layer(failing))
      )
      assert(Exit.isFailure(exit))
      assert.include(JSON.stringify(exit.cause), "Authentication")
    }).pipe(Effect.provide([places, TestChatModel.script([TestChatModel.fail({ _tag: "Authentication" })])]))
  )

  it.effect.each(["native", "tool"] as const)(
    "an answer in a schema (%s) comes back as its type, by an execution of its own and read from the thread",
    (structuredOutput) =>
      Effect.gen(function* () {
        const output = Schema.Struct({ total: Schema.Finite })
        const agent = Agent.make({ name: "a", prompt: "", output })
        const one = DurableAgent.make({ name: "one", agent, output })
        const two = DurableAgent.make({ name: "two", agent, output })
        const first = yield* DurableAgent.execute(one, sent).pipe(Effect.provide(DurableAgent.layer(one)))
        assert.deepStrictEqual(first.output, { total: 3 })
        const read = yield* DurableAgent.execute(two, sent).pipe(Effect.provide(DurableAgent.layer(two)))
        assert.deepStrictEqual(read.output, first.output)
        assert.strictEqual((yield* TestChatModel.requests).length, 1)
      }).pipe(
        Effect.provide([
          places,
          TestChatModel.script(
            [
              structuredOutput === "native"
                ? '{"total":3}'
                : TestChatModel.calls([{ name: "final_answer", arguments: { total: 3 } }])
            ],
            { structuredOutput }
          )
        ])
      )
  )

  it.effect.each(["native", "tool"] as const)(
    "an answer that was accepted with its form mended (%s) is read from the thread as it was given",
    (structuredOutput) =>
      Effect.gen(function* () {
        const output = Schema.Array(Schema.Finite)
        const agent = Agent.make({ name: "a", prompt: "", output })
        const one = DurableAgent.make({ name: "one", agent, output })
        const two = DurableAgent.make({ name: "two", agent, output })
        const first = yield* DurableAgent.execute(one, sent).pipe(Effect.provide(DurableAgent.layer(one)))
        assert.deepStrictEqual(first.output, [1, 2])
        const read = yield* DurableAgent.execute(two, sent).pipe(Effect.provide(DurableAgent.layer(two)))
        assert.deepStrictEqual(read, first)
      }).pipe(
        Effect.provide([
          places,
          TestChatModel.script(
            [
              structuredOutput === "native"
                ? '```json\n{"value":["1",2]}\n```'
                : TestChatModel.calls([{ name: "final_answer", arguments: { value: ["1", 2] } }])
            ],
            { structuredOutput }
          )
        ])
      )
  )

  /** Threads whose append of this number is refused, and all that follow until the thread is opened again. */
  const refusing = (number: number) =>
    Layer.effect(
      SessionStore.SessionStore,
      Effect.gen(function* () {
        const store = yield* SessionStore.SessionStore
        let appends = 0
        let isLost = false
        return {
          ...store,
          info: (threadId) =>
            Effect.suspend(() => {
              isLost = false
              return store.info(threadId)
            }),
          append: (threadId, batch) =>
            Effect.suspend(() => {
              isLost = isLost || ++appends === number
              const reason = { _tag: "Conflict", expected: batch.leaf, found: "another" } as const
              return isLost ? Effect.fail(SessionError.make("append", threadId, reason)) : store.append(threadId, batch)
            })
        } satisfies SessionStore.Service
      })
    ).pipe(Layer.provide(MemorySessions.layer))

  const ticking = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(effect)
      while (fiber.pollUnsafe() === undefined) {
        yield* TestClock.adjust("1 second")
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      }
      return yield* Fiber.join(fiber)
    })

  // 1: the input; 2: the turn with its calls; 3: their results; 4: the answer.
  it.effect.each([1, 2, 3, 4])(
    "a step that could not be stored (%i) is gone on from: no turn is paid for twice, no call is made twice",
    (number) =>
      Effect.gen(function* () {
        const one = counter("pay")
        const two = counter("ship")
        const agent = Agent.make({ name: "a", prompt: "", tools: [one.tool, two.tool] })
        const durable = DurableAgent.make({ name: "d", agent })
        yield* Effect.gen(function* () {
          const outcome = yield* ticking(DurableAgent.execute(durable, sent))
          assert.strictEqual(outcome.text, "done")
          assert.deepStrictEqual([one.ran, two.ran], [[1], [2]])
          assert.strictEqual((yield* TestChatModel.requests).length, 2)
          const messages = yield* messagesOf("t")
          assert.deepStrictEqual(
            messages.map((message) => (message.role === "tool" ? Message.text(message) : message.role)),
            ["human", "ai", "pay 1", "ship 2", "ai"]
          )
        }).pipe(Effect.provide(DurableAgent.layer(durable)))
      }).pipe(
        Effect.provide([
          Layer.mergeAll(WorkflowEngine.layerMemory, refusing(number)),
          TestChatModel.script([calls(["pay", 1], ["ship", 2]), "done"])
        ])
      )
  )

  it.effect("a call that wrote to the state is not said to be done when its state is lost", () =>
    Effect.gen(function* () {
      const seen = AgentState.slot("seen", { schema: Schema.Finite, initial: 0 })
      const write = (name: string, annotations: Tool.Annotations) =>
        Tool.make(name, {
          description: "",
          parameters: {},
          annotations,
          execute: Effect.fnUntraced(function* () {
            const { state } = yield* ToolContext.ToolContext
            yield* state.update(seen, (n) => n + 1)
            return "written"
          })
        })
      const agent = Agent.make({
        name: "a",
        prompt: "",
        tools: [write("once", {}), write("often", { idempotent: true })],
        toolConcurrency: 1
      })
      const durable = DurableAgent.make({ name: "d", agent })
      yield* Effect.gen(function* () {
        yield* ticking(DurableAgent.execute(durable, sent))
        const checkpoint = yield* SessionStore.checkpoint("t")
        assert.deepStrictEqual(
          checkpoint?.messages.flatMap((message) => (message.role === "tool" ? [message.isError] : [])),
          [true, false]
        )
        assert.strictEqual(checkpoint?.state["seen"], 1)
      }).pipe(Effect.provide(DurableAgent.layer(durable)))
    }).pipe(
      Effect.provide([
        Layer.mergeAll(WorkflowEngine.layerMemory, refusing(3)),
        TestChatModel.script([
          TestChatModel.calls([
            { name: "once", arguments: {} },
            { name: "often", arguments: {} }
          ]),
          "done"
        ])
      ])
    )
  )

  it.effect("a sub-agent inside a call waits for a decision, and goes on in it", () =>
    Effect.gen(function* () {
      const { ran, tool } = counter("pay")
      const child = Agent.make({
        name: "child",
        description: "pays",
        prompt: "",
        tools: [tool],
        middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
      }).pipe(
        Agent.provide(
          TestChatModel.reactive(({ messages }) => (messages.at(-1)?.role === "tool" ? "paid" : calls(["pay", 9])))
        )
      )
      const agent = Agent.make({
        name: "a",
        prompt: "",
        tools: [Agent.asTool(child)],
        middleware: [HumanInTheLoop.make({ tools: {} })]
      })
      const durable = DurableAgent.make({ name: "d", agent })
      yield* Effect.gen(function* () {
        const executing = yield* Effect.forkChild(DurableAgent.execute(durable, sent))
        const request = yield* askThread("t")
        assert.deepStrictEqual([request.toolName, request.path], ["pay", ["a", "child"]])
        yield* DurableAgent.decide(durable, sent, [Approval.approve(request)])
        assert.strictEqual((yield* ticking(Fiber.join(executing))).text, "done")
        assert.deepStrictEqual(ran, [9])
        assert.deepStrictEqual(
          (yield* messagesOf("t")).map((message) => (message.role === "tool" ? Message.text(message) : message.role)),
          ["human", "ai", "paid", "ai"]
        )
      }).pipe(Effect.provide(DurableAgent.layer(durable)))
    }).pipe(
      Effect.provide([
        places,
        TestChatModel.script([TestChatModel.calls([{ name: "child", arguments: { task: "pay 9" } }]), "done"])
      ])
    )
  )

  it.effect("an input that another came after while it waited has its own outcome", () =>
    Effect.gen(function* () {
      const { ran, tool } = counter("pay")
      const agent = Agent.make({
        name: "a",
        prompt: "",
        tools: [tool],
        middleware: [HumanInTheLoop.make({ tools: { pay: true }, expiresIn: "1 hour" })]
      })
      const durable = DurableAgent.make({ name: "d", agent })
      yield* Effect.gen(function* () {
        const first = yield* Effect.forkChild(DurableAgent.execute(durable, sent))
        yield* askThread("t")
        const second = yield* ticking(DurableAgent.execute(durable, { ...sent, inputId: "2", input: "never mind" }))
        assert.strictEqual(second.text, "as you like")
        const before = yield* messagesOf("t")
        yield* TestClock.adjust("2 hours")
        assert.strictEqual((yield* ticking(Fiber.join(first))).text, "may I?")
        assert.deepStrictEqual(yield* messagesOf("t"), before)
        assert.deepStrictEqual(ran, [])
      }).pipe(Effect.provide(DurableAgent.layer(durable)))
    }).pipe(
      Effect.provide([
        places,
        TestChatModel.script([
          TestChatModel.calls([{ name: "pay", arguments: { n: 1 } }], { text: "may I?" }),
          "as you like"
        ])
      ])
    )
  )
})
