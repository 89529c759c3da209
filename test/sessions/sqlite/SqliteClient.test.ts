import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Stream } from "effect"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
import { Migrator, SqlClient } from "effect/sql"

/** A file's name in a folder of its own. */
const aFile = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "sqlite-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  ),
  (folder) => join(folder, "test.db")
)

const client = (options?: Omit<Parameters<typeof SqliteClient.layer>[0], "file">) =>
  Effect.flatMap(aFile, (file) =>
    Effect.map(Layer.build(SqliteClient.layer({ file, ...options })), (context) => ({
      file,
      sql: Effect.runSync(Effect.provide(SqlClient.SqlClient, context))
    }))
  )

const another = (file: string) =>
  Effect.map(Layer.build(SqliteClient.layer({ file })), (context) =>
    Effect.runSync(Effect.provide(SqlClient.SqlClient, context))
  )

describe("SqliteClient", () => {
  it.live("runs statements, and gives rows, values and raw results", () =>
    Effect.gen(function* () {
      const { sql } = yield* client()
      yield* sql`CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, data BLOB)`
      expect(yield* sql`INSERT INTO t (name) VALUES (${"a"})`).toEqual([])
      expect(yield* sql`INSERT INTO t (name) VALUES (${"b"})`.raw).toEqual({ changes: 1, lastInsertRowid: 2 })
      expect(yield* sql`INSERT INTO t ${sql.insert({ name: "c", data: new Uint8Array([1, 2]) })} RETURNING id`).toEqual(
        [{ id: 3 }]
      )
      expect(yield* sql`SELECT id, name FROM t WHERE ${sql.in("name", ["a", "c"])} ORDER BY id`.values).toEqual([
        [1, "a"],
        [3, "c"]
      ])
      expect(yield* sql`SELECT id, name FROM t WHERE ${sql.in("name", ["a", "c"])} ORDER BY id`).toEqual([
        { id: 1, name: "a" },
        { id: 3, name: "c" }
      ])
      expect(yield* sql`SELECT data FROM t WHERE id = 3`).toEqual([{ data: new Uint8Array([1, 2]) }])
      expect(yield* sql`SELECT ${true} AS yes, ${undefined} AS none`).toEqual([{ yes: 1, none: null }])
    })
  )

  it.live("gives bigints where numbers can't hold a value, and everywhere if asked; a write runs once", () =>
    Effect.gen(function* () {
      const { sql } = yield* client()
      yield* sql`CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, n INTEGER)`
      const big = 2n ** 60n + 1n
      expect(yield* sql`INSERT INTO t (n) VALUES (${big}) RETURNING id, n`).toEqual([{ id: 1, n: big }])
      expect(yield* sql`SELECT id, n FROM t`).toEqual([{ id: 1, n: big }])
      expect(yield* sql`SELECT id, n FROM t`.values).toEqual([[1, big]])
      expect(yield* Stream.runCollect(sql`SELECT id, n FROM t`.stream)).toEqual([{ id: 1, n: big }])
      const safe = Effect.provideService(SqlClient.SafeIntegers, true)
      expect(yield* safe(sql`SELECT id, n FROM t`)).toEqual([{ id: 1n, n: big }])
      expect(yield* safe(Stream.runCollect(sql`SELECT id, n FROM t`.stream))).toEqual([{ id: 1n, n: big }])
      // The same statement as before, which must not remember it.
      expect(yield* sql`SELECT id FROM t`).toEqual([{ id: 1 }])
      expect(yield* sql`SELECT count(*) AS n FROM t`).toEqual([{ n: 1 }])
    })
  )

  it.live("rolls a transaction back, or only the failed inner one", () =>
    Effect.gen(function* () {
      const { sql } = yield* client()
      yield* sql`CREATE TABLE t (n INTEGER)`
      const putNumber = (n: number) => sql`INSERT INTO t VALUES (${n})`
      yield* putNumber(1).pipe(Effect.andThen(Effect.fail("no")), sql.withTransaction, Effect.exit)
      yield* sql.withTransaction(
        Effect.andThen(putNumber(2), Effect.exit(sql.withTransaction(Effect.andThen(putNumber(3), Effect.fail("no")))))
      )
      yield* sql.withTransaction(sql.withTransaction(putNumber(4)))
      expect(yield* sql`SELECT n FROM t ORDER BY n`.values).toEqual([[2], [4]])
      const began = yield* Effect.forkChild(sql.withTransaction(Effect.andThen(putNumber(5), Effect.never)))
      yield* Effect.sleep(20)
      yield* Fiber.interrupt(began)
      expect(yield* sql`SELECT n FROM t ORDER BY n`.values).toEqual([[2], [4]])
    })
  )

  it.live("keeps other queries out of a transaction", () =>
    Effect.gen(function* () {
      const { sql } = yield* client()
      yield* sql`CREATE TABLE t (n INTEGER)`
      const failing = sql.withTransaction(
        sql`INSERT INTO t VALUES (1)`.pipe(Effect.andThen(Effect.sleep(30)), Effect.andThen(Effect.fail("no")))
      )
      const other = Effect.andThen(Effect.sleep(10), sql`INSERT INTO t VALUES (2)`)
      yield* Effect.all([Effect.exit(failing), other], { concurrency: 2 })
      expect(yield* sql`SELECT n FROM t`.values).toEqual([[2]])
    })
  )

  it.live("counts right with 32 fibers of two connections that read and write in transactions", () =>
    Effect.gen(function* () {
      const { file, sql } = yield* client()
      const second = yield* another(file)
      yield* sql`CREATE TABLE t (n INTEGER)`
      yield* sql`INSERT INTO t VALUES (0)`
      const add = (via: SqlClient.SqlClient) =>
        via.withTransaction(
          Effect.gen(function* () {
            const [row] = yield* via<{ n: number }>`SELECT n FROM t`
            yield* Effect.yieldNow
            yield* via`UPDATE t SET n = ${(row?.n ?? 0) + 1}`
          })
        )
      yield* Effect.forEach(Array.from({ length: 32 }), (_, index) => add(index % 2 === 0 ? sql : second), {
        concurrency: "unbounded"
      })
      expect(yield* sql`SELECT n FROM t`.values).toEqual([[32]])
    })
  )

  it.live("waits asleep for another connection's lock, and fails with a lock timeout in the end", () =>
    Effect.gen(function* () {
      const { file, sql } = yield* client()
      const second = yield* another(file)
      yield* sql`CREATE TABLE t (n INTEGER)`
      let ticks = 0
      const held = yield* Deferred.make<void>()
      const holding = yield* Effect.forkChild(
        sql.withTransaction(
          Effect.andThen(Deferred.succeed(held, undefined), Effect.repeat(Effect.sleep(5), { until: () => ticks > 5 }))
        )
      )
      yield* Deferred.await(held)
      const ticking = yield* Effect.forkChild(
        Effect.forever(
          Effect.andThen(
            Effect.sleep(5),
            Effect.sync(() => ticks++)
          )
        )
      )
      yield* second`INSERT INTO t VALUES (1)`
      yield* second.withTransaction(second`INSERT INTO t VALUES (2)`)
      expect(ticks).toBeGreaterThan(5)
      yield* Fiber.interrupt(ticking)
      yield* Fiber.join(holding)
      expect(yield* sql`SELECT n FROM t`.values).toEqual([[1], [2]])
    })
  )

  it.effect("waits by the machine's clock for a lock: its owner knows nothing of a test clock", () =>
    Effect.gen(function* () {
      const { file, sql } = yield* client()
      yield* sql`CREATE TABLE t (n INTEGER)`
      const owner = new DatabaseSync(file)
      owner.exec("BEGIN IMMEDIATE")
      setTimeout(() => {
        owner.exec("COMMIT")
        owner.close()
      }, 50)
      yield* sql`INSERT INTO t VALUES (1)`
      expect(yield* sql`SELECT n FROM t`.values).toEqual([[1]])
    })
  )

  it.live("has typed reasons", () =>
    Effect.gen(function* () {
      const { sql } = yield* client()
      yield* sql`CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL)`
      yield* sql`INSERT INTO t VALUES (1, 'a')`
      const reason = (statement: Effect.Effect<unknown, { readonly reason: { readonly _tag: string } }>) =>
        Effect.map(Effect.flip(statement), (error) => error.reason)
      expect(yield* reason(sql`INSERT INTO t VALUES (2, 'a')`)).toMatchObject({
        _tag: "UniqueViolation",
        constraint: "t.name"
      })
      expect(yield* reason(sql`INSERT INTO t VALUES (1, 'b')`)).toMatchObject({
        _tag: "UniqueViolation",
        constraint: "t.id"
      })
      expect(yield* reason(sql`INSERT INTO t VALUES (3, NULL)`)).toMatchObject({ _tag: "ConstraintError" })
      expect(yield* reason(sql`SELEKT 1`)).toMatchObject({ _tag: "SqlSyntaxError" })
      expect(yield* reason(sql`SELECT ${{ a: 1 }}`)).toMatchObject({ _tag: "SqlSyntaxError" })
      expect((yield* Effect.flip(sql`SELECT ${1}, ${new Date(0)}`)).message).toContain("value 2 is a Date")
    })
  )

  it.live("refuses a text with several statements, of which all but one would be left out", () =>
    Effect.gen(function* () {
      const { sql } = yield* client()
      const error = yield* Effect.flip(sql.unsafe("CREATE TABLE a (n); CREATE TABLE b (n)"))
      expect(error.reason._tag).toBe("SqlSyntaxError")
      expect(error.message).toContain("one by one")
      expect(yield* sql.unsafe("SELECT 1 AS n; -- and no more\n ; /* really */ ")).toEqual([{ n: 1 }])
      expect(yield* sql`SELECT name FROM sqlite_master`).toEqual([])
    })
  )

  it.live("streams rows while other statements write, and ends when it is left", () =>
    Effect.gen(function* () {
      const { sql } = yield* client()
      yield* sql`CREATE TABLE t (n INTEGER PRIMARY KEY, seen INTEGER)`
      yield* sql`WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 1000) INSERT INTO t SELECT n, 0 FROM c`
      const all = sql<{ n: number }>`SELECT n FROM t ORDER BY n`.stream
      yield* Stream.runForEach(all, ({ n }) => sql`UPDATE t SET seen = 1 WHERE n = ${n}`)
      expect(yield* sql`SELECT sum(seen) AS n FROM t`).toEqual([{ n: 1000 }])
      expect(yield* Stream.runCollect(Stream.take(all, 3))).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }])
      // Inside of a transaction, a stream sees what the transaction did.
      const within = sql.withTransaction(
        Effect.andThen(sql`INSERT INTO t VALUES (1001, 0)`, Stream.runCollect(Stream.drop(all, 1000)))
      )
      expect(yield* within).toEqual([{ n: 1001 }])
      const error = yield* Effect.flip(Stream.runDrain(sql`SELECT nothing FROM t`.stream))
      expect(error.reason._tag).toBe("SqlSyntaxError")
    })
  )

  it.live("changes names on their way if asked to", () =>
    Effect.gen(function* () {
      const { sql } = yield* client({
        transformQueryNames: (name) => name.toLowerCase(),
        transformResultNames: (name) => name.toUpperCase()
      })
      yield* sql`CREATE TABLE t (id INTEGER)`
      yield* sql`INSERT INTO t ${sql.insert({ ID: 1 })}`
      expect(yield* sql`SELECT id FROM t`).toEqual([{ ID: 1 }])
      expect(yield* Stream.runCollect(sql`SELECT id FROM t`.stream)).toEqual([{ ID: 1 }])
      expect(yield* sql`SELECT id FROM t`.withoutTransform).toEqual([{ id: 1 }])
    })
  )

  it.live("makes a file for its owner only, and keeps the mode of an existing one", () =>
    Effect.gen(function* () {
      const { file, sql } = yield* client()
      yield* sql`CREATE TABLE t (n)`
      for (const name of [file, `${file}-wal`, `${file}-shm`]) expect(statSync(name).mode & 0o777).toBe(0o600)
      const given = yield* aFile
      writeFileSync(given, "", { mode: 0o640 })
      yield* another(given)
      expect(statSync(given).mode & 0o777).toBe(0o640)
    })
  )

  it.live("says which file can't be opened, and what to do", () =>
    Effect.gen(function* () {
      const file = yield* aFile
      const missing = yield* Effect.flip(another(join(file, "none", "x.db")))
      expect(missing.reason._tag).toBe("ConnectionError")
      expect(missing.message).toContain(`${file}/none/x.db`)
      expect(missing.message).toContain("folder must exist")
      writeFileSync(file, "this is a letter to a friend, and it has been here for a long time already")
      const other = yield* Effect.flip(another(file))
      expect(other.message).toContain(file)
      expect(other.message).toContain("choose another name")
    })
  )

  it.live("says what to do where nothing can be written", () =>
    Effect.gen(function* () {
      const { sql } = yield* client()
      yield* sql`CREATE TABLE t (text)`
      yield* sql`PRAGMA max_page_count = 3`
      const full = yield* Effect.flip(sql`INSERT INTO t VALUES (${"x".repeat(100_000)})`)
      expect(full.message).toContain("full; make room on the disk")
      yield* sql`PRAGMA query_only = 1`
      const refused = yield* Effect.flip(sql`INSERT INTO t VALUES ('x')`)
      expect(refused.message).toContain("let this process write there")
      expect(yield* sql`SELECT * FROM t`).toEqual([])
    })
  )

  it.live("has databases in memory, each its own", () =>
    Effect.gen(function* () {
      const [one, two] = [yield* another(":memory:"), yield* another(":memory:")]
      yield* one`CREATE TABLE t (n)`
      yield* one`INSERT INTO t VALUES (1)`
      expect(yield* Stream.runCollect(one`SELECT n FROM t`.stream)).toEqual([{ n: 1 }])
      expect(yield* two`SELECT name FROM sqlite_master`).toEqual([])
    })
  )

  it.live("remembers statements, and knows them by another schema", () =>
    Effect.gen(function* () {
      const { sql } = yield* client()
      yield* sql`CREATE TABLE t (a)`
      yield* sql`INSERT INTO t VALUES (1)`
      expect(yield* sql`SELECT * FROM t`).toEqual([{ a: 1 }])
      yield* sql`ALTER TABLE t ADD COLUMN b`
      expect(yield* sql`SELECT * FROM t`).toEqual([{ a: 1, b: null }])
      for (let n = 0; n < 600; n++) yield* sql.unsafe(`SELECT ${n} AS n`)
      expect(yield* sql`SELECT * FROM t`).toEqual([{ a: 1, b: null }])
    })
  )

  it.live("runs migrations of two processes once", () =>
    Effect.gen(function* () {
      const { file, sql } = yield* client()
      const second = yield* another(file)
      const loader = Migrator.fromRecord({
        "1_make": Effect.flatMap(SqlClient.SqlClient, (db) => db`CREATE TABLE t (n)`),
        "2_fill": Effect.flatMap(SqlClient.SqlClient, (db) => db`INSERT INTO t VALUES (1)`)
      })
      const migrate = (via: SqlClient.SqlClient) =>
        Effect.provideService(Migrator.make({})({ loader }), SqlClient.SqlClient, via)
      yield* Effect.all([migrate(sql), migrate(second)], { concurrency: 2 })
      expect(yield* sql`SELECT n FROM t`.values).toEqual([[1]])
    })
  )
})
