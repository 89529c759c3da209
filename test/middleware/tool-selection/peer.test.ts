import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Agent, Tool } from "effect-deepagents"
import * as ToolSelection from "effect-deepagents/middleware/ToolSelection"
import { TestChatModel } from "effect-deepagents/testing"
import { vi } from "vitest"

vi.mock("minisearch", () => {
  throw new Error("Cannot find package 'minisearch'")
})

it.effect("a missing package is named with its install line, when a run needs it", () =>
  Effect.gen(function* () {
    const tool = Tool.make("find", { description: "Finds", parameters: {}, execute: () => Effect.succeed("found") })
    const agent = Agent.make({ name: "a", prompt: "p", tools: [tool], middleware: [ToolSelection.make()] })
    const error = yield* Effect.flip(Effect.provide(Agent.run(agent, "hi"), TestChatModel.script(["never"])))
    assert.match(
      error.message,
      /^[^ ]+: ToolSelection: the package "minisearch" could not be loaded; install it: npm install/
    )
  })
)
