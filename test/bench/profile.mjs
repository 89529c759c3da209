// Where the time of a scenario goes, by V8's CPU profiler, started after warm-up:
//   node test/bench/profile.mjs [scenario=A100] [peer=ours] [seconds=3] [--top 30] [--out profile.cpuprofile]
// Shares are of busy time.
import { writeFileSync } from "node:fs"
import { Session } from "node:inspector/promises"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { median, prepare, repeat, workloads } from "./workloads.mjs"

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { top: { type: "string", default: "30" }, out: { type: "string" } }
})
const [scenario = "A100", name = "ours", seconds = "3"] = positionals

const root = fileURLToPath(new URL("../..", import.meta.url))

const fileOf = (url) =>
  url
    .replace("file://", "")
    .replace(root, "")
    .replace(/^.*node_modules\//, "")

/** effect/dist/internal/effect.js → effect; @langchain/core/dist/… → @langchain/core; dist/core/Agent.js → itself */
const packageOf = (file) => {
  if (file.startsWith("node:")) return file
  if (/^(dist|src|test)\//.test(file)) return file
  return file
    .split("/")
    .slice(0, file.startsWith("@") ? 2 : 1)
    .join("/")
}

const record = async (work) => {
  const session = new Session()
  session.connect()
  await session.post("Profiler.enable")
  await session.post("Profiler.setSamplingInterval", { interval: 100 })
  await session.post("Profiler.start")
  await work()
  const { profile } = await session.post("Profiler.stop")
  session.disconnect()
  return profile
}

/**
 * Microseconds by what `keyOf` makes of a call frame: the frame on top of the stack of each sample, or with `isWhole`
 * all that are on it.
 */
const timesBy = ({ nodes, samples, timeDeltas }, keyOf, isWhole = false) => {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])))
  const keysOf = (id) => {
    const keys = new Set()
    for (let at = id; at !== undefined; at = isWhole ? parents.get(at) : undefined)
      keys.add(keyOf(byId.get(at).callFrame))
    return keys
  }
  const keys = new Map(nodes.map(({ id }) => [id, keysOf(id)]))
  const times = new Map()
  samples.forEach((id, index) => {
    const { functionName, url } = byId.get(id).callFrame
    if (functionName === "(idle)" || url === "node:inspector") return
    for (const key of keys.get(id)) times.set(key, (times.get(key) ?? 0) + timeDeltas[index])
  })
  return [...times].sort(([, left], [, right]) => right - left)
}

const print = (title, times, busy) => {
  console.log(`\n${title}`)
  for (const [key, time] of times.slice(0, Number(values.top))) {
    console.log(`${((time / busy) * 100).toFixed(1).padStart(6)} %  ${key}`)
  }
}

const { options, warm, value } = workloads[scenario]
const peer = await import(`./peers/${name}.mjs`)
await repeat(prepare(peer, { ...options, ...warm }), 2_000)
// Latency and slow tools would only show as idle time.
const run = prepare(peer, { ...options, latency: 0, toolTime: 0 })
await repeat(run, 1_000)

let times = []
const profile = await record(async () => {
  times = await repeat(run, Number(seconds) * 1_000)
})
if (values.out !== undefined) writeFileSync(values.out, JSON.stringify(profile))

const fileKey = ({ functionName, url }) => (url === "" ? functionName : packageOf(fileOf(url)))
const functionKey = ({ functionName, url, lineNumber }) =>
  `${functionName || "(anonymous)"}  ${fileOf(url)}${url && `:${lineNumber + 1}`}`

const byFile = timesBy(profile, fileKey)
const busy = byFile.reduce((sum, [, time]) => sum + time, 0)
const [middle, best] = [median(times), Math.min(...times)].map((ms) => `${ms.toFixed(3)} ms (${value(ms).toFixed(2)})`)
console.log(`${name} ${scenario}: ${times.length} runs, median ${middle}, best ${best}`)
print("Self time by package or file", byFile, busy)
print("Self time by function", timesBy(profile, functionKey), busy)
print("Time by function, with what it calls", timesBy(profile, functionKey, true), busy)
process.exit(0)
