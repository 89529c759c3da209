import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import fc from "fast-check"
import * as Path from "../../../../src/backends/internal/files/path.ts"
import { takeBytes, utf8Length } from "../../../../src/backends/internal/text/utf8.ts"
import { boundaryAfter, boundaryBefore, cut } from "../../../../src/support/text/text.ts"
import { scaled } from "../../../scale.ts"

const normalize = (path: string) =>
  Result.match(Path.normalize("read", path), {
    onSuccess: (normal) => normal,
    onFailure: ({ reason }) => reason._tag
  })

/** Spellings of paths: separators, dots, what is refused, and names. */
const spelling = fc
  .array(
    fc.constantFrom("/", "//", ".", "..", "~", "a", "b.txt", "C:", "é", "e\u0301", " ", "\\", "\0", "\ud800", "\n"),
    {
      maxLength: 8
    }
  )
  .map((parts) => parts.join(""))

const name = fc.constantFrom("a", "ab", "a b", "a-b", "a.b", "Z", "é", "\uE000", "😀", "\uFFFF", "!", "\t", "\u0001")
const normal = fc.array(name, { maxLength: 4 }).map((names) => `/${names.join("/")}`)

describe("path.normalize", () => {
  for (const [path, expected] of [
    ["", "/"],
    [".", "/"],
    ["/", "/"],
    ["a", "/a"],
    ["./a//b/./c/", "/a/b/c"],
    ["/a/~/b", "/a/~/b"],
    ["foo..bar", "/foo..bar"],
    ["...", "/..."],
    ["/C:x", "/C:x"],
    [" ", "/ "],
    ["/a\nb", "/a\nb"],
    ["..", "OutsideRoot"],
    ["/a/../a", "OutsideRoot"],
    ["a/..", "OutsideRoot"],
    ["~", "OutsideRoot"],
    ["~root/x", "OutsideRoot"],
    ["/~/x", "OutsideRoot"],
    ["//./~x", "OutsideRoot"],
    ["C:", "InvalidPath"],
    ["c:/windows", "InvalidPath"],
    ["a\\b", "InvalidPath"],
    ["..\\..\\a", "InvalidPath"],
    ["a\0", "InvalidPath"],
    ["a\ud800b", "InvalidPath"],
    [`/${"é".repeat(128)}`, "InvalidPath"],
    [`/${"é".repeat(127)}e`, `/${"é".repeat(127)}e`],
    ["/abc".repeat(1_024), "/abc".repeat(1_024)],
    [`${"/abc".repeat(1_024)}/`, "/abc".repeat(1_024)],
    [`/a${"/abc".repeat(1_024)}`, "InvalidPath"],
    ["a/".repeat(5_000_000), "InvalidPath"]
  ] as const) {
    it(`${JSON.stringify(path.slice(0, 30))} of length ${path.length} is ${expected.slice(0, 30)}`, () => {
      assert.strictEqual(normalize(path), expected)
    })
  }

  it("an error does not carry a path of megabytes", () => {
    const error = Result.getOrThrow(Result.flip(Path.normalize("read", "a/".repeat(5_000_000))))
    assert.isBelow(error.path.length, 5_000)
  })

  it("its results are normal, and normal paths stay as they are", () => {
    fc.assert(
      fc.property(spelling, (path) => {
        Result.match(Path.normalize("read", path), {
          onFailure: ({ reason }) => {
            assert.oneOf(reason._tag, ["OutsideRoot", "InvalidPath"])
          },
          onSuccess: (path) => {
            assert.match(path, /^\//)
            const names = Path.segments(path)
            assert.isFalse(
              names.some((name) => name === "" || name === "." || name === ".."),
              path
            )
            assert.notMatch(path, /^\/~|\\|\0/)
            assert.isTrue(path.isWellFormed())
            assert.strictEqual(normalize(path), path)
          }
        })
      }),
      { numRuns: scaled(2_000) }
    )
  })

  it("no name is changed: neither case nor normal form", () => {
    assert.notStrictEqual(normalize("e\u0301"), normalize("\u00e9"))
    assert.strictEqual(normalize("A/e\u0301"), "/A/e\u0301")
  })
})

describe("path", () => {
  it("join reverses parent, basename and relative", () => {
    fc.assert(
      fc.property(normal, fc.array(name, { minLength: 1, maxLength: 3 }), (folder, names) => {
        const path = Path.join(folder, names.join("/"))
        assert.strictEqual(Path.relative(path, folder), names.join("/"))
        assert.strictEqual(Path.basename(path), names.at(-1))
        assert.strictEqual(Path.parent(path), Path.join(folder, names.slice(0, -1).join("/")))
        assert.deepStrictEqual(Path.segments(path), [...Path.segments(folder), ...names])
        assert.isTrue(Path.isWithin(path, folder))
        assert.isFalse(Path.isWithin(folder, path))
      })
    )
    assert.strictEqual(Path.parent("/"), "/")
    assert.strictEqual(Path.basename("/"), "")
    assert.strictEqual(Path.relative("/a", "/a"), "")
    assert.strictEqual(Path.join("/a", ""), "/a")
  })

  it("isWithin looks at whole names", () => {
    fc.assert(
      fc.property(normal, normal, (path, folder) => {
        const within = Path.segments(folder).every((name, index) => Path.segments(path)[index] === name)
        assert.strictEqual(Path.isWithin(path, folder), within)
      })
    )
    assert.isFalse(Path.isWithin("/ab", "/a"))
  })

  it("compare goes by segments, and by code points in them", () => {
    const points = (path: string) =>
      Path.segments(path).map((segment) => Array.from(segment, (char) => char.codePointAt(0) ?? 0))
    const naive = (left: string, right: string): number => {
      const [lefts, rights] = [points(left), points(right)]
      for (let i = 0; ; i++) {
        const [a, b] = [lefts[i], rights[i]]
        if (a === undefined || b === undefined) return (a === undefined ? 0 : 1) - (b === undefined ? 0 : 1)
        for (let j = 0; j < Math.max(a.length, b.length); j++) {
          if (a[j] !== b[j]) return (a[j] ?? -1) - (b[j] ?? -1)
        }
      }
    }
    fc.assert(
      fc.property(normal, normal, (left, right) => {
        assert.strictEqual(Math.sign(Path.compare(left, right)), Math.sign(naive(left, right)))
      }),
      { numRuns: scaled(2_000) }
    )
    const name = fc.string({
      unit: fc.constantFrom("a", "b", "~", "é", "\uFFFD", "\uE000", "😀", "\uD7FF"),
      maxLength: 4
    })
    fc.assert(
      fc.property(name, name, (left, right) => {
        assert.strictEqual(
          Math.sign(Path.compareNames(left, right)),
          Math.sign(Path.compare(left, right)),
          JSON.stringify([left, right])
        )
      }),
      { numRuns: scaled(2_000) }
    )
  })
})

describe("utf8", () => {
  const any = fc
    .array(fc.constantFrom("a", "é", "€", "😀", "\ud83d", "\ude00"), { maxLength: 8 })
    .map((all) => all.join(""))

  it("utf8Length equals the length of an encoder's result", () => {
    fc.assert(
      fc.property(any, (text) => {
        assert.strictEqual(utf8Length(text), new TextEncoder().encode(text).length)
      })
    )
  })

  it("takeBytes gives the longest beginning that has room, and parts no character", () => {
    fc.assert(
      fc.property(any, fc.nat(20), (text, bytes) => {
        const taken = takeBytes(text, bytes)
        assert.isTrue(text.startsWith(taken))
        assert.isAtMost(utf8Length(taken), bytes)
        const next = boundaryAfter(text, taken.length + 1)
        if (taken !== text) assert.isAbove(utf8Length(text.slice(0, next)), bytes)
      })
    )
  })

  it("a cut parts no character", () => {
    assert.strictEqual(cut("a😀b", 2), "a…")
    assert.strictEqual(cut("a😀b", 3), "a😀…")
    assert.strictEqual(cut("a😀b", 4), "a😀b")
    assert.strictEqual(boundaryBefore("a😀b", 2), 1)
    assert.strictEqual(boundaryAfter("a😀b", 2), 3)
  })
})
