/**
 * Runs every example, and the demo, against the sources without API keys; fails if one does not end well in a minute.
 */
import { spawnSync } from "node:child_process"
import { globSync } from "node:fs"

const examples = globSync("examples/{*.ts,*/main.ts}").sort()
if (examples.length === 0) throw new Error("No examples found: this check would check nothing.")

const { HOME, PATH, TMPDIR } = process.env
const env = { HOME, PATH, TMPDIR, NO_COLOR: "1" }

let failed = 0
for (const example of examples) {
  const run = spawnSync(process.execPath, ["--conditions=@effect-deepagents/source", example], {
    encoding: "utf8",
    env,
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 60_000,
    killSignal: "SIGKILL"
  })
  if (run.status === 0) {
    console.log(`ok    ${example}`)
  } else {
    failed++
    const why = run.status === null ? (run.error?.message ?? `killed by ${run.signal}`) : `exit code ${run.status}`
    console.error(`FAIL  ${example} (${why})\n${run.stdout}${run.stderr}`)
  }
}
if (failed > 0) process.exit(1)
