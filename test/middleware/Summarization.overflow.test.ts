import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Agent, Message } from "effect-deepagents"
import { Summarization } from "effect-deepagents/middleware"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import {
  agentWith,
  asked,
  codes,
  eventsOf,
  filler,
  model,
  readCall,
  reader,
  reads,
  recordOf,
  showRequest,
  textOf,
  tokensOf
} from "./Summarization.fixtures.ts"

describe("an overflow", () => {
  const overflow = TestChatModel.fail({ _tag: "ContextOverflow" })
  const history = [
    Message.human("Begin"),
    ...Array.from({ length: 10 }, (_, n) => [Message.ai(filler(`answer ${n}`, 500)), Message.human(`more ${n}`)]).flat()
  ]
  const run = (...turns: ReadonlyArray<TestChatModel.Turn>) =>
    Effect.gen(function* () {
      const collected = yield* AgentTest.collect(agentWith(Summarization.make()), "Go", { history })
      return { ...collected, ...(yield* asked) }
    }).pipe(Effect.provide(model((n) => turns[n - 1] ?? overflow, { contextWindowTokens: 100_000 })))

  it.effect("is compacted and asked again, once", () =>
    Effect.gen(function* () {
      const { error, events, summaries, turns } = yield* run(overflow, "fine")
      assert.isUndefined(error)
      assert.isAbove(summaries.length, 0)
      assert.strictEqual(turns.length, 2)
      assert.isBelow(showRequest(turns[1]).length, showRequest(turns[0]).length / 2)
      assert.deepStrictEqual(turns[1]?.messages.slice(0, 1).map(textOf), ["Begin"])
      assert.strictEqual(textOf(turns[1]?.messages.at(-1)), "Go")
      assert.deepStrictEqual(eventsOf(events, "TurnRestarted"), [])
      assert.strictEqual(eventsOf(events, "Compacted").length, 1)
    })
  )

  it.effect("11: after parts went out TurnRestarted comes before the new ones", () =>
    Effect.gen(function* () {
      const { events } = yield* run(TestChatModel.fail({ _tag: "ContextOverflow" }, { after: "fir" }), "fine")
      const story = events.flatMap((event) =>
        event._tag === "TextDelta" ? [event.text] : event._tag === "TurnRestarted" ? ["<restarted>"] : []
      )
      assert.deepStrictEqual(story, ["fir", "<restarted>", "fine"])
    })
  )

  it.effect("a second one is the typed failure of the call", () =>
    Effect.gen(function* () {
      const { error, turns } = yield* run(overflow, overflow)
      assert.strictEqual(error?._tag === "ModelError" ? error.reason._tag : error?._tag, "ContextOverflow")
      assert.strictEqual(turns.length, 2)
    })
  )

  it.effect("without anything to leave out, the first overflow is the failure", () =>
    Effect.gen(function* () {
      const { error } = yield* AgentTest.collect(agentWith(Summarization.make()), "Go")
      const { turns } = yield* asked
      assert.strictEqual(error?._tag, "ModelError")
      assert.strictEqual(turns.length, 1)
    }).pipe(Effect.provide(model(() => overflow, { contextWindowTokens: 100_000 })))
  )

  it.effect("other failures are not its business", () =>
    Effect.gen(function* () {
      const { error, turns } = yield* run(TestChatModel.fail({ _tag: "Overloaded" }))
      assert.strictEqual(error?._tag === "ModelError" ? error.reason._tag : error?._tag, "Overloaded")
      assert.strictEqual(turns.length, 1)
    })
  )

  it.effect("11: a turn in which the provider ran a tool is not asked for again", () =>
    Effect.gen(function* () {
      const started = { _tag: "ToolCallStart", id: "1", name: "web_search", providerExecuted: true } as const
      const { error, turns } = yield* run(TestChatModel.fail({ _tag: "ContextOverflow" }, { after: [started] }))
      assert.strictEqual(error?._tag, "ModelError")
      assert.strictEqual(turns.length, 1)
    })
  )

  it.effect("without a summary old messages are left out", () =>
    Effect.gen(function* () {
      const events = yield* AgentTest.events(agentWith(Summarization.make()), "Go", { history })
      assert.strictEqual(events.at(-1)?._tag, "RunCompleted")
      assert.include(codes(events), "summarization-dropped")
    }).pipe(
      Effect.provide(
        model((n) => (n === 1 ? overflow : "fine"), {
          contextWindowTokens: 100_000,
          summary: () => TestChatModel.fail({ _tag: "Unknown" })
        })
      )
    )
  )

  it.effect("the newest results are cut when they alone are too long, and the user's words last", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(agentWith(Summarization.make(), [reads(60_000)]), "Read")
      const { turns } = yield* asked
      assert.deepStrictEqual(
        turns.map((turn) => turn.messages.map((message) => message.role)),
        [["human"], ["human", "ai", "tool"], ["human", "ai", "tool"]]
      )
      const [, , cut] = turns[2]?.messages ?? []
      assert.include(textOf(cut), "contents of /file-1")
      assert.include(textOf(cut), "characters left out")
      assert.isAtMost(tokensOf(turns[2]?.messages ?? []), 3_000)
      assert.strictEqual(textOf(turns[2]?.messages[0]), "Read")
      assert.strictEqual(textOf(result.messages[2]).length, 60_000)
    }).pipe(
      Effect.provide(
        model(
          (n) =>
            n === 1
              ? readCall(1)
              : n === 2
                ? TestChatModel.fail({ _tag: "ContextOverflow", limit: 3_000, used: 15_000 })
                : "done",
          {}
        )
      )
    )
  )

  it.effect("a limit that the provider names is remembered, for the thread too", () =>
    Effect.gen(function* () {
      const agent = agentWith(Summarization.make())
      const first = yield* Agent.run(agent, "Read")
      const { window: learned } = yield* recordOf(first.state)
      assert.deepStrictEqual(learned, { model: "scripted", tokens: 3_000 })
      const { turns } = yield* asked
      const failed = turns.findIndex((turn) => tokensOf(turn.messages) > 3_000)
      assert.isAbove(failed, 0)
      for (const { messages } of turns.slice(failed + 1)) assert.isAtMost(tokensOf(messages), 3_000)
    }).pipe(
      Effect.provide(
        TestChatModel.reactive(
          ({ messages, purpose }, index) => {
            if (purpose === "summary") return "Short."
            const used = tokensOf(messages)
            if (used > 3_000) return TestChatModel.fail({ _tag: "ContextOverflow", limit: 3_000, used })
            return reader(80)(index)
          },
          { contextWindowTokens: 100_000 }
        )
      )
    )
  )
})
