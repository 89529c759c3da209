/**
 * Long-term memory: facts that an agent keeps from conversation to conversation, in namespaces that know nothing of
 * each other, found by their words or by their meaning.
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { MemoryStore, Storage } from "effect-deepagents/stores"
 *
 * const program = Effect.gen(function* () {
 *   const memory = yield* MemoryStore.MemoryStore
 *   yield* memory.add("user/ada", { text: "Ada prefers tea to coffee", category: "preference" })
 *   return yield* memory.search("user/ada", { text: "what tea does she drink" })
 * }).pipe(Effect.provide(Layer.provide(MemoryStore.layer, Storage.layerMemory)))
 * ```
 *
 * Search by meaning needs vectors: `remember` and `recall` make them with the `EmbeddingModel` of `effect/ai` that you
 * provide. `MemoryTools` gives all of it to a model.
 */
import type { AiError } from "effect/ai/AiError"
import { EmbeddingModel } from "effect/ai/EmbeddingModel"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { JsonObject } from "../core/Json.ts"
import { span, streamSpan } from "../support/effect/span.ts"
import { sha256 } from "../support/store/hash.ts"
import { nameProblem } from "../support/text/names.ts"
import { words } from "../support/text/words.ts"
import * as Vectors from "./internal/vectors.ts"
import { within as named } from "./internal/within.ts"
import * as Words from "./internal/words.ts"
import { type Fault, Storage } from "./Storage.ts"
import { make as failure, type Reason, type StoreError } from "./StoreError.ts"

/**
 * Bounds of what is stored: characters of a fact's text, of its category, and of its metadata as JSON; numbers of a
 * vector; and facts of a namespace. A search reads all facts of its namespace, so the last one bounds what it costs.
 */
export const limits = {
  text: 4096,
  category: 64,
  metadata: 16_384,
  dimensions: Vectors.mostDimensions,
  facts: 10_000
} as const

/** Schema of a {@link Fact}. */
export const Fact = Schema.Struct({
  id: Schema.String,
  text: Schema.String,
  category: Schema.String,
  at: Schema.Finite,
  metadata: JsonObject
})

/** A fact. Its id is made of its text; `at` is when it was added last, in milliseconds since the epoch. */
export interface Fact extends Schema.Schema.Type<typeof Fact> {}

/** A fact to add: of category `general`, if none is given. `vector` is its place in a space of meanings. */
export interface NewFact {
  readonly text: string
  readonly category?: string | undefined
  readonly metadata?: JsonObject | undefined
  readonly vector?: ReadonlyArray<number> | undefined
}

/** Selects facts to find: of one category, if it is given; at most `limit` of them (10; at most 100). */
export interface Query {
  readonly category?: string | undefined
  readonly limit?: number | undefined
}

/** A fact, and how near it is to what was looked for: the cosine of the angle between the two, from -1 to 1. */
export interface Near {
  readonly fact: Fact
  readonly similarity: number
}

/** See {@link MemoryStore}. */
export interface Service {
  /**
   * Adds a fact. One of the same text takes the place of the one that is there. Fails with `InvalidValue` beyond the
   * {@link limits}, and with `Full`.
   */
  readonly add: (namespace: string, fact: NewFact) => Effect.Effect<Fact, StoreError>
  /**
   * Facts by their words: those that have one of the words of `text`, or a word that begins with it, in any case; those
   * first that have the most words, rare ones before common ones, then the latest. Without words, the latest facts.
   */
  readonly search: (
    namespace: string,
    query: Query & { readonly text?: string | undefined }
  ) => Effect.Effect<ReadonlyArray<Fact>, StoreError>
  /**
   * Facts by their meaning, the nearest to a vector first. It compares all vectors of the namespace. Those of another
   * number of dimensions, made by another model, are passed over.
   */
  readonly nearest: (
    namespace: string,
    vector: ReadonlyArray<number>,
    query?: Query
  ) => Effect.Effect<ReadonlyArray<Near>, StoreError>
  /** All facts of a namespace, in the order of their ids. */
  readonly facts: (namespace: string) => Stream.Stream<Fact, StoreError>
  /** Removes a fact for good; says whether it was there. */
  readonly remove: (namespace: string, id: string) => Effect.Effect<boolean, StoreError>
  /** Removes all facts of a namespace for good. */
  readonly clear: (namespace: string) => Effect.Effect<void, StoreError>
}

/**
 * The store of facts. A namespace is any text of 1 to 256 characters without control characters, one for each tenant,
 * user or project. Two that differ are two: `a` has nothing to do with `a/b`.
 */
export class MemoryStore extends Context.Service<MemoryStore, Service>()("effect-deepagents/MemoryStore") {}

const FactText = Schema.fromJsonString(Fact)
const decodeFact = Schema.decodeUnknownResult(FactText)
const decodeMetadata = Schema.decodeUnknownResult(JsonObject)

/** So many rows are read, and looked at, in one go. */
const page = 500

const bounded = (limit: number | undefined): number =>
  limit === undefined || Number.isNaN(limit) ? 10 : Math.max(1, Math.min(Math.trunc(limit), 100))

const idOf = (text: string): Effect.Effect<string> =>
  Effect.map(sha256(JSON.stringify(text)), (hash) => hash.slice(0, 16))

const vectorProblem = `a vector has 1 to ${limits.dimensions} finite numbers, not all of them 0`

const factProblem = ({ category = "general", metadata = {}, text, vector }: NewFact): string | undefined => {
  if (text.trim() === "") return "the text is empty"
  if (text.length > limits.text) {
    return `the text has ${text.length} characters, and may have ${limits.text}; make it shorter, or several facts of it`
  }
  const category_ = nameProblem(category, limits.category)
  if (category_ !== undefined) return `the category: ${category_}`
  if (Result.isFailure(decodeMetadata(metadata)) || JSON.stringify(metadata).length > limits.metadata) {
    return `metadata are JSON of at most ${limits.metadata} characters`
  }
  return vector !== undefined && Vectors.unit(vector) === undefined ? vectorProblem : undefined
}

const within = named(256)

/** The store, on the storage that you provide. */
export const layer: Layer.Layer<MemoryStore, never, Storage> = Layer.effect(
  MemoryStore,
  Effect.gen(function* () {
    const storage = yield* Storage
    const facts = storage.table("facts")
    const vectors = storage.table("vectors")

    const read = (value: string): Effect.Effect<Fact, Fault> =>
      Effect.mapError(Effect.fromResult(decodeFact(value)), (): Fault => ({
        reason: "Corrupt",
        problem: "a fact is not of this version of effect-deepagents"
      }))

    /** All rows of a namespace, some at a time: others have their turn between. */
    const pages = (table: typeof facts, namespace: string) =>
      Stream.paginate(undefined as string | undefined, (after) => {
        const rows = table.scan(namespace, { limit: page, after })
        return Effect.map(Effect.andThen(Effect.yieldNow, rows), (found) => {
          const last = found.length < page ? undefined : found.at(-1)?.key
          return [[found], Option.fromUndefinedOr(last)] as const
        })
      })

    const all = (namespace: string): Stream.Stream<Fact, Fault> =>
      Stream.flatMap(pages(facts, namespace), (rows) =>
        Stream.fromIterableEffect(Effect.forEach(rows, ({ value }) => read(value)))
      )

    const add = Effect.fnUntraced(function* (namespace: string, fact: NewFact): Effect.fn.Return<Fact, Reason | Fault> {
      const problem = factProblem(fact)
      if (problem !== undefined) return yield* Effect.fail<Reason>({ _tag: "InvalidValue", problem })
      const { category = "general", metadata = {}, text } = fact
      const id = yield* idOf(text)
      const isKnown = (yield* facts.get(namespace, id)) !== undefined
      if (!isKnown && (yield* facts.count(namespace)) >= limits.facts) {
        return yield* Effect.fail<Reason>({ _tag: "Full", limit: limits.facts })
      }
      const added: Fact = { id, text, category, at: yield* Clock.currentTimeMillis, metadata }
      yield* facts.put(namespace, [{ key: id, value: JSON.stringify(added) }])
      const vector = Vectors.unit(fact.vector ?? [])
      if (vector !== undefined) {
        yield* vectors.put(namespace, [{ key: id, value: Vectors.encode(vector) }])
      }
      return added
    })

    /** The facts of a query's category; `undefined` if it has none. */
    const ofCategory = Effect.fnUntraced(function* (namespace: string, { category }: Query) {
      if (category === undefined) return undefined
      const found = new Map<string, Fact>()
      yield* Stream.runForEach(all(namespace), (fact) =>
        Effect.sync(() => (fact.category === category ? void found.set(fact.id, fact) : undefined))
      )
      return found
    })

    const search = Effect.fnUntraced(function* (
      namespace: string,
      query: Query & { readonly text?: string | undefined }
    ) {
      const wanted = [...new Set(words(query.text ?? ""))].slice(0, 64)
      const hits: Array<{ readonly item: Fact; readonly found: ReadonlyArray<number> }> = []
      let searched = 0
      yield* Stream.runForEachArray(all(namespace), (some) =>
        Effect.sync(() => {
          for (const item of some) {
            if (query.category !== undefined && item.category !== query.category) continue
            searched++
            const found = Words.found(item.text, wanted)
            if (found.length > 0 || wanted.length === 0) hits.push({ item, found })
          }
        })
      )
      hits.sort((left, right) => right.item.at - left.item.at)
      return Words.ranked(hits, searched).slice(0, bounded(query.limit))
    })

    const nearest = Effect.fnUntraced(function* (
      namespace: string,
      vector: ReadonlyArray<number>,
      query: Query
    ): Effect.fn.Return<ReadonlyArray<Near>, Reason | Fault> {
      const wanted = Vectors.unit(vector)
      if (wanted === undefined) return yield* Effect.fail<Reason>({ _tag: "InvalidValue", problem: vectorProblem })
      const allowed = yield* ofCategory(namespace, query)
      const places: Array<{ readonly id: string; readonly similarity: number }> = []
      yield* Stream.runForEach(pages(vectors, namespace), (rows) =>
        Effect.sync(() => {
          for (const { key, value } of rows) {
            if (allowed !== undefined && !allowed.has(key)) continue
            const similarity = Vectors.similarity(wanted, Vectors.decode(value) ?? new Float32Array())
            if (similarity !== undefined) places.push({ id: key, similarity })
          }
        })
      )
      places.sort((left, right) => right.similarity - left.similarity)
      const found: Array<Near> = []
      for (const { id, similarity } of places.slice(0, bounded(query.limit))) {
        const value = yield* facts.get(namespace, id)
        if (value !== undefined) found.push({ fact: yield* read(value), similarity })
      }
      return found
    })

    const remove = Effect.fnUntraced(function* (namespace: string, id: string) {
      const value = nameProblem(id, 256) === undefined ? yield* facts.get(namespace, id) : undefined
      if (value === undefined) return false
      const vector = yield* vectors.get(namespace, id)
      if (vector !== undefined) yield* vectors.swap(namespace, id, vector, undefined)
      return yield* facts.swap(namespace, id, value, undefined)
    })

    return {
      add: (namespace, fact) => span("MemoryStore.add")(within("remember", namespace)(add(namespace, fact))),
      search: (namespace, query) => span("MemoryStore.search")(within("recall", namespace)(search(namespace, query))),
      nearest: (namespace, vector, query) =>
        span("MemoryStore.nearest")(within("recall", namespace)(nearest(namespace, vector, query ?? {}))),
      facts: (namespace) =>
        streamSpan("MemoryStore.facts")(
          Stream.unwrap(
            Effect.as(
              within("recall", namespace)(Effect.void),
              Stream.mapError(all(namespace), (fault) => failure("recall", namespace, fault))
            )
          )
        ),
      remove: (namespace, id) => span("MemoryStore.remove")(within("forget", namespace)(remove(namespace, id))),
      clear: (namespace) =>
        span("MemoryStore.clear")(
          within("forget", namespace)(Effect.andThen(vectors.clear(namespace), facts.clear(namespace)))
        )
    }
  })
)

/** Adds a fact with its place in the space of meanings, so that `recall` finds it. */
export const remember = Effect.fnUntraced(function* (
  namespace: string,
  fact: Omit<NewFact, "vector">
): Effect.fn.Return<Fact, StoreError | AiError, MemoryStore | EmbeddingModel> {
  const problem = factProblem(fact)
  // A fact that can't be stored is not sent to anybody.
  if (problem !== undefined) return yield* failure("remember", namespace, { _tag: "InvalidValue", problem })
  const model = yield* EmbeddingModel
  const { vector } = yield* model.embed(fact.text)
  return yield* MemoryStore.use((store) => store.add(namespace, { ...fact, vector }))
})

/**
 * Facts by their words and their meaning, one of each in turn, beginning with the best of both. Facts that were added
 * without a vector are found by their words only.
 */
export const recall = Effect.fnUntraced(function* (
  namespace: string,
  text: string,
  query: Query = {}
): Effect.fn.Return<ReadonlyArray<Fact>, StoreError | AiError, MemoryStore | EmbeddingModel> {
  const store = yield* MemoryStore
  const model = yield* EmbeddingModel
  const { vector } = yield* model.embed(text)
  const near = yield* store.nearest(namespace, vector, query)
  const worded = yield* store.search(namespace, { ...query, text })
  const found = new Map<string, Fact>()
  for (let rank = 0; rank < Math.max(near.length, worded.length); rank++) {
    for (const fact of [near[rank]?.fact, worded[rank]]) if (fact !== undefined) found.set(fact.id, fact)
  }
  return [...found.values()].slice(0, bounded(query.limit))
})
