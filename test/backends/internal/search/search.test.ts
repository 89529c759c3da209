import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import type { Backend } from "effect-deepagents"
import fc from "fast-check"
import { re2 } from "../../../../src/backends/internal/search/re2.ts"
import {
  compileSearch,
  defaultLimit,
  fileQueryOf,
  type FileMatches,
  makeFileSearch,
  maxContext,
  maxLineLength,
  searchText
} from "../../../../src/backends/internal/search/search.ts"
import { scaled } from "../../../scale.ts"
import { bytes, chunked, linesOf, text } from "../texts.ts"

type Query = Omit<Backend.GrepQuery, "path">

// Loaded once, so that the properties can be plain functions.
await Effect.runPromise(re2)

const compiled = (query: Query) => Effect.runSync(Effect.result(compileSearch(query)))

const encode = (content: string) => new TextEncoder().encode(content)

const search = (content: string | Uint8Array, query: Query): FileMatches =>
  searchText("/a", content, Result.getOrThrow(compiled(query)), fileQueryOf(query))

const matchesIn = (content: string, query: Query) => search(content, query).file?.matches ?? []

const linesIn = (content: string, query: Query) => matchesIn(content, query).map(({ line }) => line)

const problem = (query: Query): string => {
  const reason = Result.getOrThrow(Result.flip(compiled(query)))
  return reason._tag === "InvalidPattern" ? reason.problem : assert.fail(reason._tag)
}

/** Whether a line matches, by the language's own expressions: for patterns that mean the same in both. */
const naiveTest = ({ ignoreCase = false, pattern, regex = false }: Query) => {
  if (!regex && !ignoreCase) return (line: string) => line.includes(pattern)
  const source = regex ? pattern : pattern.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")
  const expression = new RegExp(source, ignoreCase ? "isu" : "su")
  return (line: string) => expression.test(line)
}

/** The matches of a text, by looking at all of its lines. */
const naive = (content: string, query: Query): FileMatches => {
  const lines = linesOf(content)
  const test = naiveTest(query)
  const found = lines.flatMap((line, index) => (test(line) ? [index] : []))
  if (found.length === 0) return { file: undefined, more: false }
  const { context = 0, limit = 1_000, mode = "content" } = query
  if (mode === "files") return { file: { path: "/a", count: 1, matches: [] }, more: false }
  if (mode === "count") return { file: { path: "/a", count: found.length, matches: [] }, more: false }
  let given = -1
  const matches = found.slice(0, limit).map((at, index) => {
    const before = lines.slice(Math.max(given + 1, at - context), at)
    const after = lines.slice(at + 1, Math.min(at + 1 + context, found[index + 1] ?? lines.length))
    given = at + after.length
    return { line: at + 1, text: lines[at] ?? "", before, after }
  })
  return {
    file: matches.length === 0 ? undefined : { path: "/a", count: matches.length, matches },
    more: found.length > limit
  }
}

const literal = fc.constantFrom("a", "ab", "A", "aba", "é", "€", "😀", " ", "k", "s", "\u212A", "a.b", "$&", "\uFFFD")
const atom = fc.constantFrom(
  ..."a b A k é 😀 . [ab] [^a] [a-z] \\w \\W \\d \\b (?:a|b) (a) ^ $ € (?:) \\. \\x61".split(" ")
)
const quantifier = fc.constantFrom("", "", "", "*", "+", "?", "{2}", "{1,3}", "*?")
const regex = fc
  .array(fc.tuple(atom, quantifier), { minLength: 1, maxLength: 4 })
  .map((parts) => parts.map(([part, times]) => (/^(?:\\b|\^|\$)$/.test(part) ? part : part + times)).join(""))
  .chain((left) => fc.constantFrom(left, `${left}|b`, `^${left}$`, `(?:${left})+`))
const query: fc.Arbitrary<Query> = fc
  .record(
    {
      mode: fc.constantFrom("content", "count", "files"),
      context: fc.nat(3),
      limit: fc.nat(5),
      ignoreCase: fc.boolean()
    },
    { requiredKeys: [] }
  )
  .chain((rest) =>
    fc.oneof(
      literal.map((pattern): Query => ({ ...rest, pattern })),
      regex.map((pattern): Query => ({ ...rest, pattern, regex: true }))
    )
  )

/** Patterns that the language's own expressions find in linear time, too. */
const quick: fc.Arbitrary<Query> = fc
  .record({ mode: fc.constantFrom("content", "count", "files"), limit: fc.nat(50) }, { requiredKeys: [] })
  .chain((rest) =>
    fc.oneof(
      literal.map((pattern): Query => ({ ...rest, pattern })),
      fc.constantFrom("^a", "b$", "^$", "[^a]b", "\\bab", "a.?b").map((pattern) => ({ ...rest, pattern, regex: true }))
    )
  )

describe("search", () => {
  it("gives the same as looking at each line, for literal text and for regular expressions", () => {
    let found = 0
    fc.assert(
      fc.property(text(), query, (content, query) => {
        const result = search(content, query)
        assert.deepStrictEqual(result, naive(content, query))
        if (result.file !== undefined) found++
      }),
      { numRuns: scaled(6_000) }
    )
    assert.isAbove(found, scaled(1_000))
  })

  it("gives the same of a stream, however it is cut, and nothing of a binary file", () => {
    fc.assert(
      fc.property(bytes(), query, fc.array(fc.nat(100), { maxLength: 8 }), (content, query, cuts) => {
        const matcher = Result.getOrThrow(compiled(query))
        const stream = makeFileSearch("/a", matcher, fileQueryOf(query))
        for (const chunk of chunked(content, cuts)) if (!stream.push(chunk)) break
        assert.deepStrictEqual(stream.end(), search(content, query))
        if (content.includes(0)) assert.deepStrictEqual(search(content, query), { file: undefined, more: false })
      }),
      { numRuns: scaled(3_000) }
    )
  })

  it("gives the same where text is taken in many steps", () => {
    fc.assert(
      fc.property(text(30), quick, fc.integer({ min: 2_000, max: 9_000 }), (unit, query, times) => {
        fc.pre(unit.length > 10)
        const content = `${unit}${"x".repeat(times)}${unit}`.repeat(20)
        const expected = naive(content, { ...query, context: 0 })
        const result = search(content, { ...query, context: 0 })
        assert.deepStrictEqual(result.more, expected.more)
        assert.deepStrictEqual(
          result.file?.matches.map(({ line }) => line),
          expected.file?.matches.map(({ line }) => line)
        )
        assert.strictEqual(result.file?.count, expected.file?.count)
      }),
      { numRuns: scaled(100) }
    )
  })

  it("takes literal text literally", () => {
    assert.deepStrictEqual(linesIn("a.b\naxb\n$&\n(", { pattern: "a.b" }), [1])
    assert.deepStrictEqual(linesIn("a.b\naxb\n$&\n(", { pattern: "$&" }), [3])
    assert.deepStrictEqual(linesIn("a.b\nAXB\nA.B\n(", { pattern: "a.b", ignoreCase: true }), [1, 3])
  })

  it("matches within a line: \\s takes no line break, ^ and $ are the line's ends, of any kind", () => {
    assert.deepStrictEqual(linesIn("a\nb\r\nc\rd", { pattern: "[^x]\\s*[^x]", regex: true }), [])
    assert.deepStrictEqual(linesIn("ab\r\nb\rab\n", { pattern: "^b$", regex: true }), [2])
    assert.deepStrictEqual(linesIn("b\nab\nb", { pattern: "\\Ab\\z", regex: true }), [1, 3])
    assert.deepStrictEqual(linesIn("b\nab\nb", { pattern: "(?-m)^b$", regex: true }), [1, 3])
    assert.deepStrictEqual(linesIn("\n\na\n\n", { pattern: "^$", regex: true }), [1, 2, 4])
    assert.deepStrictEqual(linesIn("ab\na\na😀a", { pattern: "\\B", regex: true }), [1])
    assert.deepStrictEqual(linesIn("\uFEFFab", { pattern: "^ab", regex: true }), [1])
  })

  it("finds a line that is cut by steps", () => {
    for (const length of [65_530, 65_535, 65_536, 65_537, 131_070]) {
      assert.deepStrictEqual(linesIn(`a\n${"x".repeat(length)}needle\nb`, { pattern: "needle" }), [2])
    }
  })

  it("a result holds on to no more than itself: context is given once, matches are no context", () => {
    assert.deepStrictEqual(
      matchesIn("1\n2x\n3\n4x\n5x\n6\n7\n8x", { pattern: "x", context: 2 }).map(({ after, before, line }) => [
        before,
        line,
        after
      ]),
      [
        [["1"], 2, ["3"]],
        [[], 4, []],
        [[], 5, ["6", "7"]],
        [[], 8, []]
      ]
    )
  })

  it("says whether there is more than the limit", () => {
    assert.deepStrictEqual(search("x\nx\n", { pattern: "x", limit: 2 }).more, false)
    assert.deepStrictEqual(search("x\nx\nx", { pattern: "x", limit: 2 }).more, true)
    assert.deepStrictEqual(search("x", { pattern: "x", limit: 0 }), { file: undefined, more: true })
    assert.deepStrictEqual(search("y", { pattern: "x", limit: 0 }), { file: undefined, more: false })
  })

  it("brings numbers within bounds", () => {
    assert.deepStrictEqual(fileQueryOf({ pattern: "a" }), { mode: "content", context: 0, limit: defaultLimit })
    const odd = { pattern: "a", context: 1e9, limit: -1 }
    assert.deepStrictEqual(fileQueryOf(odd), { mode: "content", context: maxContext, limit: 0 })
    const none = { pattern: "a", context: Number.NaN, limit: Number.NaN }
    assert.deepStrictEqual(fileQueryOf(none), { mode: "content", context: 0, limit: defaultLimit })
  })
})

describe("search, long lines", () => {
  it("are cut around the match, and no character is parted", () => {
    fc.assert(
      fc.property(fc.constantFrom("x", "é", "😀"), fc.nat(3_000), fc.nat(3_000), (unit, before, after) => {
        const line = `${before % 2 === 0 ? "" : "x"}${unit.repeat(before)}needle${unit.repeat(after)}${after % 2 === 0 ? "" : "x"}`
        const [match] = matchesIn(line, { pattern: "needle" })
        const given = match?.text ?? ""
        assert.isTrue(given.isWellFormed())
        if (line.length <= maxLineLength) return assert.strictEqual(given, line)
        assert.include(given, "needle")
        assert.isAtMost(given.length, maxLineLength + 4)
        assert.isAtLeast(given.length, maxLineLength)
        const inside = given.replace(/^…/, "").replace(/…$/, "")
        assert.include(line, inside)
        assert.strictEqual(given.startsWith("…"), !line.startsWith(inside))
        assert.strictEqual(given.endsWith("…"), !line.endsWith(inside))
      })
    )
    const [match] = matchesIn(`${"a ".repeat(900)}bcd${" e".repeat(900)}`, { pattern: "b.d", regex: true })
    assert.include(match?.text, "bcd")
  })

  it("so is context, from its beginning", () => {
    const [match] = matchesIn(`${"x".repeat(900)}\nneedle`, { pattern: "needle", context: 1 })
    assert.deepStrictEqual(match?.before, [`${"x".repeat(maxLineLength)}…`])
  })

  it("are searched up to a length, the same however they come", () => {
    const content = `${"x".repeat(1024 * 1024 - 3)}abcdef\nabc`
    assert.deepStrictEqual(linesIn(content, { pattern: "abc" }), [1, 2])
    assert.deepStrictEqual(linesIn(content, { pattern: "abcd" }), [])
    assert.deepStrictEqual(linesIn(content, { pattern: "ABCD", ignoreCase: true }), [])
  })

  it("by large expressions, too", () => {
    const query = { pattern: "(?:[ab]c?){300}x$", regex: true, mode: "count" } as const
    const line = `${"a".repeat(400)}x`
    for (const before of [0, 10, 60_000, 65_000, 65_500]) {
      const content = `${"-".repeat(before)}\n${"b".repeat(50_000)}${line}\n${line}\n`
      const matcher = Result.getOrThrow(compiled(query))
      const stream = makeFileSearch("/a", matcher, fileQueryOf(query))
      for (const byte of chunked(encode(content), [before, 20_000, 77_777])) stream.push(byte)
      assert.deepStrictEqual(stream.end(), search(content, query))
      assert.strictEqual(search(content, query).file?.count, 1)
    }
  })
})

describe("search, patterns", () => {
  it("see a line that is too long for them as if it ended there, however it comes", () => {
    const query = { pattern: "(?:[ab]c?){300}x$", regex: true, mode: "count" } as const
    const matcher = Result.getOrThrow(compiled(query))
    const content = encode(`-\n${"a".repeat(matcher.maxLength - 1)}xyz\n`)
    for (const cut of [0, 1, 2, 3, 20_000, matcher.maxLength, content.length]) {
      const stream = makeFileSearch("/a", matcher, fileQueryOf(query))
      for (const chunk of chunked(content, [cut])) stream.push(chunk)
      assert.strictEqual(stream.end().file?.count, 1, `${cut}`)
    }
  })

  it("that can't be are refused, with why", () => {
    assert.match(problem({ pattern: "" }), /empty/)
    assert.match(problem({ pattern: "a\nb" }), /line break/)
    assert.match(problem({ pattern: "a\rb", regex: true }), /line break/)
    assert.match(problem({ pattern: "\ud800" }), /Unicode/)
    assert.match(problem({ pattern: "a".repeat(1_001) }), /longer than 1000/)
    assert.match(problem({ pattern: "(", regex: true }), /RE2/)
    assert.match(problem({ pattern: "a(?=b)", regex: true }), /RE2/)
    assert.match(problem({ pattern: "(a)\\1", regex: true }), /RE2/)
    assert.match(problem({ pattern: "(?:a{0,100}){100}", regex: true }), /RE2|large/)
    assert.match(problem({ pattern: "(?:(?:a|b){1,30}){1,30}", regex: true }), /large/)
  })

  it("never throw, for any pattern", () => {
    const piece = fc.constantFrom(
      ..."a|(|)|[|]|{|}|*|+|?|\\|^|$|.|-|:|P|<|>|=|!|i|m|s|U|1|,|p{L}|\\pN|\\Q|\\E|\\C|\\x{|😀".split("|"),
      "|"
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), fc.boolean(), text(10), (pieces, ignoreCase, content) => {
        const query = { pattern: pieces.join(""), regex: true, ignoreCase, context: 1 }
        const matcher = compiled(query)
        if (Result.isSuccess(matcher)) searchText("/a", content, matcher.success, fileQueryOf(query))
        else assert.strictEqual(matcher.failure._tag, "InvalidPattern")
      }),
      { numRuns: scaled(5_000) }
    )
  })

  for (const [pattern, line] of [
    ["(x+x+)+y", "x".repeat(500_000)],
    ["(a|aa)+$", `${"a".repeat(500_000)}!`],
    ["(.*)*(.*)*(.*)*!x", `!${"a ".repeat(250_000)}`],
    ["^(([a-z])+.)+[A-Z]([a-z])+$", "a".repeat(500_000)],
    ["\\b[ab]*a[ab]{200}!", `!${"ab".repeat(100_000)}`]
  ] as const) {
    it(`${pattern} takes linear time`, { timeout: 30_000 }, () => {
      assert.deepStrictEqual(linesIn(`${line}\n${line}`, { pattern, regex: true }), [])
    })
  }

  it("literal text takes linear time", () => {
    const content = `${"a".repeat(1_000_000)}\n`.repeat(3)
    assert.deepStrictEqual(linesIn(content, { pattern: `${"a".repeat(500)}b${"a".repeat(499)}` }), [])
    assert.deepStrictEqual(linesIn(content, { pattern: `${"a".repeat(999)}B`, ignoreCase: true }), [])
  })
})
