/** Turns for others: work that never waits for anything would keep them, and its own time limit, from theirs. */

/** The time that work goes on before others have their turn, in milliseconds. */
const turnMillis = 10

/**
 * Asked between steps: whether it is somebody else's turn. Real time, whatever the clock: it is the process that waits.
 */
export const make = (): (() => boolean) => {
  let since: number | undefined
  return () => {
    const now = performance.now()
    since ??= now
    if (now - since < turnMillis) return false
    since = undefined
    return true
  }
}
