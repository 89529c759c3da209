import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema, SchemaGetter } from "effect"
import { Agent, Middleware, Tool } from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"
import type { JsonObject } from "../../src/core/Json.ts"

const execute = () => Effect.succeed("ok")

/** The arguments of a call as a gate sees them: as the model gave them, and as the tool runs with them. */
const seenBy = Effect.fnUntraced(function* (tool: Tool.Tool, args: JsonObject) {
  const seen: Array<readonly [JsonObject, JsonObject]> = []
  const gate = Middleware.make({
    name: "Gate",
    rulings: (_run, calls) =>
      Effect.sync(() =>
        calls.map((call) => {
          seen.push([call.arguments, call.given()])
          return undefined
        })
      )
  })
  const agent = Agent.make({ name: "a", prompt: "", tools: [tool], middleware: [gate] })
  const turn = TestChatModel.calls([{ name: tool.name, arguments: args }])
  yield* Effect.provide(Agent.run(agent, "go"), TestChatModel.script([turn, "done"]))
  const [pair] = seen
  assert(pair !== undefined)
  return pair
})

const typed = (parameters: Tool.Parameters) => Tool.make("t", { description: "", parameters, execute })
const dynamic = (parameters: JsonObject) => Tool.dynamic("t", { description: "", parameters, execute })

describe("the arguments that a tool runs with, as gates see them", () => {
  it.effect("are decoded, with defaults, and written back in the words of the parameters", () =>
    Effect.gen(function* () {
      const tool = typed({
        at: Schema.DateFromString,
        note: Schema.Trim,
        amount: Schema.Finite.pipe(Schema.withDecodingDefaultKey(Effect.succeed(5))),
        hidden: Schema.Finite.pipe(Schema.withDecodingDefaultKey(Effect.succeed(7), { encodingStrategy: "omit" })),
        told: Schema.optionalKey(Schema.Finite.annotate({ default: 3 }))
      })
      const [said, given] = yield* seenBy(tool, { at: "2026-01-01T00:00:00.000Z", note: " x " })
      assert.deepStrictEqual(said, { at: "2026-01-01T00:00:00.000Z", note: " x " })
      assert.deepStrictEqual(given, { at: "2026-01-01T00:00:00.000Z", note: "x", amount: 5, hidden: 7, told: 3 })
    })
  )

  it.effect("are the same value if the tool changes nothing", () =>
    Effect.gen(function* () {
      const [said, given] = yield* seenBy(typed({ n: Schema.Finite }), { n: "5" })
      assert.deepStrictEqual(said, { n: 5 })
      assert.strictEqual(given, said)
      const [raw, checked] = yield* seenBy(dynamic({ type: "object" }), { n: 5 })
      assert.strictEqual(checked, raw)
    })
  )

  it.effect("are the decoded value if a schema can't encode it", () =>
    Effect.gen(function* () {
      const oneWay = Schema.String.pipe(
        Schema.decodeTo(Schema.String, {
          decode: SchemaGetter.transform((text) => text.toUpperCase()),
          encode: SchemaGetter.forbidden(() => "it can't be written")
        })
      )
      assert.deepStrictEqual((yield* seenBy(typed({ text: oneWay }), { text: "x" }))[1], { text: "X" })
    })
  )

  it.effect("have the defaults of a JSON Schema at any depth, and terminate for any schema", () =>
    Effect.gen(function* () {
      const deep = dynamic({
        type: "object",
        properties: {
          pair: { type: "array", prefixItems: [{ type: "object", properties: { n: { default: 1 } } }] },
          null: { type: "null", default: 2 },
          __proto__: { default: 3 }
        }
      })
      assert.deepStrictEqual((yield* seenBy(deep, { pair: [{}, {}], null: null }))[1], {
        pair: [{ n: 1 }, {}],
        null: null
      })
      const wide = Object.fromEntries(
        Array.from({ length: 100 }, (_, index) => [`p${index}`, { $ref: "#/$defs/Node", default: {} }])
      )
      const endless = dynamic({ $ref: "#/$defs/Node", $defs: { Node: { type: "object", properties: wide } } })
      assert.lengthOf(Object.keys((yield* seenBy(endless, {}))[1]), 100)
      const circle = dynamic({
        type: "object",
        properties: { a: { $ref: "#/$defs/A" } },
        $defs: { A: { anyOf: [{ $ref: "#/$defs/A" }, { allOf: [{ $ref: "#/$defs/A" }] }] } }
      })
      assert.deepStrictEqual((yield* seenBy(circle, { a: {} }))[1], { a: {} })
    })
  )
})
