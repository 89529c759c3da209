/** Prepares and runs the statements of an SQLite database. */
import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from "node:sqlite"
import * as Result from "effect/Result"
import type { SqlError } from "effect/sql/SqlError"
import { invalidValue, isOutOfRange, manyStatements, toSqlError } from "./errors.ts"

/** The number of statements that are kept prepared. */
const capacity = 256

/** A prepared statement. `isReader`: to run it twice is the same as to run it once. */
export interface Prepared {
  readonly statement: StatementSync
  readonly isReader: boolean
  usesBigInts: boolean
}

/** A row as SQLite gives it: by the names of the columns, or in their order. */
export type Row = Record<string, SQLOutputValue> | Array<SQLOutputValue>

const writes = /\b(?:insert|update|delete|replace|create|drop|alter|pragma)\b/iu
const blank = /^(?:\s|;|--[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/)*$/u

/** Prepares one statement, and refuses text with a second one. */
export const prepare = (database: DatabaseSync, sql: string): Result.Result<Prepared, SqlError> =>
  Result.flatMap(
    Result.try({ try: () => database.prepare(sql), catch: (cause) => toSqlError(cause, "prepare") }),
    (statement) =>
      blank.test(sql.slice(statement.sourceSQL.length))
        ? Result.succeed({ statement, isReader: !writes.test(sql), usesBigInts: false })
        : Result.fail(manyStatements)
  )

/** Keeps prepared statements by text. The least recently used one is dropped. */
export const makeCache = (database: DatabaseSync): ((sql: string) => Result.Result<Prepared, SqlError>) => {
  const kept = new Map<string, Result.Success<Prepared, SqlError>>()
  return (sql) => {
    const found = kept.get(sql)
    if (found !== undefined) {
      kept.delete(sql)
      kept.set(sql, found)
      return found
    }
    const prepared = prepare(database, sql)
    if (Result.isFailure(prepared)) return prepared
    kept.set(sql, prepared)
    const oldest = kept.size > capacity ? kept.keys().next().value : undefined
    if (oldest !== undefined) kept.delete(oldest)
    return prepared
  }
}

const toInput = (value: unknown): SQLInputValue | undefined => {
  if (typeof value === "boolean") return value ? 1 : 0
  if (value === null || value === undefined) return null
  if (typeof value === "string" || typeof value === "number" || typeof value === "bigint") return value
  return ArrayBuffer.isView(value) ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength) : undefined
}

/** Values as node:sqlite takes them. An object would be taken for named values, and all others for nothing. */
const toInputs = (params: ReadonlyArray<unknown>): Result.Result<ReadonlyArray<SQLInputValue>, SqlError> => {
  const inputs: Array<SQLInputValue> = []
  for (const param of params) {
    const input = toInput(param)
    if (input === undefined) return Result.fail(invalidValue(inputs.length + 1, param))
    inputs.push(input)
  }
  return Result.succeed(inputs)
}

/** Whole numbers are numbers within their safe range, and bigints elsewhere. */
const narrow = <A extends Row>(row: A): A => {
  // Named or in order, a row has nothing but SQLite's values under its keys.
  const cells = row as Record<string, SQLOutputValue>
  for (const key of Object.keys(cells)) {
    const value = cells[key]
    if (typeof value !== "bigint") continue
    const number = Number(value)
    if (Number.isSafeInteger(number)) cells[key] = number
  }
  return row
}

const useBigInts = (prepared: Prepared, isWanted: boolean): void => {
  if (prepared.usesBigInts === isWanted) return
  prepared.statement.setReadBigInts(isWanted)
  prepared.usesBigInts = isWanted
}

const attempt = <A>(body: () => A): Result.Result<A, SqlError> =>
  Result.try({ try: body, catch: (cause) => toSqlError(cause, "execute") })

/** The rows of a statement; with `safe`, all whole numbers are bigints. */
export const run = (
  prepared: Prepared,
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
  // A statement that changes something must run once: its numbers are asked for in the way that can't fail.
  if (safe || !isReader) return attempt(exact)
  const rows = attempt((): ReadonlyArray<Row> => {
    useBigInts(prepared, false)
    return statement.all(...inputs.success)
  })
  return Result.isFailure(rows) && isOutOfRange(rows.failure.reason.cause) ? attempt(exact) : rows
}

/** The rows of a statement as lists of values. */
export const runValues = (
  prepared: Prepared,
  params: ReadonlyArray<unknown>,
  safe: boolean
): Result.Result<ReadonlyArray<ReadonlyArray<SQLOutputValue>>, SqlError> => {
  prepared.statement.setReturnArrays(true)
  const rows = run(prepared, params, safe)
  prepared.statement.setReturnArrays(false)
  // They are arrays, as has just been asked for.
  return rows as Result.Result<ReadonlyArray<ReadonlyArray<SQLOutputValue>>, SqlError>
}

/** The changes of a statement that gives no rows, and the rows of one that does. */
export const runRaw = (
  prepared: Prepared,
  params: ReadonlyArray<unknown>,
  safe: boolean
): Result.Result<unknown, SqlError> => {
  if (prepared.statement.columns().length > 0) return run(prepared, params, safe)
  useBigInts(prepared, safe)
  return Result.flatMap(toInputs(params), (inputs) => attempt(() => prepared.statement.run(...inputs)))
}

/** The rows of a statement as they are asked for. The statement must be nobody else's meanwhile. */
export const iterate = (
  prepared: Prepared,
  params: ReadonlyArray<unknown>
): Result.Result<Iterator<Row, unknown>, SqlError> => {
  useBigInts(prepared, true)
  return Result.flatMap(toInputs(params), (inputs) => attempt(() => prepared.statement.iterate(...inputs)))
}

/** The next rows, at most so many; fewer if there are no more. */
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
