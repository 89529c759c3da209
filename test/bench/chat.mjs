/**
 * A long chat in a pseudo-terminal: 1 MB of text and 2,000 tool calls, and what a key, a paste and a spinner cost then.
 * Beside it the same by Ink and by pi-tui, which have no agent, no tools, and nothing to keep.
 *
 * `npm run bench:chat`; `node … chat.mjs 1` is a quick look at a tenth of it, `chat.mjs 10 ours` leaves the others out.
 * Reads `/proc`, so it is for Linux.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { bundle, makeFolder, start } from "../cli/program.ts"

const share = Number(process.argv[2] ?? 10) / 10
const only = process.argv[3]
const pause = (millis) => new Promise((resolve) => setTimeout(resolve, millis))

/** Processor time of a process so far, in seconds. */
const cpu = (pid) =>
  readdirSync(`/proc/${pid}/task`)
    .map((task) => Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8").split(" ")[0]) / 1e9)
    .reduce((sum, one) => sum + one, 0)
const megabytes = (pid) =>
  `${Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]) / 1024)} MB`
const at = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))].toFixed(1)

const keys = async (chat, count) => {
  const times = []
  for (let index = 1; index <= count; index++) {
    const began = performance.now()
    chat.type("k")
    await chat.draft((text) => text.includes("k".repeat(index)))
    times.push(performance.now() - began)
    await pause(30)
  }
  chat.type("\u0015")
  await pause(100)
  const sorted = times.toSorted((left, right) => left - right)
  return `${at(sorted, 0.5)} / ${at(sorted, 0.95)} / ${at(sorted, 1)} ms`
}

/** Share of a core, and the seconds of it: a machine that is busy makes the former smaller. */
const during = async (chat, work) => {
  const [began, spent] = [performance.now(), cpu(chat.pid)]
  await work()
  const seconds = cpu(chat.pid) - spent
  return `${((100 * 1000 * seconds) / (performance.now() - began)).toFixed(1)} % (${seconds.toFixed(2)} s)`
}

const paste = Array.from({ length: 1_000 }, (_, index) => `line ${index} ${"x".repeat(40)}`).join("\n")

/** Fills in the rows, as far as the client gets. */
const measure = async (args, rows) => {
  const chat = start(args, { rows: 40, columns: 100 })
  const say = (name, value) => rows.push([name, value])
  const answer = async (said, meanwhile = () => {}) => {
    chat.type(`${said}\r`)
    await chat.draft((text) => text.includes("Esc interrupts"))
    await meanwhile()
    await chat.draft((text) => text.includes("/ commands"))
  }
  await chat.draft((text) => text.includes("/ commands"))
  say("memory at the start", megabytes(chat.pid))
  say("key to screen at the start, p50 / p95 / max", await keys(chat, 40))

  const before = chat.raw().length
  let latency
  const streaming = await during(chat, () =>
    answer("bulk 200", async () => {
      latency = await keys(chat, 60)
    })
  )
  say("200 KB at 500 pieces a second: processor", streaming)
  say("… key to screen", latency)
  say("… bytes for a byte of text", ((chat.raw().length - before) / (200 * 16 * 62)).toFixed(1))

  for (let round = 0; round < Math.round(4 * share); round++) await answer("bulk 200")
  say("after the text: memory", megabytes(chat.pid))
  const calls = Math.round(2_000 * share)
  say(`${calls} calls: processor`, await during(chat, () => answer(`calls ${calls}`)))
  say("after all of it: key to screen", await keys(chat, 60))
  say("… memory", megabytes(chat.pid))
  say("… idle, processor", await during(chat, () => pause(5_000)))

  const size = chat.raw().length
  const pasted = performance.now()
  chat.type(`\u001b[200~${paste}\u001b[201~`)
  await chat.draft((text) => text.includes("[paste #1"))
  say("… paste of 50 KB", `${(performance.now() - pasted).toFixed(0)} ms, ${chat.raw().length - size} B`)
  chat.type("\u0003")
  await pause(200)

  chat.type("slow\r")
  await chat.draft((text) => text.includes("Esc interrupts"))
  await pause(1_000)
  say("… with a spinner, processor", await during(chat, () => pause(10_000)))
  say("full clears", String((chat.raw().match(/\u001b\[[23]J/g) ?? []).length))
  chat.kill("SIGKILL")
  await chat.ended
}

const peer = (name) => [join(import.meta.dirname, "peers", `chat-${name}.mjs`)]
const clients = [["deepagents", [await bundle(), makeFolder(), "a"]]]
if (only === undefined) {
  if (existsSync(join(import.meta.dirname, "node_modules/ink")))
    clients.push(["Ink", peer("ink")], ["pi-tui", peer("pi")])
  else console.log("The others are left out: npm --prefix test/bench install")
}
const all = []
for (const [name, args] of clients) {
  const rows = []
  all.push(rows)
  await measure(args, rows).catch(() => console.log(`${name} gives no answer in time`))
}
console.log(`| | ${clients.map(([name]) => name).join(" | ")} |`)
console.log(`| --- | ${clients.map(() => "---").join(" | ")} |`)
for (const [index, [name]] of all[0].entries()) {
  console.log(`| ${name} | ${all.map((rows) => rows[index]?.[1] ?? "–").join(" | ")} |`)
}
process.exit(0)
