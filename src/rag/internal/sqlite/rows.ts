/** The tables of an index in SQLite, and their bytes. */
import type { Row } from "effect/sql/SqlConnection"

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

/** The bytes of a column, in a buffer of their own. */
export const bytesIn = (row: Row, column: string): Uint8Array<ArrayBuffer> | undefined => {
  const value = row[column]
  return value instanceof Uint8Array ? Uint8Array.from(value) : undefined
}

export const floatsOf = (bytes: Uint8Array<ArrayBuffer>): Float32Array =>
  new Float32Array(bytes.buffer, 0, Math.floor(bytes.length / 4))

export const bytesOf = (array: Float32Array | Uint32Array): Uint8Array =>
  new Uint8Array(array.buffer, array.byteOffset, array.byteLength)
