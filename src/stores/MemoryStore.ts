/**
 * Long-term memory: facts that an agent keeps over conversations. Namespaces are separate; facts are found by words or
 * by meaning.
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
 * Search by meaning needs vectors. `remember` and `recall` make them by the `EmbeddingModel` of `effect/ai`. `MemoryTools`
 * gives a model the same as tools.
 */
import type { AiError } from "effect/ai/AiError"
import { EmbeddingModel } from "effect/ai/EmbeddingModel"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { span, streamSpan } from "../support/effect/span.ts"
import { sha256 } from "../support/store/hash.ts"
import * as Vectors from "../support/store/vectors.ts"
import { nameProblem } from "../support/text/names.ts"
import { words } from "../support/text/words.ts"
import { makeFactIndexes } from "./internal/factIndex.ts"
import { Fact, factProblem, limits, type NewFact, type Query, readFact, vectorProblem } from "./internal/facts.ts"
import { boundLimit, failure, onName, type Reason } from "./internal/failure.ts"
import type { Fault, Table } from "./internal/table.ts"
import { Storage } from "./Storage.ts"
import type { StoreError } from "./StoreError.ts"

export type { NewFact, Query } from "./internal/facts.ts"

export { Fact }

/** A fact. Its text makes its id; `at` is when it was added last, in milliseconds since the epoch. */
export interface Fact extends Schema.Schema.Type<typeof Fact> {}

interface Near {
  readonly fact: Fact
  /** The cosine of the angle between the vectors of fact and query, from -1 to 1. */
  readonly similarity: number
}

interface Service {
  /**
   * Adds a fact, or replaces the fact of the same text. A text has at most 4,096 characters, a category 64, metadata
   * 16,384 as JSON, and a vector 4,096 numbers (else `InvalidValue`); a namespace has at most 10,000 facts (`Full`).
   */
  readonly add: (namespace: string, fact: NewFact) => Effect.Effect<Fact, StoreError>
  /**
   * Finds facts that contain words of `text`, also as the beginning of a word, in any case. Facts with more words and
   * with rare words come first, then the latest. Without words, it gives the latest facts.
   */
  readonly search: (
    namespace: string,
    query: Query & { readonly text?: string | undefined }
  ) => Effect.Effect<ReadonlyArray<Fact>, StoreError>
  /**
   * Finds facts by meaning, the nearest to a vector first. It compares all vectors of the namespace. If these have more
   * than a million numbers, it compares 640 or more that are nearest by signatures of one bit a number. It ignores
   * vectors of another number of dimensions, which another model made.
   */
  readonly nearest: (
    namespace: string,
    vector: ReadonlyArray<number>,
    query?: Query
  ) => Effect.Effect<ReadonlyArray<Near>, StoreError>
  /** All facts of a namespace, in the order of their ids. */
  readonly facts: (namespace: string) => Stream.Stream<Fact, StoreError>
  /** Erases a fact, and reports whether it existed. */
  readonly remove: (namespace: string, id: string) => Effect.Effect<boolean, StoreError>
  /** Erases all facts of a namespace. */
  readonly clear: (namespace: string) => Effect.Effect<void, StoreError>
}

/**
 * The store of facts. A namespace is any text of 1 to 256 characters without control characters, such as one for each
 * tenant, user or project. Namespaces don't nest: `a` and `a/b` are separate.
 */
export class MemoryStore extends Context.Service<MemoryStore, Service>()("effect-deepagents/MemoryStore") {}

/** The rows that are read at once. */
const page = 500

const bounded = (limit: number | undefined): number => boundLimit(limit, 10, 100)

const idOf = (text: string): Effect.Effect<string> =>
  Effect.map(sha256(JSON.stringify(text)), (hash) => hash.slice(0, 16))

const onNamespace = onName(256)

/** The store, over a storage. */
export const layer: Layer.Layer<MemoryStore, never, Storage> = Layer.effect(
  MemoryStore,
  Effect.gen(function* () {
    const storage = yield* Storage
    const facts = storage.table("facts")
    const vectors = storage.table("vectors")

    /** Reads all rows of a namespace, page by page. Other fibers run between. */
    const pages = (table: Table, namespace: string) =>
      Stream.paginate(undefined as string | undefined, (after) => {
        const scan = table.scan(namespace, { limit: page, after })
        return Effect.map(Effect.andThen(Effect.yieldNow, scan), (rows) => {
          const last = rows.length < page ? undefined : rows.at(-1)?.key
          return [[rows], Option.fromUndefinedOr(last)] as const
        })
      })

    const all = (namespace: string): Stream.Stream<Fact, Fault> =>
      Stream.flatMap(pages(facts, namespace), (rows) =>
        Stream.fromIterableEffect(Effect.forEach(rows, ({ value }) => readFact(value)))
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
      const vector = Vectors.unit(fact.vector ?? [])
      // What is stored must be found: an interruption waits for the index.
      yield* Effect.uninterruptible(
        Effect.gen(function* () {
          yield* facts.put(namespace, [{ key: id, value: JSON.stringify(added) }])
          if (vector !== undefined) yield* vectors.put(namespace, [{ key: id, value: Vectors.encode(vector) }])
          yield* index.added(namespace, added, vector)
        })
      )
      return added
    })

    const index = makeFactIndexes({
      versions: storage.table("facts-versions"),
      readFacts: all,
      readVectors: (namespace) => pages(vectors, namespace)
    })

    /** Reads facts by their ids. Facts that went meanwhile are left out. */
    const readFacts = (namespace: string, ids: ReadonlyArray<string>) =>
      Effect.map(
        Effect.forEach(
          ids,
          (id) =>
            Effect.flatMap(facts.get(namespace, id), (value) =>
              value === undefined ? Effect.succeed([]) : Effect.map(readFact(value), (fact) => [fact])
            ),
          { concurrency: 8 }
        ),
        (batches) => batches.flat()
      )

    const search = Effect.fnUntraced(function* (
      namespace: string,
      query: Query & { readonly text?: string | undefined }
    ) {
      const wanted = [...new Set(words(query.text ?? ""))].slice(0, 64)
      const ids = yield* index.search(namespace, wanted, query.category)
      return yield* readFacts(namespace, ids.slice(0, bounded(query.limit)))
    })

    const nearest = Effect.fnUntraced(function* (
      namespace: string,
      vector: ReadonlyArray<number>,
      query: Query
    ): Effect.fn.Return<ReadonlyArray<Near>, Reason | Fault> {
      const wanted = Vectors.unit(vector)
      if (wanted === undefined) return yield* Effect.fail<Reason>({ _tag: "InvalidValue", problem: vectorProblem })
      const places = yield* index.nearest(namespace, wanted, { ...query, limit: bounded(query.limit) })
      const nearFacts = yield* readFacts(
        namespace,
        places.map(({ id }) => id)
      )
      const similarities = new Map(places.map(({ id, similarity }) => [id, similarity]))
      return nearFacts.map((fact) => ({ fact, similarity: similarities.get(fact.id) ?? 0 }))
    })

    const remove = Effect.fnUntraced(function* (namespace: string, id: string) {
      const value = nameProblem(id, 256) === undefined ? yield* facts.get(namespace, id) : undefined
      if (value === undefined) return false
      const vector = yield* vectors.get(namespace, id)
      if (vector !== undefined) yield* vectors.swap(namespace, id, vector, undefined)
      return yield* Effect.uninterruptible(
        Effect.tap(facts.swap(namespace, id, value, undefined), () => index.removed(namespace, id))
      )
    })

    return {
      add: (namespace, fact) => span("MemoryStore.add")(onNamespace("remember", namespace)(add(namespace, fact))),
      search: (namespace, query) =>
        span("MemoryStore.search")(onNamespace("recall", namespace)(search(namespace, query))),
      nearest: (namespace, vector, query) =>
        span("MemoryStore.nearest")(onNamespace("recall", namespace)(nearest(namespace, vector, query ?? {}))),
      facts: (namespace) =>
        streamSpan("MemoryStore.facts")(
          Stream.unwrap(
            Effect.as(
              onNamespace("recall", namespace)(Effect.void),
              Stream.mapError(all(namespace), (fault) => failure("recall", namespace, fault))
            )
          )
        ),
      remove: (namespace, id) => span("MemoryStore.remove")(onNamespace("forget", namespace)(remove(namespace, id))),
      clear: (namespace) =>
        span("MemoryStore.clear")(
          onNamespace(
            "forget",
            namespace
          )(Effect.andThen(Effect.andThen(vectors.clear(namespace), facts.clear(namespace)), index.cleared(namespace)))
        )
    }
  })
)

/** Adds a fact with its vector, so that `recall` finds it by meaning. */
export const remember = Effect.fnUntraced(function* (
  namespace: string,
  fact: Omit<NewFact, "vector">
): Effect.fn.Return<Fact, StoreError | AiError, MemoryStore | EmbeddingModel> {
  const problem = factProblem(fact)
  // The model gets no fact that can't be stored.
  if (problem !== undefined) return yield* failure("remember", namespace, { _tag: "InvalidValue", problem })
  const model = yield* EmbeddingModel
  const { vector } = yield* model.embed(fact.text)
  return yield* MemoryStore.use((store) => store.add(namespace, { ...fact, vector }))
})

/**
 * Finds facts by words and by meaning, and alternates between the best hits of both. A fact without a vector is found by
 * words only.
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
  const factsById = new Map<string, Fact>()
  for (let rank = 0; rank < Math.max(near.length, worded.length); rank++) {
    for (const fact of [near[rank]?.fact, worded[rank]]) if (fact !== undefined) factsById.set(fact.id, fact)
  }
  return [...factsById.values()].slice(0, bounded(query.limit))
})
