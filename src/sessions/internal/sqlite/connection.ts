/** Connects `effect/sql` to an SQLite file. */
import { accessSync, closeSync, constants, openSync, statSync } from "node:fs"
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
import * as SqliteFiles from "../../../support/store/sqliteFiles.ts"
import * as Checkpoints from "./checkpoints.ts"
import { isLocked, movedAway, toOpenError, toSqlError } from "./errors.ts"
import { retryWhileLocked } from "./lock.ts"
import {
  iterate,
  makeCache,
  prepare,
  type PreparedStatement,
  type Row,
  run,
  runRaw,
  runValues,
  take
} from "./statements.ts"

/** The name of a database in memory. Each connection has its own. */
export const inMemory = ":memory:"

/** A connection to a database file. */
export interface SqliteConnection extends Connection {
  readonly database: DatabaseSync
  /** Reports a write with its approximate bytes. */
  readonly noteWrite: (bytes: number) => void
  /** The problem of a file that was moved, replaced or removed while it was open. */
  readonly lostPlace: () => Error | undefined
  readonly isTransaction: () => boolean
}

/** Runs an access to the file. It retries while the file is locked. */
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
    // The stream needs its own statement, because others may run the same text meanwhile.
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

/** The milliseconds between two checks of the file. */
const lookEvery = 100

/** Detects a replaced file: SQLite would write to the old file, and other processes to the new one. */
const watchPlace = (file: string, path: string): (() => Error | undefined) => {
  const placeOf = () => {
    const stat = statSync(path, { throwIfNoEntry: false })
    return stat === undefined ? "" : `${stat.dev} ${stat.ino}`
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

/** Makes a connection on an open database. */
const fromDatabase = (
  database: DatabaseSync,
  noteWrite: (bytes: number) => void,
  lostPlace: () => Error | undefined = () => undefined
): SqliteConnection => {
  const cached = makeCache(database)
  const runReported: typeof run = (prepared, params, safe) => {
    if (prepared.isReader) return run(prepared, params, safe)
    const error = lostPlace()
    if (error !== undefined) return Result.fail(toSqlError(error, "execute"))
    noteWrite(params.reduce<number>((sum, one) => sum + (typeof one === "string" ? one.length : 8), 0))
    return run(prepared, params, safe)
  }
  const prepareNew = (sql: string) => prepare(database, sql)
  const query =
    <A>(
      prepareText: (sql: string) => Result.Result<PreparedStatement, SqlError>,
      body: (prepared: PreparedStatement, params: ReadonlyArray<unknown>, safe: boolean) => Result.Result<A, SqlError>
    ) =>
    (sql: string, params: ReadonlyArray<unknown>): Effect.Effect<A, SqlError> =>
      touch((safe) => Result.flatMap(prepareText(sql), (prepared) => body(prepared, params, safe)))
  const transformed =
    (rowsOf: ReturnType<typeof query<ReadonlyArray<Row>>>): Connection["execute"] =>
    (sql, params, transform) =>
      transform === undefined ? rowsOf(sql, params) : Effect.map(rowsOf(sql, params), transform)
  return {
    database,
    noteWrite,
    lostPlace,
    isTransaction: () => database.isTransaction,
    execute: transformed(query(cached, runReported)),
    executeUnprepared: transformed(query(prepareNew, run)),
    executeRaw: query(cached, runRaw),
    executeValues: query(cached, runValues),
    executeValuesUnprepared: query(prepareNew, runValues),
    executeStream: (sql, params, transformRows) => stream(database, sql, params, transformRows)
  }
}

interface OpenDatabase {
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

/** The errors for an existing file without write access. */
const unwritable: ReadonlyArray<unknown> = ["EROFS", "EACCES", "EPERM"]

const isUnwritable = (cause: unknown): boolean =>
  Predicate.hasProperty(cause, "code") && unwritable.includes(cause.code)

/** Opens a file for its owner only. SQLite gives its other files the same mode. */
const openPrivately = (file: string): Result.Result<OpenDatabase, unknown> => {
  const attempt = <A>(body: () => A) => Result.try({ try: body, catch: (cause) => cause })
  if (file === inMemory) return attempt(() => ({ database: new DatabaseSync(inMemory), isReadOnly: false }))
  // SQLite never reads an absolute path as a URI.
  const path = resolve(file)
  // A file that exists must not be opened: another connection of this process would lose its locks.
  const isThere = attempt(() => statSync(path, { throwIfNoEntry: false }) !== undefined)
  const touched = Result.flatMap(isThere, (exists) =>
    attempt(() => (exists ? accessSync(path, constants.W_OK) : closeSync(openSync(path, "a", 0o600))))
  )
  if (Result.isSuccess(touched)) {
    return attempt(() => ({ database: new DatabaseSync(path, { timeout: 0 }), isReadOnly: false }))
  }
  return isUnwritable(touched.failure) && bytesOf(path) > 0
    ? attempt(() => ({ database: openToRead(path), isReadOnly: true }))
    : Result.fail(touched.failure)
}

/** Opens a database, and closes it with the scope. */
export const open = (file: string, synchronous: "normal" | "full"): ReturnType<typeof connect> =>
  file === inMemory ? connect(file, synchronous) : SqliteFiles.opening(resolve(file), connect(file, synchronous))

const connect = Effect.fnUntraced(function* (
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
    // For new files. The log stores whole pages, and an append changes few bytes of each.
    database.exec("PRAGMA page_size = 2048")
    database.exec("PRAGMA journal_mode = WAL")
    database.exec(`PRAGMA synchronous = ${synchronous === "full" ? "FULL" : "NORMAL"}`)
  })
  const keepShort = (pages: number) => () => database.exec(`PRAGMA wal_autocheckpoint = ${pages}`)
  if (file === inMemory) return fromDatabase(database, () => undefined)
  // Bounds the log to 256 MiB if the thread of checkpoints is too slow, and to 16 MiB without it.
  yield* attempt(keepShort(131_072))
  const pageSize = Number(database.prepare("PRAGMA page_size").get()?.["page_size"])
  const noteWrite = yield* Checkpoints.make(resolve(file), pageSize, keepShort(8192))
  return fromDatabase(database, noteWrite, watchPlace(file, resolve(file)))
})
