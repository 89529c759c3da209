/**
 * Finds entries of an SQLite file by their ids, without an index that each append would write to. A thread stores its
 * greatest plain id (`top`): any greater id is new. Runs make ascending ids.
 */
import type { NewEntry } from "../../../core/SessionStore.ts"

/** Ids of these characters have the same order in SQLite and JavaScript. */
const plain = /^[!-~]+$/u

/** Reports whether a thread may see an entry with this id. */
export const mayBeTaken = (top: string, id: string): boolean => !(id > top && plain.test(id))

/** The `top` of a thread after an append. */
export const topOf = (top: string, entries: ReadonlyArray<Pick<NewEntry, "id">>): string =>
  entries.reduce((highest, { id }) => (mayBeTaken(highest, id) ? highest : id), top)

/** The most entries to scan for an id. More entries are indexed first. */
const fewEnough = 256

type By = "id" | "key"

/** The threads whose entries a thread (`?1`) sees. `UNION` ends the recursion in a damaged file, too. */
const line = (column: By): string => `WITH RECURSIVE line (thread, last, named) AS (
    SELECT key, 9007199254740991, named FROM session_threads WHERE ${column} = ?1
    UNION
    SELECT o.key, t.origin_last, o.named
    FROM line JOIN session_threads t ON t.key = line.thread JOIN session_threads o ON o.key = t.origin
  )`

// Each end has one bound, because SQLite may choose the worse of two.
const isUnnamed = "e.pk > max(line.named, line.thread << 24) AND e.pk < (line.thread + 1) << 24"
const end = (thread: string): string =>
  `(SELECT max(e.pk) FROM session_entries e WHERE e.pk > ${thread} << 24 AND e.pk < (${thread} + 1) << 24)`

/**
 * Finds the number of an entry (`seen`) by the id or key of the thread (`?1`) and the id of the entry (`?2`). It tries the
 * leaf, then the index, and then scans entries without an index. The `+` keeps SQLite from indexing the whole table.
 */
export const seenBy = (column: By): string => `${line(column)}, seen (pk) AS (
    SELECT leaf_pk FROM session_threads WHERE ${column} = ?1 AND leaf_id = ?2
    UNION ALL
    SELECT i.pk FROM line CROSS JOIN session_ids i WHERE i.thread = line.thread AND i.id = ?2 AND i.pk <= line.last
    UNION ALL
    SELECT e.pk FROM line CROSS JOIN session_entries e WHERE ${isUnnamed} AND e.pk <= line.last AND +e.id = ?2
  )`

/** Gives a row if there are too many entries to scan. */
export const tooMany = (column: By): string => `${line(column)}
  SELECT 1 AS many FROM line WHERE ${end("line.thread")} > max(line.named, line.thread << 24) + ${fewEnough} LIMIT 1`

/** Two statements that index all ids that a thread sees. */
export const nameAll = (column: By): readonly [add: string, note: string] => [
  `INSERT OR IGNORE INTO session_ids ${line(column)}
    SELECT e.thread, e.id, e.pk FROM line CROSS JOIN session_entries e WHERE ${isUnnamed}`,
  `UPDATE session_threads AS t SET named = coalesce(${end("t.key")}, 0)
    WHERE key IN (${line(column)} SELECT thread FROM line)`
]
