/** Servers in the program: signing in, `/mcp` of the chat, and their prompts as commands. */
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { say, serve } from "../models/servers/anthropic.ts"
import { isFull } from "../scale.ts"
import { guarded } from "../servers/guarded.ts"
import { browse, confirmDevice } from "../servers/oidc.ts"
import { type build, useProgram } from "./built.ts"

const program = useProgram()

type Started = ReturnType<ReturnType<typeof build>["start"]>

/** Waits for a pattern in a program's output; returns the match. */
const waitForMatch = (started: Started, pattern: RegExp, from: "out" | "err" = "out") =>
  Effect.callback<string>((resume) => {
    const look = () => {
      const found = pattern.exec(started[from]())
      if (found !== null) resume(Effect.succeed(found[1] ?? found[0]))
    }
    started.child[from === "out" ? "stdout" : "stderr"].on("data", look)
    void started.ended.then(({ err, out }) => resume(Effect.die(`not seen: ${pattern}\n${out}\n${err}`)))
    look()
  })

const signIn = (page: string) =>
  Effect.flatMap(
    browse(page, (url) => url.pathname === "/callback"),
    (callback) => Effect.promise(() => fetch(callback).then((response) => response.text()))
  )

const page = /(http:\/\/127\.0\.0\.1:\d+\/auth\?\S+)/

/** A home whose user has a protected server. */
const world = Effect.gen(function* () {
  const { url } = yield* guarded
  const cwd = program.folder()
  const env = { XDG_DATA_HOME: join(cwd, "data"), XDG_CONFIG_HOME: join(cwd, "config") }
  const added = yield* program.run(cwd, ["mcp", "add", "guarded", url], env)
  assert.equal(added.code, 0, added.err)
  return { cwd, env }
})

const filesIn = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((name) => statSync(name).isFile())

describe("servers of the program", { timeout: 90_000 }, () => {
  it.live("that can't be started are said in the chat, with the reason", () =>
    Effect.gen(function* () {
      const cwd = program.folder()
      const env = { XDG_CONFIG_HOME: join(cwd, "config"), ANTHROPIC_API_KEY: "sk-ant-test" }
      const added = yield* program.run(cwd, ["mcp", "add", "broken", "--", "/no/such/program"], env)
      assert.equal(added.code, 0, added.err)
      const chat = program.start(cwd, ["--plain"], env, null)
      yield* waitForMatch(chat, /! The server broken can't be used: .*\/no\/such\/program.*\(\/mcp shows all\)/)
      chat.child.stdin.end("/quit\n")
      yield* Effect.promise(() => chat.ended)
    })
  )

  it.live("are signed in to by their page, once; the tokens are kept sealed, for runs", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { cwd, env } = yield* world
        const before = yield* program.run(cwd, ["mcp", "test"], env)
        assert.equal(before.code, 1)
        assert.match(before.out, /✗ +guarded .*deepagents mcp login/)
        const login = program.start(cwd, ["mcp", "login", "guarded"], env)
        yield* signIn(yield* waitForMatch(login, page, "err"))
        const done = yield* Effect.promise(() => login.ended)
        assert.equal(done.code, 0, done.err)
        assert.match(done.err, /guarded is connected: 2 tools/)
        const after = yield* program.run(cwd, ["mcp", "test"], env)
        assert.equal(after.code, 0, after.err)
        assert.match(after.out, /✓ +guarded +2 tools: look, write/)
        for (const file of filesIn(join(cwd, "data"))) {
          assert.notMatch(readFileSync(file, "utf8"), /eyJ[\w-]+\.eyJ|access_token|refresh_token/, file)
          assert.equal(statSync(file).mode & 0o077, 0, file)
        }
      })
    )
  )

  it.live.runIf(isFull)("are signed in to by a code that is typed in elsewhere", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { cwd, env } = yield* world
        const login = program.start(cwd, ["mcp", "login", "guarded", "--device"], env)
        const url = yield* waitForMatch(login, /(http:\/\/127\.0\.0\.1:\d+\/device\?\S+)/, "err")
        yield* waitForMatch(login, /on any device, with the code [A-Z]{4}-[A-Z]{4}, within 5 minutes/, "err")
        yield* confirmDevice(url)
        const done = yield* Effect.promise(() => login.ended)
        assert.equal(done.code, 0, done.err)
        assert.match(done.err, /guarded is connected: 2 tools/)
      })
    )
  )

  it.live.runIf(isFull)(
    "are shown, signed in to and connected anew by /mcp; their prompts are commands with arguments",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { cwd, env } = yield* world
          const everything = join(process.cwd(), "node_modules/@modelcontextprotocol/server-everything/dist/index.js")
          writeFileSync(
            join(cwd, ".mcp.json"),
            JSON.stringify({ mcpServers: { everything: { command: process.execPath, args: [everything] } } })
          )
          const { requests, url } = yield* serve(say("It rains."))
          const model = { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "sk-ant-test" }
          const chat = program.start(cwd, ["chat", "--trust"], { ...env, ...model }, null)
          const type = (line: string) => Effect.sync(() => chat.child.stdin.write(`${line}\n`))
          yield* type("/mcp")
          yield* waitForMatch(chat, /everything connected, \d+ tools/)
          yield* waitForMatch(chat, /guarded failed:[^]*\/mcp\s+login/)
          yield* type("/mcp lgin guarded")
          yield* waitForMatch(chat, /Did you mean "login"/)
          yield* type("/mcp login guarded")
          yield* signIn(yield* waitForMatch(chat, page))
          yield* waitForMatch(chat, /guarded connected, 2 tools/)
          yield* type("/mcp tools guarded")
          yield* waitForMatch(chat, /look \(reads only\)/)
          yield* type("/mcp reconnect everything")
          yield* waitForMatch(chat, /(?:everything connected[^]*){2}/)
          yield* type("/everything:args-prompt")
          yield* waitForMatch(chat, /It needs city:\s+\/everything:args-prompt\s+<city>/)
          yield* type('/everything:args-prompt "New Haven" Connecticut, USA')
          yield* waitForMatch(chat, /It rains/)
          assert.match(JSON.stringify(requests[0]?.body), /weather in New Haven, Connecticut, USA/)
          yield* type("/quit")
          assert.equal((yield* Effect.promise(() => chat.ended)).code, 0)
        })
      )
  )
})
