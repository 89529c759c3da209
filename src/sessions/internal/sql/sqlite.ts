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
  ]
]
