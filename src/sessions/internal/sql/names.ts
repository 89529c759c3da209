/**
 * Finds entries of an SQLite file by their ids. No append writes to an index of them: a thread has the greatest of its
 * plain ids (`top`), and a greater one is new. Ids as runs make them get greater and greater.
 */
import type { NewEntry } from "../../../core/SessionStore.ts"

/** Ids of such characters have one order everywhere; all others are looked for. */
const plain = /^[!-~]+$/u

/** Says whether an id may be one that the thread sees already. */
export const mayBeTaken = (top: string, id: string): boolean => !(id > top && plain.test(id))

/** The `top` of a thread that gets entries. */
export const topOf = (top: string, entries: ReadonlyArray<Pick<NewEntry, "id">>): string =>
  entries.reduce((highest, { id }) => (mayBeTaken(highest, id) ? highest : id), top)

/** So many entries are looked through for an id; more get into the index of ids first. */
const fewEnough = 256

type By = "id" | "key"

/** The threads that a thread (`?1`) sees entries of, and the last one of each. It ends in a damaged file, too (`UNION`). */
const line = (column: By): string => `WITH RECURSIVE line (thread, last, named) AS (
    SELECT key, 9007199254740991, named FROM session_threads WHERE ${column} = ?1
    UNION
    SELECT o.key, t.origin_last, o.named
    FROM line JOIN session_threads t ON t.key = line.thread JOIN session_threads o ON o.key = t.origin
  )`

// One bound at each end: of two, SQLite may take the one that is further away.
const isUnnamed = "e.pk > max(line.named, line.thread << 24) AND e.pk < (line.thread + 1) << 24"
const end = (thread: string): string =>
  `(SELECT max(e.pk) FROM session_entries e WHERE e.pk > ${thread} << 24 AND e.pk < (${thread} + 1) << 24)`

/**
 * The number of an entry (`seen`) that a thread sees: `?1` is the thread's id, or its key, and `?2` the entry's. Mostly
 * the leaf is asked for. Entries that the index does not have yet are looked through, those of the thread and no others:
 * without the `+`, SQLite makes an index of the whole table for that.
 */
export const seenBy = (column: By): string => `${line(column)}, seen (pk) AS (
    SELECT leaf_pk FROM session_threads WHERE ${column} = ?1 AND leaf_id = ?2
    UNION ALL
    SELECT i.pk FROM line CROSS JOIN session_ids i WHERE i.thread = line.thread AND i.id = ?2 AND i.pk <= line.last
    UNION ALL
    SELECT e.pk FROM line CROSS JOIN session_entries e WHERE ${isUnnamed} AND e.pk <= line.last AND +e.id = ?2
  )`

/** A row, if there are too many entries to look through. */
export const tooMany = (column: By): string => `${line(column)}
  SELECT 1 AS many FROM line WHERE ${end("line.thread")} > max(line.named, line.thread << 24) + ${fewEnough} LIMIT 1`

/** Two statements that put all ids which a thread sees into the index. */
export const nameAll = (column: By): readonly [add: string, note: string] => [
  `INSERT OR IGNORE INTO session_ids ${line(column)}
    SELECT e.thread, e.id, e.pk FROM line CROSS JOIN session_entries e WHERE ${isUnnamed}`,
  `UPDATE session_threads AS t SET named = coalesce(${end("t.key")}, 0)
    WHERE key IN (${line(column)} SELECT thread FROM line)`
]
