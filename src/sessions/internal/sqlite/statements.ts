/** Prepares and runs the statements of an SQLite database. */
import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from "node:sqlite"
import * as Result from "effect/Result"
import type { SqlError } from "effect/sql/SqlError"
import { invalidValue, isOutOfRange, manyStatements, toSqlError } from "./errors.ts"

/** The most cached statements. */
const capacity = 256

/** A prepared statement. `isReader`: it changes nothing, so it may run twice. */
export interface PreparedStatement {
  readonly statement: StatementSync
  readonly isReader: boolean
  usesBigInts: boolean
}

/** A row by the names of its columns, or in their order. */
export type Row = Record<string, SQLOutputValue> | Array<SQLOutputValue>

const writes = /\b(?:insert|update|delete|replace|create|drop|alter|pragma)\b/iu
const blank = /^(?:\s|;|--[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/)*$/u

/** Prepares one statement, and rejects text with a second statement. */
export const prepare = (database: DatabaseSync, sql: string): Result.Result<PreparedStatement, SqlError> =>
  Result.flatMap(
    Result.try({ try: () => database.prepare(sql), catch: (cause) => toSqlError(cause, "prepare") }),
    (statement) =>
      blank.test(sql.slice(statement.sourceSQL.length))
        ? Result.succeed({ statement, isReader: !writes.test(sql), usesBigInts: false })
        : Result.fail(manyStatements)
  )

/** Makes a cache of prepared statements. It drops the least recently used one. */
export const makeCache = (database: DatabaseSync): ((sql: string) => Result.Result<PreparedStatement, SqlError>) => {
  const cache = new Map<string, Result.Success<PreparedStatement, SqlError>>()
  return (sql) => {
    const entry = cache.get(sql)
    if (entry !== undefined) {
      cache.delete(sql)
      cache.set(sql, entry)
      return entry
    }
    const prepared = prepare(database, sql)
    if (Result.isFailure(prepared)) return prepared
    cache.set(sql, prepared)
    const oldest = cache.size > capacity ? cache.keys().next().value : undefined
    if (oldest !== undefined) cache.delete(oldest)
    return prepared
  }
}

const toInput = (value: unknown): SQLInputValue | undefined => {
  if (typeof value === "boolean") return value ? 1 : 0
  if (value === null || value === undefined) return null
  if (typeof value === "string" || typeof value === "number" || typeof value === "bigint") return value
  return ArrayBuffer.isView(value) ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength) : undefined
}

/** Converts values for node:sqlite, which would read an object as named values, and ignore the rest. */
const toInputs = (params: ReadonlyArray<unknown>): Result.Result<ReadonlyArray<SQLInputValue>, SqlError> => {
  const inputs: Array<SQLInputValue> = []
  for (const param of params) {
    const input = toInput(param)
    if (input === undefined) return Result.fail(invalidValue(inputs.length + 1, param))
    inputs.push(input)
  }
  return Result.succeed(inputs)
}

/** Converts bigints within the safe range to numbers. */
const narrow = <A extends Row>(row: A): A => {
  // Rows and lists of SQLite have only its values under their keys.
  const cells = row as Record<string, SQLOutputValue>
  for (const key of Object.keys(cells)) {
    const value = cells[key]
    if (typeof value !== "bigint") continue
    const number = Number(value)
    if (Number.isSafeInteger(number)) cells[key] = number
  }
  return row
}

const useBigInts = (prepared: PreparedStatement, isWanted: boolean): void => {
  if (prepared.usesBigInts === isWanted) return
  prepared.statement.setReadBigInts(isWanted)
  prepared.usesBigInts = isWanted
}

const attempt = <A>(body: () => A): Result.Result<A, SqlError> =>
  Result.try({ try: body, catch: (cause) => toSqlError(cause, "execute") })

/** Runs a statement. With `safe`, all integers are bigints. */
export const run = (
  prepared: PreparedStatement,
  params: ReadonlyArray<unknown>,
  safe: boolean
): Result.Result<ReadonlyArray<Row>, SqlError> => {
  const { isReader, statement } = prepared
  const inputs = toInputs(params)
  if (Result.isFailure(inputs)) return Result.fail(inputs.failure)
  const exact = () => {
    useBigInts(prepared, true)
    const rows: ReadonlyArray<Row> = statement.all(...inputs.success)
    return safe ? rows : rows.map(narrow)
  }
  // A statement that changes something must not run twice, so it reads bigints at once, which can't fail.
  if (safe || !isReader) return attempt(exact)
  const rows = attempt((): ReadonlyArray<Row> => {
    useBigInts(prepared, false)
    return statement.all(...inputs.success)
  })
  return Result.isFailure(rows) && isOutOfRange(rows.failure.reason.cause) ? attempt(exact) : rows
}

/** Runs a statement, and gives rows as lists. */
export const runValues = (
  prepared: PreparedStatement,
  params: ReadonlyArray<unknown>,
  safe: boolean
): Result.Result<ReadonlyArray<ReadonlyArray<SQLOutputValue>>, SqlError> => {
  prepared.statement.setReturnArrays(true)
  const rows = run(prepared, params, safe)
  prepared.statement.setReturnArrays(false)
  // `setReturnArrays` made them lists.
  return rows as Result.Result<ReadonlyArray<ReadonlyArray<SQLOutputValue>>, SqlError>
}

/** Runs a statement, and gives its rows, or its changes if it has no rows. */
export const runRaw = (
  prepared: PreparedStatement,
  params: ReadonlyArray<unknown>,
  safe: boolean
): Result.Result<unknown, SqlError> => {
  if (prepared.statement.columns().length > 0) return run(prepared, params, safe)
  useBigInts(prepared, safe)
  return Result.flatMap(toInputs(params), (inputs) => attempt(() => prepared.statement.run(...inputs)))
}

/** Iterates the rows of a statement. Nothing else may use the statement meanwhile. */
export const iterate = (
  prepared: PreparedStatement,
  params: ReadonlyArray<unknown>
): Result.Result<Iterator<Row, unknown>, SqlError> => {
  useBigInts(prepared, true)
  return Result.flatMap(toInputs(params), (inputs) => attempt(() => prepared.statement.iterate(...inputs)))
}

/** Takes the next rows. Fewer than `count` are the last. */
export const take = (
  rows: Iterator<Row, unknown>,
  count: number,
  safe: boolean
): Result.Result<ReadonlyArray<Row>, SqlError> =>
  attempt(() => {
    const page: Array<Row> = []
    while (page.length < count) {
      const next = rows.next()
      if (next.done === true) break
      page.push(safe ? next.value : narrow(next.value))
    }
    return page
  })
