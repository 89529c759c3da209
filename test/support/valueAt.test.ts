import { assert, describe, it } from "@effect/vitest"
import { valueAt } from "../../src/support/json/valueAt.ts"

describe("valueAt", () => {
  it("finds the keys of a table, and none of every object", () => {
    const table: { readonly [key: string]: number } = { a: 1, ["__proto__"]: 2 }
    assert.deepStrictEqual(
      [valueAt(table, "a"), valueAt(table, "b"), valueAt(table, undefined)],
      [1, undefined, undefined]
    )
    for (const name of Object.getOwnPropertyNames(Object.prototype)) {
      assert.strictEqual(valueAt(table, name), name === "__proto__" ? 2 : undefined)
    }
  })
})
