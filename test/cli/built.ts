/** The program as it is published, built once for a run of tests, and started as a process in a home of its own. */
import { execFileSync, spawn } from "node:child_process"
import { existsSync, mkdtempSync, renameSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll, inject } from "vitest"

interface Ended {
  readonly code: number | null
  readonly signal: string | null
  readonly out: string
  readonly err: string
}

/** The folder of the built program. Two workers may build at the same time: the first finished program is used. */
const built = (): string => {
  const dist = join(inject("sharedFolder"), "dist")
  if (existsSync(dist)) return dist
  const own = join(mkdtempSync(join(inject("sharedFolder"), "build-")), "dist")
  execFileSync("node_modules/.bin/rolldown", ["--config", "scripts/program.rolldown.mjs", "--log-level", "silent"], {
    env: { ...process.env, PROGRAM_DIST: own },
    stdio: "ignore",
    timeout: 240_000
  })
  if (!existsSync(dist)) renameSync(own, dist)
  return dist
}

export const build = () => {
  const home = mkdtempSync(join(tmpdir(), "deepagents-home-"))
  const bin = join(built(), "cli/program/deepagents.js")

  /** A folder of its own for a test. */
  const folder = (): string => mkdtempSync(join(home, "project-"))

  const start = (
    cwd: string,
    args: ReadonlyArray<string>,
    env: { readonly [name: string]: string } = {},
    stdin: string | null = "",
    program = bin
  ) => {
    const child = spawn(process.execPath, [program, ...args], {
      cwd,
      env: {
        PATH: process.env["PATH"],
        HOME: home,
        XDG_CACHE_HOME: join(home, "cache"),
        OLLAMA_BASE_URL: "http://127.0.0.1:1",
        ...env
      },
      stdio: ["pipe", "pipe", "pipe"],
      timeout: 60_000,
      killSignal: "SIGKILL"
    })
    let out = ""
    let err = ""
    child.stdout.on("data", (chunk) => (out += chunk))
    child.stderr.on("data", (chunk) => (err += chunk))
    child.stdin.on("error", () => {})
    if (stdin !== null) child.stdin.end(stdin)
    const ended = new Promise<Ended>((done) => child.on("close", (code, signal) => done({ code, signal, out, err })))
    return { child, ended, out: () => out, err: () => err }
  }

  const run = (...given: Parameters<typeof start>) => Effect.promise(() => start(...given).ended)

  return { bin, folder, start, run, remove: () => rmSync(home, { recursive: true, force: true }) }
}

/** The program for the tests of a file. Its home is removed after them. */
export const useProgram = () => {
  const program = build()
  afterAll(program.remove)
  return program
}
