/**
 * Runs every example, and the demo, against the sources without API keys; fails if one does not end well in a minute, or
 * does not show what it is for. The first runs as in a fresh clone, too: against what `npm ci` built.
 */
import { spawnSync } from "node:child_process"
import { globSync } from "node:fs"

const examples = globSync("examples/{*.ts,*/main.ts}").sort()
if (examples.length === 0) throw new Error("No examples found: this check would check nothing.")

const { HOME, PATH, TMPDIR } = process.env
const env = { HOME, PATH, TMPDIR, NO_COLOR: "1" }

/** What the demo has to show, whatever became of the files that it reads. */
const shown: { readonly [example: string]: ReadonlyArray<RegExp> } = {
  "examples/demo/main.ts": [
    /☐ Write the report/,
    /characters, put in \/large_results\//,
    /✓ read_file \/large_results\//,
    /≡ compacted/,
    /┌ researcher 3[^]*└ researcher/,
    /\? write_file: approve/,
    /☑ Write the report/,
    /The report is in /
  ]
}

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
  const missing = (shown[example] ?? []).find((pattern) => !pattern.test(run.stdout))
  if (run.status === 0 && missing === undefined) {
    console.log(`ok    ${example}${flags.length === 0 ? ", as built" : ""}`)
  } else {
    failed++
    const ended = run.status === null ? (run.error?.message ?? `killed by ${run.signal}`) : `exit code ${run.status}`
    const why = run.status === 0 ? `it does not show ${missing}` : ended
    console.error(`FAIL  ${example} (${why})\n${run.stdout}${run.stderr}`)
  }
}
if (failed > 0) process.exit(1)
