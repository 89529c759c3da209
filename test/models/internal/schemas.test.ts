import { describe, expect, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import type { Json } from "effect-deepagents"
import fc from "fast-check"
import { adaptSchema, type SchemaRules } from "../../../src/models/internal/schema/jsonSchema.ts"
import { sortCalls, toCall } from "../../../src/models/internal/turn/toolCalls.ts"
import { makeToolNames } from "../../../src/models/internal/turn/toolNames.ts"
import { scaled } from "../../scale.ts"
import { strictSchema } from "../openai/rules.ts"

const strict: SchemaRules = {
  allRequired: true,
  keywords: new Set(["pattern", "minimum", "maximum", "minItems", "maxItems"]),
  formats: new Set(["date"])
}

const adapt = (schema: Json.JsonObject, rules = strict) => adaptSchema(schema, rules)

const object = (
  properties: Json.JsonObject,
  required: ReadonlyArray<string> = [],
  more: { readonly [key: string]: Json.Json } = {}
) => ({
  type: "object",
  properties,
  required,
  ...more
})

describe("adapting a schema", () => {
  it("closes objects, requires everything, and makes optional values nullable", () => {
    const adapted = adapt(
      object({ a: { type: "string" }, b: { type: "number" }, c: { $ref: "#/$defs/C" } }, ["a"], {
        $defs: { C: object({}) }
      })
    )
    expect(adapted?.removed).toEqual([])
    expect(adapted?.schema).toEqual({
      type: "object",
      properties: {
        a: { type: "string" },
        b: { anyOf: [{ type: "number" }, { type: "null" }] },
        c: { anyOf: [{ $ref: "#/$defs/C" }, { type: "null" }] }
      },
      required: ["a", "b", "c"],
      additionalProperties: false,
      $defs: { C: { type: "object", properties: {}, required: [], additionalProperties: false } }
    })
  })

  it("tells unenforced rules in the description", () => {
    const adapted = adapt(
      object(
        {
          a: { type: "string", description: "A name.", minLength: 2, format: "iri", title: "A", default: "x" },
          b: { type: "array", items: { type: "integer" }, uniqueItems: true, minItems: 1 },
          c: { type: "string", allOf: [{ pattern: "^a" }] },
          d: { const: 3 },
          e: { oneOf: [{ type: "string" }, { type: "number" }] }
        },
        ["a", "b", "c", "d", "e"]
      )
    )
    expect(adapted?.removed).toEqual(["$.a: minLength", "$.a: format", "$.b: uniqueItems"])
    expect(adapted?.schema["properties"]).toEqual({
      a: { type: "string", description: 'A name. (minLength: 2, format: "iri")' },
      b: { type: "array", items: { type: "integer" }, minItems: 1, description: "(uniqueItems: true)" },
      c: { type: "string", pattern: "^a" },
      d: { enum: [3] },
      e: { anyOf: [{ type: "string" }, { type: "number" }] }
    })
  })

  it("leaves schemas without an equal alone: open maps, tuples, anything, negation", () => {
    const hopeless: ReadonlyArray<Json.JsonObject> = [
      { type: "object", additionalProperties: { type: "string" } },
      { type: "object", additionalProperties: true },
      { anyOf: [object({}), object({})] },
      { type: "string" },
      object({ a: {} }),
      object({ a: { type: "array" } }),
      object({ a: { type: "array", prefixItems: [{ type: "string" }] } }),
      object({ a: { not: { type: "string" } } }),
      object({ a: { allOf: [{ type: "string" }, { type: "number" }] } }),
      object({ a: object({}, [], { patternProperties: { "^x": { type: "string" } } }) })
    ]
    for (const schema of hopeless) expect(adapt(schema)).toBeUndefined()
  })

  it("replaces a root that is a reference by its target", () => {
    const node = object({ next: { anyOf: [{ $ref: "#/$defs/Node" }, { type: "null" }] } }, ["next"])
    const adapted = adapt({ $ref: "#/$defs/Node", $defs: { Node: node } })
    expect(adapted?.schema["type"]).toBe("object")
    expect(strictSchema(adapted?.schema)).toEqual([])
  })

  it("takes out only the nulls that it put in, in lists, references and unions too", () => {
    const leaf = object({ kind: { const: "leaf" }, label: { type: "string" } }, ["kind"])
    const tree = object(
      {
        kind: { const: "tree" },
        children: { type: "array", items: { $ref: "#/$defs/Node" } },
        note: { type: ["string", "null"] }
      },
      ["kind", "children"]
    )
    const schema = object({ root: { $ref: "#/$defs/Node" } }, ["root"], {
      $defs: { Node: { anyOf: [leaf, tree] } }
    })
    const restore = adapt(schema)!.restore
    expect(
      restore({
        root: {
          kind: "tree",
          note: null,
          children: [
            { kind: "leaf", label: null },
            { kind: "leaf", label: "x" }
          ]
        }
      })
    ).toEqual({ root: { kind: "tree", note: null, children: [{ kind: "leaf" }, { kind: "leaf", label: "x" }] } })
  })

  it("an answer to the adapted schema decodes by our own, for schemas of Effect", () => {
    const schema = Schema.Struct({
      name: Schema.String.check(Schema.isMinLength(2)),
      age: Schema.optionalKey(Schema.Int),
      tags: Schema.optionalKey(Schema.Array(Schema.Literals(["a", "b"]))),
      nested: Schema.optionalKey(Schema.Struct({ deep: Schema.optionalKey(Schema.NullOr(Schema.String)) })),
      either: Schema.Union([
        Schema.Struct({ kind: Schema.Literal("one"), one: Schema.optionalKey(Schema.Finite) }),
        Schema.Struct({ kind: Schema.Literal("two"), two: Schema.String })
      ])
    })
    const { definitions, schema: root } = Schema.toJsonSchemaDocument(schema)
    // A JSON Schema is JSON.
    const adapted = adapt(Object.assign({}, root as Json.JsonObject, { $defs: definitions as Json.JsonObject }))!
    expect(strictSchema(adapted.schema)).toEqual([])
    const whole = fc.record({
      name: fc.string({ minLength: 2 }),
      age: fc.option(fc.integer()),
      tags: fc.option(fc.array(fc.constantFrom("a", "b"))),
      nested: fc.option(fc.record({ deep: fc.option(fc.string()) })),
      either: fc.oneof(
        fc.record({ kind: fc.constant("one"), one: fc.option(fc.integer()) }),
        fc.record({ kind: fc.constant("two"), two: fc.string() })
      )
    })
    const decode = Schema.decodeUnknownResult(schema)
    fc.assert(
      fc.property(whole, (answer) => {
        expect(Result.isSuccess(decode(adapted.restore(answer)))).toBe(true)
      })
    )
  })
})

describe("tool names", () => {
  it("are fit, unlike each other, and lead back", () => {
    const names = fc.uniqueArray(
      fc.oneof(fc.string({ maxLength: 6 }), fc.constantFrom("a.b", "a_b", "a/b", "a".repeat(80), "a".repeat(81))),
      { maxLength: 8 }
    )
    fc.assert(
      fc.property(names, (list) => {
        const { own, wire } = makeToolNames(
          list.map((name) => ({ name })),
          64
        )
        const wires = list.map(wire)
        expect(new Set(wires).size).toBe(list.length)
        for (const one of wires) expect(one).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
        expect(wires.map(own)).toEqual(list)
      })
    )
    const { own, wire } = makeToolNames([{ name: "a.b" }, { name: "a_b" }], 64)
    expect([wire("a_b"), wire("a.b"), wire("gone tool"), own("unheard")]).toEqual([
      "a_b",
      "a_b_2",
      "gone_tool",
      "unheard"
    ])
  })
})

describe("arguments of a call", () => {
  const call = { id: "a", name: "t", raw: "", cut: false }

  it("are the result of JSON.parse if that is an object, else kept raw", () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string(), fc.constantFrom("", " ", "null", "{}", "[]", '"x"')), (raw) => {
        const made = toCall({ ...call, raw })
        if (Result.isFailure(made)) expect(made.failure.raw).toBe(raw)
        else expect(made.success.arguments).toEqual(["", "null"].includes(raw.trim()) ? {} : JSON.parse(raw))
      }),
      { numRuns: scaled(1000) }
    )
  })

  it("a call without a name, or cut before its arguments, can't be executed", () => {
    const { malformedToolCalls, toolCalls } = sortCalls([
      { ...call, name: "" },
      { ...call, id: "b", cut: true },
      { ...call, id: "c", raw: "{}", cut: true }
    ])
    expect(malformedToolCalls.map((one) => one.problem)).toEqual([
      "the call names no tool",
      "the arguments were cut off after 0 characters: the answer reached its length limit"
    ])
    expect(toolCalls.length).toBe(1)
  })
})
