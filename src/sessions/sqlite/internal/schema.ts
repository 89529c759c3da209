/** What is in the file, version by version. A version is never changed, only followed by another one. */
export const migrations: ReadonlyArray<string> = [
  `
  -- A thread that was removed while others go on from it has no id any more.
  CREATE TABLE threads (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT UNIQUE,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    metadata TEXT NOT NULL,
    archived INTEGER NOT NULL,
    leaf INTEGER,
    leaf_id TEXT,
    step INTEGER NOT NULL,
    -- What it was forked from, and the last of its own entries that was there then.
    origin INTEGER,
    origin_last INTEGER,
    origin_thread TEXT,
    origin_entry TEXT
  ) STRICT;
  CREATE INDEX threads_listed ON threads (archived, updated_at DESC, id);
  CREATE INDEX threads_origin ON threads (origin) WHERE origin IS NOT NULL;

  CREATE TABLE thread_metadata (
    thread INTEGER NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (thread, name)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE entries (
    pk INTEGER PRIMARY KEY,
    thread INTEGER NOT NULL,
    id TEXT NOT NULL,
    parent INTEGER,
    step INTEGER NOT NULL,
    at INTEGER NOT NULL,
    tag TEXT NOT NULL,
    body TEXT NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX entries_id ON entries (thread, id);
  CREATE INDEX entries_thread ON entries (thread);
  CREATE INDEX entries_labels ON entries (thread) WHERE tag = 'Label';

  -- The words of messages, each as \`words.ts\` has it, put in when somebody searches: an append costs no more for it.
  CREATE VIRTUAL TABLE texts USING fts5 (words, content = '', contentless_delete = 1, tokenize = 'ascii');
  CREATE TABLE texts_upto (pk INTEGER NOT NULL) STRICT;
  INSERT INTO texts_upto VALUES (0);
  `
]
