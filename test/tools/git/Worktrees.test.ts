/** Several at work on one repository at once, and their merge. */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Agent, Approval, Backend, Sandbox } from "effect-deepagents"
import { FileTools } from "effect-deepagents/backends"
import { TestChatModel } from "effect-deepagents/testing"
import { Worktrees } from "effect-deepagents/tools"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { git, inRepository } from "./repository.ts"

const write = (path: string, content: string) => Backend.Backend.use((backend) => backend.write(path, content))

const fails = (effect: Effect.Effect<unknown, { readonly message: string }, Sandbox.Sandbox>) =>
  Effect.map(Effect.flip(effect), ({ message }) => message)

describe("work in a worktree", () => {
  it.live("has the branch's files as its root, for files and commands; leaves a commit and no folder", () =>
    inRepository({ "a.txt": "one\n" }, (root) =>
      Effect.gen(function* () {
        const worked = yield* Worktrees.within(
          "work/one",
          Effect.gen(function* () {
            yield* write("/b.txt", "new\n")
            const sandbox = yield* Sandbox.Sandbox
            const { output } = yield* sandbox.execute("cat a.txt; echo two >> a.txt; git branch --show-current")
            return output
          })
        )
        assert.strictEqual(worked.value, "one\nwork/one\n")
        assert.include(worked.changes, "2 files changed")
        assert.strictEqual(git(root, "show", "work/one:a.txt"), "one\ntwo\n")
        assert.strictEqual(git(root, "show", "work/one:b.txt"), "new\n")
        assert.strictEqual(git(root, "status", "--short"), "")
        assert.strictEqual(git(root, "worktree", "list").trim().split("\n").length, 1)
        assert.isFalse(existsSync(join(root, "b.txt")))
      })
    )
  )

  it.live("says so if nothing was changed, and goes on with a branch that there is", () =>
    inRepository({ a: "1" }, () =>
      Effect.gen(function* () {
        assert.notProperty(yield* Worktrees.within("w", Effect.void), "commit")
        yield* Worktrees.within("w", write("/b", "1"))
        const { value } = yield* Worktrees.within(
          "w",
          Backend.Backend.use((backend) => backend.read("/b"))
        )
        assert.deepInclude(value, { text: "1", path: "/b" })
      })
    )
  )

  it.live("does not lead out of its folder by a path", () =>
    inRepository({ a: "1" }, () =>
      Effect.gen(function* () {
        for (const path of ["/../../a", "../x", "~/x"]) {
          const error = yield* Effect.flip(Worktrees.within("w", write(path, "x")))
          assert.include(
            ["OutsideRoot", "InvalidPath"],
            "reason" in error && typeof error.reason === "object" ? error.reason._tag : ""
          )
        }
      })
    )
  )

  it.live("keeps what was done when it is interrupted or fails", () =>
    inRepository({ a: "1" }, (root) =>
      Effect.gen(function* () {
        const begun = yield* Deferred.make<void>()
        const work = write("/half", "done").pipe(
          Effect.andThen(Deferred.succeed(begun, undefined)),
          Effect.andThen(Effect.never)
        )
        const fiber = yield* Effect.forkChild(Worktrees.within("half", work))
        yield* Deferred.await(begun)
        yield* Fiber.interrupt(fiber)
        assert.strictEqual(git(root, "show", "half:half"), "done")
        yield* Effect.exit(Worktrees.within("failed", Effect.andThen(write("/f", "1"), Effect.fail("no"))))
        assert.strictEqual(git(root, "show", "failed:f"), "1")
        assert.strictEqual(git(root, "worktree", "list").trim().split("\n").length, 1)
      })
    )
  )

  it.live("is refused for a branch that is checked out elsewhere, and for what is no branch", () =>
    inRepository({ a: "1" }, () =>
      Effect.gen(function* () {
        assert.include(yield* fails(Worktrees.within("main", Effect.void)), "already")
        assert.include(yield* fails(Worktrees.within("--force", Effect.void)), "can't be the name of a branch")
      })
    )
  )
})

describe("merge", () => {
  it.live("takes what fits, tells conflicts with their files, and leaves nothing half merged", () =>
    inRepository({ "a.txt": "one\n" }, (root) =>
      Effect.gen(function* () {
        yield* Effect.all(
          [
            Worktrees.within("left", write("/a.txt", "left\n")),
            Worktrees.within("right", write("/a.txt", "right\n")),
            Worktrees.within("other", write("/b.txt", "b\n")),
            Worktrees.within("idle", Effect.void)
          ],
          { concurrency: "unbounded" }
        )
        const merged = yield* Worktrees.merge(["left", "right", "other", "idle"])
        assert.deepStrictEqual(
          merged.map(({ _tag, branch }) => [branch, _tag]),
          [
            ["left", "Merged"],
            ["right", "Conflicts"],
            ["other", "Merged"],
            ["idle", "UpToDate"]
          ]
        )
        assert.deepInclude(merged[1], { files: ["a.txt"] })
        assert.include(merged[1]?._tag === "Conflicts" ? merged[1].diff : "", "<<<<<<<")
        assert.strictEqual(readFileSync(join(root, "a.txt"), "utf8"), "left\n")
        assert.strictEqual(git(root, "status", "--short"), "")
      })
    )
  )

  it.live("is refused where something is uncommitted", () =>
    inRepository({ a: "1" }, (root) =>
      Effect.gen(function* () {
        yield* Worktrees.within("w", write("/b", "1"))
        writeFileSync(join(root, "a"), "mine")
        assert.include(yield* fails(Worktrees.merge(["w"])), "something is uncommitted")
        assert.strictEqual(readFileSync(join(root, "a"), "utf8"), "mine")
      })
    )
  )
})

it.live("a lead has two coders work at once, and merges what they did", () =>
  inRepository({ "a.txt": "one\n" }, (root) =>
    Effect.gen(function* () {
      const coder = Agent.make({
        name: "coder",
        description: "Writes code",
        prompt: "You code.",
        tools: FileTools.make()
      }).pipe(
        Agent.provide(
          TestChatModel.reactive(({ messages }) => {
            const task = messages.find(({ role }) => role === "human")
            const name = task?.content[0]?.type === "text" ? task.content[0].text : ""
            return messages.some(({ role }) => role === "tool")
              ? "done"
              : TestChatModel.calls([{ name: "write_file", arguments: { file_path: `/${name}`, content: name } }])
          })
        )
      )
      const [code, merge] = Worktrees.tools({ agent: coder })
      const lead = Agent.make({ name: "lead", prompt: "You divide the work.", tools: [code, merge] })
      const result = yield* Agent.run(lead, "Go").pipe(
        Effect.provide(
          TestChatModel.script([
            TestChatModel.calls([
              { name: "code_in_worktree", arguments: { branch: "one", task: "x" } },
              { name: "code_in_worktree", arguments: { branch: "two", task: "y" } }
            ]),
            TestChatModel.calls([{ name: "merge_branches", arguments: { branches: ["one", "two"] } }]),
            "merged"
          ])
        ),
        Effect.provideService(Approval.Approvals, { decide: (request) => Effect.succeed(Approval.approve(request)) })
      )
      assert.strictEqual(result.text, "merged")
      assert.strictEqual(readFileSync(join(root, "x"), "utf8"), "x")
      assert.strictEqual(readFileSync(join(root, "y"), "utf8"), "y")
    })
  )
)
