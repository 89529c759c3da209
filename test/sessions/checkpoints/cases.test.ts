/** Turns that random edits rarely make. */
import * as fs from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Sandbox } from "effect-deepagents"
import { SessionStore } from "effect-deepagents/sessions"
import * as FileCheckpoints from "effect-deepagents/sessions/FileCheckpoints"
import { type Edit, shapeOf } from "./edits.ts"
import { aFolder, layers, sandboxIn } from "./places.ts"

const byCommand = (sandbox: Sandbox.Service, ...edits: ReadonlyArray<Edit>) => sandbox.execute(JSON.stringify(edits))

/** Records one turn. Returns its notes and the texts after undo and after redo. */
const recorded = Effect.fnUntraced(function* <A>(
  prepare: (root: string) => void,
  work: (sandbox: Sandbox.Service) => Effect.Effect<unknown, unknown>,
  look: (root: string) => A
) {
  const root = yield* aFolder
  const place = yield* aFolder
  prepare(root)
  return yield* Effect.gen(function* () {
    const store = yield* SessionStore.SessionStore
    yield* store.create({ threadId: "t" })
    const checkpoints = yield* FileCheckpoints.FileCheckpoints
    const recording = yield* checkpoints.begin({ threadId: "t", leaf: null })
    yield* work(recording.watch(yield* sandboxIn(root)))
    yield* recording.end(null)
    const turns = yield* checkpoints.turns("t")
    const seen: Array<A> = []
    for (const to of ["before", "after"] as const) {
      assert.strictEqual((yield* checkpoints.restore({ threadId: "t", turns, to, leaf: null }))._tag, "Restored")
      seen.push(look(root))
    }
    return { notes: turns.flatMap((turn) => turn.notes), seen }
  }).pipe(Effect.provide(layers(root, join(place, "c.db"))), Effect.scoped)
}, Effect.scoped)

describe("a turn", () => {
  it.live("knows that a command removed a file which a tool had made since the last scan", () =>
    Effect.gen(function* () {
      const { seen } = yield* recorded(
        () => undefined,
        Effect.fnUntraced(function* (sandbox) {
          yield* byCommand(sandbox, { _tag: "remove", path: "a" })
          yield* sandbox.write("/d/f", "x")
          yield* byCommand(sandbox, { _tag: "remove", path: "d/f" })
        }),
        (root) => (fs.existsSync(join(root, "d")) ? fs.readdirSync(join(root, "d")) : undefined)
      )
      assert.deepStrictEqual(seen, [undefined, []])
    })
  )

  it.live("takes back a folder that became a link, and nothing through the link", () =>
    Effect.gen(function* () {
      const { seen } = yield* recorded(
        (root) => {
          fs.mkdirSync(join(root, "d"))
          fs.writeFileSync(join(root, "d/c"), "inside")
          fs.writeFileSync(join(root, "../outside/c"), "outside")
        },
        (sandbox) => byCommand(sandbox, { _tag: "remove", path: "d" }, { _tag: "link", path: "d", to: "../outside" }),
        (root) => [join(root, "d/c"), join(root, "../outside/c")].map((path) => fs.readFileSync(path, "utf8"))
      )
      assert.deepStrictEqual(seen, [
        ["inside", "outside"],
        ["outside", "outside"]
      ])
    })
  )

  it.live("takes back a file that a tool made through links that led nowhere", () =>
    Effect.gen(function* () {
      const { seen } = yield* recorded(
        () => undefined,
        Effect.fnUntraced(function* (sandbox) {
          yield* byCommand(sandbox, { _tag: "link", path: "h", to: "g" }, { _tag: "link", path: "g", to: "a" })
          yield* sandbox.write("/h", "x")
        }),
        (root) => fs.readdirSync(root).filter((name) => name !== "outside")
      )
      assert.deepStrictEqual(seen, [[], ["a", "g", "h"]])
    })
  )

  it.live("takes back files that tools made and moved through folders that were links to nowhere", () =>
    Effect.gen(function* () {
      const { seen } = yield* recorded(
        (root) => {
          fs.symlinkSync("e/./x", join(root, "d"))
          fs.symlinkSync("nowhere", join(root, "e"))
          fs.symlinkSync("round/x", join(root, "round"))
          fs.writeFileSync(join(root, "a"), "x")
        },
        Effect.fnUntraced(function* (sandbox) {
          yield* sandbox.write("/d/f", "")
          yield* sandbox.move("/a", "/d/g/h")
          yield* Effect.flip(sandbox.write("/round/f", ""))
        }),
        (root) =>
          shapeOf(root)
            .replaceAll(/ [^\n]*/g, "")
            .split("\n")
      )
      assert.deepStrictEqual(seen, [
        ["/a", "/d", "/e", "/round"],
        ["/d", "/e", "/nowhere/", "/nowhere/x/", "/nowhere/x/f", "/nowhere/x/g/", "/nowhere/x/g/h", "/round"]
      ])
    })
  )

  it.live("takes back a command's change of a file that a tool had named outside of the folder", () =>
    Effect.gen(function* () {
      const { seen } = yield* recorded(
        (root) => {
          fs.symlinkSync("../outside", join(root, "d"))
          fs.writeFileSync(join(root, "d/c"), "x")
        },
        Effect.fnUntraced(function* (sandbox) {
          // The backend refuses it, but not all do.
          yield* Effect.flip(sandbox.write("/d/c", ""))
          yield* byCommand(sandbox, { _tag: "append", path: "d/c", text: "y" })
          yield* byCommand(sandbox, { _tag: "append", path: "d/c", text: "z" })
        }),
        (root) => fs.readFileSync(join(root, "d/c"), "utf8")
      )
      assert.deepStrictEqual(seen, ["x", "xyz"])
    })
  )

  it.live("does not look for a path of a million characters", () =>
    Effect.gen(function* () {
      const { seen } = yield* recorded(
        () => undefined,
        (sandbox) => Effect.ignore(sandbox.write(`/${"a/".repeat(500_000)}b`, "x")),
        (root) => fs.readdirSync(root).length
      )
      assert.deepStrictEqual(seen, [0, 0])
    })
  )

  it.live("names a file that it can't restore, since its name is no UTF-8", () =>
    Effect.gen(function* () {
      const { notes } = yield* recorded(
        (root) => {
          fs.mkdirSync(join(root, "d"))
          fs.writeFileSync(Buffer.concat([Buffer.from(`${join(root, "d")}/`), Buffer.from([0xff, 0x61])]), "x")
        },
        (sandbox) => byCommand(sandbox, { _tag: "remove", path: "d" }),
        () => undefined
      )
      assert.match(notes.join(), /d\/\uFFFDa/)
    })
  )
})
