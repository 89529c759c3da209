/**
 * One change of a file at a time, whoever makes it: no layer and no process loses the work of another one.
 */
import { spawn } from "node:child_process"
import * as NodeFs from "node:fs"
import * as NodePath from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import type { Backend } from "effect-deepagents"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import { bundle } from "../../bundle.ts"
import { scaled } from "../../scale.ts"
import { runNow, plant, temporary } from "./temporary.ts"

const edits = scaled(400)

const slot = (index: number): string => `slot ${String(index).padStart(3, "0")}: open`

const editAll = (backend: Backend.Service, path: string, offset: number) =>
  Effect.forEach(
    Array.from({ length: edits / 2 }, (_, index) => slot(2 * index + offset)),
    (old) => backend.edit(path, [{ old, new: old.replace("open", "done") }]),
    { concurrency: "unbounded" }
  )

const open = `${Array.from({ length: edits }, (_, index) => slot(index)).join("\n")}\n`

const done = open.replaceAll("open", "done")

/** A process that counts in a file without end, and says so when it has begun. */
const counting = (root: string) =>
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof spawn>>((resume) => {
      const script = bundle(new URL("../children/count.ts", import.meta.url))
      const args = [script, root, "/count.txt", "1000000000"]
      const child = spawn(process.execPath, args, { stdio: "ignore" })
      const look = setInterval(() => {
        if (NodeFs.readFileSync(NodePath.join(root, "count.txt"), "utf8") === "0") return
        clearInterval(look)
        resume(Effect.succeed(child))
      }, 20)
    }),
    (child) => runNow(() => child.kill("SIGKILL"))
  )

describe("two layers of one process", () => {
  const cases: ReadonlyArray<readonly [name: string, root: (root: string) => string, path: string]> = [
    ["over one folder", (root) => root, "/d/shared.txt"],
    ["over one folder, spelled otherwise", (root) => `${root}/../root/./`, "/d/shared.txt"],
    ["over a link to the folder", (root) => NodePath.join(root, "../link"), "/d/shared.txt"],
    ["over a folder in the folder", (root) => NodePath.join(root, "d"), "/shared.txt"],
    ["over the folder that the folder is in", (root) => NodePath.dirname(root), "/root/d/shared.txt"],
    ["over the folder, by a link in it", (root) => root, "/to-d/shared.txt"]
  ]
  for (const [name, rootOf, path] of cases)
    it.live(`${name} lose no edit`, () =>
      Effect.gen(function* () {
        const { root } = yield* temporary
        yield* plant(root, { "d/shared.txt": open })
        yield* runNow(() => {
          NodeFs.symlinkSync(root, NodePath.join(root, "../link"))
          NodeFs.symlinkSync("d", NodePath.join(root, "to-d"))
        })
        const first = yield* FilesystemBackend.make({ root, ripgrep: false })
        const second = yield* LocalShell.make({ root: rootOf(root), ripgrep: false })
        yield* Effect.all([editAll(first, "/d/shared.txt", 0), editAll(second, path, 1)], { concurrency: "unbounded" })
        expect(NodeFs.readFileSync(NodePath.join(root, "d/shared.txt"), "utf8")).toBe(done)
        expect(NodeFs.readdirSync(NodePath.join(root, "d"))).toEqual(["shared.txt"])
      })
    )

  it.live("who waits can be interrupted, and locks nothing", () =>
    Effect.gen(function* () {
      const { root } = yield* temporary
      yield* plant(root, { "a.txt": "a" })
      const first = yield* FilesystemBackend.make({ root, ripgrep: false })
      const second = yield* FilesystemBackend.make({ root, ripgrep: false })
      const writers = yield* Effect.forEach(Array.from({ length: 40 }), (_, index) =>
        Effect.forkChild((index % 2 === 0 ? first : second).write("/a.txt", String(index)))
      )
      for (const [index, writer] of writers.entries()) {
        if (index % 3 === 0) yield* Effect.yieldNow
        yield* Fiber.interrupt(writer)
      }
      yield* first.write("/a.txt", "first")
      yield* second.write("/a.txt", "second")
      expect(NodeFs.readdirSync(root)).toEqual(["a.txt"])
    })
  )

  it.live("many writes in a moment have as many versions", () =>
    Effect.gen(function* () {
      const { root } = yield* temporary
      const backend = yield* FilesystemBackend.make({ root, ripgrep: false })
      const written = yield* Effect.forEach(Array.from({ length: 300 }), (_, index) =>
        backend.write("/a.txt", String(index % 10))
      )
      expect(new Set(written.map(({ version }) => version)).size).toBe(300)
      const { mtimeMs } = NodeFs.statSync(NodePath.join(root, "a.txt"))
      expect(Math.abs(mtimeMs - Date.now())).toBeLessThan(10_000)
    })
  )
})

describe("several processes", () => {
  it.live("a process killed while it writes keeps nobody waiting", () =>
    Effect.gen(function* () {
      const { root } = yield* temporary
      yield* plant(root, { "count.txt": "0" })
      const backend = yield* FilesystemBackend.make({ root, ripgrep: false })
      const child = yield* counting(root)
      child.kill("SIGKILL")
      const began = performance.now()
      yield* backend.write("/count.txt", "mine")
      expect(performance.now() - began).toBeLessThan(8000)
      expect(yield* backend.glob({ pattern: "**", ignored: true })).toMatchObject({ entries: [{ path: "/count.txt" }] })
    }).pipe(Effect.scoped)
  )

  it.live("a process with much to write lets others have their turn", () =>
    Effect.gen(function* () {
      const { root } = yield* temporary
      yield* plant(root, { "count.txt": "0" })
      const backend = yield* FilesystemBackend.make({ root, ripgrep: false })
      yield* Effect.all([counting(root), counting(root)])
      const began = performance.now()
      yield* Effect.repeat(backend.write("/count.txt", "0"), { times: 20 })
      expect(performance.now() - began).toBeLessThan(30_000)
    }).pipe(Effect.scoped)
  )
})
