/** Tables of records in collections of a Qdrant server. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { sha256Sync } from "../../../support/store/sha256.ts"
import type { Reason } from "../rows.ts"
import type { Condition, Conditions, FoundRecord, NewRecord, Tables } from "./records.ts"
import type { Send } from "./server.ts"

const Point = Schema.Struct({
  score: Schema.optionalKey(Schema.Finite),
  payload: Schema.optionalKey(Schema.NullOr(Schema.Record(Schema.String, Schema.Unknown)))
})
const Points = Schema.Struct({ result: Schema.Array(Point) })
const Page = Schema.Struct({
  result: Schema.Struct({
    points: Schema.Array(Point),
    next_page_offset: Schema.optionalKey(Schema.NullOr(Schema.Union([Schema.String, Schema.Finite])))
  })
})

const decode =
  <A>(schema: Schema.Codec<A, unknown, never, never>) =>
  (value: unknown): Effect.Effect<A, Reason> =>
    Effect.mapError(Schema.decodeUnknownEffect(schema)(value), (): Reason => ({
      _tag: "Unavailable",
      problem: "the server's answer is none of Qdrant; check the address"
    }))

const readPoints = decode(Points)
const readPage = decode(Page)

/** The id of a point: Qdrant takes UUIDs. */
const pointId = (id: string): string => sha256Sync(id).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, "$1-$2-$3-$4-$5")

const toCondition = (condition: Condition): unknown => {
  switch (condition._tag) {
    case "Any":
      return { key: condition.key, match: { any: condition.values } }
    case "Facet":
      return { key: "facets", match: { value: condition.facet } }
    case "Between":
      return { key: condition.key, range: { gte: condition.from, lt: condition.to } }
  }
}

const toFilter = (conditions: Conditions) => ({ must: conditions.map(toCondition) })

/** The number of a word in sparse vectors. */
const numberOf = (term: string): number => Number.parseInt(sha256Sync(term).slice(0, 8), 16)

/** The words that a chunk has on average, for BM25: Qdrant's own number. */
const average = 256

/** The part of BM25 that is of a chunk. The server knows how rare words are. */
const toSparse = (terms: ReadonlyArray<string>) => {
  const counts = new Map<number, number>()
  for (const term of terms) {
    const number = numberOf(term)
    counts.set(number, (counts.get(number) ?? 0) + 1)
  }
  const weight = 1.2 * (0.25 + (0.75 * terms.length) / average)
  return {
    indices: [...counts.keys()],
    values: [...counts.values()].map((count) => (count * 2.2) / (count + weight))
  }
}

const toVector = ({ terms, vector }: NewRecord) =>
  vector === undefined ? (terms === undefined ? {} : { words: toSparse(terms) }) : [...vector]

/** The keys of payloads that are filtered by. */
const indexed = {
  kind: "keyword",
  document: "keyword",
  version: "keyword",
  source: "keyword",
  facets: "keyword",
  at: "integer"
}

const payloadsOf = (points: ReadonlyArray<typeof Point.Type>): ReadonlyArray<unknown> =>
  points.map(({ payload }) => payload)

/** Makes the tables. */
export const makeQdrantTables = (send: Send): Tables => {
  const knownTables = new Set<string>()

  const create = Effect.fnUntraced(function* (table: string, dimensions: number | undefined) {
    if (knownTables.has(table)) return
    const vectors =
      dimensions === undefined
        ? { vectors: {}, sparse_vectors: { words: { modifier: "idf" } } }
        : { vectors: { size: dimensions, distance: "Cosine" } }
    yield* send("PUT", `/collections/${table}`, vectors)
    for (const [key, schema] of Object.entries(indexed)) {
      yield* send("PUT", `/collections/${table}/index?wait=true`, { field_name: key, field_schema: schema })
    }
    knownTables.add(table)
  })

  const query = (table: string, body: unknown) =>
    Effect.flatMap(send("POST", `/collections/${table}/points/query`, body), (value) =>
      value === undefined
        ? Effect.succeed<ReadonlyArray<FoundRecord>>([])
        : Effect.map(readPage(value), ({ result }) =>
            result.points.map(({ payload, score = 0 }) => ({ payload, score }))
          )
    )

  const sendPoints = (table: string, points: unknown) =>
    send("PUT", `/collections/${table}/points?wait=true`, { points })

  return {
    put: Effect.fnUntraced(function* (table, records, dimensions) {
      yield* create(table, dimensions)
      const points = records.map((record) => ({
        id: pointId(record.id),
        vector: toVector(record),
        payload: { ...record.payload, facets: record.facets }
      }))
      if ((yield* sendPoints(table, points)) !== undefined) return
      // Another process dropped the table.
      knownTables.delete(table)
      yield* create(table, dimensions)
      yield* sendPoints(table, points)
    }),
    get: (table, ids) =>
      ids.length === 0
        ? Effect.succeed([])
        : Effect.flatMap(
            send("POST", `/collections/${table}/points`, { ids: ids.map(pointId), with_payload: true }),
            (value) =>
              value === undefined
                ? Effect.succeed([])
                : Effect.map(readPoints(value), ({ result }) => payloadsOf(result))
          ),
    list: Effect.fnUntraced(function* (table, where) {
      const all: Array<unknown> = []
      let offset: string | number | null = null
      do {
        const value: unknown = yield* send("POST", `/collections/${table}/points/scroll`, {
          filter: toFilter(where),
          limit: 1_000,
          offset,
          with_payload: true
        })
        if (value === undefined) return all
        const { result }: typeof Page.Type = yield* readPage(value)
        all.push(...payloadsOf(result.points))
        offset = result.next_page_offset ?? null
      } while (offset !== null)
      return all
    }),
    remove: (table, where) =>
      Effect.asVoid(send("POST", `/collections/${table}/points/delete?wait=true`, { filter: toFilter(where) })),
    nearest: (table, vector, where, limit) =>
      query(table, { query: [...vector], filter: toFilter(where), limit, with_payload: true }),
    words: (table, terms, where, limit) =>
      query(table, {
        query: { indices: [...new Set(terms.map(numberOf))], values: [...new Set(terms.map(numberOf))].map(() => 1) },
        using: "words",
        filter: toFilter(where),
        limit,
        with_payload: true
      }),
    drop: (table) =>
      Effect.andThen(
        Effect.sync(() => knownTables.delete(table)),
        Effect.asVoid(send("DELETE", `/collections/${table}`))
      )
  }
}
