// Measures what only deep agents do, in a process of its own: `node deep-measure.mjs <peer> <scenario> [effort]`.
// The last line it prints is the result as JSON.
import { Session } from "node:inspector/promises"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { makeFan, makeScript } from "./script.mjs"
import { median, prepare, repeat } from "./workloads.mjs"

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

/** Bytes that are allocated while something runs. */
const allocatedBy = async (work) => {
  const session = new Session()
  session.connect()
  const includes = { includeObjectsCollectedByMajorGC: true, includeObjectsCollectedByMinorGC: true }
  await session.post("HeapProfiler.startSampling", { samplingInterval: 4_096, ...includes })
  await work()
  const { profile } = await session.post("HeapProfiler.stopSampling")
  session.disconnect()
  const sum = ({ children, selfSize }) => children.reduce((total, child) => total + sum(child), selfSize)
  return sum(profile.head)
}

/** What each part of the stack adds: to a round in µs and in kB of garbage, and in kB to an agent that waits. */
const parts = async () => {
  setFlagsFromString("--expose-gc")
  const gc = runInNewContext("gc")
  const rounds = 100
  const measured = [[], ...peer.parts.map((part) => [part]), peer.parts].map((left) => {
    const make = peer.makeWithout(left)
    return { make, run: prepare({ ...peer, make }, { rounds }), times: [] }
  })
  for (const { run } of measured) await repeat(run, 400 * effort, 15)
  for (let turn = 0; turn < 150 * effort; turn++) for (const { run, times } of measured) times.push(await run())
  const garbageOf = async ({ run }) => {
    const runs = Math.ceil(50 * effort)
    return (await allocatedBy(() => repeat(run, 0, runs))) / runs / rounds
  }
  const heldBy = async ({ make }) => {
    const agents = Array.from({ length: 400 }, () => make(makeScript({ rounds: 1, latency: 3_600_000 })))
    gc()
    const before = process.memoryUsage().heapUsed
    for (const start of agents) void start()
    await new Promise((resolve) => setTimeout(resolve, 100))
    gc()
    return (process.memoryUsage().heapUsed - before) / agents.length
  }
  const [whole, ...without] = measured
  await heldBy(whole)
  const costs = []
  for (const one of without) {
    const [garbage, less] = [await garbageOf(whole), await garbageOf(one)]
    const [held, fewer] = [await heldBy(whole), await heldBy(one)]
    const time = ((median(whole.times) - median(one.times)) * 1_000) / rounds
    costs.push([time, (garbage - less) / 1_000, (held - fewer) / 1_000])
  }
  const names = [...peer.parts, "all of them"]
  return { value: costs.at(-1)[0], parts: Object.fromEntries(names.map((part, index) => [part, costs[index]])) }
}

const stable = async () => ({ value: 1, ...(await peer.stable()) })

const result = await { compaction, fan, parts, stable, waits }[scenario]()
console.log(JSON.stringify(result))
process.exit(0)
