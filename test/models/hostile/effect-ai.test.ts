import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Agent, Tool } from "effect-deepagents"
import * as EffectAiChatModel from "effect-deepagents/models/bridges/EffectAiChatModel"
import * as Provider from "../effect-ai/provider.ts"

const runs = (parts: ReadonlyArray<Provider.Part>, finish = Provider.finish("tool-calls")) =>
  Effect.gen(function* () {
    const ran: Array<number> = []
    const charge = Tool.make("charge", {
      description: "Charges.",
      parameters: { n: Schema.Finite, x: Schema.optionalKey(Schema.Json) },
      execute: ({ n }) => Effect.sync(() => `charged ${ran.push(n)}`)
    })
    const agent = Agent.make({ name: "till", prompt: "", tools: [charge] })
    const provider = Provider.script([
      [...parts, finish],
      [...Provider.text("done"), Provider.finish()]
    ])
    const { text, usage } = yield* Agent.run(agent, "pay").pipe(
      Effect.provide(EffectAiChatModel.layer().pipe(Layer.provide(provider)))
    )
    assert.strictEqual(text, "done")
    assert.isTrue(Object.values(usage).every((count) => Number.isFinite(count) && Number(count) >= 0))
    return ran
  })

const call = (id: string, params: unknown): Provider.Part => ({ type: "tool-call", id, name: "charge", params })

const nested = (depth: number): unknown => {
  let value: unknown = []
  for (let level = 1; level < depth; level++) value = [value]
  return value
}

describe("EffectAiChatModel and a clumsy provider", () => {
  it.effect("a call that is told twice runs once", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* runs([call("a", { n: 1 }), call("a", { n: 1 })]), [1])
      assert.deepStrictEqual(yield* runs([call("a", { n: 1 }), call("b", { n: 1 })]), [1, 1])
    })
  )

  it.effect("arguments nested 2,000 deep do not end the run", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* runs([call("a", { n: 1, x: nested(2_000) })]), [])
    })
  )

  it.effect("ignores invalid counts of tokens", () =>
    Effect.gen(function* () {
      const usage = { inputTokens: { total: -5 }, outputTokens: { total: -1, text: -1 } }
      assert.deepStrictEqual(yield* runs([call("a", { n: 1 })], Provider.finish("tool-calls", { usage })), [1])
    })
  )
})
