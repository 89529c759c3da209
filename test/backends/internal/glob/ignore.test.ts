import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import * as Ignore from "../../../../src/backends/internal/glob/ignore.ts"
import { scaled } from "../../../scale.ts"

/** Ignore files by their folders. */
type Files = { readonly [folder: string]: string }

/** Asks as a walk does: from the root down, and never below an ignored folder. */
const isIgnored = (files: Files, path: string): boolean => {
  const isDirectory = path.endsWith("/")
  const names = path.split("/").filter((name) => name !== "")
  let rules = Ignore.none
  let folder = "/"
  for (const [index, name] of names.entries()) {
    const text = files[folder]
    if (text !== undefined) rules = Ignore.extend(rules, folder, text)
    folder = folder === "/" ? `/${name}` : `${folder}/${name}`
    if (Ignore.isIgnored(rules, folder, index < names.length - 1 || isDirectory)) return true
  }
  return false
}

describe("ignore files", () => {
  it("count up to 64 KiB each and 256 KiB together, the outer ones first", () => {
    const long = (line: string) => `${line}\n${"x".repeat(64 * 1024)}`
    const folders = ["/", "/a", "/a/b", "/a/b/c", "/a/b/c/d"]
    const rules = folders.reduce((all, folder, index) => Ignore.extend(all, folder, long(`file${index}`)), Ignore.none)
    const counted = folders.map((_, index) => Ignore.isIgnored(rules, `/a/b/c/d/file${index}`, false))
    assert.deepStrictEqual(counted, [true, true, true, true, false])
    assert.isFalse(Ignore.isIgnored(Ignore.extend(Ignore.none, "/", `${"x".repeat(64 * 1024)}\nlate`), "/late", false))
  })

  for (const [text, yes, no] of [
    ["# comment\n\n  \nfoo", ["foo", "a/foo", "foo/", "foo/b"], ["# comment", "foob", "  "]],
    ["\\#foo\n\\!bar", ["#foo", "!bar"], ["foo", "bar"]],
    ["foo  \nbar\\ \n", ["foo", "bar "], ["foo  ", "bar"]],
    ["foo\t", ["foo\t"], ["foo"]],
    ["foo\r\nbar\r\n", ["foo", "bar"], ["foo\r"]],
    ["\uFEFFfoo", ["foo"], []],
    ["foo/", ["foo/", "a/foo/", "foo/b"], ["foo", "a/foo"]],
    ["/foo", ["foo", "foo/b"], ["a/foo"]],
    ["doc/frotz", ["doc/frotz", "doc/frotz/"], ["a/doc/frotz", "frotz"]],
    ["doc/frotz/", ["doc/frotz/"], ["a/doc/frotz/", "doc/frotz"]],
    ["frotz/", ["frotz/", "a/frotz/"], ["frotz"]],
    ["foo/*", ["foo/test.json", "foo/bar/", "foo/bar/hello.c"], ["foo/", "a/foo/b"]],
    ["**/foo", ["foo", "a/b/foo"], ["foob"]],
    ["**/foo/bar", ["foo/bar", "a/foo/bar"], ["foo/a/bar"]],
    ["abc/**", ["abc/x", "abc/x/y"], ["abc/", "a/abc/x"]],
    ["a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["a/xb", "x/a/b"]],
    ["a**b", ["ab", "axb"], ["a/b"]],
    ["*.o\n!keep.o", ["a.o", "x/b.o"], ["keep.o", "x/keep.o"]],
    ["build/\n!build/keep", ["build/keep", "build/"], []],
    ["build/*\n!build/keep", ["build/other"], ["build/keep", "build/"]],
    ["/*\n!/foo\n/foo/*\n!/foo/bar", ["x", "foo/x"], ["foo/", "foo/bar/", "foo/bar/x"]],
    ["!foo\nfoo", ["foo"], []],
    ["[ab].c\n[!a-c]x\n[[:digit:]]", ["a.c", "dx", "1"], ["c.c", "ax", "x"]],
    ["[a", [], ["[a", "a"]],
    ["[[:space:]]\n[[:word:]]", [" ", "\t"], ["\v", "w"]],
    ["[+-/]\n[/-1]", ["+", ",", "0"], ["a", "2"]],
    ["{a,b}\n\\{c}", ["{a,b}", "{c}"], ["a", "b", "c"]],
    ["a//b\n./c\nd/../e", [], ["a/b", "c", "e"]],
    ["C:/x", ["C:/x"], ["x"]],
    ["foo\\", [], ["foo", "foo\\"]],
    ["foo\\/bar", ["foo/bar"], []],
    ["**\\/foo\n**\\/**\\/bar", ["a/foo", "a/b/foo", "a/b/bar"], ["foo", "bar", "a/bar"]],
    ["a/**\\/**", ["a/b/c"], ["a/b", "a/b/"]],
    ["/", [], ["a", "a/"]],
    ["*", ["a", "a/b", ".a"], []],
    ["**", ["a", "a/b"], []],
    ["?", ["a"], ["ab"]],
    ["\\f\\o\\o", ["foo"], []],
    ["", [".git/", ".git", "a/.git/config"], [".gitignore", ".github/", "a.git"]]
  ] as const) {
    it(JSON.stringify(text), () => {
      for (const path of yes) assert.isTrue(isIgnored({ "/": text }, path), path)
      for (const path of no) assert.isFalse(isIgnored({ "/": text }, path), path)
    })
  }

  it("deeper files win over those above, for what is in their folder", () => {
    const files = { "/": "*.log\n/a/x", "/a": "!keep.log\n/y", "/a/b": "keep.log" }
    assert.isTrue(isIgnored(files, "keep.log"))
    assert.isFalse(isIgnored(files, "a/keep.log"))
    assert.isTrue(isIgnored(files, "a/b/keep.log"))
    assert.isTrue(isIgnored(files, "a/y"))
    assert.isFalse(isIgnored(files, "y"))
    assert.isFalse(isIgnored(files, "ab/y"))
    assert.isTrue(isIgnored(files, "a/x"))
  })

  it("hostile ones take bounded time", () => {
    const rules = Ignore.extend(Ignore.none, "/", `/${"**/a*/".repeat(140)}b\n`.repeat(60))
    assert.isFalse(Ignore.isIgnored(rules, `/${`${"a".repeat(250)}/`.repeat(16)}c`, false))
    const backtracking = Ignore.extend(Ignore.none, "/", `${"/**/a".repeat(12)}/**/b`)
    assert.isFalse(Ignore.isIgnored(backtracking, `${"/a".repeat(60)}/c`, false))
  })

  it("of an endless file only the beginning is read", () => {
    const rules = Ignore.extend(Ignore.none, "/", `${"# nothing\n".repeat(10_000)}foo`)
    assert.isFalse(Ignore.isIgnored(rules, "/foo", false))
  })
})

const hasGit = (() => {
  try {
    execFileSync("git", ["--version"])
    return true
  } catch {
    return false
  }
})()

const environment = { PATH: process.env["PATH"], GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1", HOME: "/" }

/** All paths of a small tree, directories with a `/`, in a repository of its own. */
const makeTree = () => {
  const root = mkdtempSync(join(tmpdir(), "ignore-"))
  const names = ["a", "b", "ab", ".a", "a b", "#a", "!a", "a.c", "[a]", "a*"]
  const files = ["", "a/", "b/", "a/b/", "b/a/", "a/b/ab/"].flatMap((folder) => names.map((name) => `${folder}${name}`))
  const folders = ["a/", "b/", "a/b/", "b/a/", "a/b/ab/"]
  execFileSync("git", ["init", "-q", root], { env: environment })
  const paths = [...files.filter((file) => !folders.includes(`${file}/`)), ...folders]
  for (const path of paths) {
    mkdirSync(join(root, path.endsWith("/") ? path : dirname(path)), { recursive: true })
    if (!path.endsWith("/")) writeFileSync(join(root, path), "")
  }
  return { root, paths }
}

/** Git's answers for paths, tracked or not. A `/` at the end would make it look into directories: it sees these itself. */
const ignoredByGit = (root: string, paths: ReadonlyArray<string>): ReadonlySet<string> => {
  const input = paths.map((path) => `${path.replace(/\/$/, "")}\0`).join("")
  try {
    const output = execFileSync("git", ["check-ignore", "--no-index", "--stdin", "-z"], {
      cwd: root,
      env: environment,
      input,
      encoding: "utf8"
    })
    return new Set(output.split("\0"))
  } catch (error) {
    // It ends with 1 if none is ignored.
    assert.strictEqual(error instanceof Error && "status" in error && error.status, 1)
    return new Set()
  }
}

const token = fc.constantFrom(
  ..."a|b|ab|a|b|.c|*|*|**|?|/|/|/**/|**/|[ab]|[!a]|[^b]|[a-c]|[[:alpha:]]|[]a]|[a|\\|\\*|\\a|#|!| |\\ |[a\\]]|[b-a]|[/a]|[+-/]|[[:space:]]|[[:x:]]|{a,b}".split(
    "|"
  )
)
const line = fc
  .tuple(
    fc.constantFrom("", "", "", "!", "/", "!/", "**/"),
    fc.array(token, { minLength: 1, maxLength: 5 }),
    fc.constantFrom("", "", "", "/", "/*", "/**", " ", "\r")
  )
  .map(([before, tokens, after]) => `${before}${tokens.join("")}${after}`)
  // Git takes the plain text before the first wildcard away and then sees a `**` at the beginning in `a**/b`, against its
  // own documentation.
  .filter((text) => !/[^/]\*\*/.test(text.replace(/^!/, "")))
const rules = fc.array(line, { maxLength: 5 }).map((lines) => lines.join("\n"))
const files = fc.record({ "/": rules, "/a": rules, "/a/b": rules }, { requiredKeys: ["/"] })

describe.skipIf(!hasGit)("ignore files, compared with git", () => {
  it("name what `git check-ignore` names", { timeout: 120_000 }, ({ onTestFinished }) => {
    const { paths, root } = makeTree()
    onTestFinished(() => rmSync(root, { recursive: true }))
    let ignored = 0
    fc.assert(
      fc.property(files, (files) => {
        for (const folder of ["/", "/a", "/a/b"] as const) {
          const path = join(root, folder, ".gitignore")
          if (files[folder] === undefined) rmSync(path, { force: true })
          else writeFileSync(path, files[folder])
        }
        const byGit = ignoredByGit(root, paths)
        for (const path of paths) {
          assert.strictEqual(isIgnored(files, path), byGit.has(path.replace(/\/$/, "")), path)
          if (byGit.has(path)) ignored++
        }
      }),
      { numRuns: scaled(150) }
    )
    assert.isAbove(ignored, scaled(1_000))
  })
})
