/**
 * Writes threads to an SQLite file without `effect/sql`. Writes of several threads in one turn of the event loop share
 * a transaction.
 */
import type { DatabaseSync } from "node:sqlite"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Semaphore from "effect/Semaphore"
import type { SqlError } from "effect/sql/SqlError"
import { canonical } from "../../../core/schema/jsonTree.ts"
import { encode } from "../codec.ts"
import { key } from "../ids.ts"
import { type Batch, other, type Outcome, type OwnWrites } from "../sql/append.ts"
import { toFault } from "../sql/client.ts"
import { type Due, group } from "../sql/group.ts"
import { listedFor } from "../sql/list.ts"
import { mayBeTaken, nameAll, seenBy, tooMany, topOf } from "../sql/names.ts"
import { toCells } from "../sql/waits.ts"
import type { Fault, NewThread } from "../tables.ts"
import { isLocked, toSqlError } from "./errors.ts"
import { retryWhileLocked } from "./lock.ts"

/** The most writes of a transaction, because other processes wait for it. */
const most = 500

/** The first retries, each after one turn of the event loop. Most locks are short. */
const quickRetries = 20

/** A row of a thread, with the number of its last entry. */
type ThreadRow = readonly [
  key: number,
  leaf: number | null,
  leafId: string | null,
  step: number,
  archived: number,
  top: string,
  listed: number,
  pending: number,
  last: number
]

/** The leaf of a thread, and the number of its last entry. */
interface Place {
  readonly owner: number
  readonly leaf: number | null
  readonly leafId: string | null
  readonly step: number
  readonly top: string
  readonly last: number
  /** The time that the list sorts it by. */
  readonly listed: number
}

/** The most remembered places. */
const capacity = 10_000

/** Prepares the statements. The casts follow their columns. */
const prepare = (database: DatabaseSync) => {
  const find = database.prepare(`SELECT t.key, leaf_pk, leaf_id, step, archived, top, listed, pending, coalesce(
      (SELECT max(e.pk) FROM session_entries e WHERE e.pk > t.key << 24 AND e.pk < (t.key + 1) << 24), t.key << 24
    ) FROM session_threads t WHERE t.id = ?`)
  const visible = database.prepare(
    `${seenBy("key")} SELECT pk, step FROM session_entries WHERE pk = (SELECT pk FROM seen LIMIT 1)`
  )
  const many = database.prepare(tooMany("key"))
  const naming = nameAll("key").map((text) => database.prepare(text))
  const move = "UPDATE session_threads SET leaf_pk = ?1, leaf_id = ?2, step = ?3, top = ?4, updated_at = ?5"
  // Any other write would have moved the leaf or used the next number.
  const asLeft = `key = ?6 AND id = ?7 AND leaf_pk = ?8 AND leaf_id = ?9 AND archived = 0
    AND NOT EXISTS (SELECT 1 FROM session_entries e WHERE e.pk = ?10)`
  find.setReturnArrays(true)
  return {
    begin: database.prepare("BEGIN IMMEDIATE"),
    commit: database.prepare("COMMIT"),
    rollback: database.prepare("ROLLBACK"),
    find: (threadId: string) => find.get(key(threadId)) as unknown as ThreadRow | undefined,
    visible: (thread: number, id: string) => {
      if (many.get(thread) !== undefined) for (const one of naming) one.run(thread)
      return visible.get(thread, key(id)) as unknown as { readonly pk: number; readonly step: number } | undefined
    },
    insert: database.prepare(
      "INSERT INTO session_entries (pk, thread, id, parent, step, at, type, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    ),
    create: database.prepare(`INSERT INTO session_threads (id, created_at, updated_at, listed, metadata, archived, step)
      VALUES (?1, ?2, ?2, ?2, ?3, 0, 0) ON CONFLICT (id) DO NOTHING`),
    describe: database.prepare("INSERT INTO session_metadata (thread, name, value) VALUES (?, ?, ?)"),
    clearWaits: database.prepare("DELETE FROM session_waits WHERE thread = ?"),
    wait: database.prepare(
      "INSERT INTO session_waits (thread, id, archived, request, at, body) VALUES (?, ?, 0, ?, ?, ?)"
    ),
    move: database.prepare(`${move} WHERE key = ?6`),
    // SQLite writes the index of each named column, also of an unchanged one.
    moveInLists: database.prepare(`${move}, listed = ?5, pending = 1 WHERE key = ?6`),
    moveOn: database.prepare(`${move} WHERE ${asLeft} AND pending = 1 AND listed = ?11`),
    moveOnInLists: database.prepare(`${move}, listed = ?5, pending = 1 WHERE ${asLeft}`)
  }
}

/** Reports whether a changed thread may stay at its place in the list. */
const isListedIn = (listed: number, at: number): boolean => listed <= at && at < listed + listedFor

/** A write to one thread in a transaction. */
interface Write {
  readonly threadId: string
  readonly make: () => Outcome
}

/** Makes the writes to a database. Transactions hold `semaphore`. */
export const writesTo = (
  database: DatabaseSync,
  semaphore: Semaphore.Semaphore,
  noteWrite: (bytes: number) => void,
  lostPlace: () => Error | undefined
): OwnWrites => {
  const statements = prepare(database)

  /** The places of threads after their last write by this process. Other processes may have written since. */
  const places = new Map<string, Place>()

  /** Moves the leaf to the entries of an append, if the thread has its remembered place. */
  const moveOn = ({ at, behind, entries, leaf, threadId }: Batch): Place | undefined => {
    const place = places.get(threadId)
    if (place === undefined || place.leafId !== leaf || behind !== leaf) return undefined
    let { top } = place
    for (const { id } of entries) {
      if (mayBeTaken(top, id)) return undefined
      top = id
    }
    const { last, listed, owner, step } = place
    const [end, steps] = [last + entries.length, step + entries.length]
    const values = [end, top, steps, top, at, owner, threadId, place.leaf, leaf, last + 1] as const
    const isInPlace = isListedIn(listed, at)
    const moved = isInPlace ? statements.moveOn.run(...values, listed) : statements.moveOnInLists.run(...values)
    return moved.changes === 1 ? { ...place, listed: isInPlace ? listed : at } : undefined
  }

  /** Moves the leaf to the entries of an append. */
  const move = ({ at, behind, entries, leaf, threadId }: Batch): Place | undefined => {
    const thread = statements.find(threadId)
    if (thread === undefined) return undefined
    const [owner, leafPk, leafId, reached, archived, top, listed, pending, last] = thread
    if (archived === 1 || leafId !== leaf) return undefined
    let from: { readonly pk: number | null; readonly step: number } | undefined = { pk: leafPk, step: reached }
    if (behind !== leaf) from = behind === null ? { pk: null, step: 0 } : statements.visible(owner, behind)
    if (from === undefined) return undefined
    if (entries.some(({ id }) => mayBeTaken(top, id) && statements.visible(owner, id) !== undefined)) return undefined
    const isInPlace = pending === 1 && isListedIn(listed, at)
    const statement = isInPlace ? statements.move : statements.moveInLists
    const [end, step] = [last + entries.length, from.step + entries.length]
    statement.run(end, entries.at(-1)?.id ?? null, step, topOf(top, entries), at, owner)
    return { owner, leaf: from.pk, leafId: behind, step: from.step, top, last, listed: isInPlace ? listed : at }
  }

  /** Appends entries to a thread. Checks come before the first write. */
  const append = (batch: Batch): Outcome => {
    const place = moveOn(batch) ?? move(batch)
    if (place === undefined) return other
    const { at, entries, threadId, waits } = batch
    let [{ last: pk, leaf: parent, leafId, step }, bytes] = [place, 0]
    for (const { entry, id } of entries) {
      const body = encode(entry)
      statements.insert.run(++pk, place.owner, id, parent, ++step, at, entry._tag, body)
      parent = pk
      leafId = id
      bytes += body.length
    }
    if (waits !== undefined) {
      statements.clearWaits.run(place.owner)
      for (const cells of toCells(waits)) statements.wait.run(place.owner, threadId, ...cells)
    }
    // Adjacent rows share pages.
    noteWrite(bytes)
    if (places.size >= capacity) places.clear()
    places.set(threadId, { ...place, leaf: parent, leafId, step, top: topOf(place.top, entries), last: pk })
    return step
  }

  /** Creates an empty thread. 0: the id is in use. */
  const create = ({ at, metadata, threadId }: NewThread): number => {
    const result = statements.create.run(threadId, at, JSON.stringify(metadata))
    for (const [name, value] of Object.entries(metadata)) {
      if (result.changes === 1) statements.describe.run(result.lastInsertRowid, JSON.stringify(name), canonical(value))
    }
    return Number(result.changes)
  }

  /** Runs writes in one transaction, without a pause for other fibers. */
  const transact = (writes: ReadonlyArray<Write>): Result.Result<ReadonlyArray<Outcome>, SqlError> => {
    const error = lostPlace()
    if (error !== undefined) return Result.fail(toSqlError(error, "execute"))
    const body = () => {
      statements.begin.run()
      const outcomes = writes.map(({ make }) => make())
      statements.commit.run()
      return outcomes
    }
    const result = Result.try({ try: body, catch: (cause) => toSqlError(cause, "execute") })
    if (Result.isFailure(result)) rollBack()
    return result
  }

  /** Rolls back a failed transaction. */
  const rollBack = (): void => {
    places.clear()
    if (database.isTransaction) Result.try(() => statements.rollback.run())
  }

  /** Waits for the connection or the lock of the file. */
  const patiently = (writes: ReadonlyArray<Write>) =>
    semaphore.withPermit(
      Effect.suspend(() => {
        rollBack()
        const attempt = Effect.flatMap(Effect.yieldNow, () => Effect.fromResult(transact(writes)))
        return retryWhileLocked(Effect.retry(attempt, { times: quickRetries, while: isLocked }))
      })
    )

  const write = (due: ReadonlyArray<Due<Write, Outcome, Fault>>): Effect.Effect<void> =>
    Effect.suspend(() => {
      const writes = due.map(({ item }) => item)
      const first = database.isTransaction ? undefined : transact(writes)
      const transaction =
        first === undefined || (Result.isFailure(first) && isLocked(first.failure))
          ? patiently(writes)
          : Effect.fromResult(first)
      return Effect.matchEffect(transaction, {
        onSuccess: (outcomes) =>
          Effect.sync(() => due.forEach(({ resume }, index) => resume(Effect.succeed(outcomes[index] ?? other)))),
        onFailure: (error) => {
          const [one] = due
          // After the failure of one write, the others are made one by one.
          if (one === undefined || due.length > 1)
            return Effect.forEach(due, (each) => write([each]), { discard: true })
          return Effect.sync(() => one.resume(Effect.fail(toFault(error))))
        }
      })
    })

  const writeNow = (item: Write): Effect.Effect<Outcome, Fault> | undefined => {
    const result = database.isTransaction ? undefined : transact([item])
    if (result === undefined || (Result.isFailure(result) && isLocked(result.failure))) return undefined
    return Result.isSuccess(result) ? Effect.succeed(result.success[0] ?? other) : Effect.fail(toFault(result.failure))
  }

  const submit = group({ lanes: 1, most, sourceOf: ({ threadId }) => threadId, write, writeNow })
  return {
    append: (batch) => submit({ threadId: batch.threadId, make: () => append(batch) }),
    create: (thread) =>
      Effect.map(submit({ threadId: thread.threadId, make: () => create(thread) }), (outcome) => outcome === 1)
  }
}
