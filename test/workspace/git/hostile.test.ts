/** Content of a repository runs no program by git, unless a person approved that very program. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Agent, Approval, Backend, type Json, Message, Sandbox, Tool } from "effect-deepagents"
import { CustomSandbox, FileTools } from "effect-deepagents/backends"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import { TestChatModel } from "effect-deepagents/testing"
import { Git, Worktrees } from "effect-deepagents/workspace"
import * as Effect from "effect/Effect"
import * as Shells from "../../backends/fixtures/localShell.ts"
import { git, inRepository } from "./repository.ts"

type Files = Readonly<Record<string, string>>

const plant = (root: string, files: Files): void => {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), content, { mode: 0o755 })
  }
}

/** A command of git's settings that leaves a mark. */
const marking = (root: string, name: string): string => {
  plant(root, { ".git/mark": `#!/bin/sh\necho "$1" >> "${join(root, ".git/ran")}"\ncat\n` })
  return `${join(root, ".git/mark")} ${name}`
}

/** A file of settings beside a repository. */
const personal = (root: string): string => `${root}.gitconfig`

const ran = (root: string): string =>
  existsSync(join(root, ".git/ran")) ? readFileSync(join(root, ".git/ran"), "utf8") : ""

const commitTool = Git.make().filter(({ name }) => name === "git_commit")

/** Runs an agent that calls one tool. Returns the questions and the tool's result. */
const calling = <R>(
  tools: ReadonlyArray<Tool.Tool<R>>,
  name: string,
  args: Json.JsonObject,
  answer: (request: Approval.Request) => boolean = () => true
) =>
  Effect.gen(function* () {
    const asked: Array<string> = []
    const result = yield* Agent.run(Agent.make({ name: "agent", prompt: "You are tested.", tools }), "Go").pipe(
      Effect.provide(TestChatModel.script([TestChatModel.calls([{ name, arguments: args }]), "done"])),
      Effect.provideService(Approval.Approvals, {
        decide: (request) =>
          Effect.sync(() => {
            asked.push(request.description)
            return answer(request) ? Approval.approve(request) : Approval.reject(request, "not that")
          })
      })
    )
    const said = result.messages.flatMap((one) => (one.role === "tool" ? [Message.text(one)] : [])).join("\n")
    return { asked, said }
  })

/** All that settings, attributes, hooks and files of a repository can name to be run, or to lead elsewhere. */
const trap = (root: string, work: string): void => {
  const dir = join(root, ".git")
  const config = [
    `[core]\n fsmonitor = ${marking(root, "fsmonitor")}\n editor = ${marking(root, "editor")}`,
    ` pager = ${marking(root, "pager")}\n sshCommand = ${marking(root, "ssh")}\n askPass = ${marking(root, "askpass")}`,
    ` alternateRefsCommand = ${marking(root, "refs")}\n hooksPath = ${join(root, "evil")}\n bare = false`,
    `[sequence]\n editor = ${marking(root, "sequence")}`,
    `[filter "x"]\n clean = ${marking(root, "clean")}\n smudge = ${marking(root, "smudge")}\n required = true`,
    `[filter "y"]\n process = ${marking(root, "process")}\n required = true`,
    `[diff]\n external = ${marking(root, "external")}\n ignoreSubmodules = none\n submodule = diff`,
    `[diff "x"]\n textconv = ${marking(root, "textconv")}\n command = ${marking(root, "command")}`,
    `[merge]\n verifySignatures = true\n[merge "x"]\n driver = ${marking(root, "merge")}`,
    `[merge "text"]\n driver = ${marking(root, "text")}`,
    `[commit]\n gpgSign = true\n verbose = true\n[tag]\n gpgSign = true\n[gpg]\n program = ${join(root, "evil/gpg")}`,
    `[gpg "ssh"]\n defaultKeyCommand = ${marking(root, "key")}\n[log]\n showSignature = true`,
    `[branch "main"]\n mergeOptions = -s evil\n[credential]\n helper = ${marking(root, "credential")}`,
    `[submodule]\n recurse = true\n[status]\n submoduleSummary = true\n[rerere]\n enabled = true`,
    `[gc]\n auto = 1\n recentObjectsHook = ${marking(root, "recent")}\n[maintenance]\n auto = true`,
    `[hook "h"]\n event = pre-commit\n command = ${marking(root, "hook")}\n[alias]\n add = !false`,
    `[include]\n path = ${join(root, "evil/more")}\n[extensions]\n worktreeConfig = true`
  ]
  writeFileSync(join(dir, "config"), `${readFileSync(join(dir, "config"), "utf8")}\n${config.join("\n")}\n`)
  plant(root, {
    "evil/more": `[filter "z"]\n clean = ${marking(root, "included")}\n`,
    ".git/config.worktree": `[filter "w"]\n clean = ${marking(root, "worktree")}\n`,
    ".git/info/attributes": "*.y filter=y\n*.z filter=z\n*.w filter=w\n",
    "evil/gpg": `#!/bin/sh\necho gpg >> ${join(dir, "ran")}\n`
  })
  for (const hook of [
    "pre-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "post-checkout",
    "post-merge",
    "pre-merge-commit",
    "post-index-change",
    "reference-transaction",
    "post-rewrite",
    "pre-auto-gc"
  ]) {
    const script = `#!/bin/sh\necho ${hook} >> ${join(dir, "ran")}\n`
    plant(root, { [`.git/hooks/${hook}`]: script, [`evil/${hook}`]: script })
  }
  plant(work, {
    ".gitattributes": "*.txt filter=x diff=x merge=x\n",
    "new.txt": "1",
    "n.y": "1",
    "n.z": "1",
    "n.w": "1"
  })
}

/** A repository in the repository, known to it, whose own settings name programs. */
const inner = (root: string, work: string): void => {
  const sub = join(work, "sub")
  plant(sub, { "f.txt": "1" })
  git(sub, "init", "--quiet", "--initial-branch=main")
  git(sub, "add", ".")
  git(sub, "commit", "--quiet", "-m", "inner")
  git(work, "add", "sub")
  git(work, "commit", "--quiet", "-m", "with an inner one")
  plant(sub, {
    ".git/info/attributes": "* filter=x\n",
    ".git/config": `${readFileSync(join(sub, ".git/config"), "utf8")}\n[core]\n fsmonitor = ${marking(root, "inner-fsmonitor")}\n[filter "x"]\n clean = ${marking(root, "inner-clean")}\n`,
    "f.txt": "2"
  })
}

const worktrees = (root: string): number => git(root, "worktree", "list").trim().split("\n").length

describe("a coder with file tools only", () => {
  it.live("can't lead git to a repository of its own by .git, nor lose the work", () =>
    inRepository({ "a.txt": "one\n" }, (root) =>
      Effect.gen(function* () {
        const write = (file_path: string, content: string) => ({
          name: "write_file",
          arguments: { file_path, content }
        })
        const evil = `[core]\n repositoryformatversion = 0\n[filter "x"]\n clean = ${marking(root, "clean")}\n`
        const coder = Agent.make({
          name: "coder",
          description: "Codes",
          prompt: "You code.",
          tools: FileTools.make()
        }).pipe(
          Agent.provide(
            TestChatModel.script([
              TestChatModel.calls([{ name: "read_file", arguments: { file_path: "/.git" } }]),
              TestChatModel.calls([
                write("/work.txt", "work"),
                write("/g/config", evil),
                write("/.gitattributes", "* filter=x\n"),
                write("/.git", "gitdir: ./g"),
                write("/g/HEAD", "ref: refs/heads/main\n"),
                write("/g/objects/x", ""),
                write("/g/refs/x", "")
              ]),
              "done"
            ])
          )
        )
        const [code] = Worktrees.tools({ agent: coder })
        const { asked } = yield* calling([code], "code_in_worktree", { branch: "work", task: "Do it" }, () => false)
        assert.isTrue(asked.some((text) => text.includes("write /.worktrees/work/.git")))
        assert.isTrue(asked.some((text) => text.includes("write /.worktrees/work/g/")))
        assert.strictEqual(ran(root), "")
        assert.strictEqual(git(root, "show", "work:work.txt"), "work")
        assert.strictEqual(worktrees(root), 1)
      })
    )
  )

  it.live("can't have a commit run a program by the settings of the repository", () =>
    inRepository({ "a.txt": "one\n" }, (root) =>
      Effect.gen(function* () {
        const before = readFileSync(join(root, ".git/config"), "utf8")
        const [write] = FileTools.make({ only: ["write_file"] })
        assert.isDefined(write)
        for (const path of ["/.git/config.worktree", "/.git/hooks/pre-commit", "/.GIT/hooks/pre-commit"]) {
          const { asked, said } = yield* calling([write], "write_file", { file_path: path, content: "x" }, () => false)
          assert.include(asked.join(), `write ${path}`)
          assert.include(said, "not that")
        }
        assert.strictEqual(readFileSync(join(root, ".git/config"), "utf8"), before)
      })
    )
  )
})

describe("work in a worktree", () => {
  it.live("is committed without anything that .git, settings, attributes and hooks name by then", () =>
    inRepository({ "a.txt": "one\n", "b.txt": "one\n" }, (root) =>
      Effect.gen(function* () {
        const work = join(root, ".worktrees/work")
        const worked = yield* Worktrees.runOnBranch(
          "work",
          Effect.sync(() => {
            inner(root, work)
            trap(root, work)
            // The folder's own .git leads to a repository that was made for it.
            plant(work, { "a.txt": "two\n" })
            git(root, "init", "--quiet", join(work, "g"))
            plant(join(work, "g/.git"), {
              config: `[core]\n repositoryformatversion = 0\n worktree = /\n[filter "x"]\n clean = ${marking(root, "own")}\n`,
              commondir: ".\n"
            })
            writeFileSync(join(work, ".git"), "gitdir: ./g/.git\n")
            writeFileSync(join(root, ".git/commondir"), "../.worktrees/work/g/.git\n")
            rmSync(join(root, ".git/ran"), { force: true })
          })
        )
        assert.strictEqual(ran(root), "")
        rmSync(join(root, ".git/commondir"))
        assert.strictEqual(git(root, "cat-file", "-p", "work:a.txt"), "two\n")
        assert.strictEqual(git(root, "cat-file", "-p", "work:new.txt"), "1")
        // The inner repository has commits that are nowhere else.
        assert.strictEqual(worked.kept, "/.worktrees/work")
        assert.isTrue(existsSync(join(work, "sub/f.txt")))
        // The traps are good: a person's own git runs them.
        git(root, "worktree", "repair", work)
        writeFileSync(join(work, "a.txt"), "three\n")
        const bearable = ["filter.y.process=", "filter.y.required=false", "commit.gpgSign=false"]
        git(work, ...bearable.flatMap((one) => ["-c", one]), "commit", "--quiet", "--all", "-m", "own")
        for (const name of ["fsmonitor", "clean", "pre-commit", "inner-clean"]) assert.include(ran(root), name)
      })
    )
  )

  it.live("is begun, merged and told without them, conflicts and all", () =>
    inRepository({ "a.txt": "one\n", "same.txt": "1\n2\n3\n4\n5\n6\n7\n" }, (root) =>
      Effect.gen(function* () {
        const write = (path: string, content: string) => Backend.Backend.use((backend) => backend.write(path, content))
        trap(root, join(root, "unused"))
        rmSync(join(root, ".git/ran"), { force: true })
        plant(root, { ".git/info/attributes": "*.txt filter=x diff=x merge=x\n*.y filter=y\n" })
        const both = (name: string, text: string, line: number) =>
          Worktrees.runOnBranch(
            name,
            Effect.andThen(
              write("/a.txt", text),
              Backend.Backend.use((backend) => backend.edit("/same.txt", [{ old: `${line}`, new: name }]))
            )
          )
        yield* both("left", "left\n", 1)
        yield* Worktrees.runOnBranch(
          "right",
          Backend.Backend.use((backend) => backend.edit("/same.txt", [{ old: "7", new: "right" }]))
        )
        yield* both("third", "third\n", 4)
        const merged = yield* Worktrees.merge(["left", "right", "third"])
        assert.deepStrictEqual(
          merged.map(({ _tag }) => _tag),
          ["Merged", "Merged", "Conflicts"]
        )
        assert.strictEqual(ran(root), "")
        assert.strictEqual(readFileSync(join(root, "same.txt"), "utf8"), "left\n2\n3\n4\n5\n6\nright\n")
        assert.strictEqual(readFileSync(join(root, "a.txt"), "utf8"), "left\n")
        const third = merged[2]
        assert.include(third?._tag === "Conflicts" ? third.diff : "", "<<<<<<<")
        assert.strictEqual(worktrees(root), 1)
      })
    )
  )
})

describe("a commit", () => {
  it.live("asks once if the repository runs nothing", () =>
    inRepository({ "a.txt": "one\n" }, (root) =>
      Effect.gen(function* () {
        plant(root, { "a.txt": "two\n", ".git/hooks/pre-push": "#!/bin/sh\n", "sub/.gitkeep": "" })
        const { asked, said } = yield* calling(commitTool, "git_commit", { all: true, message: "two" })
        assert.strictEqual(asked.length, 1)
        assert.include(said, "2 files changed")
      })
    )
  )

  it.live("names the hooks and filters that would run, and runs them only if that is approved", () =>
    inRepository({ "a.txt": "one\n" }, (root) =>
      Effect.gen(function* () {
        trap(root, root)
        plant(root, { "evil/pre-commit": `#!/bin/sh\necho pre-commit >> ${join(root, ".git/ran")}\n` })
        for (const name of ['hook "h"', 'gpg "ssh"', 'filter "y"']) {
          git(root, "config", "--remove-section", name.replace(/ "(.*)"/, ".$1"))
        }
        git(root, "config", "--unset", "commit.gpgSign")
        const refused = yield* calling(commitTool, "git_commit", { all: true, message: "two" }, ({ description }) => {
          return !description.includes("runs:")
        })
        assert.strictEqual(refused.asked.length, 2)
        for (const told of [
          `hook pre-commit (${join(root, "evil/pre-commit")}`,
          "hook commit-msg",
          `filter.x.clean: ${join(root, ".git/mark")} clean`,
          "filter.z.clean"
        ]) {
          assert.include(refused.asked[1], told)
          assert.include(refused.said, told)
        }
        assert.include(refused.said, "not that")
        assert.strictEqual(ran(root), "")
        assert.strictEqual(
          git(root, "-c", "core.fsmonitor=false", "log", "--format=%s", "--no-show-signature").trim(),
          "first"
        )

        const done = yield* calling(commitTool, "git_commit", { all: true, message: "two" })
        assert.include(done.said, "two")
        assert.include(ran(root), "pre-commit")
        assert.include(ran(root), "clean")
        assert.notInclude(ran(root), "fsmonitor")
      })
    )
  )

  it.live("names the signing program, and fails where nobody can be asked", () =>
    inRepository({ "a.txt": "one\n" }, (root) =>
      Effect.gen(function* () {
        git(root, "config", "gpg.program", marking(root, "gpg"))
        git(root, "config", "commit.gpgSign", "true")
        plant(root, { "a.txt": "two\n" })
        const [tool] = commitTool
        assert.isDefined(tool)
        const { message } = yield* Tool.run(tool, { all: true, message: "two" }).pipe(
          Effect.provideService(Approval.Approvals, { decide: () => Effect.die("nobody is asked") }),
          Effect.flip
        )
        assert.include(message, `gpg.program: ${join(root, ".git/mark")} gpg`)
        assert.include(message, "nobody is there to ask")
        assert.strictEqual(ran(root), "")
      })
    )
  )

  it.live("whose programs were approved for good asks again when one of them changes", () =>
    inRepository({ "a.txt": "one\n" }, (root) =>
      Effect.gen(function* () {
        plant(root, { ".git/hooks/pre-commit": "#!/bin/sh\n" })
        const asked: Array<string> = []
        const commit = (content: string) =>
          TestChatModel.calls([
            { name: "write_file", arguments: { file_path: `/${content}`, content } },
            { name: "git_commit", arguments: { all: true, message: content } }
          ])
        const tools = [...FileTools.make(), ...commitTool]
        yield* Agent.run(
          Agent.make({ name: "agent", prompt: "You are tested.", toolConcurrency: 1, tools }),
          "Go"
        ).pipe(
          Effect.provide(TestChatModel.script([commit("b"), commit("c"), commit("d"), "done"])),
          Effect.provideService(Approval.Approvals, {
            decide: (request) =>
              Effect.sync(() => {
                if (request.description.includes("runs:")) asked.push(request.description)
                else if (request.arguments["message"] === "d")
                  plant(root, { ".git/hooks/pre-commit": "#!/bin/sh\n#\n" })
                return Approval.approve(request, { always: request.description.includes("runs:") })
              })
          })
        )
        assert.strictEqual(git(root, "log", "--format=%s").trim(), "d\nc\nb\nfirst")
        assert.strictEqual(asked.length, 2)
      })
    )
  )

  it.live("is refused if a hook or a filter changed while it was being approved", () =>
    inRepository({ "a.txt": "one\n" }, (root) =>
      Effect.gen(function* () {
        const hook = join(root, ".git/hooks/pre-commit")
        const mark = join(root, ".git/ran")
        plant(root, { ".git/hooks/pre-commit": "#!/bin/sh\n", "a.txt": "two\n" })
        const changes = [
          () => writeFileSync(hook, `#!/bin/sh\ntouch ${mark}\n`),
          () => git(root, "config", "filter.x.clean", `touch ${mark}`),
          () => writeFileSync(join(root, ".git/hooks/post-commit"), `#!/bin/sh\ntouch ${mark}\n`, { mode: 0o755 })
        ]
        for (const change of changes) {
          const { asked, said } = yield* calling(commitTool, "git_commit", { all: true, message: "two" }, (request) => {
            if (request.description.includes("runs:")) change()
            return true
          })
          assert.strictEqual(asked.length, 2)
          assert.include(said, "changed while they were being approved")
        }
        assert.isFalse(existsSync(mark))
      })
    )
  )

  it.live("runs nothing of a nested repository, also without changes to commit", () =>
    inRepository({ "a.txt": "one\n" }, (root) =>
      Effect.gen(function* () {
        inner(root, root)
        rmSync(join(root, ".git/ran"), { force: true })
        for (const args of [{ all: true }, { paths: ["a.txt"] }, { paths: ["sub"] }]) {
          const { said } = yield* calling(commitTool, "git_commit", { ...args, message: "nothing" })
          assert.include(said, "nothing to commit")
        }
        plant(root, { "a.txt": "two\n", "new/sub/x": "1", "new/y": "1" })
        yield* calling(commitTool, "git_commit", { paths: ["new/sub/x"], message: "one" })
        assert.strictEqual(git(root, "show", "--name-only", "--format=").trim(), "new/sub/x")
        yield* calling(commitTool, "git_commit", { all: true, message: "all" })
        assert.strictEqual(git(root, "show", "--name-only", "--format=").trim(), "a.txt\nnew/y")
        assert.strictEqual(ran(root), "")
      })
    )
  )

  it.live("is of the folder that the tools have, in a repository above it", () =>
    inRepository({ "a.txt": "one\n" }, (root) =>
      Effect.gen(function* () {
        plant(root, { "part/b.txt": "1", "a.txt": "two\n" })
        const tools = Git.make({ repository: "/part" }).filter(({ name }) => name === "git_commit")
        yield* calling(tools, "git_commit", { paths: ["b.txt"], message: "b" })
        assert.strictEqual(git(root, "show", "--name-only", "--format=").trim(), "part/b.txt")
        yield* calling(tools, "git_commit", { all: true, message: "rest" })
        assert.strictEqual(git(root, "show", "--name-only", "--format=").trim(), "a.txt")
      })
    )
  )
})

it.live("a check-out names the filters that it would run", () =>
  inRepository({ "a.txt": "one\n", ".gitattributes": "*.txt filter=x\n" }, (root) =>
    Effect.gen(function* () {
      git(root, "branch", "other")
      git(root, "config", "filter.x.smudge", marking(root, "smudge"))
      const tools = Git.make()
      const { asked, said } = yield* calling(
        tools,
        "git_worktree",
        { action: "add", path: "t", branch: "other" },
        (request) => {
          return !request.description.includes("runs:")
        }
      )
      assert.include(asked[1], "filter.x.smudge: /")
      assert.include(said, "not that")
      assert.strictEqual(ran(root), "")
      const created = yield* calling(tools, "git_branch", { action: "create", name: "new" })
      assert.strictEqual(created.asked.length, 1)
    })
  )
)

it.live("reads a repository with its first settings, also after its .git changes", () =>
  inRepository({ "a.txt": "one\n", ".gitattributes": "* filter=x\n" }, (root) =>
    Effect.gen(function* () {
      const tools = Git.reading()
      const status = Effect.map(calling(tools, "git_status", {}), ({ said }) => said)
      yield* status
      const evil = `[core]\n repositoryformatversion = 0\n fsmonitor = ${marking(root, "x")}\n[filter "x"]\n clean = ${marking(root, "x")}\n`
      git(root, "init", "--quiet", "g")
      plant(root, { "g/.git/config": evil, ".git/commondir": "../g/.git\n", "a.txt": "two\n" })
      yield* status
      assert.strictEqual(ran(root), "")
      rmSync(join(root, ".git/commondir"))
      assert.include(yield* status, " M a.txt")
    })
  )
)

it.live("filters of the person's own settings run, unasked: in a worktree and in a commit", () =>
  inRepository({ "a.txt": "one\n", ".gitattributes": "*.big filter=own\n" }, (root) =>
    Effect.gen(function* () {
      const home = personal(root)
      writeFileSync(
        home,
        `[user]\n name = Ada\n email = ada@a.b\n[filter "own"]\n clean = tr a-z A-Z\n smudge = tr A-Z a-z\n`
      )
      yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(home, { force: true })))
      const write = (path: string) => Backend.Backend.use((backend) => backend.write(path, "text"))
      yield* Worktrees.runOnBranch("w", write("/one.big"))
      yield* write("/two.big")
      const { asked } = yield* calling(commitTool, "git_commit", { paths: ["two.big"], message: "two" })
      assert.strictEqual(asked.length, 1)
      assert.strictEqual(git(root, "cat-file", "-p", "w:one.big"), "TEXT")
      assert.strictEqual(git(root, "cat-file", "-p", "HEAD:two.big"), "TEXT")
    }).pipe(
      Effect.scoped,
      Effect.provide(LocalShell.layer({ root, env: { set: { GIT_CONFIG_GLOBAL: personal(root) } } }))
    )
  )
)

const anotherMachine = (root: string) =>
  Sandbox.layer(
    Effect.flatMap(Shells.make(), (shell) => {
      writeFileSync(join(shell.folder, ".gitconfig"), `[filter "own"]\n clean = ${marking(root, "home")}\n`)
      return CustomSandbox.make(Shells.functionsOf(shell), { root })
    })
  )

for (const [where, layerOf] of [
  ["the home folder of another machine", anotherMachine],
  [
    "a file of the work tree that they include",
    (root: string) => LocalShell.layer({ root, env: { set: { GIT_CONFIG_GLOBAL: personal(root) } } })
  ]
] as const) {
  it.live(`filters of the person's own settings ask if an agent may have written them: ${where}`, () =>
    inRepository({ "a.txt": "one\n", ".gitattributes": "* filter=own\n" }, (root) =>
      Effect.gen(function* () {
        git(root, "config", "user.name", "Ada")
        git(root, "config", "user.email", "ada@a.b")
        plant(root, { "dotfiles/git": `[filter "own"]\n clean = ${marking(root, "home")}\n`, "a.txt": "two\n" })
        writeFileSync(personal(root), `[include]\n path = ${join(root, "dotfiles/git")}\n`)
        const status = yield* calling(Git.reading(), "git_status", {})
        assert.include(status.said, " M a.txt")
        const diff = yield* calling(Git.reading(), "git_diff", {})
        assert.include(diff.said, "+two")
        const refused = yield* calling(
          commitTool,
          "git_commit",
          { paths: ["a.txt"], message: "two" },
          ({ description }) => !description.includes("runs:")
        )
        assert.lengthOf(refused.asked, 2)
        assert.include(refused.asked[1], "filter.own.clean")
        assert.strictEqual(ran(root), "")
        yield* calling(commitTool, "git_commit", { paths: ["a.txt"], message: "two" })
        assert.include(ran(root), "home")
      }).pipe(
        Effect.provide(layerOf(root)),
        Effect.ensuring(Effect.sync(() => rmSync(personal(root), { force: true })))
      )
    )
  )
}
