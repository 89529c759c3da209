import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import type { Backend, Sandbox } from "effect-deepagents"
import { ApplyPatch, FileTools, MemoryBackend } from "effect-deepagents/backends"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import { type Call, converse, edit, readCall, write } from "./converse.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "file-tools-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

const patch: Call = [
  "apply_patch",
  {
    input: [
      "*** Begin Patch",
      "*** Update File: c.txt",
      "*** Move to: d/c.txt",
      "@@",
      "-three",
      "+THREE",
      "*** Update File: x.txt",
      "*** Move to: y.txt",
      "*** End Patch"
    ].join("\n")
  }
]

const rounds: ReadonlyArray<ReadonlyArray<Call>> = [
  [write("a.txt", "one\r\ntwo\r\n"), write("d/b.txt", "one"), write("c.txt", "three\n"), write("x.txt", "x")],
  [edit("a.txt", "one\ntwo", "1\n2"), edit("d/b.txt", "one", "1")],
  [["move_file", { source: "a.txt", destination: "e/a.txt" }], patch],
  [["move_file", { source: "d", destination: "f" }]],
  [edit("e/a.txt", "1", "I"), edit("f/c.txt", "THREE", "III"), write("f/b.txt", "new"), edit("y.txt", "x", "y")],
  [["grep", { pattern: "I", output_mode: "count" }], ["glob", { pattern: "*.txt" }], ["ls", {}], readCall("e/a.txt")],
  [["delete_file", { file_path: "f", recursive: true }]],
  [write("f/b.txt", "again")],
  [["ls", { path: "f" }]]
]

const backends: ReadonlyArray<readonly [string, (root: string) => Layer.Layer<Backend.Backend, unknown>]> = [
  ["memory", () => MemoryBackend.layer()],
  ["a folder", (root) => FilesystemBackend.layer({ root, ripgrep: false })]
]

describe("FileTools, over real backends", () => {
  for (const [name, layer] of backends) {
    it.live(`${name}: the agent can go on with files that it wrote, edited, patched and moved`, () =>
      Effect.gen(function* () {
        const root = yield* folder
        const { answers } = yield* Effect.provide(
          converse(rounds, { tools: [...FileTools.make(), ApplyPatch.make()] }),
          layer(root)
        )
        assert.deepStrictEqual(
          answers.filter((answer) => answer.isError).map((answer) => answer.text),
          []
        )
        assert.deepStrictEqual(
          answers.slice(-7).map((answer) => answer.text.replace(/\n\[lines end.*/, "")),
          [
            "/e/a.txt: 1\n/f/c.txt: 1",
            "/e/a.txt\n/f/b.txt\n/f/c.txt\n/y.txt",
            "/e/\n/f/\n/y.txt (1 bytes)",
            "   1\tI\n   2\t2",
            "Deleted /f.",
            "Wrote /f/b.txt, a new file of 1 line.",
            "/f/b.txt (5 bytes)"
          ]
        )
      })
    )
  }

  it.live("a folder: a change from outside is a conflict", () =>
    Effect.gen(function* () {
      const root = yield* folder
      writeFileSync(join(root, "a.txt"), "one", { mode: 0o755 })
      const layer = FilesystemBackend.layer({ root, ripgrep: false })
      const first = yield* Effect.provide(converse([[readCall("a.txt")]]), layer)
      writeFileSync(join(root, "a.txt"), "one, changed")
      const second = yield* Effect.provide(
        converse([[edit("a.txt", "one", "1")], [readCall("a.txt")], [edit("a.txt", "one", "1")]], {
          state: first.state
        }),
        layer
      )
      assert.deepStrictEqual(
        second.answers.map((answer) => answer.isError),
        [true, false, false]
      )
      assert.strictEqual(readFileSync(join(root, "a.txt"), "utf8"), "1, changed")
      assert.strictEqual(statSync(join(root, "a.txt")).mode & 0o777, 0o755)
    })
  )

  it.live("a shell: commands work on the same files", () =>
    Effect.gen(function* () {
      const root = yield* folder
      const { answers } = yield* Effect.provide(
        converse<Backend.Backend | Sandbox.Sandbox>(
          [
            [write("a.txt", "hello\n")],
            [["execute", { command: "cat a.txt; echo oops >&2; exit 3" }]],
            [["execute", { command: "sleep 60", timeout: 0.3 }]]
          ],
          { tools: FileTools.make({ execute: true }) }
        ),
        LocalShell.layer({ root })
      )
      assert.strictEqual(answers[1]?.text, "hello\noops\n[Command failed with exit code 3]")
      assert.include(answers[2]?.text, "not done within 0.3 seconds")
    })
  )
})
