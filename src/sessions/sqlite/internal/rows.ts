import type { SQLOutputValue } from "node:sqlite"
import * as Result from "effect/Result"
import type { Entry, Stored, Thread } from "../../../core/SessionStore.ts"
import * as codec from "../../internal/codec.ts"

/** A row as the file gives it. */
export type Row = Record<string, SQLOutputValue>

export const text = (row: Row, column: string): string => String(row[column])
export const number = (row: Row, column: string): number => Number(row[column])

const nullable = (value: SQLOutputValue | undefined): string | null =>
  value === null || value === undefined ? null : String(value)

/** The columns of a thread. */
export const threadColumns =
  "key, id, created_at, updated_at, metadata, archived, leaf_id, step, origin, origin_thread, origin_entry"

export const toThread = (row: Row): Result.Result<Thread, string> =>
  Result.map(codec.decodeObject(text(row, "metadata")), (metadata) => ({
    threadId: text(row, "id"),
    leaf: { id: nullable(row["leaf_id"]), step: number(row, "step") },
    createdAt: number(row, "created_at"),
    updatedAt: number(row, "updated_at"),
    metadata,
    archived: row["archived"] === 1,
    origin:
      row["origin"] === null
        ? undefined
        : { threadId: text(row, "origin_thread"), entryId: nullable(row["origin_entry"]) }
  }))

/** The columns of an entry `e` with its parent's id. */
export const entryColumns =
  "e.pk, e.id, e.step, e.at, e.body, (SELECT p.id FROM entries p WHERE p.pk = e.parent) AS parent_id"

const toEntry = (body: string): Result.Result<Entry, string> => Result.flatMap(codec.parse(body), codec.decode)

export const toStored = (row: Row): Result.Result<Stored, string> =>
  Result.mapBoth(toEntry(text(row, "body")), {
    onFailure: (problem) => `entry ${text(row, "id")}: ${problem}`,
    onSuccess: (entry) => ({
      id: text(row, "id"),
      parentId: nullable(row["parent_id"]),
      at: number(row, "at"),
      entry
    })
  })
