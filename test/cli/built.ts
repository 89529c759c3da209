/** The program as it is published, built for a file of tests, and started as a process in a home of its own. */
import { execFileSync, spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"

interface Ended {
  readonly code: number | null
  readonly signal: string | null
  readonly out: string
  readonly err: string
}

export const build = () => {
  const home = mkdtempSync(join(tmpdir(), "deepagents-home-"))
  const bin = join(home, "dist/cli/program/deepagents.js")
  execFileSync("node_modules/.bin/rolldown", ["--config", "scripts/program.rolldown.mjs", "--log-level", "silent"], {
    env: { ...process.env, PROGRAM_DIST: join(home, "dist") },
    stdio: "ignore",
    timeout: 60_000
  })

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
