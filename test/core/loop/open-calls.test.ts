/** Facts about open calls: asked, begun, never began. They hold wherever a run is cut off. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Schema } from "effect"
import {
  Agent,
  Approval,
  type ChatModel,
  Checkpoint,
  type Journal,
  Message,
  Middleware,
  Ruling,
  SessionError,
  Tool,
  ToolContext,
  ToolError,
  ToolOutput
} from "effect-deepagents"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import * as journal from "../journal.ts"

const pay = (ran: Array<number>) =>
  Tool.make("pay", {
    description: "Pays",
    parameters: { n: Schema.Int },
    execute: ({ n }) => Effect.sync(() => `paid ${ran.push(n)}`)
  })

const call = (name: string, args = {}) => TestChatModel.calls([{ name, arguments: args }])

/** A gate that takes its time, and then asks. */
const slowly = (work: Effect.Effect<unknown> = Effect.void) =>
  Middleware.make({
    asks: true,
    name: "slow",
    inherit: true,
    rulings: (_run, calls) =>
      Effect.as(
        work,
        calls.map(({ name }) => (name === "pay" ? Ruling.ask("test", { description: "pay?" }) : undefined))
      )
  })

/** A model that pays once, and then repeats the result. */
const paying = TestChatModel.reactive((request) => {
  const last = request.messages.at(-1)
  return last?.role === "tool" ? `end: ${Message.text(last)}` : call("pay", { n: 1 })
})

/** The thread after each append, and the effects by then. */
const recorded = (ran: ReadonlyArray<number>) => {
  const stored = journal.stored()
  const cuts: Array<{ readonly entries: ReadonlyArray<Journal.Entry>; readonly ran: ReadonlyArray<number> }> = []
  stored.onAppend = Effect.sync(() => {
    if (stored.entries.length > 0) cuts.push({ entries: [...stored.entries], ran: [...ran] })
  })
  return { stored, cuts }
}

const approveAll = (pending: ReadonlyArray<Approval.Request>) => pending.map((request) => Approval.approve(request))

describe("a run that is cut off where its gates are asked", () => {
  it.effect("asks when it is resumed, cut off at any append", () =>
    Effect.gen(function* () {
      const ran: Array<number> = []
      const { cuts, stored } = recorded(ran)
      const threads: Record<string, journal.Stored> = { t: stored }
      const agent = Agent.make({ name: "a", prompt: "", tools: [pay(ran)], middleware: [slowly()] })
      const first = yield* Agent.run(agent, "go", { threadId: "t" }).pipe(Effect.provide(journal.layer(threads)))
      assert.strictEqual(first.pending.length, 1)
      cuts.push({ entries: [...stored.entries], ran: [] })
      for (const [at, { entries }] of cuts.entries()) {
        const again = journal.layer({ t: journal.stored(entries) })
        const asked = yield* Agent.resume(agent, { threadId: "t" }).pipe(Effect.provide(again))
        assert.strictEqual(asked.stopReason, "suspended", `cut ${at}`)
        assert.deepStrictEqual(ran, [], `cut ${at}`)
      }
      const result = yield* Agent.resume(agent, { threadId: "t", decisions: approveAll(first.pending) }).pipe(
        Effect.provide(journal.layer(threads))
      )
      assert.strictEqual(result.text, "end: paid 1")
      assert.deepStrictEqual(ran, [1])
    }).pipe(Effect.provide(paying))
  )

  it.effect("asks when it is resumed after a run that waited again and could not store its end", () =>
    Effect.gen(function* () {
      const ran: Array<number> = []
      const stored = journal.stored()
      const threads: Record<string, journal.Stored> = { t: stored }
      const agent = Agent.make({ name: "a", prompt: "", tools: [pay(ran)], middleware: [slowly()] })
      const resume = (decisions: ReadonlyArray<Approval.Decision> = []) =>
        Agent.resume(agent, { threadId: "t", decisions }).pipe(Effect.provide(journal.layer(threads)))
      yield* Agent.run(agent, "go", { threadId: "t" }).pipe(Effect.provide(journal.layer(threads)))
      // One append of a run is lost, the next one arrives: a connection that is cut and made anew.
      for (let lost = 1; ; lost++) {
        let appends = 0
        stored.onAppend = Effect.suspend(() =>
          ++appends === lost
            ? Effect.fail(SessionError.make("append", "t", { _tag: "Unavailable", problem: "cut" }))
            : Effect.void
        )
        const exit = yield* Effect.exit(resume())
        assert.strictEqual(Exit.isFailure(exit), appends >= lost, `append ${lost}`)
        stored.onAppend = Effect.void
        if (appends < lost) break
        assert.strictEqual((yield* resume()).stopReason, "suspended", `append ${lost}`)
        assert.deepStrictEqual(ran, [])
      }
      const { pending } = yield* resume()
      assert.strictEqual((yield* resume(approveAll(pending))).text, "end: paid 1")
    }).pipe(Effect.provide(paying))
  )

  it.effect("that waits for a person in its process: is asked again, and begun calls are reported as unknown", () =>
    Effect.gen(function* () {
      const ran: Array<number> = []
      const { cuts, stored } = recorded(ran)
      const gate = Middleware.make({
        asks: true,
        name: "ask",
        rulings: (_run, calls) => Effect.succeed(calls.map(() => Ruling.ask("test", { description: "pay?" })))
      })
      let asked = 0
      const agent = Agent.make({ name: "a", prompt: "", tools: [pay(ran)], middleware: [gate] })
      const answering = Layer.succeed(Approval.Approvals, {
        decide: (request) => Effect.sync(() => (asked++, Approval.approve(request)))
      })
      const whole = yield* Agent.run(agent, "go", { threadId: "t" }).pipe(
        Effect.provide([journal.layer({ t: stored }), answering])
      )
      assert.strictEqual(whole.text, "end: paid 1")
      for (const [at, cut] of cuts.entries()) {
        ran.length = 0
        asked = 0
        const again = journal.layer({ t: journal.stored(cut.entries) })
        const result = yield* Agent.resume(agent, { threadId: "t" }).pipe(Effect.provide([again, answering]))
        if (cut.ran.length === 0 && asked === 1) assert.deepStrictEqual([result.text, ran], ["end: paid 1", [1]])
        else {
          // It had begun, and may have been done: it is neither asked nor done again.
          assert.deepStrictEqual([asked, ran], [0, []], `cut ${at}`)
          assert.match(result.text, /paid 1|not known/, `cut ${at}`)
        }
      }
      const mayHaveBegun = cuts.filter(({ entries }) => {
        const state = journal.checkpointOf(entries)?.state["suspension"] ?? null
        return state === null && entries.some((entry) => entry._tag === "Message" && entry.message.role === "ai")
      })
      assert.isAbove(mayHaveBegun.length, 0)
    }).pipe(Effect.provide(paying))
  )

  it.effect("asks when it was interrupted while a gate was at work", () =>
    Effect.gen(function* () {
      const ran: Array<number> = []
      const threads: Record<string, journal.Stored> = {}
      const isAsked = yield* Deferred.make<void>()
      const never = Effect.andThen(Deferred.succeed(isAsked, undefined), Effect.never)
      const agent = (work: Effect.Effect<unknown>) =>
        Agent.make({ name: "a", prompt: "", tools: [pay(ran)], middleware: [slowly(work)] })
      const fiber = yield* Agent.run(agent(never), "go", { threadId: "t" }).pipe(
        Effect.provide(journal.layer(threads)),
        Effect.forkChild
      )
      yield* Deferred.await(isAsked)
      yield* Fiber.interrupt(fiber)
      const result = yield* Agent.resume(agent(Effect.void), { threadId: "t" }).pipe(
        Effect.provide(journal.layer(threads))
      )
      assert.strictEqual(result.stopReason, "suspended")
      assert.strictEqual(result.pending.length, 1)
      assert.deepStrictEqual(ran, [])
    }).pipe(Effect.provide(paying))
  )

  it.effect("is not stored as begun by a sub-agent that works beside it", () =>
    Effect.gen(function* () {
      const ran: Array<number> = []
      const { cuts, stored } = recorded(ran)
      const work = Tool.make("work", { description: "", parameters: {}, execute: () => Effect.succeed("worked") })
      const child = (name: string) => Agent.make({ name, prompt: name, tools: [pay(ran), work] })
      const both = Tool.make("both", {
        description: "",
        parameters: {},
        annotations: { resumable: true },
        execute: () =>
          Effect.map(
            Effect.all([Agent.delegate(child("payer"), "go"), Agent.delegate(child("worker"), "go")], {
              concurrency: "unbounded"
            }),
            (results) => results.map(({ text }) => text).join(", ")
          )
      })
      // The payer's gate is at work while the worker stores step after step.
      const agent = Agent.make({ name: "top", prompt: "top", tools: [both], middleware: [slowly(Effect.sleep(100))] })
      const run = Agent.run(agent, "go", { threadId: "t" }).pipe(Effect.provide(journal.layer({ t: stored })))
      const fiber = yield* Effect.forkChild(run)
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(fiber)
      assert.isAbove(cuts.length, 5)
      for (const [at, { entries }] of cuts.entries()) {
        const again = Agent.resume(agent, { threadId: "t" }).pipe(
          Effect.provide(journal.layer({ t: journal.stored(entries) }))
        )
        const resumed = yield* Effect.forkChild(again)
        yield* TestClock.adjust("1 minute")
        const { messages, pending, stopReason } = yield* Fiber.join(resumed)
        const said = JSON.stringify(messages)
        assert.strictEqual(stopReason, "suspended", `cut ${at}: ${said}`)
        assert.strictEqual(pending.length, 1, `cut ${at}`)
      }
      assert.deepStrictEqual(ran, [])
    }).pipe(
      Effect.provide(
        TestChatModel.reactive((request) => {
          const { messages, systemPrompt } = request
          const turns = messages.filter(({ role }) => role === "ai").length
          if (systemPrompt === "top") return turns === 0 ? call("both") : "over"
          if (systemPrompt === "payer") return turns === 0 ? call("pay", { n: 1 }) : "paid"
          return turns < 6 ? call("work", { turn: turns }) : "done"
        })
      )
    )
  )
})

describe("a call inside of an open call", () => {
  /** A tool that pays by an inner call. `around` turns a failure into the tool's result. */
  const shop = (around: (work: Effect.Effect<string, { readonly reason: string }>) => Effect.Effect<string, never>) =>
    Tool.make("shop", {
      description: "",
      parameters: {},
      annotations: { resumable: true },
      execute: Effect.fnUntraced(function* () {
        const context = yield* ToolContext.ToolContext
        return yield* around(Effect.map(context.call("pay", { n: 1 }), ToolOutput.text))
      })
    })
  const buying = TestChatModel.reactive(({ messages }) => {
    const last = messages.at(-1)
    return last?.role === "tool" ? Message.text(last) : call("shop")
  })
  const named = shop((work) => Effect.catch(work, ({ reason }) => Effect.succeed(reason)))

  /** The entries of a thread up to the append that says that the inner call was begun. */
  const begun = Effect.gen(function* () {
    const ran: Array<number> = []
    const { cuts, stored } = recorded(ran)
    const agent = Agent.make({ name: "a", prompt: "", tools: [named, pay(ran)] })
    yield* Agent.run(agent, "go", { threadId: "t" }).pipe(Effect.provide(journal.layer({ t: stored })))
    const isBegun = ({ entries }: { readonly entries: ReadonlyArray<Journal.Entry> }) =>
      entries.some((entry) => entry._tag === "State" && JSON.stringify(entry.value ?? null).includes(`"begun"`))
    const cut = cuts.find(isBegun)
    assert.isDefined(cut)
    return cut.entries
  })

  const resumed = (entries: ReadonlyArray<Journal.Entry>, tools: ReadonlyArray<Tool.Tool<ToolContext.ToolContext>>) => {
    const agent = Agent.make({ name: "a", prompt: "", tools })
    return Agent.resume(agent, { threadId: "t" }).pipe(Effect.provide(journal.layer({ t: journal.stored(entries) })))
  }

  it.effect("whose outcome is not known fails: it never succeeds with a text", () =>
    Effect.gen(function* () {
      const ran: Array<number> = []
      const { text } = yield* resumed(yield* begun, [named, pay(ran)])
      assert.strictEqual(text, "UnknownOutcome")
      assert.deepStrictEqual(ran, [])
    }).pipe(Effect.provide(buying))
  )

  it.effect("whose tool is gone fails with the same reason, and warns", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "a", prompt: "", tools: [named] })
      const entries = yield* begun
      assert.strictEqual((yield* resumed(entries, [named])).text, "UnknownOutcome")
      const { events } = yield* AgentTest.collect(agent, Checkpoint.resume(undefined), { threadId: "t" }).pipe(
        Effect.provide(journal.layer({ t: journal.stored(entries) }))
      )
      const warnings = events.flatMap((event) => (event._tag === "Warning" ? [`${event.code}: ${event.message}`] : []))
      assert.lengthOf(warnings, 1)
      assert.match(warnings[0] ?? "", /^tool-gone: The tool "pay" .* its outcome is not known/)
    }).pipe(Effect.provide(buying))
  )

  it.effect("of another tool of that name fails, and runs neither", () =>
    Effect.gen(function* () {
      const ran: Array<number> = []
      const shop = Tool.make("shop", {
        description: "",
        parameters: {},
        execute: () =>
          Effect.flatMap(ToolContext.ToolContext, ({ call }) =>
            Effect.catch(Effect.map(call(pay(ran), { n: 1 }), ToolOutput.text), ({ message, reason }) =>
              Effect.succeed(`${reason}: ${message}`)
            )
          )
      })
      const { text } = yield* Agent.run(Agent.make({ name: "a", prompt: "", tools: [shop, pay(ran)] }), "go")
      assert.match(text, /^UnknownTool: "pay" is not the tool of this name that the run has/)
      assert.deepStrictEqual(ran, [])
    }).pipe(Effect.provide(buying))
  )

  /** The model's input about a call that another run had nearly ended, and that goes another way now. */
  const goesOn = <E>(
    tool: Tool.Tool<ToolContext.ToolContext | ChatModel.ChatModel>,
    inner: Tool.Tool<ToolContext.ToolContext>,
    middleware: ReadonlyArray<Middleware.Middleware<E, never>> = []
  ) =>
    Effect.gen(function* () {
      const { cuts, stored } = recorded([])
      const agent = Agent.make({ name: "a", prompt: "", tools: [tool, inner], middleware })
      yield* Agent.run(agent, "go", { threadId: "t" }).pipe(Effect.provide(journal.layer({ t: stored })))
      const isAnswered = (entry: Journal.Entry) => entry._tag === "Message" && entry.message.role === "tool"
      const cut = cuts.findLast(({ entries }) => !entries.some(isAnswered))
      assert.isDefined(cut)
      return (yield* resumed(cut.entries, [shop(() => Effect.succeed("another way")), inner])).text
    })

  it.effect("tells the result of a finished call if the outer call goes another way", () =>
    Effect.gen(function* () {
      const text = yield* goesOn(named, pay([]))
      assert.include(text, "another way")
      assert.include(text, `"pay" was done. Its result: paid 1`)
      assert.notInclude(text, "not known")
    }).pipe(Effect.provide(buying))
  )

  it.effect("that failed is told with its failure", () =>
    Effect.gen(function* () {
      const broke = Tool.make("pay", {
        description: "",
        parameters: { n: Schema.Int },
        execute: () => Effect.fail(ToolError.make("no money"))
      })
      assert.include(yield* goesOn(named, broke), `"pay" was done. Its result: failed: no money`)
    }).pipe(Effect.provide(buying))
  )

  it.effect("of a sub-agent that had answered is told with its answer", () =>
    Effect.gen(function* () {
      const child = Agent.make({ name: "child", prompt: "child" })
      const asking = Tool.make("shop", {
        description: "",
        parameters: {},
        annotations: { resumable: true },
        execute: () => Effect.orDie(Effect.map(Agent.delegate(child, "Price?"), ({ text }) => text))
      })
      const text = yield* goesOn(asking, pay([]))
      assert.include(text, `"child" was done. Its result: it costs 5`)
      assert.notInclude(text, "not known")
    }).pipe(
      Effect.provide(
        TestChatModel.reactive(({ messages, systemPrompt }) => {
          const last = messages.at(-1)
          if (systemPrompt === "child") return "it costs 5"
          return last?.role === "tool" ? Message.text(last) : call("shop")
        })
      )
    )
  )

  it.effect("that only asked, and never began, is not told", () =>
    Effect.gen(function* () {
      const ran: Array<number> = []
      const text = yield* goesOn(named, pay(ran), [Middleware.suspendable, slowly()])
      assert.strictEqual(text, "another way")
      assert.deepStrictEqual(ran, [])
    }).pipe(Effect.provide(buying))
  )
})

describe("a step", () => {
  const program = <A>(run: Effect.Effect<A, never, ToolContext.ToolContext>) =>
    Agent.program({ name: "p", run: () => Effect.as(run, "over") })

  it.effect("whose value is no JSON fails by the schema of the step, not by the state", () =>
    Effect.gen(function* () {
      const values: ReadonlyArray<unknown> = [() => 1, 1n, new Map(), Symbol("s"), { a: () => 1 }]
      for (const value of values) {
        for (const schema of [Schema.Any, Schema.Unknown]) {
          const step = Agent.step("odd", Effect.succeed(value), schema)
          const error = yield* Effect.flip(Agent.run(program(step), "go"))
          assert.strictEqual(error._tag === "AgentError" && error.reason._tag, "InvalidOutput", String(value))
          assert.match(error.message, /the step "odd" was done, but its value can't be stored as JSON/)
        }
      }
    })
  )

  it.effect("warns where two of one name are at work at once", () =>
    Effect.gen(function* () {
      const nap = (name: string) => Agent.step(name, Effect.as(Effect.yieldNow, 1), Schema.Finite)
      const warnings = (names: ReadonlyArray<string>) =>
        Effect.map(
          AgentTest.collect(program(Effect.all(names.map(nap), { concurrency: "unbounded" })), "go"),
          ({ events }) => events.flatMap((event) => (event._tag === "Warning" ? [event.code] : []))
        )
      assert.deepStrictEqual(yield* warnings(["a", "b"]), [])
      assert.deepStrictEqual(yield* warnings(["a", "a"]), ["step-name"])
    })
  )
})

describe("a call that a gate answered", () => {
  it.effect("is neither run, nor told as begun, by a run that was cut off beside it", () =>
    Effect.gen(function* () {
      const ran: Array<number> = []
      const { cuts, stored } = recorded(ran)
      const refusing = Middleware.make({
        name: "refusing",
        rulings: (_run, calls) =>
          Effect.succeed(
            calls.map(({ arguments: args }) => (args["n"] === 2 ? Ruling.refuse("test", "not two") : undefined))
          )
      })
      const agent = (isRefusing: boolean) =>
        Agent.make({ name: "a", prompt: "", tools: [pay(ran)], middleware: isRefusing ? [refusing] : [] })
      yield* Agent.run(agent(true), "go", { threadId: "t" }).pipe(Effect.provide(journal.layer({ t: stored })))
      assert.deepStrictEqual(ran, [1])
      const begun = cuts.filter(({ entries }) =>
        entries.some((entry) => entry._tag === "Message" && entry.message.role === "ai")
      )
      assert.isAbove(begun.length, 0)
      for (const [at, { entries }] of begun.entries()) {
        ran.length = 0
        // The gate is gone: its ruling holds all the same.
        const { messages } = yield* Agent.resume(agent(false), { threadId: "t" }).pipe(
          Effect.provide(journal.layer({ t: journal.stored(entries) }))
        )
        assert.deepStrictEqual(ran, [], `cut ${at}`)
        const answer = messages.find((message) => message.role === "tool" && message.toolCallId.endsWith("2"))
        assert.include(answer === undefined ? "" : Message.text(answer), "not two", `cut ${at}`)
      }
    }).pipe(
      Effect.provide(
        TestChatModel.reactive(({ messages }) =>
          messages.some(({ role }) => role === "tool")
            ? "over"
            : TestChatModel.calls([
                { name: "pay", arguments: { n: 1 } },
                { name: "pay", arguments: { n: 2 } }
              ])
        )
      )
    )
  )
})

describe("a run that is resumed", () => {
  it.effect("runs a call that an interruption kept from beginning, and says nothing of it before", () =>
    Effect.gen(function* () {
      const ran: Array<number> = []
      const threads: Record<string, journal.Stored> = {}
      const isBegun = yield* Deferred.make<void>()
      let isFirst = true
      const long = Tool.make("long", {
        description: "",
        parameters: {},
        annotations: { resumable: true },
        execute: () =>
          isFirst
            ? Effect.andThen(Deferred.succeed(isBegun, undefined), Effect.as(Effect.never, ""))
            : Effect.succeed("long")
      })
      const agent = Agent.make({ name: "a", prompt: "", tools: [long, pay(ran)], toolConcurrency: 1 })
      const fiber = yield* Agent.run(agent, "go", { threadId: "t" }).pipe(
        Effect.provide(journal.layer(threads)),
        Effect.forkChild
      )
      yield* Deferred.await(isBegun)
      yield* Fiber.interrupt(fiber)
      isFirst = false
      const { messages } = yield* Agent.resume(agent, { threadId: "t" }).pipe(Effect.provide(journal.layer(threads)))
      const answers = messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))
      assert.deepStrictEqual([answers, ran], [["long", "paid 1"], [1]])
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([
            { name: "long", arguments: {} },
            { name: "pay", arguments: { n: 1 } }
          ]),
          "over"
        ])
      )
    )
  )

  it.effect("counts a round again only if its calls are open", () =>
    Effect.gen(function* () {
      const threads: Record<string, journal.Stored> = {}
      const inThread = Effect.provide(journal.layer(threads))
      const agent = Agent.make({ name: "a", prompt: "", tools: [pay([])], middleware: [slowly()] })
      const first = yield* Agent.run(agent, "go", { threadId: "t" }).pipe(inThread)
      assert.deepStrictEqual([first.stopReason, first.rounds], ["suspended", 1])
      const second = yield* Agent.resume(agent, { threadId: "t", decisions: approveAll(first.pending) }).pipe(inThread)
      assert.deepStrictEqual([second.stopReason, second.rounds], ["completed", 2])
      const third = yield* Agent.resume(agent, { threadId: "t" }).pipe(inThread)
      assert.deepStrictEqual([third.text, third.rounds], [second.text, 2])
    }).pipe(Effect.provide(paying))
  )

  it.effect("counts the round of a program again only if the program is open", () =>
    Effect.gen(function* () {
      const inThread = Effect.provide(journal.layer({}))
      const program = Agent.program({ name: "p", run: () => Effect.succeed("done") })
      const first = yield* Agent.run(program, "go", { threadId: "t" }).pipe(inThread)
      const second = yield* Agent.resume(program, { threadId: "t" }).pipe(inThread)
      assert.deepStrictEqual([second.text, second.rounds], [first.text, first.rounds])
      assert.isAbove(first.rounds, 0)
    })
  )
})
