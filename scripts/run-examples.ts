/**
 * Runs every example against the sources without API keys; fails if one does not end well in a minute. The first runs as in a fresh clone, too: against what `npm ci` built.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { globSync } from "node:fs"
import { availableParallelism } from "node:os"
import { resolve } from "node:path"
import { text } from "node:stream/consumers"

const examples = globSync("examples/{*.ts,*/main.ts}").sort()
if (examples.length === 0) throw new Error("No examples found: this check would check nothing.")

const { HOME, PATH, TMPDIR } = process.env
// Node keeps what it compiled for the others: each takes half of its time to load Effect and the sources.
const env = { HOME, PATH, TMPDIR, NO_COLOR: "1", NODE_COMPILE_CACHE: resolve("node_modules/.cache/node") }

const [first = ""] = examples
const runs = [
  { example: first, flags: [] },
  ...examples.map((example) => ({ example, flags: ["--conditions=@effect-deepagents/source"] }))
]

const run = async ({ example, flags }: (typeof runs)[number]): Promise<void> => {
  const child = spawn(process.execPath, [...flags, example], {
    env,
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 60_000,
    killSignal: "SIGKILL"
  })
  const [out, err, [code, signal]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")])
  if (code === 0) {
    console.log(`ok    ${example}${flags.length === 0 ? ", as built" : ""}`)
    return
  }
  process.exitCode = 1
  console.error(`FAIL  ${example} (${code === null ? `killed by ${signal}` : `exit code ${code}`})\n${out}${err}`)
}

const left = runs.values()
await Promise.all(
  Array.from({ length: Math.max(2, availableParallelism() - 1) }, async () => {
    for (const one of left) await run(one)
  })
)
