/** Call ids that any provider accepts, each used once in a history. */

interface TakenId {
  readonly id: string
  readonly base: string
  /** The number at which the search for a free id of this base began. */
  readonly before: number
}

const letters = "0123456789abcdefghijklmnopqrstuvwxyz"

/** So many letters and digits that stand for a text (FNV, twice: for 9 of them one run has too few bits). */
const digest = (text: string, length: number): string => {
  let [low, high] = [0x811c9dc5, 0x9747b28c]
  for (let at = 0; at < text.length; at++) {
    low = Math.imul(low ^ text.charCodeAt(at), 0x01000193)
    high = Math.imul(high ^ text.charCodeAt(at), 0x85ebca6b)
  }
  let digits = ""
  for (let at = 0; at < length; at++) {
    low = Math.imul(low ^ (high >>> 15), 0x01000193)
    high = Math.imul(high ^ (low >>> 13), 0x85ebca6b)
    digits += letters[((low ^ high) >>> 0) % letters.length]
  }
  return digits
}

/**
 * `take` gives an id for the wire: itself where it is fit and free, else one made from it, the same for the same
 * history. With `exactly` all have that many letters and digits. `rewind` takes back all but the first `count`.
 */
export const makeCallIds = (limit: number, exactly = false) => {
  const isFit = new RegExp(`^[a-zA-Z0-9]{${limit}}$`)
  const log: Array<TakenId> = []
  const used = new Set<string>()
  const next = new Map<string, number>()

  const numbered = (base: string, number: number): string => {
    if (number === 1) return base
    if (exactly) return digest(`${base} ${number}`, limit)
    const suffix = `_${number}`
    return base.slice(0, limit - suffix.length) + suffix
  }

  return {
    count: (): number => log.length,
    take: (id: string): string => {
      const base = exactly
        ? isFit.test(id)
          ? id
          : digest(id, limit)
        : id.replaceAll(/[^a-zA-Z0-9_-]/g, "_").slice(0, limit) || "call"
      const before = next.get(base) ?? 1
      let number = before
      while (used.has(numbered(base, number))) number++
      const own = numbered(base, number)
      used.add(own)
      next.set(base, number + 1)
      log.push({ id: own, base, before })
      return own
    },
    rewind: (count: number): void => {
      for (let last = log.at(-1); last !== undefined && log.length > count; last = log.at(-1)) {
        log.pop()
        used.delete(last.id)
        next.set(last.base, last.before)
      }
    }
  }
}
