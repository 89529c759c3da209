/** Snapshots of a folder whose commands are in bubblewrap. */
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import * as OsSandbox from "effect-deepagents/backends/OsSandbox"
import { checkSnapshot } from "../snapshots.ts"
import { canary, describeIsolated, folders } from "./box.ts"

describeIsolated("a snapshot of a folder", () => {
  it.live(
    "is a copy of its moment, and the root of others",
    () =>
      Effect.gen(function* () {
        const { outside, root } = yield* folders
        yield* checkSnapshot(OsSandbox.make({ root, snapshots: outside, ripgrep: false }), (snapshot) =>
          OsSandbox.make({ root: snapshot, ripgrep: false })
        )
        assert.lengthOf(fs.readdirSync(outside), 3)
      }),
    60_000
  )

  it.live(
    "has nothing from beside the folder, and is not there if it fails",
    () =>
      Effect.gen(function* () {
        const { outside, root } = yield* folders
        fs.symlinkSync(outside, path.join(root, "link"))
        const box = yield* OsSandbox.make({ root, snapshots: outside, ripgrep: false })
        // A command's changes meanwhile lead the copy nowhere.
        const swapping = "while :; do mkdir -p d; touch d/secret.txt; rm -r d; ln -s ../outside d; rm d; done"
        yield* Effect.forkScoped(box.execute(swapping, { timeout: "30 seconds" }))
        const made = yield* Effect.exit(box.snapshot)
        assert.isTrue(fs.existsSync(outside))
        const copies = fs.readdirSync(outside).filter((name) => name !== "secret.txt")
        assert.lengthOf(copies, made._tag === "Success" ? 1 : 0)
        for (const name of copies) {
          const texts = execFileSync("find", [path.join(outside, name), "-type", "f", "-exec", "cat", "{}", "+"])
          assert.notInclude(String(texts), canary)
          assert.isTrue(fs.lstatSync(path.join(outside, name, "link")).isSymbolicLink())
        }
        const nowhere = yield* OsSandbox.make({ root, snapshots: path.join(outside, "none"), ripgrep: false })
        const error = yield* Effect.flip(nowhere.snapshot)
        assert.include(error.message, "name another folder in `snapshots`")
      }),
    60_000
  )
})
