// Measures what only deep agents do, in a process of its own: `node deep-measure.mjs <peer> <scenario> [effort]`.
// The last line it prints is the result as JSON.
import { makeFan } from "./script.mjs"
import { median, repeat } from "./workloads.mjs"

const [name, scenario, effort = 1] = process.argv.slice(2)
const peer = await import(`./peers/${name}.mjs`)

const timed = (run, check) => async () => {
  const start = performance.now()
  const result = await run()
  const ms = performance.now() - start
  check(result)
  return ms
}

const memory = () => process.resourceUsage().maxRSS / 1_000

/** A run on a conversation of 10,000 messages, 280,000 tokens, that is summarised first. */
const compaction = async () => {
  const check = (summaries) => {
    if (summaries < 1) throw new Error("nothing was summarised")
  }
  await timed(peer.compaction(10_000), check)()
  const run = peer.compaction(10_000)
  return { value: median(await repeat(timed(run, check), 2_000 * effort, 2)), memory: memory() }
}

/** 200 sub-agents at once, a model that waits 20 ms: 60 ms at best. */
const fan = async () => {
  const run = (count, latency) => {
    const script = makeFan(count, latency)
    return timed(peer.fan(script), script.verify)
  }
  await repeat(run(20, 0), 1_000 * effort)
  return { value: median(await repeat(run(200, 20), 2_000 * effort, 2)) / (3 * 20), memory: memory() }
}

/** The longest that a run waits for its next turn, with summaries in the background and without. */
const waits = async () => {
  const longest = async (background) => median(await repeat(peer.outgrowing(background), 0, effort < 1 ? 1 : 2))
  return { value: await longest(true), waiting: await longest(false) }
}

const stable = async () => ({ value: 1, ...(await peer.stable()) })

const result = await { compaction, fan, stable, waits }[scenario]()
console.log(JSON.stringify(result))
process.exit(0)
