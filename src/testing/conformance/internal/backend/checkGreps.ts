/** Checks grep in all modes. No pattern may hang it. */
import * as Effect from "effect/Effect"
import type { GrepQuery, GrepResult, Service } from "../../../../core/Backend.ts"
import { fails, assert, expect, assertWithin } from "../assert.ts"
import { bytesOf, runWithoutDefect, putFiles, readText, rule, type Rules } from "./common.ts"
import { byteLength } from "./paths.ts"

/** Renders a result as `path: line text` lines. */
const flat = ({ files }: GrepResult): ReadonlyArray<string> =>
  files.flatMap(({ matches, path }) => matches.map(({ line, text }) => `${path}:${line}:${text}`))

const counts = ({ files }: GrepResult): ReadonlyArray<readonly [string, number, number]> =>
  files.map(({ count, matches, path }) => [path, count, matches.length])

const finds = (
  files: Readonly<Record<string, string | Uint8Array>>,
  cases: ReadonlyArray<readonly [GrepQuery, ReadonlyArray<string>]>
) =>
  Effect.fnUntraced(function* (backend: Service) {
    yield* putFiles(backend, files)
    for (const [index, [query, expected]] of cases.entries()) {
      const result = yield* backend.grep({ mode: "content", ...query })
      yield* expect(flat(result), expected, `grep of ${JSON.stringify(query)}`)
      yield* assert(result.truncated === undefined, "it is all there is", result.truncated)
      if (index % 3 > 0) continue
      yield* expect(
        counts(yield* backend.grep({ ...query, mode: "count" })),
        result.files.map(({ count, path }) => [path, count, 0]),
        `how many ${JSON.stringify(query)}`
      )
      yield* expect(
        counts(yield* backend.grep({ ...query, mode: "files" })),
        result.files.map(({ path }) => [path, 1, 0]),
        `which files ${JSON.stringify(query)}`
      )
    }
  })

const literals = finds(
  {
    "/l": "a.c\nabc\n$& (x) [y]* \\d+?\n-e\n--\nfoo|bar\n  indented\n'q' \"d\"\né\u{1F600}\nABC\n%s ^a$\n",
    "/-r": "a.c\n"
  },
  [
    [{ pattern: "a.c" }, ["/-r:1:a.c", "/l:1:a.c"]],
    [{ pattern: "$& (x) [y]* \\d+?" }, ["/l:3:$& (x) [y]* \\d+?"]],
    [{ pattern: "\\d" }, ["/l:3:$& (x) [y]* \\d+?"]],
    [{ pattern: "-e" }, ["/l:4:-e"]],
    [{ pattern: "--" }, ["/l:5:--"]],
    [{ pattern: "foo|bar" }, ["/l:6:foo|bar"]],
    [{ pattern: "  in" }, ["/l:7:  indented"]],
    [{ pattern: "'q' \"d\"" }, ["/l:8:'q' \"d\""]],
    [{ pattern: "é\u{1F600}" }, ["/l:9:é\u{1F600}"]],
    [{ pattern: "abc" }, ["/l:2:abc"]],
    [{ pattern: "abc", ignoreCase: true }, ["/l:2:abc", "/l:10:ABC"]],
    [{ pattern: "A.C", ignoreCase: true }, ["/-r:1:a.c", "/l:1:a.c"]],
    [{ pattern: "É\u{1F600}", ignoreCase: true }, ["/l:9:é\u{1F600}"]],
    [{ pattern: "^a$" }, ["/l:11:%s ^a$"]],
    [{ pattern: "nowhere" }, []],
    [{ pattern: "a.c", path: "/l" }, ["/l:1:a.c"]],
    [{ pattern: "a.c", path: "/-r" }, ["/-r:1:a.c"]]
  ]
)

const expressions = finds({ "/r": "foo bar\nfood\nFOO\n\n12 34\n\u0663 é\n\u{1F600}\nx\ty\nfoo\r\nlast foo" }, [
  [{ pattern: "fo+", regex: true }, ["/r:1:foo bar", "/r:2:food", "/r:9:foo", "/r:10:last foo"]],
  [{ pattern: "^foo$", regex: true }, ["/r:9:foo"]],
  [{ pattern: "foo$", regex: true, ignoreCase: true }, ["/r:3:FOO", "/r:9:foo", "/r:10:last foo"]],
  [{ pattern: "(?i)^foo", regex: true }, ["/r:1:foo bar", "/r:2:food", "/r:3:FOO", "/r:9:foo"]],
  [{ pattern: "\\bfoo\\b", regex: true }, ["/r:1:foo bar", "/r:9:foo", "/r:10:last foo"]],
  [{ pattern: "^$", regex: true }, ["/r:4:"]],
  [{ pattern: "^\\d+ \\d{2}$", regex: true }, ["/r:5:12 34"]],
  [{ pattern: "^\\d", regex: true }, ["/r:5:12 34"]],
  [{ pattern: "^.$", regex: true }, ["/r:7:\u{1F600}"]],
  [{ pattern: "x\\sy", regex: true }, ["/r:8:x\ty"]],
  [{ pattern: "[[:digit:]]", regex: true }, ["/r:5:12 34"]],
  [{ pattern: "^(foo|12)(d| )", regex: true }, ["/r:1:foo bar", "/r:2:food", "/r:5:12 34"]],
  [{ pattern: "\\x{1F600}", regex: true }, ["/r:7:\u{1F600}"]],
  [{ pattern: "d[^x]F", regex: true }, []],
  [{ pattern: "food\\s+FOO", regex: true }, []]
])

const contexts = Effect.fnUntraced(function* (backend: Service) {
  yield* putFiles(backend, { "/c": "1\n2 hit\n3 hit\n4\n5\n6 hit\r\n7" })
  const around = (context: number) =>
    Effect.map(backend.grep({ pattern: "hit", mode: "content", context }), ({ files }) =>
      files.flatMap(({ matches }) => matches.map(({ after, before, line }) => [line, before, after]))
    )
  yield* expect(yield* around(0), [[2, [], []], [3, [], []], [6, [], []]], "no context") // prettier-ignore
  yield* expect(
    yield* around(1),
    [
      [2, ["1"], []],
      [3, [], ["4"]],
      [6, ["5"], ["7"]]
    ],
    "one line around each match, each line once"
  )
  yield* expect(
    yield* around(3),
    [
      [2, ["1"], []],
      [3, [], ["4", "5"]],
      [6, [], ["7"]]
    ],
    "three lines around each match, each line once"
  )
  for (const context of [-1, 1.5, Number.NaN, 1e9, Infinity])
    yield* runWithoutDefect(backend.grep({ pattern: "hit", context }), `${context} lines of context`)
})

const limits = Effect.fnUntraced(function* (backend: Service) {
  yield* putFiles(backend, { "/a": "x\nx\nx\n", "/b": "x\n", "/c/d": "x\nx\n", "/e": "y\n" })
  const grep = (query: Partial<GrepQuery>) =>
    Effect.map(backend.grep({ pattern: "x", mode: "content", ...query }), (result) => [
      flat(result).map((line) => line.slice(0, -2)),
      result.truncated ?? "all"
    ])
  yield* expect(yield* grep({ limit: 6 }), [["/a:1", "/a:2", "/a:3", "/b:1", "/c/d:1", "/c/d:2"], "all"], "as many as there are")
  yield* expect(yield* grep({ limit: 5 }), [["/a:1", "/a:2", "/a:3", "/b:1", "/c/d:1"], "limit"], "one less than there are")
  yield* expect(yield* grep({ limit: 3 }), [["/a:1", "/a:2", "/a:3"], "limit"], "all of one file")
  yield* expect(yield* grep({ limit: 2 }), [["/a:1", "/a:2"], "limit"], "less than one file")
  yield* expect(yield* grep({ limit: 3, path: "/a" }), [["/a:1", "/a:2", "/a:3"], "all"], "all there is in a file")
  for (const mode of ["files", "count"] as const) {
    const paths = (limit: number) =>
      Effect.map(backend.grep({ pattern: "x", mode, limit }), ({ files, truncated }) => [
        files.map(({ path }) => path),
        truncated ?? "all"
      ])
    yield* expect(yield* paths(3), [["/a", "/b", "/c/d"], "all"], `${mode}: as many as there are`)
    yield* expect(yield* paths(2), [["/a", "/b"], "limit"], `${mode}: one less`)
    yield* expect(yield* paths(1), [["/a"], "limit"], `${mode}: one`)
  }
  for (const limit of [0, -1, 1.5, Number.NaN, Infinity])
    for (const mode of ["files", "count", "content"] as const)
      yield* runWithoutDefect(backend.grep({ pattern: "x", mode, limit }), `a limit of ${limit}`)
}) // prettier-ignore

/** Expressions on which a backtracking matcher takes quadratic or exponential time. */
const catastrophes = [
  "(a+)+$",
  "(a|a)*$",
  "(.*a){20}$",
  "(a*)*b",
  "^(([a-z])+.)+[A-Z]([a-z])+$",
  "(x+x+)+y",
  ".*.*.*=.*"
]

/** Checks of grep. */
export const grepRules: Rules<Service> = [
  ["grep finds literal text, whatever it would mean as an expression or an option", literals],
  ["grep finds regular expressions of RE2, line by line", expressions],
  ["grep gives lines around each match", contexts],
  ["grep gives as many as are asked for, the first ones by path, and says if there are more", limits],
  rule("grep gives 1,000 lines unless told otherwise", function* (backend) {
    yield* putFiles(backend, { "/a": "x\n".repeat(999), "/b": "x\n".repeat(2) })
    const result = yield* backend.grep({ pattern: "x", mode: "content" })
    yield* expect([flat(result).length, result.truncated], [1000, "limit"], "the default limit")
    const most = yield* backend.grep({ pattern: "x", mode: "content", limit: 5000 })
    yield* expect([flat(most).length, most.truncated ?? "all"], [1001, "all"], "a limit above the default")
  }),
  rule("grep looks where it is told: in a folder, a file, files that a glob names", function* (backend) {
    yield* putFiles(backend, {
        "/a/x.ts": "hit", "/a/b/y.ts": "hit", "/a/b/z.js": "hit", "/ab/x.ts": "hit", "/x.ts": "hit", "/.h/.x.ts": "hit"
      }) // prettier-ignore
    const paths = (query: Partial<GrepQuery>) =>
      Effect.map(backend.grep({ pattern: "hit", mode: "files", ...query }), ({ files }) =>
        files.map(({ path }) => path)
      )
    yield* expect(yield* paths({ path: "/a" }), ["/a/b/y.ts", "/a/b/z.js", "/a/x.ts"], "in a folder")
    yield* expect(yield* paths({ path: "/a/b/z.js" }), ["/a/b/z.js"], "in a file")
    yield* expect(yield* paths({ glob: "*.ts" }), ["/.h/.x.ts", "/a/b/y.ts", "/a/x.ts", "/ab/x.ts", "/x.ts"], "by name")
    yield* expect(yield* paths({ glob: "a/**/*.ts" }), ["/a/b/y.ts", "/a/x.ts"], "by path")
    yield* expect(yield* paths({ glob: "b/*", path: "/a" }), ["/a/b/y.ts", "/a/b/z.js"], "by path from where it looks")
    yield* expect(yield* paths({ glob: "*.{js,md}" }), ["/a/b/z.js"], "by braces")
    yield* expect(yield* paths({ glob: "!*.ts" }), [], "a glob that begins with ! is a name")
    yield* fails(paths({ path: "/none" }), "grep of nothing", "NotFound")
  }),
  rule("grep counts lines as read does", function* (backend) {
    const text = "one\r\ntwo\nhit 3\n\n\r\nhit 6\r\n"
    yield* putFiles(backend, { "/n": text })
    const result = yield* backend.grep({ pattern: "hit", mode: "content" })
    for (const { line, text: matchText } of result.files.flatMap(({ matches }) => matches))
      yield* expect((yield* readText(backend, "/n", { offset: line, limit: 1 })).text, matchText, `line ${line}`)
    yield* expect(flat(result), ["/n:3:hit 3", "/n:6:hit 6"], "the lines")
  }),
  rule("grep does not look into binary files, whatever they begin with", function* (backend) {
    const wide = new Uint8Array([0xff, 0xfe, ...Array.from("hit", (char) => [char.charCodeAt(0), 0]).flat()])
    const latin = new Uint8Array([...bytesOf("hit caf"), 0xe9])
    yield* putFiles(backend, {
      "/nul": "hit\0",
      "/utf16": wide,
      "/latin": latin,
      "/text": "hit",
      "/bom": "\uFEFFhit"
    })
    const result = yield* backend.grep({ pattern: "hit", mode: "files" })
    yield* expect(
      result.files.map(({ path }) => path),
      ["/bom", "/text"],
      "the texts"
    )
  }),
  rule("grep says what is wrong with an expression", function* (backend) {
    yield* putFiles(backend, { "/x": "aa" })
    for (const pattern of [
      "(",
      "a)",
      "[a",
      "*a",
      "a{2,1}",
      "\\",
      "(?=a)",
      "(?<!a)b",
      "(a)\\1",
      "\\p{Nonsense}",
      "[z-a]"
    ]) {
      const reason = yield* fails(backend.grep({ pattern, regex: true }), `grep of ${pattern}`, "InvalidPattern")
      yield* assert(reason.problem !== "" && reason.pattern === pattern, "it names the pattern and the problem", reason)
    }
    for (const pattern of ["", "\n", "a\na", "a\r"])
      for (const regex of [false, true])
        yield* fails(backend.grep({ pattern, regex }), `grep of ${JSON.stringify(pattern)}`, "InvalidPattern")
    for (const pattern of ["\0", "a\0b"])
      for (const ignoreCase of [false, true])
        yield* expect((yield* backend.grep({ pattern, ignoreCase })).files, [], `grep of ${JSON.stringify(pattern)}`)
    for (const pattern of ["\0", "\ud800", "a".repeat(100_000), "(".repeat(5000), "a{1000}{1000}"])
      for (const regex of [false, true])
        yield* runWithoutDefect(backend.grep({ pattern, regex }), `grep of ${JSON.stringify(pattern.slice(0, 20))}`)
  }),
  rule("grep ends in bounded time, whatever the expression", function* (backend) {
    yield* putFiles(backend, { "/a": `${"a".repeat(30_000)}!\n${"x".repeat(30_000)}\n` })
    for (const pattern of catastrophes)
      yield* assertWithin(
        10_000,
        `grep of ${pattern}`,
        runWithoutDefect(backend.grep({ pattern, regex: true }), `grep of ${pattern}`)
      )
  }),
  rule("grep cuts very long lines around the match", function* (backend) {
    yield* putFiles(backend, { "/long": `${"é".repeat(200_000)}needle${"\u{1F600}".repeat(200_000)}\nnext` })
    const [match] = (yield* backend.grep({ pattern: "needle", mode: "content", context: 1 })).files[0]?.matches ?? []
    yield* assert(match?.text.includes("needle") === true, "the match is in what is shown", match?.text.length)
    yield* assert(byteLength(match?.text ?? "") < 64 * 1024, "it is cut", byteLength(match?.text ?? ""))
    yield* assert(match?.text.isWellFormed() === true, "no character is cut", match?.text.slice(-2))
    const [next] = (yield* backend.grep({ pattern: "next", mode: "content", context: 1 })).files[0]?.matches ?? []
    yield* expect(next?.before.length, 1, "a long line is a line of context")
    yield* assert(byteLength(next?.before[0] ?? "") < 64 * 1024, "it is cut too", byteLength(next?.before[0] ?? ""))
  })
]
