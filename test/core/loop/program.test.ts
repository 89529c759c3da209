/** Programs: agents whose work is an effect. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Schema, Stream } from "effect"
import {
  Agent,
  type AgentEvent,
  Approval,
  Checkpoint,
  Message,
  Middleware,
  Ruling,
  Question,
  Tool,
  ToolContext,
  ToolError,
  ToolOutput
} from "effect-deepagents"
import { HumanInTheLoop, Subagents } from "effect-deepagents/middleware"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import * as journal from "../journal.ts"

const throughJson = (checkpoint: Checkpoint.Checkpoint) =>
  Checkpoint.decode(JSON.parse(JSON.stringify(Checkpoint.encode(checkpoint))))

const recordsOf = ({ state }: Checkpoint.Checkpoint) => Object.keys(state).filter((slot) => slot.startsWith("inside/"))

const tags = (events: ReadonlyArray<AgentEvent.AgentEvent>) => events.map(({ _tag }) => _tag)

const act = (ran: Array<string>, name = "act") =>
  Tool.make(name, {
    description: "",
    parameters: { on: Schema.String },
    execute: ({ on }) =>
      Effect.sync(() => {
        ran.push(`${name} ${on}`)
        return `${name} did ${on}`
      })
  })

const asking = (...tools: ReadonlyArray<string>) =>
  Middleware.make({
    asks: true,
    name: "asking",
    inherit: true,
    rulings: (_run, calls) =>
      Effect.succeed(
        calls.map((call) =>
          tools.includes(call.name) ? Ruling.ask("test", { description: `${call.name}?` }) : undefined
        )
      )
  })

const calling = (name: string, on: string) =>
  Effect.flatMap(ToolContext.ToolContext, ({ call }) => Effect.map(call(name, { on }), ToolOutput.text))

const ask = <A>(question: Question.Question<A>) =>
  Effect.flatMap(ToolContext.ToolContext, (context) => context.ask(question))

const noted = (ran: Array<string>, name: string) =>
  Agent.step(
    name,
    Effect.sync(() => {
      ran.push(name)
      return name.length
    }),
    Schema.Finite
  )

/** A model that calls a tool when its task begins with the tool's name, and repeats the result. */
const model = TestChatModel.reactive((request) => {
  const last = request.messages.at(-1)
  const text = last === undefined ? "" : Message.text(last)
  if (last?.role === "tool") return `done: ${text}`
  const name = text.split(" ")[0] ?? ""
  return request.tools.some((tool) => tool.name === name)
    ? TestChatModel.calls([{ name, arguments: name === "double" ? { n: text.length } : { on: text } }])
    : `said ${text}`
})

const shout = Agent.program({ name: "shout", run: (text) => Effect.succeed(text.toUpperCase()) })

const double = Agent.program({
  name: "double",
  description: "Doubles a number",
  input: Schema.Struct({ n: Schema.Finite }),
  output: Schema.Struct({ twice: Schema.Finite, at: Schema.Date }),
  run: ({ n }) => Effect.succeed({ twice: 2 * n, at: new Date(0) })
})

describe("a program", () => {
  it.effect("of pure code needs no model; its transcript is the question and the answer", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(shout, "hello")
      assert.strictEqual(result.output, "HELLO")
      assert.strictEqual(result.text, "HELLO")
      assert.strictEqual(result.stopReason, "completed")
      assert.strictEqual(result.rounds, 1)
      assert.deepStrictEqual(
        result.messages.map(({ role, source }) => [role, source]),
        [
          ["human", undefined],
          ["ai", "program"]
        ]
      )
      const again = yield* Agent.resume(shout, { checkpoint: yield* throughJson(result) })
      assert.strictEqual(again.output, "HELLO")
      assert.strictEqual(again.messages.length, 2)
    })
  )

  it.effect("is told its input and tells its output in schemas", () =>
    Effect.gen(function* () {
      const first = yield* Agent.run(double, double.input({ n: 21 }))
      assert.deepStrictEqual(first.output, { twice: 42, at: new Date(0) })
      assert.deepStrictEqual(JSON.parse(first.text), { twice: 42, at: "1970-01-01T00:00:00.000Z" })
      const again = yield* Agent.resume(double, { checkpoint: yield* throughJson(first) })
      assert.deepStrictEqual(again.output, { twice: 42, at: new Date(0) })
      for (const wrong of ["21", "n is 21", '{"n":"many"}', '{"n":1e999}', double.input({ n: Number.NaN })]) {
        const error = yield* Effect.flip(Agent.run(double, wrong))
        assert.strictEqual(error.reason._tag, "InvalidInput")
        assert.include(error.message, '"n"')
      }
    })
  )

  it.effect("returns texts of a schema as they are, and values other than objects as JSON", () =>
    Effect.gen(function* () {
      const seat = Agent.program({
        name: "seat",
        input: Schema.Literals(["window", "aisle"]),
        output: Schema.Union([Schema.Struct({ value: Schema.String }), Schema.Finite]),
        run: (input) => Effect.succeed(input === "window" ? { value: input } : 1)
      })
      const first = yield* Agent.run(seat, "window")
      assert.deepStrictEqual(first.output, { value: "window" })
      const again = yield* Agent.resume(seat, { checkpoint: first })
      assert.deepStrictEqual(again.output, { value: "window" })
      assert.strictEqual((yield* Agent.run(seat, seat.input("aisle"))).text, "1")
    })
  )

  it.effect("fails with its own failure, with an invalid input and with an invalid output", () =>
    Effect.gen(function* () {
      class NoLuck extends Schema.TaggedError<NoLuck>()("NoLuck", {}) {}
      const unlucky = Agent.program({ name: "unlucky", run: () => Effect.fail(new NoLuck()) })
      assert.instanceOf(yield* Effect.flip(Agent.run(unlucky, "x")), NoLuck)
      const odd = Agent.program({
        name: "odd",
        output: Schema.Finite,
        run: () => Effect.succeed(Number.NaN)
      })
      const error = yield* Effect.flip(Agent.run(odd, "x"))
      assert.strictEqual(error.reason._tag, "InvalidOutput")
      const broken = Agent.program({ name: "broken", run: () => Effect.die("oh") })
      const exit = yield* Effect.exit(Agent.run(broken, "x"))
      assert.strictEqual(exit._tag, "Failure")
      assert.strictEqual(tags(yield* AgentTest.events(unlucky, "x")).at(-1), "RunFailed")
    })
  )

  it.effect("is one round, which reports the inner calls", () =>
    Effect.gen(function* () {
      const ran: Array<string> = []
      const child = Agent.make({ name: "child", prompt: "" })
      const program = Agent.program({
        name: "program",
        tools: [act(ran)],
        run: Effect.fnUntraced(function* (text) {
          return `${yield* calling("act", text)}, ${yield* Agent.answer(child, text)}`
        })
      })
      const events = yield* AgentTest.events(program, "x")
      assert.deepStrictEqual(tags(events.filter(({ path }) => path.length === 1)), [
        "RunStarted",
        "MessageAppended",
        "RoundStarted",
        "ToolCalled",
        "ToolCompleted",
        "SubagentStarted",
        "SubagentCompleted",
        "MessageAppended",
        "RoundCompleted",
        "RunCompleted"
      ])
      assert.deepStrictEqual(
        events.flatMap((event) => (event._tag === "RunCompleted" ? [event.stopReason] : [])),
        ["completed", "completed"]
      )
    }).pipe(Effect.provide(model))
  )

  it.effect("takes no messages that are sent in: they stay undelivered", () =>
    Effect.gen(function* () {
      const program = Agent.program({ name: "slow", run: () => Effect.as(Effect.sleep("1 minute"), "done") })
      const handle = yield* Agent.start(program, "go")
      yield* handle.steer("faster")
      yield* handle.followUp("and then?")
      const fiber = yield* Effect.forkChild(handle.await)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* Fiber.join(fiber)).text, "done")
      assert.deepStrictEqual((yield* handle.undelivered).map(Message.text), ["faster", "and then?"])
    })
  )
})

describe("a program that is run again", () => {
  it.effect("goes on after an interruption: finished work is not repeated, and a new input is not its answer", () =>
    Effect.gen(function* () {
      const ran: Array<string> = []
      let waits = true
      const program = Agent.program({
        name: "program",
        run: Effect.fnUntraced(function* (text) {
          const first = yield* noted(ran, `first ${text}`)
          if (waits) yield* Effect.never
          return `${first} ${yield* noted(ran, `second ${text}`)}`
        })
      })
      const threads: Record<string, journal.Stored> = {}
      yield* Effect.gen(function* () {
        const handle = yield* Agent.start(program, "a", { threadId: "t" })
        yield* Stream.runHead(Stream.filter(handle.events, ({ _tag }) => _tag === "CheckpointSaved"))
        yield* Effect.yieldNow
        while (ran.length === 0) yield* Effect.yieldNow
        yield* handle.interrupt
        waits = false
        const result = yield* Agent.resume(program, { threadId: "t" })
        assert.strictEqual(result.text, "7 8")
        assert.deepStrictEqual(ran, ["first a", "second a"])
        waits = true
        const second = yield* Agent.start(program, "b", { threadId: "t" })
        while (ran.length === 2) yield* Effect.yieldNow
        yield* second.interrupt
        waits = false
        const third = yield* Agent.run(program, "a", { threadId: "t" })
        assert.strictEqual(third.text, "7 8")
        assert.deepStrictEqual(ran.slice(2), ["first b", "first a", "second a"])
        assert.deepStrictEqual(recordsOf(third), [])
        assert.deepStrictEqual(recordsOf(journal.checkpointOf(threads["t"]?.entries ?? []) ?? third), [])
        assert.deepStrictEqual(third.messages.map(Message.text), ["a", "7 8", "b", "a", "7 8"])
      }).pipe(Effect.provide(journal.layer(threads)))
    })
  )

  it.effect("is suspended by questions, calls and sub-agents at once, and goes on with the answers through JSON", () =>
    Effect.gen(function* () {
      const ran: Array<string> = []
      const child = Agent.make({ name: "child", prompt: "", tools: [act(ran, "pay")] })
      const program = Agent.program({
        name: "program",
        tools: [act(ran), act(ran, "pay")],
        middleware: [asking("pay")],
        run: Effect.fnUntraced(function* (text) {
          yield* noted(ran, "begin")
          const all = yield* Effect.all(
            [
              calling("act", text),
              calling("pay", text),
              Agent.answer(child, `pay ${text}`),
              Effect.map(ask(Question.make("How much?", { answer: Schema.Finite })), String)
            ],
            { concurrency: "unbounded" }
          )
          return all.join("; ")
        })
      })
      const first = yield* Agent.run(program, "x")
      assert.strictEqual(first.stopReason, "suspended")
      assert.strictEqual(first.output, undefined)
      assert.deepStrictEqual(ran, ["begin", "act x"])
      assert.deepStrictEqual(first.pending.map(({ path, toolName }) => [...path, toolName].join("/")).toSorted(), [
        "program/child/pay",
        "program/pay",
        "program/program"
      ])
      assert.deepStrictEqual(yield* Checkpoint.pending(yield* throughJson(first)), first.pending)
      const decide = (one: Approval.Request) =>
        one.answer === undefined ? Approval.approve(one) : Approval.respond(one, 3)
      let result: typeof first = first
      for (const request of first.pending) {
        assert.include(
          result.pending.map(({ id }) => id),
          request.id
        )
        result = yield* Agent.resume(program, { checkpoint: yield* throughJson(result), decisions: [decide(request)] })
      }
      assert.strictEqual(result.text, "act did x; pay did x; done: pay did pay x; 3")
      // The program is one round, however often it is resumed; the child has two.
      assert.deepStrictEqual([first.rounds, result.rounds], [1, 1])
      assert.deepStrictEqual(ran.toSorted(), ["act x", "begin", "pay pay x", "pay x"])
      assert.deepStrictEqual(recordsOf(result), [])
      assert.deepStrictEqual(yield* Checkpoint.pending(result), [])
    }).pipe(Effect.provide(model))
  )

  it.effect("makes the call again by which it failed", () =>
    Effect.gen(function* () {
      const ran: Array<string> = []
      let fails = true
      const flaky = Tool.make("flaky", {
        description: "",
        parameters: { on: Schema.String },
        execute: () => (fails ? Effect.fail(ToolError.make("not now")) : Effect.succeed("ok"))
      })
      const program = Agent.program({
        name: "program",
        tools: [flaky, act(ran)],
        run: Effect.fnUntraced(function* (text) {
          const tried = yield* Effect.result(calling("flaky", "first"))
          const did = yield* calling("act", text)
          return `${tried._tag} ${did} ${yield* calling("flaky", "second")}`
        })
      })
      const threads: Record<string, journal.Stored> = {}
      yield* Effect.gen(function* () {
        const error = yield* Effect.flip(Agent.run(program, "x", { threadId: "t" }))
        assert.strictEqual(error.message, "not now")
        fails = false
        const result = yield* Agent.resume(program, { threadId: "t" })
        assert.strictEqual(result.text, "Failure act did x ok")
        assert.deepStrictEqual(ran, ["act x"])
      }).pipe(Effect.provide(journal.layer(threads)))
    })
  )
})

describe("a program that is stopped as it is resumed", () => {
  it.effect("keeps decisions and pending requests", () =>
    Effect.gen(function* () {
      const ran: Array<string> = []
      let waits = true
      const slow = Tool.make("slow", {
        description: "",
        parameters: {},
        annotations: { idempotent: true },
        execute: () => (waits ? Effect.never : Effect.succeed("slow"))
      })
      const program = Agent.program({
        name: "program",
        tools: [slow, act(ran, "pay")],
        middleware: [asking("slow", "pay")],
        run: Effect.fnUntraced(function* (text) {
          const { call } = yield* ToolContext.ToolContext
          const both = yield* Effect.all([call("slow", {}), call("pay", { on: text })], { concurrency: 2 })
          return both.map(ToolOutput.text).join(", ")
        })
      })
      const threads: Record<string, journal.Stored> = {}
      yield* Effect.gen(function* () {
        const first = yield* Agent.run(program, "x", { threadId: "t" })
        const decisions = first.pending
          .filter(({ toolName }) => toolName === "slow")
          .map((request) => Approval.approve(request))
        assert.strictEqual(decisions.length, 1)
        const handle = yield* Agent.start(program, Checkpoint.resume(undefined, { decisions }), { threadId: "t" })
        yield* handle.events.pipe(
          Stream.filter(({ _tag }) => _tag === "ToolCalled"),
          Stream.runHead
        )
        yield* handle.interrupt
        waits = false
        // The decided call needs no second decision; the other one still waits.
        const second = yield* Agent.resume(program, { threadId: "t" })
        assert.deepStrictEqual(
          second.pending.map(({ id }) => id),
          first.pending.filter(({ toolName }) => toolName === "pay").map(({ id }) => id)
        )
        const last = second.pending.map((request) => Approval.approve(request))
        const third = yield* Agent.resume(program, { threadId: "t", decisions: last })
        assert.strictEqual(third.text, "slow, pay did x")
        assert.deepStrictEqual(ran, ["pay x"])
      }).pipe(Effect.provide(journal.layer(threads)))
    })
  )
})

describe("a program as a sub-agent", () => {
  it.effect("is a tool with the parameters of its input", () =>
    Effect.gen(function* () {
      const tool = Agent.asTool(double)
      assert.deepStrictEqual(Object.keys((tool.parameters["properties"] ?? {}) as object), ["n"])
      const agent = Agent.make({ name: "parent", prompt: "", tools: [tool, Agent.asTool(shout)] })
      const { text } = yield* Agent.run(agent, "double that")
      assert.strictEqual(text, 'done: {"twice":22,"at":"1970-01-01T00:00:00.000Z"}')
      const seat = Agent.program({ name: "seat", input: Schema.Literals(["window"]), run: Effect.succeed })
      assert.deepStrictEqual(Object.keys((Agent.asTool(seat).parameters["properties"] ?? {}) as object), ["task"])
    }).pipe(Effect.provide(model))
  )

  it.effect("returns an output, or a failure without one", () =>
    Effect.gen(function* () {
      const mute = Agent.make({ name: "mute", prompt: "" })
      const program = Agent.program({
        name: "program",
        run: () =>
          Effect.all([Agent.answer(double, double.input({ n: 1 })), Effect.flip(Agent.answer(mute, "speak"))]).pipe(
            Effect.map(([{ twice }, error]) => `${twice} ${error._tag === "AgentError" ? error.reason._tag : ""}`)
          )
      })
      assert.strictEqual((yield* Agent.run(program, "x")).text, "2 NoAnswer")
    }).pipe(Effect.provide(TestChatModel.script([""])))
  )

  it.effect("of a model waits under its parent's approvals, and goes on at its place", () =>
    Effect.gen(function* () {
      const ran: Array<string> = []
      const program = Agent.program({
        name: "cashier",
        description: "Pays",
        tools: [act(ran), act(ran, "pay")],
        run: Effect.fnUntraced(function* (text) {
          return `${yield* calling("act", text)}, ${yield* calling("pay", text)}`
        })
      })
      const lead = Agent.make({
        name: "lead",
        prompt: "",
        middleware: [asking("pay"), Subagents.make({ agents: [program] })]
      })
      const first = yield* Agent.run(lead, "go")
      assert.deepStrictEqual(
        first.pending.map(({ path, toolName }) => [...path, toolName]),
        [["lead", "cashier", "pay"]]
      )
      const second = yield* Agent.resume(lead, {
        checkpoint: yield* throughJson(first),
        decisions: first.pending.map((request) => Approval.approve(request))
      })
      assert.strictEqual(second.text, "done: act did the bill, pay did the bill")
      assert.deepStrictEqual(ran, ["act the bill", "pay the bill"])
      // If the parent can't be suspended, nobody waits.
      const alone = Agent.make({ name: "alone", prompt: "", middleware: [Subagents.make({ agents: [program] })] })
      assert.strictEqual((yield* Agent.run(alone, "go")).stopReason, "completed")
    }).pipe(
      Effect.provide(
        TestChatModel.reactive((request) => {
          const last = request.messages.at(-1)
          if (last?.role === "tool") return `done: ${Message.text(last)}`
          return TestChatModel.calls([
            { name: "task", arguments: { subagent_type: "cashier", description: "the bill" } }
          ])
        })
      )
    )
  )
})

describe("a rule about tools of a program's sub-agents", () => {
  it.effect("is not taken for misspelt if the program names these tools, also for users of the program", () =>
    Effect.gen(function* () {
      const child = Agent.make({ name: "child", prompt: "", tools: [act([], "pay")] })
      const makeProgram = (reaches?: ReadonlySet<string>) =>
        Agent.program({
          name: "program",
          reaches,
          middleware: [HumanInTheLoop.make({ tools: { pay: true } })],
          run: (text) => Agent.answer(child, text)
        })
      const refused = yield* Effect.flip(Agent.run(makeProgram(), "pay it"))
      assert.isTrue(refused._tag === "AgentError" && refused.reason._tag === "InvalidAgent")
      const program = makeProgram(Agent.toolNames(child))
      assert.strictEqual((yield* Agent.run(program, "pay it")).pending.length, 1)
      assert.isTrue(Agent.asTool(program).reaches?.has("pay"))
    }).pipe(Effect.provide(model))
  )
})

describe("a program of later code", () => {
  it.effect("reports earlier work that is no longer used, once", () =>
    Effect.gen(function* () {
      const ran: Array<string> = []
      const version = (names: ReadonlyArray<string>) =>
        Agent.program({
          name: "program",
          middleware: [Middleware.suspendable],
          run: () =>
            Effect.gen(function* () {
              for (const name of names) yield* noted(ran, name)
              return (yield* ask(Question.confirm("go?"))) ? "went" : "stayed"
            })
        })
      const first = yield* Agent.run(version(["a", "b", "c"]), "x")
      const decisions = first.pending.map((request) => Approval.respond(request, true))
      const checkpoint = yield* throughJson(first)
      const warned = (names: ReadonlyArray<string>) =>
        Effect.map(AgentTest.events(version(names), Checkpoint.resume(checkpoint, { decisions })), (events) =>
          events.flatMap((event) => (event._tag === "Warning" ? [[event.code, event.message]] : []))
        )
      assert.deepStrictEqual(yield* warned(["a", "b", "c"]), [])
      const [warning = [], ...more] = yield* warned(["a", "d"])
      assert.deepStrictEqual(more, [])
      assert.strictEqual(warning[0], "replay-drift")
      assert.include(warning[1], "step:b#1, step:c#1")
      assert.deepStrictEqual(ran, ["a", "b", "c", "d"])
    })
  )

  it.effect("ends with the slot named that it can't read", () =>
    Effect.gen(function* () {
      const version = <A>(schema: Schema.Codec<A, A>, value: A) =>
        Agent.program({
          name: "program",
          middleware: [Middleware.suspendable],
          run: () =>
            Effect.gen(function* () {
              yield* Agent.step("count", Effect.succeed(value), schema)
              return (yield* ask(Question.confirm("go?"))) ? "went" : "stayed"
            })
        })
      const first = yield* Agent.run(version(Schema.Finite, 1), "x")
      const error = yield* Effect.flip(Agent.resume(version(Schema.String, ""), { checkpoint: first }))
      assert.isTrue(error._tag === "AgentError" && error.reason._tag === "InvalidState")
      assert.include(error.message, 'step "count"')
    })
  )
})
