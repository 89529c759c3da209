import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { Json } from "../../src/core/Json.ts"
import { type FormsBy, matchesArguments, type Pattern, type Way } from "../../src/rules/internal/patterns.ts"
import { scaled } from "../scale.ts"

const escaped = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)

/** The pattern as a regular expression: slow on some texts, and right on all. */
const expression = (pattern: string, way: Way): RegExp => {
  const [inWord, between] = way === "closely" ? ["[^\\n\\r;&|<>`$(){},\"'\\s]", "[^\\n\\r;&|<>`$(){}]"] : ["[^]", "[^]"]
  const source = pattern
    .split(/(\*{2,}|(?<=^| )\*(?=$| )|\*|\?)/)
    .map((part, index, parts) => {
      if (part.startsWith("**")) return "[^]*"
      if (part === "?") return inWord
      if (part !== "*") return escaped(part)
      const before = parts.slice(0, index).join("").at(-1) ?? " "
      const behind = parts.slice(index + 1).join("")[0] ?? " "
      return `${before === " " && behind === " " ? between : inWord}*`
    })
    .join("")
  return new RegExp(`^${source}$`, "u")
}

const texts = (...signs: ReadonlyArray<string>) =>
  fc.array(fc.constantFrom(...signs), { maxLength: 10 }).map((all) => all.join(""))
const text = texts("a", "b", "/", ";", " ", ",", "'", "\n", "\u{1f600}")
const pattern = texts("a", "b", "/", ";", " ", "*", "**", "?", "\u{1f600}", "\ud83d")

const fits = (pattern: Pattern, value: Json, way: Way) =>
  matchesArguments({ a: pattern }, [{ a: value }], way, new Map())

describe("patterns of a policy", () => {
  it("match like their regular expression, and restricting patterns match at least that", () => {
    fc.assert(
      fc.property(pattern, text, (wild, value) => {
        for (const way of ["closely", "exactly"] as const) {
          assert.strictEqual(fits(wild, value, way), expression(wild, way).test(value), way)
        }
        if (fits(wild, value, "closely")) assert.isTrue(fits(wild, value, "exactly"))
        if (fits(wild, value, "exactly")) assert.isTrue(fits(wild, value, "widely"))
      }),
      { numRuns: scaled(20_000) }
    )
  })

  it("reads a text in all of its forms for a restricting rule, with any separator", () => {
    fc.assert(
      fc.property(
        fc.constantFrom("x@evil.com", "X@EVIL.COM", "\uff58@\u200bevil.com", "x@evil.com."),
        fc.constantFrom(", ", ";", " ", "\n", "<", "\uff0c", "|"),
        fc.constantFrom("ada@ours.com", "Ada", ""),
        fc.boolean(),
        (address, joint, other, isFirst) => {
          const value = isFirst ? `${address}${joint}${other}` : `${other}${joint}${address}`
          assert.isTrue(fits("*@evil.com", value, "widely"), JSON.stringify(value))
          assert.isFalse(fits("*@ours.com", value, "closely"), JSON.stringify(value))
        }
      ),
      { numRuns: scaled(500) }
    )
  })

  it("treats a text that is too long to match as the worst case", () => {
    const long = "a".repeat(100_001)
    assert.isFalse(fits("**", long, "closely"))
    assert.isTrue(fits("b", long, "exactly"))
    assert.isTrue(fits("b", long, "widely"))
  })

  it("a long text of many items takes no longer than its length times the patterns", () => {
    const long = Array.from({ length: 12_000 }, (_, index) => `x${index}@a.b`)
      .join(",")
      .slice(0, 100_000)
    const known: FormsBy = new Map()
    const isFit = (wild: string) => matchesArguments({ a: wild }, [{ a: long }], "widely", known)
    assert.isTrue(isFit("x77@a.b"))
    for (let index = 0; index < 20; index++) assert.isFalse(isFit(`*@evil${index}.com`))
  })
})
