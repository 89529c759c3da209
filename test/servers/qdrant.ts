/**
 * A stand-in for a Qdrant server, after its OpenAPI document: collections, points, filters, dense and sparse queries. It
 * refuses what it does not know, as the server does. No server of Qdrant can be had here.
 */
import { Effect, Layer, Schema } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"

const Values = Schema.Array(Schema.Finite)
const Sparse = Schema.Struct({ indices: Schema.Array(Schema.Int), values: Values })
const Payload = Schema.Record(
  Schema.String,
  Schema.Union([Schema.String, Schema.Finite, Schema.Boolean, Schema.Array(Schema.String)])
)
const Uuid = Schema.String.check(Schema.isPattern(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/))
const Point = Schema.Struct({
  id: Uuid,
  vector: Schema.Union([Values, Schema.Struct({ words: Schema.optionalKey(Sparse) })]),
  payload: Payload
})
const Condition = Schema.Struct({
  key: Schema.String,
  match: Schema.optionalKey(
    Schema.Union([Schema.Struct({ any: Schema.Array(Schema.String) }), Schema.Struct({ value: Schema.String })])
  ),
  range: Schema.optionalKey(
    Schema.Struct({ gte: Schema.optionalKey(Schema.Finite), lt: Schema.optionalKey(Schema.Finite) })
  )
})
const Filter = Schema.Struct({ must: Schema.Array(Condition) })
const bodies = {
  create: Schema.Struct({
    vectors: Schema.Union([
      Schema.Struct({ size: Schema.Int, distance: Schema.Literal("Cosine") }),
      Schema.Record(Schema.String, Schema.Never)
    ]),
    sparse_vectors: Schema.optionalKey(Schema.Struct({ words: Schema.Struct({ modifier: Schema.Literal("idf") }) }))
  }),
  index: Schema.Struct({ field_name: Schema.String, field_schema: Schema.Literals(["keyword", "integer"]) }),
  put: Schema.Struct({ points: Schema.NonEmptyArray(Point) }),
  get: Schema.Struct({ ids: Schema.Array(Uuid), with_payload: Schema.Literal(true) }),
  scroll: Schema.Struct({
    filter: Filter,
    limit: Schema.Int,
    offset: Schema.NullOr(Schema.String),
    with_payload: Schema.Literal(true)
  }),
  remove: Schema.Struct({ filter: Filter }),
  query: Schema.Struct({
    query: Schema.Union([Values, Sparse]),
    using: Schema.optionalKey(Schema.Literal("words")),
    filter: Filter,
    limit: Schema.Int,
    with_payload: Schema.Literal(true)
  })
}

type Point = typeof Point.Type

interface Collection {
  readonly size: number | undefined
  readonly points: Map<string, Point>
}

const holds = ({ payload }: Point, { must }: typeof Filter.Type): boolean =>
  must.every(({ key, match, range }) => {
    const value = payload[key]
    const values = Array.isArray(value) ? value : [value]
    if (match !== undefined) {
      return "any" in match ? values.some((one) => match.any.includes(String(one))) : values.includes(match.value)
    }
    return typeof value === "number" && value >= (range?.gte ?? -Infinity) && value < (range?.lt ?? Infinity)
  })

const sparseOf = ({ vector }: Point) => ("words" in vector ? vector.words : undefined)

const dot = (left: ReadonlyArray<number>, right: ReadonlyArray<number>) =>
  left.reduce((sum, value, at) => sum + value * (right[at] ?? 0), 0)

/** The score of a point; `undefined` for a point that the query does not touch. */
const makeScore = (points: ReadonlyArray<Point>, query: typeof bodies.query.Type.query) => {
  if (!("indices" in query)) {
    return (point: Point) =>
      Array.isArray(point.vector)
        ? dot(query, point.vector) / Math.hypot(...query) / Math.hypot(...point.vector)
        : undefined
  }
  const all = points.flatMap((point) => sparseOf(point) ?? [])
  const rarity = new Map(
    query.indices.map((index) => {
      const found = all.filter(({ indices }) => indices.includes(index)).length
      return [index, Math.log(1 + (all.length - found + 0.5) / (found + 0.5))] as const
    })
  )
  return (point: Point) => {
    const own = sparseOf(point)
    const touched = own?.indices.some((index) => rarity.has(index)) === true
    return touched
      ? dot(
          own.indices.map((index) => rarity.get(index) ?? 0),
          own.values
        )
      : undefined
  }
}

type Answer = readonly [status: number, body: unknown]

const good = (result: unknown): Answer => [200, { result, status: "ok", time: 0 }]
const missing: Answer = [404, { status: { error: "Not found: Collection doesn't exist!" } }]

const decodeBody = <A>(schema: Schema.Codec<A, unknown>, body: unknown): A =>
  Schema.decodeUnknownSync(schema, { onExcessProperty: "error" })(body)

const answer = (collections: Map<string, Collection>, method: string, path: string, body: unknown): Answer => {
  const [, name = "", rest = ""] =
    /^\/collections\/([a-zA-Z0-9_-]{1,255})(\/[a-z/]+)?(?:\?wait=true)?$/.exec(path) ?? []
  const collection = collections.get(name)
  if (`${method} ${rest}` === "PUT ") {
    const { vectors } = decodeBody(bodies.create, body)
    if (collection !== undefined) return [409, { status: { error: "already exists" } }]
    collections.set(name, { size: "size" in vectors ? Number(vectors.size) : undefined, points: new Map() })
    return good(true)
  }
  if (collection === undefined) return missing
  const points = [...collection.points.values()]
  const show = ({ id, payload }: Point) => ({ id, payload })
  switch (`${method} ${rest}`) {
    case "DELETE ":
      return good(collections.delete(name))
    case "PUT /index":
      decodeBody(bodies.index, body)
      return good({ status: "completed" })
    case "PUT /points":
      for (const point of decodeBody(bodies.put, body).points) {
        if (Array.isArray(point.vector) && point.vector.length !== collection.size)
          return [400, "Vector dimension error"]
        collection.points.set(point.id, point)
      }
      return good({ status: "completed" })
    case "POST /points":
      return good(
        decodeBody(bodies.get, body)
          .ids.flatMap((id) => collection.points.get(id) ?? [])
          .map(show)
      )
    case "POST /points/scroll": {
      const { filter, limit, offset } = decodeBody(bodies.scroll, body)
      const sorted = points.filter((point) => holds(point, filter)).sort((left, right) => (left.id < right.id ? -1 : 1))
      const from = sorted.filter(({ id }) => offset === null || id >= offset)
      return good({ points: from.slice(0, limit).map(show), next_page_offset: from[limit]?.id ?? null })
    }
    case "POST /points/delete": {
      const { filter } = decodeBody(bodies.remove, body)
      for (const point of points) if (holds(point, filter)) collection.points.delete(point.id)
      return good({ status: "completed" })
    }
    case "POST /points/query": {
      const { filter, limit, query } = decodeBody(bodies.query, body)
      const score = makeScore(points, query)
      const scored = points
        .filter((point) => holds(point, filter))
        .flatMap((point) => {
          const value = score(point)
          return value === undefined ? [] : [{ ...show(point), version: 1, score: value }]
        })
      return good({ points: scored.sort((left, right) => right.score - left.score).slice(0, limit) })
    }
    default:
      return [404, { status: { error: `no ${method} ${rest}` } }]
  }
}

/** The client of a new, empty server. It gives other fibers their turn before each answer. */
export const layerQdrant = Layer.effect(
  HttpClient.HttpClient,
  Effect.sync(() => {
    const collections = new Map<string, Collection>()
    return HttpClient.make((request, url) =>
      Effect.map(Effect.yieldNow, () => {
        const sent = request.body._tag === "Uint8Array" ? JSON.parse(new TextDecoder().decode(request.body.body)) : {}
        const [status, body] = answer(collections, request.method, url.pathname + url.search, sent)
        return HttpClientResponse.fromWeb(request, new Response(JSON.stringify(body), { status }))
      })
    )
  })
)
