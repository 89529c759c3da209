/**
 * What it takes until the program is there: its help, and the first prompt of a chat in a pseudo-terminal, each in turn
 * with a bare node. Wall time, and time of the processor, which a busy machine changes less. `npm run bench:start`;
 * reads `/proc`, so it is for Linux.
 */
import { spawn } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import * as pty from "@lydell/node-pty"

const rounds = Number(process.argv[2] ?? 20)
const bin = resolve("dist/cli/program/deepagents.js")
const folder = (name) => mkdtempSync(join(tmpdir(), `deepagents-${name}-`))
const env = { PATH: process.env.PATH, HOME: folder("home"), TERM: "xterm-256color" }
const cwd = folder("project")

/** Processor time of a process, in milliseconds. */
const cpu = (pid) =>
  readdirSync(`/proc/${pid}/task`)
    .map((task) => Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8").split(" ")[0]) / 1e6)
    .reduce((sum, one) => sum + one, 0)

/** Runs until its end; what a process took is what `time` of the shell says. */
const run = (args) =>
  new Promise((done) => {
    const script = 'TIMEFORMAT="%U %S"; time "$@" > /dev/null'
    const began = performance.now()
    const child = spawn("bash", ["-c", script, "bash", process.execPath, ...args], { cwd, env })
    let said = ""
    child.stderr.on("data", (data) => (said += data))
    child.on("close", () => {
      const [user, system] = said.trim().split(/\s+/).map(Number)
      done({ wall: performance.now() - began, cpu: (user + system) * 1_000 })
    })
  })

/** Runs in a terminal until something is on the screen. */
const shown = (args, wanted, ends = false) =>
  new Promise((done) => {
    const began = performance.now()
    const child = pty.spawn(process.execPath, args, { cols: 100, rows: 30, cwd, env })
    let said = ""
    let seen
    child.onData((data) => {
      said += data
      if (seen !== undefined || !said.includes(wanted)) return
      seen = { wall: performance.now() - began, cpu: cpu(child.pid) }
      // What was compiled is kept where a process ends by itself.
      if (ends) setTimeout(() => child.write("\u0004"), 1_500)
      else child.kill("SIGKILL")
    })
    child.onExit(() => done(seen))
  })

const median = (values) => values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)]
const beside = async (name, bare, work) => {
  const [nothing, something] = [[], []]
  for (let round = 0; round < rounds; round++) {
    nothing.push(await bare())
    something.push(await work())
  }
  const of = (all, key) => Math.round(median(all.map((one) => one[key])))
  const more = (key) => of(something, key) - of(nothing, key)
  console.log(
    `${name.padEnd(24)} ${of(something, "wall")} ms, node ${of(nothing, "wall")} ms: +${more("wall")} ms; ` +
      `processor ${of(something, "cpu")} ms, node ${of(nothing, "cpu")} ms: +${more("cpu")} ms`
  )
}

const chat = [bin, "--demo"]
const bareInTerminal = ["-e", 'process.stdout.write("ready"); setTimeout(() => {}, 10_000)']
for (const args of [["--help"], ["--version"]]) await run([bin, ...args])
for (let round = 0; round < 2; round++) await shown(chat, "/ commands", true)
await beside(
  "--version",
  () => run(["-e", "0"]),
  () => run([bin, "--version"])
)
await beside(
  "--help",
  () => run(["-e", "0"]),
  () => run([bin, "--help"])
)
await beside(
  "first prompt of a chat",
  () => shown(bareInTerminal, "ready"),
  () => shown(chat, "/ commands")
)
