/**
 * A version made from what a file holds: the same bytes have the same one. It tells changes apart; it is no protection
 * against who looks for two contents with one version.
 */

/** Takes the bytes piece by piece, cut anywhere. */
export interface Digest {
  readonly add: (bytes: Uint8Array) => void
  readonly version: () => string
}

const mixLow = (hash: number, word: number): number => {
  const mixed = Math.imul(hash ^ word, 0x9e3779b1)
  return mixed ^ (mixed >>> 15)
}

const mixHigh = (hash: number, word: number): number => {
  const mixed = Math.imul(hash ^ word, 0x85ebca6b)
  return mixed ^ (mixed >>> 13)
}

const digit = (hash: number): string => (hash >>> 0).toString(36)

export const digest = (): Digest => {
  let low = 0x811c9dc5
  let high = 0x9e3779b9
  let size = 0
  // The bytes of an incomplete word, and their number.
  let word = 0
  let open = 0
  return {
    add: (bytes) => {
      size += bytes.length
      let index = 0
      for (; open > 0 && index < bytes.length; index++) {
        word |= (bytes[index] ?? 0) << (8 * open)
        open = (open + 1) % 4
        if (open > 0) continue
        low = mixLow(low, word)
        high = mixHigh(high, word)
        word = 0
      }
      let [first, second] = [low, high]
      for (; index + 4 <= bytes.length; index += 4) {
        const next =
          (bytes[index] ?? 0) |
          ((bytes[index + 1] ?? 0) << 8) |
          ((bytes[index + 2] ?? 0) << 16) |
          ((bytes[index + 3] ?? 0) << 24)
        first = mixLow(first, next)
        second = mixHigh(second, next)
      }
      low = first
      high = second
      for (; index < bytes.length; index++, open++) word |= (bytes[index] ?? 0) << (8 * open)
    },
    version: () => `${digit(mixLow(low, word))}-${digit(mixHigh(high, word))}-${digit(size)}`
  }
}

export const versionOf = (bytes: Uint8Array): string => {
  const whole = digest()
  whole.add(bytes)
  return whole.version()
}
