/** The inside of an open call: its effects happen once, through any interruption of the run. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Schedule, Schema } from "effect"
import {
  Agent,
  AgentState,
  Approval,
  Checkpoint,
  type Journal,
  Message,
  Middleware,
  Ruling,
  Question,
  Tool,
  ToolContext,
  ToolError,
  ToolOutput
} from "effect-deepagents"
import { ToolRetry } from "effect-deepagents/middleware"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import * as journal from "../journal.ts"

const { suspendable } = Middleware

const recorder = () => {
  const ran: Array<string> = []
  const act = (name: string, options?: { readonly needsApproval?: true; readonly readOnly?: true }) =>
    Tool.make(name, {
      description: "",
      parameters: { on: Schema.String },
      annotations: { readOnly: options?.readOnly },
      execute: ({ on }) =>
        Effect.sync(() => {
          ran.push(`${name} ${on}`)
          return `${name} did ${on}`
        })
    })
  return { ran, act }
}

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

const approveAll = (result: Checkpoint.Checkpoint & { readonly pending: ReadonlyArray<Approval.Request> }) => ({
  decisions: result.pending.map((request) => Approval.approve(request))
})

const throughJson = (checkpoint: Checkpoint.Checkpoint) =>
  Checkpoint.decode(JSON.parse(JSON.stringify(Checkpoint.encode(checkpoint))))

const answers = (messages: ReadonlyArray<Message.Message>) =>
  messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))

const recordsOf = ({ state }: Checkpoint.Checkpoint) => Object.keys(state).filter((slot) => slot.startsWith("inside/"))

const call = (name: string, args: { readonly [key: string]: string | number } = {}) =>
  TestChatModel.calls([{ name, arguments: args }])

const outer = <E, R>(work: Effect.Effect<string, E, R>) =>
  Tool.make("outer", { description: "", parameters: {}, annotations: { resumable: true }, execute: () => work })

/** A model that calls `outer` at the start, else the tool that a task begins with; then it repeats the result. */
const model = TestChatModel.reactive((request) => {
  const last = request.messages.at(-1)
  if (last?.role === "tool") return `done: ${Message.text(last)}`
  const text = last === undefined ? "" : Message.text(last)
  if (text === "go") return call("outer")
  return call(text.split(" ")[0] ?? "", { on: text })
})

describe("sub-agents of an open call", () => {
  it.effect("after a retry of the tool, approved calls run, of the attempt that asked", () =>
    Effect.gen(function* () {
      const { act, ran } = recorder()
      const child = Agent.make({ name: "child", prompt: "", tools: [act("act")] })
      const tool = outer(
        Effect.gen(function* () {
          const { text } = yield* Agent.delegate(child, "it")
          return text === "not yet" ? yield* Effect.fail(ToolError.make("again", { isRetryable: true })) : text
        })
      )
      const retry = ToolRetry.make({ tools: { outer: Schedule.recurs(2) } })
      const agent = Agent.make({ name: "parent", prompt: "", tools: [tool], middleware: [retry, asking("act")] })
      const first = yield* Agent.run(agent, "go")
      assert.deepStrictEqual(ran, [])
      assert.strictEqual(first.pending.length, 1)
      const second = yield* Agent.resume(agent, { checkpoint: yield* throughJson(first), ...approveAll(first) })
      assert.deepStrictEqual(ran, ["act it"])
      assert.deepStrictEqual(answers(second.messages), ["done: act did it"])
    }).pipe(
      Effect.provide(
        TestChatModel.script([call("outer"), "not yet", call("act", { on: "it" }), "done: act did it", "over"])
      )
    )
  )

  it.effect("two sub-agents of one name never swap their answers, and work beside a waiting one ends", () =>
    Effect.gen(function* () {
      const { act, ran } = recorder()
      const child = Agent.make({ name: "child", prompt: "", tools: [act("act"), act("pay")] })
      const one = (task: string) => Effect.map(Agent.delegate(child, task), ({ text }) => text)
      const chain = (name: string) => Effect.all([one(`act ${name}1`), one(`act ${name}2`)])
      const tool = outer(
        Effect.map(Effect.all([chain("x"), chain("y"), one("pay")], { concurrency: "unbounded" }), (all) =>
          all.flat().join("; ")
        )
      )
      const agent = Agent.make({ name: "parent", prompt: "", tools: [tool], middleware: [asking("pay")] })
      const first = yield* Agent.run(agent, "go")
      const free = ["act act x1", "act act x2", "act act y1", "act act y2"]
      assert.deepStrictEqual(ran.toSorted(), free)
      const second = yield* Agent.resume(agent, { checkpoint: yield* throughJson(first), ...approveAll(first) })
      assert.deepStrictEqual(answers(second.messages), [
        [...free, "pay pay"].map((did) => `done: ${did.replace(" ", " did ")}`).join("; ")
      ])
      assert.deepStrictEqual(ran.toSorted(), [...free, "pay pay"])
      assert.deepStrictEqual(recordsOf(second), [])
    }).pipe(Effect.provide(model))
  )

  it.effect("a conversation goes on from input to input, and is not said again when the call is run again", () =>
    Effect.gen(function* () {
      const { act, ran } = recorder()
      const child = Agent.make({ name: "child", prompt: "", tools: [act("act"), act("pay")] })
      const tool = outer(
        Effect.gen(function* () {
          const first = yield* Agent.delegate(child, "act 1", { session: "worker" })
          const second = yield* Agent.delegate(child, "pay 2", { session: "worker" })
          const third = yield* Agent.delegate(child, "act 3", { session: "worker" })
          return [first, second, third]
            .map((one) => `${one.text} (${one.newMessages.length} of ${one.messages.length})`)
            .join("; ")
        })
      )
      const agent = Agent.make({ name: "parent", prompt: "", tools: [tool], middleware: [asking("pay")] })
      const first = yield* Agent.run(agent, "go")
      assert.deepStrictEqual(ran, ["act act 1"])
      const second = yield* Agent.resume(agent, { checkpoint: yield* throughJson(first), ...approveAll(first) })
      assert.deepStrictEqual(answers(second.messages), [
        "done: act did act 1 (4 of 4); done: pay did pay 2 (4 of 8); done: act did act 3 (4 of 12)"
      ])
      assert.deepStrictEqual(ran, ["act act 1", "pay pay 2", "act act 3"])
    }).pipe(Effect.provide(model))
  )

  it.effect("inputs to one conversation at once queue, also behind one that waits for a person", () =>
    Effect.gen(function* () {
      const { act, ran } = recorder()
      const child = Agent.make({ name: "child", prompt: "", tools: [act("act"), act("pay")] })
      const delegateTask = (task: string) =>
        Effect.map(Agent.delegate(child, task, { session: "worker" }), ({ text }) => text)
      const tool = outer(
        Effect.map(Effect.all([delegateTask("pay 1"), delegateTask("act 2")], { concurrency: "unbounded" }), (all) =>
          all.join("; ")
        )
      )
      const agent = Agent.make({ name: "parent", prompt: "", tools: [tool], middleware: [asking("pay")] })
      const first = yield* Agent.run(agent, "go")
      assert.strictEqual(first.pending.length, 1)
      const second = yield* Agent.resume(agent, { checkpoint: yield* throughJson(first), ...approveAll(first) })
      assert.deepStrictEqual(answers(second.messages), ["done: pay did pay 1; done: act did act 2"])
      assert.deepStrictEqual(ran, ["pay pay 1", "act act 2"])
    }).pipe(Effect.provide(model))
  )

  it.effect("leave slots of any name as they are, and have names that no slot may take", () =>
    Effect.gen(function* () {
      const { act } = recorder()
      const tool = outer(
        Effect.gen(function* () {
          const { call } = yield* ToolContext.ToolContext
          return ToolOutput.text(yield* call("pay", { on: "it" }))
        })
      )
      const agent = Agent.make({ name: "a", prompt: "", tools: [tool, act("pay")], middleware: [asking("pay")] })
      const state = Object.fromEntries([["__proto__", { kept: true }]])
      const first = yield* Agent.run(agent, "go", { history: [Message.human("before")], state })
      const second = yield* Agent.resume(agent, { checkpoint: yield* throughJson(first), ...approveAll(first) })
      assert.deepStrictEqual(answers(second.messages), ["pay did it"])
      assert.isTrue(Object.hasOwn(second.state, "__proto__"))
      const taken = AgentState.slot("inside/mine", { schema: Schema.Int, initial: 0 })
      const error = yield* Effect.flip(
        Agent.run(
          Agent.make({ name: "b", prompt: "", middleware: [Middleware.make({ name: "m", state: [taken] })] }),
          "x"
        )
      )
      assert.include(error.message, "inside/mine")
    }).pipe(Effect.provide(model))
  )
})

describe("calls that a tool makes", () => {
  const brokered = (...tasks: ReadonlyArray<readonly [string, string]>) =>
    outer(
      Effect.gen(function* () {
        const { call } = yield* ToolContext.ToolContext
        const all = yield* Effect.forEach(
          tasks,
          ([name, on]) =>
            Effect.map(Effect.result(call(name, { on })), (result) =>
              result._tag === "Success"
                ? ToolOutput.text(result.success)
                : `${result.failure.reason}: ${result.failure.message}`
            ),
          { concurrency: "unbounded" }
        )
        return all.join("; ")
      })
    )

  it.effect("go through gates by their own names, wait, and are done once", () =>
    Effect.gen(function* () {
      const { act, ran } = recorder()
      const tool = brokered(["act", "1"], ["PAY", "2"], ["act", "3"], ["nope", "4"])
      const agent = Agent.make({
        name: "a",
        prompt: "",
        tools: [tool, act("act"), act("pay")],
        middleware: [asking("pay")]
      })
      const first = yield* Agent.run(agent, "go")
      assert.deepStrictEqual(ran.toSorted(), ["act 1", "act 3"])
      assert.deepStrictEqual(
        first.pending.map(({ callId, toolName }) => [callId, toolName]),
        [["call-1/2", "pay"]]
      )
      const events = yield* AgentTest.events(agent, Checkpoint.resume(yield* throughJson(first), approveAll(first)))
      assert.deepStrictEqual(ran.toSorted(), ["act 1", "act 3", "pay 2"])
      assert.deepStrictEqual(
        events.flatMap((event) => (event._tag === "ToolCompleted" ? [[event.callId, event.parent, event.text]] : [])),
        [
          ["call-1/2", "call-1", "pay did 2"],
          [
            "call-1",
            undefined,
            'act did 1; pay did 2; act did 3; UnknownTool: There is no tool "nope" now. There are: outer, act, pay.'
          ]
        ]
      )
    }).pipe(Effect.provide(model))
  )

  it.effect("are refused, edited and answered like the model's", () =>
    Effect.gen(function* () {
      const { act, ran } = recorder()
      const tool = brokered(["pay", "1"], ["pay", "2"], ["pay", "3"])
      const agent = Agent.make({ name: "a", prompt: "", tools: [tool, act("pay")], middleware: [asking("pay")] })
      const first = yield* Agent.run(agent, "go")
      const [one, two, three] = first.pending
      assert(one !== undefined && two !== undefined && three !== undefined)
      const checkpoint = yield* throughJson(first)
      const half = yield* Agent.resume(agent, { checkpoint, decisions: [Approval.reject(one, "no")] })
      assert.deepStrictEqual(
        half.pending.map(({ id }) => id),
        [two.id, three.id]
      )
      const decisions = [Approval.edit(two, { on: "less" }), Approval.respond(three, "mine")]
      const whole = yield* Agent.resume(agent, { checkpoint: yield* throughJson(half), decisions })
      assert.deepStrictEqual(answers(whole.messages), [
        "This call was refused and not executed: no; pay did less; mine"
      ])
      assert.deepStrictEqual(ran, ["pay less"])
    }).pipe(Effect.provide(model))
  )

  it.effect("leave nothing of their steps in a run that nobody can resume", () =>
    Effect.gen(function* () {
      const inner = Tool.make("inner", {
        description: "",
        parameters: { on: Schema.String },
        execute: ({ on }) => Agent.step("once", Effect.succeed(on), Schema.String)
      })
      const agent = Agent.make({ name: "a", prompt: "", tools: [brokered(["inner", "1"]), inner] })
      const result = yield* Agent.run(agent, "go")
      assert.deepStrictEqual(answers(result.messages), ["1"])
      assert.deepStrictEqual(recordsOf(result), [])
    }).pipe(Effect.provide(model))
  )

  it.effect("die when the call they belong to is over", () =>
    Effect.gen(function* () {
      const { act, ran } = recorder()
      let later: Effect.Effect<unknown, unknown> = Effect.void
      const tool = outer(
        Effect.gen(function* () {
          const { ask, call } = yield* ToolContext.ToolContext
          later = Effect.all([Effect.exit(call("act", { on: "late" })), Effect.exit(ask(Question.confirm("?")))])
          return "ok"
        })
      )
      yield* Agent.run(Agent.make({ name: "a", prompt: "", tools: [tool, act("act")] }), "go")
      yield* later
      assert.deepStrictEqual(ran, [])
    }).pipe(Effect.provide(model))
  )
})

describe("questions of a tool", () => {
  const seat = Question.make("Which seat?", { answer: Schema.Literals(["window", "aisle"]) })
  const booking = (ran: Array<string>) =>
    outer(
      Effect.gen(function* () {
        const { ask } = yield* ToolContext.ToolContext
        yield* Agent.step(
          "reserve",
          Effect.sync(() => ran.push("reserved")),
          Schema.Finite
        )
        const one = yield* ask(seat)
        const sure = yield* ask(Question.confirm("Sure?"))
        return `${one} ${sure}`
      })
    )

  it.effect("end the run, and are given their answers when it is resumed; steps before them are done once", () =>
    Effect.gen(function* () {
      const ran: Array<string> = []
      const agent = Agent.make({ name: "a", prompt: "", tools: [booking(ran)], middleware: [suspendable] })
      const first = yield* Agent.run(agent, "go")
      assert.deepStrictEqual(
        first.pending.map(({ allow, answer, description }) => ({ allow, answer, description })),
        [
          {
            allow: ["respond", "reject"],
            answer: { type: "string", enum: ["window", "aisle"] },
            description: "Which seat?"
          }
        ]
      )
      const [one] = first.pending
      assert(one !== undefined)
      const wrong = yield* Effect.flip(
        Agent.resume(agent, { checkpoint: yield* throughJson(first), decisions: [Approval.respond(one, "floor")] })
      )
      assert.include(wrong.message, "floor")
      const second = yield* Agent.resume(agent, {
        checkpoint: yield* throughJson(first),
        decisions: [Approval.respond(one, "aisle")]
      })
      const [two] = second.pending
      assert(two !== undefined)
      const third = yield* Agent.resume(agent, {
        checkpoint: yield* throughJson(second),
        decisions: [Approval.respond(two, true)]
      })
      assert.deepStrictEqual(answers(third.messages), ["aisle true"])
      assert.deepStrictEqual(ran, ["reserved"])
    }).pipe(Effect.provide(model))
  )

  it.effect("that nobody waits for any more are taken back, and nobody need answer them", () =>
    Effect.gen(function* () {
      const giveUp = outer(
        Effect.gen(function* () {
          const { ask } = yield* ToolContext.ToolContext
          const work = Agent.step("work", Effect.as(Effect.sleep("2 seconds"), "worked"), Schema.String)
          const asked = Effect.timeoutOrElse(ask(seat), { duration: "1 second", orElse: () => Effect.succeed("any") })
          const both = yield* Effect.all([work, asked], { concurrency: "unbounded" })
          return both.join(", ")
        })
      )
      const agent = Agent.make({ name: "a", prompt: "", tools: [giveUp], middleware: [suspendable] })
      const fiber = yield* Effect.forkChild(AgentTest.collect(agent, "go"))
      yield* TestClock.adjust("3 seconds")
      const { events } = yield* Fiber.join(fiber)
      assert.deepStrictEqual(
        events.flatMap((event) =>
          event._tag === "ApprovalResolved" ? [event.decision] : event._tag === "ToolCompleted" ? [event.text] : []
        ),
        ["void", "worked, any"]
      )
      assert.deepInclude(events.at(-1), { _tag: "RunCompleted", stopReason: "completed" })
    }).pipe(Effect.provide(model))
  )

  it.effect("wait where somebody decides while the run waits, and are asked again if the answer does not fit", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const given = ["floor", "window", true]
      const agent = Agent.make({ name: "a", prompt: "", tools: [booking([])] })
      const { messages } = yield* Agent.run(agent, "go").pipe(
        Effect.provideService(Approval.Approvals, {
          decide: (request) => {
            asked.push(request.description)
            return Effect.succeed(Approval.respond(request, given.shift() ?? null))
          }
        })
      )
      assert.deepStrictEqual(answers(messages), ["window true"])
      assert.strictEqual(asked.length, 3)
    }).pipe(Effect.provide(model))
  )

  it.effect("are turned down where nobody is", () =>
    Effect.gen(function* () {
      const { messages } = yield* Agent.run(Agent.make({ name: "a", prompt: "", tools: [booking([])] }), "go")
      assert.deepStrictEqual(answers(messages), ["Nobody is here to answer; do without it."])
    }).pipe(Effect.provide(model))
  )
})

describe("a crash in the middle of a call that can be resumed", () => {
  /** Three levels of agents, calls and steps; `act` must not be done twice. */
  const deep = (ran: Array<string>) => {
    const act = Tool.make("act", {
      description: "",
      parameters: { on: Schema.String },
      execute: ({ on }) =>
        Effect.sync(() => {
          ran.push(`act ${on}`)
          return `did ${on}`
        })
    })
    const bottom = Agent.make({ name: "bottom", prompt: "bottom", tools: [act] })
    const middle = Agent.make({ name: "middle", prompt: "middle", tools: [Agent.asTool(bottom), act] })
    const tool = outer(
      Effect.gen(function* () {
        const { call } = yield* ToolContext.ToolContext
        const noted = yield* Agent.step(
          "note",
          Effect.sync(() => `note ${ran.push("note")}`),
          Schema.String
        )
        const [one, two] = yield* Effect.all([Agent.delegate(middle, "act a"), textOf(call("act", { on: "b" }))], {
          concurrency: "unbounded"
        })
        return `${noted.slice(0, 4)}, ${one.text}, ${two}`
      })
    )
    return Agent.make({ name: "top", prompt: "top", tools: [tool, act] })
  }
  /** The text of an inner call, or the message of its unknown outcome. */
  const textOf = (work: Effect.Effect<ToolOutput.ToolOutput, ToolError.ToolError>) =>
    work.pipe(
      Effect.map(ToolOutput.text),
      Effect.catchIf(
        (error) => error.reason === "UnknownOutcome",
        (error) => Effect.succeed(error.message)
      )
    )
  const threeLevels = TestChatModel.reactive((request) => {
    const last = request.messages.at(-1)
    const said = last === undefined ? "" : Message.text(last)
    if (last?.role === "tool") return request.systemPrompt === "top" ? "over" : said
    if (request.systemPrompt === "top") return call("outer")
    return request.systemPrompt === "middle" ? call("bottom", { task: "a" }) : call("act", { on: "a" })
  })

  it.effect("loses nothing, and does nothing twice, wherever it comes", () =>
    Effect.gen(function* () {
      const ran: Array<string> = []
      const threads: Record<string, journal.Stored> = {}
      const crashes: Array<{ readonly entries: ReadonlyArray<Journal.Entry>; readonly ran: ReadonlyArray<string> }> = []
      const stored = journal.stored()
      stored.onAppend = Effect.sync(() => {
        crashes.push({ entries: [...stored.entries], ran: [...ran] })
      })
      threads["t"] = stored
      const whole = yield* Agent.run(deep(ran), "go", { threadId: "t" }).pipe(Effect.provide(journal.layer(threads)))
      const expected = ["note, did a, did b"]
      assert.deepStrictEqual(answers(whole.messages), expected)
      assert.isAbove(crashes.length, 8)
      for (const [at, crash] of crashes.entries()) {
        if (crash.entries.length === 0) continue
        const done = [...crash.ran]
        const again: Record<string, journal.Stored> = { t: journal.stored(crash.entries) }
        const result = yield* Agent.resume(deep(done), { threadId: "t" }).pipe(Effect.provide(journal.layer(again)))
        const twice = done.filter((one, index) => one !== "note" && done.indexOf(one) !== index)
        assert.deepStrictEqual(twice, [], `crash ${at}`)
        const [answer = ""] = answers(result.messages)
        assert.match(answer, /^note, (did a|.*not known.*), (did b|.*not known.*)$/s, `crash ${at}`)
        assert.deepStrictEqual(recordsOf(result), [], `crash ${at}`)
        const left = Object.keys(journal.checkpointOf(again["t"]?.entries ?? [])?.state ?? {})
        assert.deepStrictEqual(
          left.filter((slot) => slot.startsWith("inside")),
          [],
          `crash ${at}`
        )
      }
    }).pipe(Effect.provide(threeLevels))
  )

  it.effect("loses nothing to an interruption either; a new input gives up the work in flight", () =>
    Effect.gen(function* () {
      const ran: Array<string> = []
      const reached = yield* Deferred.make<void>()
      const hang = Tool.make("hang", {
        description: "",
        parameters: {},
        execute: () => Effect.andThen(Deferred.succeed(reached, undefined), Effect.never)
      })
      const act = Tool.make("act", {
        description: "",
        parameters: { on: Schema.String },
        execute: ({ on }) =>
          Effect.as(
            Effect.sync(() => ran.push(on)),
            `did ${on}`
          )
      })
      const child = Agent.make({ name: "child", prompt: "child", tools: [act, hang] })
      const top = Agent.make({ name: "top", prompt: "top", tools: [Agent.asTool(child), act] })
      const threads: Record<string, journal.Stored> = {}
      const layer = journal.layer(threads)
      const fiber = yield* Effect.forkChild(Effect.provide(Agent.run(top, "go", { threadId: "t" }), layer))
      yield* Deferred.await(reached)
      yield* Fiber.interrupt(fiber)
      const cut = [...(threads["t"]?.entries ?? [])]
      const resumed = yield* Effect.provide(Agent.resume(top, { threadId: "t" }), layer)
      assert.deepStrictEqual(AgentTest.pairingProblems(resumed.messages), [])
      assert.deepStrictEqual(answers(resumed.messages), [
        "child: did a + This call was interrupted. Whether it had an effect is not known.",
        "did top"
      ])
      assert.deepStrictEqual(ran.toSorted(), ["a", "top"])
      const other = journal.layer({ t: journal.stored(cut) })
      const next = yield* Effect.provide(Agent.run(top, "something else", { threadId: "t" }), other)
      assert.include(answers(next.messages)[0], "the run was stopped in it")
      assert.include(answers(next.messages)[1], "did top")
      assert.deepStrictEqual(recordsOf(next), [])
    }).pipe(
      Effect.provide(
        TestChatModel.reactive(({ messages, systemPrompt }) => {
          const said = messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))
          if (systemPrompt === "top") {
            return said.length > 0
              ? "over"
              : TestChatModel.calls([
                  { name: "child", arguments: { task: "x" } },
                  { name: "act", arguments: { on: "top" } }
                ])
          }
          return said.length === 0
            ? call("act", { on: "a" })
            : said.length === 1
              ? call("hang")
              : `child: ${said.join(" + ")}`
        })
      )
    )
  )
})
