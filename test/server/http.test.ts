import { connect } from "node:net"
/** The server at its door: admission, the reach of principals, and clients' view of failures. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Latch, Layer, Schema } from "effect"
import { Agent, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { Server } from "effect-deepagents/server"
import { MemorySessions } from "effect-deepagents/sessions"
import { Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { type Answer, ask, readFrames, serve } from "./door.ts"
import { foldFrames, showState } from "./reader.ts"

const pay = Tool.make("pay", {
  description: "Pays",
  parameters: { n: Schema.Finite },
  execute: ({ n }) => Effect.succeed(`paid ${n}`)
})
const helper = Agent.make({
  name: "helper",
  description: "Helps",
  prompt: "You help.",
  tools: [pay],
  middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
})

const model = TestChatModel.reactive(({ messages }) => {
  const last = messages.at(-1)
  const said = JSON.stringify(last?.content)
  if (last?.role === "tool") return "It is paid."
  if (said.includes("hang")) return TestChatModel.hangAfter("One moment")
  return said.includes("pay") ? TestChatModel.calls([{ name: "pay", arguments: { n: 7 } }]) : "Hello."
})

const services = Layer.mergeAll(MemorySessions.layer, Storage.layerMemory)
const runs = Server.layer({ helper }).pipe(Layer.provide(model))

const live = (name: string, test: (url: string) => Effect.Effect<void, unknown>, options?: Server.HttpOptions) =>
  it.live(name, () =>
    Effect.flatMap(serve(runs, options), test).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )

/** Sends bytes, and gives all that comes back. */
const sendRaw = (url: string, text: string): Effect.Effect<string> =>
  Effect.callback((resume) => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1", () => socket.write(text))
    let got = ""
    socket.on("data", (data) => (got += data.toString()))
    socket.on("error", () => resume(Effect.succeed(got)))
    socket.on("close", () => resume(Effect.succeed(got)))
  })

const start = (url: string, id: string, input: unknown, more: object = {}) =>
  ask(`${url}/threads/${id}/runs`, { body: { agent: "helper", input, ...more } })

describe("the server", () => {
  it.live("gives steering that came too late for a run that waits to the run behind the decision", () =>
    Effect.gen(function* () {
      const gate = yield* Latch.make(false)
      const slow = TestChatModel.reactive(({ messages }) =>
        messages.at(-1)?.role === "human" && messages.length === 1
          ? () => Effect.as(gate.await, TestChatModel.calls([{ name: "pay", arguments: { n: 7 } }]))
          : TestChatModel.text("Done.")
      )
      const url = yield* serve(Server.layer({ helper }).pipe(Layer.provide(slow)))
      yield* start(url, "t", "go")
      const steer = Effect.map(ask(`${url}/threads/t/steer`, { body: { input: "left" } }), ({ status }) => status)
      while ((yield* steer) !== 204) yield* Effect.sleep("5 millis")
      yield* gate.open
      yield* ask(`${url}/threads/t/events`)
      assert.notInclude((yield* ask(`${url}/threads/t/history`)).text, "left")
      const id = (yield* ask(`${url}/threads/t/state`)).at("pending", 0, "id")
      yield* ask(`${url}/threads/t/decisions`, { body: { decisions: [{ _tag: "Approve", id }] } })
      yield* ask(`${url}/threads/t/events`)
      const { text } = yield* ask(`${url}/threads/t/history`)
      assert.lengthOf(text.match(/"left"/gu) ?? [], 1)
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )

  it.live(
    "runs a thread with the model that its inputs chose, also behind a decision and a restart, and refuses others",
    () =>
      Effect.gen(function* () {
        const careful = TestChatModel.reactive(({ messages }) =>
          messages.at(-1)?.role === "tool"
            ? "Carefully paid."
            : TestChatModel.calls([{ name: "pay", arguments: { n: 8 } }], { text: "Carefully." })
        )
        const chosen = Server.layer({ helper }, { models: { careful } }).pipe(Layer.provide(model))
        const wait = (url: string) => ask(`${url}/threads/t/events`)
        yield* Effect.gen(function* () {
          const first = yield* Effect.scoped(
            Effect.gen(function* () {
              const url = yield* serve(chosen)
              assert.deepStrictEqual((yield* ask(`${url}/agents`)).at("models"), ["careful"])
              for (const wrong of ["carefull", "", "__proto__"]) {
                const refused = yield* start(url, "t", "pay", { model: wrong })
                assert.deepStrictEqual([refused.status, refused.at("code")], [400, "InvalidInput"], wrong)
              }
              assert.strictEqual((yield* start(url, "t", "pay", { id: "1", model: "careful" })).status, 202)
              yield* wait(url)
              const state = yield* ask(`${url}/threads/t/state`)
              return state.at("pending", 0, "id")
            })
          )
          yield* Effect.scoped(
            Effect.gen(function* () {
              const url = yield* serve(chosen)
              const decision = { decisions: [{ _tag: "Approve", id: first }] }
              while ((yield* ask(`${url}/threads/t/decisions`, { body: decision })).status === 503)
                yield* Effect.sleep(50)
              assert.include((yield* wait(url)).text, "Carefully paid.")
              assert.strictEqual((yield* ask(`${url}/threads/t`)).at("model"), "careful")
              yield* start(url, "t", "again", { model: null })
              assert.include((yield* wait(url)).text, "Hello.")
              assert.isUndefined((yield* ask(`${url}/threads/t`)).at("model"))
            })
          )
          // A server that does not offer it any more takes its own.
          yield* Effect.scoped(
            Effect.gen(function* () {
              const url = yield* serve(chosen)
              while ((yield* start(url, "u", "hello", { id: "1", model: "careful" })).status === 503)
                yield* Effect.sleep(50)
              yield* ask(`${url}/threads/u/events`)
            })
          )
          const url = yield* serve(runs)
          const refused = yield* start(url, "u", "hello", { model: "careful" })
          assert.include(refused.text, "This server offers no choice")
          const decline = (yield* ask(`${url}/threads/u/state`)).at("pending", 0, "id")
          yield* ask(`${url}/threads/u/decisions`, { body: { decisions: [{ _tag: "Reject", id: decline }] } })
          assert.include((yield* ask(`${url}/threads/u/events`)).text, "It is paid.")
        }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
      })
  )

  it.live(
    "runs each input in the mode of its time, keeps the mode by thread, and takes only the modes that it offers",
    () => {
      const tell = Tool.make("tell", { description: "Tells", parameters: {}, execute: () => Server.Mode })
      const teller = Agent.make({ name: "helper", prompt: "", tools: [tell] })
      const gate = Latch.makeUnsafe(false)
      const telling = TestChatModel.reactive(({ messages }) => {
        const last = messages.at(-1)
        const call = TestChatModel.calls([{ name: "tell", arguments: {} }])
        if (last?.role === "tool") return `It is ${JSON.stringify(last.content)}.`
        return JSON.stringify(last?.content).includes("slow") ? () => Effect.as(gate.await, call) : call
      })
      const offering = (modes?: ReadonlyArray<string>) =>
        Server.layer({ helper: teller }, modes === undefined ? {} : { modes }).pipe(Layer.provide(telling))
      const modesOf = (url: string, id: string) =>
        Effect.map(
          Effect.andThen(ask(`${url}/threads/${id}/events`), ask(`${url}/threads/${id}/history`)),
          ({ text }) => Array.from(text.matchAll(/It is [^.]*?(ask|plan|auto|\[\])[^.]*\./gu), ([, mode]) => mode)
        )
      return Effect.gen(function* () {
        yield* Effect.scoped(
          Effect.gen(function* () {
            const url = yield* serve(offering(["auto", "ask", "plan"]))
            assert.deepStrictEqual((yield* ask(`${url}/agents`)).at("modes"), ["auto", "ask", "plan"])
            for (const wrong of ["yolo", "", "__proto__"]) {
              const refused = yield* start(url, "t", "go", { mode: wrong })
              assert.deepStrictEqual([refused.status, refused.at("code")], [400, "InvalidInput"], wrong)
            }
            yield* start(url, "t", "go")
            yield* start(url, "t", "slow", { mode: "plan" })
            yield* start(url, "t", "go")
            // The choice of a later input does not reach the inputs before it.
            yield* start(url, "t", "go", { mode: "auto" })
            yield* start(url, "t", "go", { mode: "ask" })
            yield* gate.open
            assert.deepStrictEqual(yield* modesOf(url, "t"), ["auto", "plan", "plan", "auto", "ask"])
            assert.strictEqual((yield* ask(`${url}/threads/t`)).at("mode"), "ask")
            yield* start(url, "u", "go", { mode: "auto" })
            yield* modesOf(url, "u")
          })
        )
        // A stricter start of a server overrides threads' earlier choices.
        const strict = yield* serve(offering(["ask", "plan"]))
        while ((yield* start(strict, "u", "go")).status === 503) yield* Effect.sleep(50)
        assert.deepStrictEqual(yield* modesOf(strict, "u"), ["auto", "ask"])
        yield* start(strict, "t", "go")
        assert.deepStrictEqual((yield* modesOf(strict, "t")).at(-1), "ask")
      }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
    }
  )

  live("takes an input, streams its events, takes the decision, and gives the thread back", (url) =>
    Effect.gen(function* () {
      assert.deepStrictEqual((yield* ask(`${url}/agents`)).json, { agents: [{ name: "helper", description: "Helps" }] })
      const taken = yield* start(
        url,
        "t",
        { role: "human", content: [{ type: "text", text: "pay, please" }] },
        { id: "1" }
      )
      assert.strictEqual(taken.status, 202)
      assert.deepStrictEqual([taken.at("runId"), taken.at("isNew")], ["1", true])
      const first = yield* readFrames(`${url}/threads/t/events`)
      const state = yield* ask(`${url}/threads/t/state`)
      assert.strictEqual(state.at("state"), "waiting")
      const request = state.at("pending", 0)
      const id = state.at("pending", 0, "id")
      assert.deepStrictEqual((yield* ask(`${url}/inbox`)).json, { items: [{ threadId: "t", request }] })
      const decided = yield* ask(`${url}/threads/t/decisions`, {
        body: { decisions: [{ _tag: "Approve", id, by: { id: "mallory" } }] }
      })
      assert.strictEqual(decided.status, 202)
      const rest = yield* readFrames(`${url}/threads/t/events?after=${first.frames.at(-1)?.position}`)
      const seen = showState(foldFrames([...first.frames, ...rest.frames]))
      assert.deepStrictEqual(
        seen.messages.map(([role]) => role),
        ["human", "ai", "tool", "ai"]
      )
      assert.strictEqual(seen.end, "RunCompleted completed")
      const by = rest.frames.flatMap((frame) =>
        frame._tag === "Event" && frame.event._tag === "ApprovalResolved" ? [frame.event.by] : []
      )
      assert.deepStrictEqual(by, ["ada"])
      const history = yield* ask(`${url}/threads/t/history?limit=3`)
      assert.deepStrictEqual(
        [0, 1, 2, 3].map((index) => history.at("messages", index, "message", "role")),
        ["ai", "tool", "ai", undefined]
      )
      const before = yield* ask(`${url}/threads/t/history?before=${String(history.at("next"))}`)
      assert.deepStrictEqual([before.at("messages", "length"), before.at("next")], [1, undefined])
      const listed = yield* ask(`${url}/threads`)
      assert.deepStrictEqual(
        ["id", "state", "title"].map((key) => listed.at("threads", 0, key)),
        ["t", "idle", "pay, please"]
      )
      assert.strictEqual((yield* ask(`${url}/threads?search=please`)).at("threads", "length"), 1)
      assert.strictEqual((yield* ask(`${url}/threads?search=nothing`)).at("threads", "length"), 0)
      // Decided again, nothing runs.
      const again = yield* ask(`${url}/threads/t/decisions`, {
        body: { decisions: [{ _tag: "Reject", id }] }
      })
      assert.deepStrictEqual([again.status, again.at("isNew")], [202, false])
      const fork = yield* ask(`${url}/threads/t/fork`, { body: {} })
      assert.deepStrictEqual([fork.status, fork.at("forkOf")], [201, "t"])
      assert.strictEqual((yield* ask(`${url}/threads/t/rewind`, { body: { entry: null } })).status, 200)
      assert.strictEqual((yield* ask(`${url}/threads/t/history`)).at("messages", "length"), 0)
      assert.strictEqual((yield* ask(`${url}/threads/${String(fork.at("id"))}/history`)).at("messages", "length"), 4)
      assert.strictEqual((yield* ask(`${url}/threads/t/archive`, { body: {} })).status, 204)
      assert.strictEqual((yield* start(url, "t", "more")).at("code"), "Archived")
      assert.strictEqual((yield* ask(`${url}/threads/t`, { method: "DELETE" })).status, 204)
      assert.strictEqual((yield* ask(`${url}/threads/t`)).status, 404)
    })
  )

  live("steers and cancels the run at work, which nobody may delete or rewind", (url) =>
    Effect.gen(function* () {
      yield* start(url, "t", "hang")
      const { frames } = yield* readFrames(`${url}/threads/t/events?follow=true`, {
        isEnough: (all) => all.some((frame) => frame._tag === "Event" && frame.event._tag === "TextDelta")
      })
      assert.isAbove(frames.length, 0)
      assert.strictEqual((yield* ask(`${url}/threads/t/state`)).at("state"), "working")
      assert.strictEqual((yield* start(url, "t", "two", { busy: "refuse" })).status, 409)
      assert.strictEqual((yield* ask(`${url}/threads/t/steer`, { body: { input: "left" } })).status, 204)
      assert.strictEqual((yield* ask(`${url}/threads/t`, { method: "DELETE" })).at("code"), "Busy")
      assert.strictEqual((yield* ask(`${url}/threads/t/rewind`, { body: { entry: null } })).at("code"), "Busy")
      assert.deepStrictEqual((yield* ask(`${url}/threads/t/cancel`, { body: {} })).json, { isCancelled: true })
      const { frames: all } = yield* readFrames(`${url}/threads/t/events`)
      assert.strictEqual(showState(foldFrames(all)).end, "RunInterrupted ")
      assert.strictEqual((yield* ask(`${url}/threads/t/steer`, { body: { input: "late" } })).at("code"), "NotRunning")
    })
  )

  live("describes its routes, its health and its metrics, and is not ended by bodies that are nested deeply", (url) =>
    Effect.gen(function* () {
      assert.deepStrictEqual((yield* ask(`${url}/health`, { token: "" })).json, { status: "ok" })
      const api = yield* ask(`${url}/openapi.json`, { token: "" })
      const run = api.at("paths", "/threads/{id}/runs", "post")
      assert.include(JSON.stringify(run), '"application/json":{"schema":{"type":"object"')
      const names = [...api.text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map(([, name = ""]) => name)
      for (const name of names) assert.isObject(api.at("components", "schemas", name), name)
      const deep = `{"agent":"helper","input":${"[".repeat(1_000_000)}${"]".repeat(1_000_000)}}`
      assert.strictEqual((yield* ask(`${url}/threads/t/runs`, { body: deep })).status, 400)
      const nested = `{"decisions":[{"_tag":"Edit","id":"x","arguments":${'{"a":'.repeat(200_000)}1${"}".repeat(200_000)}}]}`
      assert.strictEqual((yield* ask(`${url}/threads/t/decisions`, { body: nested })).status, 400)
      assert.strictEqual((yield* ask(`${url}/metrics`)).status, 200)
      assert.strictEqual((yield* ask(`${url}/metrics`, { token: "token-of-eve" })).status, 403)
    })
  )
})

describe("the guard", () => {
  const cases: ReadonlyArray<readonly [string, object, number]> = [
    ["another host", { host: "evil.test" }, 421],
    ["another host and no token", { host: "evil.test", authorization: "" }, 421],
    ["another origin", { origin: "https://evil.test" }, 403],
    ["no origin that can be told", { origin: "null" }, 403],
    ["another site", { "sec-fetch-site": "cross-site" }, 403],
    ["a form", { "content-type": "application/x-www-form-urlencoded" }, 415],
    ["a form of plain text", { "content-type": "text/plain" }, 415],
    ["no token", { authorization: "" }, 401],
    ["another token", { authorization: "Bearer token-of-mallory" }, 401],
    ["a scheme of another kind", { authorization: "Basic token-of-ada" }, 401],
    ["a body that is too large", { "content-length": "99999999" }, 413]
  ]
  live("refuses each before it reads the body", (url) =>
    Effect.gen(function* () {
      for (const [name, given, status] of cases) {
        const all: Record<string, string> = {
          host: "localhost",
          "content-type": "application/json",
          authorization: "Bearer token-of-ada",
          "content-length": "1000",
          connection: "close",
          ...given
        }
        const lines = Object.entries(all).flatMap(([key, value]) => (value === "" ? [] : [`${key}: ${value}`]))
        // The body never comes: who waits for it would not answer.
        const answer = yield* sendRaw(url, `POST /threads/t/runs HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`)
        assert.include(answer, `HTTP/1.1 ${status} `, name)
        assert.include(answer, "application/problem+json", name)
        assert.notInclude(answer.toLowerCase(), "access-control", name)
      }
    })
  )

  live(
    "reads no body longer than the limit, and none that is no JSON of the route",
    (url) =>
      Effect.gen(function* () {
        const large = yield* start(url, "t", "x".repeat(2_000))
        assert.strictEqual(large.status, 413)
        const chunked = yield* sendRaw(
          url,
          `POST /threads/t/runs HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer token-of-ada\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n800\r\n${"x".repeat(2_048)}\r\n0\r\n\r\n`
        )
        assert.include(chunked, "HTTP/1.1 413 ")
        const deep = `${"[".repeat(300)}${"]".repeat(300)}`
        for (const body of [
          "{",
          "[]",
          "null",
          "\u0000",
          "{}",
          '{"agent":1,"input":"x"}',
          '{"agent":"helper","input":"x","bussy":"refuse"}',
          `{"agent":"helper","input":${deep}}`
        ]) {
          const answer = yield* ask(`${url}/threads/t/runs`, { body })
          assert.deepStrictEqual([answer.status, answer.at("code")], [400, "InvalidBody"], body)
        }
        const unknown = yield* start(url, "t", "x", { agent: "constructor" })
        assert.deepStrictEqual([unknown.status, unknown.at("code")], [400, "InvalidInput"])
        assert.include(String((yield* start(url, "t", "x", { agent: "helpr" })).at("detail")), 'Did you mean "helper"?')
        assert.strictEqual((yield* ask(`${url}/threads/t`)).status, 404)
        for (const after of ["x", "9999999999999.0.s.0", "1.0.s.0\u00e9", "-1.0.s.0"]) {
          yield* start(url, "t", "x", { id: "1" })
          const answer = yield* ask(`${url}/threads/t/events?after=${encodeURIComponent(after)}`)
          assert.deepStrictEqual([answer.status, answer.at("code")], [400, "InvalidInput"], after)
        }
        // A position that never was is answered by the whole thread.
        const forged = yield* readFrames(`${url}/threads/t/events`, { after: "7.abc.def.99999e" })
        assert.strictEqual(forged.frames[0]?._tag, "Reset")
        assert.strictEqual(showState(foldFrames(forged.frames)).end, "RunCompleted completed")
      }),
    { maxBody: 1_000 }
  )

  live(
    "lets pages of allowed origins call, and no others",
    (url) =>
      Effect.gen(function* () {
        const headers = { origin: "https://app.example.com", "sec-fetch-site": "cross-site" }
        const asked = yield* Effect.promise(() => fetch(`${url}/threads/t/runs`, { method: "OPTIONS", headers }))
        assert.strictEqual(asked.status, 204)
        assert.strictEqual(asked.headers.get("access-control-allow-origin"), "https://app.example.com")
        const taken = yield* ask(`${url}/threads/t/runs`, { headers, body: { agent: "helper", input: "x" } })
        assert.strictEqual(taken.status, 202)
        const other = yield* Effect.promise(() =>
          fetch(`${url}/threads/t/runs`, {
            method: "OPTIONS",
            headers: { origin: "https://app.example.com.evil.test" }
          })
        )
        assert.deepStrictEqual([other.status, other.headers.get("access-control-allow-origin")], [403, null])
      }),
    { origins: ["https://app.example.com"] }
  )
})

describe("two tenants", () => {
  live("reach nothing of each other, by any route and any id", (url) =>
    Effect.gen(function* () {
      yield* start(url, "mine", "pay the secret 4711", { id: "1" })
      yield* readFrames(`${url}/threads/mine/events`)
      const state = yield* ask(`${url}/threads/mine/state`)
      const pending = state.at("pending")
      const history = yield* ask(`${url}/threads/mine/history`)
      const messages = history.at("messages")
      const entry = history.at("messages", 0, "entry")
      const decision = { _tag: "Approve", id: state.at("pending", 0, "id") }
      const token = "token-of-eve"
      const asAll = (id: string): ReadonlyArray<readonly [string, Effect.Effect<Answer>]> => {
        const at = `${url}/threads/${id}`
        return [
          ["info", ask(at, { token })],
          ["state", ask(`${at}/state`, { token })],
          ["history", ask(`${at}/history?before=${String(entry)}`, { token })],
          ["compare", ask(`${at}/compare?with=${id}`, { token })],
          ["events", ask(`${at}/events`, { token })],
          ["decisions", ask(`${at}/decisions`, { token, body: { decisions: [decision] } })],
          ["resume", ask(`${at}/decisions`, { token, body: { decisions: [] } })],
          ["fork", ask(`${at}/fork`, { token, body: { entry: entry } })],
          ["rewind", ask(`${at}/rewind`, { token, body: { entry: entry } })],
          ["archive", ask(`${at}/archive`, { token, body: {} })],
          ["delete", ask(at, { token, method: "DELETE" })],
          ["steer", ask(`${at}/steer`, { token, body: { input: "x" } })],
          ["cancel", ask(`${at}/cancel`, { token, body: {} })]
        ]
      }
      const answersOf = (id: string) =>
        Effect.forEach(asAll(id), ([name, answer]) =>
          Effect.map(answer, ({ status, text }) => [name, status, text] as const)
        )
      const missing = yield* answersOf("nothing-of-this-name")
      for (const [name, status] of missing.slice(0, 11)) assert.strictEqual(status, 404, name)
      const foreign = ["mine", "t%2Facme%2Fmine", "acme%2Fmine", "..%2Facme%2Fmine", "m%C4%B1ne", "mine%20", "MINE"]
      for (const id of foreign) assert.deepStrictEqual(yield* answersOf(id), missing, id)
      for (const id of ["mine%00", "mine%0A", "x".repeat(512), "%2e%2e%2f%2e%2e%2fmine"]) {
        for (const [name, , text] of yield* answersOf(id)) assert.notMatch(text, /4711|mine.*secret/, `${id} ${name}`)
      }
      for (const path of ["/threads", "/threads?search=secret", "/threads?archived=true", "/inbox"]) {
        const { text } = yield* ask(url + path, { token })
        assert.notMatch(text, /4711|mine/, path)
      }
      // Nothing of it happened to the thread, and the same id is a thread of one's own.
      yield* ask(`${url}/threads/mine/runs`, { token, body: { agent: "helper", input: "hi", id: "1" } })
      yield* readFrames(`${url}/threads/mine/events`, { token })
      assert.deepStrictEqual((yield* ask(`${url}/threads/mine/state`)).at("pending"), pending)
      assert.deepStrictEqual((yield* ask(`${url}/threads/mine/history`)).at("messages"), messages)
      assert.strictEqual((yield* ask(`${url}/threads/mine/history`, { token })).at("messages", "length"), 2)
    })
  )
})
