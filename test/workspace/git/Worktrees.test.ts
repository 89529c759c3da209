/** Several at work on one repository at once, and their merge. */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Agent, Approval, Backend, BackendError, Message, Sandbox } from "effect-deepagents"
import { FileTools } from "effect-deepagents/backends"
import { TestChatModel } from "effect-deepagents/testing"
import { Worktrees } from "effect-deepagents/workspace"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { isFull } from "../../scale.ts"
import { git, inRepository } from "./repository.ts"

const write = (path: string, content: string) => Backend.Backend.use((backend) => backend.write(path, content))

const fails = (effect: Effect.Effect<unknown, { readonly message: string }, Sandbox.Sandbox>) =>
  Effect.map(Effect.flip(effect), ({ message }) => message)

describe("work in a worktree", () => {
  it.live("has the branch's files as its root, for files and commands; leaves a commit and no folder", () =>
    inRepository({ "a.txt": "one\n" }, (root) =>
      Effect.gen(function* () {
        const worked = yield* Worktrees.runOnBranch(
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
        assert.notProperty(yield* Worktrees.runOnBranch("w", Effect.void), "commit")
        yield* Worktrees.runOnBranch("w", write("/b", "1"))
        const { value } = yield* Worktrees.runOnBranch(
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
          const error = yield* Effect.flip(Worktrees.runOnBranch("w", write(path, "x")))
          assert.include(
            ["OutsideRoot", "InvalidPath"],
            "reason" in error && typeof error.reason === "object" ? error.reason._tag : ""
          )
        }
      })
    )
  )

  it.live("keeps work that is interrupted or fails", () =>
    inRepository({ a: "1" }, (root) =>
      Effect.gen(function* () {
        const begun = yield* Deferred.make<void>()
        const work = write("/half", "done").pipe(
          Effect.andThen(Deferred.succeed(begun, undefined)),
          Effect.andThen(Effect.never)
        )
        const fiber = yield* Effect.forkChild(Worktrees.runOnBranch("half", work))
        yield* Deferred.await(begun)
        yield* Fiber.interrupt(fiber)
        assert.strictEqual(git(root, "show", "half:half"), "done")
        yield* Effect.exit(Worktrees.runOnBranch("failed", Effect.andThen(write("/f", "1"), Effect.fail("no"))))
        assert.strictEqual(git(root, "show", "failed:f"), "1")
        assert.strictEqual(git(root, "worktree", "list").trim().split("\n").length, 1)
      })
    )
  )

  it.live("refuses a branch that is checked out elsewhere, and an invalid branch", () =>
    inRepository({ a: "1" }, () =>
      Effect.gen(function* () {
        assert.include(yield* fails(Worktrees.runOnBranch("main", Effect.void)), "already")
        assert.include(yield* fails(Worktrees.runOnBranch("--force", Effect.void)), "can't be the name of a branch")
      })
    )
  )
})

/** A sandbox that says when git is about to do something, and may break it. */
const watched = (sandbox: Sandbox.Service, word: string, run: (root: string) => Effect.Effect<void>, root: string) =>
  Effect.provideService(Sandbox.Sandbox, {
    ...sandbox,
    executeStream: (command, options) =>
      command.split(/[ ']+/).includes(word)
        ? Stream.unwrap(Effect.as(run(root), sandbox.executeStream(command, options)))
        : sandbox.executeStream(command, options)
  })

const isThere = (root: string, branch: string) => existsSync(join(root, ".worktrees", branch))

describe("a worktree that goes wrong", () => {
  for (const [when, word] of [
    ["begins", "add"],
    ["is staged", "diff-files"],
    ["is committed", "commit"],
    ["is removed", "remove"]
  ] as const) {
    it.live.runIf(isFull || word === "commit")(
      `leaves its commit and no folder if it is interrupted as it ${when}`,
      () =>
        inRepository({ a: "1" }, (root) =>
          Effect.gen(function* () {
            const sandbox = yield* Sandbox.Sandbox
            const reached = yield* Deferred.make<void>()
            const go = yield* Deferred.make<void>()
            const pause = () => Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(go))
            const fiber = yield* Worktrees.runOnBranch("w", write("/b", "1")).pipe(
              watched(sandbox, word, pause, root),
              Effect.forkChild
            )
            yield* Deferred.await(reached)
            const interrupting = yield* Effect.forkChild(Fiber.interrupt(fiber), { startImmediately: true })
            yield* Deferred.succeed(go, undefined)
            yield* Fiber.join(interrupting)
            assert.isFalse(isThere(root, "w"))
            assert.strictEqual(git(root, "worktree", "list").trim().split("\n").length, 1)
            if (word !== "add") assert.strictEqual(git(root, "show", "w:b"), "1")
            yield* Worktrees.runOnBranch("w", Effect.void)
          })
        )
    )
  }

  it.live("keeps work that can't be committed, and names the folder; also after a failure", () =>
    inRepository({ a: "1" }, (root) =>
      Effect.gen(function* () {
        const block = Effect.sync(() => writeFileSync(join(root, ".git/worktrees/w/index.lock"), ""))
        const message = yield* fails(Worktrees.runOnBranch("w", Effect.andThen(write("/b", "mine"), block)))
        assert.include(message, "branch w")
        assert.include(message, "/.worktrees/w")
        assert.include(message, "index.lock")
        assert.strictEqual(readFileSync(join(root, ".worktrees/w/b"), "utf8"), "mine")

        assert.include(yield* fails(Worktrees.runOnBranch("w", Effect.void)), "/.worktrees/w is there already")
        assert.strictEqual(readFileSync(join(root, ".worktrees/w/b"), "utf8"), "mine")

        git(root, "worktree", "remove", "--force", ".worktrees/w")
        const work = Effect.andThen(Effect.andThen(write("/b", "mine"), block), Effect.fail("no"))
        const exit = yield* Effect.exit(Worktrees.runOnBranch("w", work))
        const reasons = Exit.isFailure(exit) ? exit.cause.reasons.filter(Cause.isFailReason) : []
        assert.deepStrictEqual(
          reasons.map(({ error }) => (typeof error === "string" ? error : error.message.includes("/.worktrees/w"))),
          ["no", true]
        )
        assert.strictEqual(readFileSync(join(root, ".worktrees/w/b"), "utf8"), "mine")
      })
    )
  )

  it.live("keeps a folder whose removal would lose something: another branch, nested repositories", () =>
    inRepository({ a: "1" }, (root) =>
      Effect.gen(function* () {
        const shell = (command: string) =>
          Effect.andThen(
            write("/b", "1"),
            Sandbox.Sandbox.use((sandbox) => sandbox.execute(command))
          )
        assert.include(
          yield* fails(Worktrees.runOnBranch("detached", shell("git checkout --quiet --detach"))),
          "not on the branch detached any more"
        )
        assert.isTrue(isThere(root, "detached"))
        for (const [branch, command] of [
          ["empty", "git init --quiet sub && echo 1 > sub/x"],
          ["full", "git init --quiet sub && cd sub && git commit --quiet --allow-empty -m inner"]
        ] as const) {
          const worked = yield* Worktrees.runOnBranch(branch, shell(command))
          assert.strictEqual(worked.kept, `/.worktrees/${branch}`)
          assert.strictEqual(git(root, "show", `${branch}:b`), "1")
          assert.isTrue(existsSync(join(root, `.worktrees/${branch}/sub/.git`)))
        }
      })
    )
  )

  it.live("is removed if it can't be opened, or if its .git leads elsewhere", () =>
    inRepository({ a: "1" }, (root) =>
      Effect.gen(function* () {
        assert.notStrictEqual(yield* fails(Worktrees.runOnBranch("w", Effect.void, { base: "nowhere" })), "")
        assert.isFalse(isThere(root, "w"))
        const sandbox = yield* Sandbox.Sandbox
        const damage = (at: string) => Effect.sync(() => rmSync(join(at, ".worktrees/w/.git"), { force: true }))
        const broken = yield* fails(
          Worktrees.runOnBranch("w", Effect.void).pipe(watched(sandbox, "--git-common-dir", damage, root))
        )
        assert.notStrictEqual(broken, "")
        assert.isFalse(isThere(root, "w"))
        const lost = Effect.sync(() => writeFileSync(join(root, ".worktrees/w/.git"), "gitdir: ./g\n"))
        yield* Worktrees.runOnBranch("w", Effect.andThen(write("/b", "1"), lost))
        assert.isFalse(isThere(root, "w"))
        assert.strictEqual(git(root, "show", "w:b"), "1")
        assert.strictEqual(git(root, "worktree", "list").trim().split("\n").length, 1)
      })
    )
  )

  it.live("removes nothing by a link in the place of the folder of worktrees", () =>
    inRepository({ a: "1" }, (root) =>
      Effect.gen(function* () {
        const swap = Effect.sync(() => {
          renameSync(join(root, ".worktrees"), join(root, "moved"))
          mkdirSync(join(root, "other/w"), { recursive: true })
          writeFileSync(join(root, "other/w/precious"), "1")
          symlinkSync("other", join(root, ".worktrees"))
        })
        yield* Effect.exit(Worktrees.runOnBranch("w", swap))
        assert.isTrue(existsSync(join(root, "other/w/precious")))
      })
    )
  )
})

describe("merge", () => {
  it.live("merges clean changes, names the files of conflicts, and leaves nothing half merged", () =>
    inRepository({ "a.txt": "one\n" }, (root) =>
      Effect.gen(function* () {
        yield* Effect.all(
          [
            Worktrees.runOnBranch("left", write("/a.txt", "left\n")),
            Worktrees.runOnBranch("right", write("/a.txt", "right\n")),
            Worktrees.runOnBranch("other", write("/b.txt", "b\n")),
            Worktrees.runOnBranch("idle", Effect.void)
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
        yield* Worktrees.runOnBranch("w", write("/b", "1"))
        writeFileSync(join(root, "a"), "mine")
        assert.include(yield* fails(Worktrees.merge(["w"])), "something is uncommitted")
        assert.strictEqual(readFileSync(join(root, "a"), "utf8"), "mine")
      })
    )
  )

  it.live("that breaks half way is taken back", () =>
    inRepository({ "a.txt": "one\n" }, (root) =>
      Effect.gen(function* () {
        yield* Worktrees.runOnBranch("w", write("/a.txt", "w\n"))
        writeFileSync(join(root, "a.txt"), "own\n")
        git(root, "commit", "--quiet", "--all", "-m", "own")
        const sandbox = yield* Sandbox.Sandbox
        const failing: Sandbox.Service = {
          ...sandbox,
          executeStream: (command, options) =>
            command.includes("--diff-filter=U")
              ? Stream.fail(BackendError.make("execute", "/", { _tag: "Unavailable" }))
              : sandbox.executeStream(command, options)
        }
        yield* fails(Worktrees.merge(["w"]).pipe(Effect.provideService(Sandbox.Sandbox, failing)))
        assert.isFalse(existsSync(join(root, ".git/MERGE_HEAD")))
        assert.strictEqual(git(root, "status", "--short"), "")
      })
    )
  )
})

it.live("tells a lead the place of a failed coder's work", () =>
  inRepository({ "a.txt": "one\n" }, (root) =>
    Effect.gen(function* () {
      const coder = Agent.make({
        name: "coder",
        description: "Codes",
        prompt: "You code.",
        tools: FileTools.make()
      }).pipe(
        Agent.provide(
          TestChatModel.script([
            TestChatModel.calls([{ name: "write_file", arguments: { file_path: "/x", content: "x" } }])
          ])
        )
      )
      const [code] = Worktrees.tools({ agent: coder })
      const lead = Agent.make({ name: "lead", prompt: "You divide the work.", tools: [code] })
      const { messages } = yield* Agent.run(lead, "Go").pipe(
        Effect.provide(
          TestChatModel.script([
            TestChatModel.calls([{ name: "code_in_worktree", arguments: { branch: "one", task: "x" } }]),
            "done"
          ])
        )
      )
      const said = messages.flatMap((one) => (one.role === "tool" ? [Message.text(one)] : [])).join("")
      assert.match(said, /On branch one, commit [0-9a-f]{10}, not merged yet/)
      assert.strictEqual(git(root, "show", "one:x"), "x")
    })
  )
)

it.live("a lead has two coders work at once, and merges their work", () =>
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
