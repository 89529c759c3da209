import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { Agent } from "effect-deepagents"
import * as SkeletonChatModel from "./ProviderChatModel.ts"

const agent = Agent.make({ name: "agent", prompt: "You help." })

const model = (response: () => Response) =>
  SkeletonChatModel.layer({
    model: "large",
    apiKey: Redacted.make("secret-key"),
    fetch: () => Promise.resolve(response())
  })

describe("SkeletonChatModel", () => {
  it.effect("answers", () =>
    Effect.gen(function* () {
      const { text } = yield* Agent.run(agent, "Hello")
      assert.strictEqual(text, "Good day")
    }).pipe(Effect.provide(model(() => Response.json({ text: "Good day" }))))
  )

  it.effect("fails with a reason, and without the key", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Agent.run(agent, "Hello"))
      assert.strictEqual(error._tag === "ModelError" ? error.reason._tag : error._tag, "Authentication")
      assert.notInclude(String(error), "secret-key")
    }).pipe(Effect.provide(model(() => new Response("bad key secret-key", { status: 401 }))))
  )
})
