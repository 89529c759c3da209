/** Rows of an index in a SQL database. */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Row } from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import { JsonObject } from "../../core/Json.ts"
import { defined } from "../../support/json/defined.ts"
import type { RagError } from "../RagError.ts"
import type { Hit } from "../RagIndex.ts"
import { chunkOf } from "./entries.ts"

export type Reason = RagError["reason"]

/** Makes the reason of a failed statement. The cause has what a server said. */
export const toReason = ({ message, reason }: SqlError): Reason => {
  const own = reason.message ?? message
  const { cause } = reason
  const inner = Predicate.hasProperty(cause, "message") && typeof cause.message === "string" ? cause.message : ""
  return { _tag: "Unavailable", problem: own.includes(inner) ? own : `${own}: ${inner}` }
}

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
