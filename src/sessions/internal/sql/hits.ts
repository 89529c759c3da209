/** Reads hits of a search from rows. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Row } from "effect/sql/SqlConnection"
import type { Fragment, Statement } from "effect/sql/Statement"
import type { JsonObject } from "../../../core/Json.ts"
import { text as messageText } from "../../../core/Message.ts"
import { canonical } from "../../../core/schema/jsonTree.ts"
import type { Hit } from "../../../core/SessionStore.ts"
import { key } from "../ids.ts"
import type { Fault, SearchQuery, Tables } from "../tables.ts"
import { excerpt, findWords, type Pace, searchable, spend } from "../words.ts"
import { corrupt, first, transaction } from "./client.ts"
import { text, toStored } from "./rows.ts"

/** The search of a database, and its index. */
export interface Search {
  readonly search: Tables["search"]
  /** Marks the messages of an imported thread for the index. */
  readonly await: (thread: number) => Effect.Effect<void, Fault>
  /** Removes a thread from the index before its entries are deleted. */
  readonly forget: (thread: number) => Effect.Effect<void, Fault>
}

/** Reads the words of a message. Other and unreadable rows have none; loading the thread reports those. */
export const wordsOf = Effect.fnUntraced(function* (row: Row, pace: Pace) {
  yield* spend(pace, text(row, "body").length)
  const storedEntry = Result.getOrUndefined(toStored(row))
  const content = storedEntry === undefined ? undefined : searchable(storedEntry)
  return content === undefined ? undefined : yield* findWords(content, pace)
})

/** Reads the hit of a row, if `isFound` confirms it. */
export const toHit = Effect.fnUntraced(function* (
  row: Row,
  { phrases }: SearchQuery,
  isFound: (content: string) => Effect.Effect<boolean>,
  pace: Pace
): Effect.fn.Return<ReadonlyArray<Hit>, Fault> {
  yield* spend(pace, text(row, "body").length)
  const { at, entry, id } = yield* Effect.mapError(Effect.fromResult(toStored(row)), corrupt)
  if (entry._tag !== "Message") return []
  const content = messageText(entry.message)
  if (!(yield* isFound(content))) return []
  const { role } = entry.message
  return [{ threadId: text(row, "thread_id"), entryId: id, at, role, excerpt: yield* excerpt(content, phrases, pace) }]
})

/** Selects threads `t` by their metadata. */
export const metadataConditionsOf = (sql: SqlClient, where: JsonObject): ReadonlyArray<Fragment> =>
  Object.entries(where).map(
    ([name, value]) => sql`EXISTS (SELECT 1 FROM session_metadata m
      WHERE m.thread = t.key AND m.name = ${JSON.stringify(name)} AND m.value = ${canonical(value)})`
  )

/** Selects threads `t` and entries `e` of a query, apart from its phrases. */
export const conditionsOf = (
  sql: SqlClient,
  { after, archived, threadId, where }: SearchQuery
): ReadonlyArray<Fragment> => [
  sql`t.archived = ${archived ? 1 : 0}`,
  sql`t.id IS NOT NULL`,
  ...(threadId === undefined ? [] : [sql`t.id = ${key(threadId)}`]),
  ...metadataConditionsOf(sql, where),
  ...(after === undefined
    ? []
    : [
        sql`(e.at < ${after.at} OR (e.at = ${after.at} AND (t.id, e.id) > (${key(after.threadId)}, ${key(after.entryId)})))`
      ])
]

/** Indexes all messages if `isBehind` gives a row. Each step is a transaction; the last one gives `false`. */
export const makeCatchUp = (
  sql: SqlClient,
  isBehind: Statement<Row>,
  step: Effect.Effect<boolean, Fault>
): Effect.Effect<void, Fault> => {
  const steps: Effect.Effect<void, Fault> = Effect.flatMap(transaction(sql)(step), (isMore) =>
    isMore ? Effect.andThen(Effect.yieldNow, steps) : Effect.void
  )
  return Effect.flatMap(first(isBehind), (row) => (row === undefined ? Effect.void : steps))
}
