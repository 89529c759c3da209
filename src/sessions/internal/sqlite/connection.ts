/** Connects `effect/sql` to an SQLite file. */
import { closeSync, openSync, statSync } from "node:fs"
import { resolve } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { pathToFileURL } from "node:url"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { SafeIntegers } from "effect/sql/SqlClient"
import type { Connection } from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import * as Checkpoints from "./checkpoints.ts"
import { isLocked, movedAway, toOpenError, toSqlError } from "./errors.ts"
import { retryWhileLocked } from "./lock.ts"
import { iterate, makeCache, prepare, type Prepared, type Row, run, runRaw, runValues, take } from "./statements.ts"

/** The name of a database that is in memory, and of this connection only. */
export const inMemory = ":memory:"

/** A connection, with what SQLite says of its transaction. */
export interface SqliteConnection extends Connection {
  readonly database: DatabaseSync
  /** Told of each write to the database, and of about how many bytes it was. */
  readonly written: (bytes: number) => void
  /** The problem of a file that was moved, replaced or removed while it was open. */
  readonly lostPlace: () => Error | undefined
  readonly isTransaction: () => boolean
}

/** Does what touches the file; again, while somebody else has its lock. */
const touch = <A>(body: (safe: boolean) => Result.Result<A, SqlError>): Effect.Effect<A, SqlError> =>
  Effect.withFiber((fiber) => {
    const safe = fiber.getRef(SafeIntegers)
    const first = body(safe)
    if (Result.isSuccess(first)) return Effect.succeed(first.success)
    if (!isLocked(first.failure)) return Effect.fail(first.failure)
    return retryWhileLocked(Effect.suspend(() => Effect.fromResult(body(safe))))
  })

const pageSize = 128

const stream = (
  database: DatabaseSync,
  sql: string,
  params: ReadonlyArray<unknown>,
  transformRows: ((rows: ReadonlyArray<Row>) => ReadonlyArray<object>) | undefined
): Stream.Stream<object, SqlError> => {
  const transform = (rows: ReadonlyArray<Row>) => (transformRows === undefined ? rows : transformRows(rows))
  const opened = touch((safe) =>
    // A statement of its own: others may run the same text while this one is read.
    Result.flatMap(prepare(database, sql), (prepared) =>
      Result.flatMap(iterate(prepared, params), (rows) =>
        Result.map(take(rows, pageSize, safe), (first) => ({ rows, first, safe }))
      )
    )
  )
  const closing = ({ rows }: { readonly rows: Iterator<Row, unknown> }) => Effect.sync(() => rows.return?.())
  return Stream.unwrap(
    Effect.map(Effect.acquireRelease(opened, closing), ({ first, rows, safe }) =>
      Stream.paginate(first, (page) =>
        page.length < pageSize
          ? Effect.succeed([transform(page), Option.none()] as const)
          : Effect.map(
              Effect.suspend(() => Effect.fromResult(take(rows, pageSize, safe))),
              (next) => [transform(page), Option.some(next)] as const
            )
      )
    )
  )
}

/** A file is looked for at most once in so many milliseconds. */
const lookEvery = 100

/** Reports a file that another file replaced: SQLite would write to the old one, and other processes to the new. */
const watchPlace = (file: string, path: string): (() => Error | undefined) => {
  const placeOf = () => {
    const found = statSync(path, { throwIfNoEntry: false })
    return found === undefined ? "" : `${found.dev} ${found.ino}`
  }
  const opened = placeOf()
  let looked = performance.now()
  return () => {
    const now = performance.now()
    if (now - looked < lookEvery) return undefined
    if (placeOf() !== opened) return movedAway(file)
    looked = now
    return undefined
  }
}

/** The connection that `effect/sql` asks for, on an open database. */
const fromDatabase = (
  database: DatabaseSync,
  written: (bytes: number) => void,
  lostPlace: () => Error | undefined = () => undefined
): SqliteConnection => {
  const cached = makeCache(database)
  const reportWrite = (prepared: Prepared, params: ReadonlyArray<unknown>): Result.Result<Prepared, SqlError> => {
    if (prepared.isReader) return Result.succeed(prepared)
    const lost = lostPlace()
    if (lost !== undefined) return Result.fail(toSqlError(lost, "execute"))
    written(params.reduce<number>((sum, one) => sum + (typeof one === "string" ? one.length : 8), 0))
    return Result.succeed(prepared)
  }
  return {
    database,
    written,
    lostPlace,
    isTransaction: () => database.isTransaction,
    execute: (sql, params, transformRows) => {
      const rows = touch((safe) =>
        Result.flatMap(cached(sql), (prepared) =>
          Result.flatMap(reportWrite(prepared, params), (one) => run(one, params, safe))
        )
      )
      return transformRows === undefined ? rows : Effect.map(rows, transformRows)
    },
    executeUnprepared: (sql, params, transformRows) => {
      const rows = touch((safe) => Result.flatMap(prepare(database, sql), (prepared) => run(prepared, params, safe)))
      return transformRows === undefined ? rows : Effect.map(rows, transformRows)
    },
    executeRaw: (sql, params) =>
      touch((safe) => Result.flatMap(cached(sql), (prepared) => runRaw(prepared, params, safe))),
    executeValues: (sql, params) =>
      touch((safe) => Result.flatMap(cached(sql), (prepared) => runValues(prepared, params, safe))),
    executeValuesUnprepared: (sql, params) =>
      touch((safe) => Result.flatMap(prepare(database, sql), (prepared) => runValues(prepared, params, safe))),
    executeStream: (sql, params, transformRows) => stream(database, sql, params, transformRows)
  }
}

/** A database, and whether it can only be read. */
interface Opened {
  readonly database: DatabaseSync
  readonly isReadOnly: boolean
}

const bytesOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

/**
 * Opens a read-only file. SQLite would make two files beside it. Without writes in the log, the file is complete, and
 * opens as immutable.
 */
const openToRead = (path: string): DatabaseSync => {
  if (bytesOf(`${path}-wal`) > 0) return new DatabaseSync(path, { readOnly: true, timeout: 0 })
  const url = pathToFileURL(path)
  url.searchParams.set("immutable", "1")
  return new DatabaseSync(url, { readOnly: true, timeout: 0 })
}

/** The reasons for which a file that is there can't be written to. */
const unwritable: ReadonlyArray<unknown> = ["EROFS", "EACCES", "EPERM"]

const isUnwritable = (cause: unknown): boolean =>
  Predicate.hasProperty(cause, "code") && unwritable.includes(cause.code)

/** Opens a file for its owner only. Files that SQLite makes beside it get the same mode. */
const openPrivately = (file: string): Result.Result<Opened, unknown> => {
  const attempt = <A>(body: () => A) => Result.try({ try: body, catch: (cause) => cause })
  if (file === inMemory) return attempt(() => ({ database: new DatabaseSync(inMemory), isReadOnly: false }))
  // An absolute path is never taken for a URI.
  const path = resolve(file)
  const touched = attempt(() => closeSync(openSync(path, "a", 0o600)))
  if (Result.isSuccess(touched)) {
    return attempt(() => ({ database: new DatabaseSync(path, { timeout: 0 }), isReadOnly: false }))
  }
  return isUnwritable(touched.failure) && bytesOf(path) > 0
    ? attempt(() => ({ database: openToRead(path), isReadOnly: true }))
    : Result.fail(touched.failure)
}

/** Opens a database, and closes it with the scope. */
export const open = Effect.fnUntraced(function* (
  file: string,
  synchronous: "normal" | "full"
): Effect.fn.Return<SqliteConnection, SqlError, Scope.Scope> {
  const attempt = <A>(body: () => A) =>
    touch(() => Result.try({ try: body, catch: (cause) => toOpenError(cause, file) }))
  const { database, isReadOnly } = yield* Effect.acquireRelease(
    touch(() => Result.mapError(openPrivately(file), (cause) => toOpenError(cause, file))),
    (opened) => Effect.sync(() => opened.database.close())
  )
  if (isReadOnly) {
    // `isReadOnly` reads this pragma. Writes fail with SQLite's own error.
    yield* attempt(() => database.exec("PRAGMA query_only = 1; SELECT count(*) FROM sqlite_schema"))
    return fromDatabase(database, () => undefined)
  }
  yield* attempt(() => {
    // Of a file that is made now: every append touches a handful of pages, and each goes into the log as a whole.
    database.exec("PRAGMA page_size = 2048")
    database.exec("PRAGMA journal_mode = WAL")
    database.exec(`PRAGMA synchronous = ${synchronous === "full" ? "FULL" : "NORMAL"}`)
  })
  const keepShort = (pages: number) => () => database.exec(`PRAGMA wal_autocheckpoint = ${pages}`)
  if (file === inMemory) return fromDatabase(database, () => undefined)
  // For the case that the other thread is not fast enough: 256 MiB of log at most; without it, 16.
  yield* attempt(keepShort(131_072))
  const pageSize = Number(database.prepare("PRAGMA page_size").get()?.["page_size"])
  const written = yield* Checkpoints.make(resolve(file), pageSize, keepShort(8192))
  return fromDatabase(database, written, watchPlace(file, resolve(file)))
})
