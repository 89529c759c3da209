/**
 * The tables of file checkpoints, version by version. A version is never changed, only followed by another one.
 *
 * - `blobs`: content by its hash
 * - `turns`: the turns of threads; `state` is `open`, `done` or `undone`, `scanned` is 1 once commands ran
 * - `changes`: the changed paths of each turn
 * - `known`: the stats of the last scan
 * - `acts`: restores that did not end, with their aims
 */
export const versions: ReadonlyArray<ReadonlyArray<string>> = [
  [
    "CREATE TABLE checkpoint_blobs (hash TEXT NOT NULL PRIMARY KEY, at INTEGER NOT NULL, data BLOB NOT NULL) STRICT",
    `CREATE TABLE checkpoint_turns (
      number INTEGER PRIMARY KEY AUTOINCREMENT,
      thread TEXT NOT NULL,
      began_at INTEGER NOT NULL,
      title TEXT NOT NULL,
      leaf TEXT,
      leaf_after TEXT,
      state TEXT NOT NULL,
      scanned INTEGER NOT NULL,
      notes TEXT NOT NULL
    ) STRICT`,
    "CREATE INDEX checkpoint_turns_thread ON checkpoint_turns (thread, number)",
    `CREATE TABLE checkpoint_changes (
      turn INTEGER NOT NULL,
      path TEXT NOT NULL,
      body TEXT NOT NULL,
      before_hash TEXT,
      after_hash TEXT,
      PRIMARY KEY (turn, path)
    ) STRICT, WITHOUT ROWID`,
    "CREATE INDEX checkpoint_changes_before ON checkpoint_changes (before_hash) WHERE before_hash IS NOT NULL",
    "CREATE INDEX checkpoint_changes_after ON checkpoint_changes (after_hash) WHERE after_hash IS NOT NULL",
    `CREATE TABLE checkpoint_known (
      root TEXT NOT NULL,
      path TEXT NOT NULL,
      body TEXT NOT NULL,
      hash TEXT,
      PRIMARY KEY (root, path)
    ) STRICT, WITHOUT ROWID`,
    "CREATE INDEX checkpoint_known_hash ON checkpoint_known (hash) WHERE hash IS NOT NULL",
    "CREATE TABLE checkpoint_roots (root TEXT NOT NULL PRIMARY KEY, used_at INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    `CREATE TABLE checkpoint_acts (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      thread TEXT NOT NULL,
      body TEXT NOT NULL
    ) STRICT`
  ]
]
