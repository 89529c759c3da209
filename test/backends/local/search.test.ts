/** Searches with ripgrep find the same as our own search, for any files, names and patterns. */
import * as NodeFs from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Result } from "effect"
import type { Backend } from "effect-deepagents"
import { CustomBackend } from "effect-deepagents/backends"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import * as fc from "fast-check"
import * as Folder from "../../../src/backends/internal/local/folder.ts"
import * as Jail from "../../../src/backends/internal/local/jail.ts"
import { translate } from "../../../src/backends/internal/local/regex.ts"
import { argumentsFor } from "../../../src/backends/internal/local/ripgrep.ts"
import { isFull, scaled } from "../../scale.ts"
import { awaitGone, isAlive, pidIn } from "../processes.ts"
import { runNow, plant, rgPath, temporary } from "./temporary.ts"

const both = Effect.gen(function* () {
  const { root } = yield* temporary
  return {
    root,
    quick: yield* FilesystemBackend.make({ root, ripgrep: rgPath }),
    plain: yield* FilesystemBackend.make({ root, ripgrep: false })
  }
})

type Files = { readonly [path: string]: Uint8Array }

/** Pieces that lines are made of: few letters, so that patterns meet them, and all that is odd. */
const piece = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom("a", "b", "ab", "A", "1", "_", " ", "-", ".", "foo", "Foo") },
  { weight: 4, arbitrary: fc.constantFrom("\n", "\n", "\r\n", "\r", "\t") },
  { weight: 3, arbitrary: fc.constantFrom("ä", "Ä", "ß", "k", "K", "\u212A", "s", "\u017F", "é", "e\u0301", "я", "Я") },
  { weight: 1, arbitrary: fc.constantFrom("日本", "😀", "\u00A0", "\v", "\f", "\uFEFF", "\uFFFD", "\u0085", "\u2028") }
)

const invalid = fc.constantFrom([0xff], [0xe2, 0x82], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf0, 0x9f], [0])

/** Text; sometimes with invalid bytes, at the beginning or too late for the file to be called binary. */
const content = fc
  .record({
    text: fc.array(piece, { maxLength: 40 }),
    mark: fc.constantFrom("", "", "", "\uFEFF"),
    long: fc.constantFrom(0, 0, 0, 8200),
    odd: fc.option(invalid, { freq: 4 }),
    more: fc.array(piece, { maxLength: 10 })
  })
  .map(({ long, mark, more, odd, text }) =>
    Buffer.concat([
      Buffer.from(`${mark}${text.join("")}${"x".repeat(long)}${more.join("")}`),
      Uint8Array.from(odd ?? []),
      Buffer.from(more.join(""))
    ])
  )

const name = fc.constantFrom(
  "a",
  "b",
  "c.ts",
  "d.log",
  ".dot",
  "new\nline",
  "x y",
  "-e",
  "{a}",
  "*",
  "é",
  "node_modules",
  "ab"
)

const ignoreLine = fc.constantFrom(
  "*.log",
  "/a",
  "b/",
  "!c.ts",
  "node_modules",
  "a/**",
  "**/ab",
  "x\\ y",
  "#c",
  "[",
  "*/b",
  "!a/",
  "/*",
  "\\{a}"
)

/** A file in a tree whose folders never have the name of a file. */
const file = fc
  .tuple(fc.array(name, { maxLength: 3 }), name, content)
  .map(([folders, base, bytes]) => [[...folders.map((folder) => `${folder}_`), base].join("/"), bytes] as const)

const ignoreFile = fc
  .tuple(fc.oneof(fc.constant([]), fc.array(name, { maxLength: 2 })), fc.array(ignoreLine, { maxLength: 3 }))
  .map(
    ([folders, lines]) =>
      [[...folders.map((folder) => `${folder}_`), ".gitignore"].join("/"), Buffer.from(lines.join("\n"))] as const
  )

const tree: fc.Arbitrary<Files> = fc
  .tuple(fc.array(file, { minLength: 1, maxLength: 8 }), fc.array(ignoreFile, { maxLength: 2 }))
  .map(([files, ignores]) => Object.fromEntries([...files, ...ignores]))

const atom = fc.constantFrom(
  "a",
  "b",
  "A",
  "ab",
  "foo",
  ".",
  "\\d",
  "\\w",
  "\\s",
  "\\W",
  "\\D",
  "\\S",
  "[ab]",
  "[^a]",
  "[a-c]",
  "[^\\w]",
  "[[:alpha:]]",
  "[[:^alpha:]]",
  "[[:constructor:]]",
  "[\\d_-]",
  "[]a]",
  "[a&&b]",
  "[a~~b]",
  "^",
  "$",
  "\\b",
  "\\B",
  "\\A",
  "\\z",
  "ä",
  "k",
  "s",
  "ß",
  "\\x41",
  "\\x{e4}",
  "\\141",
  "\\.",
  "\\Qa.b\\E",
  "{",
  "a{,2}",
  "я",
  "\\t",
  "日",
  "\uFFFD",
  "\\pL",
  "[\\x00-\\x{10FFFF}]",
  "-",
  "_"
)

const regex: fc.Arbitrary<string> = fc.letrec<{ readonly regex: string; readonly part: string }>((tie) => ({
  part: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    atom,
    fc
      .tuple(atom, fc.constantFrom("*", "+", "?", "{2}", "{1,2}", "{1,}", "*?", "+?"))
      .map(([what, times]) => what + times),
    fc
      .tuple(fc.constantFrom("(", "(?:", "(?i:", "(?P<n>", "(?i)(", "(?s:", "(?U:", "(?-i:", "(?m:"), tie("regex"))
      .map(([open, inner]) => `${open}${inner})`),
    fc.tuple(tie("part"), tie("part")).map(([left, right]) => `${left}|${right}`)
  ),
  regex: fc.array(tie("part"), { minLength: 1, maxLength: 4 }).map((parts) => parts.join(""))
})).regex

const literal = fc.array(piece, { minLength: 1, maxLength: 3 }).map((pieces) => pieces.join(""))

const glob = fc.constantFrom(
  "*",
  "**",
  "*.ts",
  "*.{ts,log}",
  "a_/**",
  "**/a",
  "[!a]*",
  "?",
  "x y",
  "new*",
  "/a",
  "**/*_/*",
  ".*",
  "\\*"
)

const query: fc.Arbitrary<Backend.GrepQuery> = fc
  .record(
    {
      what: fc.oneof(
        literal.map((pattern) => ({ pattern })),
        regex.map((pattern) => ({ pattern, regex: true }))
      ),
      ignoreCase: fc.boolean(),
      path: fc.constantFrom("/", "/", "/", "/", "/a_", "/a_/b_", "/c.ts"),
      glob: fc.oneof(fc.constantFrom("**", "*"), glob),
      mode: fc.constantFrom("content", "count", "files"),
      context: fc.nat(2),
      limit: fc.oneof(fc.constant(1000), fc.nat(5)),
      ignored: fc.boolean()
    },
    { requiredKeys: ["what"] }
  )
  .map(({ what, ...rest }) => ({ ...what, ...rest }))

const outcome = <A>(effect: Effect.Effect<A, { readonly reason: unknown }>) =>
  Effect.map(Effect.result(effect), (result) => (Result.isSuccess(result) ? result.success : result.failure.reason))

describe("a folder that is very deep", () => {
  for (const [name, ripgrep] of [
    ["with ripgrep", rgPath],
    ["without", false]
  ] as const)
    it.live(
      `is searched whole, ${name}`,
      () =>
        Effect.gen(function* () {
          const { root } = yield* temporary
          const backend = yield* FilesystemBackend.make({ root, ripgrep })
          const path = `/${"d/".repeat(1_500)}file.txt`
          yield* backend.write(path, "needle")
          const found = yield* backend.grep({ pattern: "needle", mode: "files" })
          assert.deepStrictEqual(found, { files: [{ path, count: 1, matches: [] }] })
        }),
      60_000
    )
})

describe("grep", () => {
  it.live(
    "gives the same with ripgrep and without: any tree, any pattern, any glob, any mode",
    () =>
      Effect.gen(function* () {
        const { plain, quick, root } = yield* both
        const ran = { total: 0, found: 0, byRipgrep: 0 }
        yield* Effect.promise(() =>
          fc.assert(
            fc.asyncProperty(tree, fc.array(query, { minLength: 4, maxLength: 8 }), (files, queries) =>
              Effect.runPromise(
                Effect.gen(function* () {
                  yield* runNow(() => {
                    NodeFs.rmSync(root, { recursive: true })
                    NodeFs.mkdirSync(root)
                  })
                  yield* plant(root, files)
                  yield* runNow(() => NodeFs.symlinkSync("..", `${root}/link`))
                  for (const asked of queries) {
                    const [left, right] = [yield* outcome(quick.grep(asked)), yield* outcome(plain.grep(asked))]
                    assert.deepStrictEqual(left, right, JSON.stringify(asked))
                    ran.total++
                    if (argumentsFor(asked) !== undefined) ran.byRipgrep++
                    if (typeof right === "object" && right !== null && "files" in right) {
                      if (Array.isArray(right.files) && right.files.length > 0) ran.found++
                    }
                  }
                })
              )
            ),
            { numRuns: Number(process.env["RUNS"] ?? (isFull ? 60 : 20)) }
          )
        )
        // It says something only if most of the queries go to ripgrep, and many find something: about one in seven.
        assert.isAbove(ran.byRipgrep, ran.total / 2)
        assert.isAbove(ran.found, ran.total / 30)
      }),
    120_000
  )

  const far = "x".repeat(8200)
  const bytes = (...parts: ReadonlyArray<string | ReadonlyArray<number>>) =>
    Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : Uint8Array.from(part))))
  const meetings: ReadonlyArray<readonly [what: string, pattern: string, content: Uint8Array, ignoreCase?: boolean]> = [
    ["a line that begins behind a lone CR", "^b", bytes("a\rb")],
    ["a line that ends with a lone CR", "a$", bytes("a\rb")],
    ["a line that ends with CRLF", "a$", bytes("a\r\nb")],
    ["a line behind a byte order mark", "^a", bytes("\uFEFFa")],
    ["a byte that is no text, for a dot", "q.z", bytes(far, "q", [0xff], "z")],
    ["three bytes that are one half of a character", "q.z", bytes(far, "q", [0xf0, 0x9f, 0x98], "z")],
    ["the same for a class", "q[^a]z", bytes(far, "q", [0xe2, 0x82], "z")],
    ["the same for what is no word", "q\\Wz", bytes(far, "q", [0xff], "z")],
    ["the same, by its own name", "q\\x{FFFD}z", bytes(far, "q", [0xff], "z")],
    ["NUL, for a dot", "q.z", bytes(far, "q\0z")],
    ["NUL, by its name", "q\\x00z", bytes(far, "q\0z")],
    ["a word beside a letter that is not of ASCII", "\\ba", bytes("éa")],
    ["no border beside one", "é\\B", bytes("éé")],
    ["a form feed, for a space", "a\\sb", bytes("a\fb")],
    ["the beginning of a text, for each line", "\\Aa", bytes("x\na")],
    ["the end of a text, for each line", "a\\z", bytes("a\nx")],
    ["braces that say nothing", "a{,2}", bytes("a{,2}")],
    ["a class with operators of others", "[a&&b]", bytes("&")],
    ["a class with a bracket", "[[a]", bytes("[")],
    ["a Kelvin sign, for a k", "k", bytes("\u212A"), true],
    ["a long s", "[s]", bytes("\u017F"), true],
    ["letters of newer scripts", "\u{10400}", bytes("\u{10428}"), true],
    ["a quoted text", "\\Qa.b*\\E+", bytes("xa.b**")],
    ["an octal number", "\\141", bytes("a")]
  ]
  for (const [what, pattern, content, ignoreCase = false] of meetings) {
    it.live(`finds with ripgrep as without: ${what}`, () =>
      Effect.gen(function* () {
        const { plain, quick, root } = yield* both
        yield* plant(root, { file: content, other: "nothing" })
        const asked = { pattern, regex: true, ignoreCase, mode: "count" as const }
        const found = yield* plain.grep(asked)
        assert.deepStrictEqual(
          found.files.map(({ path }) => path),
          ["/file"]
        )
        assert.deepStrictEqual(yield* quick.grep(asked), found)
      })
    )
  }

  it.live("leaves out ignored files and folders and their children, and takes in re-included ones", () =>
    Effect.gen(function* () {
      const { plain, quick, root } = yield* both
      yield* plant(root, {
        ".gitignore": "*.log\nout/\n/top.txt\n",
        "a.log": "x",
        "top.txt": "x",
        "b/top.txt": "x",
        "b/.gitignore": "!kept.log\n",
        "b/kept.log": "x",
        "b/c/lost.log": "x",
        "b/out/file": "x",
        "out/file": "x",
        ".git/file": "x"
      })
      for (const backend of [quick, plain]) {
        const paths = (query: Partial<Backend.GrepQuery>) =>
          Effect.map(backend.grep({ pattern: "x", mode: "files", ...query }), ({ files }) =>
            files.map(({ path }) => path)
          )
        const seen = ["/.gitignore", "/b/kept.log", "/b/top.txt"]
        assert.deepStrictEqual(yield* paths({}), seen)
        assert.deepStrictEqual(yield* paths({ path: "/b" }), seen.slice(1))
        assert.deepStrictEqual(yield* paths({ path: "/out" }), [])
        assert.strictEqual((yield* paths({ ignored: true })).length, 9)
      }
    })
  )

  it.live("takes neither a pattern nor a name for an option", () =>
    Effect.gen(function* () {
      const { plain, quick, root } = yield* both
      yield* plant(root, { "--files": "-e --pre=touch", "-v": "--", "a.txt": "x" })
      for (const pattern of ["-e", "--pre=touch", "--", "-", "--files"]) {
        for (const regex of [false, true]) {
          const found = yield* quick.grep({ pattern, regex })
          assert.deepStrictEqual(found, yield* plain.grep({ pattern, regex }))
          assert.isTrue(found.files.length > 0 || pattern === "--files")
        }
      }
    })
  )

  it.live("heeds no configuration of ripgrep, nor the environment's", () =>
    Effect.gen(function* () {
      const { outside, root } = yield* temporary
      yield* plant(root, { "a.txt": "needle", ".rgignore": "a.txt", ".ignore": "a.txt", ".git/info/exclude": "a.txt" })
      yield* plant(outside, { config: "--invert-match\n" })
      const backend = yield* FilesystemBackend.make({ root, ripgrep: rgPath })
      const { files } = yield* Effect.acquireUseRelease(
        runNow(() => void (process.env["RIPGREP_CONFIG_PATH"] = `${outside}/config`)),
        () => backend.grep({ pattern: "needle", mode: "files" }),
        () => runNow(() => void delete process.env["RIPGREP_CONFIG_PATH"])
      )
      assert.deepStrictEqual(
        files.map(({ path }) => path),
        ["/a.txt"]
      )
    })
  )

  it.live("goes on by itself if ripgrep fails, hangs up or talks nonsense", () =>
    Effect.gen(function* () {
      const { outside, root } = yield* temporary
      yield* plant(root, { "a.txt": "needle", "b.txt": "hay" })
      const programs = {
        complaining: "echo 'rg: unrecognized flag' >&2; exit 2",
        dying: "kill -9 $$",
        nonsense: "printf '../../outside/secret.txt\\0/etc/passwd\\0./a.txt\\0./none\\0./b.txt\\0'; exit 0"
      }
      for (const [title, program] of Object.entries(programs)) {
        yield* plant(outside, { [title]: `#!/bin/sh\n${program}\n` })
        yield* runNow(() => NodeFs.chmodSync(`${outside}/${title}`, 0o755))
        const backend = yield* FilesystemBackend.make({ root, ripgrep: `${outside}/${title}` })
        const { files } = yield* backend.grep({ pattern: "needle" })
        assert.deepStrictEqual(
          files.map(({ path }) => path),
          ["/a.txt"],
          title
        )
        assert.deepStrictEqual((yield* backend.grep({ pattern: "secret" })).files, [], title)
      }
    })
  )

  it.live("reads nothing outside, through any change of the files that ripgrep names before they are read", () =>
    Effect.gen(function* () {
      const { outside, root } = yield* temporary
      yield* plant(outside, { "folder/file.txt": "needle", "deep/sub/file.txt": "needle" })
      const programs = {
        "a folder that a link takes the place of": `rm -r sub && ln -s ${outside}/folder sub && printf './sub/file.txt\\0'`,
        // So many names that they are read before it is over.
        "a folder above it, for a moment": [
          `rm -r deep && ln -s ${outside}/deep deep && printf './deep/sub/file.txt\\0%.0s' $(seq 100)`,
          "sleep 0.3; rm deep; mkdir -p deep/sub; echo hay >deep/sub/file.txt"
        ].join("; "),
        "a file that a link takes the place of": `ln -sf ${outside}/folder/file.txt sub/file.txt && printf './sub/file.txt\\0'`,
        "a pipe that nobody writes to": "rm sub/file.txt && mkfifo sub/file.txt && printf './sub/file.txt\\0'",
        "a folder": "rm sub/file.txt && mkdir sub/file.txt && printf './sub/file.txt\\0./sub\\0./\\0./..\\0'",
        "a way around": `printf '././sub/../../outside/folder/file.txt\\0./sub/../sub/file.txt\\0.//sub/file.txt\\0'`
      }
      for (const [title, program] of Object.entries(programs)) {
        for (const name of ["sub", "deep"]) {
          yield* runNow(() => NodeFs.rmSync(`${root}/${name}`, { recursive: true, force: true }))
        }
        yield* plant(root, { "sub/file.txt": "hay", "deep/sub/file.txt": "hay", "top.txt": "needle" })
        yield* plant(outside, { rg: `#!/bin/sh\n${program}; printf './top.txt\\0'\n` })
        yield* runNow(() => NodeFs.chmodSync(`${outside}/rg`, 0o755))
        const backend = yield* FilesystemBackend.make({ root, ripgrep: `${outside}/rg` })
        const { files } = yield* backend.grep({ pattern: "needle" })
        assert.deepStrictEqual(
          files.map(({ path }) => path),
          ["/top.txt"],
          title
        )
      }
    })
  )

  it.live("gives the same for files of any size, and for more of them than are read beforehand", () =>
    Effect.gen(function* () {
      const { plain, quick, root } = yield* both
      const sizes = [0, 1, 65_535, 65_536, 65_537, 1_048_576, 1_048_577]
      yield* plant(
        root,
        Object.fromEntries(sizes.map((size) => [`sizes/${size}.txt`, `${"line\n".repeat(size / 5)}needle`]))
      )
      // More than the 16 MiB that are read beforehand.
      const some = `${"other line\n".repeat(4_000)}needle\n`
      for (let n = 0; n < 500; n++) yield* plant(root, { [`many/${n % 7}/${n}.txt`]: some })
      for (const query of [
        { limit: 10_000 },
        { limit: 20 },
        { mode: "files" as const, limit: 300 },
        { path: "/sizes" }
      ]) {
        const asked = { pattern: "needle", ...query }
        const found = yield* quick.grep(asked)
        assert.isNotEmpty(found.files)
        assert.deepStrictEqual(found, yield* plain.grep(asked))
      }
    })
  )

  it.live("lists names that are text, beside similar invalid ones", () =>
    Effect.gen(function* () {
      const { quick, root } = yield* both
      yield* plant(root, { "\uFFFD": "text", "a\uFFFD": "text", b: "text" })
      yield* runNow(() => NodeFs.writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff])]), "bytes"))
      yield* runNow(() => NodeFs.mkdirSync(Buffer.concat([Buffer.from(`${root}/a`), Buffer.from([0xfe])])))
      const paths = ["/a\uFFFD", "/b", "/\uFFFD"]
      const pathsOf = ({ entries }: Backend.Listing) => entries.map(({ path }) => path)
      assert.deepStrictEqual(pathsOf(yield* quick.ls("/")), paths)
      assert.deepStrictEqual(pathsOf(yield* quick.glob({ pattern: "**" })), paths)
    })
  )

  it.live("ends ripgrep when it is interrupted", () =>
    Effect.gen(function* () {
      const { outside, root } = yield* temporary
      const program = `#!/bin/sh\necho $$ > ${outside}/pid\nexec sleep 60\n`
      yield* plant(outside, { slow: program })
      yield* runNow(() => NodeFs.chmodSync(`${outside}/slow`, 0o755))
      const backend = yield* FilesystemBackend.make({ root, ripgrep: `${outside}/slow` })
      const running = yield* Effect.forkChild(backend.grep({ pattern: "needle" }))
      const pid = yield* pidIn(`${outside}/pid`)
      assert.isTrue(isAlive(pid))
      yield* Fiber.interrupt(running)
      assert.isTrue(yield* awaitGone(pid))
    })
  )

  it.live(
    "looks into a file of one endless line without much memory, and finds matches elsewhere",
    () =>
      Effect.gen(function* () {
        const { quick, root } = yield* both
        yield* plant(root, { "a.txt": "n33dle\n" })
        yield* plant(root, { sparse: "" })
        yield* runNow(() => NodeFs.truncateSync(`${root}/sparse`, 3 * 1024 ** 3))
        const found = yield* quick.grep({ pattern: "n.{2}dle", regex: true })
        assert.deepStrictEqual(
          found.files.map(({ path }) => path),
          ["/a.txt"]
        )
      }),
    60_000
  )
})

describe("glob", () => {
  it.live("finds nothing by names that no file can have", () =>
    Effect.gen(function* () {
      const { quick, root } = yield* both
      yield* plant(root, { "\uFFFD/file": "x" })
      for (const pattern of ["\0/*", "a\0b/**", "\uD800/*", "\uD800"]) {
        assert.deepStrictEqual((yield* quick.glob({ pattern })).entries, [], JSON.stringify(pattern))
        assert.deepStrictEqual((yield* quick.grep({ pattern: "x", glob: pattern })).files, [], JSON.stringify(pattern))
      }
    })
  )

  it.live(
    "finds the same as a sequential walk",
    () =>
      Effect.gen(function* () {
        const { quick, root } = yield* both
        const jail = yield* Effect.orDie(Effect.mapError(Jail.make(root), () => new Error("no root")))
        const walker = CustomBackend.make(Folder.primitives(jail, 1_000_000, jail))
        yield* Effect.promise(() =>
          fc.assert(
            fc.asyncProperty(
              tree,
              glob,
              fc.boolean(),
              fc.constantFrom("/", "/a_", "/a_/b_"),
              (files, pattern, ignored, path) =>
                Effect.runPromise(
                  Effect.gen(function* () {
                    yield* runNow(() => {
                      NodeFs.rmSync(root, { recursive: true })
                      NodeFs.mkdirSync(root)
                    })
                    yield* plant(root, files)
                    const query = { pattern, ignored, path }
                    const paths = ({ entries, ...rest }: Backend.Listing) => ({
                      ...rest,
                      entries: entries.map((entry) => [entry.kind, entry.path])
                    })
                    const found = yield* outcome(Effect.map(quick.glob(query), paths))
                    assert.deepStrictEqual(found, yield* outcome(Effect.map(walker.glob(query), paths)))
                  })
                )
            ),
            { numRuns: scaled(60) }
          )
        )
      }),
    60_000
  )
})

describe("patterns for ripgrep", () => {
  it("are given up on, rather than meant in another way", () => {
    for (const pattern of ["\\pL", "\\p{Greek}x", "\\C", "(?i)\u{10400}", "[\u{1e900}-\u{1e943}](?i)"]) {
      assert.isUndefined(translate(pattern, false), pattern)
    }
    assert.isUndefined(translate("ꭰ", true))
    assert.isDefined(translate("ꭰ", false))
    assert.isUndefined(argumentsFor({ pattern: "a\0b" }))
    assert.isUndefined(argumentsFor({ pattern: "a\uFFFDb" }))
  })
})
