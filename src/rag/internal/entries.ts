/** Checks what an index stores, in the same way for every layer. */
import * as Effect from "effect/Effect"
import { unit } from "../../support/store/vectors.ts"
import { nameProblem } from "../../support/text/names.ts"
import { type Chunk, idOf } from "../Chunk.ts"
import { mostChunks } from "../Chunker.ts"
import { RagError } from "../RagError.ts"
import type { Entry, Filter, Hit, Model } from "../RagIndex.ts"

type Reason = RagError["reason"]

/** An entry as it is stored: with storable texts, and vectors of length 1. */
export interface StoredEntry extends Omit<Entry, "vectors"> {
  readonly vectors: ReadonlyArray<Float32Array> | undefined
}

/** A text that every database stores and gives back with the same length: valid Unicode without NUL. */
export const storable = (text: string): string => text.toWellFormed().replaceAll("\0", "\uFFFD")

const invalid = (problem: string): Reason => ({ _tag: "InvalidValue", problem })

/** The name of a model in errors. */
const nameOf = (model: Pick<Model, "id" | "dimensions">): string => `${model.id} (${model.dimensions} dimensions)`

/** Compares the stored model of a namespace with another; `undefined` if they are the same, or if one is missing. */
export const findOther = (
  storedModel: Pick<Model, "id" | "dimensions"> | undefined,
  wantedModel: Model | undefined
): Reason | undefined =>
  storedModel === undefined ||
  wantedModel === undefined ||
  (storedModel.id === wantedModel.id && storedModel.dimensions === wantedModel.dimensions)
    ? undefined
    : { _tag: "OtherModel", stored: nameOf(storedModel), wanted: nameOf(wantedModel) }

const readVectors = (
  vectors: ReadonlyArray<ReadonlyArray<number>>,
  model: Model | undefined
): Effect.Effect<ReadonlyArray<Float32Array>, Reason> => {
  if (model === undefined) return Effect.fail(invalid("vectors need a model: open the namespace with one"))
  return Effect.forEach(vectors, (vector) => readVector(vector, model))
}

/** Reads a vector of a model, at length 1. */
export const readVector = (
  vector: ReadonlyArray<number>,
  model: Model | undefined
): Effect.Effect<Float32Array, Reason> => {
  if (model === undefined) return Effect.fail(invalid("a search by vectors needs a model: open the namespace with one"))
  if (vector.length !== model.dimensions) {
    return Effect.fail({
      _tag: "OtherModel",
      stored: nameOf(model),
      wanted: nameOf({ id: model.id, dimensions: vector.length })
    })
  }
  const unitVector = unit(vector)
  return unitVector === undefined
    ? Effect.fail(invalid("a vector has no direction: all of it is 0, or a part is no number"))
    : Effect.succeed(unitVector)
}

/** Says why a document can't be stored; `undefined` if it can. */
export const findDocumentProblem = ({ chunks, document, vectors }: Entry): string | undefined => {
  const name = nameProblem(document.id, 1024)
  if (name !== undefined) return `the id of a document is no name: ${name}`
  if (chunks.length > mostChunks) return `${document.id} has more than ${mostChunks} chunks; split it`
  if (vectors !== undefined && vectors.length !== chunks.length) {
    return `${document.id} has ${chunks.length} chunks and ${vectors.length} vectors`
  }
  if (chunks.some((chunk, index) => chunk.index !== index || chunk.document !== document.id)) {
    return `${document.id} has chunks of another document, or in another order`
  }
  return document.at === undefined || Number.isFinite(document.at)
    ? undefined
    : `the time of ${document.id} is no number`
}

/** Reads entries. The last one of several with the same id counts. */
export const readEntries = Effect.fnUntraced(function* (
  entries: ReadonlyArray<Entry>,
  model: Model | undefined
): Effect.fn.Return<ReadonlyArray<StoredEntry>, Reason> {
  const last = new Map(entries.map((entry) => [entry.document.id, entry]))
  const problem = [...last.values()].map(findDocumentProblem).find((one) => one !== undefined)
  if (problem !== undefined) return yield* Effect.fail(invalid(problem))
  return yield* Effect.forEach(last.values(), (entry) =>
    Effect.map(
      entry.vectors === undefined ? Effect.undefined : readVectors(entry.vectors, model),
      (vectors): StoredEntry => ({ ...entry, vectors })
    )
  )
})

/** Bounds the number of hits. */
export const boundLimit = (limit: number): number =>
  Number.isNaN(limit) ? 1 : Math.min(Math.max(1, Math.trunc(limit)), 1000)

/** Bounds the number of neighbours of a chunk. */
export const boundNeighbours = (count: number | undefined): number =>
  count === undefined || Number.isNaN(count) ? 0 : Math.min(Math.max(0, Math.trunc(count)), 100)

/** The conditions of a filter that are set; `undefined` without any. */
export const conditionsOf = (filter: Filter | undefined): Filter | undefined =>
  filter !== undefined && Object.values(filter).some((one) => one !== undefined) ? filter : undefined

/** Orders hits by score, then by chunk. */
export const byScore = (left: Hit, right: Hit): number =>
  right.score - left.score ||
  (left.chunk.document === right.chunk.document
    ? left.chunk.index - right.chunk.index
    : left.chunk.document < right.chunk.document
      ? -1
      : 1)

/** Makes a chunk of its stored fields. */
export const chunkOf = (fields: Omit<Chunk, "id">): Chunk => ({ id: idOf(fields.document, fields.index), ...fields })

/** Puts the operation and the namespace into failures, and checks the name of the namespace. */
export const inNamespace =
  (operation: string, namespace: string) =>
  <A>(effect: Effect.Effect<A, Reason | RagError>): Effect.Effect<A, RagError> => {
    const problem = nameProblem(namespace, 256)
    const checked: Effect.Effect<A, Reason | RagError> =
      problem === undefined ? effect : Effect.fail({ _tag: "InvalidName", problem })
    return Effect.mapError(checked, (error) =>
      error instanceof RagError ? error : new RagError({ operation, namespace, reason: error })
    )
  }
