/** Synchronous SHA-256 (FIPS 180-4) of short texts: `crypto.subtle` gives promises only, and `node:crypto` is not portable. */

/** The first 32 bits of the fractions of roots of the first primes. */
const fractions = (count: number, root: number): Uint32Array => {
  const words = new Uint32Array(count)
  for (let candidate = 2, primes = 0; primes < count; candidate++) {
    let isPrime = true
    for (let divisor = 2; divisor * divisor <= candidate; divisor++) isPrime &&= candidate % divisor !== 0
    if (isPrime) words[primes++] = (candidate ** (1 / root) % 1) * 2 ** 32
  }
  return words
}

const initial = fractions(8, 2)
const rounds = fractions(64, 3)

const rotate = (word: number, by: number): number => (word >>> by) | (word << (32 - by))

/** The message with its padding: a one, zeros, and its length in bits. */
const padMessage = (bytes: Uint8Array): DataView => {
  const view = new DataView(new ArrayBuffer(Math.ceil((bytes.length + 9) / 64) * 64))
  new Uint8Array(view.buffer).set(bytes)
  view.setUint8(bytes.length, 0x80)
  view.setBigUint64(view.byteLength - 8, BigInt(bytes.length) * 8n)
  return view
}

/** The SHA-256 of a text in UTF-8, in hexadecimal digits. */
export const sha256Sync = (text: string): string => {
  const message = padMessage(new TextEncoder().encode(text))
  const state = initial.slice()
  const at = (words: Uint32Array, index: number): number => words[index] ?? 0
  const schedule = new Uint32Array(64)
  for (let block = 0; block < message.byteLength; block += 64) {
    for (let index = 0; index < 64; index++) {
      const near = at(schedule, index - 15)
      const far = at(schedule, index - 2)
      schedule[index] =
        index < 16
          ? message.getUint32(block + index * 4)
          : at(schedule, index - 16) +
            (rotate(near, 7) ^ rotate(near, 18) ^ (near >>> 3)) +
            at(schedule, index - 7) +
            (rotate(far, 17) ^ rotate(far, 19) ^ (far >>> 10))
    }
    let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state
    for (let index = 0; index < 64; index++) {
      const mixed =
        (h +
          (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
          ((e & f) ^ (~e & g)) +
          at(rounds, index) +
          at(schedule, index)) |
        0
      const majority = ((rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0
      ;[h, g, f, e, d, c, b, a] = [g, f, e, (d + mixed) | 0, c, b, a, (mixed + majority) | 0]
    }
    for (const [index, word] of [a, b, c, d, e, f, g, h].entries()) state[index] = at(state, index) + word
  }
  return Array.from(state, (word) => word.toString(16).padStart(8, "0")).join("")
}
