import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Agent, Message } from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"
import * as Skeleton from "./Tool.ts"

const agent = Agent.make({ name: "agent", prompt: "You help.", tools: [Skeleton.make()] })

/** The answer of the tool to a call with this text. */
const answerTo = (text: string) =>
  Agent.run(agent, "Hello").pipe(
    Effect.map(({ messages }) => {
      const answer = messages.find((message) => message.role === "tool")
      return answer === undefined ? "" : Message.text(answer)
    }),
    Effect.provide(TestChatModel.script([TestChatModel.calls([{ name: "skeleton", arguments: { text } }]), "done"]))
  )

describe("skeleton", () => {
  it.effect("repeats a text", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* answerTo("a"), "a, a")
    })
  )

  it.effect("tells the model what to do about an empty text", () =>
    Effect.gen(function* () {
      assert.include(yield* answerTo(""), "give one")
    })
  )
})
