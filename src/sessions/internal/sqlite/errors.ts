/** Classifies the errors of SQLite. */
import * as Predicate from "effect/Predicate"
import { classifySqliteError, ConnectionError, SqlError, SqlSyntaxError, UniqueViolation } from "effect/sql/SqlError"

const codes = {
  error: 1,
  busy: 5,
  readOnly: 8,
  inputOutput: 10,
  corrupt: 11,
  full: 13,
  cannotOpen: 14,
  notADatabase: 26,
  staleSnapshot: 517,
  primaryKey: 1555,
  rowId: 2579
}

/** The extended code of SQLite; 0 for other failures. */
const codeOf = (cause: unknown): number =>
  Predicate.hasProperty(cause, "errcode") && typeof cause.errcode === "number" ? cause.errcode : 0

const messageOf = (cause: unknown): string =>
  Predicate.hasProperty(cause, "message") && typeof cause.message === "string" ? cause.message : String(cause)

/** Reports whether the file is locked. Waiting does not help with an old snapshot. */
const isBusy = (cause: unknown): boolean => {
  const code = codeOf(cause)
  return (code & 0xff) === codes.busy && code !== codes.staleSnapshot
}

/** Reports whether a retry may get the lock. */
export const isLocked = ({ reason }: SqlError): boolean => isBusy(reason.cause)

/** Reports a number beyond the safe range of JavaScript. */
export const isOutOfRange = (cause: unknown): boolean =>
  Predicate.hasProperty(cause, "code") && cause.code === "ERR_OUT_OF_RANGE"

/** Adds the code under the name that Effect expects. */
const withErrno = (cause: unknown): unknown =>
  Predicate.isObject(cause) ? Object.assign(cause, { errno: codeOf(cause) }) : cause

/** Advice for failures that a person can mend. */
const ways: { readonly [code: number]: string } = {
  [codes.busy]: "another program is at work on the file: wait until it is done, and try again",
  [codes.staleSnapshot]: "somebody else wrote since the transaction began to read: begin it again",
  [codes.readOnly]: "the file or its disk is read-only: let this process write there",
  [codes.inputOutput]: "the disk can't be read or written: look whether it is full, broken or gone",
  [codes.corrupt]: "the file is damaged: go back to a copy of it",
  [codes.full]: "make room on the disk, and try again",
  [codes.cannotOpen]:
    "its folder must exist, and this process must be allowed to write there; to read a file of a read-only disk that has a -wal beside it, copy both to another disk",
  [codes.notADatabase]: "the file is there, and no SQLite file: choose another name"
}

/** The failure for a file that was moved or replaced. */
export const movedAway = (file: string): Error =>
  new Error(
    `the SQLite file ${JSON.stringify(file)} was moved, replaced or removed while it was open: put it back, or start this program again`
  )

/** The message of SQLite, and advice. */
const explain = (cause: unknown): string => {
  const code = codeOf(cause)
  const way = ways[code] ?? ways[code & 0xff]
  return way === undefined ? messageOf(cause) : `${messageOf(cause)}; ${way}`
}

/** Maps the failure of a statement to the reason that other databases give. */
export const toSqlError = (cause: unknown, operation: "prepare" | "execute"): SqlError => {
  const code = codeOf(cause)
  const message = explain(cause)
  if (operation === "prepare" && (code & 0xff) === codes.error) {
    return new SqlError({ reason: new SqlSyntaxError({ cause, message, operation }) })
  }
  if (code === codes.primaryKey || code === codes.rowId) {
    const constraint = messageOf(cause).split("constraint failed:")[1]?.trim() ?? "PRIMARY KEY"
    return new SqlError({ reason: new UniqueViolation({ cause, message, operation, constraint }) })
  }
  return new SqlError({ reason: classifySqliteError(withErrno(cause), { message, operation }) })
}

const refuse = (message: string, operation: string): SqlError =>
  new SqlError({ reason: new SqlSyntaxError({ cause: message, message, operation }) })

/** The failure for several statements in one text. */
export const manyStatements = refuse("there is more than one statement; run them one by one", "prepare")

/** The failure for a value that SQLite has no type for. Places count from 1. */
export const invalidValue = (place: number, value: unknown): SqlError =>
  refuse(
    `value ${place} is a ${Predicate.isDate(value) ? "Date" : typeof value}; give text, a number, a bigint, a boolean, bytes or null`,
    "execute"
  )

/** Maps the failure to open a file. Its message has the file and advice. */
export const toOpenError = (cause: unknown, file: string): SqlError => {
  const isOfSqlite = codeOf(cause) !== 0
  const explanation = isOfSqlite ? explain(cause) : `${messageOf(cause)}; ${ways[codes.cannotOpen]}`
  const message = `can't open the SQLite file ${JSON.stringify(file)}: ${explanation}`
  const reason = isOfSqlite
    ? classifySqliteError(withErrno(cause), { message, operation: "open" })
    : new ConnectionError({ cause, message, operation: "open" })
  return new SqlError({ reason })
}
