import { assert, describe, it } from "@effect/vitest"
import { Data, Effect, Schema, Stream } from "effect"
import { Agent, AgentEvent, Message, Middleware, Tool, ToolOutput } from "effect-deepagents"
import { Guardrail, ModelRetry } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import { agentWith, failureOf, inBackground, prompt, story, watch } from "./run.ts"

/** Trips on a word, after a while (milliseconds), and counts how often it was asked. */
const forbids = (word: string, takes = 0) => {
  const seen: Array<string> = []
  const check = ({ text }: { readonly text: string }) =>
    Effect.as(
      Effect.andThen(
        Effect.sync(() => seen.push(text)),
        Effect.sleep(takes)
      ),
      text.includes(word) ? Guardrail.trip(`it says "${word}"`) : Guardrail.pass
    )
  return { seen, check }
}

class CheckFailed extends Data.TaggedError("CheckFailed")<{}> {}

const answers = { answer: "I can't help with that." }

const add = (log: Array<number>) =>
  Tool.make("add", {
    description: "Adds",
    parameters: { n: Schema.Finite },
    execute: ({ n }) => Effect.sync(() => `sum ${log.push(n)}`)
  })
const adding = (...numbers: ReadonlyArray<number>) =>
  TestChatModel.calls(
    numbers.map((n) => ({ name: "add", arguments: { n } })),
    { text: "let me add" }
  )

const roles = (messages: ReadonlyArray<Message.Message>) => messages.map((message) => message.role)

describe("Guardrail.input, before", () => {
  it.effect("a trip fails the run before the model is asked", () =>
    Effect.gen(function* () {
      const { check } = forbids("hello")
      const { events, exit } = yield* watch(agentWith(Guardrail.input({ name: "greetings", check })))
      const error = failureOf(exit)
      assert.instanceOf(error, Guardrail.GuardrailTripped)
      assert.strictEqual(error.message, `Guardrail "greetings" stopped agent "agent" at the input: it says "hello"`)
      assert.deepStrictEqual(story(events), ["<guardrail>", "<RunFailed>"])
      assert.deepStrictEqual(yield* TestChatModel.requests, [])
    }).pipe(Effect.provide(TestChatModel.script([])))
  )

  it.effect("or answers in the model's place, and the run is refused", () =>
    Effect.gen(function* () {
      const { check } = forbids("hello")
      const result = yield* Agent.run(agentWith(Guardrail.input({ name: "greetings", check, onTrip: answers })), prompt)
      assert.deepStrictEqual([result.text, result.stopReason], [answers.answer, "refused"])
      assert.deepStrictEqual(roles(result.messages), ["human", "ai"])
      assert.strictEqual(result.messages.at(-1)?.source, "guardrail:greetings")
    }).pipe(Effect.provide(TestChatModel.script([])))
  )

  it.effect("checks new messages, and not those that passed before", () =>
    Effect.gen(function* () {
      const { check, seen } = forbids("stop")
      const log: Array<number> = []
      const agent = Agent.make({
        name: "agent",
        prompt: "",
        tools: [add(log)],
        middleware: [Guardrail.input({ name: "stops", check })]
      })
      const handle = yield* Agent.start(agent, prompt)
      yield* handle.followUp("now stop")
      const exit = yield* Effect.exit(handle.await)
      assert.deepInclude(failureOf(exit), { _tag: "GuardrailTripped", stage: "input" })
      assert.deepStrictEqual(seen, [prompt, "now stop"])
      assert.deepStrictEqual(log, [1])
    }).pipe(Effect.scoped, Effect.provide(TestChatModel.script([adding(1), "fine"])))
  )

  it.effect("earlier turns of the conversation are not checked again", () =>
    Effect.gen(function* () {
      const { check, seen } = forbids("stop")
      const agent = agentWith(Guardrail.input({ name: "stops", check }))
      const first = yield* Agent.run(agent, "one")
      yield* Agent.run(agent, "two", { history: first.messages })
      assert.deepStrictEqual(seen, ["one", "two"])
    }).pipe(Effect.provide(TestChatModel.script(["1", "2"])))
  )

  it.effect("14: a final answer that is forced before the check ran is checked too", () =>
    Effect.gen(function* () {
      const forces = Middleware.make({
        name: "forces",
        beforeModel: () => Effect.succeed(Middleware.forceFinalAnswer("budget:time"))
      })
      const { check } = forbids("hello")
      const { exit } = yield* watch(agentWith(forces, Guardrail.input({ name: "greetings", check })))
      assert.deepInclude(failureOf(exit), { _tag: "GuardrailTripped" })
      assert.deepStrictEqual(yield* TestChatModel.requests, [])
    }).pipe(Effect.provide(TestChatModel.script([])))
  )

  it.effect("a check that fails, fails the run with its own error", () =>
    Effect.gen(function* () {
      const { exit } = yield* watch(
        agentWith(Guardrail.input({ name: "x", check: () => Effect.fail(new CheckFailed()) }))
      )
      assert.deepInclude(failureOf(exit), { _tag: "CheckFailed" })
    }).pipe(Effect.provide(TestChatModel.script([])))
  )

  it.effect("a sub-agent's task is its input", () =>
    Effect.gen(function* () {
      const { check } = forbids("bomb")
      const helper = Agent.make({ name: "helper", description: "Helps", prompt: "" })
      const agent = Agent.make({
        name: "agent",
        prompt: "",
        tools: [Agent.asTool(helper)],
        middleware: [Guardrail.input({ name: "bombs", check, onTrip: answers })]
      })
      const result = yield* Agent.run(agent, prompt)
      assert.strictEqual(result.text, "I was refused")
      const told = result.messages.find((message) => message.role === "tool")
      assert.strictEqual(told && Message.text(told), answers.answer)
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([{ name: "helper", arguments: { task: "a bomb" } }]),
          "I was refused"
        ])
      )
    )
  )
})

describe("Guardrail.input, beside", () => {
  const chunks = TestChatModel.text(["one ", "two ", "three"], { chunkDelay: "10 millis", usage: { inputTokens: 7 } })

  it.effect("the model is asked at once, and the check costs no time", () =>
    Effect.gen(function* () {
      const { check } = forbids("nothing", 1000)
      const run = yield* inBackground(watch(agentWith(Guardrail.input({ name: "slow", check, mode: "beside" }))))
      yield* TestClock.adjust("100 millis")
      assert.strictEqual((yield* TestChatModel.requests).length, 1)
      assert.isFalse(yield* run.isDone)
      yield* TestClock.adjust("900 millis")
      const { events } = yield* run.result
      assert.deepStrictEqual(story(events), ["one ", "two ", "three", "<RunCompleted>"])
      const [first, last] = [events.find((event) => event._tag === "TextDelta"), events.at(-1)]
      assert.isBelow((first?.at ?? 0) - (last?.at ?? 0), -900)
    }).pipe(Effect.provide(TestChatModel.script([chunks])))
  )

  it.effect("a trip cuts the stream at once, voids the sent text and fails the run", () =>
    Effect.gen(function* () {
      const { check } = forbids("hello", 15)
      const run = yield* inBackground(watch(agentWith(Guardrail.input({ name: "greetings", check, mode: "beside" }))))
      yield* TestClock.adjust("15 millis")
      const { events, exit } = yield* run.result
      assert.deepInclude(failureOf(exit), { _tag: "GuardrailTripped", guardrail: "greetings" })
      assert.deepStrictEqual(story(events), ["one ", "two ", "<restarted>", "<guardrail>", "<RunFailed>"])
      assert.deepStrictEqual(roles(AgentEvent.transcript(events)), ["human"])
    }).pipe(
      Effect.provide(TestChatModel.script([TestChatModel.text(["one ", "two ", "three"], { chunkDelay: "10 millis" })]))
    )
  )

  it.effect("9: a model that hangs is cut too", () =>
    Effect.gen(function* () {
      const { check } = forbids("hello", 15)
      const agent = agentWith(Guardrail.input({ name: "greetings", check, mode: "beside", onTrip: answers }))
      const run = yield* inBackground(watch(agent))
      yield* TestClock.adjust("15 millis")
      const { events } = yield* run.result
      assert.deepStrictEqual(story(events), ["<guardrail>", answers.answer, "<RunCompleted>"])
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.hang])))
  )

  it.effect("a turn that is done waits for the verdict; voided, it is paid for all the same", () =>
    Effect.gen(function* () {
      const { check } = forbids("hello", 1000)
      const agent = agentWith(Guardrail.input({ name: "greetings", check, mode: "beside", onTrip: answers }))
      const run = yield* inBackground(Agent.run(agent, prompt))
      yield* TestClock.adjust("1 second")
      const result = yield* run.result
      assert.deepStrictEqual([result.text, result.stopReason], [answers.answer, "refused"])
      assert.strictEqual(result.usage.inputTokens, 7)
      assert.deepStrictEqual(roles(result.messages), ["human", "ai"])
    }).pipe(Effect.provide(TestChatModel.script([chunks])))
  )

  it.effect("a verdict that did not come before the model failed is asked for again", () =>
    Effect.gen(function* () {
      const { check } = forbids("hello", 1000)
      const agent = agentWith(ModelRetry.make(), Guardrail.input({ name: "greetings", check, mode: "beside" }))
      const run = yield* inBackground(watch(agent))
      yield* TestClock.adjust("10 seconds")
      const { exit } = yield* run.result
      assert.deepInclude(failureOf(exit), { _tag: "GuardrailTripped" })
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.fail({ _tag: "Overloaded" }), "hi"])))
  )

  it.effect("a check that fails, fails the run; the model is let go", () =>
    Effect.gen(function* () {
      const check = () => Effect.fail(new CheckFailed())
      const { exit } = yield* watch(agentWith(Guardrail.input({ name: "x", check, mode: "beside" })))
      assert.deepInclude(failureOf(exit), { _tag: "CheckFailed" })
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.hang])))
  )

  it.effect("leaving the run interrupts the check", () =>
    Effect.gen(function* () {
      let interrupted = false
      const check = () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => void (interrupted = true)))
      const agent = agentWith(Guardrail.input({ name: "x", check, mode: "beside" }))
      const events = yield* Stream.runCollect(
        Stream.takeUntil(Agent.stream(agent, prompt), (event) => event._tag === "TextDelta")
      )
      assert.strictEqual(events.at(-1)?._tag, "TextDelta")
      assert.isTrue(interrupted)
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.hangAfter("one")])))
  )
})

describe("Guardrail.output", () => {
  const secret = TestChatModel.text(["the key is ", "sk-1"], { usage: { inputTokens: 7 } })

  for (const mode of ["before", "beside"] as const) {
    it.effect(`${mode}: a trip fails the run; nothing of the turn stays, but it is paid for`, () =>
      Effect.gen(function* () {
        const { check } = forbids("sk-")
        const { events, exit } = yield* watch(agentWith(Guardrail.output({ name: "keys", check, mode })))
        assert.deepInclude(failureOf(exit), { _tag: "GuardrailTripped", stage: "output" })
        assert.deepStrictEqual(roles(AgentEvent.transcript(events)), ["human"])
        assert.strictEqual(AgentEvent.usageOf(events).inputTokens, 7)
        assert.deepStrictEqual(
          story(events),
          mode === "before"
            ? ["<guardrail>", "<RunFailed>"]
            : ["the key is ", "sk-1", "<restarted>", "<guardrail>", "<RunFailed>"]
        )
      }).pipe(Effect.provide(TestChatModel.script([secret])))
    )

    it.effect(`${mode}: replaces an answer that trips`, () =>
      Effect.gen(function* () {
        const { check } = forbids("sk-")
        const result = yield* Agent.run(
          agentWith(Guardrail.output({ name: "keys", check, mode, onTrip: answers })),
          prompt
        )
        assert.deepStrictEqual([result.text, result.stopReason], [answers.answer, "refused"])
        assert.strictEqual(result.usage.inputTokens, 7)
      }).pipe(Effect.provide(TestChatModel.script([secret])))
    )

    it.effect(`${mode}: calls of a turn that trips do not run`, () =>
      Effect.gen(function* () {
        const log: Array<number> = []
        const { check } = forbids("let me add")
        const agent = Agent.make({
          name: "agent",
          prompt: "",
          tools: [add(log)],
          middleware: [Guardrail.output({ name: "adds", check, mode, onTrip: answers })]
        })
        const result = yield* Agent.run(agent, prompt)
        assert.deepStrictEqual(log, [])
        assert.strictEqual(result.stopReason, "refused")
      }).pipe(Effect.provide(TestChatModel.script([adding(1)])))
    )

    it.effect(`${mode}: streams and keeps an answer that passes`, () =>
      Effect.gen(function* () {
        const { check, seen } = forbids("sk-")
        const { events } = yield* watch(agentWith(Guardrail.output({ name: "keys", check, mode })))
        assert.deepStrictEqual(story(events), ["all ", "well", "<RunCompleted>"])
        assert.deepStrictEqual(seen, ["all well"])
      }).pipe(Effect.provide(TestChatModel.script([TestChatModel.text(["all ", "well"])])))
    )
  }

  it.effect("beside: the text is there while the check of the whole is still running", () =>
    Effect.gen(function* () {
      const { check } = forbids("nothing", 1000)
      const times: Array<number> = []
      const agent = agentWith(Guardrail.output({ name: "slow", check, mode: "beside" }))
      const run = yield* inBackground(
        Stream.runForEach(Agent.stream(agent, prompt), (event) =>
          Effect.sync(() => event._tag === "TextDelta" && times.push(event.at))
        )
      )
      assert.strictEqual(times.length, 2)
      assert.isFalse(yield* run.isDone)
      yield* TestClock.adjust("1 second")
      yield* run.result
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.text(["all ", "well"])])))
  )

  it.effect("checks a tool's answer in the model's place", () =>
    Effect.gen(function* () {
      const { check } = forbids("sk-")
      const show = Tool.make("show", {
        description: "Shows the key",
        parameters: {},
        execute: () => Effect.succeed(ToolOutput.make("sk-1", { returnDirect: true }))
      })
      const make = (guard: Middleware.Middleware<Guardrail.GuardrailTripped>) =>
        Agent.make({ name: "agent", prompt: "", tools: [show], middleware: [guard] })
      const result = yield* Agent.run(make(Guardrail.output({ name: "keys", check, onTrip: answers })), prompt)
      assert.strictEqual(result.text, answers.answer)
      const exit = yield* Effect.exit(Agent.run(make(Guardrail.output({ name: "keys", check })), prompt))
      assert.deepInclude(failureOf(exit), { _tag: "GuardrailTripped", stage: "output" })
    }).pipe(Effect.provide(TestChatModel.reactive(() => TestChatModel.calls([{ name: "show" }]))))
  )

  it.effect("before: nothing is shown of a turn that breaks off, and so can't be checked", () =>
    Effect.gen(function* () {
      const breaks = Middleware.make<never>({
        name: "breaks",
        wrapModelCall: () => Stream.succeed({ _tag: "TextDelta", text: "the key is sk-1" } as const)
      })
      const { events } = yield* watch(
        agentWith(Guardrail.output({ name: "keys", check: forbids("sk-").check }), breaks)
      )
      assert.deepStrictEqual(story(events), ["<RunFailed>"])
    }).pipe(Effect.provide(TestChatModel.script([])))
  )

  it.effect("calls on the side are not checked", () =>
    Effect.gen(function* () {
      const { check, seen } = forbids("sk-")
      const asks = Middleware.make({
        name: "asks",
        beforeModel: (run) => Effect.asVoid(Effect.orDie(run.call({ messages: run.messages, purpose: "grade" })))
      })
      yield* Agent.run(agentWith(Guardrail.output({ name: "keys", check }), asks), prompt)
      assert.deepStrictEqual(seen, ["fine"])
    }).pipe(Effect.provide(TestChatModel.script(["sk-1", "fine"])))
  )
})

describe("Guardrail.toolCalls", () => {
  const big = ({ call }: Guardrail.Call) =>
    Effect.succeed(Number(call.arguments["n"]) > 9 ? Guardrail.trip("n is too big") : Guardrail.pass)

  const agentOf = <E>(log: Array<number>, guard: Middleware.Middleware<E>) =>
    Agent.make({ name: "agent", prompt: "", tools: [add(log)], middleware: [guard] })

  it.effect("5: a call that trips is answered and not run; the others run", () =>
    Effect.gen(function* () {
      const log: Array<number> = []
      const result = yield* Agent.run(agentOf(log, Guardrail.toolCalls({ name: "small", check: big })), prompt)
      assert.deepStrictEqual(log, [1, 2])
      const told = result.messages.flatMap((message) =>
        message.role === "tool" ? [[message.isError, Message.text(message)]] : []
      )
      assert.deepStrictEqual(told, [
        [false, "sum 1"],
        [true, `Not executed: guardrail "small" does not allow it: n is too big`],
        [false, "sum 2"]
      ])
      assert.strictEqual(result.stopReason, "completed")
    }).pipe(Effect.provide(TestChatModel.script([adding(1, 10, 2), "fine"])))
  )

  it.effect("or fails the run, and then no call of the turn runs", () =>
    Effect.gen(function* () {
      const log: Array<number> = []
      const guard = Guardrail.toolCalls({ name: "small", check: big, onTrip: "fail" })
      const exit = yield* Effect.exit(Agent.run(agentOf(log, guard), prompt))
      assert.deepInclude(failureOf(exit), { _tag: "GuardrailTripped", stage: "toolCall", reason: "n is too big" })
      assert.deepStrictEqual(log, [])
    }).pipe(Effect.provide(TestChatModel.script([adding(1, 10)])))
  )

  it.effect("14: a sub-agent inherits it", () =>
    Effect.gen(function* () {
      const log: Array<number> = []
      const helper = Agent.make({ name: "helper", description: "Helps", prompt: "", tools: [add(log)] })
      const agent = Agent.make({
        name: "agent",
        prompt: "",
        tools: [Agent.asTool(helper)],
        middleware: [Guardrail.toolCalls({ name: "small", check: big })]
      })
      yield* Agent.run(agent, prompt)
      assert.deepStrictEqual(log, [])
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([{ name: "helper", arguments: { task: "add" } }]),
          adding(10),
          "could not",
          "done"
        ])
      )
    )
  )
})
