/** Appends entries by SQL. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Row } from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import type { NewEntry } from "../../../core/SessionStore.ts"
import { stringify } from "../../../support/json/jsonPieces.ts"
import { encode, encodeSlowly } from "../codec.ts"
import { key } from "../ids.ts"
import type { Aside } from "../sqlite/aside.ts"
import type { Fault, NewThread, Waits } from "../tables.ts"
import { first, rows, toFault, transaction } from "./client.ts"
import type { Entries } from "./entries.ts"
import { type Due, group } from "./group.ts"
import { mayBeTaken, topOf } from "./names.ts"
import { nullable, nullableNumber, number, text } from "./rows.ts"
import { room } from "./sqlite.ts"
import { toCells, type WaitsIndex } from "./waits.ts"
import type { Source } from "./walk.ts"

/** An append that is about to be made. */
export interface Batch {
  readonly threadId: string
  readonly leaf: string | null
  readonly behind: string | null
  readonly entries: ReadonlyArray<NewEntry>
  readonly at: number
  /** About as many as the entries have. */
  readonly bytes: number
  /** What the thread waits for then; `undefined`: what it did. */
  readonly waits: Waits | undefined
}

/** An append of about so many bytes would stop the process for milliseconds: it is written entry by entry. */
export const large = 1024 * 1024

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

/** An append as the functions that the migrations made take it. */
const argumentsOf = ({ at, behind, entries, leaf, threadId, waits }: Batch) =>
  [
    key(threadId),
    leaf === null ? null : key(leaf),
    at,
    entries.map(({ entry, id }) => [id, entry._tag, encode(entry)] as const),
    behind !== leaf,
    behind === null ? null : key(behind),
    waits === undefined ? null : toCells(waits)
  ] as const
type Arguments = ReturnType<typeof argumentsOf>

const outcomeOf = (row: Row | undefined): Outcome => {
  if (row === undefined) return other
  const taken = nullable(row, "clash")
  if (taken !== null) return { taken }
  return nullable(row, "reached") === null ? other : number(row, "reached")
}

/** One statement, which is one round trip. */
const appendOne =
  (sql: SqlClient) =>
  (
    [thread, leaf, at, added, isElsewhere, behind, waits]: Arguments,
    text = JSON.stringify(added)
  ): Effect.Effect<Outcome, Fault> => {
    const statement = sql`SELECT reached, clash FROM session_append(${thread}::text, ${leaf}::text, ${at}::bigint,
      ${text}::text::jsonb, ${isElsewhere}::boolean, ${behind}::text,
      ${waits === null ? null : JSON.stringify(waits)}::text::jsonb)`
    return Effect.matchEffect(statement.withoutTransform, {
      onFailure: refusal,
      onSuccess: ([row]) => Effect.succeed(outcomeOf(row))
    })
  }

/** Appends of a group: one more would be a statement that is large. */
const most = 100

/** An append of more characters goes alone. */
const lonely = 100_000

/** The connections that groups use at once: while one is committed, the next is written. */
const lanes = 2

/** Appends of several threads in one turn of the event loop, and while others are under way, are one statement. */
export const appendPostgres = (sql: SqlClient): OwnWrites["append"] => {
  const one = appendOne(sql)

  const write = (due: ReadonlyArray<Due<Arguments, Outcome, Fault>>): Effect.Effect<void> => {
    const [first] = due
    if (first === undefined) return Effect.void
    const alone = ({ item, resume }: Due<Arguments, Outcome, Fault>) =>
      Effect.matchEffect(one(item), {
        onFailure: (fault) => Effect.sync(() => resume(Effect.fail(fault))),
        onSuccess: (outcome) => Effect.sync(() => resume(Effect.succeed(outcome)))
      })
    if (due.length === 1) return alone(first)
    const batches = JSON.stringify(due.map(({ item }) => item))
    const statement = sql`SELECT n, reached, clash FROM session_append_all(${batches}::text::jsonb)`
    return Effect.matchEffect(statement.withoutTransform, {
      onFailure: (error) =>
        // The others have no part in the failure of one; without a connection, all fail.
        error.reason._tag === "ConnectionError"
          ? Effect.sync(() => due.forEach(({ resume }) => resume(Effect.fail(toFault(error)))))
          : Effect.forEach(due, alone, { discard: true }),
      onSuccess: (rows) =>
        Effect.sync(() => {
          const outcomes = new Map(rows.map((row) => [number(row, "n"), outcomeOf(row)]))
          due.forEach(({ resume }, index) => resume(Effect.succeed(outcomes.get(index + 1) ?? other)))
        })
    })
  }

  /** Each entry by a statement of its own, all of them or none. */
  const several = Effect.fnUntraced(function* (batch: Batch) {
    let { behind, leaf } = batch
    let outcome: Outcome = other
    for (const [index, { entry, id }] of batch.entries.entries()) {
      const text = yield* stringify([[id, entry._tag, yield* encodeSlowly(entry)]])
      const waits = index === batch.entries.length - 1 ? batch.waits : undefined
      outcome = yield* one(argumentsOf({ ...batch, behind, leaf, entries: [], waits }), text)
      if (typeof outcome !== "number") return yield* Effect.fail(outcome)
      behind = leaf = id
    }
    return outcome
  })

  const submit = group({ lanes, most, sourceOf: ([thread]) => thread, write })
  return (batch) => {
    if (batch.bytes > large) return atOnce(sql, several(batch))
    const item = argumentsOf(batch)
    const isLarge = item[3].reduce((sum, [, , body]) => sum + body.length, 0) > lonely
    return isLarge ? one(item) : inTransaction(sql, one(item), submit(item))
  }
}

/** Does all of a write or, if it is refused, nothing. */
const atOnce = <E>(sql: SqlClient, write: Effect.Effect<Outcome, E | Exclude<Outcome, number>>) =>
  Effect.catchIf(
    transaction(sql)(write),
    (failure): failure is Exclude<Outcome, number> =>
      typeof failure === "object" && failure !== null && "taken" in failure,
    (refused) => Effect.succeed<Outcome>(refused)
  )

/** A transaction of SQLite, whoever's client it is. */
export const appendSqlite = (
  sql: SqlClient,
  { visible, within }: Pick<Entries, "visible" | "within">,
  { set }: Pick<WaitsIndex, "set">
): Append => {
  const write = Effect.fnUntraced(function* (
    { at, behind, entries, leaf, threadId, waits }: Batch,
    bodies: ReadonlyArray<string>
  ) {
    // It writes first: nobody else does from here on.
    const thread = yield* first(sql`UPDATE session_threads SET updated_at = ${at}, listed = ${at}, pending = 1
      WHERE id = ${key(threadId)} AND archived = 0 AND leaf_id IS ${leaf === null ? null : key(leaf)}
      RETURNING key, leaf_pk, step, top`)
    if (thread === undefined) return yield* Effect.fail(other)
    let place: { readonly pk: number | null; readonly step: number } | undefined = { pk: null, step: 0 }
    if (behind === leaf) place = { pk: nullableNumber(thread, "leaf_pk"), step: number(thread, "step") }
    else if (behind !== null) place = yield* visible(threadId, behind)
    if (place === undefined) return yield* Effect.fail(other)
    const top = text(thread, "top")
    for (const { id } of entries)
      if (mayBeTaken(top, id) && (yield* visible(threadId, id)) !== undefined) return yield* Effect.fail(other)
    const owner = number(thread, "key")
    const row = yield* first(sql`SELECT coalesce(max(e.pk), ${owner * room}) AS last FROM session_entries e
      WHERE ${within(owner)}`)
    const last = row === undefined ? owner * room : number(row, "last")
    const { pk, step } = place
    for (const [n, { entry, id }] of entries.entries()) {
      const body = bodies[n] ?? ""
      if (body.length > lonely) yield* Effect.yieldNow
      yield* rows(sql`INSERT INTO session_entries (pk, thread, id, parent, step, at, type, body) VALUES (${last + 1 + n},
        ${owner}, ${id}, ${n === 0 ? pk : last + n}, ${step + 1 + n}, ${at}, ${entry._tag}, ${body})`)
      if (body.length > lonely) yield* Effect.yieldNow
    }
    yield* rows(sql`UPDATE session_threads SET leaf_pk = ${last + entries.length}, leaf_id = ${entries.at(-1)?.id ?? null},
      step = ${step + entries.length}, top = ${topOf(top, entries)} WHERE key = ${owner}`)
    if (waits !== undefined) yield* set(owner, threadId, 0, waits)
    return step + entries.length
  })
  return (batch) =>
    Effect.flatMap(
      // Nobody waits for the file meanwhile.
      Effect.forEach(batch.entries, ({ entry }) =>
        batch.bytes > large ? encodeSlowly(entry) : Effect.succeed(encode(entry))
      ),
      (bodies) => atOnce(sql, write(batch, bodies))
    )
}

/** Writes to the tables past the statements of a client. */
export interface OwnWrites {
  readonly append: Append
  /** Makes a thread without entries. `false`: there is one already. */
  readonly create: (thread: NewThread) => Effect.Effect<boolean, Fault>
}

/** A client's own way to the tables, past its statements. */
export interface OwnWay extends OwnWrites {
  readonly reads: (other: Source) => Source
  /** Reads what takes long without stopping the process; there is none for a database in memory. */
  readonly aside: Aside | undefined
}

const own = new WeakMap<SqlClient, () => OwnWay>()

/** Has a client read and write in its own way. It is asked for when the tables are there. */
export const lendWay = (sql: SqlClient, way: () => OwnWay): void => {
  own.set(sql, way)
}

export const ownWay = (sql: SqlClient): OwnWay | undefined => own.get(sql)?.()

/** Does one thing where the fiber has a transaction of the client, which it is a part of, and another elsewhere. */
export const inTransaction = <A, E>(
  sql: SqlClient,
  inside: Effect.Effect<A, E>,
  outside: Effect.Effect<A, E>
): Effect.Effect<A, E> =>
  Effect.withFiber((fiber) =>
    Context.getOrUndefined(fiber.context, sql.transactionService) === undefined ? outside : inside
  )
