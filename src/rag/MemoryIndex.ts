/**
 * An index in memory, for tests and small sets of documents: it ends with its layer.
 *
 * It ranks words by the same formula as `SqliteIndex`, and compares all vectors.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Chunker, RagIndex, MemoryIndex } from "effect-deepagents/rag"
 *
 * const program = Effect.gen(function* () {
 *   const space = yield* RagIndex.RagIndex.use((index) => index.space("towns"))
 *   const document = { id: "ulm", text: "Ulm lies on the Danube." }
 *   yield* space.put([{ document, hash: "1", chunks: Chunker.chunk(document) }])
 *   return yield* space.words("Danube", { limit: 5 })
 * }).pipe(Effect.provide(MemoryIndex.layer))
 * ```
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { defined } from "../support/json/defined.ts"
import * as Postings from "../support/text/postings.ts"
import { inContext, parseId } from "./Chunk.ts"
import {
  boundLimit,
  boundNeighbours,
  byScore,
  chunkOf,
  findOther,
  inNamespace,
  readEntries,
  readVector,
  storable,
  type StoredEntry
} from "./internal/entries.ts"
import { makeIndex } from "./internal/makeIndex.ts"
import { wordsIn, wordsOf } from "./internal/queryWords.ts"
import { termOf } from "./internal/stem.ts"
import type { RagError } from "./RagError.ts"
import { type Filter, type Hit, RagIndex, type Model, type Space } from "./RagIndex.ts"

type Reason = RagError["reason"]

/** A chunk with its counted words. */
interface IndexedChunk {
  readonly hit: Hit
  readonly length: number
  readonly counts: ReadonlyMap<string, number>
  readonly vector: Float32Array | undefined
}

/** The documents of a namespace. */
interface Namespace {
  model: Model | undefined
  readonly documents: Map<string, { readonly entry: StoredEntry; readonly chunks: ReadonlyArray<IndexedChunk> }>
  /** The chunks of each word. */
  readonly postings: Postings.Postings<IndexedChunk>
  chunks: number
  length: number
}

const matches = ({ document }: StoredEntry, { after, before, documents, metadata = {}, sources }: Filter): boolean =>
  (documents === undefined || documents.includes(document.id)) &&
  (sources === undefined || sources.includes(document.source ?? "")) &&
  (after === undefined || (document.at !== undefined && document.at >= after)) &&
  (before === undefined || (document.at !== undefined && document.at < before)) &&
  Object.entries(metadata).every(([key, value]) =>
    document.metadata !== undefined && Object.hasOwn(document.metadata, key) ? document.metadata[key] === value : false
  )

const holdChunks = ({ chunks, document, vectors }: StoredEntry): ReadonlyArray<IndexedChunk> =>
  chunks.map((chunk, index) => {
    const terms = wordsIn(inContext(document.title, chunk)).map(termOf)
    const counts = new Map<string, number>()
    for (const term of terms) counts.set(term, (counts.get(term) ?? 0) + 1)
    const { id: _, ...fields } = chunk
    const texts = { text: storable(chunk.text), label: storable(chunk.label), headings: chunk.headings.map(storable) }
    const { at, metadata = {}, source, title, url } = document
    const hit = { chunk: chunkOf({ ...fields, ...texts }), score: 0, metadata, ...defined({ at, source, title, url }) }
    return { hit, length: terms.length, counts, vector: vectors?.[index] }
  })

const removeDocument = (space: Namespace, id: string): boolean => {
  const document = space.documents.get(id)
  if (document === undefined) return false
  space.documents.delete(id)
  for (const chunk of document.chunks) {
    space.chunks--
    space.length -= chunk.length
    space.postings.remove(chunk, chunk.counts.keys())
  }
  return true
}

const addDocument = (space: Namespace, entry: StoredEntry): void => {
  removeDocument(space, entry.document.id)
  const chunks = holdChunks(entry)
  space.documents.set(entry.document.id, { entry, chunks })
  for (const chunk of chunks) {
    space.chunks++
    space.length += chunk.length
    space.postings.add(chunk, chunk.counts.keys())
  }
}

const isIn = (space: Namespace, filter: Filter | undefined) => {
  if (filter === undefined) return () => true
  const allowed = new Set<string>()
  for (const [id, { entry }] of space.documents) if (matches(entry, filter)) allowed.add(id)
  return ({ hit }: IndexedChunk) => allowed.has(hit.chunk.document)
}

/** The chunks between which others get their turn. */
const page = 2_000

const best = (scores: ReadonlyMap<IndexedChunk, number>, limit: number): ReadonlyArray<Hit> =>
  [...scores]
    .map(([{ hit }, score]) => ({ ...hit, score }))
    .sort(byScore)
    .slice(0, limit)

const findWords = Effect.fnUntraced(function* (space: Namespace, text: string, limit: number, filter?: Filter) {
  const isAllowed = isIn(space, filter)
  const average = space.length / Math.max(1, space.chunks)
  const scores = new Map<IndexedChunk, number>()
  for (const term of wordsOf(text).map(termOf)) {
    const holders = space.postings.holders(term)
    if (holders === undefined) continue
    const frequency = holders.size
    // FTS5's formula: k1 1.2, b 0.75.
    const rarity = Math.max(1e-6, Math.log((space.chunks - frequency + 0.5) / (frequency + 0.5)))
    for (const holder of holders) {
      if (!isAllowed(holder)) continue
      const count = holder.counts.get(term) ?? 0
      const part = (count * 2.2) / (count + 1.2 * (0.25 + (0.75 * holder.length) / average))
      scores.set(holder, (scores.get(holder) ?? 0) + rarity * part)
    }
    yield* Effect.yieldNow
  }
  return best(scores, limit)
})

const findNearest = Effect.fnUntraced(function* (
  space: Namespace,
  wanted: Float32Array,
  limit: number,
  filter?: Filter
) {
  const isAllowed = isIn(space, filter)
  const scores = new Map<IndexedChunk, number>()
  let count = 0
  for (const { chunks } of space.documents.values()) {
    for (const chunk of chunks) {
      if (chunk.vector === undefined || !isAllowed(chunk)) continue
      let sum = 0
      for (let index = 0; index < wanted.length; index++) sum += (wanted[index] ?? 0) * (chunk.vector[index] ?? 0)
      scores.set(chunk, sum)
      if (++count % page === 0) yield* Effect.yieldNow
    }
  }
  return best(scores, limit)
})

const spaceOf = <M extends Model | undefined>(namespace: string, model: M, current: () => Namespace): Space<M> => {
  const on = <A>(operation: string, effect: (space: Namespace) => Effect.Effect<A, Reason>) =>
    inNamespace(operation, namespace)(Effect.suspend(() => effect(current())))
  const documentsOf = (space: Namespace, filter: Filter | undefined) =>
    [...space.documents.values()].filter(({ entry }) => filter === undefined || matches(entry, filter))
  return {
    namespace,
    model,
    hashes: (filter) =>
      on("hashes", (space) =>
        Effect.sync(() => new Map(documentsOf(space, filter).map(({ entry }) => [entry.document.id, entry.hash])))
      ),
    put: (entries) =>
      on("put", (space) =>
        Effect.flatMap(readEntries(entries, model), (validEntries) => {
          const hasVectors = validEntries.some(({ vectors = [] }) => vectors.length > 0)
          const other = hasVectors ? findOther(space.model, model) : undefined
          if (other !== undefined) return Effect.fail(other)
          return Effect.sync(() => {
            if (hasVectors) space.model = model
            for (const entry of validEntries) addDocument(space, entry)
          })
        })
      ),
    remove: (documents) =>
      on("remove", (space) =>
        Effect.sync(() => [...new Set(documents)].filter((id) => removeDocument(space, id)).length)
      ),
    words: (text, { filter, limit }) => on("words", (space) => findWords(space, text, boundLimit(limit), filter)),
    nearest: (vector, { filter, limit }) =>
      on("nearest", (space) =>
        Effect.flatMap(readVector(vector, model), (wanted) => {
          // Another one may have stored the first vectors since this space was opened.
          const other = findOther(space.model, model)
          return other === undefined ? findNearest(space, wanted, boundLimit(limit), filter) : Effect.fail(other)
        })
      ),
    around: (chunk, { above, below, filter } = {}) =>
      on("around", (space) =>
        Effect.sync(() => {
          const place = parseId(chunk)
          const document = place === undefined ? undefined : space.documents.get(place.document)
          if (place === undefined || document === undefined || document.chunks[place.index] === undefined) return []
          if (filter !== undefined && !matches(document.entry, filter)) return []
          const from = Math.max(0, place.index - boundNeighbours(above))
          return document.chunks.slice(from, place.index + boundNeighbours(below) + 1).map(({ hit }) => hit)
        })
      ),
    sources: (filter) =>
      on("sources", (space) =>
        Effect.sync(() => {
          const counts = new Map<string, { source: string; documents: number; chunks: number }>()
          for (const { chunks, entry } of documentsOf(space, filter)) {
            const source = entry.document.source ?? ""
            const one = counts.get(source) ?? { source, documents: 0, chunks: 0 }
            counts.set(source, { source, documents: one.documents + 1, chunks: one.chunks + chunks.length })
          }
          return [...counts.values()].sort((left, right) => (left.source < right.source ? -1 : 1))
        })
      )
  }
}

/** Keeps the index in memory. Each build of the layer has its own. */
export const layer: Layer.Layer<RagIndex> = Layer.effect(
  RagIndex,
  Effect.sync(() => {
    const namespaces = new Map<string, Namespace>()
    const get = (name: string): Namespace => {
      const namespace = namespaces.get(name) ?? {
        model: undefined,
        documents: new Map(),
        postings: Postings.make(),
        chunks: 0,
        length: 0
      }
      namespaces.set(name, namespace)
      return namespace
    }
    return makeIndex({
      space: <M extends Model | undefined>(namespace: string, model: M) =>
        Effect.suspend((): Effect.Effect<Space<M>, Reason> => {
          const other = findOther(get(namespace).model, model)
          return other === undefined
            ? Effect.succeed(spaceOf(namespace, model, () => get(namespace)))
            : Effect.fail(other)
        }),
      drop: (namespace) => Effect.sync(() => void namespaces.delete(namespace))
    })
  })
)
