/** The vectors of a namespace's facts in memory. Of many, the nearest by signature are compared exactly. */
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import { centreOf, costsOf, distanceAt, nearestPlaces, signOf } from "../../support/store/signs.ts"
import * as Vectors from "../../support/store/vectors.ts"

/** Signatures by facts, about a centre. */
interface Signatures {
  readonly centre: Float32Array
  /** The vectors that there were when the centre was found. */
  readonly count: number
  readonly byId: Map<string, Uint8Array>
}

/** A fact with the cosine of its angle to a query. */
export interface Near {
  readonly id: string
  readonly similarity: number
}

/** Vectors by facts. */
export interface FactVectors {
  readonly get: (id: string) => Float32Array | undefined
  readonly set: (id: string, vector: Float32Array) => void
  readonly delete: (id: string) => void
  /** The nearest of the allowed facts: `count` or more, the nearest first. */
  readonly nearest: (
    wanted: Float32Array,
    count: number,
    isAllowed: (id: string) => boolean
  ) => Effect.Effect<ReadonlyArray<Near>>
}

/** Up to so many numbers, all vectors are compared; of more, at least so many; and so many in one turn. */
const sizes = { numbers: 1_000_000, least: 640, page: 2_000 } as const

const signatureOf = (vector: Float32Array, centre: Float32Array) => new Uint8Array(signOf(vector, centre).buffer)

/** Makes an empty set of vectors. */
export const make = (): FactVectors => {
  const byId = new Map<string, Float32Array>()
  let signatures: Signatures | undefined
  const turn = Semaphore.makeUnsafe(1)

  /** Gives the signatures of vectors of some dimensions, about a centre of at least half of them. */
  const sign = Effect.fnUntraced(function* (dimensions: number) {
    if (signatures?.centre.length === dimensions && byId.size <= 2 * signatures.count) return signatures
    const some = [...byId.values()].filter(({ length }) => length === dimensions).slice(0, sizes.page)
    const signed: Signatures = { centre: centreOf(some), count: byId.size, byId: new Map() }
    // From here on, a vector that changes is signed by `set`.
    signatures = signed
    let count = 0
    for (const [id, vector] of byId) {
      if (vector.length === dimensions) signed.byId.set(id, signatureOf(vector, signed.centre))
      if (++count % sizes.page === 0) yield* Effect.yieldNow
    }
    return signed
  })

  /** The facts whose signatures are nearest. A fact that came since is among them. */
  const selectNearest = Effect.fnUntraced(function* (wanted: Float32Array, count: number, ids: ReadonlyArray<string>) {
    // Facts that are not signed yet would displace the nearest ones, so a search waits for the signing of another one.
    const { byId: signs, centre } = yield* turn.withPermit(Effect.uninterruptible(sign(wanted.length)))
    const costs = costsOf(wanted, centre)
    const distances = Uint16Array.from(ids, (id) => {
      const signature = signs.get(id)
      return signature === undefined ? 0 : distanceAt(signature, 0, costs)
    })
    return nearestPlaces(distances, count).map((place) => ids[place] ?? "")
  })

  return {
    get: (id) => byId.get(id),
    set: (id, vector) => {
      byId.set(id, vector)
      if (signatures?.centre.length === vector.length) signatures.byId.set(id, signatureOf(vector, signatures.centre))
    },
    delete: (id) => {
      byId.delete(id)
      signatures?.byId.delete(id)
    },
    nearest: Effect.fnUntraced(function* (wanted, count, isAllowed) {
      const ids: Array<string> = []
      for (const [id, { length }] of byId) if (length === wanted.length && isAllowed(id)) ids.push(id)
      const least = Math.max(count * 16, sizes.least)
      const isFew = ids.length * wanted.length <= sizes.numbers || ids.length <= least
      const compared = isFew ? ids : yield* selectNearest(wanted, least, ids)
      const hits: Array<Near> = []
      for (const [at, id] of compared.entries()) {
        const vector = byId.get(id)
        const similarity = vector === undefined ? undefined : Vectors.similarity(wanted, vector)
        if (similarity !== undefined) hits.push({ id, similarity })
        if (at % sizes.page === sizes.page - 1) yield* Effect.yieldNow
      }
      return hits.sort((left, right) => right.similarity - left.similarity)
    })
  }
}
