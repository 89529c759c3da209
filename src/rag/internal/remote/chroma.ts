/** Tables of records in collections of a Chroma server, by version 2 of its API. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Reason } from "../rows.ts"
import type { Condition, Conditions, FoundRecord, NewRecord, Tables } from "./records.ts"
import type { Send } from "./server.ts"

/** The chunks of a table up to which no word is too frequent. */
const few = 2_000

/** The most chunks that are scored by their words. */
const candidates = 10_000

const Collection = Schema.Struct({ id: Schema.String })
const Values = Schema.NullOr(Schema.Record(Schema.String, Schema.Unknown))
const Records = Schema.Struct({
  ids: Schema.Array(Schema.String),
  metadatas: Schema.optionalKey(Schema.NullOr(Schema.Array(Values))),
  documents: Schema.optionalKey(Schema.NullOr(Schema.Array(Schema.NullOr(Schema.String))))
})
const Nearest = Schema.Struct({
  ids: Schema.Array(Schema.Array(Schema.String)),
  metadatas: Schema.Array(Schema.Array(Values)),
  distances: Schema.Array(Schema.Array(Schema.NullOr(Schema.Finite)))
})

const invalid = (): Reason => ({
  _tag: "Unavailable",
  problem: "the server's answer is none of Chroma's API v2; check the address and the version"
})

const decode =
  <A>(schema: Schema.Codec<A, unknown, never, never>) =>
  (value: unknown): Effect.Effect<A, Reason> =>
    Effect.mapError(Schema.decodeUnknownEffect(schema)(value), invalid)

const readCollection = decode(Collection)
const readRecords = decode(Records)
const readNearest = decode(Nearest)

const facetKey = (facet: string): string => `facet ${facet}`

const toCondition = (condition: Condition): ReadonlyArray<unknown> => {
  switch (condition._tag) {
    case "Any":
      return [{ [condition.key]: { $in: condition.values } }]
    case "Facet":
      return [{ [facetKey(condition.facet)]: { $eq: true } }]
    case "Between":
      return [
        ...(condition.from === undefined ? [] : [{ [condition.key]: { $gte: condition.from } }]),
        ...(condition.to === undefined ? [] : [{ [condition.key]: { $lt: condition.to } }])
      ]
  }
}

const toWhere = (conditions: Conditions): unknown => {
  const all = conditions.flatMap(toCondition)
  return all.length === 1 ? all[0] : { $and: all }
}

/** The words of a chunk between spaces, so that a word is found as a part of the text. */
const toText = (terms: ReadonlyArray<string>): string => ` ${terms.join(" ")} `

const contains = (term: string) => ({ $contains: toText([term]) })

/** Scores texts by BM25, with the numbers of FTS5: k1 1.2, b 0.75. */
const score = (texts: ReadonlyArray<string>, rarities: ReadonlyMap<string, number>): ReadonlyArray<number> => {
  const words = texts.map((text) => text.trim().split(" "))
  const average = Math.max(1, words.reduce((sum, { length }) => sum + length, 0) / Math.max(1, words.length))
  return words.map((own) => {
    const counts = new Map<string, number>()
    for (const word of own) if (rarities.has(word)) counts.set(word, (counts.get(word) ?? 0) + 1)
    let sum = 0
    for (const [word, count] of counts) {
      sum += ((rarities.get(word) ?? 0) * count * 2.2) / (count + 1.2 * (0.25 + (0.75 * own.length) / average))
    }
    return sum
  })
}

const payloadsOf = ({ metadatas }: typeof Records.Type): ReadonlyArray<unknown> => metadatas ?? []

/** Makes the tables. */
export const makeChromaTables = (send: Send, database: string): Tables => {
  const find = (table: string) =>
    Effect.flatMap(send("GET", `${database}/collections/${table}`), (value) =>
      value === undefined ? Effect.undefined : Effect.map(readCollection(value), ({ id }) => id)
    )

  const on = <A>(table: string, empty: A, effect: (path: string) => Effect.Effect<A, Reason>) =>
    Effect.flatMap(find(table), (id) =>
      id === undefined ? Effect.succeed(empty) : effect(`${database}/collections/${id}`)
    )

  const readPart = (path: string, body: unknown) =>
    Effect.flatMap(send("POST", `${path}/get`, body), (value) =>
      value === undefined ? Effect.succeed({ ids: [] }) : readRecords(value)
    )

  const create = (table: string) =>
    Effect.flatMap(
      send("POST", `${database}/collections`, {
        name: table,
        get_or_create: true,
        configuration: { hnsw: { space: "cosine", ef_construction: 200, ef_search: 200 } }
      }),
      readCollection
    )

  const countWords = Effect.fnUntraced(function* (path: string, terms: ReadonlyArray<string>) {
    const chunks = { kind: { $eq: "chunk" } }
    const all = Number(yield* send("GET", `${path}/count`))
    const most = all > few ? Math.floor(all / 10) : all
    const counted = yield* Effect.forEach(
      terms,
      (term) =>
        Effect.map(
          readPart(path, { where: chunks, where_document: contains(term), limit: most + 1, include: [] }),
          ({ ids }) => ({ term, count: ids.length })
        ),
      { concurrency: 8 }
    )
    const matchCounts = counted.filter(({ count }) => count > 0)
    const rare = matchCounts.filter(({ count }) => count <= most)
    return (rare.length > 0 ? rare : matchCounts.slice(0, 3)).map(
      ({ count, term }) => [term, Math.max(1e-6, Math.log((all - count + 0.5) / (count + 0.5)))] as const
    )
  })

  return {
    put: (table, records, dimensions) =>
      Effect.flatMap(create(table), ({ id }) =>
        Effect.asVoid(
          send("POST", `${database}/collections/${id}/upsert`, {
            ids: records.map((record) => record.id),
            // Each record needs a vector.
            embeddings: records.map(({ vector }) => (dimensions === undefined ? [1] : [...(vector ?? [])])),
            documents: records.map(({ terms }) => (terms === undefined ? null : toText(terms))),
            metadatas: records.map(toMetadata)
          })
        )
      ),
    get: (table, ids) =>
      ids.length === 0
        ? Effect.succeed([])
        : on<ReadonlyArray<unknown>>(table, [], (path) =>
            Effect.map(readPart(path, { ids, include: ["metadatas"] }), payloadsOf)
          ),
    list: (table, where) =>
      on<ReadonlyArray<unknown>>(table, [], (path) =>
        Effect.map(readPart(path, { where: toWhere(where), include: ["metadatas"] }), payloadsOf)
      ),
    remove: (table, where) =>
      on(table, undefined, (path) => Effect.asVoid(send("POST", `${path}/delete`, { where: toWhere(where) }))),
    nearest: (table, vector, where, limit) =>
      on<ReadonlyArray<FoundRecord>>(table, [], (path) =>
        Effect.flatMap(
          send("POST", `${path}/query`, {
            query_embeddings: [[...vector]],
            n_results: limit,
            where: toWhere(where),
            include: ["metadatas", "distances"]
          }),
          (value) =>
            value === undefined
              ? Effect.succeed([])
              : Effect.map(readNearest(value), ({ distances, metadatas }) =>
                  (metadatas[0] ?? []).map((payload, at) => ({ payload, score: 1 - (distances[0]?.[at] ?? 1) }))
                )
        )
      ),
    words: (table, terms, where, limit) =>
      on<ReadonlyArray<FoundRecord>>(table, [], (path) =>
        Effect.gen(function* (): Effect.fn.Return<ReadonlyArray<FoundRecord>, Reason> {
          const rarities = new Map(yield* countWords(path, terms))
          const parts = [...rarities.keys()].map(contains)
          if (parts.length === 0) return []
          const records = yield* readPart(path, {
            where: toWhere(where),
            where_document: parts.length === 1 ? parts[0] : { $or: parts },
            limit: candidates,
            include: ["metadatas", "documents"]
          })
          const scores = score(
            records.ids.map((_, at) => records.documents?.[at] ?? ""),
            rarities
          )
          return payloadsOf(records)
            .map((payload, at) => ({ payload, score: scores[at] ?? 0 }))
            .sort((left, right) => right.score - left.score)
            .slice(0, limit)
        })
      ),
    drop: (table) => Effect.asVoid(send("DELETE", `${database}/collections/${table}`))
  }
}

const toMetadata = ({ facets, payload }: NewRecord) => ({
  ...payload,
  ...Object.fromEntries(facets.map((facet) => [facetKey(facet), true]))
})
