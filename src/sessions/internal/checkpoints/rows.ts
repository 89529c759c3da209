/** Reads and writes the rows of file checkpoints in an SQLite database. */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Row } from "effect/sql/SqlConnection"
import { isSqlError } from "effect/sql/SqlError"
import { migrate } from "../../../support/store/sql.ts"
import { corrupt, rows, toFault, transaction } from "../sql/client.ts"
import { nullable, number, text } from "../sql/rows.ts"
import type { Fault } from "../tables.ts"
import type { Blob } from "./disk.ts"
import { Aim, Change, Entry, type State } from "./entry.ts"
import { versions } from "./versions.ts"

/** A turn of a conversation. `leaf` and `leafAfter` are the ends of the thread before and after it. */
export const Turn = Schema.Struct({
  number: Schema.Int,
  threadId: Schema.String,
  at: Schema.Finite,
  title: Schema.String,
  leaf: Schema.NullOr(Schema.String),
  leafAfter: Schema.NullOr(Schema.String),
  state: Schema.Literals(["open", "done", "undone"]),
  isScanned: Schema.Boolean,
  /** Paths and changes that are not covered. */
  notes: Schema.Array(Schema.String)
})
export type Turn = typeof Turn.Type

/** A restore: its aims, and the modes of folders that it opens meanwhile. */
export const Act = Schema.Struct({
  aims: Schema.Array(Aim),
  modes: Schema.Record(Schema.String, Schema.Int),
  turns: Schema.Array(Schema.Int),
  state: Schema.Literals(["done", "undone"]),
  /** The end of the thread when the restore is done. */
  leaf: Schema.NullOr(Schema.String),
  /** The process at work. */
  pid: Schema.Int
})
export type Act = typeof Act.Type

const json = <S extends Schema.ConstraintCodec<unknown, unknown>>(schema: S) => {
  const codec = Schema.fromJsonString(schema)
  return { decode: Schema.decodeUnknownEffect(codec), encode: Schema.encodeSync(codec) }
}

const changes = json(Change)
const encodeEntry = json(Entry).encode
const decodeEntry = Schema.decodeUnknownResult(Schema.fromJsonString(Entry))
const acts = json(Act)
const notes = json(Schema.Array(Schema.String))
const decodeTurn = Schema.decodeUnknownEffect(Turn)

const orCorrupt = <A>(reading: Effect.Effect<A, { readonly message: string }>): Effect.Effect<A, Fault> =>
  Effect.mapError(reading, ({ message }) => corrupt(`a file checkpoint: ${message}`))

const toTurn = (row: Row): Effect.Effect<Turn, Fault> =>
  Effect.flatMap(orCorrupt(notes.decode(row["notes"])), (all) =>
    orCorrupt(
      decodeTurn({
        number: number(row, "number"),
        threadId: text(row, "thread"),
        at: number(row, "began_at"),
        title: text(row, "title"),
        leaf: nullable(row, "leaf"),
        leafAfter: nullable(row, "leaf_after"),
        state: text(row, "state"),
        isScanned: number(row, "scanned") === 1,
        notes: all
      })
    )
  )

const hashIn = (state: State | null): string | null => (state?._tag === "File" ? (state.hash ?? null) : null)

/** The rows of one statement. */
const batch = 500

/** Days that content is kept after its turn. */
const days = 30

const day = 86_400_000

/** Opens the tables. */
// oxlint-disable-next-line eslint/max-lines-per-function -- the statements of one connection
export const openRows = Effect.fnUntraced(function* (sql: SqlClient) {
  yield* Effect.mapError(
    migrate(sql, { table: "checkpoint_migrations", name: "checkpoints", versions }),
    (error): Fault =>
      isSqlError(error) ? toFault(error) : { reason: { _tag: "Unavailable", problem: error.message }, cause: error }
  )
  const [row] = yield* rows(sql`SELECT max(migration_id) AS version FROM checkpoint_migrations`)
  const version = row === undefined ? 0 : number(row, "version")
  if (version > versions.length) {
    return yield* Effect.fail(
      corrupt(`the file checkpoints are of version ${version}, and this program knows ${versions.length}; update it`)
    )
  }
  const inTransaction = transaction(sql)

  const all = <Item>(
    items: ReadonlyArray<Item>,
    write: (part: Arr.NonEmptyReadonlyArray<Item>) => Effect.Effect<unknown, Fault>
  ): Effect.Effect<void, Fault> =>
    items.length === 0
      ? Effect.void
      : Effect.forEach(Arr.chunksOf(items, batch), (part) => Effect.andThen(write(part), Effect.yieldNow), {
          discard: true
        })

  const readTurns = (query: Effect.Effect<ReadonlyArray<Row>, Fault>) =>
    Effect.flatMap(query, (list) => Effect.forEach(list, toTurn))

  return {
    transaction: inTransaction,

    addBlobs: (blobs: ReadonlyArray<Blob>, now: number): Effect.Effect<void, Fault> =>
      inTransaction(
        Effect.forEach(
          blobs,
          ({ data, hash }) =>
            rows(sql`INSERT INTO checkpoint_blobs VALUES (${hash}, ${now}, ${data})
              ON CONFLICT (hash) DO UPDATE SET at = excluded.at`),
          { discard: true }
        )
      ),

    blob: (hash: string): Effect.Effect<Uint8Array | undefined, Fault> =>
      Effect.map(rows(sql`SELECT data FROM checkpoint_blobs WHERE hash = ${hash}`), ([row]) =>
        row?.["data"] instanceof Uint8Array ? row["data"] : undefined
      ),

    /** Finds the hashes with stored content. */
    stored: (hashes: ReadonlyArray<string>): Effect.Effect<ReadonlySet<string>, Fault> =>
      Effect.map(
        Effect.forEach(Arr.chunksOf(hashes, batch), (part) =>
          part.length === 0
            ? Effect.succeed([])
            : rows(sql`SELECT hash FROM checkpoint_blobs WHERE ${sql.in("hash", part)}`)
        ),
        (lists) => new Set(lists.flat().map((row) => text(row, "hash")))
      ),

    addTurn: (turn: Pick<Turn, "at" | "leaf" | "threadId" | "title">): Effect.Effect<Turn, Fault> =>
      Effect.flatMap(
        rows(sql`INSERT INTO checkpoint_turns (thread, began_at, title, leaf, state, scanned, notes)
          VALUES (${turn.threadId}, ${turn.at}, ${turn.title}, ${turn.leaf}, 'open', 0, '[]') RETURNING *`),
        ([row]) => (row === undefined ? Effect.fail(corrupt("a turn was not stored")) : toTurn(row))
      ),

    setTurn: (turn: Turn): Effect.Effect<void, Fault> =>
      Effect.asVoid(
        rows(sql`UPDATE checkpoint_turns SET leaf_after = ${turn.leafAfter}, state = ${turn.state},
          scanned = ${turn.isScanned ? 1 : 0}, notes = ${notes.encode(turn.notes)} WHERE number = ${turn.number}`)
      ),

    setStates: (numbers: ReadonlyArray<number>, state: Turn["state"]): Effect.Effect<void, Fault> =>
      all(numbers, (part) => rows(sql`UPDATE checkpoint_turns SET state = ${state} WHERE ${sql.in("number", part)}`)),

    turns: (threadId: string) =>
      readTurns(rows(sql`SELECT * FROM checkpoint_turns WHERE thread = ${threadId} ORDER BY number`)),

    putChanges: (turn: number, list: ReadonlyArray<Change>): Effect.Effect<void, Fault> =>
      all(list, (part) =>
        rows(
          sql`INSERT OR REPLACE INTO checkpoint_changes ${sql.insert(
            Arr.map(part, (change) => ({
              turn,
              path: change.path,
              body: changes.encode(change),
              before_hash: hashIn(change.before),
              after_hash: hashIn(change.after)
            }))
          )}`
        )
      ),

    dropChanges: (turn: number, paths: ReadonlyArray<string>): Effect.Effect<void, Fault> =>
      all(paths, (part) => rows(sql`DELETE FROM checkpoint_changes WHERE turn = ${turn} AND ${sql.in("path", part)}`)),

    changes: (turn: number): Effect.Effect<ReadonlyArray<Change>, Fault> =>
      Effect.flatMap(rows(sql`SELECT body FROM checkpoint_changes WHERE turn = ${turn} ORDER BY path`), (list) =>
        Effect.forEach(list, (row) => orCorrupt(changes.decode(row["body"])))
      ),

    /** Reads the last scan. A row that can't be read is a path that is not known. */
    known: (root: string): Effect.Effect<Map<string, Entry>, Fault> =>
      Effect.map(rows(sql`SELECT path, body FROM checkpoint_known WHERE root = ${root}`), (list) => {
        const entries = new Map<string, Entry>()
        for (const row of list) {
          const entry = decodeEntry(row["body"])
          if (Result.isSuccess(entry)) entries.set(text(row, "path"), entry.success)
        }
        return entries
      }),

    putKnown: (
      root: string,
      states: ReadonlyArray<readonly [path: string, state: State]>
    ): Effect.Effect<void, Fault> =>
      Effect.andThen(
        all(
          states.flatMap(([path, entry]) => (entry === undefined ? [] : [{ path, entry }])),
          (part) =>
            rows(
              sql`INSERT OR REPLACE INTO checkpoint_known ${sql.insert(
                Arr.map(part, ({ entry, path }) => ({
                  root,
                  path,
                  body: encodeEntry(entry),
                  hash: hashIn(entry)
                }))
              )}`
            )
        ),
        all(
          states.flatMap(([path, entry]) => (entry === undefined ? [path] : [])),
          (part) => rows(sql`DELETE FROM checkpoint_known WHERE root = ${root} AND ${sql.in("path", part)}`)
        )
      ),

    addAct: (threadId: string, act: Act): Effect.Effect<number, Fault> =>
      Effect.map(
        rows(sql`INSERT INTO checkpoint_acts (thread, body) VALUES (${threadId}, ${acts.encode(act)}) RETURNING id`),
        ([row]) => (row === undefined ? 0 : number(row, "id"))
      ),

    endAct: (id: number): Effect.Effect<void, Fault> =>
      Effect.asVoid(rows(sql`DELETE FROM checkpoint_acts WHERE id = ${id}`)),

    openActs: Effect.flatMap(rows(sql`SELECT id, thread, body FROM checkpoint_acts ORDER BY id`), (list) =>
      Effect.forEach(list, (row) =>
        Effect.map(orCorrupt(acts.decode(row["body"])), (act) => ({
          id: number(row, "id"),
          threadId: text(row, "thread"),
          act
        }))
      )
    ),

    /** Copies the turns of a thread to its fork. */
    copy: (from: string, to: string): Effect.Effect<void, Fault> =>
      inTransaction(
        Effect.gen(function* () {
          for (const turn of yield* readTurns(
            rows(sql`SELECT * FROM checkpoint_turns WHERE thread = ${from} ORDER BY number`)
          )) {
            const [row] = yield* rows(sql`INSERT INTO checkpoint_turns
              (thread, began_at, title, leaf, leaf_after, state, scanned, notes)
              SELECT ${to}, began_at, title, leaf, leaf_after, state, scanned, notes FROM checkpoint_turns
              WHERE number = ${turn.number} RETURNING number`)
            if (row === undefined) continue
            yield* rows(sql`INSERT INTO checkpoint_changes
              SELECT ${number(row, "number")}, path, body, before_hash, after_hash FROM checkpoint_changes
              WHERE turn = ${turn.number}`)
          }
        })
      ),

    remove: (threadId: string): Effect.Effect<void, Fault> =>
      inTransaction(
        Effect.gen(function* () {
          yield* rows(sql`DELETE FROM checkpoint_changes WHERE turn IN
            (SELECT number FROM checkpoint_turns WHERE thread = ${threadId})`)
          yield* rows(sql`DELETE FROM checkpoint_turns WHERE thread = ${threadId}`)
          yield* rows(sql`DELETE FROM checkpoint_acts WHERE thread = ${threadId}`)
        })
      ),

    useRoot: (root: string, now: number): Effect.Effect<void, Fault> =>
      Effect.asVoid(rows(sql`INSERT OR REPLACE INTO checkpoint_roots VALUES (${root}, ${now})`)),

    /** Removes old turns, and content that nothing needs, once a day. */
    prune: (now: number): Effect.Effect<void, Fault> =>
      inTransaction(
        Effect.gen(function* () {
          const [last] = yield* rows(sql`SELECT used_at FROM checkpoint_roots WHERE root = ''`)
          if (last !== undefined && now - number(last, "used_at") < day) return
          yield* rows(sql`INSERT OR REPLACE INTO checkpoint_roots VALUES ('', ${now})`)
          const old = now - days * day
          yield* rows(sql`DELETE FROM checkpoint_changes WHERE turn IN
            (SELECT number FROM checkpoint_turns WHERE began_at < ${old})`)
          yield* rows(sql`DELETE FROM checkpoint_turns WHERE began_at < ${old}`)
          yield* rows(sql`DELETE FROM checkpoint_known WHERE root NOT IN
            (SELECT root FROM checkpoint_roots WHERE used_at >= ${old})`)
          // Another process may be about to need new content.
          yield* rows(sql`DELETE FROM checkpoint_blobs WHERE at < ${now - day}
            AND NOT EXISTS (SELECT 1 FROM checkpoint_changes c WHERE c.before_hash = checkpoint_blobs.hash)
            AND NOT EXISTS (SELECT 1 FROM checkpoint_changes c WHERE c.after_hash = checkpoint_blobs.hash)
            AND NOT EXISTS (SELECT 1 FROM checkpoint_known k WHERE k.hash = checkpoint_blobs.hash)`)
        })
      )
  }
})

export type Rows = Effect.Success<ReturnType<typeof openRows>>
