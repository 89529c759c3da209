/** Encodes vectors, and compares them. */
import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"

/** The most numbers that a vector may have. */
export const mostDimensions = 4096

/** Scales a vector to length 1; `undefined` if it has no direction. */
export const unit = (vector: ReadonlyArray<number>): Float32Array | undefined => {
  if (vector.length === 0 || vector.length > mostDimensions) return undefined
  // By the largest first: squares of large numbers overflow.
  let largest = 0
  for (const value of vector) largest = Math.max(largest, Math.abs(value))
  if (!Number.isFinite(largest) || largest === 0) return undefined
  let sum = 0
  for (const value of vector) sum += (value / largest) ** 2
  const length = Math.sqrt(sum)
  const scaled = new Float32Array(vector.length)
  for (let index = 0; index < scaled.length; index++) scaled[index] = (vector[index] ?? 0) / largest / length
  return scaled
}

/** A vector as text: base 64 of its numbers, 4 bytes each, the lowest first. */
export const encode = (vector: Float32Array): string => {
  const view = new DataView(new ArrayBuffer(vector.length * 4))
  vector.forEach((value, index) => view.setFloat32(index * 4, value, true))
  return Base64.encode(new Uint8Array(view.buffer))
}

/** Reads a vector. */
export const decode = (text: string): Float32Array | undefined => {
  const bytes = Result.getOrUndefined(Base64.decode(text))
  if (bytes === undefined || bytes.length % 4 !== 0) return undefined
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const vector = new Float32Array(bytes.length / 4)
  for (let index = 0; index < vector.length; index++) vector[index] = view.getFloat32(index * 4, true)
  return vector
}

/** The cosine of two vectors of length 1; `undefined` if their dimensions differ. */
export const similarity = (left: Float32Array, right: Float32Array): number | undefined => {
  if (left.length !== right.length) return undefined
  // Four sums at once: one sum alone waits for each of its additions.
  let [first, second, third, fourth] = [0, 0, 0, 0]
  const whole = left.length - (left.length % 4)
  for (let index = 0; index < whole; index += 4) {
    first += (left[index] ?? 0) * (right[index] ?? 0)
    second += (left[index + 1] ?? 0) * (right[index + 1] ?? 0)
    third += (left[index + 2] ?? 0) * (right[index + 2] ?? 0)
    fourth += (left[index + 3] ?? 0) * (right[index + 3] ?? 0)
  }
  for (let index = whole; index < left.length; index++) first += (left[index] ?? 0) * (right[index] ?? 0)
  return first + second + third + fourth
}
