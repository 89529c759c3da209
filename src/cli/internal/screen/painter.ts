/**
 * When to paint: at once for a key, at most thirty times a second for what streams, and seldom where the terminal is
 * slow to take it. Nobody waits for it.
 */

export interface Painter {
  readonly request: () => void
  /** For what a person did. */
  readonly now: () => void
  readonly pause: () => void
  readonly resume: () => void
  readonly stop: () => void
}

const every = 33
const slow = 10
const longest = 2_000

export const makePainter = (paint: () => void): Painter => {
  let timer: NodeJS.Timeout | undefined
  let soon: NodeJS.Immediate | undefined
  let last = 0
  /** A terminal that took long to take a frame is given none for a while: a write to it holds up everything. */
  let notBefore = 0
  let isStopped = false

  const run = (): void => {
    clearTimeout(timer)
    clearImmediate(soon)
    timer = undefined
    soon = undefined
    if (isStopped) return
    const began = performance.now()
    paint()
    last = performance.now()
    const took = last - began
    notBefore = took > slow ? last + Math.min(longest, took * 10) : 0
  }
  const later = (millis: number): void => {
    timer ??= setTimeout(run, Math.max(0, millis))
  }
  return {
    request: () => {
      if (isStopped || timer !== undefined || soon !== undefined) return
      const now = performance.now()
      later(Math.max(last + every, notBefore) - now)
    },
    now: () => {
      if (isStopped || soon !== undefined) return
      if (performance.now() < notBefore) return later(notBefore - performance.now())
      soon = setImmediate(run)
    },
    pause: () => {
      isStopped = true
    },
    resume: () => {
      isStopped = false
      run()
    },
    stop: () => {
      isStopped = true
      clearTimeout(timer)
      clearImmediate(soon)
    }
  }
}
