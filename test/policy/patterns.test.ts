import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { matchesArguments } from "../../src/policy/internal/patterns.ts"
import { scaled } from "../scale.ts"

const escaped = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)

/** The pattern as a regular expression: slow on some texts, and right on all. */
const expression = (pattern: string, allows: boolean): RegExp => {
  const one = allows ? "[^\\n\\r;&|<>`$(){}]" : "[^]"
  const source = pattern
    .split(/(\*{2,}|\*|\?)/)
    .map((part) => (part.startsWith("**") ? "[^]*" : part === "*" ? `${one}*` : part === "?" ? one : escaped(part)))
    .join("")
  return new RegExp(`^${source}$`, "u")
}

const text = fc
  .array(fc.constantFrom("a", "b", "/", ";", "\n", "\u{1f600}"), { maxLength: 12 })
  .map((all) => all.join(""))
const pattern = fc
  .array(fc.constantFrom("a", "b", "/", ";", "*", "**", "?", "\u{1f600}", "\ud83d"), { maxLength: 8 })
  .map((all) => all.join(""))

describe("patterns of a policy", () => {
  it("fit what the expression of them fits", () => {
    fc.assert(
      fc.property(pattern, text, fc.boolean(), (wild, value, allows) => {
        assert.strictEqual(matchesArguments({ a: wild }, { a: value }, allows), expression(wild, allows).test(value))
      }),
      { numRuns: scaled(20_000) }
    )
  })

  it("what is too long to be tried is taken as the worst", () => {
    const long = "a".repeat(100_001)
    assert.isFalse(matchesArguments({ a: "**" }, { a: long }, true))
    assert.isTrue(matchesArguments({ a: "b" }, { a: long }, false))
  })
})
