import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import type { Backend } from "effect-deepagents"
import fc from "fast-check"
import { applyEdits } from "../../../../src/backends/internal/text/edit.ts"
import { scaled } from "../../../scale.ts"
import { linesOf, text } from "../texts.ts"

const edit = (content: string, ...replacements: ReadonlyArray<Backend.Replacement>) =>
  Result.merge(applyEdits(content, replacements))

const hint = (content: string, old: string): string => {
  const reason = edit(content, { old, new: "something else" })
  if (!("_tag" in reason) || reason._tag !== "NoMatch") return assert.fail(`it has ${JSON.stringify(old)}`)
  return reason.hint ?? ""
}

/** A character, and whether a replacement began there. */
interface Cell {
  readonly char: string
  mark: boolean
}

const cellsOf = (content: string): Array<Cell> => content.split("").map((char) => ({ char, mark: false }))

/** Edits by the rules, as plainly as can be: cell by cell. Returns the tag of the reason if it fails. */
const naive = (content: string, replacements: ReadonlyArray<Backend.Replacement>) => {
  const crlf = /^(?:[^\r\n]|\r\n)*\r\n(?:[^\r\n]|\r\n)*$/.test(content)
  const cells = [...cellsOf(content), { char: "", mark: false }]
  let replaced = 0
  for (const { new: to, old, replaceAll = false } of replacements) {
    if (old === "" || old === to) return "NoMatch"
    const convert = crlf && !/\r/.test(old + to)
    const from = convert ? old.split("\n").join("\r\n") : old
    const into = convert ? to.split("\n").join("\r\n") : to
    const now = cells.map(({ char }) => char).join("")
    const found: Array<number> = []
    for (let i = 0; i + from.length <= now.length; i++) {
      if (now.slice(i, i + from.length) !== from) continue
      found.push(i)
      if (replaceAll) i += from.length - 1
    }
    if (found.length === 0) return "NoMatch"
    if (found.length > 1 && !replaceAll) return "NotUnique"
    for (const at of found.reverse()) {
      cells.splice(at, from.length, ...cellsOf(into))
      const cell = cells[at]
      if (cell !== undefined) cell.mark = true
      replaced++
    }
  }
  const now = cells.map(({ char }) => char).join("")
  const ends = Array.from(now.matchAll(/\r\n|\n|\r/g), (end) => end.index + end[0].length)
  const lines = new Set<number>()
  cells.forEach(({ mark }, index) => {
    if (mark) lines.add(1 + ends.filter((end) => end <= index).length)
  })
  return { text: now, replaced, lines: [...lines] }
}

/** Text of few letters and line ends, and replacements of parts of it: most of them match, many more than once. */
const content = fc.oneof(
  text(30),
  fc.array(fc.constantFrom("a", "b", "c", "\n"), { maxLength: 20 }).map((all) => all.join("")),
  fc.array(fc.constantFrom("a", "b", "\r\n"), { maxLength: 20 }).map((all) => all.join(""))
)
const into = fc.oneof(text(4), fc.constantFrom("", "$&", "$1", "$$", "$`", "\\n", "a\nb"))
const parts = fc.array(
  fc.record({ from: fc.nat(20), length: fc.integer({ min: 1, max: 6 }), new: into, replaceAll: fc.boolean() }),
  { maxLength: 4 }
)
const edits = fc.tuple(content, parts, fc.boolean()).map(([content, parts, asLf]) => ({
  content,
  replacements: parts.map(({ from, length, new: to, replaceAll }) => {
    const at = from % Math.max(1, content.length)
    const old = content.slice(at, at + length)
    return { old: asLf ? old.replaceAll("\r\n", "\n") : old, new: to, ...(replaceAll ? { replaceAll } : {}) }
  })
}))

describe("edits", () => {
  it("do the same as replacing cell by cell, one after the other, or nothing", () => {
    let applied = 0
    fc.assert(
      fc.property(edits, ({ content, replacements }) => {
        const result = edit(content, ...replacements)
        if ("isInexact" in result) return
        const expected = naive(content, replacements)
        if (typeof expected === "string") assert.strictEqual("_tag" in result && result._tag, expected)
        else if (!("_tag" in result)) {
          applied += replacements.length
          assert.strictEqual(result.text, expected.text)
          assert.strictEqual(result.replaced, expected.replaced)
          assert.deepStrictEqual(result.lines, expected.lines)
        } else assert.fail(`${result._tag}, but ${JSON.stringify(expected)}`)
      }),
      { numRuns: scaled(5_000) }
    )
    assert.isAbove(applied, scaled(600))
  })

  it("take text for text: nothing in it means anything", () => {
    assert.deepStrictEqual(edit("a $& b", { old: "$&", new: "$` $1 $$ $' \\n" }), {
      text: "a $` $1 $$ $' \\n b",
      replaced: 1,
      lines: [1]
    })
  })

  it("tell the lines of the new file, each once", () => {
    const result = edit("x x\ny\nx", { old: "x", new: "1\n2", replaceAll: true })
    assert.deepStrictEqual(result, { text: "1\n2 1\n2\ny\n1\n2", replaced: 3, lines: [1, 2, 5] })
    const moved = edit("a\nb\nc", { old: "c", new: "C" }, { old: "a", new: "1\n2\n3" })
    assert.deepStrictEqual(moved, { text: "1\n2\n3\nb\nC", replaced: 2, lines: [1, 5] })
  })

  it("keep \\r\\n in a file that uses it, and match a mixed file as it is", () => {
    assert.deepStrictEqual(edit("a\r\nb\r\nc", { old: "a\nb", new: "1\n2\n3" }), {
      text: "1\r\n2\r\n3\r\nc",
      replaced: 1,
      lines: [1]
    })
    assert.strictEqual(hint("a\r\nb\nc", "a\nb"), 'line 1 has it but for line endings (\\r\\n or \\n): "a"')
    const mixed = edit("a\r\nb\nc", { old: "b\nc", new: "x\ny" })
    assert.strictEqual("text" in mixed && mixed.text, "a\r\nx\ny")
  })

  it("keep a byte order mark", () => {
    const result = edit("\uFEFFa\nb", { old: "a", new: "x" })
    assert.strictEqual("text" in result && result.text, "\uFEFFx\nb")
  })

  it("need `old` to be there once, and overlapping places are several", () => {
    assert.deepStrictEqual(edit("x\ny\nx", { old: "x", new: "z" }), { _tag: "NotUnique", count: 2, lines: [1, 3] })
    assert.deepStrictEqual(edit("aaa", { old: "aa", new: "b" }), { _tag: "NotUnique", count: 2, lines: [1] })
    const all = edit("aaa", { old: "aa", new: "b", replaceAll: true })
    assert.strictEqual("text" in all && all.text, "ba")
    const many = edit("x\n".repeat(5_000), { old: "x", new: "z" })
    assert.deepStrictEqual("count" in many && [many.count, many.lines.length], [5_000, 100])
  })

  it("of nothing, or into the same, are refused with what to do instead", () => {
    assert.match(hint("abc", ""), /must not be empty.*write/)
    const same = edit("abc", { old: "b", new: "b", replaceAll: true })
    assert.match("hint" in same ? String(same.hint) : "", /are the same/)
  })
})

const file = "function a() {\n  const x = “1”;\n\n  return X - 1  \n}\n"

describe("the diagnosis says", () => {
  for (const [what, old, expected] of [
    ["indentation", "function a() {\n    const x = “1”;", 'line 1 has it but for indentation: "function a() {"'],
    ["case", "return x", 'line 4 has it but for upper and lower case: "  return X - 1  "'],
    ["quotes", 'const X = "1";', /^line 2 has it but for quotes, dashes or special spaces .* upper and lower case: /],
    ["dashes", "return x – 1", /^line 4 has it but for quotes, dashes/],
    ["trailing space", "return x - 1\n}", /^line 4 has it but for spaces at the ends of lines/],
    ["inner space", "function  a()", 'line 1 has it but for spaces within lines: "function a() {"'],
    ["line endings", "return X - 1  \r\n}", 'line 4 has it but for line endings (\\r\\n or \\n): "  return X - 1  "'],
    ["breaks at the end", "}\n\n", 'line 5 has it but for line breaks at its beginning or end: "}"'],
    ["several", 'CONST  x = "1"', /^line 2 has it but for spaces within lines, quotes.* and upper and lower case: /],
    ["line numbers", "   1\tfunction a() {\n   2\t  const x", /has the line numbers/],
    ["escapes", "function a() {\\n  const x", /has escapes/],
    [
      "how far it is the same",
      "function a() {\n  const x = “1”;\n  return X",
      'lines 1–2 are as in `old`, but then line 3 is "" where `old` has "  return X"'
    ],
    [
      "that the file ends",
      "  return X - 1\n}\n\nnext",
      'lines 4–6 are as in `old`, but then the file ends there where `old` has "next"'
    ],
    ["the nearest line", "functoin a()", 'the nearest line is 1: "function a() {"'],
    ["that nothing is like it", "import quux", "nothing in it is like it; read the file again"],
    ["that it is only whitespace", "\n\n\n\n", "`old` is only whitespace; give text around it"]
  ] as const) {
    it(what, () => {
      const said = hint(file, old)
      if (typeof expected === "string") assert.strictEqual(said, expected)
      else assert.match(said, expected)
    })
  }

  it("the line that is most like it, of several that are", () => {
    const lines = "function append()\nfunction append(a)\nfunction app(a)"
    assert.match(hint(lines, "functoin append(a)"), /^the nearest line is 2: /)
    assert.match(hint(lines.split("\n").reverse().join("\n"), "functoin append(a)"), /^the nearest line is 2: /)
  })

  it("that the file is empty", () => {
    assert.strictEqual(hint("", "a"), "the file is empty")
  })

  it("a line that is alike, for any change of space and case, with its number", () => {
    const word = fc.constantFrom("alpha", "beta", "Gamma", "delta(x)", "“q”")
    const space = fc.constantFrom("", " ", "\t", "    ")
    fc.assert(
      fc.property(
        fc.array(fc.tuple(space, word, space), { minLength: 1, maxLength: 4 }),
        fc.nat(20),
        (parts, above) => {
          const indent = (all: typeof parts) =>
            all.map(([before, word, after]) => `${before}${word}${after}`).join("\n")
          const content = `${"other\n".repeat(above)}start\n${indent(parts)}\nend\n`
          const old = `start\n${parts.map(([, word]) => `  ${word.toUpperCase()}`).join("\n")}\nend`
          fc.pre(!content.includes(old))
          assert.match(hint(content, old), new RegExp(`^line ${above + 1} has it but for `))
        }
      )
    )
  })

  it("it within bounds: a long line is quoted in part", () => {
    assert.isBelow(hint(`const x = ${"y".repeat(100_000)}`, `CONST x = ${"y".repeat(100_000)}`).length, 400)
    assert.isBelow(hint("x", "y".repeat(1_000_000)).length, 400)
  })

  for (const [what, content, old] of [
    ["spaces", " ".repeat(5_000_000), "foo bar baz"],
    ["spaces before an end", `${" ".repeat(1_000)}x`.repeat(5_000), "foo bar baz\nq"],
    ["empty lines", "\n".repeat(5_000_000), "foo bar\n\nq"],
    ["one letter", "a".repeat(5_000_000), `b${"a".repeat(2_000_000)}`],
    ["the same line", "a\n".repeat(2_000_000), `${"a\n".repeat(500_000)}b`],
    ["quotes", "“…’".repeat(1_000_000), "foo'\nx"]
  ] as const) {
    it(`something about megabytes of ${what}, too`, { timeout: 20_000 }, () => {
      assert.isBelow(hint(content, old).length, 800)
    })
  }
})

describe("edits of lines", () => {
  it("leave all other lines as they were", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(999), { minLength: 1, maxLength: 20 }), fc.nat(19), (numbers, at) => {
        const lines = numbers.map((number, index) => `${index}: ${number}`)
        const index = at % lines.length
        const result = edit(lines.join("\r\n"), { old: lines[index] ?? "", new: "new\ntext" })
        if ("_tag" in result) return
        assert.deepStrictEqual(linesOf(result.text), lines.toSpliced(index, 1, "new", "text"))
        assert.deepStrictEqual(result.lines, [index + 1])
      })
    )
  })
})
