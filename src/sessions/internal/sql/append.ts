/**
 * Appends entries by one SQL statement.
 */
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Row } from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import type { NewEntry } from "../../../core/SessionStore.ts"
import { toJson } from "../codec.ts"
import { key } from "../ids.ts"
import type { Fault } from "../tables.ts"
import { toFault, transaction } from "./client.ts"
import { nullable, number } from "./rows.ts"

/** An append that is about to be made. */
export interface Batch {
  readonly threadId: string
  readonly leaf: string | null
  readonly behind: string | null
  readonly entries: ReadonlyArray<NewEntry>
  readonly at: number
}

/**
 * The new step of the thread, or the reason why nothing was stored: an id that is taken, or (`undefined`) another
 * state.
 */
export type Outcome = number | { readonly taken: string | undefined }

/** Appends in one statement, which is one round trip. */
export type Append = (batch: Batch) => Effect.Effect<Outcome, Fault>

const other: Exclude<Outcome, number> = { taken: undefined }

/** An id that is taken violates an index; whoever has to report it looks up which one. */
const refusal = (error: SqlError): Effect.Effect<Outcome, Fault> =>
  error.reason._tag === "UniqueViolation" ? Effect.succeed(other) : Effect.fail(toFault(error))

/** The function that the migration made. */
export const appendPostgres =
  (sql: SqlClient): Append =>
  ({ at, behind, entries, leaf, threadId }) => {
    const added = JSON.stringify(entries.map(({ entry, id }) => [id, entry._tag, toJson(entry)]))
    const statement = sql`SELECT reached, clash FROM session_append(
      ${key(threadId)}::text, ${leaf === null ? null : key(leaf)}::text, ${at}::bigint, ${added}::text::jsonb,
      ${behind !== leaf}::boolean, ${behind === null ? null : key(behind)}::text)`
    return Effect.matchEffect(statement.withoutTransform, {
      onFailure: refusal,
      onSuccess: ([row]): Effect.Effect<Outcome> => {
        if (row === undefined) return Effect.succeed(other)
        const taken = nullable(row, "clash")
        return Effect.succeed(taken === null ? number(row, "reached") : { taken })
      }
    })
  }

/** The number of entries that one statement of SQLite takes. */
const most = 500

const place = {
  leaf: "SELECT leaf, step FROM thread",
  beginning: "SELECT NULL, 0",
  elsewhere: `SELECT e.pk, e.step FROM line CROSS JOIN session_entries e
    WHERE e.thread = line.thread AND e.id = ? AND e.pk <= line.last LIMIT 1`
}

/** The text for so many entries, made once. */
const makeText = (where: keyof typeof place, count: number): string =>
  `WITH RECURSIVE
    thread AS MATERIALIZED (
      SELECT key, leaf, step, origin, (SELECT coalesce(max(pk), 0) FROM session_entries) AS last
      FROM session_threads WHERE id = ? AND archived = 0 AND leaf_id IS ?
    ),
    line (thread, last) AS (
      SELECT key, 9007199254740991 FROM thread
      UNION ALL
      SELECT t.origin, t.origin_last FROM line JOIN session_threads t ON t.key = line.thread WHERE t.origin IS NOT NULL
    ),
    place (pk, step) AS (${place[where]}),
    added (n, id, tag, body) AS (VALUES ${Array.from({ length: count }, (_, n) => `(${n}, ?, ?, ?)`).join(", ")})
  INSERT INTO session_entries (pk, thread, id, parent, step, at, tag, body)
  SELECT thread.last + 1 + n, thread.key, added.id, iif(n = 0, place.pk, thread.last + n), place.step + 1 + n, ?, tag, body
  FROM thread CROSS JOIN place CROSS JOIN added
  WHERE thread.origin IS NULL OR NOT EXISTS (
    SELECT 1 FROM added x CROSS JOIN line CROSS JOIN session_entries e
    WHERE e.thread = line.thread AND e.id = x.id AND e.pk <= line.last
  )
  ORDER BY n RETURNING step`

/** A statement of SQLite that inserts what may be inserted; the trigger moves the leaf. */
export const appendSqlite = (sql: SqlClient): Append => {
  const texts = new Map<string, string>()
  const textOf = (where: keyof typeof place, count: number): string => {
    const name = `${where} ${count}`
    const text = texts.get(name) ?? makeText(where, count)
    texts.set(name, text)
    return text
  }

  const one = ({ at, behind, entries, leaf, threadId }: Batch): Effect.Effect<Outcome, Fault> => {
    const where = behind === leaf ? "leaf" : behind === null ? "beginning" : "elsewhere"
    const params: Array<string | number | null> = [key(threadId), leaf === null ? null : key(leaf)]
    if (where === "elsewhere") params.push(key(behind ?? ""))
    for (const { entry, id } of entries) params.push(id, entry._tag, toJson(entry))
    params.push(at)
    return Effect.matchEffect(sql.unsafe<Row>(textOf(where, entries.length), params).withoutTransform, {
      onFailure: refusal,
      onSuccess: (found) =>
        Effect.succeed(found.length === 0 ? other : found.reduce((step, row) => Math.max(step, number(row, "step")), 0))
    })
  }

  const all = Effect.fnUntraced(function* (batch: Batch): Effect.fn.Return<number, Fault | Exclude<Outcome, number>> {
    let [{ behind, leaf }, step] = [batch, 0]
    for (let start = 0; start < batch.entries.length; start += most) {
      const entries = batch.entries.slice(start, start + most)
      const outcome = yield* one({ ...batch, leaf, behind, entries })
      if (typeof outcome !== "number") return yield* Effect.fail(outcome)
      leaf = behind = entries.at(-1)?.id ?? null
      step = outcome
    }
    return step
  })

  return (batch) =>
    batch.entries.length <= most
      ? one(batch)
      : Effect.catchIf(
          transaction(sql)(all(batch)),
          (failure) => "taken" in failure,
          (refused) => Effect.succeed(refused)
        )
}
