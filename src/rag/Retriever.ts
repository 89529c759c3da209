/**
 * Finds chunks by words and by vectors at once, and joins both lists by rank.
 *
 * Each hit has its scores of every stage, so that a poor result can be explained.
 *
 * ```ts
 * import { type RagIndex, Retriever } from "effect-deepagents/rag"
 *
 * const find = (space: RagIndex.Space<RagIndex.Model>) =>
 *   Retriever.search(space, "days of leave", { limit: 5, halfLife: "90 days", above: 1, below: 1 })
 * ```
 */
import type { AiError } from "effect/ai/AiError"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { makeEffectCheck } from "../support/options/check.ts"
import { headOf } from "../support/text/text.ts"
import { inContext } from "./Chunk.ts"
import { embedQuery } from "./internal/embedding.ts"
import { byScore, storable } from "./internal/entries.ts"
import * as shapes from "./internal/shapes.ts"
import type { RagError } from "./RagError.ts"
import type { Embeds, Filter, Hit, Model, Space } from "./RagIndex.ts"
import type { Reranker } from "./Rerank.ts"

/** The scores of a hit at each stage. Ranks count from 0. */
export interface Trace {
  /** The place in the list by words, and its BM25. */
  readonly words?: { readonly rank: number; readonly score: number } | undefined
  /** The place in the list by vectors, and the cosine. */
  readonly vectors?: { readonly rank: number; readonly score: number } | undefined
  /** The score by both ranks. */
  readonly joined: number
  /** The factor by age, from 0 to 1. */
  readonly recency?: number | undefined
  /** The score of the reranker, from 0 to 1. */
  readonly reranked?: number | undefined
}

/** A chunk that was found, with its neighbours. */
export interface Passage extends Hit {
  readonly trace: Trace
  /** The chunks before it, if they were asked for. */
  readonly above: ReadonlyArray<Hit>
  /** The chunks behind it, if they were asked for. */
  readonly below: ReadonlyArray<Hit>
}

/** Options of a search. */
export interface Options<E = never, R = never> {
  /** The most hits, from 1 to 100. Default: 5. */
  readonly limit?: number | undefined
  /** The documents to search. Default: all. */
  readonly filter?: Filter | undefined
  /** The weight of the list by vectors, from 0 (words only) to 1 (vectors only). Default: 0.5. */
  readonly alpha?: number | undefined
  /** The age that halves the score of a document with a time. Default: age does not count. */
  readonly halfLife?: Duration.Input | undefined
  /** Orders the best hits anew, twice as many as asked for. Default: none. */
  readonly rerank?: Reranker<E, R> | undefined
  /** The chunks to give before each hit. Default: 0. */
  readonly above?: number | undefined
  /** The chunks to give behind each hit. Default: 0. */
  readonly below?: number | undefined
}

const refuseSearch = makeEffectCheck("Retriever.search", shapes.retrieverSearch)

/** The characters of a query that are searched: models refuse long texts, empty ones, and half characters. */
const mostCharacters = 4_000

const queryOf = (text: string): string => storable(headOf(text, mostCharacters)).trim()

/** The usual constant of reciprocal rank fusion. */
const constant = 60

interface RankedHit {
  readonly hit: Hit
  readonly trace: Trace
}

/** Joins two lists by rank: alpha / (60 + rank) for vectors, and the rest of 1 for words. */
const join = (near: ReadonlyArray<Hit>, worded: ReadonlyArray<Hit>, alpha: number): ReadonlyArray<RankedHit> => {
  const rankedById = new Map<string, RankedHit>()
  const add = (hits: ReadonlyArray<Hit>, name: "words" | "vectors", weight: number) => {
    for (const [rank, hit] of hits.entries()) {
      const entry = rankedById.get(hit.chunk.id)
      const sum = (entry?.trace.joined ?? 0) + weight / (constant + rank)
      rankedById.set(hit.chunk.id, { hit, trace: { ...entry?.trace, [name]: { rank, score: hit.score }, joined: sum } })
    }
  }
  add(near, "vectors", alpha)
  add(worded, "words", 1 - alpha)
  return [...rankedById.values()]
}

const scoreOf = ({ joined, recency = 1, reranked }: Trace): number => (reranked ?? joined) * recency

const order = (ranked: ReadonlyArray<RankedHit>): ReadonlyArray<RankedHit> =>
  ranked
    .map(({ hit, trace }) => ({ hit: { ...hit, score: scoreOf(trace) }, trace }))
    .sort((left, right) => byScore(left.hit, right.hit))

const age = (
  ranked: ReadonlyArray<RankedHit>,
  halfLife: Duration.Input | undefined,
  now: number
): ReadonlyArray<RankedHit> => {
  const half = halfLife === undefined ? 0 : Duration.toMillis(Duration.fromInputUnsafe(halfLife))
  if (!(half > 0)) return ranked
  return ranked.map(({ hit, trace }) =>
    hit.at === undefined
      ? { hit, trace }
      : { hit, trace: { ...trace, recency: 0.5 ** (Math.max(0, now - hit.at) / half) } }
  )
}

const expand = Effect.fnUntraced(function* (
  space: Space,
  { hit, trace }: RankedHit,
  { above = 0, below = 0, filter }: Options<unknown, unknown>
): Effect.fn.Return<Passage, RagError> {
  if (above <= 0 && below <= 0) return { ...hit, trace, above: [], below: [] }
  const around = yield* space.around(hit.chunk.id, { above, below, filter })
  return {
    ...hit,
    trace,
    above: around.filter(({ chunk }) => chunk.index < hit.chunk.index),
    below: around.filter(({ chunk }) => chunk.index > hit.chunk.index)
  }
})

const boundCount = (limit: number | undefined): number =>
  limit === undefined || Number.isNaN(limit) ? 5 : Math.min(Math.max(1, Math.trunc(limit)), 100)

/** Ranks the hits of both lists through all stages. */
const finish = Effect.fnUntraced(function* <E, R>(
  space: Space,
  text: string,
  ranked: ReadonlyArray<RankedHit>,
  options: Options<E, R>
) {
  const limit = boundCount(options.limit)
  const aged = order(age(ranked, options.halfLife, yield* Clock.currentTimeMillis))
  const best = aged.slice(0, options.rerank === undefined ? limit : limit * 2)
  const scores = yield* options.rerank === undefined || best.length === 0
    ? Effect.succeed<ReadonlyArray<number>>([])
    : options.rerank(
        text,
        best.map(({ hit }) => inContext(hit.title, hit.chunk))
      )
  const last = order(
    best.map(({ hit, trace }, index) => ({ hit, trace: { ...trace, reranked: scoreAt(scores, index) } }))
  ).slice(0, limit)
  return yield* Effect.forEach(last, (one) => expand(space, one, options), { concurrency: 8 })
})

/** A reranker may give too few scores, or none that is a number. */
const scoreAt = (scores: ReadonlyArray<number>, index: number): number | undefined => {
  if (scores.length === 0) return undefined
  const score = scores[index] ?? 0
  return Number.isFinite(score) ? score : 0
}

/**
 * Searches by words only. It needs no model, also in a space with vectors. `alpha` has no effect. A blank text finds nothing;
 * of a long one, the first 4,000 characters count.
 */
export const words = <E = never, R = never>(
  space: Space,
  text: string,
  options: Options<E, R> = {}
): Effect.Effect<ReadonlyArray<Passage>, RagError | E, R> =>
  refuseSearch(options) ??
  Effect.gen(function* () {
    const query = queryOf(text)
    const worded = yield* space.words(query, { limit: boundCount(options.limit) * 2, filter: options.filter })
    return yield* finish(space, query, join([], worded, 0), options)
  })

/**
 * Searches by words and by vectors, twice as many hits as asked for from each. A space without a model is searched by
 * words, and needs no embedding model. A blank text finds nothing; of a long one, the first 4,000 characters count.
 */
export const search = <M extends Model | undefined, E = never, R = never>(
  space: Space<M>,
  text: string,
  options: Options<E, R> = {}
): Effect.Effect<ReadonlyArray<Passage>, RagError | AiError | E, Embeds<M> | R> =>
  refuseSearch(options) ??
  Effect.gen(function* () {
    const { alpha = 0.5, filter } = options
    const weight = space.model === undefined ? 0 : Number.isNaN(alpha) ? 0.5 : Math.min(Math.max(0, alpha), 1)
    const limit = boundCount(options.limit) * 2
    const query = queryOf(text)
    const nearest = Effect.flatMap(query === "" ? Effect.undefined : embedQuery(space, query), (vector) =>
      vector === undefined ? Effect.succeed([]) : space.nearest(vector, { limit, filter })
    )
    const [near, worded] = yield* Effect.all(
      [
        weight === 0 ? Effect.succeed([]) : nearest,
        weight === 1 ? Effect.succeed([]) : space.words(query, { limit, filter })
      ],
      { concurrency: 2 }
    )
    return yield* finish(space, query, join(near, worded, weight), options)
  })
