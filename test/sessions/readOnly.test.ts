/**
 * A store on a disk that can't be written to is read, and one whose file is moved away is noticed.
 */
import { execFileSync } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Stream } from "effect"
import { Message } from "effect-deepagents"
import { SessionStore } from "effect-deepagents/sessions"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { noSmallDisk } from "./places.ts"

const makeEntry = (id: string, text = id): SessionStore.NewEntry => ({
  id,
  entry: { _tag: "Message", message: Message.human(text) }
})

const open = (file: string) =>
  Effect.map(Layer.build(Layer.fresh(SqliteSessions.layer({ file }))), (services) =>
    Context.get(services, SessionStore.SessionStore)
  )

const temporary = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "read-only-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** The same folder at a place where nobody can write to it. */
const readOnly = (folder: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const path = mkdtempSync(join(tmpdir(), "read-only-"))
      execFileSync("mount", ["-o", "bind", folder, path])
      execFileSync("mount", ["-o", "remount,ro,bind", path])
      return path
    }),
    (path) =>
      Effect.sync(() => {
        execFileSync("umount", ["-l", path])
        rmSync(path, { recursive: true, force: true })
      })
  )

const fill = Effect.fnUntraced(function* (file: string) {
  const store = yield* open(file)
  yield* store.create({ threadId: "t" })
  const entries = Array.from({ length: 1_200 }, (_, n) => makeEntry(`${n}`, n % 100 === 0 ? `needle ${n}` : `hay ${n}`))
  yield* store.append("t", { leaf: null, entries })
  yield* store.fork("t", { threadId: "f" })
  yield* store.append("f", { leaf: "1199", entries: [makeEntry("x", "needle x")] })
})

const reads = Effect.fnUntraced(function* (file: string) {
  const store = yield* open(file)
  const { items } = yield* store.list()
  assert.deepStrictEqual(items.map(({ threadId }) => threadId).toSorted(), ["f", "t"])
  assert.strictEqual((yield* store.info("t")).leaf.step, 1_200)
  assert.strictEqual((yield* store.load("f", { from: "7", limit: 10_000 })).entries.length, 8)
  assert.strictEqual((yield* Stream.runCollect(store.export("f"))).length, 1_202)
  const found: Array<string> = []
  let cursor: string | null = null
  do {
    const page: SessionStore.Listing<SessionStore.Hit> = yield* store.search("needle", {
      limit: 5,
      ...(cursor === null ? {} : { cursor })
    })
    found.push(...page.items.map(({ entryId }) => entryId))
    cursor = page.next
  } while (cursor !== null)
  assert.strictEqual(new Set(found).size, 13)
  assert.strictEqual(found.length, 13)
  assert.strictEqual((yield* store.search("hay", { threadId: "t", limit: 1_000 })).items.length, 1_000)
  for (const change of [
    store.append("t", { leaf: "1199", entries: [makeEntry("y")] }),
    store.create(),
    store.fork("t"),
    store.delete("t"),
    SessionStore.copy(store, store, { name: "n" })
  ]) {
    assert.strictEqual((yield* Effect.flip(change))._tag, "SessionError")
  }
  const error = yield* Effect.flip(store.append("t", { leaf: "1199", entries: [makeEntry("y")] }))
  assert.strictEqual(error.reason._tag, "Unavailable")
  assert.include(error.message, "the file or its disk is read-only: let this process write there")
}, Effect.scoped)

describe.skipIf(noSmallDisk !== undefined)("SQLite on a read-only disk", () => {
  it.live("is read: lists, paths, exports and searches; a change fails, and says why", () =>
    Effect.gen(function* () {
      const folder = yield* temporary
      yield* Effect.scoped(fill(join(folder, "sessions.db")))
      yield* reads(join(yield* readOnly(folder), "sessions.db"))
    }).pipe(Effect.scoped)
  )

  it.live("is read with the writes in its log, and refused without the index of the log", () =>
    Effect.gen(function* () {
      const folder = yield* temporary
      const [whole, partly] = [join(folder, "whole"), join(folder, "partly")]
      yield* Effect.gen(function* () {
        yield* fill(join(folder, "sessions.db"))
        for (const path of [whole, partly]) {
          mkdirSync(path)
          for (const end of path === whole ? ["", "-wal", "-shm"] : ["", "-wal"]) {
            cpSync(join(folder, `sessions.db${end}`), join(path, `sessions.db${end}`))
          }
        }
      }).pipe(Effect.scoped)
      const there = yield* readOnly(folder)
      yield* reads(join(there, "whole", "sessions.db"))
      const error = yield* Effect.flip(open(join(there, "partly", "sessions.db")))
      assert.include(error.message, "copy both to another disk")
    }).pipe(Effect.scoped)
  )
})

describe.skipIf(noSmallDisk !== undefined)("SQLite on a read-only disk, of another version", () => {
  it.live("is refused by both versions, since nobody can migrate it", () =>
    Effect.gen(function* () {
      const folder = yield* temporary
      const file = join(folder, "sessions.db")
      yield* Effect.scoped(fill(file))
      const database = new DatabaseSync(file)
      database.exec(
        "DELETE FROM session_migrations WHERE migration_id = (SELECT max(migration_id) FROM session_migrations)"
      )
      database.close()
      const error = yield* Effect.flip(open(join(yield* readOnly(folder), "sessions.db")))
      assert.match(error.message, /has tables of version (\d+), where this library needs \d+; copy it to where/)
    }).pipe(Effect.scoped)
  )
})

describe("an SQLite file that is moved while it is open", () => {
  for (const [what, move] of [
    ["moved", (file: string) => renameSync(file, `${file}.old`)],
    ["removed", (file: string) => rmSync(file)]
  ] as const) {
    it.live(`takes no more writes once it was ${what}`, () =>
      Effect.gen(function* () {
        const file = join(yield* temporary, "sessions.db")
        const store = yield* open(file)
        yield* store.create({ threadId: "t" })
        yield* store.append("t", { leaf: null, entries: [makeEntry("1")] })
        move(file)
        yield* Effect.sleep("150 millis")
        const error = yield* Effect.flip(store.append("t", { leaf: "1", entries: [makeEntry("2")] }))
        assert.strictEqual(error.reason._tag, "Unavailable")
        assert.include(error.message, "was moved, replaced or removed while it was open")
        assert.strictEqual((yield* Effect.flip(store.archive("t"))).reason._tag, "Unavailable")
        if (what !== "moved") return
        renameSync(`${file}.old`, file)
        assert.strictEqual((yield* store.append("t", { leaf: "1", entries: [makeEntry("2")] })).step, 2)
      }).pipe(Effect.scoped)
    )
  }
})
