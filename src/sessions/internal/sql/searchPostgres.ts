/** Finds messages by the full-text index of Postgres. */
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Hit } from "../../../core/SessionStore.ts"
import { readable } from "../../../support/text/size.ts"
import { key } from "../ids.ts"
import type { HitCursor } from "../tables.ts"
import { matches, type Phrases } from "../words.ts"
import { orCorrupt, first, rows, transaction } from "./client.ts"
import { type Search, toHit, untilDone, wordsOf } from "./hits.ts"
import { entryColumns, nullable, number, text } from "./rows.ts"

/** The number of messages that are put into the index in one go. */
const batch = 200

/** The messages that are looked at in one go, when the first ones were not enough. */
const page = 200

/** Of a longer word, the index has its beginning: a lexeme has 2,046 bytes at most. */
const longest = 200

/** A tsvector has a megabyte at most. */
const mostBytes = 900_000

const cut = (word: string): string => word.slice(0, longest).toWellFormed()

/** A text's words as a tsvector without places; none if they are too many. Words have no quotes in them. */
const toVector = (known: ReadonlyArray<string>): string | null => {
  const distinct = [...new Set(known.map(cut))]
  // A character of UTF-16 has three bytes of UTF-8 at most.
  const bytes = distinct.reduce((sum, word) => sum + 3 * word.length + 8, 0)
  return bytes > mostBytes ? null : distinct.map((word) => `'${word}'`).join(" ")
}

/** The words that a text must have; what is found this way is looked at for the phrases. */
const toQuery = (wanted: Phrases): string =>
  wanted
    .flatMap((phrase) =>
      phrase.map((word, index) => {
        const isWhole = index < phrase.length - 1 && word.length < longest
        return `'${cut(word)}'${isWhole ? "" : ":*"}`
      })
    )
    .join(" & ")

/** Searches by Postgres' tsvector and GIN. */
export const searchPostgres = (sql: SqlClient): Search => {
  // A row that can't be read would fail all that are read with it.
  const columns = sql.literal(
    entryColumns.replace("e.body", `CASE WHEN octet_length(e.body) <= ${readable} THEN e.body END AS body`)
  )

  /** Puts the messages of a batch into the index; `true` if there may be more. Who comes second waits for the first. */
  const catchUp = Effect.gen(function* () {
    const found = yield* rows(sql`WITH taken AS (
        DELETE FROM session_pending WHERE pk IN (
          SELECT pk FROM session_pending ORDER BY pk LIMIT ${batch} FOR UPDATE
        ) RETURNING pk
      )
      SELECT ${columns}, octet_length(e.body) AS bytes, t.id AS thread_id
      FROM taken JOIN session_entries e ON e.pk = taken.pk JOIN session_threads t ON t.key = e.thread`)
    for (const row of found) {
      if (nullable(row, "body") === null) {
        yield* Effect.logWarning(
          `Message ${text(row, "id")} of the thread ${JSON.stringify(row["thread_id"])} has ${number(row, "bytes")} bytes, more than can be read: searches leave it out.`
        )
        continue
      }
      const known = wordsOf(row)
      if (known === undefined) continue
      yield* rows(
        sql`INSERT INTO session_texts (pk, words) VALUES (${number(row, "pk")}, ${toVector(known)}::text::tsvector)
          ON CONFLICT (pk) DO NOTHING`
      )
    }
    return found.length > 0
  })
  const isBehind = Effect.map(first(sql`SELECT 1 AS there FROM session_pending LIMIT 1`), (row) => row !== undefined)
  const indexed = Effect.flatMap(isBehind, (isThere) => (isThere ? untilDone(transaction(sql)(catchUp)) : Effect.void))

  return {
    search: Effect.fnUntraced(function* (query) {
      yield* indexed
      const { archived, limit, phrases, threadId } = query
      const hits: Array<Hit> = []
      let { after } = query
      let size = limit
      while (hits.length < limit) {
        const wanted = sql`${toQuery(phrases)}::text::tsquery`
        const conditions = [
          sql`(x.words @@ ${wanted} OR x.words IS NULL)`,
          sql`t.archived = ${archived ? 1 : 0}`,
          sql`t.id IS NOT NULL`,
          ...(threadId === undefined ? [] : [sql`t.id = ${key(threadId)}`]),
          ...(after === undefined
            ? []
            : [
                sql`(e.at < ${after.at} OR (e.at = ${after.at} AND (t.id, e.id) > (${key(after.threadId)}, ${key(after.entryId)})))`
              ])
        ]
        const found = yield* rows(sql`SELECT ${columns}, t.id AS thread_id
          FROM session_texts x JOIN session_entries e ON e.pk = x.pk JOIN session_threads t ON t.key = e.thread
          WHERE ${sql.and(conditions)} ORDER BY e.at DESC, t.id, e.id LIMIT ${size}`)
        hits.push(...(yield* orCorrupt(found.map((row) => toHit(row, query, matches)))).flat())
        const last = found.at(-1)
        if (last === undefined || found.length < size) break
        after = cursorAt(last)
        // Where most have the words and not the phrase, each page would sort all of them again.
        size = Math.max(limit, page)
      }
      return hits.slice(0, limit)
    }),
    await: (thread) =>
      rows(sql`INSERT INTO session_pending
        SELECT pk FROM session_entries WHERE thread = ${thread} AND tag = 'Message'`),
    forget: (thread) =>
      Effect.andThen(
        rows(sql`DELETE FROM session_texts WHERE pk IN (SELECT pk FROM session_entries WHERE thread = ${thread})`),
        rows(sql`DELETE FROM session_pending WHERE pk IN (SELECT pk FROM session_entries WHERE thread = ${thread})`)
      )
  }
}

const cursorAt = (row: Parameters<typeof text>[0]): HitCursor => ({
  at: number(row, "at"),
  threadId: text(row, "thread_id"),
  entryId: text(row, "id")
})
