/**
 * Makes a project of each template by the packed program, as a user would, and checks its types, runs its tests and the
 * program itself: against a server that speaks as the provider does; the worker on a Postgres server of its own.
 */
import assert from "node:assert/strict"
import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import * as PgClient from "@effect/sql-pg/PgClient"
import { Effect, Redacted, Schedule } from "effect"
import manifest from "../package.json" with { type: "json" }
import { say, serve } from "../test/models/servers/anthropic.ts"
import { postgres } from "../test/servers/postgres.ts"
import { pack } from "./pack.ts"

if (process.env["TEST_SCALE"] !== "full") {
  console.log("The templates run with TEST_SCALE=full, as in .ci/run.")
  process.exit()
}
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

interface How {
  readonly args?: ReadonlyArray<string>
  readonly stdin?: string
  readonly env?: Readonly<Record<string, string>>
  /** What is done while the program runs, as soon as it says that it listens, or at once; then it is told to end. */
  readonly use?: { readonly after: string; readonly run: () => Promise<void> }
}

/** Runs the program of a project, beside a model that always says the same, and gives its output. */
const start = (name: string, how: How) =>
  Effect.runPromise(
    Effect.scoped(
      Effect.flatMap(serve(say("Hello, Ada.")), ({ url }) =>
        Effect.promise(async () => {
          console.log(`$ node src/main.ts (${name})`)
          const child = spawn(process.execPath, ["src/main.ts", ...(how.args ?? [])], {
            cwd: join(folder, name),
            env: { HOME, PATH, ANTHROPIC_API_KEY: "sk-ant-test", ANTHROPIC_BASE_URL: url, ...how.env },
            stdio: ["pipe", "pipe", "inherit"],
            timeout: 60_000,
            killSignal: "SIGKILL"
          })
          let out = ""
          let used: Promise<void> | undefined
          const look = () => {
            if (how.use === undefined || used !== undefined || !out.includes(how.use.after)) return
            used = how.use.run().finally(() => child.kill("SIGINT"))
          }
          child.stdin.end(how.stdin ?? "")
          child.stdout.on("data", (chunk) => {
            out += chunk
            look()
          })
          look()
          await once(child, "close")
          await used
          return out
        })
      )
    )
  )

const serving = async () => {
  const port = await freePort()
  const say = async (text: string) => {
    const body = await (await fetch(`http://127.0.0.1:${port}/threads/ada`, { method: "POST", body: text })).text()
    assert.match(body, /"_tag":"TextDelta"[^]*"_tag":"RunCompleted"/)
    return body
  }
  const run = async () => {
    await say("Hello")
    // The thread is kept: the second run begins with what the first one left.
    assert.match(await say("And again"), /"_tag":"CheckpointLoaded"/)
  }
  await start("http", { env: { PORT: String(port) }, use: { after: "istening", run } })
}

/** The worker's own test, and then the worker itself, on a job that is put into its table. */
const working = Effect.gen(function* () {
  const url = yield* postgres
  const env = { DATABASE_URL: url }
  yield* Effect.sync(() => run(join(folder, "worker"), "npm", ["test", "--silent"], env))
  const done = Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    yield* sql`INSERT INTO jobs (input) VALUES ('A long text.')`
    const rest = Effect.map(
      sql<{ n: number }>`SELECT count(*)::int AS n FROM jobs WHERE output IS NULL`,
      ([row]) => row?.n
    )
    yield* Effect.repeat(rest, { until: (n) => n === 0, schedule: Schedule.spaced("100 millis") })
    const [last] = yield* sql<{ output: string }>`SELECT output FROM jobs ORDER BY id DESC LIMIT 1`
    assert.equal(last?.output, "Hello, Ada.")
  }).pipe(Effect.timeout("30 seconds"), Effect.provide(PgClient.layer({ url: Redacted.make(url) })))
  yield* Effect.promise(() => start("worker", { env, use: { after: "", run: () => Effect.runPromise(done) } }))
})

try {
  pack(folder)
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
  assert.match(await start("chat", { stdin: "Hello\n" }), /Hello, Ada\./)
  assert.match(await start("research", { args: ["Who is there?"] }), /Hello, Ada\./)
  assert.match(await start("coder", { args: ["Who is there?"] }), /Hello, Ada\./)
  await serving()
  await Effect.runPromise(Effect.scoped(working))
} finally {
  rmSync(folder, { recursive: true, force: true })
}
console.log(`templates: ${names.join(", ")} are created, typed, tested and run`)
