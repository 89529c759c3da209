/** Diagnostics after edits: by installed servers, never by programs of the project. */
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { sparing } from "../../src/cli/internal/work/diagnostics.ts"
import { installedBeside } from "../../src/cli/internal/work/machine/programs.ts"
import { answer, say, serve, stream } from "../models/servers/anthropic.ts"
import { isFull } from "../scale.ts"
import { useProgram } from "./built.ts"

const program = useProgram()

/** A language server that finds one problem in each file, and writes its environment down. */
const server = `#!/usr/bin/env node
require("node:fs").writeFileSync(process.env.HOME + "/server.json", JSON.stringify({ pid: process.pid, env: process.env, cwd: process.cwd() }))
let all = Buffer.alloc(0)
let hasSettings = false
const asked = []
const send = (message) => {
  const body = JSON.stringify({ jsonrpc: "2.0", ...message })
  process.stdout.write("Content-Length: " + Buffer.byteLength(body) + "\\r\\n\\r\\n" + body)
}
process.stdin.on("end", () => process.exit(0)).on("data", (chunk) => {
  all = Buffer.concat([all, chunk])
  for (;;) {
    const end = all.indexOf("\\r\\n\\r\\n")
    if (end < 0) return
    const size = Number(/length: (\\d+)/i.exec(all.subarray(0, end))[1])
    if (all.length < end + 4 + size) return
    const { id, method, result } = JSON.parse(all.subarray(end + 4, end + 4 + size))
    all = all.subarray(end + 4 + size)
    if (id === "settings") {
      require("node:fs").writeFileSync(process.env.HOME + "/settings.json", JSON.stringify(result))
      hasSettings = true
    }
    if (method === "initialized") send({ id: "settings", method: "workspace/configuration", params: { items: [{ section: "typescript" }] } })
    if (method === "initialize") send({ id, result: { capabilities: { diagnosticProvider: {} } } })
    if (method === "textDocument/diagnostic") asked.push(id)
    while (hasSettings && asked.length > 0) {
      const start = { line: 0, character: 6 }
      const items = [{ range: { start, end: start }, severity: 1, code: 2322, message: "no string" }]
      send({ id: asked.shift(), result: { items } })
    }
  }
})
`

const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

const script = (file: string, text: string): void => {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
  chmodSync(file, 0o755)
}

/** Lets the model write a file, and returns its messages about that. */
const edited = Effect.fnUntraced(function* (
  cwd: string,
  path: string,
  env: { readonly [name: string]: string } = {},
  name = "x.ts"
) {
  const { requests, url } = yield* serve(
    stream(
      answer([{ call: "write_file", id: "toolu_1", input: { file_path: name, content: "const x: number = 'a'\n" } }])
    ),
    say("Done.")
  )
  const done = yield* program.run(cwd, ["run", "Write it", "--yolo"], {
    ANTHROPIC_BASE_URL: url,
    ANTHROPIC_API_KEY: "sk-ant-test",
    XDG_DATA_HOME: join(cwd, "..", "data"),
    PATH: path,
    HOME: cwd,
    ...env
  })
  assert.strictEqual(done.code, 0, done.err)
  return JSON.stringify(requests[1]?.body.messages)
})

describe("diagnostics after edits", { timeout: 120_000 }, () => {
  it.effect("come from an installed server, which ends with the session and gets no key", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const cwd = program.folder()
        const bin = program.folder()
        script(join(bin, "tsc"), server)
        const said = yield* edited(cwd, `${bin}:${process.env["PATH"]}`)
        assert.include(said, "1:7 error 2322: no string")
        const { cwd: at, env, pid } = JSON.parse(readFileSync(join(cwd, "server.json"), "utf8"))
        assert.notProperty(env, "ANTHROPIC_API_KEY")
        // Neither types nor modules that a project names are fetched.
        assert.deepEqual([env.GOPROXY, env.GONOPROXY], ["off", "none"])
        const settings = JSON.parse(readFileSync(join(cwd, "settings.json"), "utf8"))
        assert.deepEqual(settings, [{ disableAutomaticTypeAcquisition: true }])
        assert.strictEqual(at, cwd)
        assert.isFalse(isRunning(pid))
        const python = yield* edited(program.folder(), `${bin}:${process.env["PATH"]}`, {}, "x.py")
        assert.notInclude(python, "language server")
      })
    )
  )

  it.effect.runIf(isFull)("never come from a program of the project, wherever the path leads", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const root = program.folder()
        const cwd = join(root, "packages/a")
        mkdirSync(join(root, ".git"))
        const links = program.folder()
        for (const bin of [join(cwd, "node_modules/.bin"), join(root, "node_modules/.bin")]) {
          script(join(bin, "tsc"), `#!/bin/sh\ntouch ${root}/hostile\n`)
          symlinkSync(join(bin, "tsc"), join(links, existsSync(join(links, "tsc")) ? "tsgo" : "tsc"))
        }
        const path = [
          "node_modules/.bin",
          ".",
          "",
          join(cwd, "node_modules/.bin"),
          join(root, "node_modules/.bin"),
          links
        ]
        const said = yield* edited(cwd, [...path, "/usr/bin", "/bin"].join(":"))
        assert.notInclude(said, "language server")
        assert.isFalse(existsSync(join(root, "hostile")))
        const bin = program.folder()
        script(join(bin, "tsc"), "#!/bin/sh\n")
        const installed = yield* installedBeside([root, cwd], [...path, bin].join(":"))
        assert.strictEqual(yield* installed.find("tsc"), join(bin, "tsc"))
        assert.isUndefined(yield* installed.find("tsgo"))
        assert.strictEqual(installed.path, [links, bin].join(":"))
      })
    ).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect.runIf(isFull)("cost nothing where the server is no server, is switched off, or is the user's own", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const bin = program.folder()
        script(join(bin, "tsc"), "#!/bin/sh\necho 'error TS5023: Unknown compiler option --lsp.'\nexit 1\n")
        script(join(bin, "mine"), server)
        const path = `${bin}:${process.env["PATH"]}`
        assert.notInclude(yield* edited(program.folder(), path), "language server")
        const config = program.folder()
        const settings = (lsp: unknown): void => {
          mkdirSync(join(config, "deepagents"), { recursive: true })
          writeFileSync(join(config, "deepagents/config.json"), JSON.stringify({ lsp }))
        }
        settings({ mine: { command: ["mine"], languages: { ts: "typescript" } } })
        const own = yield* edited(program.folder(), path, { XDG_CONFIG_HOME: config })
        assert.include(own, "no string")
        settings(false)
        const off = yield* edited(program.folder(), path, { XDG_CONFIG_HOME: config })
        assert.notInclude(off, "no string")
        const project = program.folder()
        mkdirSync(join(project, ".deepagents"))
        writeFileSync(join(project, ".deepagents/config.json"), JSON.stringify({ lsp: false }))
        const refused = yield* program.run(project, ["config", "--trust"])
        assert.strictEqual(refused.code, 2, refused.out)
        assert.match(refused.err, /"lsp" can't be set by a project/)
      })
    )
  )

  it.effect("are no longer waited for when the server is silent; it is asked again after a minute", () =>
    Effect.gen(function* () {
      let asked = 0
      let isSilent = true
      const diagnose = sparing(() =>
        Effect.sync(() => {
          asked += 1
          return isSilent ? undefined : []
        })
      )
      const ask = (times: number) => Effect.forEach(Array.from({ length: times }), () => diagnose("/x.ts", ""))
      yield* ask(10)
      assert.strictEqual(asked, 3)
      yield* TestClock.adjust("61 seconds")
      isSilent = false
      yield* ask(10)
      assert.strictEqual(asked, 13)
    })
  )
})
