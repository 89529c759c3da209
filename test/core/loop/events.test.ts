import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Logger, Ref, Schema, Stream } from "effect"
import { Agent, AgentEvent, ChatModel, Message, Middleware, Tool, ToolContext, ToolOutput } from "effect-deepagents"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { scaled } from "../../scale.ts"

const step = Tool.make("step", {
  description: "One step",
  parameters: { n: Schema.Int },
  execute: ({ n }) => Effect.succeed(`did ${n}`)
})

const stepCall = (n: number) => TestChatModel.calls([{ name: "step", arguments: { n } }])

const tags = (events: ReadonlyArray<AgentEvent.AgentEvent>) => events.map((event) => event._tag)

const inOrder = (events: ReadonlyArray<AgentEvent.AgentEvent>) =>
  assert.deepStrictEqual(
    events.map((event) => event.seq),
    events.map((_, index) => index)
  )

describe("the parts of the context window", () => {
  const lookUp = Tool.make("look", {
    description: "Looks something up",
    parameters: { n: Schema.Int },
    execute: ({ n }) => Effect.succeed(`${n} `.repeat(1_000))
  })
  const looks = (n: number) => TestChatModel.calls([{ name: "look", arguments: { n } }], { text: "one moment" })
  const measured = (events: ReadonlyArray<AgentEvent.AgentEvent>) =>
    events.filter((event) => event._tag === "ContextMeasured")

  it.effect("are reported once a round, and grow by the new messages", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "a", prompt: "You look. ".repeat(50), tools: [lookUp] })
      const { events } = yield* AgentTest.collect(agent, [
        Message.human("Tell me.", { images: [{ url: "https://example.com/a.png" }] }),
        Message.human("By the way", { source: "notice" })
      ])
      const [first, second, third] = measured(events)
      assert.deepStrictEqual(
        measured(events).map((event) => event.round),
        [1, 2, 3]
      )
      assert.isDefined(first)
      assert.isDefined(second)
      assert.isDefined(third)
      for (const { parts, total } of [first, second, third]) {
        assert.strictEqual(
          Object.values(parts).reduce((sum, tokens) => sum + tokens, 0),
          total
        )
      }
      assert.strictEqual(first.window, 64_000)
      assert.isAbove(first.parts.systemPrompt, 100)
      assert.isAbove(first.parts.tools, 15)
      assert.isAbove(first.parts.media, 500)
      assert.isAbove(first.parts.notices, 4)
      assert.deepInclude(first.parts, { ai: 0, toolCalls: 0, toolResults: 0 })
      assert.deepInclude(second.parts, { human: first.parts.human, tools: first.parts.tools })
      assert.isAbove(second.parts.toolResults, 500)
      assert.isAbove(second.parts.toolCalls, 8)
      assert.strictEqual(third.parts.toolCalls, 2 * second.parts.toolCalls)
      assert.strictEqual(third.parts.ai, 2 * second.parts.ai)
    }).pipe(Effect.provide(TestChatModel.script([looks(1), looks(2), "done"], { contextWindowTokens: 64_000 })))
  )

  it.effect("are measured on the request, not on the run's messages: a list from a middleware is measured", () =>
    Effect.gen(function* () {
      const short = Middleware.make({
        name: "short",
        wrapModelCall: (request, next) => next({ ...request, messages: request.messages.slice(-1) })
      })
      const agent = Agent.make({ name: "a", prompt: "", tools: [lookUp], middleware: [short] })
      const { events } = yield* AgentTest.collect(agent, "go")
      assert.deepStrictEqual(
        measured(events).map(({ parts }) => [parts.human > 0, parts.toolCalls, parts.toolResults > 500]),
        [
          [true, 0, false],
          [false, 0, true]
        ]
      )
    }).pipe(Effect.provide(TestChatModel.script([looks(1), "done"])))
  )

  /** A run of so many rounds whose first message counts how often it is read. */
  const runRounds = (rounds: number, look: (event: AgentEvent.Of<"ContextMeasured">) => void) =>
    Effect.gen(function* () {
      let reads = 0
      const block = {
        type: "text" as const,
        get text() {
          reads++
          return "hello"
        }
      }
      const old: Message.Message = { role: "human", id: "old", content: [block] }
      const agent = Agent.make({ name: "a", prompt: "", tools: [lookUp] })
      const events = yield* Stream.runCollect(
        Agent.stream(agent, "go", { history: [old] }).pipe(
          Stream.tap((event) => Effect.sync(() => event._tag === "ContextMeasured" && look(event)))
        )
      )
      return { events: measured(events), reads }
    }).pipe(Effect.provide(TestChatModel.script([...Array.from({ length: rounds }, (_, n) => looks(n)), "done"])))

  it.effect("a message is read for it once, however many rounds follow", () =>
    Effect.gen(function* () {
      const few = yield* runRounds(1, ({ parts }) => assert.isAbove(parts.human, 4))
      const many = yield* runRounds(12, ({ total }) => assert.isAbove(total, 4))
      assert.strictEqual(many.reads, few.reads)
    })
  )

  it.effect("are counted when a reader reads the event, with the numbers of its time", () =>
    Effect.gen(function* () {
      const atOnce: Array<unknown> = []
      const seen = yield* runRounds(3, (event) => atOnce.push(structuredClone(event.parts)))
      const unseen = yield* runRounds(3, () => {})
      assert.isBelow(unseen.reads, seen.reads)
      const late = unseen.events.toReversed().map(({ parts }) => parts)
      assert.deepStrictEqual(late.toReversed(), atOnce)
      assert.deepStrictEqual(
        unseen.events.map(({ total }) => total),
        seen.events.map(({ total }) => total)
      )
      for (const event of unseen.events) {
        const json = JSON.parse(JSON.stringify(event))
        assert.deepStrictEqual(json.parts, { ...event }.parts)
        assert.deepStrictEqual(yield* AgentEvent.decode(AgentEvent.encode(event)), event)
      }
    })
  )

  it.effect("another list is counted anew, though it has the same ends", () =>
    Effect.gen(function* () {
      const history = ["one", "x".repeat(9_000), "three"].map((text) => Message.human(text))
      const short = Middleware.make({
        name: "short",
        wrapModelCall: (request, next, run) =>
          next(
            run.round === 1
              ? request
              : { ...request, messages: request.messages.map((m, at) => (at === 1 ? Message.human("cleared") : m)) }
          )
      })
      const agent = Agent.make({ name: "a", prompt: "", tools: [lookUp], middleware: [short] })
      const { events } = yield* AgentTest.collect(agent, "go", { history })
      const humans = measured(events).map(({ parts }) => parts.human)
      assert.isAbove(humans[0] ?? 0, 1_000)
      assert.isBelow(humans[1] ?? 0, 100)
    }).pipe(Effect.provide(TestChatModel.script([looks(1), "done"])))
  )
})

describe("invariant 3: order", () => {
  it.effect("a run's events, in order, with one terminal event at the end", () =>
    Effect.gen(function* () {
      const { events } = yield* AgentTest.collect(Agent.make({ name: "a", prompt: "", tools: [step] }), "go")
      assert.deepStrictEqual(tags(events), [
        "RunStarted",
        "MessageAppended",
        "RoundStarted",
        "ContextMeasured",
        "ReasoningStarted",
        "ReasoningDelta",
        "ReasoningCompleted",
        "TextDelta",
        "ToolCallDelta",
        "ToolCallDelta",
        "MessageAppended",
        "ToolCalled",
        "ToolCompleted",
        "MessageAppended",
        "RoundCompleted",
        "RoundStarted",
        "ContextMeasured",
        "TextDelta",
        "MessageAppended",
        "RoundCompleted",
        "RunCompleted"
      ])
      inOrder(events)
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([{ name: "step", arguments: { n: 1 } }], { text: "let me see", reasoning: "hm" }),
          "done"
        ])
      )
    )
  )

  it.effect("a reader that stops reading stops the run, with a bounded number of events ahead of it", () =>
    Effect.gen(function* () {
      const said = yield* Ref.make(0)
      const gate = yield* Deferred.make<void>()
      const seen: Array<AgentEvent.AgentEvent> = []
      const endless = TestChatModel.reactive((_, index) => {
        Effect.runSync(Ref.set(said, index))
        return index < 500 ? stepCall(index) : TestChatModel.text("done")
      })
      const agent = Agent.make({ name: "a", prompt: "", tools: [step], maxRounds: 1000 })
      const reading = yield* Agent.stream(agent, "go").pipe(
        Stream.rechunk(1),
        Stream.runForEach((event) =>
          Effect.sync(() => seen.push(event)).pipe(
            Effect.andThen(seen.length === 1 ? Deferred.await(gate) : Effect.void)
          )
        ),
        Effect.provide(endless),
        Effect.forkChild
      )
      for (let tick = 0; tick < 2000; tick++) yield* Effect.yieldNow
      const ahead = yield* Ref.get(said)
      assert.isBelow(ahead, 40)
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(reading)
      assert.strictEqual(yield* Ref.get(said), 500)
      inOrder(seen)
      assert.strictEqual(seen.at(-1)?._tag, "RunCompleted")
    })
  )

  it.effect("operators keep the events of a tag, and the outermost agent's text", () =>
    Effect.gen(function* () {
      const child = Agent.make({ name: "child", description: "", prompt: "CHILD" })
      const agent = Agent.make({ name: "a", prompt: "PARENT", tools: [Agent.asTool(child)] })
      const events = Stream.fromArray((yield* AgentTest.collect(agent, "go")).events)
      const calls = yield* Stream.runCollect(AgentEvent.filter(events, "ToolCalled"))
      assert.deepStrictEqual(
        calls.map((event) => event.toolName),
        ["child"]
      )
      const ends = yield* events.pipe(AgentEvent.filter(["RunStarted", "RunCompleted"]), Stream.runCollect)
      assert.deepStrictEqual(tags(ends), ["RunStarted", "RunStarted", "RunCompleted", "RunCompleted"])
      const text = yield* Stream.mkString(AgentEvent.textDeltas(events))
      assert.strictEqual(text, "let me askdone")
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([{ name: "child", arguments: { task: "x" } }], { text: "let me ask" }),
          "the child's words",
          "done"
        ])
      )
    )
  )

  it.effect("leaving the stream early interrupts the run at once", () =>
    Effect.gen(function* () {
      const released = yield* Deferred.make<void>()
      const slow = Tool.make("slow", {
        description: "",
        parameters: {},
        execute: () => Effect.never.pipe(Effect.ensuring(Deferred.succeed(released, undefined)))
      })
      const first = yield* Agent.stream(Agent.make({ name: "a", prompt: "", tools: [slow] }), "go").pipe(
        Stream.filter((event) => event._tag === "ToolCalled"),
        Stream.runHead
      )
      assert.isTrue(first._tag === "Some")
      assert.isTrue(yield* Deferred.isDone(released))
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.calls([{ name: "slow", arguments: {} }])])))
  )

  it.effect("a failed run says RunFailed last, and the stream fails with the same error", () =>
    Effect.gen(function* () {
      const { error, events } = yield* AgentTest.collect(Agent.make({ name: "a", prompt: "" }), "go")
      assert.isTrue(error?._tag === "ModelError" && error.reason._tag === "Authentication")
      assert.deepStrictEqual(tags(events).slice(-2), ["ContextMeasured", "RunFailed"])
      assert.strictEqual(events.filter(AgentEvent.isTerminal).length, 1)
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.fail({ _tag: "Authentication" })])))
  )

  it.effect("a round has the id of its turn's message, also of a cut-off turn", () =>
    Effect.gen(function* () {
      const agent = Agent.make({
        name: "a",
        prompt: "",
        tools: [Tool.make("look", { description: "", parameters: {}, execute: () => Effect.succeed("seen") })]
      })
      const events = yield* Stream.runCollect(
        Stream.takeUntil(Agent.stream(agent, "go"), (event) => event._tag === "RoundCompleted" && event.round === 2)
      )
      const said = events.flatMap((event) => (event._tag === "RoundStarted" ? [event.messageId] : []))
      const appended = events.flatMap((event) =>
        event._tag === "MessageAppended" && event.message.role === "ai" ? [event.message.id] : []
      )
      assert.strictEqual(said.length, 2)
      assert.deepStrictEqual(said, appended)
      const handle = yield* Agent.start(Agent.make({ name: "a", prompt: "" }), "go")
      const cut: Array<string | undefined> = []
      yield* Stream.runForEach(handle.events, (event) => {
        if (event._tag === "RoundStarted") cut.push(event.messageId)
        if (event._tag === "MessageAppended" && event.message.role === "ai") cut.push(event.message.id)
        return event._tag === "TextDelta" ? handle.interrupt : Effect.void
      }).pipe(Effect.exit)
      assert.strictEqual(cut.length, 2)
      assert.strictEqual(cut[0], cut[1])
    }).pipe(
      Effect.scoped,
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([{ name: "look", arguments: {} }]),
          "done",
          TestChatModel.hangAfter("half a sen")
        ])
      )
    )
  )

  it.effect("a stream that ends before its turn is done is a failure, however much text came", () =>
    Effect.gen(function* () {
      const { error } = yield* AgentTest.collect(Agent.make({ name: "a", prompt: "" }), "go")
      assert.isTrue(error?._tag === "ModelError" && error.reason._tag === "BadResponse")
    }).pipe(
      Effect.provide(TestChatModel.script([TestChatModel.parts([{ _tag: "TextDelta", text: "I was going to" }])]))
    )
  )

  it.effect("a turn ends at its TurnDone: later actions of the source are not awaited", () =>
    Effect.gen(function* () {
      const done = { _tag: "TurnDone" as const, message: Message.ai("all said") }
      const lingering = Layer.succeed(ChatModel.ChatModel, {
        modelId: "lingering",
        provider: "test",
        supportsVision: true,
        contextWindowTokens: undefined,
        makeSession: Effect.succeed({
          nextTurn: () => Stream.concat(Stream.make<[ChatModel.TurnPart]>(done), Stream.never)
        })
      })
      const result = yield* Agent.run(Agent.make({ name: "a", prompt: "" }), "go").pipe(Effect.provide(lingering))
      assert.strictEqual(result.text, "all said")
    })
  )

  it.effect("closes a run's resources before the layers below", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const openResource = (name: string) =>
        Effect.acquireRelease(
          Effect.sync(() => void log.push(`open ${name}`)),
          () => Effect.sync(() => void log.push(`close ${name}`))
        )
      const model = Layer.effect(
        ChatModel.ChatModel,
        Effect.as(openResource("client"), {
          modelId: "scoped",
          provider: "test",
          supportsVision: true,
          contextWindowTokens: undefined,
          makeSession: Effect.as(openResource("session"), {
            nextTurn: () => Stream.make<[ChatModel.TurnPart]>({ _tag: "TurnDone", message: Message.ai("x") })
          })
        })
      )
      yield* Agent.run(Agent.provide(Agent.make({ name: "a", prompt: "" }), model), "go")
      assert.deepStrictEqual(log, ["open client", "open session", "close session", "close client"])
    })
  )

  it.effect("a sub-agent's events come inline with a longer path", () =>
    Effect.gen(function* () {
      const child = Agent.make({ name: "child", description: "", prompt: "" })
      const { events } = yield* AgentTest.collect(
        Agent.make({ name: "parent", prompt: "", tools: [Agent.asTool(child)] }),
        "go"
      )
      inOrder(events)
      const started = events.find((event) => event._tag === "SubagentStarted")
      const inner = events.filter((event) => event.path.length === 2)
      assert.isTrue(inner.every((event) => event.runId === started?.childRunId))
      assert.deepStrictEqual(tags(inner), [
        "RunStarted",
        "MessageAppended",
        "RoundStarted",
        "ContextMeasured",
        "TextDelta",
        "MessageAppended",
        "RoundCompleted",
        "RunCompleted"
      ])
      const completed = events.find((event) => event._tag === "SubagentCompleted")
      assert.deepStrictEqual([completed?.outcome, completed?.usage.inputTokens], ["completed", 5])
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([{ name: "child", arguments: { task: "t" } }], { usage: { inputTokens: 3 } }),
          TestChatModel.text("found", { usage: { inputTokens: 5 } }),
          TestChatModel.text("done", { usage: { inputTokens: 7 } })
        ])
      )
    )
  )

  it.effect("a sub-agent's failure is its parent's tool result", () =>
    Effect.gen(function* () {
      const child = Agent.make({ name: "child", description: "", prompt: "" })
      const { events } = yield* AgentTest.collect(
        Agent.make({ name: "parent", prompt: "", tools: [Agent.asTool(child)] }),
        "go"
      )
      const failed = events.find((event) => event._tag === "ToolFailed")
      assert.include(failed?.text, "ModelError")
      assert.strictEqual(events.at(-1)?._tag, "RunCompleted")
      const completed = events.find((event) => event._tag === "SubagentCompleted")
      assert.strictEqual(completed?.outcome, "failed")
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([{ name: "child", arguments: { task: "t" } }]),
          TestChatModel.fail({ _tag: "Overloaded" }),
          "done"
        ])
      )
    )
  )
})

describe("invariant 9: interruption", () => {
  const interruptedAt = (
    agent: Agent.Agent<string, never, never> | Agent.Agent<string, unknown, ChatModel.ChatModel>,
    when: (event: AgentEvent.AgentEvent) => boolean
  ) =>
    Effect.scoped(
      Effect.gen(function* () {
        const handle = yield* Agent.start(agent, "go")
        const events: Array<AgentEvent.AgentEvent> = []
        const reached = yield* Deferred.make<void>()
        const reading = yield* handle.events.pipe(
          Stream.runForEach((event) =>
            Effect.suspend(() => {
              events.push(event)
              return when(event) ? Deferred.succeed(reached, undefined) : Effect.void
            })
          ),
          Effect.forkChild({ startImmediately: true })
        )
        yield* Deferred.await(reached)
        yield* handle.interrupt
        yield* Fiber.join(reading)
        return { events, exit: yield* Effect.exit(handle.await), messages: yield* handle.messages }
      })
    )

  it.effect("in the model stream: the partial answer is kept and marked, and the run can go on from it", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "a", prompt: "" })
      const { events, exit, messages } = yield* interruptedAt(agent, (event) => event._tag === "TextDelta")
      assert.isTrue(Exit.hasInterrupts(exit))
      const last = messages.at(-1)
      assert.isTrue(last?.role === "ai" && last.stopReason === "interrupted")
      assert.deepStrictEqual(last === undefined ? "" : Message.text(last), "Once upon a")
      assert.deepStrictEqual(tags(events).slice(-2), ["MessageAppended", "RunInterrupted"])
      assert.deepStrictEqual(AgentEvent.transcript(events), messages)
      const resumed = yield* Agent.run(agent, "go on", { history: messages })
      assert.strictEqual(resumed.text, " time")
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.hangAfter("Once upon a"), " time"])))
  )

  it.effect(
    "in parallel tools: finalizers run, finished calls keep their results, the others are answered honestly",
    () =>
      Effect.gen(function* () {
        const released = yield* Ref.make(0)
        const slow = Tool.make("slow", {
          description: "",
          parameters: {},
          execute: () => Effect.never.pipe(Effect.ensuring(Ref.update(released, (count) => count + 1)))
        })
        const agent = Agent.make({ name: "a", prompt: "", tools: [slow, step], toolConcurrency: 2 })
        const { events, messages } = yield* interruptedAt(agent, (event) => event._tag === "ToolCompleted")
        assert.strictEqual(yield* Ref.get(released), 1)
        assert.deepStrictEqual(AgentTest.pairingProblems(messages), [])
        const answers = messages.filter((message) => message.role === "tool").map(Message.text)
        assert.include(answers[0], "interrupted. Whether it had an effect is not known")
        assert.strictEqual(answers[1], "did 1")
        assert.deepStrictEqual(AgentEvent.transcript(events), messages)
        assert.deepStrictEqual(tags(events).at(-1), "RunInterrupted")
      }).pipe(
        Effect.provide(
          TestChatModel.script([
            TestChatModel.calls([
              { name: "slow", arguments: {} },
              { name: "step", arguments: { n: 1 } }
            ])
          ])
        )
      )
  )

  it.effect("in a sub-agent: it is interrupted with its parent, and says so", () =>
    Effect.gen(function* () {
      const child = Agent.make({ name: "child", description: "", prompt: "" })
      const agent = Agent.make({ name: "parent", prompt: "", tools: [Agent.asTool(child)] })
      const { events, messages } = yield* interruptedAt(
        agent,
        (event) => event._tag === "TextDelta" && event.path.length === 2
      )
      assert.deepStrictEqual(AgentTest.pairingProblems(messages), [])
      assert.deepStrictEqual(
        events.filter(AgentEvent.isTerminal).map((event) => [event._tag, event.path.length]),
        [
          ["RunInterrupted", 2],
          ["RunInterrupted", 1]
        ]
      )
      const completed = events.find((event) => event._tag === "SubagentCompleted")
      assert.strictEqual(completed?.outcome, "interrupted")
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([{ name: "child", arguments: { task: "t" } }]),
          TestChatModel.hangAfter("thinking")
        ])
      )
    )
  )

  it.effect("between rounds, in a hook", () =>
    Effect.gen(function* () {
      const waiting = Middleware.make({
        name: "waiting",
        beforeModel: (run) => (run.round === 1 ? Effect.andThen(run.custom("here", null), Effect.never) : Effect.void)
      })
      const agent = Agent.make({ name: "a", prompt: "", tools: [step], middleware: [waiting] })
      const { messages } = yield* interruptedAt(agent, (event) => event._tag === "Custom")
      assert.deepStrictEqual(
        messages.map((message) => message.role),
        ["human", "ai", "tool"]
      )
    }).pipe(Effect.provide(TestChatModel.script([stepCall(1)])))
  )

  it.effect("in a gate, and in a hook after the model: the calls of the turn are answered", () =>
    Effect.gen(function* () {
      const waiting = (hook: "gate" | "after") =>
        Middleware.make({
          name: "waiting",
          ...(hook === "gate"
            ? { rulings: (run) => Effect.andThen(run.custom("here", null), Effect.never) }
            : { afterModel: (run) => Effect.andThen(run.custom("here", null), Effect.never) })
        } satisfies Middleware.Parts)
      for (const hook of ["gate", "after"] as const) {
        const agent = Agent.make({ name: "a", prompt: "", tools: [step], middleware: [waiting(hook)] })
        const { messages } = yield* interruptedAt(agent, (event) => event._tag === "Custom")
        assert.deepStrictEqual(AgentTest.pairingProblems(messages), [])
        assert.strictEqual(messages.length, 3)
      }
    }).pipe(Effect.provide(TestChatModel.script([stepCall(1), stepCall(2)])))
  )

  it.effect("in a sub-agent, while a reader does not read", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const child = Agent.make({ name: "child", description: "", prompt: "c", tools: [step], maxRounds: 1000 })
        const agent = Agent.make({ name: "parent", prompt: "p", tools: [Agent.asTool(child)] })
        const handle = yield* Agent.start(agent, "go")
        yield* handle.events.pipe(
          Stream.runForEach(() => Effect.never),
          Effect.forkChild({ startImmediately: true })
        )
        for (let tick = 0; tick < 500; tick++) yield* Effect.yieldNow
        yield* handle.interrupt
        assert.deepStrictEqual(AgentTest.pairingProblems(yield* handle.messages), [])
      })
    ).pipe(
      Effect.provide(
        TestChatModel.reactive((request, index) =>
          request.systemPrompt === "p"
            ? TestChatModel.calls([{ name: "child", arguments: { task: "t" } }])
            : stepCall(index)
        )
      )
    )
  )

  it.effect("while the run waits for a reader that does not read", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const agent = Agent.make({ name: "a", prompt: "", tools: [step], maxRounds: 1000 })
        const handle = yield* Agent.start(agent, "go")
        yield* handle.events.pipe(
          Stream.runForEach(() => Effect.never),
          Effect.forkChild({ startImmediately: true })
        )
        for (let tick = 0; tick < 500; tick++) yield* Effect.yieldNow
        yield* handle.interrupt
        const messages = yield* handle.messages
        assert.isAbove(messages.length, 3)
        assert.deepStrictEqual(AgentTest.pairingProblems(messages), [])
      })
    ).pipe(Effect.provide(TestChatModel.reactive((_, index) => stepCall(index))))
  )
})

describe("invariant 11: retries", () => {
  it.effect("TurnRestarted voids the text of a turn, in events and in the partial answer", () =>
    Effect.gen(function* () {
      const twice = Middleware.make({
        name: "twice",
        wrapModelCall: (request, next) =>
          Stream.catch(next(request), () =>
            Stream.concat(
              Stream.make<[ChatModel.TurnPart]>({ _tag: "TurnRestarted", reason: "overloaded" }),
              next(request)
            )
          )
      })
      const agent = Agent.make({ name: "a", prompt: "", middleware: [twice] })
      const { events } = yield* AgentTest.collect(agent, "go")
      assert.deepStrictEqual(
        events.flatMap((event) =>
          event._tag === "TextDelta" ? [event.text] : event._tag === "TurnRestarted" ? ["|"] : []
        ),
        ["wrong ", "|", "right"]
      )
      const last = AgentEvent.transcript(events).at(-1)
      assert.strictEqual(last === undefined ? "" : Message.text(last), "right")
    }).pipe(
      Effect.provide(TestChatModel.script([TestChatModel.fail({ _tag: "Overloaded" }, { after: "wrong " }), "right"]))
    )
  )
})

describe("steering", () => {
  it.effect("steer enters at the next seam, never between a call and its result; followUp after the answer", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        const waiting = Tool.make("wait", {
          description: "",
          parameters: {},
          execute: () => Effect.as(Deferred.await(gate), "waited")
        })
        const handle = yield* Agent.start(Agent.make({ name: "a", prompt: "", tools: [waiting] }), "go")
        const events = yield* handle.events.pipe(Stream.runCollect, Effect.forkChild({ startImmediately: true }))
        yield* Effect.yieldNow
        yield* handle.steer("look left")
        yield* handle.followUp("and then?")
        yield* handle.followUp(Message.human("and after that?"))
        yield* Deferred.succeed(gate, undefined)
        const result = yield* handle.await
        assert.deepStrictEqual(
          result.messages.map((message) => `${message.role}: ${Message.text(message)}`),
          [
            "human: go",
            "ai: ",
            "tool: waited",
            "human: look left",
            "ai: one",
            "human: and then?",
            "ai: two",
            "human: and after that?",
            "ai: three"
          ]
        )
        assert.strictEqual(result.text, "three")
        const kinds = (yield* Fiber.join(events)).flatMap((event) => (event._tag === "Steered" ? [event.kind] : []))
        assert.deepStrictEqual(kinds, ["steer", "followUp", "followUp"])
        const late = yield* Effect.flip(handle.steer("too late"))
        assert.strictEqual(late._tag, "RunEnded")
      })
    ).pipe(
      Effect.provide(
        TestChatModel.script([TestChatModel.calls([{ name: "wait", arguments: {} }]), "one", "two", "three"])
      )
    )
  )

  it.effect("a message that comes while the final answer streams keeps the run going", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const handle = yield* Agent.start(Agent.make({ name: "a", prompt: "" }), "go")
        yield* Effect.yieldNow
        yield* handle.steer("wait, one more thing")
        yield* TestClock.adjust("1 second")
        const result = yield* handle.await
        assert.deepStrictEqual(result.messages.map(Message.text), ["go", "done", "wait, one more thing", "that too"])
      })
    ).pipe(Effect.provide(TestChatModel.script([TestChatModel.text("done", { delay: "500 millis" }), "that too"])))
  )

  it.effect("after a new input the same call is no repeat", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const handle = yield* Agent.start(Agent.make({ name: "a", prompt: "", tools: [step] }), "go")
        yield* handle.followUp("check again")
        const result = yield* handle.await
        assert.deepStrictEqual(result.messages.filter((message) => message.role === "tool").map(Message.text), [
          "did 1",
          "did 1"
        ])
      })
    ).pipe(Effect.provide(TestChatModel.script([stepCall(1), "one", stepCall(1), "two"])))
  )

  it.effect("after a new input, messages of middleware cost no round as before", () =>
    Effect.gen(function* () {
      let last = 0
      const notice = Middleware.make({
        name: "notice",
        beforeModel: ({ messages }) =>
          Effect.sync(() => {
            const inputs = messages.filter((message) => Message.text(message).startsWith("go")).length
            if (inputs === last) return undefined
            last = inputs
            return Middleware.continueWith(Message.human("a notice"))
          })
      })
      const agent = Agent.make({ name: "a", prompt: "", middleware: [notice], maxRounds: 1 })
      const handle = yield* Agent.start(agent, "go")
      yield* handle.followUp("go on")
      assert.strictEqual((yield* handle.await).stopReason, "completed")
    }).pipe(Effect.scoped, Effect.provide(TestChatModel.script(["one", "two"])))
  )

  it.effect("an answer that a tool gives is followed as one of the model's", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const direct = Tool.make("direct", {
          description: "",
          parameters: {},
          execute: () => Effect.succeed(ToolOutput.make("the answer", { returnDirect: true }))
        })
        const handle = yield* Agent.start(Agent.make({ name: "a", prompt: "", tools: [direct] }), "go")
        yield* handle.followUp("and then?")
        const result = yield* handle.await
        assert.strictEqual(result.text, "then this")
        assert.deepStrictEqual(yield* handle.undelivered, [])
      })
    ).pipe(
      Effect.provide(TestChatModel.script([TestChatModel.calls([{ name: "direct", arguments: {} }]), "then this"]))
    )
  )

  it.effect("accepted and undelivered messages are not lost", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const handle = yield* Agent.start(Agent.make({ name: "a", prompt: "" }), "go")
        yield* Effect.yieldNow
        yield* handle.steer("hello?")
        yield* handle.interrupt
        const left = yield* handle.undelivered
        assert.deepStrictEqual(left.map(Message.text), ["hello?"])
      })
    ).pipe(Effect.provide(TestChatModel.script([TestChatModel.hang])))
  )

  it.effect("several readers each get all events from their subscription on; a late reader gets the end", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const agent = Agent.make({ name: "a", prompt: "", tools: [step] })
        const handle = yield* Agent.start(agent, "go")
        const read = handle.events.pipe(Stream.runCollect, Effect.forkChild({ startImmediately: true }))
        const one = yield* read
        const two = yield* read
        yield* handle.await
        const [first, second] = [yield* Fiber.join(one), yield* Fiber.join(two)]
        assert.deepStrictEqual(first, second)
        inOrder(first)
        assert.deepStrictEqual(tags(yield* Stream.runCollect(handle.events)), ["RunCompleted"])
      })
    ).pipe(Effect.provide(TestChatModel.script([stepCall(1), "done"])))
  )
})

describe("the transcript and the usage can be rebuilt from the events alone", () => {
  const noisy = Tool.make("noisy", {
    description: "",
    parameters: { mode: Schema.Literals(["ok", "fail", "die", "progress"]) },
    execute: Effect.fnUntraced(function* ({ mode }) {
      const context = yield* ToolContext.ToolContext
      if (mode === "progress") yield* context.emit({ step: 1 })
      if (mode === "fail") return yield* Effect.fail("no")
      if (mode === "die") return yield* Effect.die("bug")
      return mode
    })
  })
  const child = Agent.make({ name: "child", description: "", prompt: "child", tools: [noisy], maxRounds: 2 })
  const parent = Agent.make({
    name: "parent",
    prompt: "parent",
    tools: [noisy, Agent.asTool(child)],
    maxRounds: 3
  })

  const call = fc.oneof(
    fc.record({
      name: fc.constant("noisy"),
      arguments: fc.record({ mode: fc.constantFrom("ok", "fail", "die", "progress", "?") })
    }),
    fc.record({ name: fc.constant("child"), arguments: fc.record({ task: fc.string({ minLength: 1 }) }) }),
    fc.record({ name: fc.constantFrom("Noisy", "ghost"), arguments: fc.constant({}) })
  )
  const usage = fc.record({ inputTokens: fc.nat(100), outputTokens: fc.nat(100) })
  const turn = fc.oneof(
    fc
      .tuple(fc.array(call, { minLength: 1, maxLength: 3 }), usage)
      .map(([calls, usage]) => TestChatModel.calls(calls, { usage })),
    fc.tuple(fc.string(), usage).map(([text, usage]) => TestChatModel.text(text, { usage })),
    fc.constant(TestChatModel.malformed("{")),
    fc.constant(TestChatModel.fail({ _tag: "Overloaded" }, { after: "half" }))
  )

  it.effect("(property)", () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(fc.array(turn, { maxLength: 12 }), (turns) =>
          Effect.runPromise(
            Effect.scoped(
              Effect.gen(function* () {
                const handle = yield* Agent.start(parent, "go")
                const reading = yield* handle.events.pipe(
                  Stream.runCollect,
                  Effect.forkChild({ startImmediately: true })
                )
                yield* Effect.exit(handle.await)
                const events = yield* Fiber.join(reading)
                inOrder(events)
                assert.deepStrictEqual(AgentEvent.transcript(events), yield* handle.messages)
                assert.deepStrictEqual(AgentTest.pairingProblems(AgentEvent.transcript(events)), [])
                const roots = events.filter((event) => event.path.length === 1)
                assert.strictEqual(roots.filter(AgentEvent.isTerminal).length, 1)
                const last = events.at(-1)
                assert.isTrue(last !== undefined && AgentEvent.isTerminal(last) && last.path.length === 1)
                if (last?._tag === "RunCompleted") {
                  // The rounds of all runs add up to what the last event says, and through JSON too.
                  const wire = yield* Effect.forEach(events, (event) =>
                    AgentEvent.decode(JSON.parse(JSON.stringify(AgentEvent.encode(event))))
                  )
                  const failedRuns = events.some((event) => event._tag === "RunFailed")
                  if (!failedRuns) {
                    assert.deepStrictEqual(AgentEvent.usageOf(wire.slice(0, -1)), last.usage)
                  }
                  assert.deepStrictEqual(AgentEvent.usageOf(wire), last.usage)
                }
              })
            ).pipe(
              Effect.provide(TestChatModel.script([...turns, "end", "end"], { exhaustive: false })),
              Effect.provide(Logger.layer([]))
            )
          )
        ),
        { numRuns: scaled(150) }
      )
    )
  )
})

describe("readers of a handle", () => {
  const stepper = Agent.make({ name: "a", prompt: "", tools: [step] })
  const script = TestChatModel.script([stepCall(1), stepCall(2), "done"])

  it.effect("that leave early take no events from the others", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const hasLeft = yield* Deferred.make<void>()
        const waiting = Tool.make("step", {
          description: "",
          parameters: { n: Schema.Int },
          execute: () => Effect.as(Deferred.await(hasLeft), "done")
        })
        const handle = yield* Agent.start(Agent.make({ name: "a", prompt: "", tools: [waiting] }), "go")
        const all = yield* handle.events.pipe(Stream.runCollect, Effect.forkChild({ startImmediately: true }))
        const one = yield* handle.events.pipe(
          Stream.take(1),
          Stream.runCollect,
          Effect.forkChild({ startImmediately: true })
        )
        yield* Fiber.join(one)
        yield* Deferred.succeed(hasLeft, undefined)
        yield* handle.await
        const events = yield* Fiber.join(all)
        assert.strictEqual(events.at(-1)?._tag, "RunCompleted")
        assert.strictEqual(events.filter(({ _tag }) => _tag === "ToolCompleted").length, 2)
      })
    ).pipe(Effect.provide(script))
  )

  it.effect("that come after the end get the terminal event", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const handle = yield* Agent.start(stepper, "go")
        yield* handle.await
        for (const _ of [1, 2]) assert.deepStrictEqual(tags(yield* Stream.runCollect(handle.events)), ["RunCompleted"])
      })
    ).pipe(Effect.provide(script))
  )
})
