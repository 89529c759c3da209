/** Forces the use of indexes, because the statistics of a table that grows fast are out of date. */
const byIndex = "SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off"

/**
 * Appends in one round trip. Gives no row if the thread has another leaf, and `clash` if a fork shares an entry of that
 * id; an id of the thread itself violates the index. `elsewhere` appends behind `place_id`, or at the beginning.
 */
const appendFunction = (leaf: "leaf" | "leaf_pk", hasWaits: boolean): string => `CREATE FUNCTION session_append
      (thread_id TEXT, expected TEXT, moment BIGINT, added JSONB, elsewhere BOOLEAN, place_id TEXT${hasWaits ? ", waits JSONB" : ""})
    RETURNS TABLE (reached BIGINT, clash TEXT) LANGUAGE plpgsql ${byIndex} AS $$
    DECLARE
      owner session_threads%ROWTYPE;
      item RECORD;
      place BIGINT;
      depth BIGINT := 0;
      name TEXT;
    BEGIN
      SELECT * INTO owner FROM session_threads t WHERE t.id = thread_id FOR UPDATE;
      IF owner.key IS NULL OR owner.archived = 1 OR owner.leaf_id IS DISTINCT FROM expected THEN
        RETURN;
      END IF;
      IF owner.origin IS NOT NULL THEN
        FOR item IN SELECT j->>0 AS id FROM jsonb_array_elements(added) j LOOP
          IF (session_visible(owner.key, item.id)).pk IS NOT NULL THEN
            RETURN QUERY SELECT NULL::BIGINT, item.id;
            RETURN;
          END IF;
        END LOOP;
      END IF;
      IF NOT elsewhere THEN
        place := owner.${leaf};
        depth := owner.step;
      ELSIF place_id IS NOT NULL THEN
        SELECT v.pk, v.step INTO place, depth FROM session_visible(owner.key, place_id) v;
        IF place IS NULL THEN
          RETURN;
        END IF;
      END IF;
      FOR item IN SELECT j->>0 AS id, j->>1 AS tag, j->>2 AS body FROM jsonb_array_elements(added) WITH ORDINALITY x (j, n) ORDER BY n LOOP
        depth := depth + 1;
        INSERT INTO session_entries (thread, id, parent, step, at, tag, body)
        VALUES (owner.key, item.id, place, depth, moment, item.tag, item.body) RETURNING pk INTO place;
        IF item.tag = 'Message' THEN
          INSERT INTO session_pending VALUES (place);
        END IF;
        name := item.id;
      END LOOP;
      UPDATE session_threads t SET ${leaf} = place, leaf_id = name, step = depth, updated_at = moment WHERE t.key = owner.key;
${hasWaits ? "      IF waits IS NOT NULL THEN\n        PERFORM session_wait(owner.key, owner.id, 0, waits);\n      END IF;\n" : ""}      RETURN QUERY SELECT depth, NULL::TEXT;
    END
    $$`

/** Appends to several threads in one transaction, each completely or not at all. All take their locks in one order. */
const appendAllFunction = (hasWaits: boolean): string => `CREATE FUNCTION session_append_all (batches JSONB)
    RETURNS TABLE (n BIGINT, reached BIGINT, clash TEXT) LANGUAGE plpgsql AS $$
    DECLARE
      one RECORD;
    BEGIN
      FOR one IN SELECT b, i FROM jsonb_array_elements(batches) WITH ORDINALITY x (b, i) ORDER BY b->>0 COLLATE "C", i LOOP
        n := one.i;
        reached := NULL;
        clash := NULL;
        BEGIN
          SELECT a.reached, a.clash INTO reached, clash FROM session_append(
            one.b->>0, one.b->>1, (one.b->>2)::BIGINT, one.b->3, (one.b->>4)::BOOLEAN, one.b->>5${
              hasWaits ? ",\n            NULLIF(one.b->6, 'null'::JSONB)" : ""
            }) a;
        EXCEPTION WHEN unique_violation THEN
          reached := NULL;
          clash := NULL;
        END;
        RETURN NEXT;
      END LOOP;
    END
    $$`

/**
 * The schema of a Postgres database, version by version: each a list of statements. A version is never changed, only
 * followed by another one. Ids are compared byte by byte, as everywhere else.
 */
export const postgresVersions: ReadonlyArray<ReadonlyArray<string>> = [
  [
    // A removed thread with forks has no id. `origin` is the source of a fork, and `origin_last` the last entry of the
    // source at that time.
    `CREATE TABLE session_threads (
      key BIGSERIAL PRIMARY KEY,
      id TEXT COLLATE "C" UNIQUE,
      created_at BIGINT NOT NULL,
      updated_at BIGINT NOT NULL,
      metadata TEXT NOT NULL,
      archived INTEGER NOT NULL,
      leaf BIGINT,
      leaf_id TEXT COLLATE "C",
      step BIGINT NOT NULL,
      origin BIGINT,
      origin_last BIGINT,
      origin_thread TEXT,
      origin_entry TEXT
    )`,
    "CREATE INDEX session_threads_listed ON session_threads (archived, updated_at DESC, id)",
    "CREATE INDEX session_threads_origin ON session_threads (origin) WHERE origin IS NOT NULL",

    "CREATE TABLE session_metadata (thread BIGINT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL)",
    "CREATE INDEX session_metadata_thread ON session_metadata (thread)",

    // Bodies are text, because the JSON of Postgres refuses a zero character.
    `CREATE TABLE session_entries (
      pk BIGSERIAL PRIMARY KEY,
      thread BIGINT NOT NULL,
      id TEXT COLLATE "C" NOT NULL,
      parent BIGINT,
      step BIGINT NOT NULL,
      at BIGINT NOT NULL,
      tag TEXT NOT NULL,
      body TEXT NOT NULL
    )`,
    "CREATE UNIQUE INDEX session_entries_id ON session_entries (thread, id)",
    "CREATE INDEX session_entries_thread ON session_entries (thread, pk)",
    "CREATE INDEX session_entries_labels ON session_entries (thread, pk) WHERE tag = 'Label'",

    // The index of words. A search fills it from `session_pending`. A message with too many words for a tsvector has
    // none, and each search reads it.
    "CREATE TABLE session_texts (pk BIGINT PRIMARY KEY, words TSVECTOR)",
    "CREATE INDEX session_texts_words ON session_texts USING gin (words)",
    "CREATE INDEX session_texts_long ON session_texts (pk) WHERE words IS NULL",
    "CREATE TABLE session_pending (pk BIGINT PRIMARY KEY)",

    // The threads whose entries a thread sees, and the last visible entry of each.
    `CREATE FUNCTION session_line (of_thread BIGINT) RETURNS TABLE (thread BIGINT, last BIGINT) LANGUAGE sql STABLE AS $$
      WITH RECURSIVE line (thread, last) AS (
        SELECT of_thread, 9007199254740991
        UNION ALL
        SELECT t.origin, t.origin_last FROM line JOIN session_threads t ON t.key = line.thread WHERE t.origin IS NOT NULL
      )
      SELECT line.thread, line.last FROM line
    $$`,

    // An entry that a thread sees.
    `CREATE FUNCTION session_visible (of_thread BIGINT, entry_id TEXT) RETURNS session_entries LANGUAGE plpgsql STABLE
    ${byIndex} AS $$
    DECLARE
      part RECORD;
      seen session_entries%ROWTYPE;
    BEGIN
      FOR part IN SELECT * FROM session_line(of_thread) LOOP
        -- With a condition on the number, the planner may scan all entries up to it.
        SELECT * INTO seen FROM session_entries e WHERE e.thread = part.thread AND e.id = entry_id;
        IF seen.pk <= part.last THEN
          RETURN seen;
        END IF;
      END LOOP;
      RETURN NULL;
    END
    $$`,

    // The path to an entry that a thread sees, backwards.
    `CREATE FUNCTION session_path (thread_id TEXT, entry_id TEXT, most BIGINT)
    RETURNS TABLE (pk BIGINT, id TEXT, step BIGINT, at BIGINT, body TEXT, parent_id TEXT, distance BIGINT)
    LANGUAGE sql STABLE ${byIndex} AS $$
      WITH RECURSIVE back (pk, parent, distance) AS (
        SELECT v.pk, v.parent, 1::BIGINT
        FROM session_threads t, session_visible(t.key, entry_id) v WHERE t.id = thread_id AND v.pk IS NOT NULL
        UNION ALL
        SELECT e.pk, e.parent, back.distance + 1 FROM back JOIN session_entries e ON e.pk = back.parent
        WHERE back.distance < most
      )
      SELECT e.pk, e.id, e.step, e.at, e.body, p.id, back.distance
      FROM back JOIN session_entries e ON e.pk = back.pk LEFT JOIN session_entries p ON p.pk = e.parent
    $$`,
    appendFunction("leaf", false)
  ],
  [appendAllFunction(false)],
  [
    // The open requests of threads. `id` is the id of the thread.
    `CREATE TABLE session_waits (
      thread BIGINT NOT NULL,
      request TEXT COLLATE "C" NOT NULL,
      at DOUBLE PRECISION NOT NULL,
      id TEXT COLLATE "C" NOT NULL,
      archived INTEGER NOT NULL,
      body TEXT NOT NULL,
      PRIMARY KEY (thread, request)
    )`,
    "CREATE INDEX session_waits_request ON session_waits (request, id) WHERE archived = 0",
    "CREATE INDEX session_waits_at ON session_waits (at, request, id) WHERE archived = 0",
    // The index has the threads up to `thread`; without a row, all.
    "CREATE TABLE session_waits_upto (thread BIGINT NOT NULL)",
    "INSERT INTO session_waits_upto SELECT 0 WHERE EXISTS (SELECT 1 FROM session_threads)",
    // The new name fails processes of the version before, which would not fill the index.
    "ALTER TABLE session_threads RENAME COLUMN leaf TO leaf_pk",

    // Sets the open requests of a thread: a list of id, time and JSON each.
    `CREATE FUNCTION session_wait (of_thread BIGINT, thread_id TEXT, is_archived INTEGER, waits JSONB) RETURNS VOID
    LANGUAGE sql ${byIndex} AS $$
      DELETE FROM session_waits WHERE thread = of_thread;
      INSERT INTO session_waits (thread, request, at, id, archived, body)
      SELECT of_thread, w->>0, (w->>1)::DOUBLE PRECISION, thread_id, is_archived, w->>2 FROM jsonb_array_elements(waits) w;
    $$`,

    "DROP FUNCTION session_append_all (JSONB)",
    "DROP FUNCTION session_append (TEXT, TEXT, BIGINT, JSONB, BOOLEAN, TEXT)",
    appendFunction("leaf_pk", true),
    appendAllFunction(true)
  ]
]
