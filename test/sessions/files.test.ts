/**
 * What is peculiar to files: torn lines, damage, other versions.
 */
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer, Logger } from "effect"
import { Message, type SessionError } from "effect-deepagents"
import { JsonlSessions, SessionStore } from "effect-deepagents/sessions"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { SqlClient } from "effect/sql"
import * as fc from "fast-check"
import { makeJournal } from "../../src/sessions/journal.ts"
import { scaled } from "../scale.ts"
import { folder, jsonl } from "./places.ts"

const message = (id: string): SessionStore.NewEntry => ({
  id,
  entry: { _tag: "Message", message: Message.human(`text ${id}`) }
})

const inFolder = <A, E>(
  path: string,
  body: (store: SessionStore.Service) => Effect.Effect<A, E>,
  log: Array<string> = []
) =>
  SessionStore.SessionStore.use(body).pipe(
    Effect.provide(JsonlSessions.layer({ folder: path }).pipe(Layer.provide(NodeServices.layer))),
    Effect.provide(Logger.layer([Logger.make(({ message: text }) => void log.push(String(text)))]))
  )

const path = (store: SessionStore.Service) => Effect.map(store.load("t"), ({ entries }) => entries.map(({ id }) => id))

const filled = Effect.fnUntraced(function* (count: number) {
  const at = yield* folder
  yield* inFolder(at, (store) =>
    Effect.andThen(
      store.create({ threadId: "t" }),
      Effect.forEach(Array.from({ length: count }), (_, n) =>
        store.append("t", { leaf: n === 0 ? null : `${n - 1}`, entries: [message(`${n}`)] })
      )
    )
  )
  return { at, file: join(at, readdirSync(at)[0] ?? "") }
})

describe("JsonlSessions", () => {
  it.live(
    "a thread that another process deleted and made again is the new one, for everybody",
    Effect.fnUntraced(function* () {
      const at = yield* folder
      yield* inFolder(at, (first) =>
        inFolder(
          at,
          Effect.fnUntraced(function* (second) {
            yield* first.create({ threadId: "t", metadata: { tenant: "old" } })
            yield* first.append("t", { leaf: null, entries: [message("0")] })
            yield* second.delete("t")
            yield* second.create({ threadId: "t", metadata: { tenant: "new" } })
            yield* second.append("t", { leaf: null, entries: [message("n1"), message("n2")] })
            assert.deepStrictEqual((yield* first.info("t")).metadata, { tenant: "new" })
            assert.deepStrictEqual(yield* path(first), ["n1", "n2"])
            const late = yield* Effect.flip(first.append("t", { leaf: "0", entries: [message("1")] }))
            assert.strictEqual(late.reason._tag, "Conflict")
            assert.deepStrictEqual(yield* path(second), ["n1", "n2"])
          })
        )
      )
    })
  )

  it.live(
    "a thread that is replaced or removed while it is opened is read as it is then",
    Effect.fnUntraced(function* () {
      const at = yield* folder
      let meanwhile: Effect.Effect<unknown, SessionError.SessionError> = Effect.void
      const watched = Layer.effect(
        FileSystem.FileSystem,
        Effect.map(FileSystem.FileSystem, (fs) => ({
          ...fs,
          open: (path: string, options?: Parameters<typeof fs.open>[1]) => {
            const once = options?.flag === "r" ? meanwhile : Effect.void
            if (options?.flag === "r") meanwhile = Effect.void
            return Effect.andThen(Effect.orDie(once), fs.open(path, options))
          }
        }))
      ).pipe(Layer.provideMerge(NodeServices.layer))
      yield* inFolder(
        at,
        Effect.fnUntraced(function* (other) {
          const program = SessionStore.SessionStore.use(
            Effect.fnUntraced(function* (store) {
              yield* other.create({ threadId: "t", metadata: { tenant: "old" } })
              yield* other.append("t", { leaf: null, entries: [message("0")] })
              assert.deepStrictEqual(yield* path(store), ["0"])
              yield* other.append("t", { leaf: "0", entries: [message("1")] })
              meanwhile = Effect.gen(function* () {
                yield* other.delete("t")
                yield* other.create({ threadId: "t", metadata: { tenant: "new" } })
                yield* other.append("t", { leaf: null, entries: [message("n1"), message("n2"), message("n3")] })
              })
              assert.deepStrictEqual(yield* path(store), ["n1", "n2", "n3"])
              assert.deepStrictEqual((yield* store.info("t")).metadata, { tenant: "new" })
              yield* other.append("t", { leaf: "n3", entries: [message("n4")] })
              meanwhile = other.delete("t")
              const gone = yield* Effect.flip(store.info("t"))
              assert.strictEqual(gone.reason._tag, "NotFound")
            })
          )
          yield* Effect.provide(program, JsonlSessions.layer({ folder: at }).pipe(Layer.provide(watched)))
        })
      )
    })
  )

  it.live(
    "a text made of the mark of torn lines is read as fast as any",
    Effect.fnUntraced(function* () {
      const at = yield* folder
      const marks: SessionStore.NewEntry = {
        id: "0",
        entry: { _tag: "Message", message: Message.human("#".repeat(500_000)) }
      }
      yield* inFolder(at, (store) =>
        Effect.andThen(store.create({ threadId: "t" }), store.append("t", { leaf: null, entries: [marks] }))
      )
      assert.deepStrictEqual(yield* inFolder(at, path), ["0"])
    })
  )

  it.live(
    "a fork of a thread that has lost its end since is corrupt, not empty",
    Effect.fnUntraced(function* () {
      const { at, file } = yield* filled(2)
      yield* inFolder(at, (store) => store.fork("t", { threadId: "f" }))
      const lines = readFileSync(file, "utf8").split("\n")
      writeFileSync(file, `${lines.slice(0, -2).join("\n")}\n`)
      const error = yield* Effect.flip(inFolder(at, (store) => store.info("f")))
      assert.strictEqual(error.reason._tag, "Corrupt")
    })
  )

  it.live(
    "a last line that is torn anywhere is left out, told of once, and the thread goes on",
    Effect.fnUntraced(function* () {
      const { at, file } = yield* filled(3)
      const lines = readFileSync(file, "utf8").split("\n")
      const last = (lines.at(-2) ?? "").length
      yield* Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(fc.integer({ min: 1, max: last }), (cut) =>
            Effect.gen(function* () {
              const log: Array<string> = []
              writeFileSync(file, lines.join("\n"))
              truncateSync(file, statSync(file).size - 1 - (last - cut))
              const isWhole = cut === last
              yield* inFolder(
                at,
                Effect.fnUntraced(function* (store) {
                  const there = yield* path(store)
                  // A line that only lacks its end is not acknowledged either.
                  assert.deepStrictEqual(there, isWhole ? ["0", "1", "2"] : ["0", "1"])
                  yield* store.append("t", { leaf: there.at(-1) ?? null, entries: [message("on")] })
                }),
                log
              )
              assert.strictEqual(log.length, 1)
              assert.include(log[0], `${cut} bytes`)
              const again: Array<string> = []
              const there = yield* inFolder(at, path, again)
              assert.strictEqual(there.at(-1), "on")
              assert.deepStrictEqual(again, [])
            }).pipe(Effect.runPromise)
          ),
          { numRuns: scaled(15), examples: [[1], [last]] }
        )
      )
    }, Effect.scoped),
    60_000
  )

  it.live("damage before valid records is an error, not a loss", () =>
    Effect.gen(function* () {
      const { at, file } = yield* filled(4)
      const lines = readFileSync(file, "utf8").split("\n")
      writeFileSync(file, lines.map((line, index) => (index === 2 ? line.slice(0, -5) : line)).join("\n"))
      const error = yield* Effect.flip(inFolder(at, path))
      assert.strictEqual(error.reason._tag, "Corrupt")
      const { items } = yield* inFolder(at, (store) => store.list())
      assert.deepStrictEqual(items, [], "other threads can still be listed")
    }).pipe(Effect.scoped)
  )

  const damages: Record<string, (lines: ReadonlyArray<string>) => ReadonlyArray<string>> = {
    "a byte of the first line": ([first = "", ...rest]) => [first.replace("{", "["), ...rest],
    "a key of the first line": ([first = "", ...rest]) => [first.replace("metadata", "metadat0"), ...rest],
    "the id in the first line": ([first = "", ...rest]) => [first.replace('"threadId":"t"', '"threadId":"u"'), ...rest],
    "a first line that is gone": ([, ...rest]) => rest,
    "a first line alone": ([first = ""]) => [first.replace("{", "["), ""],
    "a first line of nothing but zeros": ([first = ""]) => ["\0".repeat(first.length)],
    "a file of another program": () => ['{"role":"user"}'],
    "a byte of the last line": (lines) => lines.map((line, index) => (index === 3 ? line.replace("{", "[") : line)),
    "all of a later version": (lines) => lines.map((line) => line.replace('"v":1', '"v":2')),
    "a last line of a later version": (lines) =>
      lines.map((line, index) => (index === 3 ? line.replace('"v":1', '"v":2') : line))
  }
  for (const [what, damage] of Object.entries(damages)) {
    it.live(`${what}: the thread is Corrupt, it is not begun anew, and nothing is added to it`, () =>
      Effect.gen(function* () {
        const { at, file } = yield* filled(3)
        const damaged = damage(readFileSync(file, "utf8").split("\n")).join("\n")
        writeFileSync(file, damaged)
        const log: Array<string> = []
        const attempts = (store: SessionStore.Service) =>
          Effect.gen(function* () {
            for (const attempt of [
              store.load("t"),
              store.create({ threadId: "t" }),
              store.append("t", { leaf: null, entries: [message("new")] }),
              makeJournal(store).open("t")
            ]) {
              const error = yield* Effect.flip<unknown, SessionError.SessionError, never>(attempt)
              if (what === "the id in the first line" && error.operation === "create") continue
              assert.strictEqual(error.reason._tag, "Corrupt", error.message)
              assert.include(error.message, file)
            }
          })
        yield* inFolder(at, attempts, log)
        assert.strictEqual(readFileSync(file, "utf8"), damaged)
        assert.deepStrictEqual(log, [], "nothing is said of an append that was cut off")
      }).pipe(Effect.scoped)
    )
  }

  it.live("a folder in the place of a file is told by its name, and stands in the way of no other thread", () =>
    Effect.gen(function* () {
      const { at, file } = yield* filled(1)
      rmSync(file)
      mkdirSync(file)
      yield* inFolder(at, (store) =>
        Effect.gen(function* () {
          const error = yield* Effect.flip(store.load("t"))
          assert.strictEqual(error.reason._tag, "Corrupt")
          assert.include(error.message, file)
          yield* store.create({ threadId: "other" })
          assert.deepStrictEqual(
            (yield* store.list()).items.map(({ threadId }) => threadId),
            ["other"]
          )
        })
      )
    }).pipe(Effect.scoped)
  )

  it.live("a disk that is full is told as such", () =>
    Effect.gen(function* () {
      const place = yield* jsonl.place
      const error = yield* SessionStore.SessionStore.use((store) =>
        Effect.gen(function* () {
          yield* store.create({ threadId: "t" })
          yield* jsonl.fillDisk(place)
          return yield* Effect.flip(
            store.append("t", {
              leaf: null,
              entries: [{ id: "1", entry: { _tag: "Message", message: Message.human("x".repeat(2_000)) } }]
            })
          )
        })
      ).pipe(Effect.provide(jsonl.layer(place)))
      assert.strictEqual(error.reason._tag, "Unavailable")
      assert.include(error.message, "the disk is full")
    }).pipe(Effect.scoped)
  )

  it.live("leaves foreign files alone, and takes no renamed one for a thread", () =>
    Effect.gen(function* () {
      const { at, file } = yield* filled(1)
      writeFileSync(join(at, "notes.jsonl"), "mine")
      mkdirSync(join(at, "folder"))
      writeFileSync(join(at, `u.${"0".repeat(64)}.jsonl`), readFileSync(file))
      const { items } = yield* inFolder(at, (store) => store.list())
      assert.deepStrictEqual(
        items.map(({ threadId }) => threadId),
        ["t"]
      )
      assert.strictEqual(readFileSync(join(at, "notes.jsonl"), "utf8"), "mine")
    }).pipe(Effect.scoped)
  )

  it.live("sees records that another process appends, and ignores a record that came too late", () =>
    Effect.gen(function* () {
      const { at, file } = yield* filled(1)
      const other = (leaf: string, id: string) =>
        `${JSON.stringify({ v: 1, _tag: "Append", by: id, at: 1, leaf, entries: [message(id)] })}\n`
      yield* inFolder(
        at,
        Effect.fnUntraced(function* (store) {
          assert.deepStrictEqual(yield* path(store), ["0"])
          appendFileSync(file, other("0", "other") + other("0", "late"))
          assert.deepStrictEqual(yield* path(store), ["0", "other"])
          const error = yield* Effect.flip(store.append("t", { leaf: "0", entries: [message("x")] }))
          assert.deepStrictEqual(error.reason, { _tag: "Conflict", expected: "0", found: "other" })
        })
      )
    }).pipe(Effect.scoped)
  )
})

describe("SqliteSessions", () => {
  const open = (file: string) =>
    Effect.provide(
      SessionStore.SessionStore.use((store) => store.list()),
      SqliteSessions.layer({ file })
    )

  it.live("refuses a file of a later version, a foreign file, and a file that can't be made", () =>
    Effect.gen(function* () {
      const at = yield* folder
      const file = join(at, "sessions.db")
      yield* open(file)
      const database = new DatabaseSync(file)
      database.exec("INSERT INTO session_migrations (migration_id, name) VALUES (99, 'later')")
      database.close()
      const later = yield* Effect.flip(open(file))
      assert.strictEqual(later.reason._tag, "Corrupt")
      assert.include(later.message, "version 99")
      writeFileSync(join(at, "text.db"), "no database ".repeat(1000))
      assert.strictEqual((yield* Effect.flip(open(join(at, "text.db")))).reason._tag, "Corrupt")
      assert.strictEqual((yield* Effect.flip(open(join(at, "none", "x.db")))).reason._tag, "Unavailable")
    }).pipe(Effect.scoped)
  )

  it.live("an entry that can't be read is named", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "sessions.db")
      const use = <A, E>(body: (store: SessionStore.Service) => Effect.Effect<A, E>) =>
        Effect.provide(SessionStore.SessionStore.use(body), SqliteSessions.layer({ file }))
      yield* use((store) =>
        Effect.andThen(store.create({ threadId: "t" }), store.append("t", { leaf: null, entries: [message("0")] }))
      )
      const database = new DatabaseSync(file)
      database.exec(`UPDATE session_entries SET body = '{"_tag":"Message","message":{}}'`)
      database.close()
      const error = yield* Effect.flip(use(path))
      assert.strictEqual(error.reason._tag, "Corrupt")
      assert.include(error.message, "entry 0")
    }).pipe(Effect.scoped)
  )

  it.live("a transaction that fails in the middle leaves nothing", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`CREATE TABLE t (x INTEGER UNIQUE)`
      const insert = sql`INSERT INTO t VALUES (1)`
      const error = yield* Effect.flip(sql.withTransaction(Effect.andThen(insert, insert)))
      assert.strictEqual(error.reason._tag, "UniqueViolation")
      assert.deepStrictEqual(yield* sql`SELECT count(*) FROM t`.values, [[0]])
      yield* sql.withTransaction(insert)
      assert.deepStrictEqual(yield* sql`SELECT count(*) FROM t`.values, [[1]])
    }).pipe(Effect.provide(SqliteClient.layer({ file: ":memory:" })))
  )

  it.live("a lock that somebody else holds is waited for, asleep", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "sessions.db")
      yield* open(file)
      const other = new DatabaseSync(file)
      other.exec("BEGIN IMMEDIATE")
      let ticks = 0
      const release = Effect.gen(function* () {
        while (ticks < 10) {
          yield* Effect.sleep("5 millis")
          ticks++
        }
        other.exec("COMMIT")
        other.close()
      })
      const create = SessionStore.SessionStore.use((store) => store.create({ threadId: "t" })).pipe(
        Effect.provide(SqliteSessions.layer({ file }))
      )
      const [, thread] = yield* Effect.all([release, create], { concurrency: 2 })
      assert.strictEqual(thread.threadId, "t")
      assert.strictEqual(ticks, 10)
    }).pipe(Effect.scoped)
  )
})
