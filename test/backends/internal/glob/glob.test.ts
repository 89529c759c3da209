import { assert, describe, it } from "@effect/vitest"
import { Glob, Result } from "effect"
import fc from "fast-check"
import { compileGlob } from "../../../../src/backends/internal/glob/glob.ts"
import { growth } from "../../../fuzz/growth.ts"
import { scaled } from "../../../scale.ts"

const compile = (pattern: string) => Result.getOrThrow(compileGlob(pattern))

const problem = (pattern: string): string => {
  const reason = Result.getOrThrow(Result.flip(compileGlob(pattern)))
  return reason._tag === "InvalidPattern" ? reason.problem : assert.fail(reason._tag)
}

/** All alternatives of a pattern without escapes, from the innermost braces on. */
const expand = (pattern: string): ReadonlyArray<string> => {
  const inner = /\{([^{}]*)\}/.exec(pattern)
  if (inner === null) return [pattern]
  const [all, options = ""] = inner
  const [before, after] = [pattern.slice(0, inner.index), pattern.slice(inner.index + all.length)]
  return options.split(",").flatMap((option) => expand(`${before}${option}${after}`))
}

/** Whether a name matches, by trying everything. */
const matchesName = (pattern: string, name: string): boolean => {
  if (pattern === "") return name === ""
  if (pattern.startsWith("*")) {
    return matchesName(pattern.slice(1), name) || (name !== "" && matchesName(pattern, name.slice(1)))
  }
  const single = /^(?:\\[^]|\[!?\]?[^\]]*\]|[^])/u.exec(pattern)?.[0] ?? ""
  const [first = ""] = name
  if (first === "") return false
  const ok =
    single === "?"
      ? true
      : single.startsWith("\\")
        ? single.slice(1) === first
        : single.startsWith("[")
          ? new RegExp(`^${single.replace("[!", "[^")}$`, "u").test(first)
          : single === first
  return ok && matchesName(pattern.slice(single.length), name.slice(first.length))
}

const matchesNames = (segments: ReadonlyArray<string>, names: ReadonlyArray<string>): boolean => {
  const [segment, ...others] = segments
  if (segment === undefined) return names.length === 0
  if (segment === "**") {
    if (others.length === 0) return names.length > 0
    return matchesNames(others, names) || (names.length > 0 && matchesNames(segments, names.slice(1)))
  }
  const [name, ...rest] = names
  return name !== undefined && matchesName(segment, name) && matchesNames(others, rest)
}

/** What a pattern means, by its words. */
const naive = (pattern: string, path: string): boolean =>
  expand(pattern).some((alternative) => {
    const named = alternative.split("/").filter((segment) => segment !== "" && segment !== ".")
    const segments = alternative.endsWith("/") ? [...named, "**"] : named
    return matchesNames(pattern.includes("/") ? segments : ["**", ...segments], path.split("/"))
  })

const token = fc.constantFrom(
  ..."a|b|c|.|/|/|*|?|**|**/|/**/|[ab]|[!a]|[^b]|[a-c]|\\*|\\a|{a,b}|{a,b/c}|{*,}|{a,{b,c}*}|{,.}a|{**,b}/|😀|é".split(
    "|"
  )
)
const pattern = fc.array(token, { minLength: 1, maxLength: 6 }).map((all) => all.join(""))
const name = fc
  .array(fc.constantFrom("a", "b", "c", ".a", "*", "😀", "é"), { minLength: 1, maxLength: 3 })
  .map((all) => all.join(""))
const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((names) => names.join("/"))

describe("globs", () => {
  for (const [pattern, yes, no] of [
    ["*.ts", ["a.ts", "src/a.ts", "a/b/.c.ts", ".ts"], ["a.tsx", "a.ts/b"]],
    ["src/*.ts", ["src/a.ts", "src/.ts"], ["a.ts", "src/b/a.ts", "x/src/a.ts"]],
    ["/src/*.ts", ["src/a.ts"], ["x/src/a.ts"]],
    ["/a", ["a"], ["b/a"]],
    ["./a", ["a"], ["b/a"]],
    ["src/**/*.ts", ["src/a.ts", "src/b/a.ts", "src/.b/c/a.ts"], ["a.ts", "src.ts"]],
    ["**/a", ["a", "b/a", "c/b/a"], ["a/b", "ba"]],
    ["src/**", ["src/a", "src/a/b", "src/.a"], ["src", "a/src/b"]],
    ["src/", ["src/a", "src/a/b"], ["src", "a/src/b"]],
    ["**", ["a", "a/b", ".a"], []],
    ["a/**/b/**/c", ["a/b/c", "a/x/b/c", "a/x/b/y/z/c"], ["a/c", "a/b"]],
    ["a**b", ["ab", "axb", "x/ab"], ["a/b"]],
    ["?.md", ["a.md", "é.md", "😀.md", "x/a.md"], [".md", "ab.md"]],
    ["{a,b}.{ts,js}", ["a.ts", "b.js", "x/a.js"], ["c.ts", "a.md"]],
    ["{src,test}/**/*.ts", ["src/a.ts", "test/x/a.ts"], ["lib/a.ts"]],
    ["{a/b,c}", ["a/b", "c"], ["x/c", "a"]],
    ["{a}", ["a", "x/a"], ["{a}"]],
    ["a{,b}", ["a", "ab"], ["b"]],
    ["[a-c]x", ["ax", "cx"], ["dx", "x"]],
    ["[!a-c]x", ["dx", "😀x"], ["ax", "x"]],
    ["[^a]", ["b"], ["a"]],
    ["[]a]", ["]", "a"], ["b"]],
    ["[a\\]b]", ["]", "a", "b"], ["\\"]],
    ["[[:digit:]x]", ["1", "x"], [":", "d"]],
    ["[{,}]", ["{", ",", "}"], ["[{,}]"]],
    ["\\[id\\]", ["[id]", "app/[id]"], ["i"]],
    ["\\{a,b\\}", ["{a,b}"], ["a", "b"]],
    ["a\\*", ["a*"], ["ab"]],
    ["$&.(x)+|^", ["$&.(x)+|^"], ["x"]],
    ["A", ["A"], ["a"]],
    ["a\nb", ["a\nb"], ["a"]],
    ["**\\/a", ["a", "b/a"], ["ab"]],
    ["*/*.ts", ["C:/a.ts"], ["C:.ts"]],
    ["[/a]x", ["ax"], ["x", "/x"]],
    ["[!/]x", ["ax"], ["x"]],
    ["[/]", [], ["a", "/"]],
    ["[+-/]", ["+", ","], ["a"]],
    ["[b-a]", ["b"], ["a"]],
    ["[a-[:x:]]", [":]"], ["x", "a"]],
    ["[[:space:]]", [" ", "\t"], ["\v", "s"]],
    ["a,b", ["a,b"], ["a", "b"]],
    ["a}", ["a}"], ["a"]],
    ["\\{a,b", ["{a,b"], ["a"]]
  ] as const) {
    it(JSON.stringify(pattern), () => {
      const { matches } = compile(pattern)
      for (const path of yes) assert.isTrue(matches(path), path)
      for (const path of no) assert.isFalse(matches(path), path)
    })
  }

  it("match the same as trying everything", () => {
    let matched = 0
    fc.assert(
      fc.property(pattern, fc.array(path, { minLength: 1, maxLength: 8 }), (pattern, paths) => {
        fc.pre(!expand(pattern).some((alternative) => alternative.split("/").includes("..")))
        const { base, matches } = compile(pattern)
        for (const path of paths) {
          assert.strictEqual(matches(path), naive(pattern, path), path)
          if (!matches(path)) continue
          matched++
          assert.isTrue(base === "" || path.startsWith(`${base}/`), `${path} is in ${base}`)
        }
      }),
      { numRuns: scaled(5_000) }
    )
    assert.isAbove(matched, scaled(1_000))
  })

  it("match the same as effect/Glob alone", () => {
    let matched = 0
    fc.assert(
      fc.property(pattern, fc.array(path, { minLength: 1, maxLength: 8 }), (pattern, paths) => {
        // It means these otherwise: an alternative from the root on, `.` and `..`, and a `/` or `**` at the end.
        const anchored = pattern.replace(/^\/+/, "")
        fc.pre(expand(anchored).every((one) => !/^\/|(?:^|\/)(?:\*\*|\.{1,2})?$|(?:^|\/)\.{1,2}\//.test(one)))
        const glob = Glob.make(pattern.includes("/") ? anchored : `**/${pattern}`, { dot: true })
        const { matches } = compile(pattern)
        for (const path of paths) {
          assert.strictEqual(matches(path), Glob.match(glob, path), path)
          if (matches(path)) matched++
        }
      }),
      { numRuns: scaled(2_000) }
    )
    assert.isAbove(matched, scaled(300))
  })

  it("cost no more than the product of both lengths", () => {
    const texts: Readonly<Record<string, (size: number) => string>> = {
      stars: (size) => `${"*a".repeat(size / 2)}*b`,
      globstars: (size) => `${"**/a*/".repeat(size / 6)}*`,
      classes: (size) => `${"[a-b]*".repeat(size / 6)}*`,
      "braces in braces": (size) => `**/${"{a,".repeat(18)}${"*a".repeat(size / 2)}*${"}".repeat(18)}*`,
      alternatives: (size) => `*{${Array.from({ length: size / 6 }, (_, index) => `${index}*`).join(",")}}`
    }
    for (const [name, make] of Object.entries(texts)) {
      const { matches } = compile(make(900))
      const slow = growth((size) => {
        const path = `${"a/".repeat(size / 2)}c`
        return () => matches(path)
      }, 8_192)
      assert.isUndefined(slow, name)
    }
  })

  it("the base is the longest folder that all are in", () => {
    for (const [pattern, base] of [
      ["src/lib/**/*.ts", "src/lib"],
      ["src/a.ts", "src"],
      ["src/{a,b}/c", "src"],
      ["{src/a,src/b}/*", "src"],
      ["src\\*/a/*", "src*/a"],
      ["src*/a/*", ""],
      ["*.ts", ""],
      ["a", ""]
    ] as const) {
      assert.strictEqual(compile(pattern).base, base, pattern)
    }
  })

  it("refuses a meaningless pattern with a better one", () => {
    assert.match(problem(""), /empty/)
    assert.match(problem("[a"), /\[ has no \]/)
    assert.match(problem("[[:nothing:]]"), /class/)
    assert.match(problem("{a,b"), /\{ has no \}/)
    assert.match(problem("a\\"), /ends with a \\/)
    assert.match(problem("../*.ts"), /'\.\.'/)
    assert.match(problem("a/{b,..}/c"), /'\.\.'/)
    assert.match(problem("a".repeat(2_000)), /longer than 1024/)
    assert.match(problem("{a,b}".repeat(10)), /more than 1000 alternatives/)
    assert.match(problem(`${"{a,b,c,d,e,f,g,h,i,j}".repeat(3)}${"*a".repeat(100)}`), /more than 65536 characters/)
    assert.match(problem("{".repeat(500)), /nested/)
    assert.match(problem(`${"{a,".repeat(250)}b${"}".repeat(250)}`), /nested/)
  })

  it("hostile ones are matched in bounded time", () => {
    const names = `${"a".repeat(250)}/`.repeat(16)
    for (const pattern of [
      `${"*a".repeat(500)}b`,
      `${"**/a*".repeat(150)}/b`,
      `${"*a".repeat(50)}${"{a,b}".repeat(9)}`,
      `${"[a-b]*".repeat(150)}c`,
      `/${"**/*/".repeat(200)}b`
    ]) {
      assert.isFalse(compile(pattern).matches(`${names}c`))
    }
  })
})
