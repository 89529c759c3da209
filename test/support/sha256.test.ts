import { createHash } from "node:crypto"
import { assert, it } from "@effect/vitest"
import * as fc from "fast-check"
import { sha256Sync } from "../../src/support/store/sha256.ts"

it("SHA-256 is node's, for any text of any length", () => {
  const same = (text: string) => assert.strictEqual(sha256Sync(text), createHash("sha256").update(text).digest("hex"))
  for (let length = 0; length < 200; length++) same("é".repeat(length >> 1) + "x".repeat(length))
  same("x".repeat(1_000_000))
  fc.assert(fc.property(fc.string({ unit: "binary", maxLength: 300 }), (text) => same(text.toWellFormed())))
})
