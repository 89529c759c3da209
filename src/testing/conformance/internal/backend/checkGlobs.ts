/** Checks glob: dialect, ignore files, limits. */
import * as Effect from "effect/Effect"
import * as Approval from "../../../../core/Approval.ts"
import type { GlobQuery, Service } from "../../../../core/Backend.ts"
import { fails, assert, expect, assertWithin } from "../assert.ts"
import { runWithoutDefect, putFiles, pathsOf, rule, type Rules } from "./common.ts"

const files = [
  "/.env", "/.github/ci.yml", "/a.ts", "/b.js", "/deep/a/b/c/d.ts", "/src/.hidden.ts", "/src/a.ts", "/src/b.tsx",
  "/src/lib/a.ts", "/src/lib/c.md", "/src2/a.ts", "/new\nline.ts", "/\u{1F600}.md", "/[x].md", "/{y}.md", "/Upper.TS"
] // prettier-ignore

const typescript = [
  "/a.ts", "/deep/a/b/c/d.ts", "/new\nline.ts", "/src/.hidden.ts", "/src/a.ts", "/src/lib/a.ts", "/src2/a.ts"
] // prettier-ignore

/** Patterns with the files that they match. */
const dialect: ReadonlyArray<readonly [query: GlobQuery, expected: ReadonlyArray<string>]> = [
  [{ pattern: "*.ts" }, typescript],
  [{ pattern: "**/*.ts" }, typescript],
  [{ pattern: "/*.ts" }, ["/a.ts", "/new\nline.ts"]],
  [{ pattern: "./*.ts" }, ["/a.ts", "/new\nline.ts"]],
  [{ pattern: "a.ts" }, ["/a.ts", "/src/a.ts", "/src/lib/a.ts", "/src2/a.ts"]],
  [{ pattern: "src/*.ts" }, ["/src/.hidden.ts", "/src/a.ts"]],
  [{ pattern: "src/*" }, ["/src/.hidden.ts", "/src/a.ts", "/src/b.tsx"]],
  [{ pattern: "src/**" }, ["/src/.hidden.ts", "/src/a.ts", "/src/b.tsx", "/src/lib/a.ts", "/src/lib/c.md"]],
  [{ pattern: "src/**/*.md" }, ["/src/lib/c.md"]],
  [{ pattern: "src/**/a.ts" }, ["/src/a.ts", "/src/lib/a.ts"]],
  [{ pattern: "**/lib/*" }, ["/src/lib/a.ts", "/src/lib/c.md"]],
  [{ pattern: "*/*/a.ts" }, ["/src/lib/a.ts"]],
  [{ pattern: "deep/**/d.ts" }, ["/deep/a/b/c/d.ts"]],
  [{ pattern: "deep/**/**/b/**/d.ts" }, ["/deep/a/b/c/d.ts"]],
  [{ pattern: "deep/*/d.ts" }, []],
  [{ pattern: "src**" }, []],
  [{ pattern: "s**c/a.ts" }, ["/src/a.ts"]],
  [{ pattern: "src" }, []],
  [{ pattern: "a.ts/**" }, []],
  [{ pattern: "src/a.ts/**" }, []],
  [{ pattern: "src/" }, ["/src/.hidden.ts", "/src/a.ts", "/src/b.tsx", "/src/lib/a.ts", "/src/lib/c.md"]],
  [{ pattern: "*.{js,md}" }, ["/[x].md", "/b.js", "/src/lib/c.md", "/{y}.md", "/\u{1F600}.md"]],
  [{ pattern: "{src,src2}/a.ts" }, ["/src/a.ts", "/src2/a.ts"]],
  [{ pattern: "src/{*.tsx,lib/*.md}" }, ["/src/b.tsx", "/src/lib/c.md"]],
  [{ pattern: "{a,{b,c}}.{ts,{js,md}}" }, ["/a.ts", "/b.js", "/src/a.ts", "/src/lib/a.ts", "/src/lib/c.md", "/src2/a.ts"]],
  [{ pattern: "src{,2}/a.ts" }, ["/src/a.ts", "/src2/a.ts"]],
  [{ pattern: "/?.ts" }, ["/a.ts"]],
  [{ pattern: "/?.md" }, ["/\u{1F600}.md"]],
  [{ pattern: "/[a-b].*" }, ["/a.ts", "/b.js"]],
  [{ pattern: "/[!a].??" }, ["/b.js", "/\u{1F600}.md"]],
  [{ pattern: "/[ab].ts" }, ["/a.ts"]],
  [{ pattern: "[[]x].md" }, ["/[x].md"]],
  [{ pattern: "/.*" }, ["/.env"]],
  [{ pattern: ".*/*" }, ["/.github/ci.yml"]],
  [{ pattern: "*.ts", path: "/src" }, ["/src/.hidden.ts", "/src/a.ts", "/src/lib/a.ts"]],
  [{ pattern: "/*.ts", path: "/src" }, ["/src/.hidden.ts", "/src/a.ts"]],
  [{ pattern: "lib/*", path: "/src" }, ["/src/lib/a.ts", "/src/lib/c.md"]],
  [{ pattern: "src/*", path: "/src" }, []],
  [{ pattern: "A.TS" }, []],
  [{ pattern: "*.TS" }, ["/Upper.TS"]],
  [{ pattern: "nothing" }, []],
  [{ pattern: "(a|b).ts" }, []],
  [{ pattern: "+(a).ts" }, []],
  [{ pattern: "a.t." }, []],
  [{ pattern: "^a.ts$" }, []]
] // prettier-ignore

const ignoring = {
  "/.gitignore":
    "# a comment\n\n*.log\n!keep.log\nbuild/\n/only-root.txt\ndocs/*.tmp\n**/cache/**\n\\#hash\ntrailing   \nnested/deep/\n",
  "/a.log": "hit", "/keep.log": "hit", "/src/b.log": "hit", "/src/keep.log": "hit", "/build/out": "hit",
  "/src/build/out": "hit", "/src/build.txt": "hit", "/only-root.txt": "hit", "/src/only-root.txt": "hit",
  "/docs/x.tmp": "hit", "/docs/in/x.tmp": "hit", "/x/cache/y/z": "hit", "/#hash": "hit", "/trailing": "hit",
  "/nested/deep/x": "hit", "/other/nested/deep/x": "hit", "/build2": "hit", "/.dot": "hit",
  "/sub/.gitignore": "*.md\n!*.log\n/here\n", "/sub/x.md": "hit", "/sub/y.log": "hit", "/sub/here": "hit",
  "/sub/in/here": "hit", "/sub/in/build": "hit", "/x.md": "hit", "/.git/config": "hit", "/sub/.git/HEAD": "hit", "/.ignore": "src\n",
  "/.rgignore": "src\n", "/.git/info/exclude": "src\n", "/.gitattributes": "hit"
} // prettier-ignore

const notIgnored = [
  "/.dot", "/.gitattributes", "/build2", "/docs/in/x.tmp", "/keep.log", "/other/nested/deep/x", "/src/build.txt", "/src/keep.log",
  "/src/only-root.txt", "/sub/in/build", "/sub/in/here", "/sub/y.log", "/x.md"
] // prettier-ignore

const ignores = Effect.fnUntraced(function* (backend: Service) {
  // Backends with a real folder ask before the files of a repository are written.
  yield* Effect.provideService(putFiles(backend, ignoring), Approval.Approvals, {
    decide: (request) => Effect.succeed(Approval.approve(request))
  })
  const grepped = (path: string, ignored?: boolean) =>
    Effect.map(backend.grep({ pattern: "hit", mode: "files", path, ignored }), (result) =>
      result.files.map((file) => file.path)
    )
  yield* expect(yield* grepped("/"), notIgnored, "grep leaves out what ignore files name")
  const globbed = pathsOf(yield* backend.glob({ pattern: "**" }))
  yield* expect(
    globbed.filter((path) => !path.endsWith("ignore")),
    notIgnored,
    "glob leaves out what ignore files name"
  )
  yield* expect(
    yield* grepped("/sub"),
    notIgnored.filter((path) => path.startsWith("/sub/")),
    "the rules of folders above count too"
  )
  yield* expect(
    yield* grepped("/src"),
    notIgnored.filter((path) => path.startsWith("/src/")),
    "in a folder with none of its own"
  )
  const everything = Object.entries(ignoring).flatMap(([path, text]) => (text === "hit" ? [path] : []))
  yield* expect((yield* grepped("/", true)).toSorted(), everything.toSorted(), "with `ignored` grep looks everywhere")
  yield* expect(
    pathsOf(yield* backend.glob({ pattern: "**", ignored: true })).toSorted(),
    Object.keys(ignoring).toSorted(),
    "with `ignored` glob looks everywhere"
  )
  yield* backend.write("/.gitignore", "*\n")
  yield* expect(yield* grepped("/"), [], "a change of an ignore file counts at once")
  yield* backend.delete("/.gitignore")
  yield* expect((yield* grepped("/")).includes("/a.log"), true, "and so does its end")
})

/** Checks of glob and of ignore files. */
export const globRules: Rules<Service> = [
  rule("glob finds what the dialect says", function* (backend) {
    yield* putFiles(backend, Object.fromEntries(files.map((path) => [path, "x"])))
    for (const [index, [query, expected]] of dialect.entries()) {
      const listing = yield* backend.glob(query)
      yield* expect(pathsOf(listing).toSorted(), expected.toSorted(), `glob of ${JSON.stringify(query)}`)
      yield* assert(listing.truncated === undefined, "it is all there is", listing.truncated)
      yield* assert(
        listing.entries.every(({ kind }) => kind === "file"),
        "they are files",
        listing.entries
      )
      if (index % 3 > 0) continue
      const grepped = yield* backend.grep({
        pattern: "x",
        mode: "files",
        glob: query.pattern,
        path: query.path
      })
      yield* expect(
        grepped.files.map(({ path }) => path).toSorted(),
        expected.toSorted(),
        `grep with ${JSON.stringify(query)}`
      )
    }
  }),
  rule("glob gives as many as are asked for, the first ones by path, and says if there are more", function* (backend) {
    yield* putFiles(backend, { "/c": "", "/a/z": "", "/b": "" })
    const glob = (limit: number) =>
      Effect.map(backend.glob({ pattern: "*", limit }), ({ entries, truncated }) => [
        entries.map(({ path }) => path),
        truncated ?? "all"
      ])
    yield* expect(yield* glob(3), [["/a/z", "/b", "/c"], "all"], "as many as there are")
    yield* expect(yield* glob(2), [["/a/z", "/b"], "limit"], "one less")
    yield* expect(yield* glob(1), [["/a/z"], "limit"], "one")
    for (const limit of [0, -1, 1.5, Number.NaN, Infinity])
      yield* runWithoutDefect(backend.glob({ pattern: "*", limit }), `a limit of ${limit}`)
  }),
  rule("glob fails for what can't be meant, and never leaves the root", function* (backend) {
    yield* putFiles(backend, { "/a/b": "x" })
    yield* fails(backend.glob({ pattern: "*", path: "/none" }), "glob in nothing", "NotFound")
    for (const pattern of ["", "a{1..3}.txt", "{a..c}", "a/{01..10..2}/b"])
      yield* fails(backend.glob({ pattern }), `glob of ${JSON.stringify(pattern)}`, "InvalidPattern")
    const patterns = [
        "../*", "../../**", "a/../../*", "/../*", "~/*", "{..,a}/*", "**/..", "", "/", "[", "[]", "[!]", "[z-a]", "{", "{a",
        "}", "a}", "{}", "{,}", "\\", "a\\", "\\\\", "\0", "\n", "\ud800", "C:/*", "***", "\0/", "a\0/*", "\ud800/*", "\\/*", `${"x".repeat(300)}/*`, "~/**/*", "/etc/*", "a//b", "[a/b]", "[[:alpha:]]", "{a,b",
        "@(a|b)", "!a", "-n", "$(id)", "'", '"'
      ] // prettier-ignore
    for (const pattern of patterns) {
      const label = `glob of ${JSON.stringify(pattern)}`
      const result = yield* runWithoutDefect(backend.glob({ pattern }), label)
      if (result._tag === "Success") {
        const strangers = result.success.entries.filter(({ path }) => path !== "/a/b")
        yield* expect(strangers, [], `${label} finds nothing outside`)
      } else {
        const reason = result.failure.reason._tag
        yield* assert(reason === "InvalidPattern" || reason === "OutsideRoot", `${label} has a reason`, reason)
      }
    }
  }),
  rule("glob ends in bounded time, whatever the pattern", function* (backend) {
    yield* putFiles(backend, { [`/${"a".repeat(250)}`]: "x", [`/${"a/".repeat(100)}a`]: "x" })
    const patterns = [
        `${"*a".repeat(40)}b`, `${"**/a/".repeat(30)}b`, "{a,b}".repeat(30), "{,a}".repeat(30), "{".repeat(5000),
        `${"{a,".repeat(500)}${"}".repeat(500)}`, "[".repeat(5000), "?".repeat(10_000), "*".repeat(10_000), `${"*?".repeat(60)}b`,
        "**/".repeat(2000), "a".repeat(100_000), `{${"a,".repeat(50_000)}}`
      ] // prettier-ignore
    for (const pattern of patterns) {
      const label = `glob of ${pattern.slice(0, 20)}…`
      yield* assertWithin(10_000, label, runWithoutDefect(backend.glob({ pattern }), label))
      yield* assertWithin(
        10_000,
        label,
        runWithoutDefect(backend.grep({ pattern: "y", glob: pattern }), `grep with ${label}`)
      )
    }
  }),
  ["ignore files are honoured from the root down, unless told otherwise", ignores]
]
