// Measures one scenario of one peer, in a process of its own: `node measure.mjs <peer> <scenario> [effort]`.
// The last line it prints is the result as JSON. Plain JavaScript: type stripping would add 18 MB and 40 ms.
import { median, prepare, repeat, workloads } from "./workloads.mjs"

const [name, scenario, effort = 1] = process.argv.slice(2)

const megabytes = (bytes) => bytes / 1e6

/** D: import, build an agent, let it do one round. */
const cold = async () => {
  const start = performance.now()
  const peer = await import(`./peers/${name}.mjs`)
  await prepare(peer, { rounds: 1 })()
  return { value: performance.now() - start, memory: megabytes(process.memoryUsage.rss()) }
}

const warm = async ({ options, warm, value, waves }) => {
  const peer = await import(`./peers/${name}.mjs`)
  await repeat(prepare(peer, { ...options, ...warm }), 800 * effort)
  const builds = []
  const built = () => {
    const start = performance.now()
    const run = prepare(peer, options)
    builds.push(performance.now() - start)
    return run
  }
  const run = built()
  let times
  if (waves === undefined) times = await repeat(run, 1_500 * effort, effort < 1 ? 1 : 3)
  else {
    times = [await run()]
    while (times.length < waves) times.push(await built()())
  }
  const build = median(builds)
  const best = value(Math.min(...times))
  return { value: value(median(times)), best, build, memory: megabytes(process.resourceUsage().maxRSS * 1_024) }
}

const result = await (scenario === "D" ? cold() : warm(workloads[scenario]))
console.log(JSON.stringify(result))
process.exit(0)
