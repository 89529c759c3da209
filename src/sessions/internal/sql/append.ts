/** Appends entries by SQL. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Row } from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import type { NewEntry } from "../../../core/SessionStore.ts"
import { stringify } from "../../../support/json/jsonPieces.ts"
import type { Aside } from "../../../support/store/sqliteThread.ts"
import { encode, encodeSlowly } from "../codec.ts"
import { key } from "../ids.ts"
import type { Fault, NewThread, Waits } from "../tables.ts"
import { first, rows, toFault, transaction } from "./client.ts"
import type { Entries } from "./entries.ts"
import { type Due, group } from "./group.ts"
import { mayBeTaken, topOf } from "./names.ts"
import { nullable, nullableNumber, number, text } from "./rows.ts"
import { room } from "./sqlite.ts"
import { toCells, type WaitsIndex } from "./waits.ts"
import type { Source } from "./walk.ts"

/** An append to make. */
export interface Batch {
  readonly threadId: string
  readonly leaf: string | null
  readonly behind: string | null
  readonly entries: ReadonlyArray<NewEntry>
  readonly at: number
  /** An estimate. */
  readonly bytes: number
  /** The new open requests; `undefined`: unchanged. */
  readonly waits: Waits | undefined
}

/** The bytes from which an append is written entry by entry, because one write would block for milliseconds. */
export const large = 1024 * 1024

/** The new step of the thread, or the reason of a refusal: a taken id, or (`undefined`) another leaf. */
export type Outcome = number | { readonly taken: string | undefined }

/** Appends all entries, or none. */
export type Append = (batch: Batch) => Effect.Effect<Outcome, Fault>

/** The outcome for a thread with another leaf, or with a taken id that the caller looks up. */
export const other: Exclude<Outcome, number> = { taken: undefined }

/** Maps the violation of the index of ids to a refusal. */
const refusal = (error: SqlError): Effect.Effect<Outcome, Fault> =>
  error.reason._tag === "UniqueViolation" ? Effect.succeed(other) : Effect.fail(toFault(error))

/** The arguments of `session_append`. */
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
  const takenId = nullable(row, "clash")
  if (takenId !== null) return { taken: takenId }
  return nullable(row, "reached") === null ? other : number(row, "reached")
}

/** Appends with one statement, in one round trip. */
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

/** The most appends of a group, so that its statement stays small. */
const most = 100

/** The characters from which an append is not grouped. */
const groupable = 100_000

/** The connections of groups: one is written while another is committed. */
const lanes = 2

/** Groups the appends of several threads into one statement. */
export const appendPostgres = (sql: SqlClient): OwnWrites["append"] => {
  const one = appendOne(sql)

  const write = (due: ReadonlyArray<Due<Arguments, Outcome, Fault>>): Effect.Effect<void> => {
    const [first] = due
    if (first === undefined) return Effect.void
    const writeOne = ({ item, resume }: Due<Arguments, Outcome, Fault>) =>
      Effect.matchEffect(one(item), {
        onFailure: (fault) => Effect.sync(() => resume(Effect.fail(fault))),
        onSuccess: (outcome) => Effect.sync(() => resume(Effect.succeed(outcome)))
      })
    if (due.length === 1) return writeOne(first)
    const batches = JSON.stringify(due.map(({ item }) => item))
    const statement = sql`SELECT n, reached, clash FROM session_append_all(${batches}::text::jsonb)`
    return Effect.matchEffect(statement.withoutTransform, {
      onFailure: (error) =>
        // After the failure of one append, the others are written one by one. Without a connection, all fail.
        error.reason._tag === "ConnectionError"
          ? Effect.sync(() => due.forEach(({ resume }) => resume(Effect.fail(toFault(error)))))
          : Effect.forEach(due, writeOne, { discard: true }),
      onSuccess: (rows) =>
        Effect.sync(() => {
          const outcomes = new Map(rows.map((row) => [number(row, "n"), outcomeOf(row)]))
          due.forEach(({ resume }, index) => resume(Effect.succeed(outcomes.get(index + 1) ?? other)))
        })
    })
  }

  /** Appends each entry with its own statement, in one transaction. */
  const appendEach = Effect.fnUntraced(function* (batch: Batch) {
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
    if (batch.bytes > large) return transact(sql, appendEach(batch))
    const item = argumentsOf(batch)
    const isLarge = item[3].reduce((sum, [, , body]) => sum + body.length, 0) > groupable
    return isLarge ? one(item) : inTransaction(sql, one(item), submit(item))
  }
}

/** Writes in a transaction. A refusal rolls it back. */
const transact = <E>(sql: SqlClient, write: Effect.Effect<Outcome, E | Exclude<Outcome, number>>) =>
  Effect.catchIf(
    transaction(sql)(write),
    (failure): failure is Exclude<Outcome, number> =>
      typeof failure === "object" && failure !== null && "taken" in failure,
    (refused) => Effect.succeed<Outcome>(refused)
  )

/** Appends in a transaction of any SQLite client. */
export const appendSqlite = (
  sql: SqlClient,
  { visible, inThread }: Pick<Entries, "visible" | "inThread">,
  { set }: Pick<WaitsIndex, "set">
): Append => {
  const write = Effect.fnUntraced(function* (
    { at, behind, entries, leaf, threadId, waits }: Batch,
    bodies: ReadonlyArray<string>
  ) {
    // The first statement writes, and so locks the database.
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
      WHERE ${inThread(owner)}`)
    const last = row === undefined ? owner * room : number(row, "last")
    const { pk, step } = place
    for (const [n, { entry, id }] of entries.entries()) {
      const body = bodies[n] ?? ""
      if (body.length > groupable) yield* Effect.yieldNow
      yield* rows(sql`INSERT INTO session_entries (pk, thread, id, parent, step, at, type, body) VALUES (${last + 1 + n},
        ${owner}, ${id}, ${n === 0 ? pk : last + n}, ${step + 1 + n}, ${at}, ${entry._tag}, ${body})`)
      if (body.length > groupable) yield* Effect.yieldNow
    }
    yield* rows(sql`UPDATE session_threads SET leaf_pk = ${last + entries.length}, leaf_id = ${entries.at(-1)?.id ?? null},
      step = ${step + entries.length}, top = ${topOf(top, entries)} WHERE key = ${owner}`)
    if (waits !== undefined) yield* set(owner, threadId, 0, waits)
    return step + entries.length
  })
  return (batch) =>
    Effect.flatMap(
      // Entries are encoded before the transaction, which locks the file.
      Effect.forEach(batch.entries, ({ entry }) =>
        batch.bytes > large ? encodeSlowly(entry) : Effect.succeed(encode(entry))
      ),
      (bodies) => transact(sql, write(batch, bodies))
    )
}

/** Writes of a client without its statements. */
export interface OwnWrites {
  readonly append: Append
  /** Creates an empty thread. `false`: the id is in use. */
  readonly create: (thread: NewThread) => Effect.Effect<boolean, Fault>
}

/** A faster way of a client to the tables, without its statements. */
export interface OwnWay extends OwnWrites {
  readonly reads: (other: Source) => Source
  /** Runs slow queries in another thread. A database in memory has none. */
  readonly aside: Aside | undefined
}

const own = new WeakMap<SqlClient, () => OwnWay>()

/** Registers the own way of a client. `way` runs after the migration. */
export const lendWay = (sql: SqlClient, way: () => OwnWay): void => {
  own.set(sql, way)
}

export const ownWay = (sql: SqlClient): OwnWay | undefined => own.get(sql)?.()

/** Runs `inside` within a transaction of the client, and `outside` without one. */
export const inTransaction = <A, E>(
  sql: SqlClient,
  inside: Effect.Effect<A, E>,
  outside: Effect.Effect<A, E>
): Effect.Effect<A, E> =>
  Effect.withFiber((fiber) =>
    Context.getOrUndefined(fiber.context, sql.transactionService) === undefined ? outside : inside
  )
