/** Restores that end in the middle: killed, or by a failing disk. */
import { spawn } from "node:child_process"
import fs from "node:fs"
import { syncBuiltinESMExports } from "node:module"
import * as os from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Sandbox } from "effect-deepagents"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import * as FileCheckpoints from "effect-deepagents/sessions/FileCheckpoints"
import * as fc from "fast-check"
import { bundle } from "../../bundle.ts"
import { scaled } from "../../scale.ts"
import { edit, make, shapeOf } from "./edits.ts"

const aFolder = Effect.acquireRelease(
  Effect.sync(() => fs.realpathSync(fs.mkdtempSync(join(os.tmpdir(), "restore-")))),
  (outer) => Effect.sync(() => fs.rmSync(outer, { recursive: true, force: true }))
)

const prepare = (outer: string) => {
  const root = join(outer, "folder")
  fs.mkdirSync(root)
  fs.mkdirSync(join(outer, "outside"))
  return root
}

const layers = (root: string, file: string) =>
  Layer.mergeAll(
    LocalShell.layer({ root }),
    MemorySessions.layer,
    FileCheckpoints.layer({ folders: [root], file, locate: (path) => join(root, path) })
  )

/** Records a turn of one command, that `change` stands for. */
const recordTurn = (change: () => void) =>
  Effect.scoped(
    Effect.gen(function* () {
      const checkpoints = yield* FileCheckpoints.FileCheckpoints
      const recording = yield* checkpoints.begin({ threadId: "t", leaf: null })
      const sandbox = recording.watch(yield* Sandbox.Sandbox)
      yield* sandbox.execute("true")
      change()
      yield* sandbox.execute("true")
      yield* recording.end(null)
    })
  )

/** Runs a restore in a process, and kills it so many milliseconds after its first change. */
const killed = (root: string, file: string, to: "after" | "before", millis: number) =>
  Effect.callback<boolean>((resume) => {
    const child = spawn(
      process.execPath,
      [bundle(new URL("../children/restore.ts", import.meta.url)), root, file, to],
      { stdio: ["ignore", "pipe", "inherit"] }
    )
    const shape = shapeOf(root)
    // From the first change on, so that the kill hits the restore on a busy machine, too.
    const isChanged = (): boolean => {
      try {
        return shapeOf(root) !== shape
      } catch {
        // A path vanished while it was read.
        return true
      }
    }
    const timer = setInterval(() => {
      if (!isChanged()) return
      clearInterval(timer)
      setTimeout(() => child.kill("SIGKILL"), millis)
    }, 2)
    child.on("close", (_code, signal) => {
      clearInterval(timer)
      resume(Effect.succeed(signal === "SIGKILL"))
    })
    return Effect.sync(() => child.kill("SIGKILL"))
  })

describe("a restore that is cut off", () => {
  it.live(
    "is done again whole after kill -9 at any moment",
    Effect.fnUntraced(function* () {
      const most = 24
      const samples = fc.sample(
        fc.record({
          first: fc.array(edit, { minLength: 10, maxLength: 25 }),
          turn: fc.array(edit, { minLength: 6, maxLength: 16 }),
          millis: fc.integer({ min: 0, max: 60 })
        }),
        most
      )
      let hits = 0
      for (const [round, { first, millis, turn }] of samples.entries()) {
        // Some restores are over before they are killed: a short run goes on until one was cut off.
        if (round >= scaled(most) && hits > 0) break
        yield* Effect.scoped(
          Effect.gen(function* () {
            const outer = yield* aFolder
            const root = prepare(outer)
            const file = join(outer, "c.db")
            make(root, first)
            const before = shapeOf(root)
            yield* Effect.provide(
              recordTurn(() => make(root, turn)),
              layers(root, file)
            )
            const after = shapeOf(root)
            for (const [to, aim] of [
              ["before", before],
              ["after", after]
            ] as const) {
              const isKilled = yield* killed(root, file, to, millis)
              const now = shapeOf(root)
              // Only a kill inside of a restore proves something.
              if (isKilled && now !== before && now !== after) hits++
              yield* Effect.gen(function* () {
                const checkpoints = yield* FileCheckpoints.FileCheckpoints
                const store = yield* SessionStore.SessionStore
                yield* store.create({ threadId: "t" })
                for (const { failed, kept } of yield* checkpoints.complete)
                  assert.deepStrictEqual([failed, kept], [[], []])
                const turns = yield* checkpoints.turns("t")
                const outcome = yield* checkpoints.restore({ threadId: "t", turns, to, leaf: null })
                assert.strictEqual(outcome._tag, "Restored")
                assert.strictEqual(shapeOf(root), aim)
              }).pipe(Effect.provide(layers(root, file)))
            }
          })
        )
      }
      assert.isAbove(hits, 0)
    }),
    600_000
  )

  it.live(
    "keeps the messages and goes on later if the disk fails",
    Effect.fnUntraced(function* () {
      const outer = yield* aFolder
      const root = prepare(outer)
      for (const name of ["a", "b", "c"]) fs.writeFileSync(join(root, name), name)
      const before = shapeOf(root)
      yield* Effect.gen(function* () {
        const checkpoints = yield* FileCheckpoints.FileCheckpoints
        const store = yield* SessionStore.SessionStore
        yield* store.create({ threadId: "t" })
        yield* recordTurn(() => {
          for (const name of ["a", "b", "c"]) fs.writeFileSync(join(root, name), `${name}${name}`)
        })
        const turns = yield* checkpoints.turns("t")
        const { renameSync } = fs
        let calls = 0
        yield* Effect.acquireUseRelease(
          Effect.sync(() => {
            fs.renameSync = (...args) => {
              if (++calls === 2) throw new Error("ENOSPC: no space left on device")
              renameSync(...args)
            }
            syncBuiltinESMExports()
          }),
          () =>
            Effect.gen(function* () {
              // A thread that does not exist: its end would fail to move.
              const outcome = yield* checkpoints.restore({ threadId: "gone", turns, to: "before", leaf: null })
              assert.strictEqual(outcome._tag, "Failed")
              if (outcome._tag === "Failed")
                assert.deepStrictEqual(
                  outcome.paths.map(({ path }) => path),
                  [join(root, "b")]
                )
            }),
          () =>
            Effect.sync(() => {
              fs.renameSync = renameSync
              syncBuiltinESMExports()
            })
        )
        assert.deepStrictEqual(yield* checkpoints.complete, [])
        assert.strictEqual((yield* checkpoints.turns("t"))[0]?.state, "done")
        const again = yield* checkpoints.restore({ threadId: "t", turns, to: "before", leaf: null })
        assert.strictEqual(again._tag, "Restored")
        assert.strictEqual(shapeOf(root), before)
        assert.strictEqual((yield* checkpoints.turns("t"))[0]?.state, "undone")
      }).pipe(Effect.provide(layers(root, join(outer, "c.db"))))
    }, Effect.scoped)
  )

  it.live(
    "overwrites nothing that the person made meanwhile",
    Effect.fnUntraced(function* () {
      const outer = yield* aFolder
      const root = prepare(outer)
      const file = join(outer, "c.db")
      for (let index = 0; index < 20; index++) fs.writeFileSync(join(root, `f${index}`), "old")
      yield* Effect.provide(
        recordTurn(() => {
          for (let index = 0; index < 20; index++) fs.writeFileSync(join(root, `f${index}`), "new")
        }),
        layers(root, file)
      )
      assert.isTrue(yield* killed(root, file, "before", 20))
      const left = fs.readdirSync(root).filter((name) => fs.readFileSync(join(root, name), "utf8") === "new")
      const [mine = ""] = left
      fs.writeFileSync(join(root, mine), "by the person")
      yield* Effect.gen(function* () {
        const checkpoints = yield* FileCheckpoints.FileCheckpoints
        yield* (yield* SessionStore.SessionStore).create({ threadId: "t" })
        const [done] = yield* checkpoints.complete
        assert.deepStrictEqual(done?.kept, [join(root, mine)])
        assert.strictEqual(fs.readFileSync(join(root, mine), "utf8"), "by the person")
        assert.lengthOf(
          fs.readdirSync(root).filter((name) => fs.readFileSync(join(root, name), "utf8") === "old"),
          19
        )
      }).pipe(Effect.provide(layers(root, file)))
    }, Effect.scoped)
  )
})
