/** Decodes the rows of a SQL database. */
import * as Result from "effect/Result"
import type { Row } from "effect/sql/SqlConnection"
import type { Entry, StoredEntry, Thread } from "../../../core/SessionStore.ts"
import * as codec from "../codec.ts"

export const text = (row: Row, column: string): string => String(row[column])

/** A whole number: clients give those of 64 bits as number, bigint or text. */
export const number = (row: Row, column: string): number => Number(row[column])

export const nullable = (row: Row, column: string): string | null => {
  const isNull = row[column] === null || row[column] === undefined
  return isNull ? null : text(row, column)
}

export const nullableNumber = (row: Row, column: string): number | null =>
  nullable(row, column) === null ? null : number(row, column)

/** The columns of a thread. */
export const threadColumns =
  "key, id, created_at, updated_at, metadata, archived, leaf_id, step, origin_thread, origin_entry"

export const toThread = (row: Row): Result.Result<Thread, string> =>
  Result.map(codec.decodeObject(text(row, "metadata")), (metadata) => ({
    threadId: text(row, "id"),
    leaf: { id: nullable(row, "leaf_id"), step: number(row, "step") },
    createdAt: number(row, "created_at"),
    updatedAt: number(row, "updated_at"),
    metadata,
    archived: number(row, "archived") === 1,
    origin:
      nullable(row, "origin_thread") === null
        ? undefined
        : { threadId: text(row, "origin_thread"), entryId: nullable(row, "origin_entry") }
  }))

/** The columns of an entry `e` with its parent's id. */
export const entryColumns =
  "e.pk, e.id, e.step, e.at, e.body, (SELECT p.id FROM session_entries p WHERE p.pk = e.parent) AS parent_id"

/** An entry as it is stored: its number, its id, its parent's number, when it was written, and its JSON. */
export type Cells = readonly [pk: number, id: string, parent: number | null, at: number, body: string]

const toEntry = (id: string, body: string): Result.Result<Entry, string> =>
  Result.mapError(Result.flatMap(codec.parse(body), codec.decode), (problem) => `entry ${id}: ${problem}`)

export const toStored = (row: Row): Result.Result<StoredEntry, string> => {
  const id = text(row, "id")
  return Result.map(toEntry(id, text(row, "body")), (entry) => ({
    id,
    parentId: nullable(row, "parent_id"),
    at: number(row, "at"),
    entry
  }))
}

/** An entry whose parent's id is not known yet. */
export interface PlacedEntry {
  readonly id: string
  parentId: string | null
  readonly at: number
  readonly entry: Entry
}

export const toPlaced = ([, id, , at, body]: Cells): Result.Result<PlacedEntry, string> =>
  Result.map(toEntry(id, body), (entry) => ({ id, parentId: null, at, entry }))
