/** The signatures of a namespace in memory. They follow the file before each search. */
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { SqlClient } from "effect/sql/SqlClient"
import { leftOut, measure, nearestPlaces } from "../../../support/store/signs.ts"
import { numberIn, type Reason, rowsOf } from "../rows.ts"
import { bytesIn, floatsOf } from "./rows.ts"

/** The signatures that were read: in the order of their chunks, each with its document. A removed one has document 0. */
interface Cache {
  readonly centre: Float32Array
  /** The version of the list of removed chunks, and the last row that was read of it. */
  readonly removedVersion: number
  removed: number
  count: number
  upto: number
  chunks: Float64Array
  documents: Float64Array
  signs: Uint32Array
}

/** Gives the nearest chunks by signature, as many as asked for or more. */
export interface Signatures {
  readonly candidates: (
    costsOf: (centre: Float32Array) => Uint16Array,
    count: number,
    documents: ReadonlySet<number> | undefined
  ) => Effect.Effect<ReadonlyArray<number>, Reason>
}

/** The rows that are read, and the signatures that are compared, before others get their turn. */
const pages = { rows: 2_000, places: 20_000 }

const grow = (cache: Cache, count: number, width: number): void => {
  if (count <= cache.chunks.length) return
  const room = Math.ceil(count * 1.5)
  const chunks = new Float64Array(room)
  chunks.set(cache.chunks)
  const documents = new Float64Array(room)
  documents.set(cache.documents)
  const signs = new Uint32Array(room * width)
  signs.set(cache.signs)
  Object.assign(cache, { chunks, documents, signs })
}

/** The place of a chunk: chunks only grow, so it is found by halves. */
const placeOf = (cache: Cache, chunk: number): number | undefined => {
  let low = 0
  let high = cache.count - 1
  while (low <= high) {
    const middle = (low + high) >> 1
    const middleChunk = cache.chunks[middle] ?? 0
    if (middleChunk === chunk) return middle
    if (middleChunk < chunk) low = middle + 1
    else high = middle - 1
  }
  return undefined
}

/** Holds the signatures of a namespace. */
export const makeSignatures = (sql: SqlClient, space: number): Signatures => {
  const turn = Semaphore.makeUnsafe(1)
  let cache: Cache | undefined

  const readAdded = Effect.fnUntraced(function* (to: Cache) {
    const width = Math.ceil(to.centre.length / 32)
    for (;;) {
      const rows = yield* rowsOf(sql`SELECT chunk, document, signs FROM rag_signs
        WHERE space = ${space} AND chunk > ${to.upto} ORDER BY chunk LIMIT ${pages.rows}`)
      grow(to, to.count + rows.length, width)
      for (const row of rows) {
        const bytes = bytesIn(row, "signs")
        if (bytes?.length !== width * 4) {
          return yield* Effect.fail<Reason>({ _tag: "Corrupt", problem: "a signature has another length" })
        }
        to.chunks[to.count] = numberIn(row, "chunk")
        to.documents[to.count] = numberIn(row, "document")
        to.signs.set(new Uint32Array(bytes.buffer), to.count * width)
        to.count++
        to.upto = numberIn(row, "chunk")
      }
      if (rows.length < pages.rows) return
      yield* Effect.yieldNow
    }
  })

  const readRemoved = Effect.fnUntraced(function* (from: Cache) {
    for (;;) {
      const rows = yield* rowsOf(sql`SELECT pk, chunk FROM rag_removed
        WHERE space = ${space} AND pk > ${from.removed} ORDER BY pk LIMIT ${pages.rows}`)
      for (const row of rows) {
        const place = placeOf(from, numberIn(row, "chunk"))
        if (place !== undefined) from.documents[place] = 0
        from.removed = numberIn(row, "pk")
      }
      if (rows.length < pages.rows) return
      yield* Effect.yieldNow
    }
  })

  const catchUp = Effect.gen(function* () {
    const [row] = yield* rowsOf(sql`SELECT centre, gone FROM rag_spaces WHERE pk = ${space}`)
    const centre = row === undefined ? undefined : bytesIn(row, "centre")
    if (row === undefined || centre === undefined) return undefined
    const removedVersion = numberIn(row, "gone")
    if (cache === undefined || cache.removedVersion !== removedVersion) {
      cache = {
        centre: floatsOf(centre),
        removedVersion,
        removed: 0,
        count: 0,
        upto: 0,
        chunks: new Float64Array(0),
        documents: new Float64Array(0),
        signs: new Uint32Array(0)
      }
    }
    const current = cache
    yield* readAdded(current)
    yield* readRemoved(current)
    return current
  })

  return {
    candidates: (costsOf, count, documents) =>
      turn.withPermit(
        Effect.gen(function* () {
          const current = yield* catchUp
          if (current === undefined) return []
          const costs = costsOf(current.centre)
          const distances = new Uint16Array(current.count).fill(leftOut)
          const isKept = (place: number) => {
            const document = current.documents[place] ?? 0
            return document !== 0 && (documents === undefined || documents.has(document))
          }
          for (let from = 0; from < current.count; from += pages.places) {
            if (from > 0) yield* Effect.yieldNow
            measure(current.signs, costs, [from, Math.min(current.count, from + pages.places)], isKept, distances)
          }
          return nearestPlaces(distances, count).map((place) => current.chunks[place] ?? 0)
        })
      )
  }
}
