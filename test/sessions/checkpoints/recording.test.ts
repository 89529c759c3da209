/** Orders of tools, commands, scans and failures whose turns are taken back and made again. */
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import type { Sandbox } from "effect-deepagents"
import { SessionStore } from "effect-deepagents/sessions"
import * as FileCheckpoints from "effect-deepagents/sessions/FileCheckpoints"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
import { type Edit, git, make, shapeOf } from "./edits.ts"
import { aFolder, layers, sandboxIn } from "./places.ts"

const command = (...edits: ReadonlyArray<Edit>): string => JSON.stringify(edits)

const write = (path: string, text: string): Edit => ({ _tag: "write", path, text })

const aThread = Effect.gen(function* () {
  const store = yield* SessionStore.SessionStore
  for (const threadId of ["t", "u"]) yield* store.create({ threadId })
  return yield* FileCheckpoints.FileCheckpoints
})

/** Takes the last turn of a thread back, and makes it again. */
const checkBothWays = Effect.fnUntraced(function* (root: string, before: string, after: string, threadId = "t") {
  const checkpoints = yield* FileCheckpoints.FileCheckpoints
  const turns = (yield* checkpoints.turns(threadId)).slice(-1)
  for (const [to, shape] of [
    ["before", before],
    ["after", after]
  ] as const) {
    const outcome = yield* checkpoints.restore({ threadId, turns, to, leaf: null })
    assert.strictEqual(outcome._tag, "Restored", JSON.stringify(outcome))
    assert.strictEqual(shapeOf(root), shape)
  }
})

describe("the record of a turn", () => {
  it.effect(
    "does not wait for an index of git that is a pipe",
    Effect.fnUntraced(function* () {
      const root = yield* aFolder
      make(root, [write("a", "one")])
      git(root, "init", "-q")
      execFileSync("mkfifo", [join(root, ".git/index")])
      yield* Effect.gen(function* () {
        const checkpoints = yield* aThread
        const recording = yield* checkpoints.begin({ threadId: "t", leaf: null })
        const sandbox = recording.watch(yield* sandboxIn(root))
        yield* sandbox.execute(command(write("a", "two")))
        assert.deepStrictEqual(yield* recording.end(null), [join(root, "a")])
      }).pipe(Effect.provide(layers(root, ":memory:")))
    }, Effect.scoped)
  )

  it.effect(
    "leaves out the omitted folders, for commands and tools",
    Effect.fnUntraced(function* () {
      const root = yield* aFolder
      make(root, [write("a", "one"), write("data/lock", "")])
      yield* Effect.gen(function* () {
        const checkpoints = yield* aThread
        const recording = yield* checkpoints.begin({ threadId: "t", leaf: null })
        const sandbox = recording.watch(yield* sandboxIn(root))
        yield* sandbox.execute(
          command(write("a", "two"), write("data/lock", "two"), write("data/threads/draft", "two"))
        )
        yield* sandbox.write("/data/note", "two")
        yield* sandbox.execute(command(write("b", "two")))
        yield* recording.end(null)
        const turns = yield* checkpoints.turns("t")
        const paths = (yield* checkpoints.plan(turns, "before")).map(({ path }) => path)
        assert.deepStrictEqual(paths, [join(root, "a"), join(root, "b")])
        yield* checkpoints.restore({ threadId: "t", turns, to: "before", leaf: null })
        assert.isTrue(["lock", "threads/draft", "note"].every((name) => fs.existsSync(join(root, "data", name))))
      }).pipe(Effect.provide(layers(root, ":memory:", [join(root, "data")])))
    }, Effect.scoped)
  )

  it.effect(
    "records a command's changes of files that a tool made or changed",
    Effect.fnUntraced(function* () {
      const root = yield* aFolder
      make(root, [write("a", "one"), write("b", "one")])
      const before = shapeOf(root)
      yield* Effect.gen(function* () {
        const checkpoints = yield* aThread
        const recording = yield* checkpoints.begin({ threadId: "t", leaf: null })
        const sandbox = recording.watch(yield* sandboxIn(root))
        yield* sandbox.execute(command(write("x.sh", "")))
        // None of these states was there in a scan.
        yield* sandbox.write("/made", "by the tool")
        yield* sandbox.write("/d/e", "by the tool")
        yield* sandbox.edit("/a", [{ old: "one", new: "two" }])
        yield* sandbox.delete("/b")
        yield* sandbox.execute(
          command({ _tag: "remove", path: "made" }, { _tag: "remove", path: "d" }, write("a", "one"), write("b", "one"))
        )
        yield* recording.end(null)
        assert.deepStrictEqual(
          (yield* checkpoints.plan(yield* checkpoints.turns("t"), "before")).map(({ path }) => path),
          [join(root, "x.sh")]
        )
        yield* checkBothWays(root, before, shapeOf(root))
      }).pipe(Effect.provide(layers(root, ":memory:")))
    }, Effect.scoped)
  )

  it.effect(
    "knows after a crash that a command removed a tool's file",
    Effect.fnUntraced(function* () {
      const root = yield* aFolder
      const place = yield* aFolder
      const file = join(place, "c.db")
      const before = shapeOf(root)
      yield* Effect.gen(function* () {
        const checkpoints = yield* aThread
        const recording = yield* checkpoints.begin({ threadId: "t", leaf: null })
        const sandbox = recording.watch(yield* sandboxIn(root))
        yield* sandbox.execute("[]")
        yield* sandbox.write("/made", "by the tool")
        // The crash comes before the scan.
        make(root, [{ _tag: "remove", path: "made" }])
      }).pipe(Effect.scoped, Effect.provide(layers(root, file)))
      yield* Effect.gen(function* () {
        const checkpoints = yield* aThread
        yield* checkpoints.settle("t", null)
        yield* checkBothWays(root, before, before)
      }).pipe(Effect.provide(layers(root, file)))
    }, Effect.scoped)
  )

  it.effect(
    "has the content of clean files of each folder's repository",
    Effect.fnUntraced(function* () {
      const outer = yield* aFolder
      const roots = ["one", "two"].map((name) => join(outer, name))
      for (const root of roots) {
        fs.mkdirSync(root)
        make(root, [write("a", `of ${root}`)])
        git(root, "init", "-q")
        // The index of git is older than its files unless time passes.
        execFileSync("sleep", ["0.05"])
        make(root, [{ _tag: "commit" }])
      }
      execFileSync("sleep", ["0.05"])
      for (const root of roots) git(root, "status")
      const before = shapeOf(outer)
      yield* Effect.gen(function* () {
        const checkpoints = yield* aThread
        const recording = yield* checkpoints.begin({ threadId: "t", leaf: null })
        const sandbox = recording.watch(yield* sandboxIn(outer))
        yield* sandbox.execute(command(write("one/a", "new"), write("two/a", "new")))
        yield* recording.end(null)
        yield* checkBothWays(outer, before, shapeOf(outer))
      }).pipe(
        Effect.provide(
          Layer.merge(
            layers(outer, ":memory:"),
            FileCheckpoints.layer({ folders: roots, locate: (path) => join(outer, path) })
          )
        )
      )
    }, Effect.scoped)
  )

  it.effect(
    "attributes no file to the turn if the scan before the first command failed",
    Effect.fnUntraced(function* () {
      const root = yield* aFolder
      const place = yield* aFolder
      const file = join(place, "c.db")
      make(root, [write("a", "of the person"), write("b", "of the person")])
      const problems: Array<string> = []
      yield* Effect.gen(function* () {
        const checkpoints = yield* aThread
        const sql = yield* SqliteClient.SqliteClient
        const recording = yield* checkpoints.begin({
          threadId: "t",
          leaf: null,
          onProblem: (message) => problems.push(message)
        })
        const sandbox = recording.watch(yield* sandboxIn(root))
        yield* sql`ALTER TABLE checkpoint_blobs RENAME TO away`
        const run = sandbox.execute(command(write("a", "by the command")))
        yield* Effect.ensuring(run, Effect.orDie(sql`ALTER TABLE away RENAME TO checkpoint_blobs`))
        yield* recording.end(null)
        assert.lengthOf(problems, 1)
        const [turn] = yield* checkpoints.turns("t")
        const steps = yield* checkpoints.plan(turn === undefined ? [] : [turn], "before")
        assert.deepStrictEqual(steps, [])
      }).pipe(Effect.provide([layers(root, file), SqliteClient.layer({ file })]))
    }, Effect.scoped)
  )

  it.live(
    "waits for a scan though a tool that waited for it was interrupted",
    Effect.fnUntraced(function* () {
      const root = yield* aFolder
      for (let index = 0; index < 800; index++) fs.writeFileSync(join(root, `f${index}`), `${index}`)
      make(root, [write("a", "one")])
      const before = shapeOf(root)
      yield* Effect.gen(function* () {
        const checkpoints = yield* aThread
        const recording = yield* checkpoints.begin({ threadId: "t", leaf: null })
        const sandbox = recording.watch(yield* sandboxIn(root))
        yield* sandbox.execute(command(write("a", "two")))
        const waiting = yield* Effect.forkChild(sandbox.write("/b", "two"), { startImmediately: true })
        yield* Fiber.interrupt(waiting)
        yield* sandbox.write("/a", "three")
        yield* recording.end(null)
        yield* checkBothWays(root, before, shapeOf(root))
      }).pipe(Effect.provide(layers(root, ":memory:")))
    }, Effect.scoped)
  )

  it.effect(
    "has its own changes though a turn of another thread scans between",
    Effect.fnUntraced(function* () {
      const root = yield* aFolder
      make(root, [write("a", "one")])
      const before = shapeOf(root)
      yield* Effect.gen(function* () {
        const checkpoints = yield* aThread
        const sandbox = yield* sandboxIn(root)
        const one = yield* checkpoints.begin({ threadId: "t", leaf: null })
        const other = yield* checkpoints.begin({ threadId: "u", leaf: null })
        const first = one.watch(sandbox)
        const isChanged = yield* Deferred.make<void>()
        const mayEnd = yield* Deferred.make<void>()
        const execute: Sandbox.Service["execute"] = (text, options) =>
          sandbox
            .execute(text, options)
            .pipe(Effect.tap(Deferred.succeed(isChanged, undefined)), Effect.tap(Deferred.await(mayEnd)))
        const slow = one.watch({ ...sandbox, execute })
        yield* first.execute("[]")
        const running = yield* Effect.forkChild(slow.execute(command(write("a", "two"))))
        yield* Deferred.await(isChanged)
        yield* other.watch(sandbox).execute("[]")
        yield* other.end(null)
        yield* Deferred.succeed(mayEnd, undefined)
        yield* Fiber.join(running)
        yield* one.end(null)
        yield* checkBothWays(root, before, shapeOf(root))
      }).pipe(Effect.provide(layers(root, ":memory:")))
    }, Effect.scoped)
  )

  it.live(
    "is restored whole, with its messages, when the restore is interrupted",
    Effect.fnUntraced(function* () {
      const root = yield* aFolder
      const place = yield* aFolder
      const names = Array.from({ length: 200 }, (_, index) => `f${index}`)
      make(
        root,
        names.map((name) => write(name, "one"))
      )
      const before = shapeOf(root)
      yield* Effect.gen(function* () {
        const checkpoints = yield* aThread
        const recording = yield* checkpoints.begin({ threadId: "t", leaf: null })
        const sandbox = recording.watch(yield* sandboxIn(root))
        yield* sandbox.execute(command(...names.map((name) => write(name, "two"))))
        yield* recording.end(null)
        const turns = yield* checkpoints.turns("t")
        const work = yield* Effect.forkChild(checkpoints.restore({ threadId: "t", turns, to: "before", leaf: null }))
        const last = join(root, "f99")
        while (fs.readFileSync(last, "utf8") === "two") yield* Effect.sleep("1 millis")
        yield* Fiber.interrupt(work)
        assert.strictEqual(shapeOf(root), before)
        assert.strictEqual((yield* checkpoints.turns("t"))[0]?.state, "undone")
      }).pipe(Effect.provide(layers(root, join(place, "c.db"))))
    }, Effect.scoped)
  )
})
