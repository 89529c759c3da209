import { assert, describe, it } from "@effect/vitest"
import { uuid } from "../../src/support/store/uuid.ts"

describe("uuid", () => {
  const many = Array.from({ length: 100_000 }, uuid)

  it("is a random UUID as RFC 9562 writes it", () => {
    for (const one of many) assert.match(one, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  })

  it("is never the same", () => {
    assert.strictEqual(new Set(many).size, many.length)
  })

  it("is random in each digit but that of the version: the variant has four, all others sixteen", () => {
    const digits = Array.from({ length: 36 }, (_, at) => new Set(many.map((one) => one[at])).size)
    const expected = Array.from("xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx", (digit) => ({ x: 16, y: 4 })[digit] ?? 1)
    assert.deepStrictEqual(digits, expected)
  })
})
