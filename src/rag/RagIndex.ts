/**
 * Where chunks are kept and searched: by words, by vectors, in separate namespaces.
 *
 * The program chooses a namespace with `space`, such as one for each tenant. All else is done with the space, so no
 * query, filter or tool call can name another one. Layers: `SqliteIndex`, `MemoryIndex`, `PostgresIndex`.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { RagIndex, MemoryIndex } from "effect-deepagents/rag"
 *
 * const program = Effect.gen(function* () {
 *   const space = yield* RagIndex.RagIndex.use((index) => index.space("tenant/acme"))
 *   return yield* space.words("days of leave", { limit: 5 })
 * }).pipe(Effect.provide(MemoryIndex.layer))
 * ```
 */
import type { EmbeddingModel } from "effect/ai/EmbeddingModel"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { JsonObject } from "../core/Json.ts"
import type { Chunk, Document } from "./Chunk.ts"
import type { RagError } from "./RagError.ts"

/**
 * The maker of vectors. A namespace keeps the vectors of one model: another id or length is refused with `OtherModel`.
 * Many models want a prefix before queries and another before passages, such as `query: ` and `passage: ` for E5.
 */
export interface Model {
  /** The id of the model. */
  readonly id: string
  /** The length of its vectors. */
  readonly dimensions: number
  /** The prefix of queries. Default: none. */
  readonly query?: string | undefined
  /** The prefix of passages. Default: none. */
  readonly passage?: string | undefined
}

/** Narrows a search before anything is ranked. All conditions must hold. */
export interface Filter {
  /** Ids of documents. */
  readonly documents?: ReadonlyArray<string> | undefined
  /** Sources of documents. */
  readonly sources?: ReadonlyArray<string> | undefined
  /** Values that the metadata must have. */
  readonly metadata?: { readonly [key: string]: string | number | boolean } | undefined
  /** The earliest time of a document, in milliseconds since the epoch. */
  readonly after?: number | undefined
  /** The time that a document must be older than, in milliseconds since the epoch. */
  readonly before?: number | undefined
}

/** A chunk that was found. Scores of one search compare with each other only. */
export interface Hit {
  readonly chunk: Chunk
  readonly score: number
  readonly title?: string
  readonly source?: string
  readonly url?: string
  readonly at?: number
  readonly metadata: JsonObject
}

/** A document to store. `hash` tells whether it changed, and `vectors` has one for each chunk, or is missing. */
export interface Entry {
  readonly document: Document
  readonly hash: string
  readonly chunks: ReadonlyArray<Chunk>
  readonly vectors?: ReadonlyArray<ReadonlyArray<number>> | undefined
}

/** How many hits a search gives, and of which documents. */
export interface Search {
  /** The most hits, from 1 to 1,000. */
  readonly limit: number
  /** The documents to search. Default: all. */
  readonly filter?: Filter | undefined
}

/** The documents of one source. Documents without a source have an empty one. */
export interface Source {
  readonly source: string
  readonly documents: number
  readonly chunks: number
}

/** The service that work with a space needs: an embedding model, if the space has vectors. */
export type Embeds<M> = M extends Model ? EmbeddingModel : never

/** One namespace. Nothing of another one can be read or written with it. */
export interface Space<out M extends Model | undefined = Model | undefined> {
  readonly namespace: string
  /** The maker of its vectors; a space without one is searched by words only. */
  readonly model: M
  /** The hashes of stored documents by their ids. */
  readonly hashes: (filter?: Filter) => Effect.Effect<ReadonlyMap<string, string>, RagError>
  /** Stores documents, and replaces earlier ones of their ids: all of them or none. */
  readonly put: (entries: ReadonlyArray<Entry>) => Effect.Effect<void, RagError>
  /** Removes documents, and gives the number that existed. */
  readonly remove: (documents: ReadonlyArray<string>) => Effect.Effect<number, RagError>
  /** Finds chunks with words of a text, ranked by BM25 over this namespace. */
  readonly words: (text: string, search: Search) => Effect.Effect<ReadonlyArray<Hit>, RagError>
  /** Finds the chunks whose vectors are nearest; the score is the cosine. */
  readonly nearest: (vector: ReadonlyArray<number>, search: Search) => Effect.Effect<ReadonlyArray<Hit>, RagError>
  /** Gives a chunk with its neighbours in the document, in their order; none if it does not exist. */
  readonly around: (
    chunk: string,
    options?: {
      /** Chunks before it. Default: 0. */
      readonly above?: number | undefined
      /** Chunks behind it. Default: 0. */
      readonly below?: number | undefined
      /** The documents to look in. Default: all. */
      readonly filter?: Filter | undefined
    }
  ) => Effect.Effect<ReadonlyArray<Hit>, RagError>
  /** Counts documents and chunks by source. */
  readonly sources: (filter?: Filter) => Effect.Effect<ReadonlyArray<Source>, RagError>
}

interface Service {
  /**
   * Opens a namespace: a text of 1 to 256 characters without control characters. Namespaces don't nest. A `model` other
   * than that of the stored vectors fails with `OtherModel`.
   */
  readonly space: <const M extends Model | undefined = undefined>(
    namespace: string,
    model?: M
  ) => Effect.Effect<Space<M>, RagError>
  /** Removes a namespace with all of its documents. */
  readonly drop: (namespace: string) => Effect.Effect<void, RagError>
}

/** The index of documents. */
export class RagIndex extends Context.Service<RagIndex, Service>()("effect-deepagents/RagIndex") {}
