import { assert, describe, it, vi } from "@effect/vitest"
import { Effect, Result, Schema } from "effect"
import { type Json, Message, Tool } from "effect-deepagents"
import { adapt } from "../../../../src/models/local/internal/grammarSchema.ts"
import { definition, layer, real, request, session, turn } from "../../llama/models.ts"

vi.setConfig({ testTimeout: 60_000 })

interface Tree {
  readonly name: "leaf" | "branch"
  readonly children: ReadonlyArray<Tree>
}

const Tree = Schema.Struct({
  name: Schema.Literals(["leaf", "branch"]),
  children: Schema.Array(Schema.suspend((): Schema.Codec<Tree> => Tree))
}).annotate({ identifier: "Tree" })

const Short = Schema.String.check(Schema.isMaxLength(3))

const tools = [
  Tool.make("optional", {
    description: "Optional things",
    parameters: {
      must: Schema.Boolean,
      may: Schema.optionalKey(Schema.Boolean),
      null: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
      inner: Schema.Struct({ may: Schema.optionalKey(Schema.Literal("x")) })
    },
    execute: () => Effect.succeed("")
  }),
  Tool.make("unions", {
    description: "One or the other",
    parameters: {
      either: Schema.Union([
        Schema.Struct({ kind: Schema.Literal("a"), may: Schema.optionalKey(Schema.Boolean) }),
        Schema.Struct({ kind: Schema.Literal("b"), other: Schema.Boolean })
      ]),
      list: Schema.Array(Schema.Union([Short, Schema.Boolean])).check(Schema.isMaxLength(2))
    },
    execute: () => Effect.succeed("")
  }),
  Tool.make("records", {
    description: "Any keys",
    parameters: {
      pair: Schema.Tuple([Schema.Boolean, Short]),
      words: Schema.Array(Short).check(Schema.isMinLength(1), Schema.isMaxLength(2))
    },
    execute: () => Effect.succeed("")
  }),
  Tool.make("tree", { description: "A tree", parameters: { tree: Tree }, execute: () => Effect.succeed("") })
]

describe("a schema for a grammar", () => {
  it.layer(layer({ codec: "wrapper", contextSize: 2048, maxTokens: 300 }), { excludeTestServices: true })(
    "lets a model make arguments that the tool takes",
    (it) => {
      for (const tool of tools) {
        it.effect(tool.name, () =>
          Effect.gen(function* () {
            const line = yield* session
            let whole = 0
            for (let seed = 1; seed <= 8; seed++) {
              const { message } = yield* turn(
                line,
                request("Go.", {
                  tools: [definition(tool.name, tool.parameters)],
                  toolChoice: "required",
                  parameters: { seed }
                })
              )
              // A model that knows nothing may not find the end of a call.
              for (const call of message.toolCalls) {
                whole++
                const prepared = tool.prepare(call.arguments)
                assert.isTrue(Result.isResult(prepared) && Result.isSuccess(prepared), JSON.stringify(call.arguments))
                if (Result.isResult(prepared) && Result.isSuccess(prepared))
                  assert.deepStrictEqual(prepared.success.arguments, call.arguments)
              }
            }
            assert.isAbove(whole, 3)
          }).pipe(Effect.scoped)
        )
      }
    }
  )

  it.effect("may let invalid arguments through: the call is malformed, and the turn a turn", () =>
    Effect.gen(function* () {
      const line = yield* session
      const numbers = definition("numbers", {
        type: "object",
        properties: { list: { type: "array", items: { type: "integer" }, minItems: 8, maxItems: 8 } },
        required: ["list"]
      })
      let malformed = 0
      for (let seed = 1; seed <= 12; seed++) {
        const asked = request("Go.", { tools: [numbers], toolChoice: "required", parameters: { seed } })
        const { message } = yield* turn(line, asked)
        assert.lengthOf(Message.callIds(message), 1)
        for (const call of message.malformedToolCalls) {
          malformed++
          assert.strictEqual(call.name, "numbers")
          assert.include(call.raw, "list")
        }
      }
      // Numbers like 1e999, which a model that knows nothing writes often.
      if (real === undefined) assert.isAbove(malformed, 0)
    }).pipe(
      Effect.scoped,
      Effect.provide(layer({ codec: "wrapper", contextSize: 2048, maxTokens: 300, temperature: 1.5 }))
    )
  )

  const schemaOf = (schema: Json.JsonObject): unknown => adapt(schema).schema

  it("flattens allOf and references, and takes anything if it can't", () => {
    const all = adapt({
      type: "object",
      properties: { a: { allOf: [{ type: "string" }, { minLength: 2 }] }, b: { $ref: "#/$defs/B" } },
      required: ["a", "b"],
      allOf: [{ properties: { c: { type: "null" } }, required: ["c"] }],
      $defs: { B: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] } }
    })
    assert.deepStrictEqual<unknown>(all.schema, {
      type: "object",
      properties: { a: { type: "string", minLength: 2 }, b: { $ref: "#/$defs/B" }, c: { type: "null" } },
      $defs: { B: { type: "object", properties: { n: { type: "integer" } } } }
    })
    const anything = schemaOf({})
    assert.deepStrictEqual(schemaOf({ allOf: [{ type: "string" }, { type: "null" }] }), anything)
    assert.deepStrictEqual(schemaOf({ $ref: "https://example.com/schema" }), anything)
    assert.deepStrictEqual(schemaOf({ enum: [{ a: 1 }] }), anything)
    assert.deepStrictEqual(schemaOf({ type: "string", pattern: "^a", format: "uuid", maxLength: 5000 }), {
      type: "string"
    })
  })

  it("gives optional properties a way out, and takes it back", () => {
    const { restore, schema } = adapt({
      type: "object",
      properties: {
        a: { type: "string" },
        b: { type: ["string", "null"] },
        c: { type: "array", items: { type: "object", properties: { d: { type: "number" } } } }
      },
      required: ["c"]
    })
    assert.deepInclude(JSON.parse(JSON.stringify(schema)).properties, {
      a: { oneOf: [{ type: "string" }, { type: "null" }] }
    })
    assert.deepStrictEqual(restore({ a: null, b: null, c: [{ d: null }, { d: 1 }] }), { b: null, c: [{}, { d: 1 }] })
    const always = adapt({ type: "object", properties: { a: { type: "string" } } }, { nulls: false })
    assert.deepStrictEqual<unknown>(always.schema, { type: "object", properties: { a: { type: "string" } } })
  })
})
