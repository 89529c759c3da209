import { assert, describe, it } from "@effect/vitest"
import type { Backend } from "effect-deepagents"
import fc from "fast-check"
import { lineAt, usesCrlf } from "../../../../src/backends/internal/text/endings.ts"
import {
  makeWindowReader,
  maxWindowBytes,
  type ReadWindow,
  windowOf
} from "../../../../src/backends/internal/text/lines.ts"
import { scaled } from "../../../scale.ts"
import { bytes, chunked, decode, linesOf, text } from "../texts.ts"

const encode = (content: string) => new TextEncoder().encode(content)

const streamed = (chunks: Iterable<Uint8Array>, window?: Backend.Window): ReadWindow => {
  const reader = makeWindowReader(window)
  for (const chunk of chunks) if (!reader.push(chunk)) break
  return reader.end()
}

const windowIn = (content: string | Uint8Array, window?: Backend.Window) => {
  const read = windowOf(content, window)
  if (read.kind === "binary") return assert.fail("it is text")
  return read.window
}

const isBinary = (content: Uint8Array) => windowOf(content).kind === "binary"

/** What a window is, without the limit in bytes, by taking the whole text apart. */
const naive = (content: string, { column = 0, limit = 2_000, offset = 1 }: Backend.Window) => {
  const lines = linesOf(content)
  const inside = lines.slice(offset - 1, offset - 1 + limit)
  const [first, ...others] = inside
  const isHalf = first !== undefined && /^[\udc00-\udfff]/.test(first.slice(column)) && column > 0
  const ends = content.match(/\r\n|\r|\n/g) ?? []
  return {
    text: first === undefined ? "" : [first.slice(isHalf ? column + 1 : column), ...others].join("\n"),
    startLine: offset,
    endLine: offset + inside.length - 1,
    totalLines: lines.length,
    ...(ends.length > 0 && ends.every((end) => end === "\r\n") ? { crlf: true } : {})
  }
}

const window = fc.record(
  { offset: fc.integer({ min: 1, max: 12 }), limit: fc.nat(8), column: fc.nat(6) },
  { requiredKeys: [] }
)

describe("windows", () => {
  it("a window equals the split text", () => {
    fc.assert(
      fc.property(text(), window, (content, window) => {
        assert.deepStrictEqual(windowIn(content, window), naive(content, window))
      }),
      { numRuns: scaled(3_000) }
    )
  })

  it("a stream gives the same as the whole, however it is cut", () => {
    fc.assert(
      fc.property(bytes(), window, fc.array(fc.nat(200), { maxLength: 12 }), (content, window, cuts) => {
        assert.deepStrictEqual(streamed(chunked(content, cuts), window), windowOf(content, window))
      }),
      { numRuns: scaled(3_000) }
    )
  })

  it("a stream of single bytes gives the same, and so does the text", () => {
    fc.assert(
      fc.property(text(), window, (content, window) => {
        const whole = windowOf(content, window)
        assert.deepStrictEqual(
          streamed(
            [...encode(content)].map((byte) => new Uint8Array([byte])),
            window
          ),
          whole
        )
        assert.deepStrictEqual(windowOf(encode(content), window), whole)
      })
    )
  })

  it("bytes that are not UTF-8 behind the part that is sniffed are replacement characters", () => {
    fc.assert(
      fc.property(bytes(), window, fc.array(fc.nat(20_000), { maxLength: 4 }), (tail, { column, limit = 9 }, cuts) => {
        const content = new Uint8Array([...encode("x\n".repeat(4_096)), ...tail])
        const window = { offset: 4_095, limit, ...(column === undefined ? {} : { column }) }
        const read = streamed(chunked(content, cuts), window)
        assert.deepStrictEqual(read.kind === "text" && read.window, naive(decode(content), window))
      })
    )
  })

  it("counts the bytes, and corrects meaningless numbers", () => {
    const read = windowOf("é\n")
    assert.deepStrictEqual(read, {
      kind: "text",
      window: { text: "é", startLine: 1, endLine: 1, totalLines: 1 },
      size: 3
    })
    assert.deepStrictEqual(windowIn("a\nb", { offset: -3, limit: -1, column: -1 }), {
      text: "",
      startLine: 1,
      endLine: 0,
      totalLines: 2
    })
    assert.strictEqual(windowIn("a\nb", { offset: Number.NaN, limit: Number.NaN }).text, "a\nb")
    assert.strictEqual(windowIn("a\nb", { offset: 2.9, limit: Number.POSITIVE_INFINITY }).text, "b")
    assert.isTrue(Number.isSafeInteger(windowIn("a\nb", { offset: Number.POSITIVE_INFINITY }).endLine))
  })

  it("has 2,000 lines by default", () => {
    const { endLine, totalLines } = windowIn("a\n".repeat(2_500))
    assert.deepStrictEqual([endLine, totalLines], [2_000, 2_500])
  })
})

describe("windows, limit in bytes", () => {
  it("ends with the last whole line that has room", () => {
    const line = "x".repeat(100_000)
    const { endLine, nextColumn, text, totalLines } = windowIn(`${line}\n${line}\n${line}\n${line}`)
    assert.deepStrictEqual([endLine, nextColumn, totalLines, text], [2, undefined, 4, `${line}\n${line}`])
  })

  it("counts the line breaks between lines: exactly full is not too full", () => {
    const half = "x".repeat(maxWindowBytes / 2)
    assert.strictEqual(windowIn(`${half}\n${half.slice(1)}\nz`).endLine, 2)
    assert.strictEqual(windowIn(`${half}\n${half}\nz`).endLine, 1)
    assert.strictEqual(windowIn(`${half}${half}\n\nz`).endLine, 1)
    assert.strictEqual(windowIn(`${half}${half.slice(1)}\n\nz`).endLine, 2)
    assert.strictEqual(
      windowIn("\n".repeat(maxWindowBytes * 2), { limit: maxWindowBytes * 2 }).endLine,
      maxWindowBytes + 1
    )
  })

  it("a line that is too long is read in parts by nextColumn, of characters of any width", () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom("a", "é", "€", "😀"), { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 90_000, max: 110_000 }),
        (unit, times) => {
          const line = unit.join("").repeat(times)
          const content = `before\n${line}\nafter`
          let read = ""
          let column: number | undefined = 0
          for (let parts = 0; column !== undefined && parts < 20; parts++) {
            const part = windowIn(content, { offset: 2, limit: 1, column })
            assert.isAtMost(encode(part.text).length, maxWindowBytes)
            assert.isTrue(part.text.isWellFormed())
            assert.deepStrictEqual([part.startLine, part.endLine], [2, 2])
            read += part.text
            column = part.nextColumn
          }
          assert.isTrue(read === line)
        }
      ),
      { numRuns: 12 }
    )
  })

  it("a column within a character begins with the next one; one past the end has an empty line", () => {
    assert.strictEqual(windowIn("a😀b", { column: 2 }).text, "b")
    assert.deepStrictEqual(windowIn("ab\nc", { column: 9 }), { text: "\nc", startLine: 1, endLine: 2, totalLines: 2 })
  })

  it("a file of 200 MB goes through", () => {
    const chunk = encode(`${"x".repeat(1_023)}\n`.repeat(1_024))
    const chunks = function* () {
      for (let i = 0; i < 200; i++) yield chunk
    }
    const read = streamed(chunks(), { offset: 150_000, limit: 2 })
    assert.deepStrictEqual(read.kind === "text" && [read.window.text.length, read.window.totalLines, read.size], [
      2_047,
      204_800,
      200 * chunk.length
    ])
  })
})

describe("text or binary", () => {
  const padded = (length: number, ...more: ReadonlyArray<number>) =>
    new Uint8Array([...encode("x".repeat(length)), ...more])

  it("a NUL or invalid UTF-8 in the first 8,192 bytes makes a file binary", () => {
    for (const [content, expected] of [
      [padded(0, 0), true],
      [padded(8_191, 0), true],
      [padded(8_192, 0), false],
      [padded(10, 0xff), true],
      [padded(8_191, 0xff, 0x61), true],
      [padded(8_192, 0xff), false],
      [encode(""), false],
      [encode("\uFEFFé"), false]
    ] as const) {
      assert.strictEqual(isBinary(content), expected, `${content.length} bytes`)
    }
  })

  it("a character cut by the sniffed part does not count, one cut by the file does", () => {
    for (const lead of [8_189, 8_190, 8_191]) {
      assert.isFalse(isBinary(padded(lead, 0xf0, 0x9f, 0x98, 0x80)))
      assert.isFalse(isBinary(padded(lead, 0xf0, 0x9f, 0x98, 0x80, 0x0a)))
    }
    assert.isTrue(isBinary(padded(8_189, 0xf0, 0x9f)))
    assert.isTrue(isBinary(padded(3, 0xe2, 0x82)))
    assert.isTrue(isBinary(padded(8_189, 0xf0, 0x9f, 0x20, 0x20)))
  })

  it("a reader needs no more of a binary file", () => {
    const reader = makeWindowReader()
    assert.isTrue(reader.push(padded(8_000)))
    assert.isFalse(reader.push(padded(0, ...Array.from({ length: 300 }, () => 0))))
    const read = reader.end()
    assert.strictEqual(read.kind === "binary" && read.head.length, 8_192)
  })
})

describe("endings", () => {
  it("lineAt counts the endings before an index", () => {
    fc.assert(
      fc.property(text(), fc.nat(80), fc.nat(80), (content, one, other) => {
        const starts = [0]
        for (const { 0: end, index } of content.matchAll(/\r\n|\r|\n/g)) starts.push(index + end.length)
        const expected = (index: number) => starts.filter((start) => start <= index).length
        const [low, high] = [Math.min(one, other), Math.max(one, other)].map((index) => Math.min(index, content.length))
        if (low === undefined || high === undefined) return
        assert.strictEqual(lineAt(content, high), expected(high))
        assert.strictEqual(lineAt(content, high, { index: low, line: expected(low) }), expected(high))
      })
    )
  })

  it("usesCrlf says whether each ending is \\r\\n", () => {
    fc.assert(
      fc.property(text(), (content) => {
        const ends = content.match(/\r\n|\r|\n/g) ?? []
        assert.strictEqual(usesCrlf(content), ends.length > 0 && ends.every((end) => end === "\r\n"))
      })
    )
  })
})
