import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema, Stream } from "effect"
import { Agent, type AgentState, type Json, Message, Middleware } from "effect-deepagents"
import { Summarization } from "effect-deepagents/middleware"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import * as Journals from "../core/journal.ts"
import {
  agentWith,
  asked,
  eventsOf,
  filler,
  model,
  readCall,
  reader,
  reads,
  recordOf,
  showRequest,
  summaryIn,
  textOf,
  window,
  writeFile
} from "./Summarization.fixtures.ts"

describe("in company", () => {
  it.effect("requests of another purpose are left alone", () =>
    Effect.gen(function* () {
      const long = Array.from({ length: 50 }, (_, n) => Message.human(filler(`line ${n}`, 1_000)))
      const grade = Middleware.make({
        name: "grade",
        afterAgent: (run) => Effect.asVoid(run.call({ purpose: "grade", messages: long }))
      })
      const agent = Agent.make({ name: "a", prompt: "", middleware: [grade, Summarization.make()] })
      yield* Agent.run(agent, "Go")
      const requests = yield* TestChatModel.requests
      assert.deepStrictEqual(requests.at(-1)?.messages, long)
    }).pipe(Effect.provide(model(() => "done", { contextWindowTokens: window })))
  )

  it.effect("cache hints from outside point to the same messages in the view", () =>
    Effect.gen(function* () {
      const wanted: Array<Message.Message | undefined> = []
      const hints = Middleware.make({
        name: "hints",
        wrapModelCall: (request, next) => {
          if (request.purpose !== "turn") return next(request)
          const cacheHints = [0, 5, request.messages.length - 1]
          wanted.push(request.messages.at(-1))
          return next({ ...request, cacheHints })
        }
      })
      const agent = Agent.make({
        name: "a",
        prompt: "",
        tools: [reads(700)],
        middleware: [hints, Summarization.make()],
        maxRounds: 100
      })
      yield* Agent.run(agent, "Read")
      const { turns } = yield* asked
      const last = turns.at(-1)
      assert.strictEqual(last?.messages[last.cacheHints.at(-1) ?? -1], wanted.at(-1))
      // The summary is in the place of the folded messages.
      assert.strictEqual(last?.messages[last.cacheHints[0] ?? -1]?.source, "summarization")
      assert.strictEqual(last?.cacheHints.length, 2)
    }).pipe(Effect.provide(model(reader(60), { contextWindowTokens: window })))
  )

  it.effect("an answer in a schema is asked for as ever, and a forced final answer keeps its notice", () =>
    Effect.gen(function* () {
      const agent = Agent.make({
        name: "a",
        prompt: "",
        tools: [reads(700)],
        middleware: [Summarization.make()],
        output: Schema.Struct({ count: Schema.Int }),
        maxRounds: 40
      })
      const result = yield* Agent.run(agent, "Read")
      assert.deepStrictEqual(result.output, { count: 7 })
      assert.strictEqual(result.stopReason, "maxRounds")
      const { turns } = yield* asked
      assert.isDefined(turns.at(-1)?.outputSchema)
      assert.strictEqual(turns.at(-1)?.messages.at(-1)?.source, "final-answer")
      assert.deepStrictEqual(AgentTest.pairingProblems(turns.at(-1)?.messages ?? []), [])
    }).pipe(
      Effect.provide(
        model((n) => (n <= 40 ? readCall(n) : JSON.stringify({ count: 7 })), { contextWindowTokens: window })
      )
    )
  )

  it.effect("the model's last work stays beside the notice that asks for the final answer", () =>
    Effect.gen(function* () {
      const agent = Agent.make({
        name: "a",
        prompt: "",
        tools: [reads(2_000)],
        middleware: [Summarization.make({ trigger: { messages: 10 }, tail: { messages: 1 }, background: false })],
        maxRounds: 4
      })
      yield* Agent.run(agent, "Read")
      const last = (yield* asked).turns.at(-1)?.messages ?? []
      assert.deepStrictEqual(
        last.map((message) => message.source ?? message.role),
        ["human", "summarization", "ai", "tool", "final-answer"]
      )
    }).pipe(Effect.provide(model((n) => (n <= 4 ? readCall(n) : "done"), { contextWindowTokens: 100_000 })))
  )

  it.effect("results that somebody put in another order are still folded with their calls", () =>
    Effect.gen(function* () {
      const swap = Middleware.make({
        name: "swap",
        wrapModelCall: (request, next) => {
          const messages = request.messages.slice()
          for (let index = 1; index < messages.length; index++) {
            const [one, two] = [messages[index - 1], messages[index]]
            if (one?.role === "tool" && two?.role === "tool") messages.splice(index++ - 1, 2, two, one)
          }
          return next({ ...request, messages })
        }
      })
      const pair = (n: number) => [1, 2].map((part) => ({ name: "read_file", arguments: { path: `/${n}-${part}` } }))
      const stack = [reads(700)]
      const first = yield* Agent.run(agentWith(Summarization.make(), stack), "Read").pipe(
        Effect.provide(model((n) => (n <= 20 ? TestChatModel.calls(pair(n)) : "done"), { contextWindowTokens: window }))
      )
      assert.isDefined((yield* recordOf(first.state)).fold)
      const agent = Agent.make({ name: "a", prompt: "", middleware: [swap, Summarization.make()] })
      yield* Agent.run(agent, "Go on", { history: first.messages, state: first.state })
      const shownNow = (yield* asked).turns.at(-1)?.messages ?? []
      const calls = shownNow.flatMap((message) => (message.role === "ai" ? Message.callIds(message) : []))
      const answers = shownNow.flatMap((message) => (message.role === "tool" ? [message.toolCallId] : []))
      assert.isAbove(answers.length, 0)
      assert.deepStrictEqual(answers.toSorted(), calls.toSorted())
    }).pipe(Effect.provide(model(() => "done", { contextWindowTokens: 1_000_000 })))
  )

  it.effect("one value serves a parent and its sub-agents at once, each with its own history", () =>
    Effect.gen(function* () {
      const summarization = Summarization.make()
      const child = Agent.make({
        name: "child",
        description: "Reads",
        prompt: "You are the child.",
        tools: [reads(700)],
        middleware: [summarization],
        maxRounds: 100
      })
      const parent = Agent.make({
        name: "parent",
        prompt: "You are the parent.",
        tools: [Agent.asTool(child)],
        middleware: [summarization]
      })
      const events = yield* AgentTest.events(parent, "Delegate")
      assert.strictEqual(events.at(-1)?._tag, "RunCompleted")
      const compacted = eventsOf(events, "Compacted")
      assert.isAbove(compacted.length, 2)
      for (const { path } of compacted) assert.deepStrictEqual(path, ["parent", "child"])
      const { turns } = yield* asked
      for (const { messages, systemPrompt } of turns) {
        assert.deepStrictEqual(AgentTest.pairingProblems(messages), [])
        const goal = textOf(messages[0])
        assert.match(goal, systemPrompt === "You are the parent." ? /^Delegate$/ : /^task \d$/)
        // No child sees another one's reading.
        const own = goal.slice(-1)
        for (const [, id] of showRequest({ ...turns[0]!, messages }).matchAll(/contents of \/(\d)-/g)) {
          assert.strictEqual(id, own)
        }
      }
    }).pipe(
      Effect.provide(
        TestChatModel.reactive(
          ({ messages, purpose, systemPrompt }) => {
            if (purpose === "summary") return "Short."
            if (systemPrompt === "You are the parent.") {
              return messages.length > 1
                ? "done"
                : TestChatModel.calls([1, 2, 3].map((n) => ({ name: "child", arguments: { task: `task ${n}` } })))
            }
            const id = textOf(messages[0]).slice(-1)
            const last = messages.findLast((message) => message.role === "ai")
            const n =
              last?.role === "ai"
                ? last.toolCalls.map((call) => Number(JSON.stringify(call.arguments).match(/-(\d+)/)?.[1]) + 1)[0]
                : 0
            return n !== undefined && n < 40
              ? TestChatModel.calls([{ name: "read_file", arguments: { path: `/${id}-${n}` } }])
              : "child is done"
          },
          { contextWindowTokens: window }
        )
      )
    )
  )

  it.effect("arguments nested as deep as a hostile model likes are no harm", () =>
    Effect.gen(function* () {
      let deep: Json.Json = "x"
      for (let n = 0; n < 20_000; n++) deep = [deep]
      const history = [
        Message.human("Go"),
        Message.ai("", { toolCalls: [{ id: "1", name: "edit", arguments: { deep } }] }),
        Message.tool("no", { toolCallId: "1", toolName: "edit" }),
        ...Array.from({ length: 40 }, (_, n) => [Message.ai(filler(`${n}`, 700)), Message.human("more")]).flat()
      ]
      const events = yield* AgentTest.events(agentWith(Summarization.make()), "Go", { history })
      assert.strictEqual(events.at(-1)?._tag, "RunCompleted")
      assert.strictEqual(eventsOf(events, "Compacted").length, 1)
    }).pipe(Effect.provide(model(() => "done", { contextWindowTokens: window })))
  )
})

describe("from run to run", () => {
  it.effect("a run that goes on sees the same as the last one, by the ids of messages", () =>
    Effect.gen(function* () {
      const agent = agentWith(Summarization.make())
      const first = yield* Agent.run(agent, "Read")
      const messagesBefore = (yield* asked).turns.at(-1)?.messages ?? []
      const state = JSON.parse(JSON.stringify(first.state)) as AgentState.Snapshot
      const history = yield* Effect.forEach(first.messages, (message) =>
        Message.decode(JSON.parse(JSON.stringify(Message.encode(message))))
      )
      const events = yield* AgentTest.events(agent, "Go on", { state, history })
      const after = (yield* asked).turns.at(-1)?.messages ?? []
      assert.deepStrictEqual(after.slice(0, messagesBefore.length), messagesBefore)
      assert.deepStrictEqual(after.slice(messagesBefore.length).map(textOf), ["done", "Go on"])
      assert.deepStrictEqual(eventsOf(events, "Compacted"), [])
      // With a message less at the beginning, ids still name the folded ones.
      yield* Agent.run(agent, "Go on", { state, history: history.slice(1) })
      const shifted = (yield* asked).turns.at(-1)?.messages ?? []
      assert.deepStrictEqual(shifted.slice(0, -1), after.slice(1, -1))
    }).pipe(Effect.provide(model(reader(50), { contextWindowTokens: window })))
  )

  it.effect("a thread that is kept in a journal goes on the same way", () =>
    Effect.gen(function* () {
      const agent = agentWith(Summarization.make())
      yield* Agent.run(agent, "Read", { threadId: "t" })
      const messagesBefore = (yield* asked).turns.at(-1)?.messages ?? []
      yield* Agent.run(agent, "Go on", { threadId: "t" })
      const after = (yield* asked).turns.at(-1)?.messages ?? []
      assert.isDefined(after.find((message) => message.source === "summarization"))
      assert.deepStrictEqual(after.slice(0, messagesBefore.length), messagesBefore)
      assert.deepStrictEqual(after.slice(messagesBefore.length).map(textOf), ["done", "Go on"])
    }).pipe(Effect.provide([model(reader(50), { contextWindowTokens: window }), Journals.layer({})]))
  )

  it.effect("a thread that went back before its compaction has its messages again", () =>
    Effect.gen(function* () {
      const agent = agentWith(Summarization.make())
      const first = yield* Agent.run(agent, "Read")
      assert.isDefined((yield* recordOf(first.state)).fold)
      const history = first.messages.slice(0, 7)
      yield* Agent.run(agent, "Again", { state: first.state, history })
      const { turns } = yield* asked
      assert.deepStrictEqual(turns.at(-1)?.messages.slice(0, 7), history)
      assert.strictEqual(turns.at(-1)?.messages.length, 8)
    }).pipe(Effect.provide(model(reader(50), { contextWindowTokens: window })))
  )
})

describe("compact_conversation", () => {
  const compact = TestChatModel.calls([{ name: "compact_conversation" }])
  const agent = agentWith(Summarization.make({ tool: true }), [reads(700), writeFile])
  const answers = (messages: ReadonlyArray<Message.Message>) =>
    messages.flatMap((message) =>
      message.role === "tool" && message.toolName === "compact_conversation" ? [textOf(message)] : []
    )

  it.effect("is offered only if it is asked for", () =>
    Effect.gen(function* () {
      yield* Agent.run(agentWith(Summarization.make()), "Go")
      yield* Agent.run(agent, "Go")
      const { turns } = yield* asked
      const offered = turns.map((turn) => turn.tools.some((tool) => tool.name === "compact_conversation"))
      assert.deepStrictEqual(offered, [false, true])
    }).pipe(Effect.provide(model(() => "done")))
  )

  it.effect("refuses to compact below half of the trigger", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(agent, "Read")
      assert.match(answers(result.messages).join(), /^There is nothing to compact yet: .* 1\d %/)
      assert.deepStrictEqual((yield* asked).summaries, [])
    }).pipe(
      Effect.provide(model((n) => (n <= 2 ? readCall(n) : n === 3 ? compact : "done"), { contextWindowTokens: window }))
    )
  )

  it.effect("reports no compaction without messages to fold", () =>
    Effect.gen(function* () {
      const long = Agent.make({
        name: "a",
        prompt: filler("You are told a lot", 8_000),
        middleware: [Summarization.make({ tool: true })]
      })
      const events = yield* AgentTest.events(long, "Go")
      assert.deepStrictEqual(eventsOf(events, "Compacted"), [])
      const [, last] = eventsOf(events, "StateChanged")
      assert.deepInclude(last?.value, { requested: false, compactions: 0 })
      assert.deepStrictEqual((yield* asked).summaries, [])
    }).pipe(Effect.provide(model((n) => (n === 1 ? compact : "done"), { contextWindowTokens: 3_000 })))
  )

  it.effect("has the next model call compact, once", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(agent, "Read")
      assert.match(answers(result.messages).join(), /^The older part of the conversation will be summarised/)
      const { summaries, turns } = yield* asked
      assert.strictEqual(summaries.length, 1)
      assert.isUndefined(summaryIn(turns[11]))
      assert.isDefined(summaryIn(turns[12]))
      assert.strictEqual((yield* recordOf(result.state)).requested, false)
    }).pipe(
      Effect.provide(
        model((n) => (n === 12 ? compact : n <= 14 ? readCall(n) : "done"), { contextWindowTokens: window })
      )
    )
  )
})

// A stream of a turn passes through it in the arrays in which it came.
it.effect("parts pass as they are", () =>
  Effect.gen(function* () {
    const agent = agentWith(Summarization.make())
    const texts = yield* Stream.runCollect(Agent.stream(agent, "Go")).pipe(
      Effect.map((events) => events.flatMap((event) => (event._tag === "TextDelta" ? [event.text] : [])))
    )
    assert.deepStrictEqual(texts, ["a", "b", "c"])
  }).pipe(Effect.provide(TestChatModel.script([TestChatModel.text(["a", "b", "c"])])))
)
