/** The tables of an index in Postgres, and the check of its server. */
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Fragment } from "effect/sql/Statement"
import { isPostgres } from "../../../support/store/sql.ts"
import type { Filter } from "../../RagIndex.ts"
import { storable } from "../entries.ts"
import { numberIn, type Reason, rowsOf } from "../rows.ts"

/** The versions of the schema. A version never changes. */
export const versions: ReadonlyArray<ReadonlyArray<string>> = [
  [
    "CREATE EXTENSION IF NOT EXISTS vector",
    `CREATE TABLE rag_spaces (pk BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name TEXT COLLATE "C" NOT NULL UNIQUE,
      model TEXT, dims INT)`,
    // `facets` are the values of the metadata to filter by. `length` counts the words of all chunks.
    `CREATE TABLE rag_documents (pk BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      space BIGINT NOT NULL REFERENCES rag_spaces ON DELETE CASCADE, id TEXT COLLATE "C" NOT NULL, hash TEXT NOT NULL,
      title TEXT, source TEXT COLLATE "C", url TEXT, at FLOAT8, metadata TEXT NOT NULL, facets TEXT[] NOT NULL,
      chunks INT NOT NULL, length BIGINT NOT NULL, UNIQUE (space, id))`,
    "CREATE INDEX rag_documents_source ON rag_documents (space, source) INCLUDE (chunks, length)",
    "CREATE INDEX rag_documents_facets ON rag_documents USING gin (facets)",
    // `words` has the words behind the key of the namespace, with their count as position.
    `CREATE TABLE rag_chunks (pk BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, space BIGINT NOT NULL,
      document BIGINT NOT NULL REFERENCES rag_documents ON DELETE CASCADE, place INT NOT NULL, start INT NOT NULL,
      stop INT NOT NULL, text TEXT NOT NULL, headings TEXT NOT NULL, label TEXT NOT NULL, length INT NOT NULL,
      words TSVECTOR NOT NULL, embedding VECTOR, UNIQUE (document, place))`,
    "CREATE INDEX rag_chunks_space ON rag_chunks (space)",
    "CREATE INDEX rag_chunks_words ON rag_chunks USING gin (words)"
  ]
]

const unavailable = (problem: string): Effect.Effect<never, Reason> => Effect.fail({ _tag: "Unavailable", problem })

/** The oldest versions: of the server, and of pgvector, whose scans go on behind a filter since then. */
const oldest = { server: 14, extension: [0, 8] } as const

/** Refuses a server that is too old, or lacks pgvector. */
export const checkServer = Effect.fnUntraced(function* (sql: SqlClient): Effect.fn.Return<void, Reason> {
  if (!isPostgres(sql)) return yield* unavailable("this index is kept in Postgres only; provide a SqlClient of it")
  const [row = {}] = yield* rowsOf(sql`SELECT current_setting('server_version_num')::int AS server,
    (SELECT default_version FROM pg_available_extensions WHERE name = 'vector') AS available,
    (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS installed`)
  const server = Math.floor(numberIn(row, "server") / 10_000)
  if (!(server >= oldest.server)) {
    return yield* unavailable(
      `the server is Postgres ${server}, and the index needs ${oldest.server} or later; update the server`
    )
  }
  const extension = row["installed"] ?? row["available"]
  if (typeof extension !== "string") {
    return yield* unavailable(
      "the server has no pgvector; install the extension (the package of your system, such as postgresql-18-pgvector, or the image pgvector/pgvector), then try again"
    )
  }
  const [major = 0, minor = 0] = extension.split(".").map(Number)
  const [wantedMajor, wantedMinor] = oldest.extension
  if (major > wantedMajor || (major === wantedMajor && minor >= wantedMinor)) return
  return yield* unavailable(
    `pgvector is ${extension}, and the index needs ${oldest.extension.join(".")} or later; install it, and run ALTER EXTENSION vector UPDATE`
  )
})

/** The elements of a list, as texts. */
export const listOf = (sql: SqlClient, values: ReadonlyArray<string | number>): Fragment =>
  sql`SELECT json_array_elements_text(${JSON.stringify(values)}::text::json)`

/** A value of the metadata, as it is compared. JSON has an escape for each character that Postgres can't store. */
export const facetOf = (key: string, value: unknown): string => JSON.stringify([key, value])

/** The condition of a filter on `rag_documents d`. */
export const filterOf = (sql: SqlClient, space: number, filter: Filter | undefined): Fragment => {
  const { after, before, documents, metadata = {}, sources } = filter ?? {}
  const facets = Object.entries(metadata).map(([key, value]) => facetOf(key, value))
  return sql.and([
    sql`d.space = ${space}`,
    ...(documents === undefined ? [] : [sql`d.id IN (${listOf(sql, documents.map(storable))})`]),
    ...(sources === undefined ? [] : [sql`coalesce(d.source, '') IN (${listOf(sql, sources.map(storable))})`]),
    ...(after === undefined ? [] : [sql`d.at >= ${after}::float8`]),
    ...(before === undefined ? [] : [sql`d.at < ${before}::float8`]),
    ...(facets.length === 0 ? [] : [sql`d.facets @> ARRAY(${listOf(sql, facets)})`])
  ])
}

/** The word of a namespace as a lexeme, which has at most 2,046 bytes. Words contain no quotes. */
export const lexemeOf = (space: number, term: string): string => `${space} ${term.slice(0, 200).toWellFormed()}`

/** The kind of vectors that HNSW takes at these dimensions; `undefined` if they have too many. */
const kindOf = (dimensions: number): "vector" | "halfvec" | undefined =>
  dimensions <= 2_000 ? "vector" : dimensions <= 4_000 ? "halfvec" : undefined

/** The expression that the HNSW index of some dimensions is about; `undefined` if they have too many. */
export const indexedOf = (dimensions: number) => {
  const kind = kindOf(dimensions)
  return kind === undefined ? undefined : { kind, type: `${kind}(${dimensions})` }
}

/** Makes the HNSW index of some dimensions. It stands apart from tables, because vectors of one index have one length. */
export const makeVectorIndex = Effect.fnUntraced(function* (
  sql: SqlClient,
  dimensions: number
): Effect.fn.Return<void, Reason> {
  const indexed = indexedOf(dimensions)
  const name = `rag_chunks_hnsw_${dimensions}`
  if (indexed === undefined) return
  const [row] = yield* rowsOf(sql`SELECT to_regclass(${name}) IS NOT NULL AS known`)
  if (row?.["known"] === true) return
  // Concurrent makers of one index wait for each other.
  yield* rowsOf(sql`SELECT pg_advisory_xact_lock(hashtext('effect-deepagents rag'))`)
  yield* rowsOf(
    sql.unsafe(`CREATE INDEX IF NOT EXISTS ${name} ON rag_chunks
      USING hnsw ((embedding::${indexed.type}) ${indexed.kind}_cosine_ops) WHERE vector_dims(embedding) = ${dimensions}`)
  )
})
