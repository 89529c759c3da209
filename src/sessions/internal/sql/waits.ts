/** The index of open requests. It reads only threads that are older than the index. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Row } from "effect/sql/SqlConnection"
import type { WaitingRequest } from "../../../core/SessionStore.ts"
import { key } from "../ids.ts"
import type { Fault, Tables, WaitQuery, Waits } from "../tables.ts"
import { type Backlog, makeCatchUp, toRequest } from "../waits.ts"
import { orCorrupt, first, insertAll, rows, transaction } from "./client.ts"
import { kindColumn } from "./entries.ts"
import { number, text } from "./rows.ts"

/** The columns of requests. */
export const toCells = (waits: Waits): ReadonlyArray<readonly [request: string, at: number, body: string]> =>
  waits.map((request) => [request.id, request.at, JSON.stringify(request)])

const toWaiting = (row: Row): Result.Result<WaitingRequest, string> =>
  Result.map(toRequest(text(row, "request"), text(row, "body")), (request) => ({ threadId: text(row, "id"), request }))

/** The threads of one step through the backlog. */
const page = 500

/** Selects open requests from the index alone. */
export const selectWaiting = (sql: SqlClient, { after, limit, threadId }: WaitQuery) => {
  const conditions = [
    sql`archived = 0`,
    ...(threadId === undefined
      ? []
      : [sql`thread = (SELECT key FROM session_threads t WHERE t.id = ${key(threadId)})`]),
    ...(after === undefined
      ? []
      : [sql`(at, request, id) > (${after.at}, ${key(after.requestId)}, ${key(after.threadId)})`])
  ]
  return sql<Row>`SELECT request, id, body FROM session_waits WHERE ${sql.and(conditions)}
    ORDER BY at, request, id LIMIT ${limit}`
}

/** Selects a request by its id. */
export const selectWaitingFor = (sql: SqlClient, requestId: string) =>
  sql<Row>`SELECT request, id, body FROM session_waits WHERE archived = 0 AND request = ${key(requestId)}
    ORDER BY id LIMIT 1`

export type WaitsIndex = ReturnType<typeof makeWaits>

/** Makes the index of a database. */
export const makeWaits = (sql: SqlClient, path: Tables["path"]) => {
  /** Replaces the open requests of a thread. */
  const setWaits = Effect.fnUntraced(function* (thread: number, id: string, archived: number, waits: Waits) {
    yield* clear(thread)
    const added = toCells(waits).map(([request, at, body]) => ({ thread, request, at, id, archived, body }))
    yield* insertAll(sql, "session_waits", added)
  })

  const clear = (thread: number) => rows(sql`DELETE FROM session_waits WHERE thread = ${thread}`)

  const archive = (thread: number, archived: boolean) =>
    rows(sql`UPDATE session_waits SET archived = ${archived ? 1 : 0} WHERE thread = ${thread}`)

  /** Selects the settlement of a completed run, which leaves nothing open. */
  const isSettled = (entry: string) => {
    const kind = kindColumn(sql)
    return sql.literal(`(${entry}.${kind} = 'RunSettled' AND ${entry}.body LIKE '%"outcome":"completed"%')`)
  }

  const backlog: Backlog = {
    next: Effect.gen(function* () {
      const start = yield* first(sql`SELECT thread FROM session_waits_upto`)
      if (start === undefined) return undefined
      const list = yield* rows(
        sql`SELECT t.key, t.id, t.leaf_id, CASE WHEN ${isSettled("e")} OR ${isSettled("p")} THEN 0 ELSE 1 END AS may
          FROM session_threads t LEFT JOIN session_entries e ON e.pk = t.leaf_pk LEFT JOIN session_entries p ON p.pk = e.parent
          WHERE t.key > ${number(start, "thread")} ORDER BY t.key LIMIT ${page}`
      )
      const end = list.at(-1)
      upto = end === undefined ? undefined : number(end, "key")
      if (upto === undefined) {
        yield* rows(sql`DELETE FROM session_waits_upto`)
        return undefined
      }
      return list.flatMap((row) =>
        row["id"] === null || row["leaf_id"] === null || number(row, "may") === 0
          ? []
          : [{ threadId: text(row, "id"), leaf: text(row, "leaf_id") }]
      )
    }),
    put: (results) =>
      transaction(sql)(
        Effect.gen(function* () {
          for (const { leaf, threadId, waits } of results) {
            if (waits.length === 0) continue
            const thread = yield* first(sql`UPDATE session_threads SET archived = archived
              WHERE id = ${threadId} AND leaf_id = ${leaf} RETURNING key, archived`)
            if (thread !== undefined)
              yield* setWaits(number(thread, "key"), threadId, number(thread, "archived"), waits)
          }
          yield* rows(sql`UPDATE session_waits_upto SET thread = ${upto ?? 0} WHERE thread < ${upto ?? 0}`)
        })
      )
  }
  let upto: number | undefined
  const caughtUp = makeCatchUp(path, backlog)
  const toList = (list: ReadonlyArray<Row>): Effect.Effect<ReadonlyArray<WaitingRequest>, Fault> =>
    orCorrupt(list.map(toWaiting))

  const waiting: Tables["waiting"] = Effect.fnUntraced(function* (query) {
    yield* caughtUp
    return yield* toList(yield* rows(selectWaiting(sql, query)))
  })

  const waitingFor: Tables["waitingFor"] = Effect.fnUntraced(function* (requestId) {
    yield* caughtUp
    const [item] = yield* toList(yield* rows(selectWaitingFor(sql, requestId)))
    return item
  })

  return { set: setWaits, clear, archive, waiting, waitingFor }
}
