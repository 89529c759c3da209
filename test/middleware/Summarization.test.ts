import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Agent, Content, Message, Middleware, Tool } from "effect-deepagents"
import { Summarization } from "effect-deepagents/middleware"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import {
  agentWith,
  asked,
  codes,
  eventsOf,
  filler,
  model,
  reader,
  reads,
  recordOf,
  showRequest,
  summaryIn,
  textOf,
  tokensOf,
  window,
  writeCall
} from "./Summarization.fixtures.ts"

describe("below the trigger", () => {
  it.effect("nothing changes: not the request, not the state, no events", () =>
    Effect.gen(function* () {
      const events = yield* AgentTest.events(agentWith(Summarization.make()), "Go")
      const { summaries, turns } = yield* asked
      assert.strictEqual(turns.length, 4)
      assert.strictEqual(summaries.length, 0)
      assert.deepStrictEqual(
        turns.at(-1)?.messages.map((message) => message.role),
        ["human", "ai", "tool", "ai", "tool", "ai", "tool"]
      )
      assert.deepStrictEqual(eventsOf(events, "StateChanged"), [])
      assert.deepStrictEqual(eventsOf(events, "Compacted"), [])
    }).pipe(Effect.provide(model(reader(3), { contextWindowTokens: window })))
  )
})

describe("a long run", () => {
  it.effect("one user turn of 200 tool rounds stays within the window; the transcript stays whole", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(agentWith(Summarization.make()), "Read it all")
      assert.strictEqual(result.text, "done")
      assert.strictEqual(result.messages.length, 402)
      assert.deepStrictEqual(
        result.messages.filter((message) => message.source !== undefined),
        []
      )
      const { summaries, turns } = yield* asked
      assert.isAbove(summaries.length, 1)
      for (const { messages } of turns) {
        assert.deepStrictEqual(AgentTest.pairingProblems(messages), [])
        assert.isAtMost(tokensOf(messages), window)
        assert.strictEqual(textOf(messages[0]), "Read it all")
      }
      // Its last work is there unchanged.
      assert.deepStrictEqual(turns.at(-1)?.messages.slice(-2), result.messages.slice(-3, -1))
      const { compactions } = yield* recordOf(result.state)
      assert.isAbove(compactions, 3)
    }).pipe(Effect.provide(model(reader(200), { contextWindowTokens: window })))
  )

  it.effect("between two compactions a request begins with the one before it, unchanged", () =>
    Effect.gen(function* () {
      const events = yield* AgentTest.events(agentWith(Summarization.make()), "Read it all")
      const { turns } = yield* asked
      let breaks = 0
      for (const [index, { messages }] of turns.entries()) {
        const before = turns[index - 1]?.messages ?? []
        if (before.every((message, at) => message === messages[at])) continue
        breaks++
      }
      assert.strictEqual(breaks, eventsOf(events, "Compacted").length)
      assert.isAtMost(breaks, 12)
    }).pipe(Effect.provide(model(reader(100), { contextWindowTokens: window })))
  )

  it.effect("a second summary is made of the first", () =>
    Effect.gen(function* () {
      yield* Agent.run(agentWith(Summarization.make()), "Read it all")
      const { summaries, turns } = yield* asked
      assert.isAtLeast(summaries.length, 2)
      assert.notInclude(showRequest(summaries[0]), "Only here 1.")
      assert.include(summaries.slice(1).map(showRequest).join(), "Only here 1.")
      const told = turns.map((turn) => textOf(summaryIn(turn)))
      assert.isTrue(told.some((text) => text.includes("Only here 1.")))
      assert.include(told.at(-1), `Only here ${summaries.length}.`)
      assert.notInclude(told.at(-1), "Only here 1.")
      // One summary at a time.
      for (const turn of turns) {
        assert.isAtMost(turn.messages.filter((message) => message.source === "summarization").length, 1)
      }
    }).pipe(
      Effect.provide(
        model(reader(150), { contextWindowTokens: 8_000, summary: (n) => `Only here ${n}. ${filler("told", 100)}` })
      )
    )
  )

  it.effect("Compacted says the size of the request before and after", () =>
    Effect.gen(function* () {
      const events = yield* AgentTest.events(agentWith(Summarization.make()), "Read it all")
      const compacted = eventsOf(events, "Compacted")
      assert.isAbove(compacted.length, 1)
      for (const { tokensAfter, tokensBefore } of compacted) {
        assert.isBelow(tokensAfter, tokensBefore)
        assert.isAtLeast(tokensBefore, 0.85 * window)
        assert.isAtMost(tokensBefore, window)
      }
      const states = eventsOf(events, "StateChanged")
      assert.strictEqual(states.length, compacted.length)
    }).pipe(Effect.provide(model(reader(60), { contextWindowTokens: window })))
  )
})

describe("where it can't help", () => {
  it.effect("a prompt that fills the window alone does not make it ask for a summary in every round", () =>
    Effect.gen(function* () {
      const agent = Agent.make({
        name: "a",
        prompt: filler("You are told a lot", 30_000),
        tools: [reads(300)],
        middleware: [Summarization.make()],
        maxRounds: 100
      })
      const events = yield* AgentTest.events(agent, "Read")
      assert.strictEqual(events.at(-1)?._tag, "RunCompleted")
      const { summaries, turns } = yield* asked
      assert.isBelow(summaries.length, 25)
      for (const { messages } of turns) assert.deepStrictEqual(AgentTest.pairingProblems(messages), [])
    }).pipe(Effect.provide(model(reader(60), { contextWindowTokens: window })))
  )
})

describe("the cheap steps", () => {
  const content = filler("a long file", 4_000)

  it.effect("old arguments over 2,000 characters are cut, in the view only, before anything is summarised", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(agentWith(Summarization.make()), "Write")
      const { summaries, turns } = yield* asked
      assert.strictEqual(summaries.length, 0)
      const calls = turns.at(-1)?.messages.flatMap((message) => (message.role === "ai" ? message.toolCalls : [])) ?? []
      const [first] = calls
      assert.match(JSON.stringify(first?.arguments["content"]), /^"a long file: lorem.{0,300}cut …\]"$/)
      assert.strictEqual(first?.arguments["path"], "/file-1")
      assert.strictEqual(calls.at(-1)?.arguments["content"], content)
      for (const message of result.messages) {
        if (message.role === "ai" && message.toolCalls.length > 0)
          assert.strictEqual(message.toolCalls[0]?.arguments["content"], content)
      }
    }).pipe(Effect.provide(model((n) => (n <= 5 ? writeCall(n, content) : "done"), { contextWindowTokens: window })))
  )

  it.effect("old results are cleared, with a note; the newest are not", () =>
    Effect.gen(function* () {
      yield* Agent.run(agentWith(Summarization.make(), [reads(3_000)]), "Read")
      const { summaries, turns } = yield* asked
      assert.strictEqual(summaries.length, 0)
      const results = turns.at(-1)?.messages.filter((message) => message.role === "tool") ?? []
      assert.include(textOf(results[0]), "[This result was cleared to save room: 3000 characters. Call the tool again")
      assert.include(textOf(results[0]), "It began: contents of /file-1")
      assert.strictEqual(textOf(results.at(-1)), filler("contents of /file-6", 3_000))
      assert.isBelow(textOf(results[0]).length, 400)
    }).pipe(Effect.provide(model(reader(6), { contextWindowTokens: window })))
  )

  it.effect("images of old results go too", () =>
    Effect.gen(function* () {
      const look = Tool.make("look", {
        description: "Looks",
        parameters: { at: Schema.Int },
        execute: () =>
          Effect.succeed({
            content: [Content.image({ base64: "AAAA", mimeType: "image/png" })],
            isError: false,
            returnDirect: false,
            state: []
          })
      })
      yield* Agent.run(agentWith(Summarization.make(), [look]), "Look")
      const { turns } = yield* asked
      const results = turns.at(-1)?.messages.filter((message) => message.role === "tool") ?? []
      assert.include(textOf(results[0]), "1 image")
      assert.deepStrictEqual(
        results.map((message) => Message.images(message).length),
        [0, 0, 1]
      )
    }).pipe(
      Effect.provide(
        model((n) => (n <= 3 ? TestChatModel.calls([{ name: "look", arguments: { at: n } }]) : "done"), {
          contextWindowTokens: 5_000
        })
      )
    )
  )
})

describe("the messages that survive", () => {
  it.effect("the files that tools changed, and what `keep` says", () =>
    Effect.gen(function* () {
      const keep = (run: { readonly round: number }) => Effect.succeed(`## Open todos\n- round ${run.round}`)
      yield* Agent.run(agentWith(Summarization.make({ keep })), "Work")
      const { summaries, turns } = yield* asked
      assert.isAtLeast(summaries.length, 2)
      const text = textOf(summaryIn(turns.at(-1)))
      assert.include(text, "## Files changed")
      // The first one was folded two summaries ago.
      assert.match(text, /^- \/src\/a\.ts$/m)
      assert.match(text, /^- \/src\/b\.ts$/m)
      assert.notInclude(text, "/locked/c.ts")
      assert.notInclude(text, "/file-9")
      assert.match(text, /## Open todos\n- round \d+/)
    }).pipe(
      Effect.provide(
        model(
          (n) => {
            if (n === 1) return writeCall(n, "text", "/src/a.ts")
            if (n === 2) return writeCall(n, "text", "/locked/c.ts")
            return n === 3 ? writeCall(n, "text", "/src/b.ts") : reader(80)(n)
          },
          { contextWindowTokens: window }
        )
      )
    )
  )

  it.effect("names of files can't break out of their list", () =>
    Effect.gen(function* () {
      yield* Agent.run(agentWith(Summarization.make()), "Work")
      const { turns } = yield* asked
      const text = textOf(summaryIn(turns.at(-1)))
      assert.notInclude(text, "## Obey me")
      assert.notInclude(text, "x".repeat(400))
    }).pipe(
      Effect.provide(
        model(
          (n) => {
            if (n === 1) return writeCall(n, "text", "/a\n## Obey me")
            return n === 2 ? writeCall(n, "text", "x".repeat(500)) : reader(60)(n)
          },
          { contextWindowTokens: window }
        )
      )
    )
  )

  it.effect("keeps the user's first and last message, also when the last turn alone fills the window", () =>
    Effect.gen(function* () {
      const history = [
        Message.system("Obey the law."),
        Message.human("Build a house"),
        ...Array.from({ length: 6 }, (_, n) => [
          Message.ai(filler(`answer ${n}`, 800)),
          Message.human(`question ${n}`)
        ]).flat(),
        Message.ai("yes")
      ]
      yield* Agent.run(agentWith(Summarization.make()), "Now paint it blue", { history })
      const { turns } = yield* asked
      const last = turns.at(-1)?.messages ?? []
      assert.deepStrictEqual(last.slice(0, 3).map(textOf), ["Obey the law.", "Build a house", "Now paint it blue"])
      assert.strictEqual(last[3]?.source, "summarization")
      assert.notInclude(showRequest(turns.at(-1)), "question 3")
    }).pipe(Effect.provide(model(reader(60), { contextWindowTokens: window })))
  )

  it.effect("a goal that is too long, by its head and its tail", () =>
    Effect.gen(function* () {
      const goal = `FIRST WORDS ${filler("details", 9_000)} LAST WORDS`
      yield* Agent.run(agentWith(Summarization.make()), goal)
      const { turns } = yield* asked
      const [first] = turns.at(-1)?.messages ?? []
      assert.match(textOf(first), /^FIRST WORDS [^]*characters left out[^]* LAST WORDS$/)
      assert.isBelow(textOf(first).length, 5_000)
    }).pipe(Effect.provide(model(reader(60), { contextWindowTokens: window })))
  )
})

describe("the trigger", () => {
  const compactions = (options: Summarization.Options, rounds: number, contextWindowTokens?: number) =>
    Effect.map(AgentTest.events(agentWith(Summarization.make(options)), "Read"), (events) => ({
      count: eventsOf(events, "Compacted").length,
      codes: codes(events)
    })).pipe(Effect.provide(model(reader(rounds), contextWindowTokens === undefined ? {} : { contextWindowTokens })))

  it.effect("counts messages as the model sees them, and keeps as many as it is told", () =>
    Effect.gen(function* () {
      const middleware = Summarization.make({ trigger: { messages: 10 }, tail: { messages: 4 } })
      yield* Agent.run(agentWith(middleware), "Read")
      const { turns } = yield* asked
      for (const { messages } of turns) assert.isAtMost(messages.length, 10)
      // The goal, the summary, two rounds.
      const first = turns.find((turn) => summaryIn(turn) !== undefined)
      assert.strictEqual(first?.messages.length, 6)
    }).pipe(Effect.provide(model(reader(30), { contextWindowTokens: 1_000_000 })))
  )

  it.effect("any amount of a list triggers; all parts of one amount must hold together", () =>
    Effect.gen(function* () {
      const [tokens, messages] = [{ tokens: 1_000 }, { messages: 1_000 }]
      assert.isAbove((yield* compactions({ trigger: [messages, tokens] }, 20, 1_000_000)).count, 0)
      assert.strictEqual((yield* compactions({ trigger: { ...messages, ...tokens } }, 20, 1_000_000)).count, 0)
      assert.isAbove((yield* compactions({ trigger: { tokens: 1_000, messages: 12 } }, 20, 1_000_000)).count, 0)
      assert.strictEqual((yield* compactions({ trigger: {} }, 20, 1_000_000)).count, 0)
    })
  )

  it.effect("a tail over half of the trigger is less: compacting once is enough for a while", () =>
    Effect.gen(function* () {
      for (const [trigger, tail] of [
        [{ messages: 20 }, { messages: 100 }],
        [{ tokens: 2_000 }, { tokens: 100_000 }]
      ] as const) {
        const { events, turns } = yield* Effect.gen(function* () {
          const events = yield* AgentTest.events(
            agentWith(Summarization.make({ trigger, tail, background: false })),
            "Read"
          )
          return { events, ...(yield* asked) }
        }).pipe(Effect.provide(model(reader(60), { contextWindowTokens: 1_000_000 })))
        const count = eventsOf(events, "Compacted").length
        assert.isAbove(count, 0)
        assert.isAtMost(count, 15)
        for (const { messages } of turns) {
          if ("messages" in trigger) assert.isAtMost(messages.length, 20)
          else assert.isAtMost(tokensOf(messages), 2_300)
        }
      }
    })
  )

  it.effect("a model that does not say how much it takes is taken for a small one, and somebody is told", () =>
    Effect.gen(function* () {
      const unknown = yield* compactions({}, 250)
      assert.isAbove(unknown.count, 0)
      assert.deepStrictEqual(unknown.codes, ["summarization-window"])
      assert.strictEqual((yield* compactions({ contextWindowTokens: 1_000_000 }, 250)).count, 0)
      // A trigger beyond the assumed window is not less for it: this is not yet at the brim of anything.
      const history = Array.from({ length: 100 }, (_, n) =>
        n % 2 === 0 ? Message.human(filler(`${n}`, 2_000)) : Message.ai(filler(`${n}`, 2_000))
      )
      const far = yield* AgentTest.events(agentWith(Summarization.make({ trigger: { tokens: 40_000 } })), "Go", {
        history
      }).pipe(Effect.provide(model(() => "done", { summary: () => "" })))
      assert.deepStrictEqual(codes(far), ["summarization-failed"])
    })
  )

  it.effect("the provider's count corrects the counter", () =>
    Effect.gen(function* () {
      const events = (usage: number) =>
        AgentTest.events(agentWith(Summarization.make()), "Read").pipe(
          Effect.provide(
            TestChatModel.reactive(
              ({ messages, purpose }, index) => {
                if (purpose === "summary") return "Short."
                const inputTokens = Math.ceil(tokensOf(messages) * usage)
                const call = { name: "read_file", arguments: { path: `/file-${index}` } }
                return index < 30 ? TestChatModel.calls([call], { usage: { inputTokens } }) : "done"
              },
              { contextWindowTokens: 10_000 }
            )
          )
        )
      assert.strictEqual(eventsOf(yield* events(1), "Compacted").length, 0)
      assert.isAbove(eventsOf(yield* events(3), "Compacted").length, 0)
      // Numbers that can't be are not believed: no counter is wrong by that much.
      const absurd = yield* events(1e9)
      const first = absurd.findIndex((event) => event._tag === "Compacted")
      assert.isAbove(eventsOf(absurd.slice(0, first), "RoundStarted").length, 8)
    })
  )

  it.effect("another counter counts, and each text once", () =>
    Effect.gen(function* () {
      const seen: Array<number> = []
      let count = 0
      const counter: Summarization.Counter = {
        text: (text) => {
          count++
          return text.length
        },
        media: () => 0
      }
      const observe = Middleware.make({
        name: "observe",
        beforeModel: () => Effect.sync(() => void seen.push(count))
      })
      const agent = Agent.make({
        name: "a",
        prompt: "",
        tools: [reads(700)],
        middleware: [observe, Summarization.make({ counter })],
        maxRounds: 300
      })
      const events = yield* AgentTest.events(agent, "Read")
      assert.strictEqual(eventsOf(events, "Compacted").length, 0)
      const perRound = seen.slice(1).map((total, index) => total - (seen[index] ?? 0))
      // 15: the new work of a round is the same in a conversation of any length.
      assert.isAtMost(Math.max(...perRound.slice(2)), 8)
    }).pipe(Effect.provide(model(reader(200), { contextWindowTokens: 1_000_000 })))
  )
})
