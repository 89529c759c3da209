import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { forEachOccurrence, indexOf } from "../../../../src/backends/internal/search/find.ts"
import { scaled } from "../../../scale.ts"

const all = (text: string, needle: string, overlapping: boolean, from = 0): ReadonlyArray<number> => {
  const found: Array<number> = []
  forEachOccurrence(text, needle, { from, overlapping }, (at) => found.push(at) > 0)
  return found
}

const naive = (text: string, needle: string, overlapping: boolean, from: number): ReadonlyArray<number> => {
  const found: Array<number> = []
  for (let i = from; i + needle.length <= text.length; i++) {
    if (text.slice(i, i + needle.length) !== needle) continue
    found.push(i)
    if (!overlapping) i += needle.length - 1
  }
  return found
}

/** Texts that repeat themselves, so that a search goes astray: long needles too. */
const repetitive = (maxLength: number) =>
  fc
    .array(fc.tuple(fc.constantFrom("a", "ab", "b", "aab"), fc.nat(40)), { minLength: 1, maxLength })
    .map((parts) => parts.map(([text, times]) => text.repeat(times)).join(""))

describe("find", () => {
  it("finds the same as a plain search, overlapping or not", () => {
    fc.assert(
      fc.property(repetitive(6), repetitive(3), fc.boolean(), fc.nat(50), (text, needle, overlapping, from) => {
        fc.pre(needle !== "")
        assert.deepStrictEqual(all(text, needle, overlapping, from), naive(text, needle, overlapping, from))
        assert.strictEqual(indexOf(text, needle, from), text.indexOf(needle, from))
      }),
      { numRuns: scaled(2_000) }
    )
  })

  it("finds a part cut out of the text, also after the automaton has taken over", () => {
    const text = `${"a".repeat(5_000)}b${"a".repeat(3_000)}bc`
    for (const needle of [`${"a".repeat(2_999)}bc`, `${"a".repeat(100)}b`, `b${"a".repeat(3_000)}b`]) {
      assert.deepStrictEqual(all(text, needle, true), naive(text, needle, true, 0))
    }
  })

  it("stops when it is told to", () => {
    const found: Array<number> = []
    forEachOccurrence("aaaa".repeat(100), "a".repeat(50), { overlapping: true }, (at) => found.push(at) < 3)
    assert.deepStrictEqual(found, [0, 1, 2])
  })

  it("takes linear time on texts that make other searches take their product", () => {
    const text = "a".repeat(4_000_000)
    assert.strictEqual(indexOf(text, `${"a".repeat(2_000_000)}b`), -1)
    assert.strictEqual(indexOf(text, `b${"a".repeat(2_000_000)}`), -1)
    assert.strictEqual(indexOf(text, `${"a".repeat(1_000_000)}b${"a".repeat(1_000_000)}`), -1)
    assert.lengthOf(all(text, "a".repeat(2_000_000), true), 2_000_001)
  })
})
