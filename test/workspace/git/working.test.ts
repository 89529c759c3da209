/** Worktrees on the files of a whole machine: one namespace of paths, and no change outside of the worktree. */
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Agent, Approval, Backend, Message, Sandbox } from "effect-deepagents"
import { FileTools } from "effect-deepagents/backends"
import * as HostShell from "effect-deepagents/backends/HostShell"
import { TestChatModel } from "effect-deepagents/testing"
import { Worktrees } from "effect-deepagents/workspace"
import * as Effect from "effect/Effect"
import { git } from "./repository.ts"

/** Runs a test in a repository, as the program runs: with the paths of this machine. */
const onHost = <A, E>(test: (root: string) => Effect.Effect<A, E, Sandbox.Sandbox | Backend.Backend>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const root = realpathSync(mkdtempSync(join(tmpdir(), "worktrees-")))
      git(root, "init", "--quiet", "--initial-branch=main")
      writeFileSync(join(root, "a.txt"), "one\n")
      git(root, "add", "--all")
      git(root, "commit", "--quiet", "-m", "first")
      return root
    }),
    (root) =>
      Effect.suspend(() => test(root)).pipe(
        Effect.provide(HostShell.layer({ cwd: root, env: { inherit: "all", set: { GIT_CONFIG_GLOBAL: "/dev/null" } } }))
      ),
    (root) => Effect.sync(() => rmSync(root, { recursive: true, force: true }))
  )

const backend = Backend.Backend

describe("a worktree on this machine", () => {
  it.live("is the working folder, with the machine's paths for files and commands", () =>
    onHost((root) =>
      Effect.gen(function* () {
        const folder = join(root, ".worktrees/part")
        const { value } = yield* Worktrees.runOnBranch(
          "part",
          Effect.gen(function* () {
            const files = yield* backend
            const sandbox = yield* Sandbox.Sandbox
            const { output } = yield* sandbox.execute("pwd; echo two >> a.txt")
            const written = yield* files.write("src/b.txt", "new\n")
            const read = yield* files.read(join(folder, "src/b.txt"))
            const found = yield* files.glob({ pattern: "**/*.txt" })
            yield* files.move("src/b.txt", join(folder, "c.txt"))
            return { cwd: files.paths?.cwd, output, read, found: found.entries.map(({ path }) => path), written }
          })
        )
        assert.strictEqual(value.cwd, folder)
        assert.strictEqual(value.output, `${folder}\n`)
        assert.strictEqual(value.written.path, join(folder, "src/b.txt"))
        assert.strictEqual(value.read.path, join(folder, "src/b.txt"))
        assert.sameMembers(value.found, [join(folder, "a.txt"), join(folder, "src/b.txt")])
        assert.strictEqual(git(root, "show", "part:a.txt"), "one\ntwo\n")
        assert.strictEqual(git(root, "show", "part:c.txt"), "new\n")
        assert.strictEqual(readFileSync(join(root, "a.txt"), "utf8"), "one\n")
        assert.isFalse(existsSync(folder))
      })
    )
  )

  it.live("can be left for reading, and not for a change, by no path and no link", () =>
    onHost((root) =>
      Effect.gen(function* () {
        symlinkSync("../..", join(root, "up"))
        git(root, "add", "--all")
        git(root, "commit", "--quiet", "-m", "a link")
        yield* Worktrees.runOnBranch(
          "part",
          Effect.gen(function* () {
            const files = yield* backend
            assert.deepInclude(yield* files.read(join(root, "a.txt")), { text: "one" })
            const outside = [join(root, "a.txt"), "../../a.txt", "up/a.txt", join(root, ".worktrees/part/../../a.txt")]
            for (const path of outside) {
              const change = [{ old: "one", new: "x" }]
              for (const work of [
                files.write(path, "x"),
                files.edit(path, change),
                files.delete(path),
                files.move(path, "mine"),
                files.move("a.txt", `${path}.moved`),
                files.permit?.({ text: "", changes: [{ operation: "write", path }] }) ?? Effect.void
              ]) {
                const error = yield* Effect.flip(work)
                assert.include(["OutsideRoot", "Denied", "NotFound"], error.reason._tag, `${path} ${error.message}`)
              }
              const [uploaded] = yield* files.upload([{ path, content: new Uint8Array() }])
              assert.isFalse(uploaded?.ok, path)
            }
          })
        )
        assert.strictEqual(readFileSync(join(root, "a.txt"), "utf8"), "one\n")
        assert.strictEqual(git(root, "status", "--short"), "")
      })
    )
  )

  it.live("lets two coders change one file at once, and hands conflicts back whole", () =>
    onHost((root) =>
      Effect.gen(function* () {
        const coder = Agent.make({ name: "coder", prompt: "You code.", tools: FileTools.make({ execute: true }) })
        const lead = Agent.make({ name: "lead", prompt: "You lead.", tools: Worktrees.tools({ agent: coder }) })
        const task = (branch: string, word: string) => ({
          name: "code_in_worktree",
          arguments: { branch, task: `Write ${word}` }
        })
        const model = TestChatModel.reactive(({ messages }) => {
          const first = Message.text(messages.find(({ role }) => role === "human") ?? Message.human(""))
          const word = /Write (\w+)/.exec(first)?.[1]
          const last = messages.at(-1)
          if (word !== undefined) {
            return last?.role === "tool"
              ? "Written."
              : TestChatModel.calls([{ name: "execute", arguments: { command: `echo ${word} > a.txt; sleep 0.2` } }])
          }
          const calls = messages.flatMap((message) => (message.role === "tool" ? [message.toolName] : []))
          if (calls.length === 0) return TestChatModel.calls([task("left", "left"), task("right", "right")])
          return calls.at(-1) === "merge_branches"
            ? "Done."
            : TestChatModel.calls([{ name: "merge_branches", arguments: { branches: ["left", "right"] } }])
        })
        const { messages } = yield* Agent.run(lead, "Go").pipe(
          Effect.provide(model),
          Effect.provideService(Approval.Approvals, {
            decide: (request) => Effect.succeed(Approval.approve(request))
          })
        )
        const merged = Message.text(messages.at(-2) ?? Message.human(""))
        assert.match(merged, /left: merged/)
        assert.match(merged, /right: CONFLICTS in a\.txt; nothing of it was merged[^]*left[^]*right/)
        assert.strictEqual(readFileSync(join(root, "a.txt"), "utf8"), "left\n")
        assert.strictEqual(git(root, "show", "right:a.txt"), "right\n")
        assert.strictEqual(git(root, "status", "--short"), "")
      })
    )
  )
})
