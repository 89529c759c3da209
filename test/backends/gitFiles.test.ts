/** No file operation changes the files of git repositories unless a person approves it: their content decides which programs git runs. */
import * as NodeFs from "node:fs"
import * as NodePath from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Agent, Approval, type Backend, type BackendError, Message } from "effect-deepagents"
import { ApplyPatch, CustomSandbox, FileTools } from "effect-deepagents/backends"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import { TestChatModel } from "effect-deepagents/testing"
import { sampled } from "../scale.ts"
import * as Shells from "./fixtures/localShell.ts"
import { runNow, plant, temporary } from "./local/temporary.ts"

const bytes = (text: string) => new TextEncoder().encode(text)

/** A folder with repositories in every form: usual, by a file, bare, of a worktree without `.git`, behind links. */
const repositories = {
  "a.txt": "a",
  ".gitignore": "x",
  ".git/config": "old",
  ".git/hooks/pre-commit.sample": "old",
  ".git/modules/sub/config": "old",
  "tree/.git": "gitdir: ../.git",
  "tree/b.txt": "b",
  "bare/HEAD": "ref: refs/heads/main",
  "bare/config": "old",
  "bare/objects/": "",
  "bare/refs/": "",
  "linked/HEAD": "ref: refs/heads/main",
  "linked/commondir": "../bare",
  "deep/vendor/lib/.git/HEAD": "old",
  "deep/vendor/lib/c.txt": "c",
  "plain/d.txt": "d",
  "half/HEAD": "ref: refs/heads/main",
  "half/objects/": ""
}

const everything = (root: string) =>
  runNow(() =>
    Object.fromEntries(
      NodeFs.readdirSync(root, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ name, parentPath }) => [
          NodePath.join(parentPath, name).slice(root.length),
          NodeFs.readFileSync(NodePath.join(parentPath, name), "utf8")
        ])
    )
  )

const planted = Effect.gen(function* () {
  const { root } = yield* temporary
  yield* plant(root, repositories)
  yield* runNow(() => {
    NodeFs.symlinkSync(".git", `${root}/link`)
    NodeFs.symlinkSync("../.git/config", `${root}/plain/settings`)
    NodeFs.symlinkSync("bare", `${root}/pointer`)
  })
  return root
})

const paths = [
  "/.git/config",
  "/.git/new/file",
  "/.GIT/config",
  "/.Git",
  "/.git./config",
  "/.git /config",
  "/.git::$INDEX_ALLOCATION/config",
  "/git~1/config",
  "/.g\u200cit/config",
  "/new/.git/config",
  "/new/.git",
  "/tree/.git",
  "/link/config",
  "/link/hooks/pre-commit",
  "/plain/settings",
  "/.git/modules/sub/config",
  "/bare/config",
  "/bare/hooks/pre-commit",
  "/pointer/config",
  "/linked/config",
  "/half/refs/x",
  "/half/commondir",
  "/.gitconfig",
  "/home/.config/git/config"
]

type Changes = ReadonlyArray<
  readonly [name: string, work: (backend: Backend.Service) => Effect.Effect<unknown, BackendError.BackendError>]
>

const changes: Changes = [
  ...paths.map((path) => [`write ${path}`, (backend: Backend.Service) => backend.write(path, "evil")] as const),
  ...paths.map(
    (path) =>
      [
        `upload ${path}`,
        (backend: Backend.Service) =>
          Effect.flatMap(backend.upload([{ path, content: bytes("evil") }]), ([one]) =>
            one?.ok === false ? Effect.fail(one.error) : Effect.void
          )
      ] as const
  ),
  ["edit", (backend) => backend.edit("/.git/config", [{ old: "old", new: "evil" }])],
  ["edit by a link", (backend) => backend.edit("/plain/settings", [{ old: "old", new: "evil" }])],
  ["delete a file", (backend) => backend.delete("/.git/config")],
  ["delete the file of a worktree", (backend) => backend.delete("/tree/.git")],
  ["delete the folder", (backend) => backend.delete("/.git", { recursive: true })],
  ["delete a folder with a repository in it", (backend) => backend.delete("/deep", { recursive: true })],
  ["delete a worktree", (backend) => backend.delete("/tree", { recursive: true })],
  ["delete a bare repository", (backend) => backend.delete("/bare", { recursive: true })],
  ["move into it", (backend) => backend.move("/a.txt", "/.git/hooks/pre-commit")],
  ["move a folder to its name", (backend) => backend.move("/plain", "/deep/.git")],
  ["move out of it", (backend) => backend.move("/.git/config", "/config")],
  ["move it away", (backend) => backend.move("/.git", "/g")],
  ["move what completes one", (backend) => backend.move("/plain", "/half/refs")]
]

/** A sandbox that is no part of this machine, as far as it knows. */
const remote = (kind?: Shells.Kind) => (options: { readonly root: string }) =>
  Effect.flatMap(Shells.make(kind), (shell) => CustomSandbox.make(Shells.functionsOf(shell), options))

const makers = [FilesystemBackend.make, LocalShell.make, remote()] as const

describe("a repository's own files", () => {
  it.live("are changed by no operation where nobody can be asked, in any form of their names", () =>
    Effect.gen(function* () {
      const root = yield* planted
      const before = yield* everything(root)
      const others = Shells.kinds.slice(1).map(remote)
      for (const [index, make] of [...makers, ...others].entries()) {
        const backend = yield* make({ root })
        for (const [name, work] of index < 2 ? changes : sampled(changes)) {
          const error = yield* Effect.flip(work(backend)).pipe(Effect.mapError(() => new Error(name)))
          assert.strictEqual(error.reason._tag, "PermissionDenied", name)
          assert.include(error.message, "belongs to a git repository", name)
          assert.include(error.message, "ask the person", name)
        }
        assert.deepStrictEqual(yield* everything(root), before)
      }
    })
  )

  it.live("are not made by several changes at once, none of which makes a repository alone", () =>
    Effect.gen(function* () {
      for (const make of makers) {
        const { root } = yield* temporary
        const backend = yield* make({ root })
        for (const folder of ["", "/a", "/b/c"]) {
          const exits = yield* Effect.all(
            ["HEAD", "objects/x", "refs/x"].map((part) => Effect.exit(backend.write(`${folder}/${part}`, "x"))),
            { concurrency: "unbounded" }
          )
          assert.strictEqual(exits.filter(({ _tag }) => _tag === "Failure").length, 1)
        }
      }
    })
  )

  it.live("can be read, and files beside them can be changed freely", () =>
    Effect.gen(function* () {
      for (const make of makers) {
        const root = yield* planted
        const backend = yield* make({ root })
        assert.deepInclude(yield* backend.read("/.git/config"), { text: "old" })
        assert.strictEqual((yield* backend.ls("/.git")).entries.length, 3)
        assert.strictEqual((yield* backend.download(["/link/config"]))[0]?.ok, true)
        const free = ["/.gitignore", "/.gitattributes", "/.github/x", "/git", "/é.git.txt", "/tree/b.txt", "/half/x"]
        for (const path of [...free, "/HEAD"]) yield* backend.write(path, "new")
        yield* backend.delete("/link")
        yield* backend.move("/plain", "/moved")
        yield* backend.delete("/moved", { recursive: true })
        yield* backend.delete("/deep/vendor/lib/c.txt")
      }
    })
  )

  it.live("are changed after an approval, whose request has the real path", () =>
    Effect.gen(function* () {
      for (const make of makers) {
        const root = yield* planted
        const asked: Array<ReadonlyArray<string>> = []
        const decide = (request: Approval.Request) =>
          Effect.sync(() => {
            const accesses = request.arguments["accesses"] as ReadonlyArray<{ readonly path: string }>
            asked.push(accesses.map(({ path }) => path))
            return Approval.approve(request)
          })
        const backend = yield* make({ root })
        yield* Effect.gen(function* () {
          yield* backend.write("/link/config", "new")
          yield* backend.edit("/plain/settings", [{ old: "new", new: "newer" }])
          yield* backend.upload([
            { path: "/free", content: bytes("1") },
            { path: "/.git/one", content: bytes("1") },
            { path: "/.git/two", content: bytes("2") }
          ])
          yield* backend.move("/.git/one", "/one")
          yield* backend.delete("/deep", { recursive: true })
          yield* backend.delete("/bare", { recursive: true })
        }).pipe(Effect.provideService(Approval.Approvals, { decide }))
        assert.deepStrictEqual(asked, [
          ["/.git/config"],
          ["/.git/config"],
          ["/.git/one", "/.git/two"],
          ["/.git/one"],
          ["/deep/vendor/lib/.git"],
          ["/bare"]
        ])
        const files = yield* everything(root)
        assert.deepInclude(files, { "/.git/config": "newer", "/.git/two": "2", "/free": "1", "/one": "1" })
        assert.notProperty(files, "/deep/vendor/lib/.git/HEAD")
        assert.notProperty(files, "/bare/config")
        yield* Effect.flip(backend.write("/.git/config", "later"))
      }
    })
  )
})

const calling = (root: string, name: string, args: Record<string, string>) =>
  Agent.make({
    name: "agent",
    prompt: "You are tested.",
    tools: [...FileTools.make(), ApplyPatch.make()]
  }).pipe(Agent.provide(Layer.merge(FilesystemBackend.layer({ root }), model(name, args))))

const model = (name: string, args: Record<string, string>) =>
  TestChatModel.reactive(({ messages }) =>
    messages.some(({ role }) => role === "tool") ? "done" : TestChatModel.calls([{ name, arguments: args }])
  )

const resultOf = ({ messages }: { readonly messages: ReadonlyArray<Message.Message> }) =>
  messages.flatMap((one) => (one.role === "tool" ? [Message.text(one)] : [])).join("\n")

describe("the tools of an agent", () => {
  const patch =
    "*** Begin Patch\n*** Add File: .git/hooks/pre-commit\n+evil\n*** Update File: a.txt\n@@\n-a\n+b\n*** End Patch"

  it.live("ask the approvals of the run once, and make the approved change", () =>
    Effect.gen(function* () {
      for (const [name, args, path] of [
        ["write_file", { file_path: "/.git/hooks/pre-commit", content: "good" }, "/.git/hooks/pre-commit"],
        ["apply_patch", { input: patch }, "/.git/hooks/pre-commit"]
      ] as const) {
        for (const isApproved of [true, false]) {
          const root = yield* planted
          const requests: Array<Approval.Request> = []
          const result = yield* Agent.run(calling(root, name, args), "Go").pipe(
            Effect.provideService(Approval.Approvals, {
              decide: (request) =>
                Effect.sync(() => {
                  requests.push(request)
                  return isApproved ? Approval.approve(request) : Approval.reject(request, "no")
                })
            })
          )
          assert.strictEqual(requests.length, 1, resultOf(result))
          assert.include(requests[0]?.description, `write ${path}`)
          assert.strictEqual(NodeFs.existsSync(`${root}${path}`), isApproved)
          if (!isApproved) assert.include(resultOf(result), "no")
        }
      }
    })
  )

  it.live("are refused if the run has nobody to ask", () =>
    Effect.gen(function* () {
      for (const [name, args] of [
        ["write_file", { file_path: "/.git/new", content: "evil" }],
        ["apply_patch", { input: patch }]
      ] as const) {
        const root = yield* planted
        const before = yield* everything(root)
        const result = yield* Agent.run(calling(root, name, args), "Go")
        assert.include(resultOf(result), "belongs to a git repository")
        assert.deepStrictEqual(yield* everything(root), before)
      }
    })
  )
})
