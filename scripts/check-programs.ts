/**
 * Meets the package as a newcomer does: in an empty folder with the packed tarball, it runs the programs of
 * `scripts/first/` (each within its number of lines) against servers that speak as providers do, compiles each mistake of
 * `scripts/first/mistakes.ts` and looks for the sentence that answers it, and runs one program on Bun and on Deno, and
 * one, bundled, in Chromium.
 */
import assert from "node:assert/strict"
import { execFileSync, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { cpSync, existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { createServer as createSocket } from "node:net"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { text } from "node:stream/consumers"
import chromium from "@sparticuz/chromium"
import { Effect } from "effect"
import { buildSync } from "esbuild"
import { chromium as playwright } from "playwright-core"
import manifest from "../package.json" with { type: "json" }
import { answer, error, type Reply, say, type Recorded, serve, stream } from "../test/models/servers/anthropic.ts"
import * as OpenAi from "../test/models/servers/openai.ts"
import { pack } from "./pack.ts"

if (process.env["TEST_SCALE"] !== "full") {
  console.log("A newcomer's programs run with TEST_SCALE=full, as in .ci/run.")
  process.exit()
}
if (!existsSync("dist/index.js")) throw new Error("dist/ is missing: run `npm run build` first.")
const folder = mkdtempSync(join(tmpdir(), "effect-deepagents-programs-"))
const { HOME = folder, PATH = "" } = process.env

/** The most lines that a program may have, imports included. */
const lines: { readonly [program: string]: number } = {
  "a-chat.ts": 29,
  "b-coder.ts": 51,
  "c-documents.ts": 38,
  "d-research.ts": 51,
  "e-sse.ts": 28,
  "e-handler.ts": 21,
  "f-unit.test.ts": 33,
  "g-local.ts": 19,
  "h-elsewhere.ts": 35,
  "i-otlp.ts": 31,
  "j-moved.ts": 48,
  "k-effect-ai.ts": 18,
  "l-mcp.ts": 23,
  "m-hono.ts": 25
}

const run = (command: string, ...args: ReadonlyArray<string>) => {
  console.log(`$ ${command.split("/").at(-1)} ${args.join(" ")}`)
  execFileSync(command, args, { cwd: folder, stdio: ["ignore", "inherit", "inherit"], timeout: 180_000 })
}
const installed = (name: string) =>
  `${name}@${JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8")).version}`

interface Ran {
  readonly code: number | null
  readonly out: string
  readonly sent: ReadonlyArray<Recorded>
}

interface How {
  readonly args?: ReadonlyArray<string>
  readonly env?: Readonly<Record<string, string>>
  readonly stdin?: string
  /** Is done when this is on the output; the program is interrupted after it. */
  readonly until?: { readonly text: string; readonly use: () => Promise<void> }
}

/** Runs a program in the folder, with these answers of a model, until it ends. */
const program = (name: string, replies: ReadonlyArray<Reply | ((request: Recorded) => Reply)>, how: How = {}) =>
  Effect.runPromise(
    Effect.scoped(
      Effect.flatMap(serve(...replies), ({ requests, url }) =>
        Effect.promise(async (): Promise<Ran> => {
          console.log(`$ node ${name} ${how.args?.join(" ") ?? ""}`)
          const child = spawn(
            process.execPath,
            [...(name.includes(".test.") ? ["--test"] : []), name, ...(how.args ?? [])],
            {
              cwd: folder,
              env: { HOME, PATH, ANTHROPIC_API_KEY: "sk-ant-test", ANTHROPIC_BASE_URL: url, ...how.env },
              stdio: ["pipe", "pipe", "pipe"],
              timeout: 120_000,
              killSignal: "SIGKILL"
            }
          )
          let out = ""
          let reached = false
          const add = (chunk: Buffer) => {
            out += chunk.toString()
            if (how.until === undefined || reached || !out.includes(how.until.text)) return
            reached = true
            void how.until.use().finally(() => child.kill("SIGINT"))
          }
          child.stdout.on("data", add)
          child.stderr.on("data", add)
          child.stdin.end(how.stdin ?? "")
          const [code] = await once(child, "close")
          if (code !== 0 && how.until === undefined) throw new Error(`${name} ended with ${code}:\n${out}`)
          return { code, out, sent: requests }
        })
      )
    )
  )

const calls = (...all: ReadonlyArray<readonly [name: string, input: object]>) =>
  stream(answer(all.map(([call, input], index) => ({ call, id: `toolu_${call}_${index}`, input }))))
const busy = error(429, "rate_limit_error", "slow down", { headers: { "retry-after": "0" } })

const freePort = async (): Promise<number> => {
  const server = createSocket().listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  server.close()
  return typeof address === "object" && address !== null ? address.port : 0
}

const write = (path: string, content: string) => {
  mkdirSync(join(folder, path, ".."), { recursive: true })
  writeFileSync(join(folder, path), content)
}

/** Asks an endpoint as soon as it listens: a client that leaves in the middle, then one that stays. */
const endpoint = async (name: string) => {
  const port = await freePort()
  const ask = (signal?: AbortSignal) =>
    fetch(`http://127.0.0.1:${port}/ask`, { method: "POST", body: "Hello", ...(signal ? { signal } : {}) })
  const held: Reply = { ...stream(answer([{ text: "So far" }]).slice(0, -3)), end: "hold" }
  let body = ""
  const { out } = await program(name, [held, say("Hello, Ada.")], {
    env: { PORT: String(port) },
    until: {
      text: "istening",
      use: async () => {
        const leaving = new AbortController()
        const decoder = new TextDecoder()
        for await (const chunk of (await ask(leaving.signal)).body ?? []) {
          if (decoder.decode(chunk, { stream: true }).includes("So far")) break
        }
        leaving.abort()
        body = await ask().then(
          (response) => response.text(),
          (cause: unknown) => String(cause)
        )
      }
    }
  })
  assert.match(body, /"_tag":"TextDelta"[^]*"_tag":"RunCompleted"/, `${name}: ${out}`)
}

const programs = async () => {
  const chat = [say("Hello, Ada."), say("Hello again.")]
  assert.match((await program("a-chat.ts", chat, { stdin: "Hello\n" })).out, /0 messages[^]*Hello, Ada\./)
  const again = await program("a-chat.ts", [say("You are Ada.")], { stdin: "Who am I?\n" })
  assert.match(again.out, /2 messages so far[^]*You are Ada\./)

  write("sum.txt", "one\n")
  const coding = [
    calls(["edit_file", { file_path: "/sum.txt", old_string: "one", new_string: "two" }]),
    calls(["execute", { command: "rm sum.txt" }]),
    say("Done.")
  ]
  const coder = await program("b-coder.ts", [calls(["read_file", { file_path: "/sum.txt" }]), ...coding], {
    stdin: "y\nn\n"
  })
  assert.match(coder.out, /edit_file[^]*rm sum\.txt[^]*Done\./)
  assert.equal(readFileSync(join(folder, "sum.txt"), "utf8"), "two\n")

  let asked = 0
  const entry = say(JSON.stringify({ title: "Die Stadt", language: "de" }))
  const documents = await program("c-documents.ts", [() => (++asked % 7 === 0 ? busy : entry)])
  assert.match(documents.out, /done: 100, failed: 0/)

  write("documents/bus.md", "The bus runs every night.\n")
  const ask = (description: string) => ["task", { subagent_type: "researcher", description }] as const
  const research = await program("d-research.ts", [
    ({ body }) => {
      const said = JSON.stringify(body.messages)
      if (!JSON.stringify(body.tools ?? []).includes('"task"'))
        return said.includes("every night")
          ? say("Every night (/documents/bus.md).")
          : calls(["read_file", { file_path: "/documents/bus.md" }])
      if (!said.includes("researcher")) return calls(ask("When does it run?"), ask("What does it cost?"))
      return said.includes("report.md")
        ? say("The report is in /report.md.")
        : calls(["write_file", { file_path: "/report.md", content: "Every night.\n" }])
    }
  ])
  assert.match(research.out, /lead > researcher read_file/)
  assert.equal(readFileSync(join(folder, "report.md"), "utf8"), "Every night.\n")

  await endpoint("e-sse.ts")
  await endpoint("e-handler.ts")
  await endpoint("m-hono.ts")
  assert.match((await program("f-unit.test.ts", [])).out, /pass 4[^]*fail 0/)

  await Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const server = yield* OpenAi.make
        const chunk = (delta: object, finish_reason: string | null) => ({
          id: "c",
          object: "chat.completion.chunk",
          created: 0,
          model: "m",
          choices: [{ index: 0, delta, finish_reason }]
        })
        server.reply(
          OpenAi.plain(429, { error: { message: "slow down" } }, { "retry-after": "0" }),
          OpenAi.chunks([chunk({ role: "assistant", content: "Light is scattered." }, null), chunk({}, "stop")])
        )
        const local = yield* Effect.promise(() => program("g-local.ts", [], { env: { VLLM_URL: server.url } }))
        assert.match(local.out, /Light is scattered\./)
      })
    )
  )

  const first = await program("h-elsewhere.ts", [calls(["refund", { order: "7" }])], { args: ["ask"] })
  assert.match(first.out, /suspended/)
  const second = await program("h-elsewhere.ts", [say("Paid.")], { args: ["decide"] })
  assert.match(second.out, /refund[^]*paid back: 7[^]*completed/)

  const received: Array<string> = []
  const collector = createServer((request, response) => {
    void text(request).then((body) => {
      received.push(body)
      response.end("{}")
    })
  }).listen(0, "127.0.0.1")
  await once(collector, "listening")
  const address = collector.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  await program("i-otlp.ts", [calls(["poet", { task: "A line." }]), say("The sea."), say("The sea is calm.")], {
    env: { OTLP_URL: `http://127.0.0.1:${port}` }
  })
  collector.close()
  for (const name of ["my program", "invoke_agent lead", "execute_tool poet", "invoke_agent poet", "token.usage"]) {
    assert.ok(received.join("\n").includes(name), `OTLP lacks ${name}`)
  }

  const moved = await program("j-moved.ts", [
    calls(["task", { subagent_type: "critic", description: "Which?" }]),
    say("The Blue Door."),
    calls(["book", { restaurant: "The Blue Door", people: 2 }]),
    say(JSON.stringify({ restaurant: "The Blue Door", people: 3 }))
  ])
  assert.match(moved.out, /people: 3/)
  assert.match(JSON.stringify(moved.sent.at(-1)?.body), /a table for 3/)

  const both = [calls(["get_time", { city: "Oslo" }]), say("Noon."), say("Hello.")]
  assert.match((await program("k-effect-ai.ts", both)).out, /Noon\.\nHello\./)
  const MCP_SERVER = resolve("node_modules/@modelcontextprotocol/server-everything/dist/index.js")
  const sum = [calls(["everything__get-sum", { a: 2, b: 3 }]), say("It is 5.")]
  const mcp = await program("l-mcp.ts", sum, { env: { MCP_SERVER } })
  assert.match(mcp.out, /It is 5\./)
  assert.match(JSON.stringify(mcp.sent.at(-1)?.body), /sum of 2 and 3 is 5/i)
}

/** A mistake in `mistakes.ts`: `// says: …` is what the compiler says of it, or the program when it is run. */
const mistakes = () => {
  const source = readFileSync("scripts/first/mistakes.ts", "utf8")
  const page = readFileSync("docs/troubleshooting.md", "utf8")
  const output = spawnSync(
    process.execPath,
    [join(folder, "node_modules/typescript/bin/tsc"), "--pretty", "false", "-p", join(folder, "mistakes")],
    { cwd: folder, encoding: "utf8" }
  ).stdout
  const told = source.split("\n").flatMap((line, index) => {
    const [, says, answer] = /^ *\/\/ says: (.*?)(?: — page: (.*))?$/.exec(line) ?? []
    return says === undefined ? [] : [{ at: index + 2, says, answer }]
  })
  assert.ok(told.length > 0, "mistakes.ts says nothing: this check would check nothing")
  for (const { answer, at, says } of told) {
    const next = source.split("\n").findIndex((line, index) => index >= at && /^ *\/\/ says: /.test(line))
    const until = next === -1 ? Number.POSITIVE_INFINITY : next
    const of = output
      .split(/^(?=mistakes)/m)
      .filter((one) => {
        const line = Number(/^[^(]*\((\d+),/.exec(one)?.[1])
        return line >= at && line <= until
      })
      .join("")
    assert.ok(of.includes(says), `mistakes.ts:${at}: the compiler says\n${of}\nand not\n${says}`)
    assert.ok(answer === undefined || page.includes(answer), `docs/troubleshooting.md does not answer ${answer}`)
  }
  return told.length
}

/** Bundles a program for browsers and runs it in one. */
const inBrowser = async () => {
  console.log("$ esbuild --platform=browser browser.ts, in Chromium")
  const { outputFiles } = buildSync({
    absWorkingDir: folder,
    entryPoints: ["browser.ts"],
    bundle: true,
    format: "esm",
    platform: "browser",
    write: false,
    logLevel: "warning"
  })
  const executablePath = await chromium.executablePath()
  const browser = await playwright.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] })
  const page = await browser.newPage()
  const failures: Array<string> = []
  page.on("pageerror", (failure) => failures.push(failure.message))
  // A page of this machine, since `crypto.randomUUID` is for secure contexts alone.
  await page.route("http://localhost/", (route) => route.fulfill({ contentType: "text/html", body: "<title></title>" }))
  await page.goto("http://localhost/")
  await page.addScriptTag({ type: "module", content: outputFiles[0]?.text ?? "" })
  await page.waitForFunction("document.title !== ''", undefined, { timeout: 30_000 }).catch(() => undefined)
  const title = await page.title()
  await browser.close()
  assert.deepEqual([title, ...failures], ["It says hello."])
}

try {
  pack(folder)
  write("package.json", JSON.stringify({ private: true, type: "module" }))
  const compilerOptions = {
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    noEmit: true,
    target: "ES2023",
    lib: ["ES2023", "ESNext.Disposable", "DOM", "DOM.AsyncIterable"],
    module: "NodeNext",
    types: ["node"],
    skipLibCheck: true
  }
  write("tsconfig.json", JSON.stringify({ compilerOptions, include: ["*.ts"] }))
  write("mistakes/tsconfig.json", JSON.stringify({ extends: "../tsconfig.json", include: ["*.ts"] }))
  const packages = [
    "effect",
    "@effect/platform-node",
    "@anthropic-ai/sdk",
    "openai",
    "zod",
    "typescript",
    "@types/node"
  ]
  const peers = [...packages, "@modelcontextprotocol/client"].map(installed)
  // A package of the registry, of the version that docs/runtimes.md names; their install scripts are not needed.
  run(
    "npm",
    "install",
    "--ignore-scripts",
    "--prefer-offline",
    "--no-audit",
    "--no-fund",
    "--loglevel=error",
    `./${manifest.name}-${manifest.version}.tgz`,
    ...peers,
    // As docs/hono.md names them.
    "hono@4.13.19",
    "@hono/node-server@2.1.9",
    "bun@1.4.5",
    "deno@2.9.6"
  )
  for (const [name, most] of Object.entries(lines)) {
    const source = readFileSync(join("scripts/first", name), "utf8")
    const count = source.split("\n").filter((line) => line.trim() !== "" && !line.startsWith("/**")).length
    assert.ok(count <= most, `${name} has ${count} lines, and may have ${most}`)
    cpSync(join("scripts/first", name), join(folder, name))
  }
  for (const name of ["runtimes.ts", "browser.ts", "mistakes-at-run.ts"])
    cpSync(join("scripts/first", name), join(folder, name))
  cpSync("scripts/first/mistakes.ts", join(folder, "mistakes/mistakes.ts"))
  run(process.execPath, "node_modules/typescript/bin/tsc", "-p", ".")
  const count = mistakes()
  run(process.execPath, "mistakes-at-run.ts")
  await programs()
  run(process.execPath, "runtimes.ts")
  const [bun = "", deno = ""] = ["node_modules/@oven/*/bin/bun", "node_modules/@deno/*/deno"].map(
    (path) => globSync(join(folder, path))[0]
  )
  run(bun, "runtimes.ts")
  run(deno, "run", "--allow-all", "--node-modules-dir=manual", "--no-lock", "runtimes.ts")
  await inBrowser()
  console.log(
    `programs: ${Object.keys(lines).length} run as the docs say, ${count} mistakes are answered; Bun, Deno and Chromium run`
  )
} finally {
  rmSync(folder, { recursive: true, force: true })
}
