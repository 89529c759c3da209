import type { DatabaseSync } from "node:sqlite"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { canonical } from "../../../core/Json.ts"
import { text as messageText } from "../../../core/Message.ts"
import type { Hit } from "../../../core/SessionStore.ts"
import type { Fault, ListQuery, SearchQuery, Tables } from "../../internal/tables.ts"
import { excerpt, type Phrases, searchable, words } from "../../internal/words.ts"
import { fault, touch } from "./database.ts"
import { number, type Row, text, threadColumns, toStored, toThread } from "./rows.ts"

/** How many messages are put into the index in one go. */
const batch = 500

/** The phrases in FTS5's language. Words have no quotes in them. */
const toMatch = (wanted: Phrases): string => wanted.map((phrase) => `"${phrase.join(" ")}" *`).join(" AND ")

const all = <A>(results: ReadonlyArray<Result.Result<A, string>>): Effect.Effect<ReadonlyArray<A>, Fault> =>
  Effect.mapError(Effect.fromResult(Result.all(results)), (problem) => fault("Corrupt", problem))

/** Lists and searches. What they find depends on nothing but what is stored. */
export const makeSearch = (
  database: DatabaseSync,
  transaction: <A>(body: () => A) => Effect.Effect<A, Fault>
): Pick<Tables, "list" | "search"> => {
  const upto = database.prepare("SELECT pk FROM texts_upto")
  const setUpto = database.prepare("UPDATE texts_upto SET pk = ?")
  const unindexed = database.prepare(
    `SELECT e.pk, e.id, e.step, e.at, e.tag, e.body, t.id AS thread_id FROM entries e JOIN threads t ON t.key = e.thread
     WHERE e.pk > ? ORDER BY e.pk LIMIT ${batch}`
  )
  const index = database.prepare("INSERT INTO texts (rowid, words) VALUES (?, ?)")
  const found = database.prepare(
    `SELECT e.pk, e.id, e.step, e.at, e.body, t.id AS thread_id
     FROM texts JOIN entries e ON e.pk = texts.rowid JOIN threads t ON t.key = e.thread
     WHERE texts MATCH :match AND t.archived = :archived AND t.id IS NOT NULL
       AND (:thread IS NULL OR t.id = :thread)
       AND (:at IS NULL OR e.at < :at OR (e.at = :at AND (t.id, e.id) > (:after, :entry)))
     ORDER BY e.at DESC, t.id, e.id LIMIT :limit`
  )

  /** Puts the messages of a batch into the index; `true` if there may be more. */
  const catchUp = (): boolean => {
    const rows = unindexed.all(number(upto.get() ?? {}, "pk"))
    const last = rows.at(-1)
    if (last === undefined) return false
    for (const row of rows) {
      if (row["tag"] !== "Message" || row["thread_id"] === null) continue
      // An entry that can't be read is found by nobody; loading its thread says what is wrong with it.
      const stored = Result.getOrUndefined(toStored(row))
      const content = stored === undefined ? undefined : searchable(stored)
      if (content !== undefined) index.run(number(row, "pk"), words(content).join(" "))
    }
    setUpto.run(number(last, "pk"))
    return rows.length === batch
  }

  const indexed: Effect.Effect<void, Fault> = Effect.suspend(() =>
    Effect.flatMap(transaction(catchUp), (isMore) => (isMore ? Effect.andThen(Effect.yieldNow, indexed) : Effect.void))
  )

  const toHit = (row: Row, { phrases }: SearchQuery): Result.Result<ReadonlyArray<Hit>, string> =>
    Result.map(toStored(row), ({ at, entry, id }) => {
      if (entry._tag !== "Message") return []
      const { message } = entry
      const shown = excerpt(messageText(message), phrases)
      return [{ threadId: text(row, "thread_id"), entryId: id, at, role: message.role, excerpt: shown }]
    })

  const listed = ({ after, archived, limit, where }: ListQuery): ReadonlyArray<Row> => {
    const conditions = Object.entries(where)
    const statement = database.prepare(
      `SELECT ${threadColumns} FROM threads t WHERE id IS NOT NULL AND archived = ?
       ${after === undefined ? "" : "AND (updated_at < ? OR (updated_at = ? AND id > ?))"}
       ${conditions.map(() => "AND EXISTS (SELECT 1 FROM thread_metadata m WHERE m.thread = t.key AND m.name = ? AND m.value = ?)").join(" ")}
       ORDER BY updated_at DESC, id LIMIT ?`
    )
    const from = after === undefined ? [] : [after.at, after.at, after.threadId]
    const wanted = conditions.flatMap(([name, value]) => [name, canonical(value)])
    return statement.all(archived ? 1 : 0, ...from, ...wanted, limit)
  }

  return {
    list: (query) =>
      Effect.flatMap(
        touch(() => listed(query)),
        (rows) => all(rows.map(toThread))
      ),
    search: (query) => {
      const { after, archived, limit, phrases, threadId } = query
      const run = touch(() =>
        found.all({
          match: toMatch(phrases),
          archived: archived ? 1 : 0,
          thread: threadId ?? null,
          at: after?.at ?? null,
          after: after?.threadId ?? null,
          entry: after?.entryId ?? null,
          limit
        })
      )
      return Effect.andThen(
        indexed,
        Effect.flatMap(run, (rows) => Effect.map(all(rows.map((row) => toHit(row, query))), (hits) => hits.flat()))
      )
    }
  }
}
