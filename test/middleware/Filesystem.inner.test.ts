import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Agent, Message, Tool, ToolContext, ToolOutput } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { Filesystem } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"

describe("Filesystem and calls that tools make", () => {
  it.effect("a large result that goes to a tool stays whole", () =>
    Effect.gen(function* () {
      const large = Tool.make("large", {
        description: "Gives much",
        parameters: {},
        execute: () => Effect.succeed("line\n".repeat(200_000))
      })
      const counts = Tool.make("counts", {
        description: "Counts what another gives",
        parameters: {},
        execute: Effect.fnUntraced(function* () {
          const { call } = yield* ToolContext.ToolContext
          return `${ToolOutput.text(yield* call("large", {})).length} characters`
        })
      })
      const agent = Agent.make({
        name: "tested",
        prompt: "You are tested.",
        tools: [large, counts],
        middleware: [Filesystem.make()]
      })
      const { messages } = yield* Agent.run(agent, "Go")
      const answers = messages.flatMap((one) => (one.role === "tool" ? [Message.text(one)] : []))
      assert.deepStrictEqual(answers, ["1000000 characters"])
    }).pipe(
      Effect.provide(
        Layer.merge(MemoryBackend.layer(), TestChatModel.script([TestChatModel.calls([{ name: "counts" }]), "done"]))
      )
    )
  )
})
