/** The entries of a thread have numbers between `key * room` and `(key + 1) * room`. */
export const room = 2 ** 24

/**
 * The schema of an SQLite file, version by version: each a list of statements. A version is never changed, only
 * followed by another one.
 */
export const sqliteVersions: ReadonlyArray<ReadonlyArray<string>> = [
  [
    // A removed thread with forks has no id. `origin` is the source of a fork, and `origin_last` the last entry of the
    // source at that time.
    `CREATE TABLE session_threads (
      key INTEGER PRIMARY KEY AUTOINCREMENT,
      id TEXT UNIQUE,
      created_at INTEGER NOT NULL,
      updated_at INTEGER NOT NULL,
      metadata TEXT NOT NULL,
      archived INTEGER NOT NULL,
      leaf INTEGER,
      leaf_id TEXT,
      step INTEGER NOT NULL,
      origin INTEGER,
      origin_last INTEGER,
      origin_thread TEXT,
      origin_entry TEXT
    ) STRICT`,
    "CREATE INDEX session_threads_listed ON session_threads (archived, updated_at DESC, id)",
    "CREATE INDEX session_threads_origin ON session_threads (origin) WHERE origin IS NOT NULL",

    `CREATE TABLE session_metadata (
      thread INTEGER NOT NULL,
      name TEXT NOT NULL,
      value TEXT NOT NULL,
      PRIMARY KEY (thread, name)
    ) STRICT, WITHOUT ROWID`,

    `CREATE TABLE session_entries (
      pk INTEGER PRIMARY KEY,
      thread INTEGER NOT NULL,
      id TEXT NOT NULL,
      parent INTEGER,
      step INTEGER NOT NULL,
      at INTEGER NOT NULL,
      tag TEXT NOT NULL,
      body TEXT NOT NULL
    ) STRICT`,
    "CREATE UNIQUE INDEX session_entries_id ON session_entries (thread, id)",
    "CREATE INDEX session_entries_thread ON session_entries (thread)",
    "CREATE INDEX session_entries_labels ON session_entries (thread) WHERE tag = 'Label'",

    // The trigger makes an append one statement. Labels do not move the leaf.
    `CREATE TRIGGER session_entries_move AFTER INSERT ON session_entries WHEN NEW.tag <> 'Label' BEGIN
      UPDATE session_threads SET leaf = NEW.pk, leaf_id = NEW.id, step = NEW.step, updated_at = NEW.at
      WHERE key = NEW.thread;
    END`,

    // The index of words. A search fills it, so that appends cost no more.
    "CREATE VIRTUAL TABLE session_texts USING fts5 (words, content = '', contentless_delete = 1, tokenize = 'ascii')",
    "CREATE TABLE session_texts_upto (pk INTEGER NOT NULL) STRICT",
    "INSERT INTO session_texts_upto VALUES (0)"
  ],
  [
    // An append moves the leaf once.
    "DROP TRIGGER session_entries_move",
    // The new name fails processes of the version before, which rely on the trigger.
    "ALTER TABLE session_entries RENAME COLUMN tag TO kind"
  ],
  [
    // The entries of a thread are adjacent and in order, so an append changes one page and no index. The new name of the
    // column `type` fails processes of the version before.
    "CREATE TABLE session_moved (pk INTEGER PRIMARY KEY, now INTEGER NOT NULL) STRICT",
    `INSERT INTO session_moved
      SELECT pk, (thread << 24) + row_number() OVER (PARTITION BY thread ORDER BY pk) FROM session_entries`,
    "ALTER TABLE session_entries RENAME TO session_entries_before",
    `CREATE TABLE session_entries (
      pk INTEGER PRIMARY KEY,
      thread INTEGER NOT NULL,
      id TEXT NOT NULL,
      parent INTEGER,
      step INTEGER NOT NULL,
      at INTEGER NOT NULL,
      type TEXT NOT NULL,
      body TEXT NOT NULL,
      CONSTRAINT "a thread has room for 16,777,215 entries: fork it" CHECK (pk >> 24 = thread)
    ) STRICT`,
    `INSERT INTO session_entries
      SELECT m.now, e.thread, e.id, p.now, e.step, e.at, e.kind, e.body
      FROM session_entries_before e CROSS JOIN session_moved m ON m.pk = e.pk LEFT JOIN session_moved p ON p.pk = e.parent
      ORDER BY e.thread, e.pk`,

    // The ids of entries up to `named`. A lookup among many entries fills it, and scans the rest.
    `CREATE TABLE session_ids (
      thread INTEGER NOT NULL,
      id TEXT NOT NULL,
      pk INTEGER NOT NULL,
      PRIMARY KEY (thread, id)
    ) STRICT, WITHOUT ROWID`,
    "ALTER TABLE session_threads ADD COLUMN named INTEGER NOT NULL DEFAULT 0",
    // The greatest plain id that the thread sees (`names.ts`).
    "ALTER TABLE session_threads ADD COLUMN top TEXT NOT NULL DEFAULT ''",
    // The time that the list sorts by: `updated_at`, or less than a second before.
    "ALTER TABLE session_threads ADD COLUMN listed INTEGER NOT NULL DEFAULT 0",
    // The index has the words of entries up to `texts`. A `pending` thread may have more.
    "ALTER TABLE session_threads ADD COLUMN texts INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE session_threads ADD COLUMN pending INTEGER NOT NULL DEFAULT 1",
    `UPDATE session_threads SET
      listed = updated_at,
      leaf = (SELECT now FROM session_moved m WHERE m.pk = leaf),
      origin_last = iif(origin IS NULL, NULL, coalesce((SELECT now FROM session_moved m WHERE m.pk = origin_last), 0)),
      top = (
        WITH RECURSIVE line (thread) AS (
          SELECT session_threads.key
          UNION
          SELECT t.origin FROM line JOIN session_threads t ON t.key = line.thread WHERE t.origin IS NOT NULL
        )
        SELECT coalesce(max((SELECT max(e.id) FROM session_entries_before e WHERE e.thread = line.thread)), '') FROM line
      )`,
    "DROP INDEX session_threads_listed",
    "CREATE INDEX session_threads_listed ON session_threads (archived, listed)",
    "CREATE INDEX session_threads_pending ON session_threads (key) WHERE pending = 1",
    "DROP TABLE session_entries_before",
    "DROP TABLE session_moved",
    "CREATE INDEX session_entries_labels ON session_entries (thread) WHERE type = 'Label'",
    "DROP TABLE session_texts",
    "DROP TABLE session_texts_upto",
    "CREATE VIRTUAL TABLE session_texts USING fts5 (words, content = '', contentless_delete = 1, tokenize = 'ascii')"
  ],
  [
    // The open requests of threads. `id` is the id of the thread.
    `CREATE TABLE session_waits (
      thread INTEGER NOT NULL,
      request TEXT NOT NULL,
      at REAL NOT NULL,
      id TEXT NOT NULL,
      archived INTEGER NOT NULL,
      body TEXT NOT NULL,
      PRIMARY KEY (thread, request)
    ) STRICT, WITHOUT ROWID`,
    "CREATE INDEX session_waits_request ON session_waits (request, id) WHERE archived = 0",
    "CREATE INDEX session_waits_at ON session_waits (at, request, id) WHERE archived = 0",
    // The index has the threads up to `thread`; without a row, all.
    "CREATE TABLE session_waits_upto (thread INTEGER NOT NULL) STRICT",
    "INSERT INTO session_waits_upto SELECT 0 WHERE EXISTS (SELECT 1 FROM session_threads)",
    // The new name fails processes of the version before, which would not fill the index.
    "ALTER TABLE session_threads RENAME COLUMN leaf TO leaf_pk"
  ]
]
