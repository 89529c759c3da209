/**
 * Makes a project of each template by the packed program, as a user would, checks its types, and runs its tests. Then it
 * starts the program without a key, with a wrong setting, and against a server that speaks as the provider does; the
 * worker on a Postgres server of its own, too. `node scripts/check-templates.ts chat http` checks some of them.
 */
import assert from "node:assert/strict"
import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
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
const all = ["chat", "research", "coder", "http", "worker"]
const names = process.argv.length > 2 ? all.filter((name) => process.argv.includes(name)) : all
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
  /** Starts the program without a key, so that its script answers. */
  readonly isKeyless?: boolean
  /** What is done while the program runs, as soon as it says that it listens, or at once; then it is told to end. */
  readonly use?: { readonly after: string; readonly run: () => Promise<void> }
}

/** Runs the program of a project, beside a model that always says the same, and gives what it prints. */
const start = (name: string, how: How) =>
  Effect.runPromise(
    Effect.scoped(
      Effect.flatMap(serve(say("Hello, Ada.")), ({ url }) =>
        Effect.promise(async () => {
          console.log(`$ node src/main.ts (${name})`)
          const child = spawn(process.execPath, ["src/main.ts", ...(how.args ?? [])], {
            cwd: join(folder, name),
            env: {
              HOME,
              PATH,
              ...(how.isKeyless === true ? {} : { ANTHROPIC_API_KEY: "sk-ant-test", ANTHROPIC_BASE_URL: url }),
              ...how.env
            },
            stdio: ["pipe", "pipe", "pipe"],
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
          const addText = (chunk: unknown) => {
            out += String(chunk)
            look()
          }
          child.stdout.on("data", addText)
          child.stderr.on("data", addText)
          look()
          await once(child, "close")
          await used
          return out
        })
      )
    )
  )

const withoutKey = /There is no key, so a script answers\./

const serving = async () => {
  assert.match(await start("http", { env: { PORT: "abc" } }), /^PORT is wrong: expected a number\n$/)
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
  const env = { PORT: String(port) }
  await start("http", { env, use: { after: "istening", run } })
  const ask = async () => {
    assert.match(await say("Hello"), /"text":"I am a script/)
  }
  assert.match(await start("http", { env, isKeyless: true, use: { after: "istening", run: ask } }), withoutKey)
}

/** The worker on its embedded Postgres, and then on a server, on a job that is put into its table. */
const working = Effect.gen(function* () {
  const args = ["One. Two. Three. Four."]
  const isDone = { after: "job 1: One. Two. Three.\n", run: async () => {} }
  assert.match(yield* Effect.promise(() => start("worker", { args, isKeyless: true, use: isDone })), withoutKey)
  const url = yield* postgres
  const env = { DATABASE_URL: url }
  const done = Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const isThere = sql`SELECT 1 FROM jobs`
    yield* Effect.retry(isThere, Schedule.spaced("100 millis"))
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
    for (const file of globSync(join(own, "src/*.ts"))) {
      for (const [, from = ""] of readFileSync(file, "utf8").matchAll(/ from "([^."][^"]*)"/g)) {
        const wanted = from.startsWith("@") ? from.split("/").slice(0, 2).join("/") : (from.split("/")[0] ?? "")
        assert.ok(
          from.startsWith("node:") || wanted in dependencies,
          `${name} imports ${wanted}, which it does not list`
        )
      }
    }
    run(own, process.execPath, [join(folder, "node_modules/typescript/bin/tsc"), "-p", "."])
    run(own, "npm", ["test", "--silent"])
  }
  const checks: Readonly<Record<string, () => Promise<unknown>>> = {
    chat: async () => {
      assert.match(await start("chat", { stdin: "Hello\n" }), /Hello, Ada\./)
      const keyless = await start("chat", { isKeyless: true, stdin: "Where is order 42?\n" })
      assert.match(keyless, withoutKey)
      assert.match(keyless, /Order 42 was sent on Monday\./)
    },
    research: async () => {
      assert.match(await start("research", { args: ["Who is there?"] }), /Hello, Ada\./)
      assert.match(await start("research", { isKeyless: true }), withoutKey)
      assert.match(readFileSync(join(folder, "research/output/report.md"), "utf8"), /\/documents\/2025\.md/)
    },
    coder: async () => {
      assert.match(await start("coder", { args: ["Who is there?"] }), /Hello, Ada\./)
      assert.match(await start("coder", { isKeyless: true }), /I ran the tests:[^]*pass 1/)
    },
    http: serving,
    worker: () => Effect.runPromise(Effect.scoped(working))
  }
  for (const name of names) await checks[name]?.()
} finally {
  rmSync(folder, { recursive: true, force: true })
}
console.log(`templates: ${names.join(", ")} are created, typed, tested and run`)
