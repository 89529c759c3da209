/** Where an agent works in a person's home, changes of the files by which programs start ask the person. */
import * as NodeFs from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Agent, Approval, type Backend, type BackendError } from "effect-deepagents"
import { ApplyPatch, FileTools } from "effect-deepagents/backends"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import * as HostFiles from "effect-deepagents/backends/HostFiles"
import { TestChatModel } from "effect-deepagents/testing"
import { vi } from "vitest"
import { plant, temporary } from "./temporary.ts"

/** A home, which the system names by a link. */
const home = Effect.gen(function* () {
  const { root } = yield* temporary
  yield* plant(root, {
    "home/.bashrc": "old",
    "home/.ssh/config": "old",
    "home/.config/nvim/init.lua": "old",
    "home/bin/tool": "old",
    "home/project/.env": "old",
    "home/notes.txt": "old",
    "outside/a.txt": "old"
  })
  NodeFs.symlinkSync(".bashrc", `${root}/home/shell`)
  NodeFs.symlinkSync("home", `${root}/me`)
  yield* Effect.acquireRelease(
    Effect.sync(() => vi.stubEnv("HOME", `${root}/me`)),
    () => Effect.sync(() => vi.unstubAllEnvs())
  )
  return `${root}/home`
})

type Work = (files: Backend.Service) => Effect.Effect<unknown, BackendError.BackendError>

const refused: ReadonlyArray<readonly [name: string, work: Work]> = [
  ...[".bashrc", "shell", ".profile", ".ssh/authorized_keys", ".config/deepagents/config.json", "bin/tool"].map(
    (path) => [`write ${path}`, (files: Backend.Service) => files.write(path, "evil")] as const
  ),
  ["edit", (files) => files.edit(".bashrc", [{ old: "old", new: "evil" }])],
  ["delete", (files) => files.delete(".ssh", { recursive: true })],
  ["move in", (files) => files.move("notes.txt", ".zshrc")],
  ["move out", (files) => files.move(".bashrc", "bashrc")]
]

describe("the files of a home", () => {
  it.live("change by no operation where nobody can be asked; other files do, and all can be read", () =>
    Effect.gen(function* () {
      const root = yield* home
      for (const make of [HostFiles.make({ cwd: root }), FilesystemBackend.make({ root })]) {
        const files = yield* make
        for (const [name, work] of refused) {
          const { message, reason } = yield* Effect.flip(work(files)).pipe(Effect.mapError(() => new Error(name)))
          assert.strictEqual(reason._tag, "PermissionDenied", name)
          assert.include(message, "programs start", name)
        }
        for (const path of ["notes.txt", "project/.env", "project/.vscode/tasks.json", "new.txt"]) {
          yield* files.write(path, "new")
        }
        yield* files.read(".bashrc")
      }
      assert.strictEqual(NodeFs.readFileSync(`${root}/.bashrc`, "utf8"), "old")
    })
  )

  it.live("can not be moved or deleted with a folder above them", () =>
    Effect.gen(function* () {
      const root = yield* home
      const above = root.slice(0, -"/home".length)
      for (const make of [HostFiles.make({ cwd: above }), FilesystemBackend.make({ root: above })]) {
        const files = yield* make
        for (const work of [files.move("home", "away"), files.delete("home", { recursive: true })]) {
          const { reason } = yield* Effect.flip(work)
          assert.strictEqual(reason._tag, "PermissionDenied")
        }
        yield* files.move("outside", "outside2")
        yield* files.move("outside2", "outside")
      }
      assert.isTrue(NodeFs.existsSync(`${root}/.bashrc`))
    })
  )

  it.live("change in a folder that the person opened, and not beside it", () =>
    Effect.gen(function* () {
      const root = yield* home
      const files = yield* HostFiles.make({
        cwd: `${root}/.config/nvim`,
        folders: [{ path: root, access: "write" }]
      })
      yield* files.write("init.lua", "new")
      const { reason } = yield* Effect.flip(files.write(`${root}/.config/other/config`, "evil"))
      assert.strictEqual(reason._tag, "PermissionDenied")
      const alone = yield* FilesystemBackend.make({ root: `${root}/.config` })
      yield* alone.write("/other/config", "new")
    })
  )

  it.live("change after a person's approval, also by a patch", () =>
    Effect.gen(function* () {
      const root = yield* home
      const patch = "*** Begin Patch\n*** Update File: .bashrc\n@@\n-old\n+new\n*** End Patch"
      const model = TestChatModel.reactive(({ messages }) =>
        messages.some(({ role }) => role === "tool")
          ? "done"
          : TestChatModel.calls([
              { name: "write_file", arguments: { file_path: ".profile", content: "new" } },
              { name: "apply_patch", arguments: { input: patch } }
            ])
      )
      const agent = Agent.make({ name: "a", prompt: "p", tools: [...FileTools.make(), ApplyPatch.make()] })
      const asked: Array<string> = []
      const decide = (request: Approval.Request) =>
        Effect.sync(() => {
          asked.push(request.rule ?? "")
          return Approval.approve(request)
        })
      yield* Agent.run(agent, "Set up my shell").pipe(
        Effect.provide([model, HostFiles.layer({ cwd: root })]),
        Effect.provideService(Approval.Approvals, { decide })
      )
      assert.deepStrictEqual(asked, ["~/.*", "~/.*"])
      assert.strictEqual(NodeFs.readFileSync(`${root}/.profile`, "utf8"), "new")
      assert.strictEqual(NodeFs.readFileSync(`${root}/.bashrc`, "utf8"), "new")
    })
  )
})
