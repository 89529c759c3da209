/**
 * A long chat in a pseudo-terminal: 1 MB of text and 2,000 tool calls, and what a key, a paste and a spinner cost then.
 * `npm run bench:chat`; `node … chat.mjs 1` is a quick look at a tenth of it. Reads `/proc`, so it is for Linux.
 */
import { readFileSync } from "node:fs"
import { bundle, loadPty, makeFolder, start } from "../cli/program.ts"

const share = Number(process.argv[2] ?? 10) / 10
const pty = await loadPty()
const file = await bundle()
const pause = (millis) => new Promise((resolve) => setTimeout(resolve, millis))

/** Processor time of a process so far, in seconds. */
const cpu = (pid) => {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ")
  return (Number(fields[11]) + Number(fields[12])) / 100
}
const megabytes = (pid) =>
  Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]) / 1024)
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
  return `p50 ${at(sorted, 0.5)} ms, p95 ${at(sorted, 0.95)} ms, max ${at(sorted, 1)} ms`
}

const during = async (chat, work) => {
  const [began, spent] = [performance.now(), cpu(chat.pid)]
  await work()
  return ((100 * 1000 * (cpu(chat.pid) - spent)) / (performance.now() - began)).toFixed(1)
}

const chat = start(pty, [file, makeFolder(), "a"], { rows: 40, columns: 100 })
const say = (name, value) => console.log(`${name.padEnd(58)} ${value}`)

const began = performance.now()
await chat.draft((text) => text.includes("/ commands"))
say("first frame", `${(performance.now() - began).toFixed(0)} ms`)
say("memory, at the start", `${megabytes(chat.pid)} MB`)
say("key to screen, at the start", await keys(chat, 40))

const before = chat.raw().length
chat.type("bulk 200\r")
await chat.draft((text) => text.includes("Esc interrupts"))
let latency
const streaming = await during(chat, async () => {
  latency = await keys(chat, 60)
  await chat.draft((text) => text.includes("/ commands"))
})
const bytes = chat.raw().length - before
say("streaming 200 KB, processor", `${streaming} %`)
say("streaming 200 KB, key to screen", latency)
say("streaming 200 KB, bytes written for a byte of text", (bytes / (200 * 16 * 62)).toFixed(1))

for (let round = 0; round < Math.round(4 * share); round++) {
  chat.type("bulk 200\r")
  await chat.draft((text) => text.includes("Esc interrupts"))
  await chat.draft((text) => text.includes("/ commands"))
}
say("after the text, memory", `${megabytes(chat.pid)} MB`)
chat.type(`calls ${Math.round(2_000 * share)}\r`)
await chat.draft((text) => text.includes("Esc interrupts"))
await chat.draft((text) => text.includes("/ commands"))
say("after all of it, key to screen", await keys(chat, 60))
say("after all of it, memory", `${megabytes(chat.pid)} MB`)
say("after all of it, idle, processor", `${await during(chat, () => pause(5_000))} %`)

const paste = Array.from({ length: 1_000 }, (_, index) => `line ${index} ${"x".repeat(40)}`).join("\n")
const size = chat.raw().length
const pasted = performance.now()
chat.type(`\u001b[200~${paste}\u001b[201~`)
await chat.draft((text) => text.includes("[paste #1"))
say("paste of 50 KB", `${(performance.now() - pasted).toFixed(0)} ms, ${chat.raw().length - size} bytes`)
chat.type("\u0003")
await pause(200)

chat.type("slow\r")
await chat.draft((text) => text.includes("Esc interrupts"))
await pause(1_000)
say("with a spinner, processor", `${await during(chat, () => pause(10_000))} %`)
say("full clears", (chat.raw().match(/\u001b\[[23]J/g) ?? []).length)
chat.kill("SIGKILL")
await chat.ended
