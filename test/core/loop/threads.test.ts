import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema, Stream } from "effect"
import {
  Agent,
  AgentState,
  Approval,
  type Checkpoint,
  type Journal,
  Message,
  Middleware,
  Ruling,
  SessionError,
  Tool,
  ToolContext
} from "effect-deepagents"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import * as TestJournal from "../journal.ts"

const did = Tool.make("step", {
  description: "",
  parameters: { n: Schema.Int },
  execute: ({ n }) => Effect.succeed(`did ${n}`)
})

const step = (n: number) => TestChatModel.calls([{ name: "step", arguments: { n } }])

const tags = (entries: ReadonlyArray<Journal.Entry>) =>
  entries.map((entry) => (entry._tag === "Message" ? entry.message.role : entry._tag))

it.effect("a value that is no checkpoint is a wrong input", () =>
  Effect.gen(function* () {
    const agent = Agent.make({ name: "a", prompt: "" })
    const values: ReadonlyArray<unknown> = [
      {},
      { messages: {}, state: {} },
      { messages: [] },
      { messages: [{ role: "user" }], state: {} },
      { messages: ["hi"], state: {} }
    ]
    for (const checkpoint of values) {
      const options = { checkpoint: checkpoint as Checkpoint.Checkpoint }
      const { reason } = yield* Effect.flip(Agent.resume(agent, options)).pipe(
        Effect.provide(TestChatModel.script([], { exhaustive: false }))
      )
      assert.strictEqual(reason._tag, "InvalidInput")
    }
  })
)

describe("a run with a thread", () => {
  it.effect("stores each step before the next begins, and all before the run is told to be over", () => {
    const threads: Record<string, TestJournal.Stored> = {}
    const seen: Array<ReadonlyArray<string>> = []
    const look = Tool.make("step", {
      description: "",
      parameters: { n: Schema.Int },
      execute: () => Effect.sync(() => (seen.push(tags(threads["t"]?.entries ?? [])), "ok"))
    })
    const spy = Middleware.make({
      name: "spy",
      wrapModelCall: (request, next) => {
        seen.push(tags(threads["t"]?.entries ?? []))
        return next(request)
      }
    })
    const agent = Agent.make({ name: "a", prompt: "", tools: [look], middleware: [spy] })
    return Effect.gen(function* () {
      const { events } = yield* AgentTest.collect(agent, "go", { threadId: "t" })
      assert.deepStrictEqual(seen, [
        ["RunStarted", "human", "Step"],
        ["RunStarted", "human", "Step", "ai", "Step"],
        ["RunStarted", "human", "Step", "ai", "Step", "tool", "Step"]
      ])
      assert.deepStrictEqual(tags(threads["t"]?.entries ?? []).slice(7), ["ai", "RunSettled", "Step"])
      const last = events.slice(-2).map((event) => event._tag)
      assert.deepStrictEqual(last, ["CheckpointSaved", "RunCompleted"])
      assert.deepStrictEqual(
        events.flatMap((event) => (event._tag === "CheckpointSaved" ? [event.step] : [])),
        [3, 5, 7, 10]
      )
    }).pipe(Effect.provide([TestChatModel.script([step(1), "done"]), TestJournal.layer(threads)]))
  })

  it.effect("stores a round whose calls all only read in one go, and any other in two", () => {
    const threads: Record<string, TestJournal.Stored> = {}
    const seen: Array<ReadonlyArray<string>> = []
    const look = (name: string, annotations: Tool.Annotations) =>
      Tool.make(name, {
        description: "",
        parameters: {},
        annotations,
        execute: () => Effect.sync(() => (seen.push(tags(threads["t"]?.entries ?? []).slice(-2)), "ok"))
      })
    const tools = [look("read", { readOnly: true }), look("write", {})]
    const turn = (...names: ReadonlyArray<string>) =>
      TestChatModel.calls(names.map((name) => ({ name, arguments: {} })))
    return Effect.gen(function* () {
      const agent = Agent.make({ name: "a", prompt: "", tools })
      const { events } = yield* AgentTest.collect(agent, "go", { threadId: "t" })
      assert.deepStrictEqual(
        events.flatMap((event) => (event._tag === "CheckpointSaved" ? [event.step] : [])),
        [3, 6, 8, 11, 14]
      )
      assert.deepStrictEqual(seen, [
        ["human", "Step"],
        ["ai", "Step"],
        ["ai", "Step"]
      ])
    }).pipe(
      Effect.provide([TestChatModel.script([turn("read"), turn("read", "write"), "done"]), TestJournal.layer(threads)])
    )
  })

  it.effect("stores calls that only read in one go with their results, unless a gate counts one", () => {
    const makeRead = (approval: { readonly needsApproval?: true }) =>
      Tool.make("read", {
        description: "",
        parameters: {},
        annotations: { readOnly: true },
        ...approval,
        execute: () => Effect.succeed("ok")
      })
    const told = ["ToolCompleted", "ApprovalRequested", "CheckpointSaved"]
    const order = (said: Ruling.Ruling | undefined, approval = {}, parts: Partial<Middleware.Parts> = {}) => {
      const rulings = () => Effect.succeed([said])
      const middleware = [Middleware.make({ ...parts, asks: true, name: "gate", rulings })]
      const agent = Agent.make({ name: "a", prompt: "", tools: [makeRead(approval)], middleware })
      return Effect.map(AgentTest.collect(agent, "go", { threadId: "t" }), ({ events }) =>
        // After the one before the turn.
        events.flatMap(({ _tag }) => (told.includes(_tag) ? [_tag] : [])).slice(1)
      ).pipe(
        Effect.provide([
          TestChatModel.script([TestChatModel.calls([{ name: "read", arguments: {} }]), "done"], { exhaustive: false }),
          TestJournal.layer({})
        ])
      )
    }
    return Effect.gen(function* () {
      const [ran, saved, asked] = ["ToolCompleted", "CheckpointSaved", "ApprovalRequested"]
      assert.deepStrictEqual(yield* order(undefined), [ran, saved, saved])
      assert.deepStrictEqual(yield* order(undefined, {}, { counts: true }), [saved, ran, saved, saved])
      assert.deepStrictEqual(yield* order(undefined, {}, { rewriteArguments: () => Effect.succeed([{}]) }), [
        ran,
        saved,
        saved
      ])
      assert.deepStrictEqual(yield* order(Ruling.refuse("test", "no")), [saved, saved])
      assert.deepStrictEqual(yield* order(Ruling.ask("test", { description: "really?" })), [asked, saved])
      assert.deepStrictEqual(yield* order(undefined, { needsApproval: true }), [asked, saved])
    })
  })

  it.effect("goes on at the thread's end: with its messages and state, and the input as new message", () => {
    const count = AgentState.slot("count", { schema: Schema.Finite, initial: 0 })
    const add = Tool.make("step", {
      description: "",
      parameters: { n: Schema.Int },
      execute: Effect.fnUntraced(function* ({ n }) {
        const { state } = yield* ToolContext.ToolContext
        yield* state.update(count, (sum) => sum + n)
        return `${yield* state.get(count)}`
      })
    })
    const agent = Agent.make({ name: "a", prompt: "", tools: [add] })
    return Effect.gen(function* () {
      yield* Agent.run(agent, "one", { threadId: "t" })
      const { events } = yield* AgentTest.collect(agent, "two", { threadId: "t" })
      const loaded = events.find((event) => event._tag === "CheckpointLoaded")
      assert.strictEqual(loaded?.step, 11)
      const result = yield* Agent.run(agent, "three", { threadId: "t" })
      assert.deepStrictEqual(
        result.messages.map((message) => Message.text(message)),
        ["one", "", "1", "a", "two", "", "3", "b", "three", "c"]
      )
      const other = yield* Agent.run(agent, "elsewhere", { threadId: "u" })
      assert.strictEqual(other.messages.length, 2)
    }).pipe(Effect.provide([TestChatModel.script([step(1), "a", step(2), "b", "c", "d"]), TestJournal.layer({})]))
  })

  it.effect("after a crash in a tool, it goes on with its usage, and does not run it twice", () => {
    const threads: Record<string, TestJournal.Stored> = {}
    const ran: Array<number> = []
    const crash: { at: ReadonlyArray<Journal.Entry> } = { at: [] }
    const agent = Agent.make({
      name: "a",
      prompt: "",
      tools: [
        Tool.make("step", {
          description: "",
          parameters: { n: Schema.Int },
          execute: ({ n }) =>
            Effect.sync(() => {
              ran.push(n)
              crash.at = [...(threads["t"]?.entries ?? [])]
              return "ok"
            })
        })
      ]
    })
    return Effect.gen(function* () {
      yield* Agent.run(agent, "go", { threadId: "t" })
      // What a process that was killed inside of the second tool would have left.
      threads["t"] = TestJournal.stored(crash.at)
      const result = yield* Agent.resume(agent, { threadId: "t" })
      assert.deepStrictEqual(ran, [1, 2])
      assert.strictEqual(result.text, "after")
      assert.strictEqual(result.rounds, 3)
      const tools = result.messages.filter((message) => message.role === "tool").map((message) => Message.text(message))
      assert.strictEqual(tools[0], "ok")
      assert.include(tools[1], "not known")
      assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
    }).pipe(Effect.provide([TestChatModel.script([step(1), step(2), "done", "after"]), TestJournal.layer(threads)]))
  })

  it.effect("a decision given in another process goes on with the thread", () => {
    const threads: Record<string, TestJournal.Stored> = {}
    const gate = Middleware.make({
      asks: true,
      name: "gate",
      rulings: (_run, calls) => Effect.succeed(calls.map(() => Ruling.ask("test", { description: "may I?" })))
    })
    const agent = Agent.make({ name: "a", prompt: "", tools: [did], middleware: [gate] })
    return Effect.gen(function* () {
      const first = yield* Agent.run(agent, "go", { threadId: "t" })
      const [request] = first.pending
      assert(request !== undefined)
      const result = yield* Agent.resume(agent, { threadId: "t", decisions: [Approval.approve(request)] })
      assert.strictEqual(result.text, "done")
      assert.deepStrictEqual(
        tags(threads["t"]?.entries ?? []).filter((tag) => tag === "Request" || tag === "Decision"),
        ["Request", "Decision"]
      )
    }).pipe(Effect.provide([TestChatModel.script([step(1), "done"]), TestJournal.layer(threads)]))
  })

  it.effect("keeps a sub-agent's changes of shared slots, and not those of its own", () => {
    const threads: Record<string, TestJournal.Stored> = {}
    const all = AgentState.slot("all", {
      schema: Schema.Array(Schema.Int),
      initial: [],
      shared: { merge: (current, incoming) => [...new Set([...current, ...incoming])] }
    })
    const own = AgentState.slot("own", { schema: Schema.Int, initial: 0 })
    const write = Tool.make("step", {
      description: "",
      parameters: { n: Schema.Int },
      execute: Effect.fnUntraced(function* ({ n }) {
        const { state } = yield* ToolContext.ToolContext
        yield* state.set(all, [n])
        yield* state.set(own, n)
        return "ok"
      })
    })
    const child = Agent.make({ name: "child", prompt: "child", tools: [write] })
    const parent = Agent.make({ name: "parent", prompt: "parent", tools: [Agent.asTool(child)] })
    return Effect.gen(function* () {
      yield* Agent.run(parent, "go", { threadId: "t" })
      const entries = threads["t"]?.entries ?? []
      assert.deepStrictEqual(
        entries.flatMap((entry) =>
          entry._tag === "State" && !entry.slot.startsWith("inside/") ? [[entry.slot, entry.value]] : []
        ),
        [["all", [7]]]
      )
      assert.deepStrictEqual(
        tags(entries).filter((tag) => tag === "ai" || tag === "tool"),
        ["ai", "tool", "ai"]
      )
    }).pipe(
      Effect.provide([
        TestChatModel.script([
          TestChatModel.calls([{ name: "child", arguments: { task: "t" } }]),
          step(7),
          "child done",
          "done"
        ]),
        TestJournal.layer(threads)
      ])
    )
  })

  it.effect("writes a shortened history to the thread of its run, and reports it for every run", () => {
    const threads: Record<string, TestJournal.Stored> = {}
    const shortens = Middleware.make({
      name: "shortens",
      inherit: true,
      beforeAgent: (run) => run.compacted(run.depth + 100, 1)
    })
    const child = Agent.make({ name: "child", prompt: "child" })
    const parent = Agent.make({ name: "parent", prompt: "", tools: [Agent.asTool(child)], middleware: [shortens] })
    return Effect.gen(function* () {
      const { events } = yield* AgentTest.collect(parent, "go", { threadId: "t" })
      assert.deepStrictEqual(
        events.flatMap((event) => (event._tag === "Compacted" ? [event.tokensBefore] : [])),
        [100, 101]
      )
      assert.deepStrictEqual(
        threads["t"]?.entries.flatMap((entry) => (entry._tag === "Compaction" ? [entry.tokensBefore] : [])),
        [100]
      )
    }).pipe(
      Effect.provide([
        TestChatModel.script([TestChatModel.calls([{ name: "child", arguments: { task: "t" } }]), "short", "done"]),
        TestJournal.layer(threads)
      ])
    )
  })

  it.effect("fails when its thread can't be written, and says who wrote meanwhile", () => {
    const threads: Record<string, TestJournal.Stored> = { t: TestJournal.stored() }
    const intruder = Tool.make("step", {
      description: "",
      parameters: { n: Schema.Int },
      execute: () =>
        Effect.sync(() => {
          threads["t"]?.entries.push({ _tag: "Message", message: Message.human("me too") })
          return "ok"
        })
    })
    const agent = Agent.make({ name: "a", prompt: "", tools: [intruder] })
    return Effect.gen(function* () {
      const error = yield* Effect.flip(Agent.run(agent, "go", { threadId: "t" }))
      assert(error._tag === "AgentError" && error.reason._tag === "Thread")
      assert.strictEqual(error.reason.error.reason._tag, "Conflict")
    }).pipe(Effect.provide([TestChatModel.script([step(1)]), TestJournal.layer(threads)]))
  })

  it.effect("a step that could not be stored is stored with the end of the run: nothing is left out", () => {
    const threads: Record<string, TestJournal.Stored> = { t: TestJournal.stored() }
    let appends = 0
    // The disk is full once: when the turn with the calls is to be stored.
    const full = Effect.suspend(() =>
      ++appends === 2
        ? Effect.fail(SessionError.make("append", "t", { _tag: "Unavailable", problem: "the disk is full" }))
        : Effect.void
    )
    Object.assign(threads["t"] ?? {}, { onAppend: full })
    const agent = Agent.make({ name: "a", prompt: "", tools: [did] })
    return Effect.gen(function* () {
      const error = yield* Effect.flip(Agent.run(agent, "go", { threadId: "t" }))
      assert.include(error.message, "the disk is full")
      const entries = threads["t"]?.entries ?? []
      assert.deepStrictEqual(tags(entries), ["RunStarted", "human", "Step", "ai", "tool", "RunSettled", "Step"])
    }).pipe(Effect.provide([TestChatModel.script([step(1)]), TestJournal.layer(threads)]))
  })

  it.effect("keeps the error of a failed run, shortened; an interrupted one has none", () => {
    const threads: Record<string, TestJournal.Stored> = { t: TestJournal.stored(), u: TestJournal.stored() }
    const settled = (id: string) => threads[id]?.entries.find((entry) => entry._tag === "RunSettled")
    const agent = Agent.make({ name: "a", prompt: Effect.fail(new Error("x".repeat(10_000))) })
    return Effect.gen(function* () {
      yield* Effect.flip(Agent.run(agent, "go", { threadId: "t" }))
      const end = settled("t")
      assert.isTrue(end?._tag === "RunSettled" && end.outcome === "failed" && end.error?.message.length === 4_097)
      yield* Effect.scoped(
        Effect.flatMap(Agent.start(Agent.make({ name: "b", prompt: "" }), "go", { threadId: "u" }), (handle) =>
          Effect.andThen(
            Stream.runForEach(handle.events, ({ _tag }) => (_tag === "TextDelta" ? handle.interrupt : Effect.void)),
            Effect.exit(handle.await)
          ).pipe(Effect.exit)
        )
      )
      const other = settled("u")
      assert.isTrue(other?._tag === "RunSettled" && other.outcome === "interrupted" && !("error" in other))
    }).pipe(Effect.provide([TestChatModel.script([TestChatModel.hangAfter("half")]), TestJournal.layer(threads)]))
  })

  it.effect("takes history from the thread or from the options, never from both; and needs a journal", () => {
    const agent = Agent.make({ name: "a", prompt: "" })
    return Effect.gen(function* () {
      const both = yield* Effect.flip(
        Agent.run(agent, "go", { threadId: "t", history: [Message.human("x")] }).pipe(
          Effect.provide(TestJournal.layer({}))
        )
      )
      assert.include(both.message, "come from the thread")
      const options: Agent.RunOptions = { threadId: "t" }
      const none = yield* Effect.flip(Agent.run(agent, "go", options))
      assert.include(none.message, "effect-deepagents/sessions")
      const nothing = yield* Effect.flip(
        Agent.resume(agent, { threadId: "t" }).pipe(Effect.provide(TestJournal.layer({})))
      )
      assert.include(nothing.message, "nothing to continue")
    }).pipe(Effect.provide(TestChatModel.script([])))
  })

  it.effect("the size of a step does not depend on the length of the thread (invariant 15)", () => {
    const threads: Record<string, TestJournal.Stored> = {}
    const agent = Agent.make({ name: "a", prompt: "", tools: [did], maxRounds: 400 })
    return Effect.gen(function* () {
      yield* Agent.run(agent, "go", { threadId: "t" })
      const sizes = threads["t"]?.appends.map((entries) => entries.length) ?? []
      assert.isAbove(sizes.length, 400)
      assert.isAtMost(Math.max(...sizes), 3)
    }).pipe(
      Effect.provide([
        TestChatModel.script([...Array.from({ length: 200 }, (_, n) => step(n)), "done"]),
        TestJournal.layer(threads)
      ])
    )
  })
})
