/** The model's facts about its working place: a message at the beginning, and notices at the end. */
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Agent, type ChatModel, Message, Tool } from "effect-deepagents"
import * as HostShell from "effect-deepagents/backends/HostShell"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"
import { placesOf } from "../../src/cli/internal/config/places.ts"
import type { Approvals } from "../../src/cli/internal/config/settings.ts"
import { writeHeader } from "../../src/cli/internal/work/header.ts"
import { environment } from "../../src/cli/internal/work/machine/environment.ts"
import { advise, makeFolders } from "../../src/cli/internal/work/machine/host.ts"

const rounds = 30

describe("the environment of an agent", () => {
  it.effect("is told once, and changes at the end: no byte that was sent changes", () =>
    Effect.gen(function* () {
      const folder = mkdtempSync(join(tmpdir(), "deepagents-environment-"))
      mkdirSync(join(folder, ".git"))
      const head = join(folder, ".git/HEAD")
      writeFileSync(head, "ref: refs/heads/main\n")
      const folders = makeFolders([])
      let mode: Approvals = "ask"
      let calls = 0
      const step = Tool.make("step", {
        description: "Takes a step.",
        parameters: { number: Schema.Finite },
        execute: () =>
          Effect.sync(() => {
            calls++
            if (calls === 10) writeFileSync(head, "ref: refs/heads/<b>other</b>\n")
            if (calls === 20) mode = "plan"
            if (calls === 25) folders.add({ path: "/srv/shared", access: "read" })
            return `step ${calls}`
          })
      })
      const sent: Array<ChatModel.ModelRequest> = []
      const model = TestChatModel.reactive((request) => {
        sent.push(request)
        return sent.length % (rounds + 1) === 0
          ? TestChatModel.text("Done.")
          : TestChatModel.calls([{ name: "step", arguments: { number: sent.length } }])
      })
      const agent = Agent.make({
        name: "worker",
        prompt: "You work.",
        tools: [step],
        maxRounds: rounds + 1,
        middleware: [
          environment({
            folder,
            shell: "/bin/bash",
            model: Effect.succeed("test:one"),
            folders,
            mode: Effect.sync(() => mode)
          })
        ]
      })
      const run = (words: string) => Agent.run(agent, words, { threadId: "one" })
      const work = Effect.gen(function* () {
        yield* run("Go.")
        yield* run("Go on.")
      })
      yield* work.pipe(Effect.provide([model, SessionStore.journal.pipe(Layer.provide(MemorySessions.layer))]))
      const texts = sent.map(({ messages }) => messages.map((message) => JSON.stringify(message)))
      for (const [index, now] of texts.entries()) {
        const before = texts[index - 1] ?? []
        assert.deepStrictEqual(now.slice(0, before.length), before, `request ${index}`)
      }
      assert.strictEqual(new Set(sent.map(({ systemPrompt }) => systemPrompt)).size, 1)
      assert.strictEqual(calls, 2 * rounds, "a notice costs no round")
      const environmentTexts = (sent.at(-1)?.messages ?? [])
        .filter(({ source }) => source === "environment")
        .map(Message.text)
      const [block = "", branch = "", plan = "", added = "", ...more] = environmentTexts
      assert.match(
        block,
        /^<environment>\nWorking folder: .* \(git, branch main\)\nSystem: .*, bash\. Date: \d{4}-\d\d-\d\d/
      )
      assert.isBelow(block.length / 4, 120)
      assert.match(branch, /^<notice>\n.*branch \?b\?other\?\/b\?\.\n<\/notice>$/)
      assert.match(plan, /plan mode/)
      assert.match(added, /\/srv\/shared \(read only\)/)
      assert.deepStrictEqual(more, [])
    })
  )

  it.live("counts differences from the last commit, and runs no program of the repository for it", () =>
    Effect.gen(function* () {
      const folder = mkdtempSync(join(tmpdir(), "deepagents-environment-"))
      const git = (...args: ReadonlyArray<string>) =>
        execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b.c", ...args], { cwd: folder })
      const place = {
        folder,
        shell: "/bin/bash",
        model: Effect.succeed("test:one"),
        folders: makeFolders([]),
        mode: Effect.succeed("ask" as const)
      }
      const agent = Agent.make({ name: "worker", prompt: "You work.", middleware: [environment(place)] })
      const tell = Agent.run(agent, "Go.").pipe(
        Effect.map(({ messages }) =>
          messages
            .filter(({ source }) => source === "environment")
            .map(Message.text)
            .join()
        ),
        Effect.provide([TestChatModel.script(["Done."]), HostShell.layer({ cwd: folder })])
      )
      git("init", "-q", "-b", "main")
      for (const name of ["a", "b", "c"]) writeFileSync(join(folder, name), name)
      writeFileSync(join(folder, ".gitattributes"), "* filter=spy\n")
      git("add", ".")
      git("commit", "-qm", "first")
      assert.include(yield* tell, "(git, branch main, no changes)")
      writeFileSync(join(folder, "a"), "z")
      git("rm", "-q", "--cached", "b")
      writeFileSync(join(folder, "new file"), "")
      git("config", "filter.spy.clean", `touch ${join(folder, "ran")}; cat`)
      git("config", "core.fsmonitor", `touch ${join(folder, "ran")}`)
      // `b` is deleted in the index and new in the folder, and counts once.
      assert.include(yield* tell, "(git, branch main, 3 changed or new files)")
      assert.notInclude(readdirSync(folder), "ran")
    })
  )

  it.live("names the branch in the first line of a chat, in a sub-folder and in another worktree too", () =>
    Effect.gen(function* () {
      const root = realpathSync(mkdtempSync(join(tmpdir(), "deepagents-environment-")))
      const [main, other] = [join(root, "main"), join(root, "other one")]
      const git = (...args: ReadonlyArray<string>) =>
        execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b.c", ...args], { cwd: main, stdio: "pipe" })
      mkdirSync(join(main, "src"), { recursive: true })
      git("init", "-q", "-b", "main")
      git("commit", "-qm", "first", "--allow-empty")
      git("worktree", "add", "-q", "-b", "side", other)
      const headerOf = (project: string) => writeHeader(placesOf(project), "test:one", "")
      assert.include(yield* headerOf(join(main, "src")), "src (main) · test:one")
      assert.include(yield* headerOf(other), "other one (side) · test:one")
      assert.include(yield* headerOf(root), `${basename(root)} · test:one`)
    })
  )

  it.live("names no branch if the file of git is a pipe, which would never end", () =>
    Effect.gen(function* () {
      const folder = mkdtempSync(join(tmpdir(), "deepagents-environment-"))
      mkdirSync(join(folder, ".git"))
      execFileSync("mkfifo", [join(folder, ".git/HEAD")])
      const place = {
        folder,
        shell: "/bin/bash",
        model: Effect.succeed("test:one"),
        folders: makeFolders([]),
        mode: Effect.succeed("ask" as const)
      }
      const agent = Agent.make({ name: "worker", prompt: "You work.", middleware: [environment(place)] })
      const { messages } = yield* Agent.run(agent, "Go.").pipe(
        Effect.provide(TestChatModel.script(["Done."])),
        Effect.timeout("5 seconds"),
        // A reader that waits would keep the test from ending.
        Effect.ensuring(Effect.sync(() => execFileSync("sh", ["-c", 'echo x 1<>"$0"', join(folder, ".git/HEAD")])))
      )
      assert.include(JSON.stringify(messages), `Working folder: ${folder}\\n`)
    })
  )
})

describe("a path outside of the folders", () => {
  it("is refused with a flag that a shell reads as one word", () => {
    const hint = advise({ path: "/srv/our files/a.txt", access: "write", isReadable: false })
    assert.include(hint, "/add-dir /srv/our files:write in a chat, --add-dir '/srv/our files:write',")
  })
})
