import { type ChildProcess, spawn } from "node:child_process"
/** `deepagents serve`: its token, its end by `kill -9`, and the next server of the folder. */
import { createHmac } from "node:crypto"
import { globSync, mkdtempSync, readFileSync, statSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { endChild } from "../child.ts"
import { isFull } from "../scale.ts"
import { ask, readFrames } from "../server/door.ts"
import { foldFrames, showState } from "../server/reader.ts"
import { freePort } from "../servers/port.ts"
import { postgres } from "../servers/postgres.ts"
import { build } from "./built.ts"
import { model } from "./model.ts"

const { bin } = build()

interface Served {
  readonly child: ChildProcess
  readonly text: string
}

/** Runs the program until it prints a link, or ends. */
const serve = (
  home: string,
  args: ReadonlyArray<string>,
  env: Record<string, string> = {},
  flags: ReadonlyArray<string> = ["--demo"]
) =>
  Effect.callback<Served>((resume) => {
    const child = spawn(process.execPath, [bin, ...flags, "--cwd", home, "serve", "--port", "0", ...args], {
      env: { PATH: process.env["PATH"] ?? "", HOME: home, XDG_DATA_HOME: join(home, "data"), ...env }
    })
    let text = ""
    const take = (chunk: Buffer) => {
      text += chunk.toString()
      if (text.includes("within a minute") || text.includes("Requests need")) resume(Effect.succeed({ child, text }))
    }
    child.stdout.on("data", take)
    child.stderr.on("data", take)
    child.on("close", () => resume(Effect.succeed({ child, text })))
    return Effect.sync(() => child.kill("SIGKILL"))
  })

/** The address and the token that the server keeps for programs. */
const readKnown = (home: string, data = "data"): { readonly url: string; readonly token: string } => {
  const [file = ""] = globSync(join(home, data, "deepagents/serve/*/server.json"))
  assert.strictEqual(statSync(file).mode & 0o777, 0o600)
  return JSON.parse(readFileSync(file, "utf8"))
}

describe("deepagents serve", () => {
  it.live(
    "is killed, and the next one goes on with its runs, by the same token",
    () =>
      Effect.gen(function* () {
        const home = mkdtempSync(join(tmpdir(), "serve-"))
        const first = yield* serve(home, [])
        const { token, url } = readKnown(home)
        assert.include(first.text, `Open ${url}/#t=`)
        assert.notInclude(first.text, token)
        assert.strictEqual((yield* ask(`${url}/agents`, { token: "" })).status, 401)
        const taken = yield* ask(`${url}/threads/t/runs`, { token, body: { agent: "deep", input: "hello", id: "1" } })
        assert.strictEqual(taken.status, 202)
        yield* endChild(first.child)
        const second = yield* serve(home, [])
        const known = readKnown(home)
        assert.strictEqual(known.token, token)
        const { frames } = yield* readFrames(`${known.url}/threads/t/events`, { token })
        const { end, messages } = showState(foldFrames(frames))
        assert.match(end, /^RunCompleted/)
        assert.strictEqual(messages.filter(([, id]) => id === "input:1").length, 1)
        const busy = yield* serve(home, [])
        assert.include(busy.text, "Another process serves")
        yield* endChild(second.child)
      }),
    240_000
  )

  it.live.runIf(isFull)(
    "tells the server of the environment, by a signature, that a run has ended",
    () =>
      Effect.gen(function* () {
        const home = mkdtempSync(join(tmpdir(), "serve-"))
        const key = Buffer.from("a key of at least 24 bytes")
        const told = Promise.withResolvers<{ readonly text: string; readonly isSigned: boolean }>()
        const desk = createServer((request, response) => {
          let text = ""
          request.on("data", (chunk) => (text += String(chunk)))
          request.on("end", () => {
            const { "webhook-id": id, "webhook-signature": signature, "webhook-timestamp": at } = request.headers
            const tag = createHmac("sha256", key)
              .update(`${String(id)}.${String(at)}.${text}`)
              .digest("base64")
            told.resolve({ text, isSigned: signature === `v1,${tag}` })
            response.end()
          })
        })
        yield* Effect.promise(() => new Promise<void>((done) => desk.listen(0, "127.0.0.1", () => done())))
        yield* Effect.addFinalizer(() => Effect.sync(() => desk.close()))
        const address = desk.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        const url = `http://127.0.0.1:${port}/hook?key=hidden`
        const wrong = yield* serve(home, [], { DEEPAGENTS_WEBHOOK_URL: url, DEEPAGENTS_WEBHOOK_SECRET: "whsec_short" })
        assert.include(wrong.text, "DEEPAGENTS_WEBHOOK_SECRET: expected whsec_")
        const secret = `whsec_${key.toString("base64")}`
        const { child } = yield* serve(home, [], { DEEPAGENTS_WEBHOOK_URL: url, DEEPAGENTS_WEBHOOK_SECRET: secret })
        const known = readKnown(home)
        const body = { agent: "deep", input: "hello", id: "1" }
        yield* ask(`${known.url}/threads/t/runs`, { token: known.token, body })
        const { isSigned, text } = yield* Effect.promise(() => told.promise)
        assert.isTrue(isSigned)
        assert.match(text, /"type":"run\.ended".*"thread":"t","input":"1"/u)
        yield* endChild(child)
      }).pipe(Effect.scoped),
    120_000
  )

  it.live(
    "acts by the mode of each input, never looser than it was started, and offers the models of the keys",
    () =>
      Effect.gen(function* () {
        const home = mkdtempSync(join(tmpdir(), "serve-"))
        const { bodies, env } = yield* model((body) => {
          const [, name = ""] = /write (\w+)(?!.*write \w)/su.exec(body) ?? []
          const { messages = [] } = JSON.parse(body || "{}")
          const isAnswered = JSON.stringify(messages.at(-1) ?? "").includes("tool_result")
          return isAnswered || name === ""
            ? [{ text: "Done." }]
            : [{ call: "write_file", id: `call-${name}`, input: { file_path: join(home, name), content: "x" } }]
        })
        const { child } = yield* serve(home, [], env, ["--approvals", "auto-edit"])
        yield* Effect.addFinalizer(() => endChild(child))
        const { token, url } = readKnown(home)
        const offers = yield* ask(`${url}/agents`, { token })
        assert.deepStrictEqual(offers.at("modes"), ["auto-edit", "ask", "plan"])
        const own = offers.at("models", 0)
        assert.match(String(own), /^anthropic:/u)
        const say = (thread: string, name: string, more: object = {}) =>
          Effect.gen(function* () {
            const body = { agent: "deep", input: `write ${name}`, ...more }
            const { status } = yield* ask(`${url}/threads/${thread}/runs`, { token, body })
            assert.strictEqual(status, 202)
            yield* ask(`${url}/threads/${thread}/events`, { token })
            return (yield* ask(`${url}/threads/${thread}/state`, { token })).at("state")
          })
        assert.strictEqual(yield* say("t", "first", { model: own }), "idle")
        assert.strictEqual(yield* say("t", "second", { mode: "plan" }), "idle")
        assert.strictEqual(yield* say("u", "third", { mode: "ask" }), "waiting")
        assert.deepStrictEqual(
          ["first", "second", "third"].map((name) => globSync(join(home, name)).length),
          [1, 0, 0]
        )
        assert.isTrue(bodies.some((body) => body.includes("This is plan mode")))
        const wrong = yield* ask(`${url}/threads/t/runs`, { token, body: { agent: "deep", input: "x", mode: "yolo" } })
        assert.strictEqual(wrong.status, 400)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live.runIf(isFull)(
    "shares a Postgres: one stands by and takes over, or all of a cluster have every thread",
    () =>
      Effect.gen(function* () {
        const home = mkdtempSync(join(tmpdir(), "serve-"))
        const url = yield* postgres
        const database = { DEEPAGENTS_DATABASE_URL: url }
        const start = Effect.fnUntraced(function* (data: string, env: Record<string, string> = {}) {
          const served = yield* Effect.acquireRelease(
            serve(home, [], { ...database, XDG_DATA_HOME: join(home, data), ...env }),
            ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
          )
          assert.include(served.text, "Threads are in postgres://postgres@127.0.0.1")
          assert.notInclude(served.text, url)
          return { ...served, ...readKnown(home, data) }
        })
        const post = (at: { readonly url: string; readonly token: string }, id: string) =>
          Effect.repeat(
            ask(`${at.url}/threads/t/runs`, { token: at.token, body: { agent: "deep", input: "hello", id } }),
            { until: ({ status }) => status !== 503, schedule: Schedule.spaced("200 millis") }
          )
        const inputsAt = Effect.fnUntraced(function* (at: { readonly url: string; readonly token: string }) {
          const { frames } = yield* readFrames(`${at.url}/threads/t/events`, at)
          const { end, messages } = showState(foldFrames(frames))
          assert.match(end, /^RunCompleted/)
          return messages.flatMap(([, id]) => (typeof id === "string" && id.startsWith("input:") ? [id] : []))
        })
        const first = yield* start("one")
        const second = yield* start("two")
        assert.strictEqual((yield* post(first, "1")).status, 202)
        const refused = yield* ask(`${second.url}/threads/t/cancel`, { token: second.token, body: {} })
        assert.strictEqual(refused.status, 503)
        assert.deepStrictEqual(yield* inputsAt(second), ["input:1"])
        yield* endChild(first.child)
        // A cluster has the mail that it leaves.
        assert.strictEqual((yield* post(second, "2")).status, 202)
        yield* endChild(second.child)

        const enter = Effect.fnUntraced(function* (data: string) {
          const address = `127.0.0.1:${yield* freePort}`
          return yield* start(data, { DEEPAGENTS_CLUSTER_ADDRESS: address, SHARD_LOCK_EXPIRATION: "4 seconds" })
        })
        const third = yield* enter("one")
        const fourth = yield* enter("two")
        assert.strictEqual((yield* post(third, "3")).status, 202)
        assert.strictEqual((yield* post(fourth, "4")).status, 202)
        const inputs = ["input:1", "input:2", "input:3", "input:4"]
        assert.deepStrictEqual(yield* Effect.all([inputsAt(third), inputsAt(fourth)]), [inputs, inputs])
        yield* endChild(third.child)
        assert.strictEqual((yield* post(fourth, "5")).status, 202)
        assert.deepStrictEqual(yield* inputsAt(fourth), [...inputs, "input:5"])

        const wrong = yield* serve(home, [], { DEEPAGENTS_CLUSTER_ADDRESS: "127.0.0.1:34431" })
        assert.include(wrong.text, "needs the database of the cluster in DEEPAGENTS_DATABASE_URL")
        const hidden = yield* serve(home, [], { DEEPAGENTS_DATABASE_URL: "mysql://ada:s3cret@localhost/db" })
        assert.include(hidden.text, "DEEPAGENTS_DATABASE_URL: expected an address")
        assert.notInclude(hidden.text, "s3cret")
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "refuses to be reached by other machines without a secret",
    () =>
      Effect.gen(function* () {
        const home = mkdtempSync(join(tmpdir(), "serve-"))
        const open = yield* serve(home, ["--host", "0.0.0.0"], { DEEPAGENTS_SERVE_TOKEN: "short" })
        assert.include(open.text, "set DEEPAGENTS_SERVE_TOKEN to a secret of at least 16 characters")
        assert.notStrictEqual(open.child.exitCode, null)
      }),
    120_000
  )
})
