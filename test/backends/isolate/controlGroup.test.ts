import { execFileSync } from "node:child_process"
/**
 * The limit of memory by a control group. No machine of these tests lets a user make one, so the groups are folders: what
 * is written to them, and what joins them, is tested; that the kernel then ends a process is not.
 */
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import * as OsSandbox from "effect-deepagents/backends/OsSandbox"
import * as ControlGroup from "../../../src/backends/internal/isolate/controlGroup.ts"
import { describeIsolated, folders } from "./box.ts"

const tree = Effect.acquireRelease(
  Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "groups-"))),
  (root) => Effect.sync(() => fs.rmSync(root, { recursive: true, force: true }))
)

const addGroup = (root: string, at: string, controls: string) => {
  fs.mkdirSync(path.join(root, at), { recursive: true })
  fs.writeFileSync(path.join(root, at, "cgroup.subtree_control"), controls)
  fs.writeFileSync(path.join(root, at, "cgroup.procs"), "")
}

it.live("is made in the nearest group above this process that gives limits of memory", () =>
  Effect.gen(function* () {
    const root = yield* tree
    addGroup(root, "user", "cpu memory pids\n")
    addGroup(root, "user/app", "cpu memory pids\n")
    addGroup(root, "user/app/group", "pids\n")
    addGroup(root, "user/app/group/own", "memory\n")
    assert.strictEqual(ControlGroup.findParent({ root, own: "/user/app/group/own" }), path.join(root, "user/app"))
    assert.strictEqual(ControlGroup.findParent({ root, own: "/user/app" }), path.join(root, "user"))
    assert.isUndefined(ControlGroup.findParent({ root, own: "/user" }))
    assert.isUndefined(ControlGroup.findParent({ root, own: "/" }))
  })
)

it.live("has the limit, is joined by a program before it starts, and goes with the layer", () =>
  Effect.gen(function* () {
    const root = yield* tree
    const procs = yield* Effect.scoped(
      Effect.gen(function* () {
        const file = yield* ControlGroup.make(64 * 2 ** 20, root)
        assert.strictEqual(fs.readFileSync(path.join(file, "../memory.max"), "utf8"), "67108864")
        const { args, file: program } = ControlGroup.enter(file, "sh", ["-c", 'cat "$1"; echo $$', "sh", file])
        const [joined, own] = String(execFileSync(program, [...args]))
          .trim()
          .split("\n")
        assert.strictEqual(joined, own, "the program itself has joined")
        // A group is empty for the kernel; a folder has to be emptied.
        for (const name of ["memory.max", "cgroup.procs"]) fs.rmSync(path.join(file, "..", name))
        return file
      })
    )
    assert.isFalse(fs.existsSync(path.dirname(procs)))
    const missing = ControlGroup.enter(path.join(root, "gone/cgroup.procs"), "sh", ["-c", "echo ran"])
    assert.throws(() => execFileSync(missing.file, [...missing.args], { stdio: "ignore" }), "Command failed")
  })
)

describeIsolated("a limit of memory", () => {
  it.live.skipIf(ControlGroup.findPlace() !== undefined)("fails where it can't be kept, and says what to do", () =>
    Effect.gen(function* () {
      const { root } = yield* folders
      const probed = yield* OsSandbox.probe
      assert.deepInclude(probed, { works: true, memory: false })
      const error = yield* Effect.flip(Effect.scoped(OsSandbox.make({ root, limits: { memoryBytes: 2 ** 30 } })))
      assert.strictEqual(error.reason._tag, "Unsupported")
      assert.include(error.message, "systemd-run --user --scope")
    })
  )
})
