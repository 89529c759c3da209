/** Schemas of others: with circular references, broken references and endless branches. */
import { assert, describe, it } from "@effect/vitest"
import { isEndless } from "../../src/core/schema/endless.ts"
import { adapt } from "../../src/models/local/internal/grammarSchema.ts"
import { allowsNull, alternativesOf, resolve, targetOf } from "../../src/support/json/jsonSchema.ts"

/** Forty definitions, of which each is one of ten of the next: ten to the fortieth ways to the last. */
const branching = {
  $defs: Object.fromEntries(
    Array.from({ length: 40 }, (_, n) => [
      `d${n}`,
      n === 39 ? { type: "number" } : { anyOf: Array.from({ length: 10 }, () => ({ $ref: `#/$defs/d${n + 1}` })) }
    ])
  )
}

const circle = { $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" }, self: { $ref: "#/$defs/self" } } }

describe("jsonSchema", () => {
  it("resolves references, by any name of definitions and any escapes", () => {
    const root = {
      definitions: { "a/b": { type: "string" }, "50%": { type: "number" } },
      properties: { p: { $ref: "#/$defs/a~1b" } }
    }
    assert.deepStrictEqual(resolve({ $ref: "#/definitions/a~1b" }, root), { type: "string" })
    assert.deepStrictEqual(resolve({ $ref: "#/$defs/a%2Fb" }, root), { type: "string" })
    assert.deepStrictEqual(resolve({ $ref: "#/$defs/50%" }, root), { type: "number" })
    assert.deepStrictEqual(resolve({ $ref: "#/properties/p" }, root), { type: "string" })
    assert.strictEqual(resolve({ $ref: "#" }, root), root)
    for (const $ref of ["#/$defs/constructor", "#/$defs/__proto__", "other.json", "#/", "", 1, null]) {
      assert.isUndefined(targetOf({ $ref }, root), JSON.stringify($ref))
    }
  })

  it("circles and chains end", () => {
    assert.isUndefined(resolve({ $ref: "#/$defs/a" }, circle))
    assert.isUndefined(resolve({ $ref: "#/$defs/self" }, circle))
    assert.isTrue(isEndless({ ...circle, $ref: "#/$defs/a" }))
    const self = { $defs: { u: { anyOf: [{ $ref: "#/$defs/u" }, { type: "string" }] } } }
    assert.isFalse(allowsNull({ $ref: "#/$defs/u" }, self))
  })

  it("unions that branch without end are looked at once", () => {
    assert.isFalse(allowsNull({ $ref: "#/$defs/d0" }, branching))
    assert.strictEqual(alternativesOf({ $ref: "#/$defs/d0" }, branching).size, 40)
  })

  it("null is allowed where nothing forbids it", () => {
    for (const schema of [
      {},
      { description: "any" },
      true,
      { type: ["string", "null"] },
      { const: null },
      { enum: ["a", null] },
      { anyOf: [{ type: "string" }, {}] }
    ]) {
      assert.isTrue(allowsNull(schema, {}), JSON.stringify(schema))
    }
    for (const schema of [
      false,
      { type: "string" },
      { const: "a" },
      { enum: ["a"] },
      { oneOf: [] },
      { properties: {} }
    ]) {
      assert.isFalse(allowsNull(schema, {}), JSON.stringify(schema))
    }
  })

  it("a grammar takes the nulls out of an answer whose schema refers to itself", () => {
    const { restore } = adapt({
      type: "object",
      properties: { p: { $ref: "#/$defs/a" }, q: { type: "string" } },
      ...circle
    })
    assert.deepStrictEqual(restore({ p: { x: 1 }, q: null }), { p: { x: 1 } })
  })
})
