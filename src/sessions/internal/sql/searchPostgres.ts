/** Finds messages by the full-text index of Postgres. */
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Hit } from "../../../core/SessionStore.ts"
import { readable } from "../../../support/text/size.ts"
import { makePace, matches, type Phrases } from "../words.ts"
import { rows } from "./client.ts"
import { conditionsOf, makeCatchUp, type Search, toHit, wordsOf } from "./hits.ts"
import { entryColumns, nullable, number, text } from "./rows.ts"

/** The messages of one transaction of the index. */
const batch = 200

/** The messages of a further query after the first found too few. */
const page = 200

/** The index has the beginning of longer words, because a lexeme has at most 2,046 bytes. */
const longest = 200

/** A tsvector has at most a megabyte. */
const mostBytes = 900_000

const shorten = (word: string): string => word.slice(0, longest).toWellFormed()

/** Writes words as a tsvector without positions; `null` for too many. Words contain no quotes. */
const toVector = (words: ReadonlyArray<string>): string | null => {
  const distinct = [...new Set(words.map(shorten))]
  // A character of UTF-16 has three bytes of UTF-8 at most.
  const bytes = distinct.reduce((sum, word) => sum + 3 * word.length + 8, 0)
  return bytes > mostBytes ? null : distinct.map((word) => `'${word}'`).join(" ")
}

/** Writes the words of phrases as a query. Its hits are checked for the phrases themselves. */
const toQuery = (wanted: Phrases): string =>
  wanted
    .flatMap((phrase) =>
      phrase.map((word, index) => {
        const isWhole = index < phrase.length - 1 && word.length < longest
        return `'${shorten(word)}'${isWhole ? "" : ":*"}`
      })
    )
    .join(" & ")

/** Makes the search of a Postgres database. */
export const searchPostgres = (sql: SqlClient): Search => {
  // A row that is too large to read would fail the whole query.
  const columns = sql.literal(
    entryColumns.replace("e.body", `CASE WHEN octet_length(e.body) <= ${readable} THEN e.body END AS body`)
  )

  /** Indexes a batch of messages. `true`: there may be more. Concurrent calls wait for each other. */
  const step = Effect.gen(function* () {
    const list = yield* rows(sql`WITH taken AS (
        DELETE FROM session_pending WHERE pk IN (
          SELECT pk FROM session_pending ORDER BY pk LIMIT ${batch} FOR UPDATE
        ) RETURNING pk
      )
      SELECT ${columns}, octet_length(e.body) AS bytes, t.id AS thread_id
      FROM taken JOIN session_entries e ON e.pk = taken.pk JOIN session_threads t ON t.key = e.thread`)
    const pace = makePace()
    for (const row of list) {
      if (nullable(row, "body") === null) {
        yield* Effect.logWarning(
          `Message ${text(row, "id")} of the thread ${JSON.stringify(row["thread_id"])} has ${number(row, "bytes")} bytes, more than can be read: searches leave it out.`
        )
        continue
      }
      const words = yield* wordsOf(row, pace)
      if (words === undefined) continue
      yield* rows(
        sql`INSERT INTO session_texts (pk, words) VALUES (${number(row, "pk")}, ${toVector(words)}::text::tsvector)
          ON CONFLICT (pk) DO NOTHING`
      )
    }
    return list.length > 0
  })
  const catchUp = makeCatchUp(sql, sql`SELECT 1 FROM session_pending LIMIT 1`, step)

  return {
    search: Effect.fnUntraced(function* (query) {
      yield* catchUp
      const { limit, phrases } = query
      const pace = makePace()
      const isFound = (content: string) => matches(content, phrases, pace)
      const hits: Array<Hit> = []
      let { after } = query
      let size = limit
      while (hits.length < limit) {
        const wanted = sql`${toQuery(phrases)}::text::tsquery`
        const conditions = [sql`(x.words @@ ${wanted} OR x.words IS NULL)`, ...conditionsOf(sql, { ...query, after })]
        const list = yield* rows(sql`SELECT ${columns}, t.id AS thread_id
          FROM session_texts x JOIN session_entries e ON e.pk = x.pk JOIN session_threads t ON t.key = e.thread
          WHERE ${sql.and(conditions)} ORDER BY e.at DESC, t.id, e.id LIMIT ${size}`)
        for (const row of list) hits.push(...(yield* toHit(row, query, isFound, pace)))
        const last = list.at(-1)
        if (last === undefined || list.length < size) break
        after = { at: number(last, "at"), threadId: text(last, "thread_id"), entryId: text(last, "id") }
        // Each query sorts all messages with the words, so a further one reads more of them.
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
