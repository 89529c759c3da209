/**
 * An event-loop watchdog: how long a piece of work keeps everything else in its thread waiting.
 *
 * It counts the thread's own CPU time between two ticks of a timer: other processes and threads cost wall time only.
 * Collections of garbage are left out, since their cause is not known.
 */
import { PerformanceObserver, type PerformanceEntry } from "node:perf_hooks"
import { Effect } from "effect"

/** Nothing may keep the event loop for longer, in milliseconds. */
const longestBlock = 100

/** Between two ticks, in milliseconds. Work of that time may be counted as part of a block. */
const interval = 5

/** A block is worth a second look at this length already, in milliseconds. */
const suspicious = longestBlock / 4

interface Stretch {
  readonly from: number
  readonly to: number
  readonly cpu: number
}

const cpuMillis = (): number => {
  const { system, user } = process.threadCpuUsage()
  return (user + system) / 1000
}

const begin = () => {
  const collections: Array<PerformanceEntry> = []
  const observer = new PerformanceObserver((list) => void collections.push(...list.getEntries()))
  observer.observe({ entryTypes: ["gc"] })
  const stretches: Array<Stretch> = []
  let from = performance.now()
  let spent = cpuMillis()
  const tick = (): void => {
    const to = performance.now()
    const now = cpuMillis()
    if (now - spent > suspicious) stretches.push({ from, to, cpu: now - spent })
    from = to
    spent = now
  }
  const timer = setInterval(tick, interval)
  return {
    /** Ends the watch, and says how long the longest block was. */
    end: async (): Promise<number> => {
      tick()
      clearInterval(timer)
      // Collections are told a moment later.
      await new Promise((resolve) => setTimeout(resolve, 2))
      collections.push(...observer.takeRecords())
      observer.disconnect()
      const collecting = ({ from, to }: Stretch): number =>
        collections.reduce(
          (sum, { duration, startTime }) =>
            sum + Math.max(0, Math.min(to, startTime + duration) - Math.max(from, startTime)),
          0
        )
      return Math.max(0, ...stretches.map((stretch) => stretch.cpu - collecting(stretch)))
    }
  }
}

const referenceText = JSON.stringify(
  Array.from({ length: 10_000 }, (_, id) => ({ id, name: `name ${id}`, tags: ["a", "b"] }))
)

/** The CPU milliseconds for ten reads of `referenceText` on the machine of the limits. */
const referenceMillis = 45

/** How many times slower this machine is now than the machine of the limits; at least 1. */
const slowness = (): number => {
  const readings = Array.from({ length: 3 }, () => {
    const before = cpuMillis()
    for (let i = 0; i < 10; i++) JSON.parse(referenceText)
    return cpuMillis() - before
  })
  return Math.max(1, Math.min(...readings) / referenceMillis)
}

/** The result of an effect, and the longest time that it kept the event loop (CPU milliseconds). */
const timed = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<readonly [A, number], E, R> =>
  Effect.gen(function* () {
    const watch = begin()
    const exit = yield* Effect.exit(effect)
    const longest = yield* Effect.promise(watch.end)
    return [yield* exit, longest] as const
  })

/**
 * Dies when an effect keeps the event loop for longer than `limit`, also when it is tried again: the first time code
 * runs, it is compiled as well. A limit grows on a machine that is slower. The effect has to bear being run five times.
 */
export const watched = <A, E, R>(effect: Effect.Effect<A, E, R>, limit = longestBlock): Effect.Effect<A, E, R> =>
  Effect.gen(function* () {
    const blocks: Array<number> = []
    for (;;) {
      const [value, longest] = yield* timed(effect)
      if (longest <= limit) return value
      const allowed = Math.round(limit * slowness())
      if (longest <= allowed) return value
      blocks.push(Math.round(longest))
      if (blocks.length === 5) {
        return yield* Effect.die(new Error(`the event loop was blocked for ${blocks.join(", ")} ms (limit ${allowed})`))
      }
    }
  })
