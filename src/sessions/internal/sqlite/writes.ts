/**
 * Writes threads to an SQLite file past `effect/sql`: what comes for several of them in one turn of the event loop is
 * one transaction, which is one commit.
 */
import type { DatabaseSync } from "node:sqlite"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import type * as Semaphore from "effect/Semaphore"
import type { SqlError } from "effect/sql/SqlError"
import { canonical } from "../../../core/Json.ts"
import { encode } from "../codec.ts"
import { key } from "../ids.ts"
import { type Batch, other, type Outcome, type OwnWrites } from "../sql/append.ts"
import { toFault } from "../sql/client.ts"
import { type Due, group } from "../sql/group.ts"
import type { Fault, NewThread } from "../tables.ts"
import { isLocked, isTaken, toSqlError } from "./errors.ts"

/** A longer transaction keeps other processes waiting. */
const most = 500

/** Most locks of somebody else are gone when the event loop comes round a few times. */
const atOnce = 20
const waiting = Schedule.spaced("2 millis").pipe(Schedule.jittered, Schedule.upTo({ duration: "10 seconds" }))

interface ThreadRow {
  readonly key: number
  readonly leaf: number | null
  readonly leaf_id: string | null
  readonly step: number
  readonly origin: number | null
  readonly archived: number
}

interface EntryRow {
  readonly pk: number
  readonly step: number
}

/** The statements of an append. Their rows are as the columns say. */
const prepare = (database: DatabaseSync) => {
  const find = database.prepare("SELECT key, leaf, leaf_id, step, origin, archived FROM session_threads WHERE id = ?")
  const visible = database.prepare(`WITH RECURSIVE line (thread, last) AS (
      SELECT key, 9007199254740991 FROM session_threads WHERE key = ?
      UNION ALL
      SELECT t.origin, t.origin_last FROM line JOIN session_threads t ON t.key = line.thread WHERE t.origin IS NOT NULL
    )
    SELECT e.pk, e.step FROM line CROSS JOIN session_entries e
    WHERE e.thread = line.thread AND e.id = ? AND e.pk <= line.last LIMIT 1`)
  const last = database.prepare("SELECT coalesce(max(pk), 0) AS pk, 0 AS step FROM session_entries")
  return {
    begin: database.prepare("BEGIN IMMEDIATE"),
    commit: database.prepare("COMMIT"),
    rollback: database.prepare("ROLLBACK"),
    find: (threadId: string) => find.get(key(threadId)) as unknown as ThreadRow | undefined,
    visible: (thread: number, id: string) => visible.get(thread, key(id)) as unknown as EntryRow | undefined,
    last: () => (last.get() as unknown as EntryRow).pk,
    insert: database.prepare(
      "INSERT INTO session_entries (pk, thread, id, parent, step, at, kind, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    ),
    create: database.prepare(`INSERT INTO session_threads (id, created_at, updated_at, metadata, archived, step)
      VALUES (?, ?, ?, ?, 0, 0) ON CONFLICT (id) DO NOTHING`),
    describe: database.prepare("INSERT INTO session_metadata (thread, name, value) VALUES (?, ?, ?)"),
    undo: database.prepare("DELETE FROM session_entries WHERE pk > ?"),
    move: database.prepare("UPDATE session_threads SET leaf = ?, leaf_id = ?, step = ?, updated_at = ? WHERE key = ?")
  }
}

/** A write to one thread, inside of a transaction, behind the entry of this number. */
interface Write {
  readonly threadId: string
  readonly entries: number
  readonly make: (last: number) => Outcome
}

/** Writes to the tables of a database. `semaphore` is held by whoever has a transaction on it; `written` is told. */
export const writesTo = (
  database: DatabaseSync,
  semaphore: Semaphore.Semaphore,
  written: (bytes: number) => void
): OwnWrites => {
  const statements = prepare(database)

  /** Appends entries to a thread. */
  const append = ({ at, behind, entries, leaf, threadId }: Batch, last: number): Outcome => {
    const thread = statements.find(threadId)
    if (thread === undefined || thread.archived === 1 || thread.leaf_id !== leaf) return other
    let place: { readonly pk: number | null; readonly step: number } | undefined = {
      pk: thread.leaf,
      step: thread.step
    }
    if (behind !== leaf) place = behind === null ? { pk: null, step: 0 } : statements.visible(thread.key, behind)
    if (place === undefined) return other
    // The index knows the ids of the thread's own entries only.
    if (thread.origin !== null && entries.some(({ id }) => statements.visible(thread.key, id) !== undefined))
      return other
    let [{ pk: parent, step }, pk] = [place, last]
    for (const { entry, id } of entries) {
      const body = encode(entry)
      statements.insert.run(++pk, thread.key, id, parent, ++step, at, entry._tag, body)
      parent = pk
      written(body.length)
    }
    statements.move.run(parent, entries.at(-1)?.id ?? null, step, at, thread.key)
    return step
  }

  /** Makes a thread without entries; 0 if there is one. */
  const create = ({ at, metadata, threadId }: NewThread): number => {
    const made = statements.create.run(threadId, at, at, JSON.stringify(metadata))
    for (const [name, value] of Object.entries(metadata)) {
      if (made.changes === 1) statements.describe.run(made.lastInsertRowid, JSON.stringify(name), canonical(value))
    }
    return Number(made.changes)
  }

  /** Makes a write; one that is refused leaves nothing behind. */
  const attempt = (write: Write, last: number): Outcome => {
    const done = Result.try({ try: () => write.make(last), catch: (cause) => cause })
    if (Result.isSuccess(done) || !isTaken(done.failure)) return Result.getOrThrowWith(done, (cause) => cause)
    statements.undo.run(last)
    return other
  }

  /** Does all in one go: nobody else of this process comes between. */
  const transact = (writes: ReadonlyArray<Write>): Result.Result<ReadonlyArray<Outcome>, SqlError> => {
    const body = () => {
      statements.begin.run()
      let last = statements.last()
      const outcomes = writes.map((write) => {
        const outcome = attempt(write, last)
        if (typeof outcome === "number") last += write.entries
        return outcome
      })
      statements.commit.run()
      return outcomes
    }
    const done = Result.try({ try: body, catch: (cause) => toSqlError(cause, "execute") })
    if (Result.isFailure(done)) rollBack()
    return done
  }

  /** A transaction that could not be ended is nobody's. */
  const rollBack = (): void => {
    if (database.isTransaction) Result.try(() => statements.rollback.run())
  }

  /** Waits asleep for who has the connection, or the file's lock. */
  const patiently = (writes: ReadonlyArray<Write>) =>
    semaphore.withPermit(
      Effect.suspend(() => {
        rollBack()
        const again = Effect.flatMap(Effect.yieldNow, () => Effect.fromResult(transact(writes)))
        const soon = Effect.retry(again, { times: atOnce, while: isLocked })
        return Effect.retry(soon, { schedule: waiting, while: isLocked })
      })
    )

  const write = (due: ReadonlyArray<Due<Write, Outcome, Fault>>): Effect.Effect<void> =>
    Effect.suspend(() => {
      const writes = due.map(({ item }) => item)
      const first = database.isTransaction ? undefined : transact(writes)
      const done =
        first === undefined || (Result.isFailure(first) && isLocked(first.failure))
          ? patiently(writes)
          : Effect.fromResult(first)
      return Effect.matchEffect(done, {
        onSuccess: (outcomes) =>
          Effect.sync(() => due.forEach(({ resume }, index) => resume(Effect.succeed(outcomes[index] ?? other)))),
        onFailure: (error) => {
          const [one] = due
          // The others have no part in the failure of one.
          if (one === undefined || due.length > 1)
            return Effect.forEach(due, (each) => write([each]), { discard: true })
          return Effect.sync(() => one.resume(Effect.fail(toFault(error))))
        }
      })
    })

  const submit = group({ lanes: 1, most, sourceOf: ({ threadId }) => threadId, write })
  return {
    append: (batch) =>
      submit({ threadId: batch.threadId, entries: batch.entries.length, make: (last) => append(batch, last) }),
    create: (thread) =>
      Effect.map(
        submit({ threadId: thread.threadId, entries: 0, make: () => create(thread) }),
        (outcome) => outcome === 1
      )
  }
}
