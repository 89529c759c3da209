/** Rules for calls: how people write them, and what the program makes of them. */
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, realpathSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { FileTools } from "effect-deepagents/backends"
import { FetchUrl } from "effect-deepagents/web"
import { Git } from "effect-deepagents/workspace"
import { globOf, matchesPath } from "../../src/cli/internal/approvals/pathPattern.ts"
import { isOpening, parsePermission, type Permission } from "../../src/cli/internal/approvals/permission.ts"
import { makePermits, readOrganisation } from "../../src/cli/internal/approvals/permits.ts"
import { answer, type Reply, say, serve, stream } from "../models/servers/anthropic.ts"
import { isFull } from "../scale.ts"
import { spentBy } from "../spent.ts"
import { useProgram } from "./built.ts"

const tools = [...FileTools.make({ execute: true }), FetchUrl.make()]
const folder = realpathSync(mkdtempSync(join(tmpdir(), "deepagents-permissions-")))
const origin = { from: "user", where: "config.json" } as const

const parse = (ruling: Permission["ruling"], text: string) => parsePermission(text, ruling, origin, { tools, folder })

const rules = (...given: ReadonlyArray<readonly [Permission["ruling"], string]>) =>
  makePermits(
    folder,
    tools,
    given.map(([ruling, text]) => Result.getOrThrow(parse(ruling, text)))
  )

const ruled = (permits: ReturnType<typeof rules>, name: string, args: { readonly [name: string]: string }) =>
  permits.rule({ name, arguments: args })?._tag

describe("rules for calls", () => {
  it("name tools as this program does and as Claude Code does", () => {
    const permits = rules(
      ["refuse", "Bash(git push:*)"],
      ["allow", "execute(npm test:*)"],
      ["ask", "Edit(src/**)"],
      ["allow", "Edit(*.md)"],
      ["refuse", "Read(.env)"],
      ["allow", "WebFetch(domain:docs.example.com)"],
      ["refuse", "WebFetch(domain:*.evil.example)"],
      ["allow", "mcp__github__get_issue"],
      ["refuse", "mcp__mail"]
    )
    const cases = [
      ["execute", { command: "npm test" }, "Allow"],
      ["execute", { command: "npm test && git push" }, "Refuse"],
      ["write_file", { file_path: "src/a.ts" }, "Ask"],
      ["edit_file", { file_path: "docs/a.md" }, "Allow"],
      ["edit_file", { file_path: `${folder}/docs/a.ts` }, undefined],
      ["move_file", { from: "a.md", to: "b.ts" }, undefined],
      ["move_file", { from: "b.ts", to: "src/a.ts" }, "Ask"],
      ["delete_file", { file_path: `${folder}/SRC/a` }, "Ask"],
      ["read_file", { file_path: "deep/.env" }, "Refuse"],
      ["read_file", { file_path: "a.md" }, undefined],
      ["write_file", { file_path: "/elsewhere/a.md" }, undefined],
      ["write_file", { file_path: "../a.md" }, undefined],
      ["fetch_url", { url: "https://docs.example.com/x" }, "Allow"],
      ["fetch_url", { url: "https://docs.example.com.evil.example/x" }, "Refuse"],
      ["fetch_url", { url: "https://other.example" }, undefined],
      ["github__get_issue", {}, "Allow"],
      ["github__delete_repo", {}, undefined],
      ["mail__send", {}, "Refuse"],
      ["execute", { command: "cat .env" }, undefined],
      ["execute", { command: "cat a.md" }, "Allow"]
    ] as const
    for (const [name, args, expected] of cases)
      assert.deepEqual([name, args, ruled(permits, name, args)], [name, args, expected])
    assert.equal(permits.rule({ name: "execute", arguments: { command: "git push" } })?.by, "user: Bash(git push:*)")
  })

  it("hide a file from commands that are free otherwise, also behind a link", () => {
    writeFileSync(join(folder, "plans.txt"), "x")
    symlinkSync("plans.txt", join(folder, "link.txt"))
    const permits = rules(["refuse", "Read(plans.txt)"])
    for (const command of [
      "cat plans.txt",
      "cat link.txt",
      "cat *.txt",
      "wc -l < plans.txt",
      "git show HEAD:plans.txt",
      "git show 'HEAD@{12:00}:./plans.txt'",
      "git cat-file -p :0:a/plans.txt"
    ]) {
      assert.deepEqual([command, ruled(permits, "execute", { command })], [command, undefined])
      assert.deepEqual([command, ruled(rules(), "execute", { command })], [command, "Allow"])
    }
    assert.equal(ruled(permits, "execute", { command: "git show HEAD:other.txt" }), "Allow")
  })

  it("keep tools of git from showing a hidden file, and leave the others free", () => {
    const all = [...tools, ...Git.make()]
    const hiding = Result.getOrThrow(parsePermission("Read(plans.txt)", "refuse", origin, { tools: all, folder }))
    const permits = makePermits(folder, all, [hiding])
    writeFileSync(join(folder, "open.txt"), "x")
    for (const [name, args, expected] of [
      ["git_status", {}, undefined],
      ["git_worktrees", {}, undefined],
      ["git_diff", {}, "Refuse"],
      ["git_diff", { path: "." }, "Refuse"],
      ["git_diff", { path: "gone.txt" }, "Refuse"],
      ["git_diff", { path: "open.txt" }, undefined],
      ["git_show", { revision: "HEAD:plans.txt" }, "Refuse"],
      ["git_blame", { path: "plans.txt" }, "Refuse"]
    ] as const) {
      assert.deepEqual([name, ruled(permits, name, args)], [name, expected])
    }
  })

  it("ask about reading git commands if a repository or its submodule names a program for them", () => {
    const at = mkdtempSync(join(folder, "repository-"))
    const inner = join(at, "inner")
    const git = (cwd: string, ...args: ReadonlyArray<string>) =>
      execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b.c", ...args], { cwd, stdio: "pipe" })
    for (const one of [at, inner]) {
      mkdirSync(one, { recursive: true })
      git(one, "init", "-q")
      git(one, "commit", "-q", "--allow-empty", "-m", "one")
    }
    git(at, "add", "inner")
    const isFree = (command = "git status", cwd = at) =>
      ruled(makePermits(cwd, tools), "execute", { command }) === "Allow"
    assert.isTrue(isFree())
    assert.isTrue(isFree("git log | head", join(at, "inner")))
    git(at, "config", "core.fsmonitor", "true")
    git(at, "config", "core.hooksPath", ".husky")
    assert.isTrue(isFree())
    for (const [key, value] of [
      ["core.fsmonitor", "./x"],
      ["core.worktree", "/"],
      ["diff.external", "./x"],
      ["diff.a.b.textconv", "./x"],
      ["filter.x.clean", "./x"],
      ["gpg.program", "./x"],
      ["remote.o.promisor", "true"]
    ] as const) {
      for (const one of key === "core.worktree" ? [at] : [at, inner]) {
        git(one, "config", key, value)
        assert.deepEqual([key, one, isFree()], [key, one, false])
        assert.isTrue(isFree("ls && pwd"))
        execFileSync("git", ["config", "-f", join(one, ".git/config"), "--unset", key])
      }
    }
    assert.isTrue(isFree())
    writeFileSync(join(at, "more"), "[core]\n\tfsmonitor = ./x\n")
    git(at, "config", "include.path", "../more")
    assert.isFalse(isFree())
    git(at, "config", "--unset", "include.path")
    mkdirSync(join(at, ".husky"))
    writeFileSync(join(at, ".husky/post-index-change"), "#!/bin/sh\n", { mode: 0o755 })
    assert.isFalse(isFree())
    // A folder that is a repository itself, without the name `.git`.
    assert.isFalse(isFree("git log", join(inner, ".git")))
    assert.isTrue(isFree("git log", tmpdir()))
  })

  it("fit paths as patterns of .gitignore do", () => {
    const place = { folder: "/home/u/p", home: "/home/u", folds: false }
    for (const [pattern, path, fits] of [
      ["src/**", "/home/u/p/src/a/b.ts", true],
      ["src/**", "/home/u/p/lib/src/a.ts", false],
      ["src", "/home/u/p/lib/src/a.ts", true],
      ["*.md", "/home/u/p/docs/a.md", true],
      ["/*.md", "/home/u/p/docs/a.md", false],
      ["./a.md", "/home/u/p/a.md", true],
      ["~/notes/*.md", "/home/u/notes/a.md", true],
      ["//etc/**", "/etc/hosts", true],
      ["*.md", "/home/u/q/a.md", false],
      ["src/**", "/home/u/p/src/../a.ts", false],
      ["a/**/b", "/home/u/p/a/b", true],
      ["*", "/home/u/p/.env", true]
    ] as const) {
      assert.deepEqual([pattern, path, matchesPath(pattern, path, place)], [pattern, path, fits])
    }
    const pattern = "**/a*a*".repeat(300)
    assert.isBelow(
      spentBy(() => matchesPath(pattern, `/home/u/p/${"a".repeat(5_000)}/x`, place)),
      5_000
    )
  })

  it("are globs of whole paths, with any signs in the folder's name", () => {
    const at = (pattern: string) => globOf(pattern, "/w/[a]*", "/home/ada")
    assert.deepEqual([".env", "src/**", "/build", "./x", "~/n?tes", "//etc/*", "a{b}"].map(at), [
      "/w/\\[a\\]\\*/**/.env",
      "/w/\\[a\\]\\*/src/**",
      "/w/\\[a\\]\\*/build",
      "/w/\\[a\\]\\*/x",
      "/home/ada/n?tes",
      "/etc/*",
      "/w/\\[a\\]\\*/**/a\\{b\\}"
    ])
  })

  it("are refused by name if unreadable", () => {
    for (const [text, words] of [
      ["Bsh(ls)", /no tool "Bsh"\. Did you mean "Bash"\?/],
      ["Bash(npm test && ls)", /not one plain command/],
      ["Bash(ls", /write Tool or Tool\(what\)/],
      ["WebFetch(https://x.example)", /WebFetch\(domain:example\.com\)/],
      ["mcp__a__b(x)", /nothing in parentheses/],
      ["", /write Tool/]
    ] as const) {
      const parsed = parse("allow", text)
      assert.isTrue(Result.isFailure(parsed), text)
      if (Result.isFailure(parsed)) assert.match(parsed.failure, words)
    }
  })

  it.effect("of an organisation are refused if a misspelt name would leave them out", () =>
    Effect.gen(function* () {
      const file = join(mkdtempSync(join(tmpdir(), "organisation-")), "config.json")
      for (const [settings, problem] of [
        [{ permisions: { deny: ["Bash"] } }, /no setting "permisions"\. Did you mean "permissions"/],
        [{ permissions: [] }, /permissions is/],
        [{ permissions: { denny: ["Bash"] } }, /permissions/]
      ] as const) {
        writeFileSync(file, JSON.stringify(settings))
        assert.match((yield* Effect.flip(readOrganisation(file))).message, problem)
      }
      writeFileSync(file, JSON.stringify({ permissions: { deny: ["Bash"] } }))
      assert.deepEqual(yield* readOrganisation(file), { deny: ["Bash"] })
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it("open a door if they name no more than an interpreter or a runner", () => {
    const opens = (text: string) => isOpening(Result.getOrThrow(parse("allow", text)))
    for (const text of ["Bash", "Bash(*)", "Bash(node:*)", "Bash(npx *)", "Bash(env:*)", "Bash(python -c:*)"]) {
      assert.isTrue(opens(text), text)
    }
    for (const text of ["Bash(npm test:*)", "Bash(npx vitest:*)", "Bash(node a.js)", "Edit", "Bash(ls:*)"]) {
      assert.isFalse(opens(text), text)
    }
  })
})

const program = useProgram()

const running = (command: string) =>
  stream(answer([{ call: "execute", id: `toolu_${command.length}`, input: { command } }]))

const answered = (command: string): ReadonlyArray<Reply> => [running(command), say("So.")]

/** A folder with a repository, and the program on it with a model that runs these commands. */
const world = Effect.fnUntraced(function* (...replies: ReadonlyArray<Reply>) {
  const { requests, url } = yield* serve(...replies)
  const cwd = program.folder()
  const git = (...args: ReadonlyArray<string>) => execFileSync("git", args, { cwd, stdio: "ignore" })
  mkdirSync(join(cwd, "victim"))
  writeFileSync(join(cwd, "victim/file"), "x")
  git("init")
  git("add", ".")
  git("-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-m", "echo planted")
  const env = {
    ANTHROPIC_BASE_URL: url,
    ANTHROPIC_API_KEY: "sk-ant-test",
    XDG_DATA_HOME: join(cwd, "..", "data"),
    XDG_CONFIG_HOME: join(cwd, "..", "config")
  }
  const run = (args: ReadonlyArray<string>, stdin = "") => program.run(cwd, args, env, stdin)
  return { cwd, env, requests, run, has: (name: string) => existsSync(join(cwd, name)) }
})

describe("the program", { timeout: 120_000 }, () => {
  it.effect("asks if a wrapper or an option turns a reading command into another one", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const planted = "git log --format=%B --output=.git/hooks/pre-commit -1"
        const commands = [
          "timeout 5 ls",
          "timeout 5 rm -rf victim",
          "git log -1",
          planted,
          "find . -name x",
          "find victim -delete"
        ]
        const { has, run } = yield* world(...commands.flatMap(answered))
        const no = "2\n\n"
        const done = yield* run(
          [],
          ["a", "b", no, "c", "d", no, "e", "f", `${no}/quit`].join("\n").replaceAll("\n\n\n", "\n\n") + "\n"
        )
        assert.equal(done.code, 0, done.err)
        assert.equal(done.out.match(/wants to call execute/g)?.length, 3, done.out)
        for (const words of [
          "Deletes: victim",
          "Writes to: .git/hooks/pre-commit",
          "Deletes: what is found in victim"
        ]) {
          assert.include(done.out, words)
        }
        assert.isTrue(has("victim/file"))
        assert.isFalse(has(".git/hooks/pre-commit"))
      })
    )
  )

  it.effect.runIf(isFull)(
    "keeps an approval for the project, by the action of a command, for later chats and runs",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { has, run } = yield* world(
            ...["mkdir -p made", "mkdir -p made/more", "mkdir -p ../outside"].flatMap(answered)
          )
          const first = yield* run([], "a\n4\n/quit\n")
          assert.match(first.out, /4\. always in this project: `mkdir …` with files in the folder/)
          assert.isTrue(has("made"), first.out)
          const second = yield* run(["run", "b"])
          assert.deepEqual([second.code, has("made/more")], [0, true], second.err)
          const third = yield* run(["run", "c"])
          assert.deepEqual([third.code, has("../outside")], [6, false], third.err)
        })
      )
  )

  it.effect("runs calls that a flag allows, and none that a rule refuses, with --yolo too", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { has, requests, run } = yield* world(
          running("touch a"),
          ...["touch a", "touch b", "ls"].flatMap(answered)
        )
        const waits = yield* run(["run", "a"])
        assert.deepEqual([waits.code, has("a")], [6, false], waits.err)
        const allowed = yield* run(["run", "--allow", "Bash(npm test:*)", "--allow", "Bash(touch:*)", "b"])
        assert.deepEqual([allowed.code, has("a")], [0, true], allowed.err)
        const denied = yield* run(["run", "--allow", "Bash(touch:*)", "--deny", "Bash(touch b)", "--yolo", "c"])
        assert.deepEqual([denied.code, has("b")], [0, false], denied.err)
        assert.include(JSON.stringify(requests.at(-1)?.body), "a rule refuses it (flag: Bash(touch b))")
        const planned = yield* run(["run", "--approvals", "plan", "d"])
        assert.deepEqual([planned.code, planned.err.includes("Nothing is changed")], [0, false])
        assert.include(JSON.stringify(requests.at(-1)?.body), "victim")
        const wrong = yield* run(["run", "--allow", "Bsh(ls)", "e"])
        assert.equal(wrong.code, 2)
        assert.match(wrong.err, /--allow: .*no tool .*Did you mean/)
      })
    )
  )

  it.effect.runIf(isFull)("answers the question of a tool itself by a rule that allows", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const commit = stream(answer([{ call: "git_commit", id: "toolu_c", input: { message: "Add a", all: true } }]))
        const { cwd, run } = yield* world(commit, commit, say("No."), commit, say("Done."))
        const git = (...args: ReadonlyArray<string>): string => execFileSync("git", args, { cwd, encoding: "utf8" })
        git("config", "user.name", "Ada")
        git("config", "user.email", "ada@a.b")
        mkdirSync(join(cwd, ".deepagents/agents"), { recursive: true })
        const agent = "---\ndescription: Commits.\ntools: [git_commit]\n---\nYou commit.\n"
        writeFileSync(join(cwd, ".deepagents/agents/committer.md"), agent)
        const flags = ["--agent", "committer", "--trust"]
        const waits = yield* run(["run", "a", ...flags])
        assert.deepEqual([waits.code, git("log", "--format=%s")], [6, "echo planted\n"], waits.err)
        const denied = yield* run(["run", "a", ...flags, "--yolo", "--deny", "git_commit"])
        assert.deepEqual([denied.code, git("log", "--format=%s")], [0, "echo planted\n"], denied.err)
        const done = yield* run(["run", "b", ...flags, "--allow", "git_commit"])
        assert.deepEqual([done.code, git("log", "--format=%s")], [0, "Add a\necho planted\n"], done.err)
      })
    )
  )

  it.effect.runIf(isFull)(
    "reads the rules of a trusted project, and leaves out a rule that would let anything run",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { cwd, has, run } = yield* world(running("touch a"), ...answered("touch a"), running("node -e 1"))
          mkdirSync(join(cwd, ".deepagents"))
          const permissions = { allow: ["Bash(touch:*)", "Bash(node:*)"] }
          writeFileSync(join(cwd, ".deepagents/config.json"), JSON.stringify({ permissions }))
          const before = yield* run(["run", "a"])
          assert.deepEqual([before.code, has("a")], [6, false], before.err)
          const trusted = yield* run(["run", "--trust", "b"])
          assert.deepEqual([trusted.code, has("a")], [0, true], trusted.err)
          assert.match(trusted.err, /Bash\(node:\*\) would let any program run, so it is left out/)
          assert.equal((yield* run(["run", "c"])).code, 6)
        })
      )
  )

  it.effect.runIf(isFull)(
    "reads the rules of a project and a user in the settings of Claude Code, and leaves out unknown tools",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { cwd, env, has } = yield* world(
            running("touch a && touch b"),
            ...answered("touch a && touch b"),
            ...answered("touch c"),
            say("Done.")
          )
          const putRules = (folder: string, permissions: object) => {
            mkdirSync(join(folder, ".claude"), { recursive: true })
            writeFileSync(join(folder, ".claude/settings.json"), JSON.stringify({ permissions }))
          }
          const home = program.folder()
          const runAs = (args: ReadonlyArray<string>) => program.run(cwd, args, { ...env, HOME: home })
          putRules(cwd, { allow: ["Bash(touch a)", "Bash(node:*)", "Agent(Explore)"], defaultMode: "acceptEdits" })
          putRules(home, { allow: ["Bash(touch b)"], deny: ["Bash(touch c)"] })
          const before = yield* runAs(["run", "a"])
          assert.deepEqual([before.code, has("a")], [6, false], before.err)
          assert.match(before.err, /not trusted: new permissions \.claude\/settings\.json/)
          const trusted = yield* runAs(["run", "--trust", "b"])
          assert.deepEqual([trusted.code, has("a"), has("b")], [0, true, true], trusted.err)
          assert.match(trusted.err, /Bash\(node:\*\) would let any program run, so it is left out/)
          assert.match(
            trusted.err,
            /permissions\.allow: "Agent\(Explore\)" is no rule: there is no tool "Agent"; it is left out/
          )
          putRules(home, { allow: "Bash(touch c)", ask: [7], deny: ["Bash(touch c)"] })
          const refused = yield* runAs(["run", "--yolo", "c"])
          assert.deepEqual([refused.code, has("c")], [0, false], refused.err)
          assert.match(refused.err, /permissions\.allow is no list of texts[^]*permissions\.ask is no list of texts/)
          writeFileSync(join(home, ".claude/settings.json"), "{ // mine")
          const unread = yield* runAs(["run", "d"])
          assert.match(unread.err, /\.claude\/settings\.json: it is no object of JSON, so none of its rules counts/)
        })
      )
  )

  it.effect.runIf(isFull)("hides files that no tool may read from listings and searches too, and behind links", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const calls = [
          { call: "grep", id: "toolu_a", input: { pattern: "TOKEN" } },
          { call: "glob", id: "toolu_b", input: { pattern: "**/*" } },
          { call: "ls", id: "toolu_c", input: { path: "victim" } },
          { call: "read_file", id: "toolu_d", input: { file_path: "link.txt" } },
          { call: "execute", id: "toolu_e", input: { command: "echo it runs" } }
        ]
        const { cwd, requests, run } = yield* world(stream(answer(calls)), say("So."))
        writeFileSync(join(cwd, ".env"), "TOKEN=hush")
        writeFileSync(join(cwd, "victim/.env"), "TOKEN=hush")
        writeFileSync(join(cwd, "open.txt"), "TOKEN=open")
        symlinkSync(".env", join(cwd, "link.txt"))
        const done = yield* run(["run", "a", "--deny", "Read(.env)", "--allow", "Bash(echo:*)"])
        assert.equal(done.code, 0, done.err)
        const last = JSON.stringify(requests.at(-1)?.body.messages)
        assert.notInclude(last, "hush")
        assert.notInclude(last, "/.env")
        assert.include(last, "open.txt")
        assert.include(last, "it runs")
      })
    )
  )
})
