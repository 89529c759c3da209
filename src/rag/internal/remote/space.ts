/**
 * An index on a server without transactions. A new version of a document is written beside the old one, and the head of
 * the document changes from one to the other in one request: a search sees a document wholly or not at all.
 */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { makeId } from "../../../core/Message.ts"
import { defined } from "../../../support/json/defined.ts"
import { sha256Sync } from "../../../support/store/sha256.ts"
import { inContext, parseId } from "../../Chunk.ts"
import type { Hit, Model, RagIndex, Source, Space } from "../../RagIndex.ts"
import {
  boundLimit,
  boundNeighbours,
  byScore,
  chunkOf,
  findOther,
  inNamespace,
  readEntries,
  readVector,
  storable
} from "../entries.ts"
import { makeIndex } from "../makeIndex.ts"
import { wordsIn, wordsOf } from "../queryWords.ts"
import type { Reason } from "../rows.ts"
import { termOf } from "../stem.ts"
import {
  chunkKey,
  ChunkKey,
  conditionsOf,
  type FoundRecord,
  Head,
  headKey,
  headOf,
  isNever,
  modelKey,
  StoredChunk,
  StoredModel,
  type Tables,
  textRecordOf,
  vectorRecordOf
} from "./records.ts"

/** The records of one request. */
const batch = 500

/** The most records that a search asks a server for. */
const most = 10_000

const makeReader = <A>(schema: Schema.Codec<A, unknown, never, never>) => {
  const decode = Schema.decodeUnknownOption(schema)
  return (values: ReadonlyArray<unknown>): ReadonlyArray<A> => values.flatMap((value) => Option.toArray(decode(value)))
}

const readHeads = makeReader(Head)
const readKeys = makeReader(ChunkKey)
const readChunks = makeReader(StoredChunk)
const readModels = makeReader(StoredModel)

const toHit = (
  head: Head,
  { document, end, headings, label, place, start, text }: StoredChunk,
  score: number
): Hit => ({
  chunk: chunkOf({ document, index: place, start, end, text, headings, label }),
  score,
  metadata: head.metadata,
  ...defined({
    title: head.title,
    source: head.source === "" ? undefined : head.source,
    url: head.url,
    at: head.time
  })
})

/** The tables of a namespace. Names of tables have few characters. */
const tablesOf = (namespace: string) => {
  const name = sha256Sync(namespace).slice(0, 40)
  return { texts: `rag_${name}_texts`, vectors: `rag_${name}_vectors` }
}

/** The parts of the operations of a space. */
const makeParts = (tables: Tables, namespace: string, model: Model | undefined) => {
  const { texts, vectors } = tablesOf(namespace)

  const headsOf = (documents: Iterable<string>) =>
    Effect.map(
      Effect.forEach(Arr.chunksOf([...new Set(documents)].map(headKey), batch), (ids) => tables.get(texts, ids)),
      (records) => new Map(readHeads(records.flat()).map((head) => [head.document, head]))
    )

  const checkModel = Effect.gen(function* () {
    const [storedModel] = readModels(yield* tables.get(texts, [modelKey]))
    const other = findOther(storedModel, model)
    if (other !== undefined) return yield* Effect.fail(other)
    return storedModel
  })

  const removeVersions = (heads: ReadonlyArray<Head>) =>
    Effect.forEach(
      Arr.chunksOf(heads, batch),
      (some) => {
        const where = [
          ...conditionsOf("chunk", { documents: some.map(({ document }) => document) }),
          { _tag: "Any", key: "version", values: [...new Set(some.map(({ version }) => version))] } as const
        ]
        return Effect.all([tables.remove(texts, where), tables.remove(vectors, where)], { concurrency: 2 })
      },
      { discard: true }
    )

  /** Keeps what is of the present versions of documents; asks for more if too much is not. */
  const searchLive = Effect.fnUntraced(function* (
    limit: number,
    find: (limit: number) => Effect.Effect<ReadonlyArray<FoundRecord>, Reason>
  ): Effect.fn.Return<
    ReadonlyArray<{ readonly head: Head; readonly match: FoundRecord; readonly key: ChunkKey }>,
    Reason
  > {
    for (let size = limit * 2; ; size *= 4) {
      const all = yield* find(Math.min(size, most))
      const keyed = all.flatMap((match) => readKeys([match.payload]).map((key) => ({ match, key })))
      const heads = yield* headsOf(keyed.map(({ key }) => key.document))
      const live = keyed.flatMap(({ key, match }) => {
        const head = heads.get(key.document)
        return head?.version === key.version ? [{ head, match, key }] : []
      })
      if (live.length >= limit || all.length < size || size >= most) return live
    }
  })

  const listHeads = (filter: Parameters<Space["hashes"]>[0]) => {
    const where = conditionsOf("head", filter)
    return isNever(where) ? Effect.succeed([]) : Effect.map(tables.list(texts, where), readHeads)
  }

  const readTexts = (keys: ReadonlyArray<ChunkKey>) =>
    Effect.map(
      Effect.forEach(Arr.chunksOf(keys.map(chunkKey), batch), (ids) => tables.get(texts, ids)),
      (records) => new Map(readChunks(records.flat()).map((chunk) => [chunkKey(chunk), chunk]))
    )

  return { texts, vectors, headsOf, checkModel, removeVersions, searchLive, listHeads, readTexts }
}

const makeSpace = <M extends Model | undefined>(tables: Tables, namespace: string, model: M): Space<M> => {
  const { checkModel, headsOf, listHeads, readTexts, removeVersions, searchLive, texts, vectors } = makeParts(
    tables,
    namespace,
    model
  )
  const run = <A>(operation: string, effect: Effect.Effect<A, Reason>) => inNamespace(operation, namespace)(effect)

  const storeEntries: Space["put"] = (entries) =>
    run(
      "put",
      Effect.gen(function* () {
        const validEntries = yield* readEntries(entries, model)
        if (validEntries.length === 0) return
        const hasVectors = validEntries.some((entry) => (entry.vectors ?? []).length > 0)
        if (hasVectors && model !== undefined && (yield* checkModel) === undefined) {
          const { dimensions, id } = model
          yield* tables.put(
            texts,
            [{ id: modelKey, facets: [], payload: { kind: "model", id, dimensions } }],
            undefined
          )
        }
        const version = yield* Effect.sync(makeId)
        const old = yield* headsOf(validEntries.map(({ document }) => storable(document.id)))
        const vectorRecords = validEntries.flatMap(({ chunks, document, vectors: own = [] }) =>
          chunks.flatMap((chunk, at) => {
            const vector = own[at]
            return vector === undefined ? [] : [vectorRecordOf(document, version, chunk, vector)]
          })
        )
        const textRecords = validEntries.flatMap(({ chunks, document }) =>
          chunks.map((chunk) =>
            textRecordOf(document, version, chunk, wordsIn(inContext(document.title, chunk)).map(termOf))
          )
        )
        for (const part of Arr.chunksOf(vectorRecords, batch)) yield* tables.put(vectors, part, model?.dimensions)
        for (const part of Arr.chunksOf(textRecords, batch)) yield* tables.put(texts, part, undefined)
        // From here on, searches find the new version.
        yield* tables.put(
          texts,
          validEntries.map(({ chunks, document, hash }) => headOf(document, version, hash, chunks.length)),
          undefined
        )
        yield* removeVersions([...old.values()])
      })
    )

  const removeDocuments: Space["remove"] = (documents) =>
    run(
      "remove",
      Effect.gen(function* () {
        const heads = [...(yield* headsOf(documents.map(storable))).values()]
        for (const some of Arr.chunksOf(heads, batch)) {
          yield* tables.remove(texts, conditionsOf("head", { documents: some.map(({ document }) => document) }))
        }
        yield* removeVersions(heads)
        return heads.length
      })
    )

  return {
    namespace,
    model,
    put: storeEntries,
    remove: removeDocuments,
    hashes: (filter) =>
      run(
        "hashes",
        Effect.map(listHeads(filter), (heads) => new Map(heads.map(({ document, hash }) => [document, hash])))
      ),
    words: (text, { filter, limit }) =>
      run(
        "words",
        Effect.gen(function* (): Effect.fn.Return<ReadonlyArray<Hit>, Reason> {
          const terms = [...new Set(wordsOf(text).map(termOf))]
          const where = conditionsOf("chunk", filter)
          if (terms.length === 0 || isNever(where)) return []
          const live = yield* searchLive(boundLimit(limit), (size) => tables.words(texts, terms, where, size))
          const hits = live.flatMap(({ head, match }) =>
            readChunks([match.payload]).map((chunk) => toHit(head, chunk, match.score))
          )
          return hits.sort(byScore).slice(0, boundLimit(limit))
        })
      ),
    nearest: (vector, { filter, limit }) =>
      run(
        "nearest",
        Effect.gen(function* (): Effect.fn.Return<ReadonlyArray<Hit>, Reason> {
          const wanted = yield* readVector(vector, model)
          const where = conditionsOf("chunk", filter)
          if ((yield* checkModel) === undefined || isNever(where)) return []
          const live = yield* searchLive(boundLimit(limit), (size) => tables.nearest(vectors, wanted, where, size))
          const some = live.slice(0, boundLimit(limit))
          const chunks = yield* readTexts(some.map(({ key }) => key))
          const hits = some.flatMap(({ head, key, match }) => {
            const chunk = chunks.get(chunkKey(key))
            return chunk === undefined ? [] : [toHit(head, chunk, match.score)]
          })
          return hits.sort(byScore)
        })
      ),
    around: (chunk, { above, below, filter } = {}) =>
      run(
        "around",
        Effect.gen(function* (): Effect.fn.Return<ReadonlyArray<Hit>, Reason> {
          const place = parseId(chunk)
          if (place === undefined) return []
          const document = storable(place.document)
          const isOther = filter?.documents !== undefined && !filter.documents.map(storable).includes(document)
          const [head] = isOther ? [] : yield* listHeads({ ...filter, documents: [document] })
          if (head === undefined || place.index >= head.chunks) return []
          const from = Math.max(0, place.index - boundNeighbours(above))
          const to = Math.min(head.chunks - 1, place.index + boundNeighbours(below))
          const keys = Arr.range(from, to).map((at) => ({ document, version: head.version, place: at }))
          const chunks = yield* readTexts(keys)
          return keys.flatMap((key) => {
            const storedChunk = chunks.get(chunkKey(key))
            return storedChunk === undefined ? [] : [toHit(head, storedChunk, 0)]
          })
        })
      ),
    sources: (filter) =>
      run(
        "sources",
        Effect.map(listHeads(filter), (heads) => {
          const counts = new Map<string, Source>()
          for (const { chunks, source } of heads) {
            const sum = counts.get(source)
            counts.set(source, {
              source,
              documents: (sum?.documents ?? 0) + 1,
              chunks: (sum?.chunks ?? 0) + chunks
            })
          }
          return [...counts.values()].sort((left, right) => (left.source < right.source ? -1 : 1))
        })
      )
  }
}

/** Makes the index over tables of a server. */
export const makeRemoteIndex = (tables: Tables): RagIndex["Service"] =>
  makeIndex({
    space: Effect.fnUntraced(function* <M extends Model | undefined>(namespace: string, model: M) {
      const { texts } = tablesOf(namespace)
      const [storedModel] = readModels(yield* tables.get(texts, [modelKey]))
      const other = findOther(storedModel, model)
      if (other !== undefined) return yield* Effect.fail(other)
      return makeSpace(tables, namespace, model)
    }),
    drop: (namespace) => {
      const { texts, vectors } = tablesOf(namespace)
      return Effect.andThen(tables.drop(texts), tables.drop(vectors))
    }
  })
