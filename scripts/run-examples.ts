/**
 * Runs every example against the sources without API keys; fails if one does not end well in a minute. The first runs as in a fresh clone, too: against what `npm ci` built.
 */
import { spawnSync } from "node:child_process"
import { globSync } from "node:fs"

const examples = globSync("examples/{*.ts,*/main.ts}").sort()
if (examples.length === 0) throw new Error("No examples found: this check would check nothing.")

const { HOME, PATH, TMPDIR } = process.env
const env = { HOME, PATH, TMPDIR, NO_COLOR: "1" }

const [first = ""] = examples
const runs = [
  ...examples.map((example) => ({ example, flags: ["--conditions=@effect-deepagents/source"] })),
  { example: first, flags: [] }
]

let failed = 0
for (const { example, flags } of runs) {
  const run = spawnSync(process.execPath, [...flags, example], {
    encoding: "utf8",
    env,
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 60_000,
    killSignal: "SIGKILL"
  })
  if (run.status === 0) {
    console.log(`ok    ${example}${flags.length === 0 ? ", as built" : ""}`)
  } else {
    failed++
    const ended = run.status === null ? (run.error?.message ?? `killed by ${run.signal}`) : `exit code ${run.status}`
    console.error(`FAIL  ${example} (${ended})\n${run.stdout}${run.stderr}`)
  }
}
if (failed > 0) process.exit(1)
