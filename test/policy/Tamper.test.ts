import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Schema } from "effect"
import { Agent, Approval, type Json, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { Tamper } from "effect-deepagents/policy"
import { TestChatModel } from "effect-deepagents/testing"

const pay = Tool.make("pay", {
  description: "Pays",
  parameters: { amount: Schema.Int },
  execute: ({ amount }) => Effect.succeed(`paid ${amount}`)
})
const agent = Agent.make({
  name: "clerk",
  prompt: "",
  tools: [pay],
  middleware: [HumanInTheLoop.suspending({ tools: { pay: true } })]
})
const secret = Redacted.make("a secret of some length")
const key = Tamper.layer(secret)
const other = Tamper.layer(Redacted.make("another one of some length"))

const suspended = Effect.provide(
  Agent.run(agent, "go"),
  TestChatModel.script([TestChatModel.calls([{ name: "pay", arguments: { amount: 500 } }])])
)

/** Every value of a JSON text changed, one at a time. */
const changes = (json: Json.Json): ReadonlyArray<Json.Json> => {
  const found: Array<Json.Json> = []
  const walk = (value: Json.Json, put: (changed: Json.Json) => Json.Json): void => {
    if (Array.isArray(value)) {
      value.forEach((one: Json.Json, index) => walk(one, (changed) => put(value.with(index, changed))))
      if (value.length > 0) found.push(put(value.slice(1)))
    } else if (typeof value === "object" && value !== null) {
      for (const [name, one] of Object.entries(value)) walk(one, (changed) => put({ ...value, [name]: changed }))
    } else found.push(put(typeof value === "string" ? `${value}x` : typeof value === "number" ? value + 1 : 7))
  }
  walk(json, (changed) => changed)
  return found
}

describe("Tamper", () => {
  it.effect("a checkpoint that was changed anywhere, or is of another thread or key, is refused", () =>
    Effect.gen(function* () {
      const first = yield* suspended
      const sealed = yield* Effect.provide(Tamper.seal(first, "t"), key)
      const wire: Json.Json = JSON.parse(JSON.stringify(sealed))
      const opened = yield* Effect.provide(Tamper.open(wire, "t"), key)
      assert.deepStrictEqual(opened.messages, first.messages)
      const all = changes(wire)
      assert.isAbove(all.length, 20)
      for (const changed of all) {
        const error = yield* Effect.flip(Effect.provide(Tamper.open(changed, "t"), key))
        assert.strictEqual(error._tag, "Tampered", JSON.stringify(changed))
      }
      for (const open of [
        Effect.provide(Tamper.open(wire, "u"), key),
        Effect.provide(Tamper.open(wire, "t"), other),
        Effect.provide(Tamper.open({ checkpoint: 1 }, "t"), key)
      ]) {
        assert.strictEqual((yield* Effect.flip(open))._tag, "Tampered")
      }
    })
  )

  it.effect("a decision counts on its request only: same thread, tool, arguments, and the decision as it was", () =>
    Effect.gen(function* () {
      const { pending } = yield* suspended
      const [request] = pending
      assert(request !== undefined)
      const decision = Approval.decidedBy(Approval.approve(request), request, { by: { id: "ada" } })
      const signed = yield* Tamper.sign(decision, request, "t")
      const wire: Json.Json = JSON.parse(JSON.stringify(signed))
      assert.deepStrictEqual(yield* Tamper.verify(wire, request, "t"), decision)
      for (const changed of changes(wire)) {
        assert.strictEqual((yield* Effect.flip(Tamper.verify(changed, request, "t")))._tag, "Tampered")
      }
      const requests: ReadonlyArray<Approval.Request> = [
        { ...request, id: "other" },
        { ...request, arguments: { amount: 5 } },
        { ...request, toolDigest: "changed" },
        { ...request, description: "harmless" },
        { ...request, deciders: ["eve"] }
      ]
      for (const changed of requests) {
        const error = yield* Effect.flip(Tamper.verify(wire, changed, "t"))
        assert.include(error.message, 'The decision of the thread "t" is refused')
      }
      assert.strictEqual((yield* Effect.flip(Tamper.verify(wire, request, "u")))._tag, "Tampered")
    }).pipe(Effect.provide(key))
  )

  it.effect("an older key is accepted, and none that is too short", () =>
    Effect.gen(function* () {
      const first = yield* suspended
      const sealed = yield* Effect.provide(Tamper.seal(first, "t"), key)
      const rotated = Tamper.layer(Redacted.make("the new secret, long enough"), secret)
      yield* Effect.provide(Tamper.open(sealed, "t"), rotated)
      const exit = yield* Effect.exit(Effect.provide(Tamper.seal(first, "t"), Tamper.layer(Redacted.make("short"))))
      assert.strictEqual(exit._tag, "Failure")
    })
  )
})
