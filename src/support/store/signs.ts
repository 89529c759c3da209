/** Signatures of vectors: one bit a dimension, by its side of a centre. A coarse search before the exact one. */

/** The signature of a vector. */
export const signOf = (vector: ArrayLike<number>, centre: ArrayLike<number>): Uint32Array => {
  const sign = new Uint32Array(Math.ceil(vector.length / 32))
  for (let index = 0; index < vector.length; index++) {
    if ((vector[index] ?? 0) > (centre[index] ?? 0)) sign[index >> 5] = (sign[index >> 5] ?? 0) | (1 << (index & 31))
  }
  return sign
}

/** The distance of places that are left out. */
export const leftOut = 0xffff

/** The largest distance of two signatures. */
const most = 60_000

/**
 * The distances from a vector for each byte of a signature, 256 a byte. A bit on the other side of the centre counts as
 * much as the vector is away from the centre there: bits that nearly differ count little.
 */
export const costsOf = (vector: ArrayLike<number>, centre: ArrayLike<number>): Uint16Array => {
  const own = new Uint8Array(signOf(vector, centre).buffer)
  const weights = new Float64Array(own.length * 8)
  for (let at = 0; at < vector.length; at++) weights[at] = Math.abs((vector[at] ?? 0) - (centre[at] ?? 0))
  const scale =
    most /
    Math.max(
      1e-30,
      weights.reduce((sum, weight) => sum + weight, 0)
    )
  const costs = new Uint16Array(own.length * 256)
  const sums = new Float64Array(256)
  for (let byte = 0; byte < own.length; byte++) {
    for (let differing = 1; differing < 256; differing++) {
      const lowest = 31 - Math.clz32(differing & -differing)
      sums[differing] = (sums[differing & (differing - 1)] ?? 0) + (weights[byte * 8 + lowest] ?? 0)
      costs[byte * 256 + (differing ^ (own[byte] ?? 0))] = Math.round((sums[differing] ?? 0) * scale)
    }
  }
  return costs
}

/** The distance of the signature that begins at a byte. */
export const distanceAt = (bytes: Uint8Array, at: number, costs: Uint16Array): number => {
  const width = costs.length / 256
  let sum = 0
  for (let byte = 0; byte < width; byte++) sum += costs[byte * 256 + (bytes[at + byte] ?? 0)] ?? 0
  return sum
}

/** Fills in the distances of the signatures from one place to another. */
export const measure = (
  signs: Uint32Array,
  costs: Uint16Array,
  [from, to]: readonly [number, number],
  isKept: (place: number) => boolean,
  distances: Uint16Array
): void => {
  const bytes = new Uint8Array(signs.buffer, signs.byteOffset, signs.byteLength)
  const width = costs.length / 256
  for (let place = from, at = from * width; place < to; place++, at += width) {
    distances[place] = isKept(place) ? distanceAt(bytes, at, costs) : leftOut
  }
}

/** The places of the `count` smallest distances, and of others as near as the last of them: by a histogram, unsorted. */
export const nearestPlaces = (distances: Uint16Array, count: number): Array<number> => {
  const histogram = new Uint32Array(leftOut)
  for (const distance of distances) if (distance !== leftOut) histogram[distance] = (histogram[distance] ?? 0) + 1
  let limit = 0
  for (let sum = 0; limit < histogram.length; limit++) {
    sum += histogram[limit] ?? 0
    if (sum >= count) break
  }
  const places: Array<number> = []
  for (let place = 0; place < distances.length; place++)
    if ((distances[place] ?? leftOut) <= limit && distances[place] !== leftOut) places.push(place)
  return places
}

/** The mean of some vectors. */
export const centreOf = (vectors: ReadonlyArray<ArrayLike<number>>): Float32Array => {
  const centre = new Float32Array(vectors[0]?.length ?? 0)
  for (const vector of vectors) {
    for (let index = 0; index < centre.length; index++) {
      centre[index] = (centre[index] ?? 0) + (vector[index] ?? 0) / vectors.length
    }
  }
  return centre
}
