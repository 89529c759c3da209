/**
 * Runs everything that CI checks: steps that need nothing of one another beside each other, two at a time. What the unit
 * tests print is shown as it comes; what another step prints, if it fails, once the running steps are over. Later steps
 * don't begin then.
 */
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { setPriority } from "node:os"
import { text } from "node:stream/consumers"

/** These need the build. */
const ofBuild = ["docs", "pack:check", "examples", "lint:package"]

/**
 * Scripts of package.json. The longest are begun first, but for the one that takes a second. The unit tests wait often, and
 * have nothing of `dist`: in a short run, the others follow one another beside them.
 */
const stages = [
  ["format:check", "lint", "typecheck", "knip", "options:check", "arch", "english"],
  ...(process.env["TEST_SCALE"] === "full" ? [["test:unit", "build"], ofBuild] : [["test:unit", "build", ...ofBuild]])
]

/**
 * The first process of a container may leave ended processes for seconds, and whoever ends a group waits for them. `tini`
 * takes their place for the unit tests, where it is installed.
 */
const hasReaper = spawnSync("tini", ["--version"]).status === 0

const seconds = (from: number) => `${Math.round((performance.now() - from) / 1000)} s`

/** Runs a script, and gives what it printed if it failed. */
const run = async (script: string): Promise<string | undefined> => {
  const from = performance.now()
  console.log(`begins ${script}`)
  const isUnit = script === "test:unit"
  const child =
    isUnit && hasReaper
      ? spawn("tini", ["-s", "--", process.execPath, "--run", script], { stdio: "inherit" })
      : spawn(process.execPath, ["--run", script], { stdio: isUnit ? "inherit" : ["ignore", "pipe", "pipe"] })
  // The unit tests go first: they measure time.
  if (!isUnit && child.pid !== undefined) setPriority(child.pid, 10)
  const printed = [child.stdout, child.stderr].map((stream) => (stream === null ? "" : text(stream)))
  const [[code, signal], out, err] = await Promise.all([once(child, "close"), ...printed])
  console.log(`${code === 0 ? "ok    " : "FAILED"} ${script} (${seconds(from)})`)
  return code === 0 ? undefined : `\nnpm run ${script} ended with ${code ?? signal}:\n${out}${err}`
}

const start = performance.now()
for (const stage of stages) {
  const failures: Array<string> = []
  const left = stage.values()
  await Promise.all(
    Array.from({ length: 2 }, async () => {
      for (const script of left) {
        const failure = await run(script)
        if (failure !== undefined) failures.push(failure)
        if (failures.length > 0) break
      }
    })
  )
  if (failures.length > 0) {
    console.error(failures.join("\n"))
    process.exit(1)
  }
}
console.log(`All is well, after ${seconds(start)}.`)
