/** The statements that every index in a SQL database shares. */
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Row } from "effect/sql/SqlConnection"
import { isSqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import { transaction } from "../../support/store/sql.ts"
import { parseId } from "../Chunk.ts"
import type { Hit, Model, Source } from "../RagIndex.ts"
import { boundNeighbours, findOther, storable } from "./entries.ts"
import { hitColumns, modelIn, numberIn, type Reason, rowsOf, toHit, toReason } from "./rows.ts"

/** Runs a body in a transaction. */
export const makeTransaction =
  (sql: SqlClient) =>
  <A>(body: Effect.Effect<A, Reason>): Effect.Effect<A, Reason> =>
    Effect.mapError(transaction(sql)(body), (error) => (isSqlError(error) ? toReason(error) : error))

/** Finds the key of a namespace; `undefined` before its first document. */
export const findKey = Effect.fnUntraced(function* (
  sql: SqlClient,
  namespace: string,
  model: Model | undefined
): Effect.fn.Return<number | undefined, Reason> {
  const [row] = yield* rowsOf(sql`SELECT pk, model, dims FROM rag_spaces WHERE name = ${namespace}`)
  const other = row === undefined ? undefined : findOther(modelIn(row), model)
  if (other !== undefined) return yield* Effect.fail(other)
  return row === undefined ? undefined : numberIn(row, "pk")
})

/** Reads the hashes of documents. */
export const readHashes = (sql: SqlClient, where: Fragment): Effect.Effect<ReadonlyMap<string, string>, Reason> =>
  Effect.map(
    rowsOf(sql`SELECT d.id, d.hash FROM rag_documents d WHERE ${where}`),
    (rows) => new Map(rows.map((row) => [String(row["id"]), String(row["hash"])]))
  )

/** Reads a chunk with its neighbours; nothing if the chunk does not exist. */
export const readAround = (
  sql: SqlClient,
  where: Fragment,
  chunk: string,
  { above, below }: { readonly above?: number | undefined; readonly below?: number | undefined }
): Effect.Effect<ReadonlyArray<Hit>, Reason> => {
  const place = parseId(chunk)
  if (place === undefined) return Effect.succeed([])
  const { document, index } = place
  return Effect.flatMap(
    rowsOf(sql`SELECT ${sql.literal(hitColumns)} FROM rag_chunks c JOIN rag_documents d ON d.pk = c.document
      WHERE d.id = ${storable(document)} AND ${where}
      AND c.place BETWEEN ${index - boundNeighbours(above)} AND ${index + boundNeighbours(below)}
      ORDER BY c.place`),
    (rows) =>
      rows.some((row) => numberIn(row, "place") === index)
        ? Effect.forEach(rows, (row) => toHit(row, 0))
        : Effect.succeed([])
  )
}

/** Makes the counts of sources. */
export const toSources = (rows: ReadonlyArray<Row>): ReadonlyArray<Source> =>
  rows.map((row) => ({
    source: String(row["source"]),
    documents: numberIn(row, "documents"),
    chunks: numberIn(row, "chunks")
  }))
