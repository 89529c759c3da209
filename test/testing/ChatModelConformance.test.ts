import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Exit, Layer, Stream } from "effect"
import { ChatModel, Message, type ModelError } from "effect-deepagents"
import { ChatModelConformance, TestChatModel } from "effect-deepagents/testing"

const reasonOf = (status: number, retryAfter: number | undefined): ModelError.Reason => {
  if (status === 401) return { _tag: "Authentication" }
  if (status === 403) return { _tag: "Permission" }
  if (status === 400) return { _tag: "InvalidRequest" }
  if (status === 429) return { _tag: "RateLimited", retryAfter: Duration.seconds(retryAfter ?? 0) }
  return { _tag: "Overloaded" }
}

const toTurn = (scenario: ChatModelConformance.Scenario): TestChatModel.Turn => {
  switch (scenario._tag) {
    case "Text":
      return TestChatModel.text(scenario.pieces)
    case "ToolCalls":
      return TestChatModel.calls(scenario.calls, { chunkSize: 1000 })
    case "LengthInArguments":
      return TestChatModel.malformed(scenario.partial, { name: scenario.name, stopReason: "length" })
    case "Empty":
      return TestChatModel.text("")
    case "Cut":
      return TestChatModel.parts([{ _tag: "TextDelta", text: scenario.text }])
    case "Hang":
      return TestChatModel.hangAfter(scenario.text)
    case "Status":
      return TestChatModel.fail(reasonOf(scenario.status, scenario.retryAfter))
  }
}

describe("the scripted model conforms", () => {
  const layer = (scenarios: ReadonlyArray<ChatModelConformance.Scenario>) =>
    TestChatModel.script(scenarios.map(toTurn), { exhaustive: false })
  for (const check of ChatModelConformance.suite({ layer })) it.live(check.name, () => check.run)
})

describe("the suite finds what is wrong", () => {
  const failing = (layer: Layer.Layer<ChatModel.ChatModel>) =>
    Effect.gen(function* () {
      const failed: Array<string> = []
      for (const check of ChatModelConformance.suite({ layer: () => layer })) {
        const exit = yield* Effect.exit(Effect.timeout(check.run, "2 seconds"))
        if (Exit.isFailure(exit)) failed.push(check.name)
      }
      return failed
    })

  it.live("a model that answers the same to everything fails every check of what it should have said", () =>
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
          "an interruption ends the request",
          "a history worn by another provider, interruptions and vision is accepted",
          "runs an agent with a tool"
        ]
      )
    })
  )
})
