import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Agent } from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"
import * as Skeleton from "./Middleware.ts"

describe("Skeleton", () => {
  it.effect("adds its note to each request", () =>
    Effect.gen(function* () {
      const agent = Agent.make({
        name: "agent",
        prompt: "You help.",
        middleware: [Skeleton.make({ note: "Be brief." })]
      })
      yield* Agent.run(agent, "Hello")
      const [request] = yield* TestChatModel.requests
      assert.include(request?.systemPrompt, "Be brief.")
    }).pipe(Effect.provide(TestChatModel.script(["done"])))
  )
})
