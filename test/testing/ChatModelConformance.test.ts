import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Stream } from "effect"
import { ChatModel, Message } from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"
import { ChatModelConformance } from "effect-deepagents/testing/conformance"
import { toTurn } from "./scenarios.ts"

describe("the scripted model conforms", () => {
  const layer = (scenarios: ReadonlyArray<ChatModelConformance.Scenario>) =>
    TestChatModel.script(scenarios.map(toTurn), { exhaustive: false })
  for (const check of ChatModelConformance.suite({ layer })) it.live(check.name, () => check.run)
})

describe("the suite finds mistakes", () => {
  const failing = (layer: Layer.Layer<ChatModel.ChatModel>) =>
    Effect.gen(function* () {
      const failed: Array<string> = []
      for (const check of ChatModelConformance.suite({ layer: () => layer })) {
        const exit = yield* Effect.exit(Effect.timeout(check.run, "2 seconds"))
        if (Exit.isFailure(exit)) failed.push(check.name)
      }
      return failed
    })

  it.live("a model with one answer to everything fails every check of its answers", () =>
    Effect.gen(function* () {
      const parrot = Layer.succeed(ChatModel.ChatModel, {
        modelId: "parrot",
        provider: "test",
        supportsVision: true,
        contextWindowTokens: undefined,
        makeSession: Effect.succeed({
          nextTurn: () =>
            Stream.make<[ChatModel.TurnPart, ChatModel.TurnPart]>(
              { _tag: "TextDelta", text: "polly" },
              { _tag: "TurnDone", message: Message.ai("wants a cracker") }
            )
        })
      })
      const all = ChatModelConformance.suite({ layer: () => parrot }).map((check) => check.name)
      const failed = yield* failing(parrot)
      assert.deepStrictEqual(
        all.filter((name) => !failed.includes(name)),
        [
          "a history worn by another provider, interruptions and vision is accepted",
          "runs an agent with a tool",
          "an interruption ends the request"
        ]
      )
    })
  )
})
