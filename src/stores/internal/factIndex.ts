/**
 * The words and vectors of a namespace's facts in memory. The storage has a version for each namespace, which every write
 * changes: an index of another version is read anew.
 */
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import { makeId } from "../../core/Message.ts"
import { decode } from "../../support/store/vectors.ts"
import * as Postings from "../../support/text/postings.ts"
import { words } from "../../support/text/words.ts"
import type { Fact as StoredFact } from "./facts.ts"
import * as FactVectors from "./factVectors.ts"
import type { Fault, Row, Table } from "./table.ts"
import { rankHits } from "./words.ts"

type Fact = typeof StoredFact.Type

/** A fact of the index. */
interface Entry {
  readonly id: string
  readonly category: string
  readonly at: number
  readonly words: ReadonlySet<string>
}

/** The facts of a namespace. */
interface Index {
  version: string | undefined
  readonly entries: Map<string, Entry>
  readonly postings: Postings.Postings<Entry>
  /** Vectors by facts, from the first search by a vector on. */
  vectors: FactVectors.FactVectors | undefined
}

/** The namespaces whose facts stay in memory. */
const mostHeld = 16

const removeFact = (index: Index, id: string): void => {
  const entry = index.entries.get(id)
  if (entry === undefined) return
  index.entries.delete(id)
  index.postings.remove(entry, entry.words)
  index.vectors?.delete(id)
}

/** Puts a fact in the index. A fact that comes again keeps its vector. */
const putFact = (index: Index, { at, category, id, text }: Fact, vector: Float32Array | undefined): void => {
  const ownVector = vector ?? index.vectors?.get(id)
  removeFact(index, id)
  const entry = { id, category, at, words: new Set(words(text)) }
  index.entries.set(id, entry)
  index.postings.add(entry, entry.words)
  if (ownVector !== undefined) index.vectors?.set(id, ownVector)
}

/** Latest first, then by id. */
const byTime = (left: Entry, right: Entry): number => right.at - left.at || (left.id < right.id ? -1 : 1)

/** The facts with one of the words, the best first; all facts without words. */
const searchWords = ({ entries, postings }: Index, wanted: ReadonlyArray<string>, category: string | undefined) => {
  const isAllowed = (entry: Entry) => category === undefined || entry.category === category
  const searched = category === undefined ? entries.size : [...entries.values()].filter(isAllowed).length
  const matches = new Map<Entry, Array<number>>()
  for (const [place, beginning] of wanted.entries()) {
    for (const entry of postings.holdersOfBeginning(beginning)) {
      if (!isAllowed(entry)) continue
      const places = matches.get(entry)
      if (places === undefined) matches.set(entry, [place])
      else places.push(place)
    }
  }
  const all = wanted.length > 0 ? matches : [...entries.values()].filter(isAllowed).map((entry) => [entry, []] as const)
  const hits = [...all].map(([item, places]) => ({ item, places }))
  hits.sort((left, right) => byTime(left.item, right.item))
  return rankHits(hits, searched).map(({ id }) => id)
}

/** The parts of a storage that the index reads. */
interface Sources {
  readonly versions: Table
  readonly readFacts: (namespace: string) => Stream.Stream<Fact, Fault>
  readonly readVectors: (namespace: string) => Stream.Stream<ReadonlyArray<Row>, Fault>
}

const key = "version"

/** Makes the indexes of a storage's namespaces. */
export const makeFactIndexes = ({ readFacts, readVectors, versions }: Sources) => {
  const indexes = new Map<string, Index>()
  const turn = Semaphore.makeUnsafe(1)

  const hold = (namespace: string, index: Index): Index => {
    indexes.delete(namespace)
    indexes.set(namespace, index)
    for (const oldest of indexes.keys()) if (indexes.size > mostHeld) indexes.delete(oldest)
    return index
  }

  /** Reads the facts of a namespace, unless those in memory are of the storage's version. */
  const open = Effect.fnUntraced(function* (namespace: string): Effect.fn.Return<Index, Fault> {
    // The version is read first: a write during the reading makes another one.
    const version = yield* versions.get(namespace, key)
    const current = indexes.get(namespace)
    if (current !== undefined && current.version === version) return hold(namespace, current)
    const index: Index = { version, entries: new Map(), postings: Postings.make(), vectors: undefined }
    yield* Stream.runForEachArray(readFacts(namespace), (facts) =>
      Effect.sync(() => {
        for (const fact of facts) putFact(index, fact, undefined)
      })
    )
    return hold(namespace, index)
  })

  const openVectors = Effect.fnUntraced(function* (namespace: string) {
    const index = yield* open(namespace)
    if (index.vectors !== undefined) return { index, vectors: index.vectors }
    const { version } = index
    const vectors = FactVectors.make()
    yield* Stream.runForEach(readVectors(namespace), (rows) =>
      Effect.sync(() => {
        for (const { key: id, value } of rows) {
          const vector = decode(value)
          if (vector !== undefined) vectors.set(id, vector)
        }
      })
    )
    // A fact that was added meanwhile is in the storage only.
    if (index.version === version) index.vectors = vectors
    return { index, vectors }
  })

  /** Gives a namespace its next version after a write, and changes the index in memory if nobody else wrote. */
  const follow = (namespace: string, change: (index: Index) => void): Effect.Effect<void, Fault> =>
    Effect.gen(function* () {
      const next = yield* Effect.sync(makeId)
      const index = indexes.get(namespace)
      if (index !== undefined && (yield* versions.swap(namespace, key, index.version, next))) {
        change(index)
        index.version = next
        return
      }
      indexes.delete(namespace)
      yield* versions.put(namespace, [{ key, value: next }])
    }).pipe(turn.withPermits(1))

  return {
    /** The ids of facts with words of the query, the best first. */
    search: (namespace: string, wanted: ReadonlyArray<string>, category: string | undefined) =>
      Effect.map(open(namespace), (index) => searchWords(index, wanted, category)),
    /** The ids of the facts nearest to a vector, at most `limit`, with their cosine. */
    nearest: Effect.fnUntraced(function* (
      namespace: string,
      wanted: Float32Array,
      { category, limit }: { readonly category?: string | undefined; readonly limit: number }
    ) {
      const { index, vectors } = yield* openVectors(namespace)
      const near = yield* vectors.nearest(wanted, limit, (id) => {
        const entry = index.entries.get(id)
        return entry !== undefined && (category === undefined || entry.category === category)
      })
      return near.slice(0, limit)
    }),
    added: (namespace: string, fact: Fact, vector: Float32Array | undefined) =>
      follow(namespace, (index) => putFact(index, fact, vector)),
    removed: (namespace: string, id: string) => follow(namespace, (index) => removeFact(index, id)),
    cleared: (namespace: string) =>
      Effect.andThen(
        Effect.sync(() => indexes.delete(namespace)),
        follow(namespace, () => undefined)
      )
  }
}
