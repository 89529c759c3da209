/**
 * Schedules painting: at once for a key, at most thirty times a second for streams, and never before the terminal took
 * the last frame.
 */
import type { Terminal } from "./terminal.ts"

export interface Painter {
  readonly request: () => void
  /** Paints for a key, as soon as possible. */
  readonly now: () => void
  readonly pause: () => void
  readonly resume: () => void
  readonly stop: () => void
}

const every = 33
const slow = 10
const longest = 250

export const makePainter = (paint: () => void, terminal: Pick<Terminal, "isBusy" | "onTaken">): Painter => {
  let timer: NodeJS.Timeout | undefined
  let soon: NodeJS.Immediate | undefined
  let last = 0
  /** A slow terminal stays free for as long as it took the last frame, so that keys go first. */
  let notBefore = 0
  let isStopped = false
  /** The frame to paint once the terminal took the last one. */
  let wanted: "frame" | "key" | undefined

  const run = (): void => {
    clearTimeout(timer)
    clearImmediate(soon)
    timer = undefined
    soon = undefined
    if (isStopped) return
    if (terminal.isBusy()) {
      wanted ??= "frame"
      return
    }
    paint()
    last = performance.now()
  }
  const request = (): void => {
    if (isStopped || timer !== undefined || soon !== undefined) return
    if (terminal.isBusy()) {
      wanted ??= "frame"
      return
    }
    timer = setTimeout(run, Math.max(0, Math.max(last + every, notBefore) - performance.now()))
  }
  const paintNow = (): void => {
    if (isStopped || soon !== undefined) return
    if (terminal.isBusy()) wanted = "key"
    else soon = setImmediate(run)
  }
  const forget = terminal.onTaken((took) => {
    notBefore = took > slow ? performance.now() + Math.min(longest, took) : 0
    const what = wanted
    wanted = undefined
    if (what === "key") paintNow()
    if (what === "frame") request()
  })
  return {
    request,
    now: paintNow,
    pause: () => {
      isStopped = true
    },
    resume: () => {
      isStopped = false
      run()
    },
    stop: () => {
      isStopped = true
      forget()
      clearTimeout(timer)
      clearImmediate(soon)
    }
  }
}
