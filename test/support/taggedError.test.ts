/** A console shows a tagged error by its message first, and its fields behind it. */
import { inspect } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Schema } from "effect"
import { Agent, AgentError, ModelError } from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"
import { TaggedError } from "../../src/support/effect/taggedError.ts"

class Away extends TaggedError<Away>()("Away", { place: Schema.String }) {
  override get message(): string {
    return `nobody is at ${this.place}; ring again`
  }
}

class Broken extends TaggedError<Broken>()("Broken", { cause: Schema.Defect() }) {}

class Bare extends TaggedError<Bare>()("Bare", {}) {}

describe("a tagged error in a console", () => {
  it("is its message, then its fields", () => {
    const error = new Away({ place: "home" })
    assert.strictEqual(inspect(error), "Away: nobody is at home; ring again { _tag: 'Away', place: 'home' }")
    assert.match(inspect({ error }), /error: Away: nobody is at home/)
    assert.match(inspect(new Bare()), /^Bare: /)
    assert.deepStrictEqual(Object.keys(error), Object.keys(new Away({ place: "home" })))
  })

  it("has its cause below, and ends where causes go in a circle", () => {
    const lost = new Error("the line is cut")
    assert.match(inspect(new Broken({ cause: lost })), /^Broken: [^]*\n {2}\[cause\]: Error: the line is cut\n {4,}at /)
    assert.match(inspect({ error: new Broken({ cause: "gone" }) }), /\[cause\]: 'gone'/)
    const circle = new Broken({ cause: "first" })
    Object.defineProperty(circle, "cause", { value: circle })
    assert.isAtMost(inspect(circle, { depth: null }).split("[cause]").length, 7)
  })

  it.effect("decodes, fails and is caught as before", () =>
    Effect.gen(function* () {
      const error = yield* Schema.decodeUnknownEffect(Away)({ _tag: "Away", place: "home" })
      assert.instanceOf(error, Away)
      assert.strictEqual(yield* Effect.catchTag(error, "Away", ({ place }) => Effect.succeed(place)), "home")
      assert.include(Cause.pretty(Cause.fail(error)), "nobody is at home")
      assert.strictEqual(String(error), "Away: nobody is at home; ring again")
    })
  )

  it.effect("so are the errors of agents and models", () =>
    Effect.gen(function* () {
      const invalid = yield* Effect.flip(Agent.run(Agent.make({ name: "a", prompt: "", maxRounds: 0 }), "go"))
      assert.instanceOf(invalid, AgentError.AgentError)
      assert.match(inspect(invalid), /^AgentError: Agent "a" can't run: maxRounds must be/)
      const failed = yield* Effect.flip(Agent.run(Agent.make({ name: "a", prompt: "" }), "go"))
      assert.instanceOf(failed, ModelError.ModelError)
      assert.match(inspect(failed), /^ModelError: test\/scripted: /)
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.fail({ _tag: "Overloaded" })])))
  )
})
