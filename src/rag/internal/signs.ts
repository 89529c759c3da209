/** Signatures of vectors: one bit a dimension, by its side of a centre. A coarse search before the exact one. */

/** The signature of a vector. */
export const signOf = (vector: ArrayLike<number>, centre: ArrayLike<number>): Uint32Array => {
  const sign = new Uint32Array(Math.ceil(vector.length / 32))
  for (let index = 0; index < vector.length; index++) {
    if ((vector[index] ?? 0) > (centre[index] ?? 0)) sign[index >> 5] = (sign[index >> 5] ?? 0) | (1 << (index & 31))
  }
  return sign
}

/** The number of bits that are set. */
const countBits = (bits: number): number => {
  const pairs = bits - ((bits >>> 1) & 0x55555555)
  const nibbles = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333)
  return Math.imul((nibbles + (nibbles >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24
}

/** The distance of places that are left out. */
export const leftOut = 0xffff

/** Fills in the Hamming distances of the signatures from one place to another. */
export const measure = (
  signs: Uint32Array,
  wanted: Uint32Array,
  [from, to]: readonly [number, number],
  isKept: (place: number) => boolean,
  distances: Uint16Array
): void => {
  const width = wanted.length
  for (let place = from, at = from * width; place < to; place++, at += width) {
    if (!isKept(place)) {
      distances[place] = leftOut
      continue
    }
    let sum = 0
    for (let word = 0; word < width; word++) sum += countBits((wanted[word] ?? 0) ^ (signs[at + word] ?? 0))
    distances[place] = sum
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
