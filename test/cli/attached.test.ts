/** The terminal as a client of a running server, in a real pseudo-terminal. */
import { type ChildProcess, spawn } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Agent, Message, Tool } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { Server } from "effect-deepagents/server"
import { MemorySessions } from "effect-deepagents/sessions"
import { Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { bundle } from "../bundle.ts"
import { ask, serve } from "../server/door.ts"
import { makeFolder, opener, type Program } from "./program.ts"

let file: string
let server: string
const open = opener()

beforeAll(() => {
  file = bundle(new URL("children/attach.ts", import.meta.url))
  server = bundle(new URL("../server/children/sharedServer.ts", import.meta.url))
}, 120_000)

/** Starts the server, and waits until it listens. */
const boot = (folder: string, port = "0") =>
  Effect.acquireRelease(
    Effect.promise(
      () =>
        new Promise<{ readonly child: ChildProcess; readonly url: string }>((resolve) => {
          const child = spawn(process.execPath, [server, folder, port], { stdio: ["ignore", "pipe", "ignore"] })
          let text = ""
          child.stdout.on("data", (chunk) => {
            text += String(chunk)
            const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(text) ?? []
            if (url !== undefined) resolve({ child, url })
          })
        })
    ),
    ({ child }) => kill(child)
  )

const kill = (child: ChildProcess) =>
  Effect.promise(
    () =>
      new Promise<void>((resolve) => {
        if (child.exitCode !== null || child.signalCode !== null) return resolve()
        child.on("close", () => resolve())
        child.kill("SIGKILL")
      })
  )

const attach = (args: ReadonlyArray<string>, env: Record<string, string> = {}) => {
  const home = makeFolder()
  const named = { HOME: home, XDG_DATA_HOME: home, XDG_CONFIG_HOME: home, DEEPAGENTS_ATTACH_TOKEN: "token", ...env }
  return open([file, "--cwd", home, "attach", ...args], { rows: 40, env: named })
}

const until = (program: Program, wanted: string | ((text: string) => boolean)) =>
  Effect.promise(() => program.until(wanted))

const stores = Layer.merge(MemorySessions.layer, Storage.layerMemory)

const ready = "/ commands"

const count = (program: Program, text: string): number => program.text().split(text).length - 1

/** Waits until a question takes keys: after a pause alone. */
const isArmed = (program: Program) =>
  Effect.promise(() => program.draft((text) => text.includes("y yes") && !text.includes("stop typing")))

describe("deepagents attach", { timeout: 120_000 }, () => {
  it.live("streams a run, answers its questions beside another terminal, and goes on when the server was killed", () =>
    Effect.gen(function* () {
      const folder = makeFolder()
      const first = yield* boot(folder)
      const { url } = first
      const ada = attach([url])
      yield* until(ada, ready)
      ada.type("Note and pay\r")
      yield* until(ada, "wants to call pay")
      const threads = yield* ask(`${url}/threads`, { token: "token" })
      const thread = String(threads.at("threads", 0, "id"))
      const bob = attach([url, thread])
      yield* until(bob, "wants to call pay")
      // Both press a key: the first one counts, and no terminal asks again.
      yield* Effect.all([isArmed(ada), isArmed(bob)], { concurrency: 2 })
      for (const one of [ada, bob]) one.type("y")
      yield* until(ada, "This is round 2")
      yield* kill(first.child)
      yield* until(ada, "trying again")
      yield* until(bob, "trying again")
      const { port } = new URL(url)
      const second = yield* boot(folder, port)
      yield* until(ada, (text) => text.split("wants to call pay").length === 3)
      yield* until(bob, (text) => text.split("wants to call pay").length === 3)
      yield* isArmed(bob)
      bob.type("y")
      yield* until(ada, (text) => text.split("✓ pay").length === 3)
      ada.type("Mind the numbers\r")
      yield* until(ada, "told the run at work")
      ada.type("\u001b")
      yield* until(ada, "The run goes on at the server")
      writeFileSync(join(folder, "go"), "")
      for (const one of [ada, bob]) {
        yield* until(one, "Mind the numbers")
        yield* until(one, "All of it is done.")
        yield* Effect.promise(() => one.draft((text) => text.includes(ready)))
        for (const round of [0, 1, 2, 3]) assert.strictEqual(count(one, `This is round ${round},`), 1, one.text())
        assert.strictEqual(count(one, "wants to call pay"), 2)
        assert.strictEqual(count(one, "✓ pay"), 2)
        assert.strictEqual(count(one, "✓ note"), 3)
      }
      assert.strictEqual(readFileSync(join(folder, "paid"), "utf8"), "10\n30\n")
      ada.type("\u0004")
      yield* until(ada, `deepagents attach ${url} ${thread}`)
      assert.strictEqual(yield* Effect.promise(() => ada.ended), 0)
      bob.type("!rm -rf /\r")
      yield* until(bob, "would run this on your machine")
      bob.type("/undo\r")
      yield* until(bob, "There is no /undo here")
      bob.type("/threads\r")
      yield* until(bob, "go over to …")
      const before = count(bob, "This is round 3,")
      bob.type("\r")
      yield* until(bob, "── Note and pay")
      yield* until(bob, (text) => text.split("This is round 3,").length - 1 > before)
      yield* kill(second.child)
    }).pipe(Effect.scoped)
  )

  it.live("goes back, goes over to a copy, and shows the change of an edit as a diff", () =>
    Effect.gen(function* () {
      const edit = Tool.make("edit_file", {
        description: "Edits a file",
        parameters: { file_path: Schema.String, old_string: Schema.String, new_string: Schema.String },
        annotations: { editsFiles: true },
        execute: () => Effect.succeed("edited")
      })
      const helper = Agent.make({
        name: "helper",
        prompt: "",
        tools: [edit],
        middleware: [HumanInTheLoop.make({ tools: { edit_file: true } })]
      })
      const model = TestChatModel.reactive(({ messages }) => {
        const last = messages.at(-1)
        if (last?.role !== "human") return "It is edited."
        const count = messages.filter(({ role }) => role === "human").length
        const args = { file_path: "/notes.md", old_string: "two", new_string: "zwei" }
        return Message.text(last) === "edit"
          ? TestChatModel.calls([{ name: "edit_file", arguments: args }])
          : `You said ${Message.text(last)}, of ${count}.`
      })
      const runs = Server.layer({ helper }).pipe(Layer.provide(model))
      const files = () => MemoryBackend.make({ files: { "/notes.md": "one\ntwo\nthree\n" } })
      const url = yield* serve(runs, { files })
      const env = { DEEPAGENTS_ATTACH_TOKEN: "token-of-ada" }
      const say = Effect.fnUntraced(function* (program: Program, words: string, answer: string) {
        yield* Effect.promise(() => program.draft((text) => text.includes(ready)))
        program.type(`${words}\r`)
        yield* until(program, answer)
      })
      const countMessages = (thread: string) =>
        Effect.map(ask(`${url}/threads/${thread}/history`), (history) => history.at("messages", "length"))
      const ada = attach([url], env)
      yield* until(ada, ready)
      yield* say(ada, "/rewind", "Nothing was said yet")
      yield* say(ada, "alpha", "You said alpha, of 1.")
      yield* say(ada, "beta", "You said beta, of 2.")
      const thread = String((yield* ask(`${url}/threads`)).at("threads", 0, "id"))
      const bob = attach([url, thread], env)
      yield* until(bob, "You said beta, of 2.")
      yield* say(ada, "/rewind", "go back to before")
      ada.type("\r")
      yield* until(ada, "back to before: beta")
      yield* until(bob, "The conversation was changed elsewhere")
      assert.strictEqual(yield* countMessages(thread), 2)
      // Its words are in the draft.
      yield* Effect.promise(() => ada.draft((text) => text.includes("beta")))
      ada.type(" again\r")
      yield* until(ada, "You said beta again, of 2.")
      assert.notInclude(ada.text(), "changed elsewhere")
      yield* say(ada, "/rewind 7", "There is no turn 7; there are 2")
      yield* say(ada, "/fork 2", "a copy of the thread")
      yield* Effect.promise(() => ada.draft((text) => text.includes("beta again")))
      ada.type("\r")
      yield* until(ada, (text) => text.split("You said beta again, of 2.").length === 3)
      yield* say(ada, "/fork", "the other one is")
      yield* until(ada, (text) => text.split("a copy of the thread").length === 3)
      assert.strictEqual((yield* ask(`${url}/threads`)).at("threads", "length"), 3)
      assert.strictEqual(yield* countMessages(thread), 4)
      const others = yield* Layer.build(Layer.fresh(stores))
      const isolated = attach([yield* Effect.provideContext(serve(runs), others)], env)
      yield* until(isolated, ready)
      yield* say(ada, "edit", "wants to call edit_file")
      yield* say(isolated, "edit", "wants to call edit_file")
      // Without the files of the server, the change is known by the call alone.
      for (const [program, context] of [
        [ada, true],
        [isolated, false]
      ] as const) {
        assert.match(program.text(), /-two\s+\+zwei/)
        assert.strictEqual(/ three\b/.test(program.text()), context)
        assert.notInclude(program.text(), "old_string")
        yield* isArmed(program)
        program.type("y")
        yield* until(program, "It is edited.")
      }
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(stores)))
  )

  it.live("shows no control of a hostile server, and says what to do about its refusals", () =>
    Effect.gen(function* () {
      const evil = "\u001b]0;owned\u0007\u001b[2J\u202etitle"
      const seen: Array<string | undefined> = []
      const hostile = yield* Effect.acquireRelease(
        Effect.promise(
          () =>
            new Promise<ReturnType<typeof createServer>>((resolve) => {
              const one = createServer((request, response) => {
                seen.push(request.headers.authorization)
                const { url = "" } = request
                if (request.headers.authorization !== "Bearer token") {
                  response.writeHead(401)
                  return void response.end(JSON.stringify({ detail: `no ${evil}` }))
                }
                if (url === "/agents")
                  return void response.end(JSON.stringify({ agents: [{ name: evil }], modes: [evil] }))
                if (url.startsWith("/threads?")) {
                  return void response.end(JSON.stringify({ threads: [{ id: "t", title: evil, state: evil }] }))
                }
                if (url === "/threads/t/state") {
                  return void response.end(JSON.stringify({ state: "idle", pending: [], position: "0.0.s.0" }))
                }
                response.writeHead(200, { "content-type": "text/event-stream" })
                const event = { v: 1, path: [evil], runId: "r", seq: 1, at: 1 }
                const texts = [
                  { _tag: "RunStarted", agent: evil, ...event },
                  { _tag: "RoundStarted", round: 1, messageId: "m", ...event },
                  { _tag: "TextDelta", text: `${evil}\n\nshown\n\n`, ...event },
                  { _tag: "Warning", code: "x", message: evil, ...event },
                  { _tag: "Nonsense", ...event }
                ]
                response.write(
                  texts.map((one) => `id: ${evil}\nevent: event\ndata: ${JSON.stringify(one)}\n\n`).join("")
                )
              })
              one.listen(0, "127.0.0.1", () => resolve(one))
            })
        ),
        (one) =>
          Effect.sync(() => {
            one.closeAllConnections()
            one.close()
          })
      )
      const address = hostile.address()
      const url = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`
      const program = attach([url])
      yield* until(program, ready)
      program.type("/threads\r")
      yield* until(program, "go over to …")
      program.type("\r")
      yield* until(program, "shown")
      assert.notInclude(program.raw(), "owned\u0007")
      assert.notInclude(program.raw(), "\u001b[2J")
      assert.notInclude(program.raw(), "\u202e")
      const refused = attach([url], { DEEPAGENTS_ATTACH_TOKEN: "other" })
      yield* until(refused, (text) => text.includes("--token-file") && text.includes("--login"))
      assert.strictEqual(yield* Effect.promise(() => refused.ended), 1)
      assert.notInclude(refused.raw(), "owned\u0007")
      const plain = attach(["http://10.1.2.3:8137"])
      yield* until(plain, "ssh -L")
      const local = open([file, "--yolo", "attach", url], { env: { HOME: makeFolder() } })
      yield* until(local, "--yolo: the agent works on the server")
      assert.deepStrictEqual(new Set(seen), new Set(["Bearer token", "Bearer other"]))
    }).pipe(Effect.scoped)
  )
})
