import { describe, expect, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Agent, type Json, Tool } from "effect-deepagents"
import { ApplyPatch, FileTools, MemoryBackend } from "effect-deepagents/backends"
import { DeepAgent } from "effect-deepagents/deep"
import { Wait } from "effect-deepagents/durable"
import { AskUser, BackgroundSubagents, BackgroundTasks, Handoffs, Skills } from "effect-deepagents/middleware"
import * as ToolSelection from "effect-deepagents/middleware/ToolSelection"
import { ToolSchema } from "effect-deepagents/models"
import { MemoryTools } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import fc from "fast-check"
import { scaled } from "../scale.ts"

const dialects = ["openai", "anthropic", "gemini"] as const

const problemsOf = (parameters: Json.JsonObject) =>
  dialects.flatMap((dialect) =>
    ToolSchema.check(ToolSchema.fit(parameters, dialect), dialect).map((problem) => `${dialect} ${problem}`)
  )

const nameSchema = (name: string, parameters: Json.JsonObject) => ({ name, parameters })

const toolOf = (parameters: Parameters<typeof Tool.make>[1]["parameters"]) =>
  Tool.make("tool", { description: "", parameters, execute: () => Effect.succeed("") }).parameters

class Point extends Schema.Class<Point>("Point/é 1")({ x: Schema.Number, y: Schema.optionalKey(Schema.Number) }) {}

interface Tree {
  readonly label: string
  readonly children: ReadonlyArray<Tree>
}
const Tree: Schema.Codec<Tree> = Schema.Struct({
  label: Schema.String,
  children: Schema.Array(Schema.suspend(() => Tree))
}).annotate({ identifier: "Tree" })

describe("the parameters of a tool, as a provider gets them", () => {
  it("without parameters: an object without properties", () => {
    const none = { type: "object", properties: {} }
    expect(toolOf({})).toEqual(none)
    for (const dialect of dialects) expect(ToolSchema.fit(toolOf({}), dialect)).toEqual(none)
    // Effect's own JSON Schema of an empty struct, alone and as `effect/ai` tools have it.
    for (const given of [
      {},
      { not: { type: "null" } },
      { type: "object", not: { type: "null" } },
      { type: "object" }
    ]) {
      for (const dialect of dialects) expect(ToolSchema.fit(given, dialect)).toEqual(none)
    }
    expect(toolOf({ nested: Schema.Struct({}) })["properties"]).toEqual({ nested: none })
  })

  it("a number is a number, with its description and with null", () => {
    const parameters = toolOf({
      plain: Schema.Number,
      said: Schema.Number.annotate({ description: "How many" }),
      perhaps: Schema.NullOr(Schema.Number),
      either: Schema.Union([Schema.Number, Schema.String]),
      nothing: Schema.NullOr(Schema.Literal(1)),
      bounded: Schema.Number.check(Schema.isGreaterThan(0)),
      text: Schema.NumberFromString,
      none: Schema.Null
    })
    expect(parameters["properties"]).toEqual({
      plain: { type: "number" },
      said: { type: "number", description: "How many" },
      perhaps: { anyOf: [{ type: "number" }, { type: "null" }] },
      either: { anyOf: [{ type: "number" }, { type: "string" }] },
      nothing: { anyOf: [{ type: "number", enum: [1] }, { type: "null" }] },
      bounded: { type: "number", exclusiveMinimum: 0 },
      text: expect.objectContaining({ type: "string" }),
      none: { type: "null" }
    })
  })

  it.effect("every tool that the library ships, as it is", () =>
    Effect.gen(function* () {
      const helper = Agent.make({ name: "helper", description: "helps", prompt: "" })
      const middleware = [
        AskUser.make(),
        Wait.make(),
        Handoffs.make({ agents: [helper] }),
        BackgroundSubagents.make({ agents: [helper] }),
        Skills.make({ sources: ["/skills"] }),
        ToolSelection.make()
      ]
      const agent = DeepAgent.make({
        name: "lead",
        prompt: "",
        subagents: [helper],
        backgroundSubagents: [helper],
        output: Point
      })
      yield* Agent.run(agent, "go")
      const [request] = yield* TestChatModel.requests
      const tools = [
        ...(request?.tools ?? []),
        ...middleware.flatMap((one) => (Array.isArray(one.tools) ? one.tools : [])),
        ...FileTools.make({ execute: true }),
        ...MemoryTools.make({ namespace: "user" }),
        ApplyPatch.make()
      ]
      const names = new Set(tools.map(({ name }) => name))
      expect([...names]).toEqual(
        expect.arrayContaining(["compact_conversation", "write_todos", "read_file", "execute", "task", "remember"])
      )
      for (const { name, parameters } of tools) {
        for (const dialect of ["openai", "anthropic"] as const) {
          expect(nameSchema(name, { wrong: ToolSchema.check(parameters, dialect) })).toEqual(
            nameSchema(name, { wrong: [] })
          )
        }
        expect(nameSchema(name, { wrong: problemsOf(parameters) })).toEqual(nameSchema(name, { wrong: [] }))
      }
    }).pipe(
      Effect.provide([TestChatModel.script([JSON.stringify({ x: 1 })]), MemoryBackend.layer(), BackgroundTasks.layer()])
    )
  )

  it.effect("a class as the answer's schema is the object itself, with its own numbers", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "a", prompt: "", output: Point })
      const { output } = yield* Agent.run(agent, "go")
      expect(output).toEqual(new Point({ x: 1 }))
      const [request] = yield* TestChatModel.requests
      expect(request?.outputSchema).toEqual({
        type: "object",
        properties: { x: { type: "number" }, y: { type: "number" } },
        required: ["x"],
        additionalProperties: true
      })
    }).pipe(Effect.provide(TestChatModel.script([JSON.stringify({ x: 1 })])))
  )

  it.effect("words for numbers that JSON has not are refused, and a recursive schema is decoded to its end", () =>
    Effect.gen(function* () {
      const tool = Tool.make("grow", {
        description: "",
        parameters: { tree: Tree, size: Schema.optionalKey(Schema.Number) },
        execute: ({ size, tree }) => Effect.succeed(`${tree.children.length} ${size}`)
      })
      const tree = { label: "a", children: [{ label: "b", children: [] }] }
      expect(yield* Tool.run(tool, { tree, size: 2 })).toMatchObject({ content: [{ text: "1 2" }] })
      for (const size of ["NaN", "Infinity", "many", null, Infinity]) {
        const error = yield* Effect.flip(Tool.run(tool, { tree, size: size === null ? {} : size }))
        expect(error.reason).toBe("InvalidArguments")
        expect(error.message).not.toContain('"NaN" |')
      }
    })
  )
})

const leaf = fc.constantFrom<Schema.Codec<unknown, unknown>>(
  Schema.String,
  Schema.Number,
  Schema.Finite,
  Schema.Int,
  Schema.Boolean,
  Schema.Null,
  Schema.Unknown,
  Schema.Json,
  Schema.Struct({}),
  Schema.Literal("a"),
  Schema.Literals(["a", 1, true]),
  Schema.BigInt,
  Schema.Date,
  Schema.NumberFromString,
  Schema.Uint8Array,
  Schema.TemplateLiteral(["a", Schema.Number]),
  Schema.String.check(Schema.isMinLength(1), Schema.isPattern(/^a/)),
  Schema.Number.annotate({ description: "half \ud83d" }),
  Tree,
  Point
)

const key = fc.constantFrom(
  "a",
  "b",
  "path",
  "größe",
  "$filter",
  "",
  "__proto__",
  "k".repeat(80),
  "\ud83d",
  "constructor"
)

const { schema: effectSchema } = fc.letrec<{ schema: Schema.Codec<unknown, unknown> }>((tie) => ({
  schema: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    leaf,
    fc.dictionary(key, tie("schema"), { maxKeys: 3, noNullPrototype: true }).map((fields) => Schema.Struct(fields)),
    fc.array(tie("schema"), { minLength: 1, maxLength: 3 }).map((members) => Schema.Union(members)),
    fc.array(tie("schema"), { maxLength: 3 }).map((elements) => Schema.Tuple(elements)),
    tie("schema").map((item) => Schema.Array(item)),
    tie("schema").map((value) => Schema.Record(Schema.String, value)),
    tie("schema").map((value) => Schema.NullOr(value)),
    tie("schema").map((value) => Schema.Struct({ may: Schema.optional(value) }))
  )
}))

const hostileKey = fc.constantFrom(
  "type",
  "properties",
  "required",
  "items",
  "prefixItems",
  "anyOf",
  "oneOf",
  "allOf",
  "not",
  "if",
  "enum",
  "const",
  "$ref",
  "$defs",
  "definitions",
  "additionalProperties",
  "patternProperties",
  "description",
  "pattern",
  "format",
  "minimum",
  "minLength",
  "nullable",
  "default",
  "$schema",
  "x-own",
  "__proto__",
  "a",
  "$b c",
  "\udc00"
)

const hostileValue = fc.oneof(
  fc.constantFrom<Json.Json>(
    "object",
    "array",
    "string",
    "null",
    ["string", "null"],
    [],
    ["a", "a"],
    "#",
    "#/$defs/a",
    "#/definitions/a",
    "#/properties/a",
    "#/$defs/$b%20c",
    "https://example.com/schema",
    true,
    false,
    null,
    -1,
    1e300,
    "(",
    "half \ud83d",
    { $ref: "#/$defs/a" },
    { $ref: "#" },
    { anyOf: [{ $ref: "#/$defs/a" }, { type: "string" }] },
    { type: "object", properties: { a: { $ref: "#/$defs/a" } }, required: ["a", "gone"] }
  ),
  fc.jsonValue({ maxDepth: 1 }).map((value): Json.Json => value as Json.Json)
)

const { node: hostile } = fc.letrec<{ node: Json.Json }>((tie) => ({
  node: fc.oneof(
    { depthSize: "medium", withCrossShrink: true },
    hostileValue,
    fc.dictionary(hostileKey, tie("node"), { maxKeys: 5, noNullPrototype: true }),
    fc.array(tie("node"), { maxLength: 3 })
  )
}))

describe("any schema", { timeout: 60_000 }, () => {
  const holds = (parameters: Json.JsonObject) => {
    for (const dialect of dialects) {
      const sent = ToolSchema.fit(parameters, dialect)
      expect(ToolSchema.check(sent, dialect)).toEqual([])
      expect(sent).toMatchObject({ type: "object" })
      // A valid schema stays as it is.
      if (dialect !== "gemini") expect(ToolSchema.fit(sent, dialect)).toEqual(sent)
    }
  }

  it("of Effect becomes acceptable to providers", () => {
    const parameters = fc.dictionary(key, effectSchema, { maxKeys: 3, noNullPrototype: true })
    fc.assert(
      fc.property(parameters, (fields) => holds(toolOf(fields))),
      { numRuns: scaled(1_000) }
    )
  })

  it("of another library becomes acceptable to providers", () => {
    fc.assert(fc.property(fc.dictionary(hostileKey, hostile, { maxKeys: 6, noNullPrototype: true }), holds), {
      numRuns: scaled(4_000)
    })
  })

  it("refuses no value that the original allowed, if a part of it can't be told", () => {
    const fitForClaude = (schema: Json.JsonObject) => {
      const given: Json.JsonObject = { type: "object", properties: { at: schema } }
      holds(given)
      const { properties } = ToolSchema.fit(given)
      return typeof properties === "object" && properties !== null && "at" in properties ? properties.at : undefined
    }
    const text = { type: "string" }
    const [a, b] = [{ required: ["a"] }, { required: ["b"] }]
    expect(fitForClaude({ type: "object", oneOf: [a, b] })).toEqual({ type: "object", anyOf: [{}, {}] })
    expect(fitForClaude({ anyOf: [text], oneOf: [a, b] })).toEqual({ anyOf: [text] })
    expect(fitForClaude({ not: { required: ["a", "b"] } })).toEqual({})
    expect(fitForClaude({ not: { $ref: "#/nowhere" }, if: a, else: { type: "null" } })).toEqual({})
    expect(fitForClaude({ type: "string", enum: [null] })).toEqual(text)
    // A place of a tuple stays in place.
    expect(fitForClaude({ patternProperties: { a: { items: [false] } } })).toEqual({
      patternProperties: { a: { prefixItems: [{}] } }
    })
    expect(fitForClaude({ prefixItems: [false, text] })).toEqual({ prefixItems: [{}, text] })
    // A negation as a whole stays.
    const whole = { not: { const: 1 }, if: text, else: { minimum: 1 }, oneOf: [text, { type: "array", items: {} }] }
    expect(fitForClaude(whole)).toEqual(whole)
  })

  it("that never ends, or branches without end", () => {
    const deep = (levels: number): Json.JsonObject => {
      let schema: Json.JsonObject = { type: "string" }
      for (let level = 0; level < levels; level++) schema = { type: "object", properties: { a: schema } }
      return schema
    }
    const chain = Object.fromEntries(
      Array.from({ length: 3_000 }, (_, index) => [
        `d${index}`,
        { anyOf: [{ $ref: `#/$defs/d${index + 1}` }, { $ref: `#/$defs/d${index + 1}` }] }
      ])
    )
    const self = { $ref: "#/$defs/A", $defs: { A: { $ref: "#/$defs/A" } } }
    const pair = {
      $ref: "#/$defs/A",
      $defs: { A: { anyOf: [{ $ref: "#/$defs/B" }] }, B: { allOf: [{ $ref: "#/$defs/A" }] } }
    }
    for (const schema of [deep(3_000), { $ref: "#/$defs/d0", $defs: chain }, self, pair]) holds(schema)
    for (const dialect of dialects) expect(ToolSchema.fit(self, dialect)).toEqual({ type: "object", properties: {} })
  })

  it("keeps its alternatives, and tells Claude names in words that it can't have", () => {
    const shape = {
      oneOf: [
        {
          type: "object",
          properties: { kind: { type: "string", enum: ["circle"] }, r: { type: "number" } },
          required: ["kind", "r"]
        },
        {
          type: "object",
          properties: { kind: { type: "string", enum: ["square"] }, $side: { type: "number" } },
          required: ["kind"]
        }
      ]
    }
    expect(ToolSchema.check(shape)).toContain("$: oneOf at the root")
    expect(ToolSchema.fit(shape)).toEqual({
      type: "object",
      properties: {
        kind: { type: "string", enum: ["circle", "square"] },
        r: { type: "number" },
        $side: { type: "number" }
      },
      required: ["kind"]
    })
    expect(ToolSchema.fit(shape, "anthropic")).toEqual({
      type: "object",
      properties: { kind: { type: "string", enum: ["circle", "square"] }, r: { type: "number" } },
      required: ["kind"],
      description: 'There are more properties, with exactly these names and schemas: "$side": {"type":"number"}'
    })
  })

  it("for Gemini is without unread parts", () => {
    const given = {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      properties: {
        at: { $ref: "#/$defs/Point", description: "Where" },
        level: { enum: [1, 2] },
        name: { type: ["string", "null"] },
        kind: { const: "a" },
        pair: { type: "array", prefixItems: [{ type: "string" }, { type: "number" }] },
        any: {}
      },
      required: ["at"],
      additionalProperties: false,
      $defs: { Point: { type: "object", properties: { x: { type: "number", exclusiveMinimum: 0 } }, required: ["x"] } }
    }
    expect(ToolSchema.fit(given, "gemini")).toEqual({
      type: "object",
      properties: {
        at: { type: "object", properties: { x: { type: "number" } }, required: ["x"], description: "Where" },
        level: { type: "number", description: "One of: [1,2]." },
        name: { type: "string", nullable: true },
        kind: { type: "string", enum: ["a"] },
        pair: { type: "array", items: { anyOf: [{ type: "string" }, { type: "number" }] } },
        any: { anyOf: [{ type: "string" }, { type: "number" }, { type: "boolean" }, { type: "object" }] }
      },
      required: ["at"]
    })
  })
})
