/**
 * Call ids that any provider accepts, each used once in a history.
 */

interface Taken {
  readonly id: string
  readonly base: string
  /** The number at which the search for a free id of this base began. */
  readonly before: number
}

/**
 * `take` gives an id for the wire: itself where it is fit and free, else one made from it, the same for the same
 * history. `rewind` takes back all but the first `count`.
 */
export const makeCallIds = (limit: number) => {
  const log: Array<Taken> = []
  const used = new Set<string>()
  const next = new Map<string, number>()

  const numbered = (base: string, number: number): string => {
    if (number === 1) return base
    const suffix = `_${number}`
    return base.slice(0, limit - suffix.length) + suffix
  }

  return {
    count: (): number => log.length,
    take: (id: string): string => {
      const base = id.replaceAll(/[^a-zA-Z0-9_-]/g, "_").slice(0, limit) || "call"
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
