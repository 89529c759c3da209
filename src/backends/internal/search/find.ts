/**
 * Finds literal text in linear time.
 *
 * `String.prototype.indexOf` can take time proportional to the product of both lengths. Here the engine's own search
 * looks for the beginning of the text, and an automaton takes over when that leads astray too often.
 */

/** The longest text for the engine's own search. */
const probeLength = 32

/** Knuth, Morris and Pratt: how much of the needle still stands after a mismatch behind its first n characters. */
const failureOf = (needle: string): Int32Array => {
  const failure = new Int32Array(needle.length + 1)
  let matched = 0
  for (let i = 1; i < needle.length; i++) {
    while (matched > 0 && needle.charCodeAt(i) !== needle.charCodeAt(matched)) matched = failure[matched] ?? 0
    if (needle.charCodeAt(i) === needle.charCodeAt(matched)) matched++
    failure[i + 1] = matched
  }
  return failure
}

/**
 * Calls `visit` with each place where `needle` (not empty) is in `text` from `from` on, until it says `false`.
 * `overlapping` places are given too, or only those after the end of the last one.
 */
export const forEachOccurrence = (
  text: string,
  needle: string,
  options: { readonly from?: number | undefined; readonly overlapping: boolean },
  visit: (at: number) => boolean
): void => {
  const step = options.overlapping ? 1 : needle.length
  const probe = needle.slice(0, probeLength)
  const isProbe = needle.length <= probeLength
  let from = options.from ?? 0
  // Each candidate costs the needle's length at most: as many as cost one pass over the text are taken.
  let budget = text.length - from + 64 * needle.length
  for (;;) {
    const at = text.indexOf(probe, from)
    if (at === -1) return
    if (!isProbe) {
      budget -= needle.length
      if (budget < 0) {
        from = at
        break
      }
    }
    const isMatch = isProbe || text.startsWith(needle, at)
    if (isMatch && !visit(at)) return
    from = at + (isMatch ? step : 1)
  }
  const failure = failureOf(needle)
  let matched = 0
  for (let i = from; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    while (matched > 0 && unit !== needle.charCodeAt(matched)) matched = failure[matched] ?? 0
    if (unit === needle.charCodeAt(matched)) matched++
    if (matched === needle.length) {
      if (!visit(i + 1 - needle.length)) return
      matched = options.overlapping ? (failure[matched] ?? 0) : 0
    }
  }
}

/** Finds where `needle` (not empty) is in `text` for the first time from `from` on, or -1. */
export const indexOf = (text: string, needle: string, from = 0): number => {
  let index = -1
  forEachOccurrence(text, needle, { from, overlapping: false }, (at) => {
    index = at
    return false
  })
  return index
}
