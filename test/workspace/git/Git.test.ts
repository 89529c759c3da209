/** Git by tools, on real repositories. */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Approval, type Json, Tool, ToolOutput } from "effect-deepagents"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import { Git } from "effect-deepagents/workspace"
import * as Effect from "effect/Effect"
import { isFull } from "../../scale.ts"
import { git, inRepository } from "./repository.ts"

const call = (name: string, args: Json.JsonObject = {}) => {
  const tool = Git.make().find((one) => one.name === name)
  return (tool === undefined ? Effect.die(name) : Tool.run(tool, args)).pipe(
    Effect.map(ToolOutput.text),
    Effect.provideService(Approval.Approvals, { decide: () => Effect.die("nobody is asked") })
  )
}

const refusal = (name: string, args: Json.JsonObject) =>
  Effect.map(Effect.flip(call(name, args)), ({ message }) => message)

describe("reading", () => {
  it.live("reports changes with author and time", () =>
    inRepository({ "a.txt": "one\ntwo\n" }, (root) =>
      Effect.gen(function* () {
        writeFileSync(join(root, "a.txt"), "one\n2\n")
        assert.strictEqual(yield* call("git_status"), "## main\n M a.txt")
        assert.include(yield* call("git_diff"), "-two\n+2")
        assert.strictEqual(yield* call("git_diff", { staged: true }), "no differences")
        assert.match(yield* call("git_log"), /^[0-9a-f]{7} \d{4}-\d\d-\d\d Ada: first$/)
        assert.include(yield* call("git_show", { revision: "HEAD:a.txt" }), "one\ntwo")
        assert.include(yield* call("git_blame", { path: "/a.txt", first: 2, last: 2 }), "2) 2")
        assert.include(yield* call("git_branches"), "* main")
        assert.include(yield* call("git_worktrees"), "[main]")
      })
    )
  )

  it.live("clamps the count of the log", () =>
    inRepository({ a: "" }, (root) =>
      Effect.gen(function* () {
        for (let number = 0; number < 3; number++) git(root, "commit", "--quiet", "--allow-empty", "-m", `c${number}`)
        const lines = (text: string) => text.split("\n").length
        assert.strictEqual(lines(yield* call("git_log", { limit: 0 })), 4)
        assert.strictEqual(lines(yield* call("git_log", { limit: -5 })), 1)
        assert.strictEqual(lines(yield* call("git_log", { limit: 2 })), 2)
      })
    )
  )

  it.live("runs nothing from the repository", () =>
    inRepository({ "a.txt": "one\n", ".gitattributes": "*.txt diff=evil\n" }, (root) =>
      Effect.gen(function* () {
        const mark = join(root, "ran")
        const evil = `sh -c 'echo ran >> ${mark}; cat' --`
        for (const key of [
          "diff.external",
          "diff.evil.textconv",
          "diff.evil.command",
          "core.fsmonitor",
          "core.pager"
        ]) {
          git(root, "config", key, evil)
        }
        mkdirSync(join(root, ".git/hooks"), { recursive: true })
        writeFileSync(join(root, ".git/hooks/post-index-change"), `#!/bin/sh\necho ran >> ${mark}\n`, { mode: 0o755 })
        writeFileSync(join(root, "a.txt"), "two\n")
        yield* call("git_status")
        yield* call("git_diff")
        yield* call("git_show")
        yield* call("git_log")
        yield* call("git_blame", { path: "a.txt" })
        assert.isFalse(existsSync(mark))
      })
    )
  )
})

describe("a hostile repository", () => {
  it.live("runs no filter of it to compare files, under any name", () =>
    inRepository(
      {
        "a.txt": "one\n",
        "b.bin": "one\n",
        "c.dat": "one\n",
        ".gitattributes": "*.txt filter=evil\n*.bin filter=e=v.il\n"
      },
      (root) =>
        Effect.gen(function* () {
          const mark = join(root, "ran")
          const evil = `sh -c 'echo ran >> ${mark}; cat'`
          for (const name of ["evil", "e=v.il"]) {
            for (const key of ["clean", "smudge"]) git(root, "config", `filter.${name}.${key}`, evil)
            git(root, "config", `filter.${name}.required`, "true")
          }
          writeFileSync(join(root, "more"), `[filter "far"]\n\tprocess = touch ${mark}\n`)
          git(root, "config", "include.path", "../more")
          writeFileSync(join(root, ".git/info/attributes"), "*.dat filter=far\n")
          for (const name of ["a.txt", "b.bin", "c.dat"]) writeFileSync(join(root, name), "two\n")
          assert.include(yield* call("git_status"), " M a.txt\n M b.bin\n M c.dat")
          assert.include(yield* call("git_diff"), "+two")
          yield* call("git_show")
          assert.include(yield* call("git_blame", { path: "b.bin" }), "two")
          yield* call("git_diff", { revision: "HEAD" })
          assert.isFalse(existsSync(mark))
        })
    )
  )

  it.live("runs no program of a submodule, for any setting that shows it", () =>
    inRepository({ "a.txt": "one\n" }, (root) =>
      Effect.gen(function* () {
        const mark = join(root, "ran")
        const sub = join(root, "sub")
        mkdirSync(sub)
        writeFileSync(join(sub, "b.txt"), "one\n")
        git(sub, "init", "--quiet", "--initial-branch", "main")
        git(sub, "add", ".")
        git(sub, "commit", "--quiet", "-m", "first")
        git(root, "add", "sub")
        git(root, "commit", "--quiet", "-m", "a submodule")
        const evil = `sh -c 'echo ran >> ${mark}; cat' --`
        for (const key of [
          "core.fsmonitor",
          "filter.evil.clean",
          "core.pager",
          "diff.external",
          "diff.evil.textconv"
        ]) {
          git(sub, "config", key, evil)
        }
        writeFileSync(join(sub, ".git/info/attributes"), "*.txt filter=evil diff=evil\n")
        writeFileSync(join(sub, "b.txt"), "two\n")
        for (const [key, value] of [
          ["diff.submodule", "diff"],
          ["status.submoduleSummary", "true"],
          ["diff.ignoreSubmodules", "none"],
          ["submodule.sub.ignore", "none"]
        ] as const) {
          git(root, "config", key, value)
        }
        rmSync(mark, { force: true })
        yield* call("git_status")
        yield* call("git_diff")
        yield* call("git_diff", { revision: "HEAD" })
        yield* call("git_show")
        yield* call("git_log")
        assert.isFalse(existsSync(mark))
      })
    )
  )

  it.live("reads the repository at its place, also if it names another folder for its files", () =>
    inRepository({ "a.txt": "one\n" }, (root) =>
      Effect.gen(function* () {
        const outside = mkdtempSync(join(tmpdir(), "outside-"))
        writeFileSync(join(outside, "a.txt"), "secret words\n")
        git(root, "config", "core.worktree", outside)
        const told = yield* Effect.forEach(
          [
            ["git_diff", {}],
            ["git_diff", { revision: "HEAD" }],
            ["git_blame", { path: "a.txt" }],
            ["git_status", {}]
          ] as const,
          ([name, args]) => Effect.catch(call(name, args), ({ message }) => Effect.succeed(message))
        )
        assert.notInclude(told.join("\n"), "secret words")
        rmSync(outside, { recursive: true })
      })
    )
  )
})

describe("missing commands", () => {
  it.live("is not fetched by a program that the repository names", () =>
    inRepository({ "a.txt": "one\n" }, (root) =>
      Effect.gen(function* () {
        const mark = join(root, "ran")
        writeFileSync(join(root, "evil.sh"), `#!/bin/sh\ntouch ${mark}\n`, { mode: 0o755 })
        const blob = git(root, "rev-parse", "HEAD:a.txt").trim()
        rmSync(join(root, ".git/objects", blob.slice(0, 2), blob.slice(2)))
        for (const [key, value] of [
          ["core.repositoryFormatVersion", "1"],
          ["extensions.partialClone", "origin"],
          ["remote.origin.promisor", "true"],
          ["remote.origin.url", "ssh://nobody@nowhere.test/x"],
          ["core.sshCommand", join(root, "evil.sh")]
        ] as const) {
          git(root, "config", key, value)
        }
        assert.notStrictEqual(yield* refusal("git_show", { revision: "HEAD:a.txt" }), "")
        assert.isFalse(existsSync(mark))
      })
    )
  )
})

describe("names", () => {
  it.live("names of no revision lead git to no file outside, also without a repository", () =>
    Effect.acquireUseRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "none-"))),
      (folder) =>
        Effect.gen(function* () {
          const root = join(folder, "root")
          mkdirSync(root)
          writeFileSync(join(root, "own.txt"), "own\n")
          writeFileSync(join(folder, "secret.txt"), "secret words\n")
          for (const revision of [join(folder, "secret.txt"), "../secret.txt", "./../secret.txt"]) {
            const told = yield* refusal("git_diff", { revision, path: "own.txt" }).pipe(
              Effect.provide(LocalShell.layer({ root }))
            )
            assert.notInclude(told, "secret words")
          }
        }),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
    )
  )

  it.live("of options, of other places and of nothing are refused", () =>
    inRepository({ a: "" }, () =>
      Effect.gen(function* () {
        for (const revision of ["--output=/tmp/x", "-p", "", "a\nb", "--upload-pack=touch x"]) {
          assert.include(yield* refusal("git_show", { revision }), "is no revision")
          assert.include(yield* refusal("git_diff", { revision }), "is no revision")
        }
        for (const path of ["../etc", "a/../../b", "x\u0000y"]) {
          assert.include(yield* refusal("git_blame", { path }), "is no path of the repository")
        }
        for (const name of ["-D", "a..b", "a b", "x.lock", "@{-1}", "a^", ""]) {
          assert.include(yield* refusal("git_branch", { action: "create", name }), "can't be the name of a branch")
        }
      })
    )
  )

  it.live("names are safe in a shell, with any characters", () => {
    const names = [
      "$(touch pwned)",
      "`touch pwned`",
      "a'b",
      'a"b',
      "; touch pwned #",
      "* ?[a]",
      ":(top)x",
      "-n",
      "é\u2028 x"
    ]
    return inRepository({ first: "" }, (root) =>
      Effect.gen(function* () {
        for (const name of isFull ? names : names.filter((_, index) => index % 3 === 0)) {
          writeFileSync(join(root, name), `${name}\n`)
          const message = `About ${name}\n\n$(touch pwned)`
          assert.include(yield* call("git_commit", { paths: [name], message }), "1 file changed")
          assert.strictEqual(git(root, "log", "-n", "1", "--format=%B").trim(), message)
          assert.include(yield* call("git_blame", { path: name }), `1) ${name}`)
        }
        assert.isFalse(existsSync(join(root, "pwned")))
        assert.strictEqual(git(root, "status", "--short"), "")
      })
    )
  })
})

describe("changing", () => {
  it.live("commits the named files only, or all", () =>
    inRepository({ a: "1", b: "1" }, (root) =>
      Effect.gen(function* () {
        writeFileSync(join(root, "a"), "2")
        writeFileSync(join(root, "b"), "2")
        yield* call("git_commit", { paths: ["/a"], message: "only a" })
        assert.strictEqual(git(root, "status", "--short"), " M b\n")
        yield* call("git_commit", { all: true, message: "the rest" })
        assert.strictEqual(git(root, "status", "--short"), "")
        assert.include(yield* refusal("git_commit", { message: "what?" }), "say what is committed")
        assert.include(yield* refusal("git_commit", { all: true, message: "nothing left" }), "nothing to commit")
      })
    )
  )

  it.live("makes and switches branches, and worktrees of them", () =>
    inRepository({ a: "1" }, (root) =>
      Effect.gen(function* () {
        assert.strictEqual(yield* call("git_branch", { action: "create", name: "work/a" }), "## work/a")
        assert.strictEqual(yield* call("git_branch", { action: "switch", name: "main" }), "## main")
        yield* call("git_worktree", { action: "add", path: "trees/a", branch: "work/a" })
        yield* call("git_worktree", { action: "add", path: "trees/b", branch: "work/b" })
        assert.isTrue(existsSync(join(root, "trees/b/a")))
        yield* call("git_worktree", { action: "remove", path: "trees/a" })
        yield* call("git_branch", { action: "delete", name: "work/a" })
        assert.notInclude(yield* call("git_branches"), "work/a")
      })
    )
  )

  it("asks; reading does not", () => {
    const reading = new Set(Git.reading().map(({ name }) => name))
    assert.isTrue(Git.make().every((tool) => reading.has(tool.name) || tool.needsApproval === true))
    assert.isTrue(
      Git.reading().every(
        ({ annotations, needsApproval }) => annotations.readOnly === true && needsApproval === undefined
      )
    )
  })
})

it.live("a folder that is not there is told", () =>
  inRepository({ a: "" }, () =>
    Effect.gen(function* () {
      const [status] = Git.reading({ repository: "/nowhere" })
      assert.isDefined(status)
      assert.include((yield* Effect.flip(Tool.run(status, {}))).message, "git could not be run")
    })
  )
)
