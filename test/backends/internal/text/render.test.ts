import { assert, describe, it } from "@effect/vitest"
import type { Backend } from "effect-deepagents"
import fc from "fast-check"
import { windowOf } from "../../../../src/backends/internal/text/lines.ts"
import {
  maxRowLength,
  renderGlob,
  renderGrep,
  renderListing,
  renderWindow
} from "../../../../src/backends/internal/text/render.ts"
import { scaled } from "../../../scale.ts"
import { linesOf, text } from "../texts.ts"

const fileOf = (content: string, window?: Backend.Window): Backend.TextFile => {
  const read = windowOf(content, window)
  if (read.kind === "binary") return assert.fail("it is text")
  return { kind: "text", path: "/a", ...read.window, size: read.size, version: "1" }
}

const render = (content: string, window?: Backend.Window, room?: number) =>
  renderWindow(fileOf(content, window), window, room)

const isNotice = (row: string) => /^\[.*\]$/.test(row)

/** Reads all of a file as a model would: by what the notices say, from window to window. */
const readAll = (content: string, limit: number, room: number): ReadonlyArray<string> => {
  const lines: Array<string> = []
  let window: Backend.Window | undefined = { limit }
  for (let windows = 0; window !== undefined && windows < 2_000; windows++) {
    const shown = render(content, window, room).split("\n")
    for (const row of shown) {
      const match = /^ *(\d+)(?:\.\d+)?\t([^]*)$/.exec(row)
      if (match === null) assert.isTrue(isNotice(row), row)
      else {
        const line = Number(match[1]) - 1
        lines[line] = (lines[line] ?? "") + (match[2] ?? "")
      }
    }
    const next = /go on with offset (\d+)(?: and column (\d+))?/.exec(shown.filter(isNotice).join("\n"))
    window = next === null ? undefined : { limit, offset: Number(next[1]), column: Number(next[2] ?? 0) }
  }
  return lines
}

describe("renderWindow", () => {
  it("says that an offset before the first line was taken for it", () => {
    const note = "[offset -5 is before the first line, so this is from line 1; lines count from 1]"
    assert.include(render("a\nb\nc", { offset: -5 }), note)
    assert.include(render("", { offset: -5 }), note)
    assert.notInclude(render("a\nb\nc", { offset: 0 }), "before the first line")
  })

  it("numbers lines, and says nothing more of a file that is shown as a whole", () => {
    assert.strictEqual(render("a\nb\n"), "   1\ta\n   2\tb")
    assert.strictEqual(render("a\nb"), "   1\ta\n   2\tb")
  })

  it("says which lines they are, and how to go on", () => {
    const content = "x\n".repeat(12_345)
    assert.strictEqual(
      render(content, { offset: 9_999, limit: 3 }),
      " 9999\tx\n10000\tx\n10001\tx\n[lines 9999–10001 of 12345; go on with offset 10002]"
    )
    assert.strictEqual(render("a\nb\nc", { offset: 3 }), "   3\tc\n[line 3 of 3]")
    assert.strictEqual(render("a\nb\nc", { limit: 1 }), "   1\ta\n[line 1 of 3; go on with offset 2]")
  })

  it("says of a file that it is empty, of a limit of 0 that it is, and of an offset that it is past the end", () => {
    assert.strictEqual(render(""), "[the file is empty]")
    assert.strictEqual(render("", { limit: 0 }), "[the file is empty]")
    assert.strictEqual(render("a\nb", { limit: 0 }), "[no lines were asked for (limit 0); the file has 2 lines]")
    assert.strictEqual(render("a", { offset: 7 }), "[offset 7 is past the end; the file has 1 line]")
  })

  it("reports a file of whitespace", () => {
    assert.strictEqual(render(" \n\t\n"), "   1\t \n   2\t\t\n[the file has nothing but whitespace]")
    assert.notInclude(render(" \n\t\nx", { limit: 2 }), "whitespace")
  })

  it("says once that lines end with \\r\\n", () => {
    assert.strictEqual(
      render("a\r\nb\r\n"),
      "   1\ta\n   2\tb\n[lines end with \\r\\n; an edit with \\n keeps them so]"
    )
    assert.notInclude(render("a\r\nb\n"), "\\r")
  })

  it("goes on with long lines in rows N.1, N.2, at multiples of their length", () => {
    const line = "x".repeat(maxRowLength)
    assert.strictEqual(render(`${line}\nb`), `   1\t${line}\n   2\tb`)
    assert.strictEqual(render(`${line}y`), `   1\t${line}\n 1.1\ty`)
    assert.strictEqual(
      render(`${line}${line}y`, { column: maxRowLength + 10 }),
      ` 1.1\t${line.slice(10)}\n 1.2\ty\n[line 1 from column ${maxRowLength + 10} of 1]`
    )
  })

  it("leaves characters out of the first line only", () => {
    assert.strictEqual(
      render(`${"x".repeat(maxRowLength)}y\nbc`, { column: maxRowLength }),
      ` 1.1\ty\n   2\tbc\n[lines 1–2 from column ${maxRowLength} of 2]`
    )
  })

  it("goes on within a line that does not fit", () => {
    const shown = render("x".repeat(30_000), undefined, 12_000).split("\n")
    assert.deepStrictEqual(
      shown.map((row) => row.slice(0, 6)),
      ["   1\tx", " 1.1\tx", "[line "]
    )
    assert.strictEqual(shown.at(-1), "[line 1 of 1; go on with offset 1 and column 10000]")
  })

  it("following the notices reads all of a file, each character once", () => {
    fc.assert(
      fc.property(text(), fc.integer({ min: 1, max: 6 }), fc.integer({ min: 0, max: 60 }), (content, limit, room) => {
        assert.deepStrictEqual([...readAll(content, limit, room)], [...linesOf(content)])
      }),
      { numRuns: scaled(1_000) }
    )
  })

  it("also of long lines, of characters of any width", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom("x", "é", "😀", "a😀"), fc.integer({ min: 0, max: 9_000 })), {
          minLength: 1,
          maxLength: 4
        }),
        fc.integer({ min: 1, max: 20_000 }),
        (parts, room) => {
          const lines = parts.map(([unit, times]) => unit.repeat(times))
          const content = `${lines.join("\n")}\n`
          assert.isTrue(readAll(content, 2_000, room).join("\n") === lines.join("\n"))
        }
      ),
      { numRuns: 60 }
    )
    const huge = `${"é😀".repeat(70_000)}\nend`
    assert.isTrue(readAll(huge, 2_000, 60_000).join("\n") === huge)
    assert.isTrue(readAll(huge, 2_000, 1_000_000).join("\n") === huge)
  })

  it("is never longer than there is room for, but for a row and the notices", () => {
    fc.assert(
      fc.property(text(80), fc.nat(100), (content, room) => {
        const rows = render(content, undefined, room)
          .split("\n")
          .filter((row) => !isNotice(row))
        const length = rows.reduce((sum, row) => sum + row.length + 1, 0)
        if (rows.length > 1) assert.isAtMost(length, room)
      })
    )
  })
})

const entry = (path: string, more: Partial<Backend.Entry> = {}): Backend.Entry => ({ path, kind: "file", ...more })

describe("listings", () => {
  it("show the kind of each entry", () => {
    const entries = [
      entry("/a", { kind: "directory" }),
      entry("/b.txt", { size: 12 }),
      entry("/c", { kind: "link" }),
      entry("/d\ne")
    ]
    assert.strictEqual(
      renderListing({ entries }),
      '/a/\n/b.txt (12 bytes)\n/c (a link that leads nowhere, or out of the root)\n"/d\\ne"'
    )
    assert.strictEqual(renderGlob({ entries: entries.slice(1, 2) }), "/b.txt")
  })

  it("report an empty folder", () => {
    assert.strictEqual(renderListing({ entries: [] }), "[the directory is empty]")
    assert.strictEqual(renderGlob({ entries: [] }), "[no file matches]")
    assert.match(renderGlob({ entries: [], truncated: "time" }), /^\[there may be more: the time was up; /)
  })

  it("report omitted entries, and how to get at them", () => {
    const entries = Array.from({ length: 100 }, (_, index) => entry(`/file${index}`))
    const shown = renderListing({ entries, truncated: "limit" }, 50).split("\n")
    assert.deepStrictEqual(shown.slice(0, 7), ["/file0", "/file1", "/file2", "/file3", "/file4", "/file5", "/file6"])
    assert.match(shown[7] ?? "", /^\[7 of 100 are shown; list a directory in it, or use glob/)
    assert.match(shown[8] ?? "", /^\[there may be more: the limit was reached; /)
    assert.lengthOf(shown, 9)
  })
})

describe("renderGrep", () => {
  const result: Backend.GrepResult = {
    files: [
      {
        path: "/a",
        count: 3,
        matches: [
          { line: 2, text: "x2", before: ["one"], after: ["three"] },
          { line: 4, text: "x4", before: [], after: [] },
          { line: 9, text: "x9", before: ["eight"], after: [] }
        ]
      },
      { path: "/b\nc", count: 1, matches: [{ line: 1, text: "x", before: [], after: [] }] }
    ]
  }

  it("shows lines with their numbers, their context, and the gaps between", () => {
    assert.strictEqual(
      renderGrep(result, { pattern: "x", context: 1 }),
      '/a:\n  1- one\n  2: x2\n  3- three\n  4: x4\n  --\n  8- eight\n  9: x9\n"/b\\nc":\n  1: x'
    )
    assert.notInclude(renderGrep(result, { pattern: "x" }), "--")
  })

  it("shows counts, and files", () => {
    assert.strictEqual(renderGrep(result, { pattern: "x", mode: "count" }), '/a: 3\n"/b\\nc": 1')
    assert.strictEqual(renderGrep(result, { pattern: "x", mode: "files" }), '/a\n"/b\\nc"')
  })

  it("says that nothing matches, and that a pattern that looks like an expression was taken literally", () => {
    assert.strictEqual(renderGrep({ files: [] }, { pattern: "x" }), "[nothing matches]")
    assert.match(renderGrep({ files: [] }, { pattern: "a|b" }), /literal text, set regex/)
    assert.match(renderGrep({ files: [] }, { pattern: "foo\\d+" }), /literal text, set regex/)
    assert.notInclude(renderGrep({ files: [] }, { pattern: "a|b", regex: true }), "literal")
  })

  it("never exceeds its room, and reports omitted lines", () => {
    const files = Array.from({ length: 500 }, (_, index) => ({ path: `/f${index}`, count: 1, matches: [] }))
    const shown = renderGrep({ files, truncated: "time" }, { pattern: "x", mode: "files" }, 200)
    assert.isBelow(shown.length, 500)
    assert.match(shown, /\[\d+ of 500 are shown; narrow it down by path, glob or a longer pattern\]/)
    assert.match(shown, /\[there may be more: the time was up; /)
  })
})
