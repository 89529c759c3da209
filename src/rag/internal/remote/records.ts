/** The records that an index keeps on a server: heads of documents, and chunks. */
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { JsonObject } from "../../../core/Json.ts"
import { defined } from "../../../support/json/defined.ts"
import { type Chunk, type Document, idOf } from "../../Chunk.ts"
import type { Filter } from "../../RagIndex.ts"
import { storable } from "../entries.ts"
import type { Reason } from "../rows.ts"

/** The values of a record. */
export interface Payload {
  readonly [key: string]: string | number | boolean
}

/** A record to store. `facets` are values of the metadata to filter by. */
export interface NewRecord {
  readonly id: string
  readonly payload: Payload
  readonly facets: ReadonlyArray<string>
  readonly vector?: Float32Array | undefined
  /** The words, by which it is found. */
  readonly terms?: ReadonlyArray<string> | undefined
}

/** A condition on records. */
export type Condition =
  | { readonly _tag: "Any"; readonly key: string; readonly values: ReadonlyArray<string> }
  | { readonly _tag: "Between"; readonly key: string; readonly from?: number; readonly to?: number }
  | { readonly _tag: "Facet"; readonly facet: string }

export type Conditions = ReadonlyArray<Condition>

/** A record that a search found. */
export interface FoundRecord {
  readonly payload: unknown
  readonly score: number
}

/** Tables of records on a server. A table that does not exist is empty. */
export interface Tables {
  /** Stores records, and makes the table if it does not exist. `dimensions` are those of its vectors. */
  readonly put: (
    table: string,
    records: ReadonlyArray<NewRecord>,
    dimensions: number | undefined
  ) => Effect.Effect<void, Reason>
  readonly get: (table: string, ids: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<unknown>, Reason>
  readonly list: (table: string, where: Conditions) => Effect.Effect<ReadonlyArray<unknown>, Reason>
  readonly remove: (table: string, where: Conditions) => Effect.Effect<void, Reason>
  /** Finds the nearest records, with their cosine. */
  readonly nearest: (
    table: string,
    vector: Float32Array,
    where: Conditions,
    limit: number
  ) => Effect.Effect<ReadonlyArray<FoundRecord>, Reason>
  /** Finds records by their words. */
  readonly words: (
    table: string,
    terms: ReadonlyArray<string>,
    where: Conditions,
    limit: number
  ) => Effect.Effect<ReadonlyArray<FoundRecord>, Reason>
  readonly drop: (table: string) => Effect.Effect<void, Reason>
}

/** The head of a document. Its chunks of this version are there; others are not searched. */
export const Head = Schema.Struct({
  document: Schema.String,
  version: Schema.String,
  hash: Schema.String,
  chunks: Schema.Int,
  source: Schema.String,
  metadata: Schema.fromJsonString(JsonObject),
  title: Schema.optionalKey(Schema.String),
  url: Schema.optionalKey(Schema.String),
  time: Schema.optionalKey(Schema.Finite)
})
export interface Head extends Schema.Schema.Type<typeof Head> {}

/** The key of a chunk's record. */
export const ChunkKey = Schema.Struct({ document: Schema.String, version: Schema.String, place: Schema.Int })
export interface ChunkKey extends Schema.Schema.Type<typeof ChunkKey> {}

export const StoredChunk = Schema.Struct({
  document: Schema.String,
  version: Schema.String,
  place: Schema.Int,
  start: Schema.Int,
  end: Schema.Int,
  text: Schema.String,
  headings: Schema.fromJsonString(Schema.Array(Schema.String)),
  label: Schema.String
})
export interface StoredChunk extends Schema.Schema.Type<typeof StoredChunk> {}

/** The maker of a namespace's vectors. */
export const StoredModel = Schema.Struct({ id: Schema.String, dimensions: Schema.Int })

export const modelKey = "model"
export const headKey = (document: string): string => `head/${document}`
export const chunkKey = ({ document, place, version }: ChunkKey): string => `${version}/${idOf(document, place)}`

/** The microseconds of a time: servers compare whole numbers with each other only. */
const microseconds = (at: number): number => Math.round(Math.min(Math.max(at, -9e12), 9e12) * 1_000)

const facetOf = (key: string, value: unknown): string => JSON.stringify([key, value])

/** The values that filters compare, and whether a record is a head or a chunk. */
const facetsOf = ({ metadata = {} }: Document): ReadonlyArray<string> =>
  Object.entries(metadata)
    .filter(([, value]) => typeof value !== "object")
    .map(([key, value]) => facetOf(key, value))

const sharedOf = (document: Document, version: string, kind: "head" | "chunk") => ({
  kind,
  version,
  document: storable(document.id),
  source: storable(document.source ?? ""),
  ...(document.at === undefined ? {} : { at: microseconds(document.at) })
})

export const headOf = (document: Document, version: string, hash: string, chunks: number): NewRecord => ({
  id: headKey(storable(document.id)),
  facets: facetsOf(document),
  payload: {
    ...sharedOf(document, version, "head"),
    hash,
    chunks,
    metadata: storable(JSON.stringify(document.metadata ?? {})),
    ...defined({
      title: document.title === undefined ? undefined : storable(document.title),
      url: document.url === undefined ? undefined : storable(document.url),
      time: document.at
    })
  }
})

/** The record of a chunk, without its text. */
export const vectorRecordOf = (document: Document, version: string, chunk: Chunk, vector: Float32Array): NewRecord => ({
  id: chunkKey({ document: storable(document.id), version, place: chunk.index }),
  facets: facetsOf(document),
  vector,
  payload: { ...sharedOf(document, version, "chunk"), place: chunk.index }
})

/** The record of a chunk with its text. */
export const textRecordOf = (
  document: Document,
  version: string,
  chunk: Chunk,
  terms: ReadonlyArray<string>
): NewRecord => ({
  id: chunkKey({ document: storable(document.id), version, place: chunk.index }),
  facets: facetsOf(document),
  terms,
  payload: {
    ...sharedOf(document, version, "chunk"),
    place: chunk.index,
    start: chunk.start,
    end: chunk.end,
    text: storable(chunk.text),
    headings: JSON.stringify(chunk.headings.map(storable)),
    label: storable(chunk.label)
  }
})

/** Conditions on heads or chunks. */
export const conditionsOf = (kind: "head" | "chunk", filter: Filter = {}): Conditions => {
  const { after, before, documents, metadata = {}, sources } = filter
  return [
    { _tag: "Any", key: "kind", values: [kind] },
    ...(documents === undefined ? [] : [{ _tag: "Any", key: "document", values: documents.map(storable) } as const]),
    ...(sources === undefined ? [] : [{ _tag: "Any", key: "source", values: sources.map(storable) } as const]),
    ...(after === undefined && before === undefined
      ? []
      : [
          {
            _tag: "Between",
            key: "at",
            ...defined({
              from: after === undefined ? undefined : microseconds(after),
              to: before === undefined ? undefined : microseconds(before)
            })
          } as const
        ]),
    ...Object.entries(metadata).map(([key, value]) => ({ _tag: "Facet", facet: facetOf(key, value) }) as const)
  ]
}

/** Reports whether no record can hold the conditions. */
export const isNever = (where: Conditions): boolean =>
  where.some((one) => one._tag === "Any" && one.values.length === 0)
