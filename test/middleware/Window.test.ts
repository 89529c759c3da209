import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Agent, Message } from "effect-deepagents"
import { Window } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"
import * as fc from "fast-check"
import { scaled } from "../scale.ts"

const agent = (options: Window.Options) => Agent.make({ name: "a", prompt: "", middleware: [Window.make(options)] })

/** A conversation of turns; a turn with calls has their results behind it. */
const conversation = (turns: ReadonlyArray<number>) =>
  turns.flatMap((calls, turn) => [
    Message.human(`q${turn}`),
    ...(calls === 0
      ? []
      : [
          Message.ai("", {
            toolCalls: Array.from({ length: calls }, (_, index) => ({
              id: `${turn}/${index}`,
              name: "t",
              arguments: {}
            }))
          }),
          ...Array.from({ length: calls }, (_, index) =>
            Message.tool("r", { toolCallId: `${turn}/${index}`, toolName: "t" })
          )
        ]),
    Message.ai(`a${turn}`)
  ])

/** The messages that the model is shown. */
const showWindow = (options: Window.Options, history: ReadonlyArray<Message.Message>) =>
  Effect.gen(function* () {
    const { messages } = yield* Agent.run(agent(options), "now", { history })
    assert.strictEqual(messages.length, history.length + 2, "the conversation stays whole")
    return (yield* TestChatModel.requests).at(-1)?.messages ?? []
  }).pipe(Effect.provide(TestChatModel.script(["ok"])))

describe("Window", () => {
  it.effect("shows the end by messages or tokens, with the system messages at the beginning", () =>
    Effect.gen(function* () {
      const history = [Message.system("s"), ...conversation([0, 0, 0])]
      const texts = (messages: ReadonlyArray<Message.Message>) => messages.map((message) => Message.text(message))
      assert.deepStrictEqual(texts(yield* showWindow({ messages: 3 }, history)), ["s", "q2", "a2", "now"])
      assert.deepStrictEqual(texts(yield* showWindow({ messages: 100 }, history)).length, 8)
      assert.deepStrictEqual(texts(yield* showWindow({ tokens: 1 }, history)), ["s", "now"])
    })
  )

  it.effect("any view begins with a question, keeps the last message, and parts no call from its result", () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(
          fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 8 }),
          fc.integer({ min: 1, max: 12 }),
          (turns, most) =>
            Effect.runPromise(
              Effect.gen(function* () {
                const history = conversation(turns)
                const messages = yield* showWindow({ messages: most }, history)
                assert.strictEqual(messages[0]?.role, "human")
                assert.isTrue(messages.length <= most + 1)
                const calls = messages.flatMap((one) => (one.role === "ai" ? one.toolCalls.map(({ id }) => id) : []))
                const results = messages.flatMap((one) => (one.role === "tool" ? [one.toolCallId] : []))
                assert.deepStrictEqual(results, calls)
                assert.strictEqual(Message.text(messages.at(-1) ?? Message.human("")), "now")
              })
            )
        ),
        { numRuns: scaled(100) }
      )
    )
  )

  it.effect("bounds of nothing, and bounds that are no counts, keep the agent from running", () =>
    Effect.gen(function* () {
      for (const options of [{}, { messages: 0 }, { tokens: Number.NaN }]) {
        const error = yield* Effect.flip(Agent.run(agent(options), "x"))
        assert.strictEqual(error._tag, "AgentError")
      }
    }).pipe(Effect.provide(TestChatModel.script([])))
  )
})
