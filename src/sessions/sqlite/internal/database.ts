import { DatabaseSync } from "node:sqlite"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { Fault } from "../../internal/tables.ts"
import { migrations } from "./schema.ts"

const busy = 5
const corrupt = [11, 26]

const codeOf = (cause: unknown): number =>
  Predicate.hasProperty(cause, "errcode") && typeof cause.errcode === "number" ? cause.errcode & 0xff : 0

const messageOf = (cause: unknown): string =>
  Predicate.hasProperty(cause, "message") && typeof cause.message === "string" ? cause.message : String(cause)

/** A failure of the tables that is known by itself. */
export const fault = (tag: Fault["reason"]["_tag"], problem: string): Fault => ({ reason: { _tag: tag, problem } })

const toFault = (cause: unknown): Fault => ({
  reason: { _tag: corrupt.includes(codeOf(cause)) ? "Corrupt" : "Unavailable", problem: messageOf(cause) },
  cause
})

const isBusy = ({ cause }: Fault): boolean => codeOf(cause) === busy

/** The file's lock is waited for asleep: SQLite's own waiting would stop the whole process. */
const waiting = Schedule.spaced("5 millis").pipe(Schedule.jittered, Schedule.upTo({ duration: "10 seconds" }))

/** Runs what touches the file. */
export const touch = <A>(body: () => A): Effect.Effect<A, Fault> =>
  Effect.retry(Effect.try({ try: body, catch: toFault }), { schedule: waiting, while: isBusy })

const attempt = <A>(body: () => A): Result.Result<A, Fault> => Result.try({ try: body, catch: toFault })

/**
 * Runs bodies all or none, with nobody else writing. A body is one step: no other fiber can use the connection within.
 */
export const makeTransaction = (database: DatabaseSync) => {
  const begin = database.prepare("BEGIN IMMEDIATE")
  const commit = database.prepare("COMMIT")
  const run = <A>(body: () => A): Result.Result<A, Fault> =>
    Result.flatMap(
      attempt(() => begin.run()),
      () => {
        const result = attempt(() => {
          const value = body()
          commit.run()
          return value
        })
        // A full disk has SQLite roll back by itself.
        if (Result.isFailure(result) && database.isTransaction) attempt(() => database.exec("ROLLBACK"))
        return result
      }
    )
  return <A>(body: () => A): Effect.Effect<A, Fault> =>
    Effect.retry(
      Effect.suspend(() => Effect.fromResult(run(body))),
      { schedule: waiting, while: isBusy }
    )
}

const versionOf = (database: DatabaseSync): number => {
  database.exec("CREATE TABLE IF NOT EXISTS migrations (version INTEGER PRIMARY KEY, at INTEGER NOT NULL) STRICT")
  return Number(database.prepare("SELECT coalesce(max(version), 0) AS version FROM migrations").get()?.["version"])
}

const migrate = (database: DatabaseSync, at: number): Effect.Effect<void, Fault> =>
  Effect.flatMap(
    makeTransaction(database)(() => {
      const found = versionOf(database)
      for (const [index, sql] of migrations.entries()) {
        if (index < found) continue
        database.exec(sql)
        database.prepare("INSERT INTO migrations VALUES (?, ?)").run(index + 1, at)
      }
      return found
    }),
    (found) =>
      found <= migrations.length
        ? Effect.void
        : Effect.fail(
            fault("Corrupt", `the file is of version ${found}, and this library knows ${migrations.length}; update it`)
          )
  )

/** Opens a file, makes what is not there yet, and closes it with the scope. */
export const open = Effect.fnUntraced(function* (
  file: string,
  synchronous: "normal" | "full"
): Effect.fn.Return<DatabaseSync, Fault, Scope.Scope> {
  const database = yield* Effect.acquireRelease(
    touch(() => new DatabaseSync(file, { timeout: 0 })),
    (opened) => Effect.sync(() => opened.close())
  )
  yield* touch(() => {
    database.exec("PRAGMA journal_mode = WAL")
    database.exec(`PRAGMA synchronous = ${synchronous === "full" ? "FULL" : "NORMAL"}`)
    // Pages that every append touches are written back once in so many: 16 MiB of log at most.
    database.exec("PRAGMA wal_autocheckpoint = 4096")
  })
  yield* Effect.flatMap(
    Effect.clockWith((clock) => clock.currentTimeMillis),
    (at) => migrate(database, at)
  )
  return database
})
