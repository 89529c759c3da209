import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import fc from "fast-check"
import { literalsOf } from "../../../../src/backends/internal/search/literals.ts"
import { re2 } from "../../../../src/backends/internal/search/re2.ts"
import { compileSearch } from "../../../../src/backends/internal/search/search.ts"
import { scaled } from "../../../scale.ts"

// Loaded once, so that the properties can be plain functions.
await Effect.runPromise(re2)

const findLiterals = (query: Parameters<typeof literalsOf>[0]) => Effect.runSync(literalsOf(query))

const atom = fc.constantFrom(
  ..."a b k s ab foo Foo . \\d \\w \\W [ab] [^a] [a-c] [[:alpha:]] ^ $ \\b ä ß \\x41 \\141 \\. \\Qa.b\\E { a{,2} 日 \uFFFD \\pL - _ \\n".split(
    " "
  )
)
const regex: fc.Arbitrary<string> = fc.letrec<{ readonly regex: string; readonly part: string }>((tie) => ({
  part: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    atom,
    fc.tuple(atom, fc.constantFrom("*", "+", "?", "{2}", "{0,2}", "{1,}", "*?", "+?")).map((both) => both.join("")),
    fc
      .tuple(fc.constantFrom("(", "(?:", "(?i:", "(?-i:", "(?P<n>", "(?i)("), tie("regex"))
      .map(([open, inner]) => `${open}${inner})`),
    fc.tuple(tie("part"), tie("part")).map(([left, right]) => `${left}|${right}`)
  ),
  regex: fc.array(tie("part"), { minLength: 1, maxLength: 4 }).map((parts) => parts.join(""))
})).regex

const line = fc
  .array(
    fc.constantFrom("a", "b", "A", "B", "k", "K", "\u212A", "s", "\u017F", "foo", "FOO", "Ä", "ß", "1", ".", "-", " "),
    {
      maxLength: 8
    }
  )
  .map((parts) => parts.join(""))

const lower = (text: string): string => text.replace(/[A-Z]/g, (char) => char.toLowerCase())

describe("the literals of a pattern", () => {
  it("are in each line that matches: one of them", () => {
    let told = 0
    fc.assert(
      fc.property(
        fc.tuple(fc.constantFrom("", "(?i)"), regex).map((parts) => parts.join("")),
        fc.array(line, { minLength: 1, maxLength: 10 }),
        fc.boolean(),
        (pattern, lines, ignoreCase) => {
          const query = { pattern, regex: true, ignoreCase }
          const compiled = Effect.runSync(Effect.result(compileSearch(query)))
          const literals = findLiterals(query)
          if (Result.isFailure(compiled) || literals === undefined) return
          for (const one of lines) {
            if (!compiled.success.test(one)) continue
            told++
            const has = (text: string) => (literals.fold ? lower(one).includes(lower(text)) : one.includes(text))
            assert.isTrue(literals.texts.some(has), `${one}: ${literals.texts.join()}`)
          }
        }
      ),
      { numRuns: scaled(5_000) }
    )
    assert.isAbove(told, scaled(300))
  })

  it("are found", () => {
    for (const [pattern, ...texts] of [
      ["function\\s+(\\w+)", "function"],
      ["TODO|FIXME", "TODO", "FIXME"],
      ["(?:foo|bar)baz.*a longer text", "a longer text"],
      ["\\bT\\x42D\\b", "TBD"],
      ["\\Qa.b\\E+", "a."],
      ["x(?:ab)+y?", "ab"],
      ["日本|é", "日本", "é"]
    ] as const) {
      assert.deepStrictEqual(findLiterals({ pattern, regex: true }), { texts, fold: false }, pattern)
    }
    const folded = { texts: ["TODO: thi"], fold: true }
    assert.deepStrictEqual(findLiterals({ pattern: "(?i)TODO: this", regex: true }), folded)
    assert.deepStrictEqual(findLiterals({ pattern: "TODO: this", ignoreCase: true }), folded)
    assert.deepStrictEqual(findLiterals({ pattern: "a.b" }), { texts: ["a.b"], fold: false })
  })

  it("are not known of what can do without", () => {
    for (const pattern of ["^\\s*$", "foo|\\d", "(?:foo)?", "[0-9a-f]{8}", "(", "a\\x{0}b", "q\uFFFD", "\ud800", ""]) {
      assert.isUndefined(findLiterals({ pattern, regex: true }), pattern)
    }
    assert.isUndefined(findLiterals({ pattern: "k", ignoreCase: true }))
  })
})
