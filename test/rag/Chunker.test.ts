/** Chunks are true parts of their text, at any text. */
import { describe, expect, it } from "@effect/vitest"
import { Chunker, type Chunk } from "effect-deepagents/rag"
import * as fc from "fast-check"
import { claimsOf } from "../../src/rag/internal/citations.ts"
import { sections } from "../../src/rag/internal/splitters.ts"
import { textTokens } from "../../src/support/text/tokens.ts"
import { isFull, scaled } from "../scale.ts"

const bits = [
  "a ",
  "word. ",
  "\n",
  "\n\n",
  "# H\n",
  "## B ##\n",
  "### C\n",
  "```\n",
  "~~~\n",
  "|a|b|\n",
  "漢字。",
  "พ",
  "👩‍👩‍👧",
  "e\u0301",
  "\uD800",
  "\t",
  "x".repeat(700),
  "1.5 ",
  "Dr. No said. ",
  "\0",
  "\r\n",
  "long ".repeat(120),
  "﷽"
]

const texts = fc.array(fc.constantFrom(...bits), { maxLength: 60 }).map((some) => some.join(""))

const isBlank = (text: string) => /^[\0-\x20]*$/.test(text)

const isHalf = (text: string, at: number) => {
  const before = text.charCodeAt(at - 1)
  const after = text.charCodeAt(at)
  return before >= 0xd800 && before <= 0xdbff && after >= 0xdc00 && after <= 0xdfff
}

const checkChunks = (text: string, chunks: ReadonlyArray<Chunk.Chunk>, tokens: number) => {
  let covered = 0
  for (const [index, chunk] of chunks.entries()) {
    expect(chunk.text).toBe(text.slice(chunk.start, chunk.end))
    expect(chunk.id).toBe(`d::${index}`)
    const before = chunks[index - 1]
    if (before !== undefined) {
      expect(chunk.start).toBeGreaterThanOrEqual(before.start)
      expect(chunk.end).toBeGreaterThan(before.end)
    }
    expect(isBlank(text.slice(covered, chunk.start))).toBe(true)
    covered = Math.max(covered, chunk.end)
    expect(isHalf(text, chunk.start) || isHalf(text, chunk.end)).toBe(false)
    if (chunk.text.length > 2) expect(textTokens(chunk.text)).toBeLessThanOrEqual(tokens * 1.7 + 3)
  }
  expect(isBlank(text.slice(covered))).toBe(true)
}

describe("chunk", () => {
  it("gives true parts of any text, in order, without gaps, and no half of a character", () => {
    fc.assert(
      fc.property(
        texts,
        fc.integer({ min: 1, max: 200 }),
        fc.nat(100),
        fc.boolean(),
        (text, tokens, overlap, isMarkdown) => {
          const split = isMarkdown ? Chunker.markdown : Chunker.parts
          checkChunks(text, Chunker.chunk({ id: "d", text }, { tokens, overlap, split }), tokens)
        }
      ),
      { numRuns: scaled(4000) }
    )
  })

  it("keeps parts apart, wherever they begin", () => {
    const places = fc.array(fc.integer({ min: -3, max: 400 }), { maxLength: 8 })
    fc.assert(
      fc.property(texts, places, (text, starts) => {
        const parts = starts.map((start) => ({ start, label: `page ${start}` }))
        checkChunks(text, Chunker.chunk({ id: "d", text, parts }, { tokens: 30 }), 30)
      }),
      { numRuns: scaled(1000) }
    )
  })

  it("keeps headings under their own, where levels are left out", () => {
    const text = ["## B", "b", "## C", "c", "#### D", "d", "### E", "e"].join("\n")
    expect(sections({ id: "x", text }).map(({ headings }) => headings)).toEqual([["B"], ["C"], ["C", "D"], ["C", "E"]])
  })

  it("splits Markdown by headings, and not by those in fenced code", () => {
    const filler = "This sentence fills a section with words. ".repeat(40)
    const text = `# Guide\n${filler}\n## Install\n${filler}\n\`\`\`sh\n# no heading\n\`\`\`\n# Use\n${filler}`
    const chunks = Chunker.chunk({ id: "d", text }, { split: Chunker.markdown })
    expect(chunks.map(({ headings }) => headings)).toEqual([["Guide"], ["Guide", "Install"], ["Use"]])
    expect(chunks[1]?.text).toContain("# no heading")
  })

  it("joins small sections of one parent, under that parent", () => {
    const text = Array.from({ length: 20 }, (_, at) => `## Option ${at}\nOne line.\n`).join("")
    const chunks = Chunker.chunk(
      { id: "d", text: `# Options\n${text}# Other\nA line.` },
      { split: Chunker.markdown, tokens: 64 }
    )
    expect(chunks.length).toBeLessThan(15)
    expect(chunks[1]?.headings).toEqual(["Options"])
  })

  it("keeps tables and fenced code whole if they fit", () => {
    const rows = "| 1 | 2 |\n".repeat(10)
    const code = "```\nlet a = 1. Let b = 2.\n\nlet c = 3\n```\n"
    const filler = "Some words before it. ".repeat(6)
    const text = `${filler}\n${rows}\n${filler}\n${code}`
    const chunks = Chunker.chunk({ id: "d", text }, { tokens: 60, overlap: 0 })
    expect(chunks.filter(({ text: part }) => part.includes(rows.trim())).length).toBe(1)
    expect(chunks.filter(({ text: part }) => part.includes(code.trim())).length).toBe(1)
  })

  it("repeats the last sentences of a chunk in the next one", () => {
    const text = Array.from({ length: 60 }, (_, at) => `Sentence ${at} has some words. `).join("")
    const [first, second] = Chunker.chunk({ id: "d", text }, { tokens: 100, overlap: 30 })
    expect(second?.start).toBeLessThan(first?.end ?? 0)
    expect(second?.start).toBeGreaterThan(first?.start ?? 0)
  })

  it("splits Chinese text between sentences", () => {
    const text = "東京は日本の首都です。".repeat(40)
    const chunks = Chunker.chunk({ id: "d", text }, { tokens: 60, overlap: 0 })
    expect(chunks.length).toBeGreaterThan(3)
    for (const { text: part } of chunks) expect(part.endsWith("。")).toBe(true)
  })

  it("takes long texts of any shape, and stops beyond the most chunks", () => {
    const size = isFull ? 1_500_000 : 200_000
    const shapes = ["x", "#", "\n", "```\n", "# a\n", "A b. ", "a\n", "|a|\n", "[", " x\n\n"]
    for (const shape of shapes) {
      const text = shape.repeat(Math.ceil(size / shape.length))
      const chunks = Chunker.chunk({ id: "d", text }, { split: Chunker.markdown })
      expect(chunks.length).toBeLessThan(size / 100)
    }
    const many = Chunker.chunk({ id: "d", text: "A b. ".repeat(26_000) }, { tokens: 1, overlap: 0 })
    expect(many.length).toBe(Chunker.mostChunks + 1)
  })

  it("refuse a misspelt option, and name the right one", () => {
    const options = { token: 10 }
    expect(() => Chunker.chunk({ id: "d", text: "A b." }, options as {})).toThrow(/no option "token".*"tokens"/)
  })
})

describe("citations", () => {
  it("belong to the sentence before them, inside of its end or behind it", () => {
    const claims = [
      { text: "There are 30 days.", numbers: [1] },
      { text: "Leave is paid.", numbers: [2, 3] }
    ]
    for (const answer of [
      "There are 30 days.[1] Leave is paid.[2, 3]",
      "There are 30 days. [1] Leave is paid. [2] [3]",
      "There are 30 days [1]. Leave is paid [2, 3]."
    ]) {
      expect(
        claimsOf(answer).map(({ numbers, text }) => ({ numbers, text: text.replace(/ +\./, ".") })),
        answer
      ).toEqual(claims.map(({ numbers, text }) => ({ numbers, text })))
    }
  })
})
