/** A process that reads its own open database would lose the locks on it. */
import { execFileSync } from "node:child_process"
import { existsSync, linkSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import * as FileCheckpoints from "effect-deepagents/sessions/FileCheckpoints"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { SqlClient } from "effect/sql"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "sqlite-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

const open = (file: string) =>
  Effect.map(Layer.build(SqliteClient.layer({ file })), (built) => Context.get(built, SqlClient.SqlClient))

const byOther = (file: string, body: string): string =>
  execFileSync(
    process.execPath,
    ["-e", `const db = new (require("node:sqlite").DatabaseSync)(process.argv[1], { timeout: 0 }); ${body}`, file],
    { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }
  ).trim()

/** Reports whether this process has a lock on a file. Only Linux lists them. */
const isLocked = (file: string): boolean => {
  if (process.platform !== "linux") return true
  const { ino } = statSync(file)
  const own = readFileSync("/proc/locks", "utf8").split("\n")
  return own.some((line) => line.includes(` ${process.pid} `) && line.includes(`:${ino} `))
}

/** Only a process that has a database alone can end its log, which others would go on to write. */
const checkLocks = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, file: string) {
  const attempt = (statement: string): string =>
    byOther(file, `try { db.exec("${statement}"); console.log("done") } catch { console.log("locked") }`)
  for (const name of [file, `${file}-shm`]) assert.isTrue(isLocked(name), `the lock on ${name} is lost`)
  assert.strictEqual(attempt("PRAGMA journal_mode = DELETE"), "locked")
  assert.isTrue(existsSync(`${file}-wal`))
  const inTransaction = Effect.andThen(
    sql`INSERT INTO t VALUES (2)`,
    Effect.sync(() => attempt("BEGIN IMMEDIATE"))
  )
  assert.strictEqual(yield* sql.withTransaction(inTransaction), "locked")
})

const places = Effect.gen(function* () {
  const root = yield* folder
  const file = join(root, "threads.db")
  const sql = yield* open(file)
  yield* sql`CREATE TABLE t (n INTEGER)`
  yield* sql`INSERT INTO t VALUES (1)`
  return { root, file, sql }
})

describe("an open database in the folder of an agent", () => {
  it.live("keeps its locks when the agent reads and searches its folder, also by other names", () =>
    Effect.gen(function* () {
      const { file, root, sql } = yield* places
      writeFileSync(join(root, "note.txt"), "CREATE a note")
      linkSync(file, join(root, "hard.txt"))
      symlinkSync("threads.db", join(root, "soft.txt"))
      for (const ripgrep of [undefined, false] as const) {
        const files = yield* FilesystemBackend.make({ root, ripgrep })
        for (const path of ["/threads.db", "/threads.db-wal", "/threads.db-shm", "/hard.txt", "/soft.txt"]) {
          const { detail, reason } = yield* Effect.flip(files.read(path))
          assert.strictEqual(reason._tag, "PermissionDenied", path)
          assert.include(detail, "open as an SQLite database")
        }
        const found = yield* files.grep({ pattern: "CREATE" })
        assert.deepStrictEqual([...new Set(found.files.map(({ path }) => path))], ["/note.txt"])
        yield* checkLocks(sql, file)
      }
    })
  )

  it.live("keeps its locks when it is opened again in the process, and when the second connection is closed", () =>
    Effect.gen(function* () {
      const { file, sql } = yield* places
      yield* Effect.scoped(open(file))
      yield* Effect.scoped(Layer.build(SqliteSessions.layer({ file })))
      yield* checkLocks(sql, file)
    })
  )

  it.live("keeps its locks when checkpoints scan the folder, and is no change of the turn", () =>
    Effect.gen(function* () {
      const { file, root, sql } = yield* places
      const store = join(root, "checkpoints.db")
      const built = yield* Layer.build(FileCheckpoints.layer({ folders: [root], file: store }))
      const recording = yield* Context.get(built, FileCheckpoints.FileCheckpoints).begin({ threadId: "t", leaf: null })
      const sandbox = recording.watch(yield* LocalShell.make({ root }))
      yield* sandbox.execute("echo one > a.txt")
      yield* sql`INSERT INTO t VALUES (5)`
      yield* sandbox.execute("echo two > b.txt")
      assert.deepStrictEqual(yield* recording.end(null), [join(root, "a.txt"), join(root, "b.txt")])
      yield* checkLocks(sql, file)
    })
  )

  it.live("can be read once it is closed, also while another one is open", () =>
    Effect.gen(function* () {
      const { root } = yield* places
      const early = yield* FilesystemBackend.make({ root })
      yield* Effect.scoped(
        Effect.gen(function* () {
          const sql = yield* open(join(root, "second.db"))
          yield* sql`CREATE TABLE t (n INTEGER)`
          yield* Effect.flip(early.read("/second.db"))
          yield* Effect.flip(early.read("/second.db-shm"))
        })
      )
      yield* early.read("/second.db")
    })
  )
})
