/** The tables of an index in SQLite, and the rows of hits. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Row } from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import { JsonObject } from "../../../core/Json.ts"
import { defined } from "../../../support/json/defined.ts"
import type { RagError } from "../../RagError.ts"
import type { Hit } from "../../RagIndex.ts"
import { chunkOf } from "../entries.ts"

/** The versions of the schema. A version never changes. */
export const versions: ReadonlyArray<ReadonlyArray<string>> = [
  [
    // `gone` is the version of rag_removed: when it grows, its rows begin anew.
    `CREATE TABLE rag_spaces (pk INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, model TEXT, dims INTEGER,
      centre BLOB, gone INTEGER NOT NULL DEFAULT 0)`,
    `CREATE TABLE rag_documents (pk INTEGER PRIMARY KEY AUTOINCREMENT, space INTEGER NOT NULL, id TEXT NOT NULL,
      hash TEXT NOT NULL, title TEXT, source TEXT, url TEXT, at REAL, metadata TEXT NOT NULL, UNIQUE (space, id))`,
    "CREATE INDEX rag_documents_source ON rag_documents (space, source)",
    `CREATE TABLE rag_chunks (pk INTEGER PRIMARY KEY AUTOINCREMENT, document INTEGER NOT NULL, place INTEGER NOT NULL,
      start INTEGER NOT NULL, stop INTEGER NOT NULL, text TEXT NOT NULL, headings TEXT NOT NULL, label TEXT NOT NULL,
      UNIQUE (document, place))`,
    "CREATE TABLE rag_vectors (chunk INTEGER PRIMARY KEY, vector BLOB NOT NULL)",
    `CREATE TABLE rag_signs (space INTEGER NOT NULL, chunk INTEGER NOT NULL, document INTEGER NOT NULL,
      signs BLOB NOT NULL, PRIMARY KEY (space, chunk)) WITHOUT ROWID`,
    // The chunks that went, for processes that hold signatures in memory.
    "CREATE TABLE rag_removed (pk INTEGER PRIMARY KEY AUTOINCREMENT, space INTEGER NOT NULL, chunk INTEGER NOT NULL)",
    "CREATE INDEX rag_removed_space ON rag_removed (space, pk)"
  ]
]

/** The table of the words of a namespace. */
export const textsOf = (space: number): string => `rag_texts_${space}`

export type Reason = RagError["reason"]

export const toReason = (error: SqlError): Reason => ({
  _tag: "Unavailable",
  problem: error.reason.message ?? error.message
})

/** Runs a statement, with the names of columns as they are. */
export const rowsOf = (statement: {
  readonly withoutTransform: Effect.Effect<ReadonlyArray<unknown>, SqlError>
}): Effect.Effect<ReadonlyArray<Row>, Reason> =>
  // Rows of a database are objects by column.
  Effect.mapError(statement.withoutTransform as Effect.Effect<ReadonlyArray<Row>, SqlError>, toReason)

export const numberIn = (row: Row, column: string): number => Number(row[column])

const textIn = (row: Row, column: string): string | undefined => {
  const value = row[column]
  return typeof value === "string" ? value : undefined
}

/** The model of a namespace's vectors; `undefined` before the first. */
export const modelIn = (row: Row) => {
  const id = textIn(row, "model")
  return id === undefined ? undefined : { id, dimensions: numberIn(row, "dims") }
}

/** The bytes of a column, in a buffer of their own. */
export const bytesIn = (row: Row, column: string): Uint8Array<ArrayBuffer> | undefined => {
  const value = row[column]
  return value instanceof Uint8Array ? Uint8Array.from(value) : undefined
}

export const floatsOf = (bytes: Uint8Array<ArrayBuffer>): Float32Array =>
  new Float32Array(bytes.buffer, 0, Math.floor(bytes.length / 4))

export const bytesOf = (array: Float32Array | Uint32Array): Uint8Array =>
  new Uint8Array(array.buffer, array.byteOffset, array.byteLength)

/** The columns of a hit, over `rag_chunks c JOIN rag_documents d`. */
export const hitColumns =
  "c.pk, c.place, c.start, c.stop, c.text, c.headings, c.label, d.id, d.title, d.source, d.url, d.at, d.metadata"

const readHeadings = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Array(Schema.String)))
const readMetadata = Schema.decodeUnknownResult(Schema.fromJsonString(JsonObject))

/** Reads a hit. */
export const toHit = (row: Row, score: number): Effect.Effect<Hit, Reason> => {
  const headings = readHeadings(row["headings"])
  const metadata = readMetadata(row["metadata"])
  if (Result.isFailure(headings) || Result.isFailure(metadata)) {
    return Effect.fail({ _tag: "Corrupt", problem: `the row ${numberIn(row, "pk")} of rag_chunks is damaged` })
  }
  return Effect.succeed({
    chunk: chunkOf({
      document: textIn(row, "id") ?? "",
      index: numberIn(row, "place"),
      start: numberIn(row, "start"),
      end: numberIn(row, "stop"),
      text: textIn(row, "text") ?? "",
      headings: headings.success,
      label: textIn(row, "label") ?? ""
    }),
    score,
    metadata: metadata.success,
    ...defined({
      title: textIn(row, "title"),
      source: textIn(row, "source"),
      url: textIn(row, "url"),
      at: row["at"] === null ? undefined : numberIn(row, "at")
    })
  })
}
