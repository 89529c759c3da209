/** The transcript of the page: the same wherever its connection was cut, and from pieces of any size. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { Agent, Approval, Message, Tool, Usage } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { Server } from "effect-deepagents/server"
import { MemorySessions } from "effect-deepagents/sessions"
import { Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { View } from "effect-deepagents/view"
import * as Schema from "effect/Schema"
import * as fc from "fast-check"
import { makeParser } from "../../src/page/sse.ts"
import * as Tree from "../../src/page/tree.ts"
import { makeReader, type Moment } from "../../src/view/Transcript.ts"
import { scaled } from "../scale.ts"
import { framesOf } from "./site.ts"

const parseAll = (pieces: ReadonlyArray<string>) => {
  const parse = makeParser()
  return pieces.flatMap((piece) => parse(piece))
}

describe("the reader of events", () => {
  it("gives the same packets from pieces of any size", () => {
    const line = fc.string({ unit: fc.constantFrom("a", ":", " ", "é", "data", "\u2028", "{", "\0") })
    const packet = fc.record({ id: fc.constantFrom("1", "2"), lines: fc.array(line, { minLength: 1, maxLength: 3 }) })
    fc.assert(
      fc.property(
        fc.array(packet, { maxLength: 5 }),
        fc.array(fc.nat(400), { maxLength: 20 }),
        fc.constantFrom("\n", "\r\n"),
        (packets, cuts, end) => {
          const text = packets
            .map(({ id, lines }) =>
              [`id: ${id}`, ": a comment", "event: event", ...lines.map((one) => `data: ${one}`), "", ""].join(end)
            )
            .join("")
          const places = [...new Set([0, ...cuts.filter((at) => at < text.length)])].toSorted((a, b) => a - b)
          const pieces = places.map((at, index) => text.slice(at, places[index + 1]))
          assert.deepStrictEqual(
            parseAll(pieces),
            packets.map(({ id, lines }) => ({ id, event: "event", data: lines.join("\n") }))
          )
        }
      ),
      { numRuns: scaled(400) }
    )
  })
})

const add = Tool.make("add", {
  description: "Adds",
  parameters: { n: Schema.Finite },
  annotations: { idempotent: true },
  execute: ({ n }) => Effect.succeed(`sum ${n}`)
})
const kid = Agent.make({ name: "kid", prompt: "You are a kid.", tools: [add] })
const ask = Tool.make("ask", {
  description: "Delegates",
  parameters: { n: Schema.Finite },
  execute: ({ n }) => Effect.map(Agent.delegate(kid, `kid ${n}`), ({ text }) => text).pipe(Effect.orDie)
})
const pay = Tool.make("pay", {
  description: "Pays",
  parameters: { n: Schema.Finite },
  execute: ({ n }) => Effect.succeed(`paid ${n}`)
})
const helper = Agent.make({
  name: "helper",
  prompt: "You help.",
  tools: [add, ask, pay],
  middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
})

const script = [["add", "ask", "add"], ["pay"], ["add"]]

const model = TestChatModel.reactive(({ messages }) => {
  const since = messages.slice(messages.findLastIndex(({ role }) => role === "human"))
  const [first] = since
  const words = { chunkSize: 4 }
  if (first !== undefined && Message.text(first).startsWith("kid")) {
    return since.some(({ role }) => role === "tool")
      ? TestChatModel.text("kid done", words)
      : TestChatModel.calls([{ name: "add", arguments: { n: 900 } }], words)
  }
  const round = since.filter(({ role }) => role === "ai").length
  const text = `This is **round** ${round}.\n\nAnd a list:\n\n- one\n- two\n`
  const calls = script[round]
  return calls === undefined
    ? TestChatModel.text(text, words)
    : TestChatModel.calls(
        calls.map((name, index) => ({ name, arguments: { n: round * 10 + index } })),
        { text, ...words }
      )
})

/** The parts that a stored thread tells, too. Calls that ran at once have no order. */
const showMoment = ({ count, items, requests, view }: Moment) => {
  const parts = items.slice(0, count).map(({ part }) => part)
  return {
    words: parts.flatMap((part) => (part.kind === "user" ? [part.text] : part.kind === "text" ? [part.markdown] : [])),
    calls: parts
      .flatMap((part) => (part.kind === "tool" ? [`${part.name} ${part.gist} ${part.output}`] : []))
      .toSorted(),
    decisions: parts.flatMap((part) => (part.kind === "decision" ? [`${part.toolName} ${part.decision}`] : [])),
    // A suspension that was decided since is over: nobody has to hear of it.
    end: parts.findLast((part) => part.kind === "turnEnd")?.stopReason,
    pending: [...requests.keys()],
    status: view.status
  }
}

describe("the transcript", () => {
  it.live("is the same after a cut at every frame, with the log of the server and without it", () =>
    Effect.gen(function* () {
      const acme = yield* Server.tenant({ tenant: "acme", id: "ada", roles: [] })
      const thread = yield* acme.thread("t")
      const frames: Array<Server.Frame> = []
      let after: Server.Position | undefined
      const runs = Layer.fresh(Server.layer({ helper })).pipe(Layer.provide(Layer.fresh(model)))
      yield* Effect.gen(function* () {
        const all = yield* Server.Runs
        yield* all.start(thread, { agent: "helper", input: "go", id: "1" })
        for (;;) {
          for (const frame of yield* Stream.runCollect(all.observe(thread, { after }))) {
            frames.push(frame)
            after = frame.position
          }
          const { pending, state } = yield* all.status(thread)
          if (state !== "waiting") break
          yield* all.decide(
            thread,
            pending.map((request) => Approval.approve(request))
          )
        }
      }).pipe(Effect.provide(runs))
      const whole = makeReader()
      for (const frame of frames) whole.read(frame)
      const expected = showMoment(whole.now())
      assert.strictEqual(expected.words[0], "go")
      assert.deepStrictEqual(expected.decisions, ["pay approve"])
      assert.strictEqual(expected.calls.length, 5)
      assert.strictEqual(expected.end, "completed")
      // A late reader gets the same as a reader of the first hour.
      yield* Effect.gen(function* () {
        const all = yield* Server.Runs
        for (let index = 0; index <= frames.length; index++) {
          const reader = makeReader()
          for (const frame of frames.slice(0, index)) reader.read(frame)
          const place = frames[index - 1]?.position
          for (const frame of yield* Stream.runCollect(all.observe(thread, { after: place }))) reader.read(frame)
          assert.deepStrictEqual(showMoment(reader.now()), expected, `cut at ${index} of ${frames.length}`)
        }
      }).pipe(Effect.provide(Layer.fresh(Server.layer({ helper })).pipe(Layer.provide(Layer.fresh(model)))))
    }).pipe(Effect.provide(Layer.mergeAll(MemorySessions.layer, Storage.layerMemory)))
  )

  it("counts a message, a call and a request once, and forgets behind a reset", () => {
    const message = Message.ai("Said.", { id: "a1" })
    const events = framesOf([
      { _tag: "RunStarted", agent: "helper" },
      { _tag: "MessageAppended", message: Message.human("Hello", { id: "h1" }) },
      { _tag: "CheckpointSaved", threadId: "t", step: 2 },
      { _tag: "TextDelta", text: "Sa" },
      { _tag: "TextDelta", text: "id." },
      { _tag: "MessageAppended", message },
      { _tag: "ToolCalled", callId: "c", toolName: "add", arguments: {} },
      { _tag: "ToolCompleted", callId: "c", toolName: "add", text: "1", durationMillis: 1 }
    ])
    const reader = makeReader()
    for (const frame of [...events, ...events.slice(5)]) reader.read(frame)
    assert.deepStrictEqual(showMoment(reader.now()).words, ["Hello", "Said."])
    assert.strictEqual(showMoment(reader.now()).calls.length, 1)
    reader.read({ _tag: "Reset", position: "x", to: "checkpoint" })
    assert.deepStrictEqual(showMoment(reader.now()).words, ["Hello"])
    assert.strictEqual(reader.position(), "x")
    // From the store the message comes without its deltas.
    for (const frame of events.slice(5)) reader.read(frame)
    assert.deepStrictEqual(showMoment(reader.now()).words, ["Hello", "Said."])
    assert.strictEqual(showMoment(reader.now()).calls.length, 1)
    reader.read({ _tag: "Reset", position: "y", to: "beginning" })
    assert.deepStrictEqual(showMoment(reader.now()).words, [])
  })
})

describe("a reader that comes late", () => {
  const told = framesOf([
    { _tag: "RunStarted", agent: "helper" },
    { _tag: "MessageAppended", message: Message.human("Hello", { id: "h1" }) },
    { _tag: "RoundStarted", round: 1, messageId: "a1" },
    { _tag: "TextDelta", text: "First.\n\n" },
    { _tag: "TextDelta", text: "Second." },
    { _tag: "MessageAppended", message: Message.ai("First.\n\nSecond.", { id: "a1" }) },
    { _tag: "CheckpointSaved", threadId: "t", step: 3 },
    { _tag: "RunCompleted", stopReason: "completed", rounds: 1, usage: Usage.zero }
  ])

  it("shows a run once that the server tells from the store and again, from any place, while it is over and at work", () => {
    for (const stored of [told, told.slice(0, -1), told.slice(0, -2)]) {
      // The store has no deltas, and no rounds.
      const known = stored.filter(
        (frame) => frame._tag === "Event" && !["RoundStarted", "TextDelta"].includes(frame.event._tag)
      )
      for (let from = 0; from < told.length - 2; from++) {
        const reader = makeReader()
        for (const frame of known) reader.read(frame)
        for (const frame of told.slice(from, 6)) reader.read(frame)
        const { status, words } = showMoment(reader.now())
        assert.deepStrictEqual(words, ["Hello", "First.", "Second."], `from ${from}`)
        assert.strictEqual(View.openText(reader.now().view), "", `from ${from}`)
        assert.strictEqual(status, stored === told ? "idle" : "working", `from ${from}`)
        // The next run begins as any other.
        for (const frame of framesOf([
          { _tag: "RunStarted", agent: "helper", runId: "r2" },
          { _tag: "MessageAppended", message: Message.human("Again", { id: "h2" }), runId: "r2" },
          { _tag: "RoundStarted", round: 1, messageId: "a2", runId: "r2" },
          { _tag: "TextDelta", text: "Third", runId: "r2" }
        ])) {
          reader.read(frame)
        }
        assert.strictEqual(View.openText(reader.now().view), "Third")
        assert.strictEqual(reader.now().view.status, "working")
      }
    }
  })
})

describe("the tree of runs", () => {
  it("adds up what sub-agents used, below the calls that started them", () => {
    const usage = (inputTokens: number, cost: number) => ({
      inputTokens,
      outputTokens: 0,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
      reasoningTokens: 0,
      cost
    })
    const child = { runId: "k1", path: ["helper", "kid"] }
    const events = framesOf([
      { _tag: "RunStarted", agent: "helper" },
      { _tag: "ToolCalled", callId: "w", toolName: "workflow", arguments: { path: "flow.ts" } },
      { _tag: "ToolProgress", callId: "w", toolName: "workflow", progress: { phase: "look" } },
      { _tag: "SubagentStarted", callId: "w", agent: "kid", childRunId: "k1" },
      { _tag: "RunStarted", agent: "kid", ...child },
      { _tag: "TextDelta", text: "I look.", ...child },
      { _tag: "RoundCompleted", round: 1, stopReason: "stop", usage: usage(10, 0.5), ...child },
      { _tag: "RoundCompleted", round: 1, stopReason: "stop", usage: usage(5, 0.25) }
    ])
    const reduceAll = (frames: ReturnType<typeof framesOf>) =>
      frames.reduce((tree, frame) => (frame._tag === "Event" ? Tree.reduce(tree, frame.event) : tree), Tree.empty)
    const tree = reduceAll(events)
    const root = Tree.rootOf(tree)
    assert.isDefined(root)
    if (root === undefined) return
    assert.strictEqual(Tree.usageOf(tree, root).cost, 0.75)
    const [kid] = Tree.children(tree, "r")
    assert.strictEqual(kid?.said, "I look.")
    assert.deepStrictEqual(Tree.stepOf(tree, kid?.call ?? "")?.phases, ["look"])
    const ended = reduceAll([
      ...events,
      ...framesOf([
        {
          _tag: "SubagentCompleted",
          callId: "w",
          agent: "kid",
          childRunId: "k1",
          outcome: "completed",
          usage: usage(20, 1)
        }
      ])
    ])
    assert.strictEqual(Tree.usageOf(ended, root).cost, 1.25)
    assert.strictEqual(Tree.children(ended, "r")[0]?.outcome, "completed")
    // A new input begins a new tree.
    assert.strictEqual(
      Tree.children(reduceAll([...events, ...framesOf([{ _tag: "RunStarted", agent: "helper", runId: "r2" }])]), "r2")
        .length,
      0
    )
  })
})
