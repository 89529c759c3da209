/** Appends to an SQLite file: those of one turn of the event loop are one commit, and each fails alone. */
import { readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Layer, type Scope } from "effect"
import { Message, type SessionError } from "effect-deepagents"
import { SessionStore } from "effect-deepagents/sessions"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
import * as SqlSessions from "effect-deepagents/sessions/SqlSessions"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { folder } from "../places.ts"

const message = (id: string): SessionStore.NewEntry => ({
  id,
  entry: { _tag: "Message", message: Message.human(`text ${id}`) }
})

const inFile = <A, E, R>(
  file: string,
  body: (store: SessionStore.Service, sql: SqlClient.SqlClient) => Effect.Effect<A, E, R>
) =>
  Effect.gen(function* () {
    return yield* body(yield* SessionStore.SessionStore, yield* SqlClient.SqlClient)
  }).pipe(Effect.provide(SqlSessions.layer.pipe(Layer.provideMerge(SqliteClient.layer({ file })))))

interface Place {
  readonly store: SessionStore.Service
  readonly sql: SqlClient.SqlClient
  readonly file: string
}

/** Makes a test on a new file. */
const inNewFile = (body: (place: Place) => Generator<Effect.Effect<unknown, unknown, Scope.Scope>, void>) => () =>
  Effect.flatMap(aFile, (file) => inFile(file, (store, sql) => Effect.gen(() => body({ store, sql, file }))))

const aFile = Effect.map(folder, (at) => join(at, "sessions.db"))

const threads = (count: number) => Array.from({ length: count }, (_, n) => `t${n}`)

/** The transactions in the log of a file: the last page of each says how many pages there are then. */
const commits = (file: string): number => {
  const log = readFileSync(`${file}-wal`)
  const page = log.readUInt32BE(8)
  const salt = log.subarray(16, 24)
  let count = 0
  for (let at = 32; at + 24 + page <= log.length; at += 24 + page) {
    if (log.subarray(at + 8, at + 16).equals(salt) && log.readUInt32BE(at + 4) > 0) count++
  }
  return count
}

const idsOf = (store: SessionStore.Service, threadId: string) =>
  Effect.map(store.load(threadId), ({ entries }) => entries.map(({ id }) => id))

describe("appends of one turn of the event loop", () => {
  it.live(
    "of 200 threads are few commits, each returned after its own",
    inNewFile(function* ({ file, store }) {
      yield* Effect.forEach(threads(200), (threadId) => store.create({ threadId }))
      const before = commits(file)
      const other = new DatabaseSync(file, { readOnly: true })
      const there = other.prepare("SELECT count(*) AS count FROM session_entries")
      let seen = 0
      yield* Effect.forEach(
        threads(200),
        (threadId) =>
          Effect.flatMap(store.append(threadId, { leaf: null, entries: [message("a")] }), () =>
            Effect.sync(() => assert.isAtLeast(Number(there.get()?.["count"]), ++seen))
          ),
        { concurrency: "unbounded" }
      )
      other.close()
      assert.isBelow(commits(file) - before, 5)
      // One thread alone waits for nobody, and has a commit each time.
      const alone = commits(file)
      for (let n = 0; n < 10; n++) {
        yield* store.append("t0", { leaf: n === 0 ? "a" : `b${n - 1}`, entries: [message(`b${n}`)] })
      }
      assert.strictEqual(commits(file) - alone, 10)
    })
  )

  it.live(
    "fail alone: a conflict, a taken id, an archived thread and a removed one keep nobody from the commit",
    inNewFile(function* ({ store }) {
      yield* Effect.forEach(threads(8), (threadId) => store.create({ threadId }))
      yield* Effect.forEach(threads(8), (threadId) => store.append(threadId, { leaf: null, entries: [message("a")] }))
      yield* store.archive("t1")
      yield* store.delete("t2")
      const tried = yield* Effect.forEach(
        threads(8),
        (threadId, n) =>
          Effect.result(
            store.append(threadId, {
              leaf: n === 3 ? null : "a",
              entries: n === 4 ? [message("b"), message("a")] : [message("b"), message("c")]
            })
          ),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(
        tried.map((one) => (one._tag === "Success" ? one.success.step : one.failure.reason._tag)),
        [3, "Archived", "NotFound", "Conflict", "InvalidEntry", 3, 3, 3]
      )
      assert.deepStrictEqual(yield* idsOf(store, "t0"), ["a", "b", "c"])
      assert.deepStrictEqual(yield* idsOf(store, "t4"), ["a"])
      assert.deepStrictEqual(yield* idsOf(store, "t7"), ["a", "b", "c"])
    })
  )

  it.live(
    "behind each other on one thread are all made, and two behind one entry are one",
    inNewFile(function* ({ store }) {
      yield* store.create({ threadId: "t" })
      yield* store.create({ threadId: "u" })
      const appends = [null, "0", "0", "1"].map((leaf, n) =>
        Effect.result(store.append("t", { leaf, entries: [message(`${n}`)] }))
      )
      const tried = yield* Effect.all([...appends, store.append("u", { leaf: null, entries: [message("x")] })], {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(
        tried.slice(0, 4).map((one) => "_tag" in one && one._tag),
        ["Success", "Success", "Failure", "Success"]
      )
      assert.deepStrictEqual(yield* idsOf(store, "t"), ["0", "1", "3"])
    })
  )

  it.live(
    "are not made when they are interrupted before it; the others are",
    inNewFile(function* ({ store }) {
      yield* Effect.forEach(threads(20), (threadId) => store.create({ threadId }))
      const running = threads(20).map((threadId) =>
        Effect.runFork(store.append(threadId, { leaf: null, entries: [message("a")] }))
      )
      yield* Fiber.interruptAll(running.filter((_, n) => n % 2 === 1))
      const exits = yield* Effect.forEach(running, Fiber.await)
      for (const [n, exit] of exits.entries()) {
        const { step } = yield* store.leaf(`t${n}`)
        if (Exit.isSuccess(exit)) assert.strictEqual(step, 1)
        else {
          assert.isTrue(n % 2 === 1 && Cause.hasInterrupts(exit.cause))
          assert.strictEqual(step, 0)
        }
      }
      assert.strictEqual(exits.filter(Exit.isSuccess).length, 10)
    })
  )
})

describe("appends beside other users of the file", () => {
  it.effect(
    "go on from the file's state of the thread, after any change by others",
    Effect.fnUntraced(function* () {
      const file = yield* aFile
      const append = (store: SessionStore.Service, threadId: string, leaf: string | null, id: string) =>
        store.append(threadId, { leaf, entries: [message(id)] })
      const meanwhile: ReadonlyArray<
        readonly [
          does: (other: SessionStore.Service, threadId: string) => Effect.Effect<unknown, unknown>,
          outcome: "Done" | SessionError.SessionError["reason"]["_tag"],
          path: ReadonlyArray<string>
        ]
      > = [
        [() => Effect.void, "Done", ["a", "b", "c"]],
        [(other, id) => append(other, id, "b", "x"), "Conflict", ["a", "b", "x"]],
        [(other, id) => other.label(id, "here", "a"), "Done", ["a", "b", "c"]],
        [(other, id) => other.describe(id, { of: "somebody" }), "Done", ["a", "b", "c"]],
        // All that is there so far is in the index of words then.
        [(other) => other.search("text"), "Done", ["a", "b", "c"]],
        [(other, id) => other.rewind(id, "a"), "Conflict", ["a"]],
        // The leaf is unchanged, and the next number is taken.
        [(other, id) => Effect.andThen(append(other, id, "b", "x"), other.rewind(id, "b")), "Done", ["a", "b", "c"]],
        // Neither is the id.
        [(other, id) => Effect.andThen(append(other, id, "b", "c"), other.rewind(id, "b")), "InvalidEntry", ["a", "b"]],
        [(other, id) => other.archive(id), "Archived", ["a", "b"]],
        [(other, id) => Effect.andThen(other.archive(id), other.unarchive(id)), "Done", ["a", "b", "c"]],
        // A thread forked from it keeps its entries.
        [(other, id) => Effect.andThen(other.fork(id), other.delete(id)), "NotFound", []],
        [
          (other, id) =>
            other
              .delete(id)
              .pipe(Effect.andThen(other.create({ threadId: id })), Effect.andThen(append(other, id, null, "b"))),
          "Done",
          ["b", "c"]
        ]
      ]
      yield* inFile(
        file,
        Effect.fnUntraced(function* (store) {
          const all = [0, 5_000].flatMap((later) => meanwhile.map((one) => [later, ...one] as const))
          for (const [n, [later, does, outcome, path]] of all.entries()) {
            const threadId = `t${n}`
            yield* store.create({ threadId })
            yield* append(store, threadId, null, "a")
            yield* append(store, threadId, "a", "b")
            yield* inFile(file, (other) => does(other, threadId))
            // It is put into another place of the list then.
            yield* TestClock.adjust(later)
            const tried = yield* Effect.result(append(store, threadId, "b", "c"))
            assert.strictEqual(
              tried._tag === "Success" ? tried.success.step : tried.failure.reason._tag,
              outcome === "Done" ? path.length : outcome,
              threadId
            )
            const ids = Effect.catchIf(
              idsOf(store, threadId),
              ({ reason }) => reason._tag === "NotFound",
              () => Effect.succeed([])
            )
            assert.deepStrictEqual(yield* ids, path, threadId)
            if (outcome !== "Done") continue
            assert.sameMembers(
              (yield* store.search("text c", { threadId })).items.map(({ entryId }) => entryId),
              ["c"],
              threadId
            )
          }
        })
      )
    }),
    30_000
  )

  it.live(
    "inside of a transaction of the same client are part of it",
    inNewFile(function* ({ sql, store }) {
      yield* store.create({ threadId: "t" })
      const append = (leaf: string | null, id: string) => store.append("t", { leaf, entries: [message(id)] })
      const undone = Effect.andThen(append(null, "a"), Effect.fail("no" as const))
      assert.strictEqual(yield* Effect.flip(sql.withTransaction(undone)), "no")
      assert.deepStrictEqual(yield* idsOf(store, "t"), [])
      yield* sql.withTransaction(Effect.andThen(append(null, "a"), append("a", "b")))
      assert.deepStrictEqual(yield* idsOf(store, "t"), ["a", "b"])
    })
  )

  it.live(
    "wait for a transaction of the same client, and for the lock of another process, without stopping this one",
    inNewFile(function* ({ file, sql, store }) {
      yield* Effect.forEach(threads(4), (threadId) => store.create({ threadId }))
      const all = (leaf: string | null, id: string) =>
        Effect.forEach(threads(4), (threadId) => store.append(threadId, { leaf, entries: [message(id)] }), {
          concurrency: "unbounded"
        })
      const slow = yield* Effect.forkChild(sql.withTransaction(Effect.sleep("50 millis")))
      yield* Effect.sleep("5 millis")
      yield* all(null, "a")
      yield* Fiber.join(slow)
      const other = new DatabaseSync(file)
      other.exec("BEGIN IMMEDIATE")
      const waiting = yield* Effect.forkChild(all("a", "b"))
      const began = performance.now()
      yield* Effect.sleep("50 millis")
      assert.isBelow(performance.now() - began, 2_000)
      assert.isUndefined(waiting.pollUnsafe())
      other.exec("COMMIT")
      other.close()
      yield* Fiber.join(waiting)
      assert.deepStrictEqual(yield* idsOf(store, "t3"), ["a", "b"])
    })
  )

  it.live(
    "go on for thousands after a waiting one, and write the log back beside the process",
    inNewFile(function* ({ file, store }) {
      yield* store.create({ threadId: "t" })
      const other = new DatabaseSync(file)
      other.exec("BEGIN IMMEDIATE")
      const unlocked = yield* Effect.forkChild(
        Effect.andThen(
          Effect.sleep("20 millis"),
          Effect.sync(() => other.exec("COMMIT"))
        )
      )
      for (let n = 0; n < 3_000; n++) {
        yield* store.append("t", { leaf: n === 0 ? null : `${n - 1}`, entries: [message(`${n}`)] })
      }
      yield* Fiber.join(unlocked)
      other.close()
      assert.strictEqual((yield* store.leaf("t")).step, 3_000)
      // The content of the file itself was written back: appends write to the log alone.
      yield* Effect.repeat(Effect.sleep("10 millis"), { until: () => statSync(file).size > 200_000 })
    }),
    30_000
  )

  it.live(
    "that are large give others their turns of the event loop between their entries",
    inNewFile(function* ({ store }) {
      yield* store.create({ threadId: "t" })
      let turns = 0
      const counting = yield* Effect.forkChild(
        Effect.forever(
          Effect.andThen(
            Effect.yieldNow,
            Effect.sync(() => void turns++)
          )
        )
      )
      const entry = { _tag: "Message", message: Message.human("x".repeat(2_000_000)) } as const
      yield* store.append("t", { leaf: null, entries: ["a", "b", "c", "d"].map((id) => ({ id, entry })) })
      yield* Fiber.interrupt(counting)
      assert.isAtLeast(turns, 4)
      assert.deepStrictEqual(yield* idsOf(store, "t"), ["a", "b", "c", "d"])
    })
  )

  it.live(
    "of the versions before are refused, rather than lost",
    inNewFile(function* ({ file, store }) {
      yield* store.create({ threadId: "t" })
      const old = new DatabaseSync(file)
      for (const kind of ["tag", "kind"]) {
        const insert = `INSERT INTO session_entries (pk, thread, id, parent, step, at, ${kind}, body) VALUES (1, 1, 'x', NULL, 1, 0, 'Message', '{}')`
        assert.throws(() => old.exec(insert), new RegExp(kind, "u"))
      }
      old.close()
    })
  )
})
