/** The numbers of a thread's entries are between `key * room` and `(key + 1) * room`. */
export const room = 2 ** 24

/**
 * The schema of an SQLite file, version by version: each a list of statements. A version is never changed, only
 * followed by another one.
 */
export const sqliteVersions: ReadonlyArray<ReadonlyArray<string>> = [
  [
    // A thread that was removed while others go on from it has no id any more. `origin` is what it was forked from, and
    // `origin_last` the last of its own entries that was there then.
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

    // An append is one statement this way. Labels hang beside the path and move nothing.
    `CREATE TRIGGER session_entries_move AFTER INSERT ON session_entries WHEN NEW.tag <> 'Label' BEGIN
      UPDATE session_threads SET leaf = NEW.pk, leaf_id = NEW.id, step = NEW.step, updated_at = NEW.at
      WHERE key = NEW.thread;
    END`,

    // The words of messages, each as `words.ts` has it, put in when somebody searches: an append costs no more for it.
    "CREATE VIRTUAL TABLE session_texts USING fts5 (words, content = '', contentless_delete = 1, tokenize = 'ascii')",
    "CREATE TABLE session_texts_upto (pk INTEGER NOT NULL) STRICT",
    "INSERT INTO session_texts_upto VALUES (0)"
  ],
  [
    // The leaf is moved once an append.
    "DROP TRIGGER session_entries_move",
    // A process of the version before counts on the trigger. It is refused this way, rather than lose its appends.
    "ALTER TABLE session_entries RENAME COLUMN tag TO kind"
  ],
  [
    // Entries of a thread are together, in the order in which they came: an append changes one page of them, and no index.
    // The column of their kind has another name, so that processes of the version before are refused.
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

    // The ids of entries up to `named`, put in when somebody looks for one among many. Those behind are looked through.
    `CREATE TABLE session_ids (
      thread INTEGER NOT NULL,
      id TEXT NOT NULL,
      pk INTEGER NOT NULL,
      PRIMARY KEY (thread, id)
    ) STRICT, WITHOUT ROWID`,
    "ALTER TABLE session_threads ADD COLUMN named INTEGER NOT NULL DEFAULT 0",
    // No plain id that the thread sees is behind `top`: one that is, is new (`names.ts`).
    "ALTER TABLE session_threads ADD COLUMN top TEXT NOT NULL DEFAULT ''",
    // When the thread was put into its place in the list: at `updated_at`, or less than a second before.
    "ALTER TABLE session_threads ADD COLUMN listed INTEGER NOT NULL DEFAULT 0",
    // Words of entries up to `texts` are in the full-text index. A thread that may have more is `pending`.
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
    // The open requests of threads, so that a list of what waits reads no thread. `id` is the thread's.
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
    // Threads up to `thread` are in it; no row: all are.
    "CREATE TABLE session_waits_upto (thread INTEGER NOT NULL) STRICT",
    "INSERT INTO session_waits_upto SELECT 0 WHERE EXISTS (SELECT 1 FROM session_threads)",
    // A process of the version before would write nothing there. It is refused this way.
    "ALTER TABLE session_threads RENAME COLUMN leaf TO leaf_pk"
  ]
]
