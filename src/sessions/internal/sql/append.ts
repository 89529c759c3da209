/**
 * Appends entries by SQL.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { NewEntry } from "../../../core/SessionStore.ts"
import { encode } from "../codec.ts"
import { key } from "../ids.ts"
import type { Fault, NewThread } from "../tables.ts"
import { first, insertAll, rows, toFault, transaction } from "./client.ts"
import type { Entries } from "./entries.ts"
import { nullable, nullableNumber, number } from "./rows.ts"

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

/** Appends at once or not at all. */
export type Append = (batch: Batch) => Effect.Effect<Outcome, Fault>

/** The outcome where the thread does not stand where it should. Whoever has to report it looks up why. */
export const other: Exclude<Outcome, number> = { taken: undefined }

/** An id that is taken violates an index; whoever has to report it looks up which one. */
const refusal = (error: SqlError): Effect.Effect<Outcome, Fault> =>
  error.reason._tag === "UniqueViolation" ? Effect.succeed(other) : Effect.fail(toFault(error))

/** The function that the migration made: one statement, which is one round trip. */
export const appendPostgres =
  (sql: SqlClient): Append =>
  ({ at, behind, entries, leaf, threadId }) => {
    const added = JSON.stringify(entries.map(({ entry, id }) => [id, entry._tag, encode(entry)]))
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

/** A transaction of SQLite, whoever's client it is. */
export const appendSqlite = (sql: SqlClient, { visible }: Pick<Entries, "visible">): Append => {
  const write = Effect.fnUntraced(function* ({ at, behind, entries, leaf, threadId }: Batch) {
    // It writes first: nobody else does from here on.
    const thread = yield* first(sql`UPDATE session_threads SET updated_at = ${at}
      WHERE id = ${key(threadId)} AND archived = 0 AND leaf_id IS ${leaf === null ? null : key(leaf)}
      RETURNING key, leaf, step`)
    if (thread === undefined) return yield* Effect.fail(other)
    let place: { readonly pk: number | null; readonly step: number } | undefined = { pk: null, step: 0 }
    if (behind === leaf) place = { pk: nullableNumber(thread, "leaf"), step: number(thread, "step") }
    else if (behind !== null) place = yield* visible(threadId, behind)
    if (place === undefined) return yield* Effect.fail(other)
    for (const { id } of entries) if ((yield* visible(threadId, id)) !== undefined) return yield* Effect.fail(other)
    const row = yield* first(sql`SELECT coalesce(max(pk), 0) AS last FROM session_entries`)
    const last = row === undefined ? 0 : number(row, "last")
    const { pk, step } = place
    const added = entries.map(({ entry, id }, n) => ({
      pk: last + 1 + n,
      thread: number(thread, "key"),
      id,
      parent: n === 0 ? pk : last + n,
      step: step + 1 + n,
      at,
      kind: entry._tag,
      body: encode(entry)
    }))
    yield* insertAll(sql, "session_entries", added)
    const end = added.at(-1)
    yield* rows(sql`UPDATE session_threads SET leaf = ${end?.pk ?? null}, leaf_id = ${end?.id ?? null},
      step = ${end?.step ?? 0} WHERE key = ${number(thread, "key")}`)
    return end?.step ?? 0
  })
  return (batch) =>
    Effect.catchIf(
      transaction(sql)(write(batch)),
      (failure) => "taken" in failure,
      (refused) => Effect.succeed(refused)
    )
}

/** A client's own way to write to the tables, past its statements. */
export interface OwnWrites {
  readonly append: Append
  /** Makes a thread without entries. `false`: there is one already. */
  readonly create: (thread: NewThread) => Effect.Effect<boolean, Fault>
}

const own = new WeakMap<SqlClient, () => OwnWrites>()

/** Has a client write in its own way. It is asked for when the tables are there. */
export const lendWrites = (sql: SqlClient, writes: () => OwnWrites): void => {
  own.set(sql, writes)
}

export const ownWrites = (sql: SqlClient): OwnWrites | undefined => own.get(sql)?.()

/** Does one thing where the fiber has a transaction of the client, which it is a part of, and another elsewhere. */
export const inTransaction = <A, E>(
  sql: SqlClient,
  inside: Effect.Effect<A, E>,
  outside: Effect.Effect<A, E>
): Effect.Effect<A, E> =>
  Effect.withFiber((fiber) =>
    Context.getOrUndefined(fiber.context, sql.transactionService) === undefined ? outside : inside
  )
