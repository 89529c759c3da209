// The scenarios as data. `warm` is what a run is made smaller by to warm up; `value` turns the milliseconds of a run
// into what is reported.
import { makeScript } from "./script.mjs"

const rounds = (count, more) => ({
  options: { rounds: count, ...more },
  warm: { rounds: Math.min(count, 50) },
  value: (ms) => (ms * 1_000) / count
})

const chunks = (count, more) => ({
  options: { answer: count, ...more },
  warm: { answer: 2_000 },
  value: (ms) => (ms * 1_000) / count
})

/** Many agents at once, in waves: each builds them anew and has them wait for their model at the same time. */
const crowd = (agents, waves) => ({
  options: { agents, rounds: 5, latency: 20 },
  warm: { agents: 50, latency: 0 },
  value: (ms) => ms / (6 * 20),
  waves
})

export const workloads = {
  A10: rounds(10),
  A100: rounds(100),
  A500: rounds(500),
  B: chunks(20_000),
  B100k: chunks(100_000),
  B64: chunks(100_000, { batch: 64 }),
  C: crowd(1_000, 5),
  C10k: crowd(10_000, 1),
  E: { options: { rounds: 1, calls: 50, toolTime: 20 }, warm: { toolTime: 0 }, value: (ms) => ms / 20 },
  // As much as fits a window of 200,000 tokens before anybody compacts it.
  F: rounds(10, { before: 400 })
}

/** Builds the agents of a workload. The result runs them all once, checks what they did and says how long they took. */
export const prepare = ({ history, make }, { agents = 1, ...options }) => {
  const before = history(options.before ?? 0)
  const them = Array.from({ length: agents }, () => {
    const script = makeScript(options)
    return { script, run: make(script) }
  })
  return async () => {
    const start = performance.now()
    const texts = await Promise.all(them.map(({ run }) => run(before)))
    const ms = performance.now() - start
    them.forEach(({ script }, index) => script.verify(texts[index]))
    return ms
  }
}

/** Runs until `ms` are over, but `least` times. The milliseconds of each run. */
export const repeat = async (run, ms, least = 1) => {
  const times = []
  for (let spent = 0; spent < ms || times.length < least; spent += times.at(-1)) times.push(await run())
  return times
}

export const median = (numbers) => {
  const sorted = numbers.toSorted((a, b) => a - b)
  const half = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2
}
