/** Hostile clients on real sockets: smuggled requests, slow clients, malformed frames, repeated decisions. */
import { spawn } from "node:child_process"
import { get, type IncomingMessage } from "node:http"
import { connect, type Socket } from "node:net"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, type Scope } from "effect"
import { Agent, Message, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { Server } from "effect-deepagents/server"
import { MemorySessions } from "effect-deepagents/sessions"
import { Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { scaled } from "../scale.ts"
import { ask, framesIn, readFrames, serve } from "./door.ts"
import { foldFrames, showState } from "./reader.ts"

let paid = 0
const pay = Tool.make("pay", {
  description: "Pays",
  parameters: {},
  execute: () => Effect.sync(() => `paid ${++paid}`)
})
const helper = Agent.make({
  name: "helper",
  prompt: "",
  tools: [pay],
  middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
})
const model = TestChatModel.reactive(({ messages }) => {
  const last = messages.at(-1)
  if (last?.role === "tool") return "It is done."
  return JSON.stringify(last?.content).includes("pay")
    ? TestChatModel.calls([{ name: "pay", arguments: {} }])
    : `Hello, ${last === undefined ? "nobody" : Message.text(last)}.`
})
const runs = Server.layer({ helper }).pipe(Layer.provide(model))
const services = Layer.mergeAll(MemorySessions.layer, Storage.layerMemory)
const protocols = ["aiSdk", "agUi", "openAi", "langGraph", "a2a"] as const

const live = (name: string, test: (url: string) => Effect.Effect<void, unknown, Scope.Scope>, timeout = 60_000) =>
  it.live(
    name,
    () => Effect.flatMap(serve(runs, { protocols }), test).pipe(Effect.scoped, Effect.provide(Layer.fresh(services))),
    timeout
  )

/** Opens a connection, and sends bytes. */
const open = (url: string, bytes: string | Buffer): Socket => {
  const socket = connect(Number(new URL(url).port), "127.0.0.1", () => socket.write(bytes))
  socket.on("error", () => undefined)
  return socket
}

/** Sends bytes, and returns the answer until the server closes, `isEnough` of it came, or the server is silent. */
const sendRaw = (
  url: string,
  bytes: string | Buffer,
  {
    isEnough = () => false,
    silence = 500
  }: { readonly isEnough?: (text: string) => boolean; readonly silence?: number } = {}
): Effect.Effect<string> =>
  Effect.callback((resume) => {
    const socket = open(url, bytes)
    let got = ""
    socket.setTimeout(silence, () => socket.destroy())
    socket.on("data", (data) => {
      got += data.toString("latin1")
      if (isEnough(got)) socket.destroy()
    })
    socket.on("close", () => resume(Effect.succeed(got)))
  })

const answersIn = (text: string): ReadonlyArray<number> =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3})/gu)].map(([, status]) => Number(status))

const body = JSON.stringify({ agent: "helper", input: "stolen" })
const ada = "authorization: Bearer token-of-ada"
const eve = "authorization: Bearer token-of-eve"

/** A whole request of another tenant, as it hides in the body of one. */
const hidden = (id: string): string =>
  `POST /threads/${id}/runs HTTP/1.1\r\nhost: localhost\r\n${ada}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`

/** The head of the request that a server in front sees. */
const head = (...lines: ReadonlyArray<string>): string =>
  [
    `POST /threads/front/steer HTTP/1.1`,
    "host: localhost",
    eve,
    "content-type: application/json",
    ...lines,
    "",
    ""
  ].join("\r\n")

/** Requests whose end a server in front, and this one, could see at two places. */
const disputed = (text: string): Readonly<Record<string, string>> => {
  const all = text.length
  const chunks = `0\r\n\r\n${text}`
  return {
    "a length and chunks": head(`content-length: ${chunks.length}`, "transfer-encoding: chunked") + chunks,
    "chunks and a length": head("transfer-encoding: chunked", `content-length: ${chunks.length}`) + chunks,
    "two lengths": head("content-length: 0", `content-length: ${all}`) + text,
    "two lengths, the long one first": head(`content-length: ${all}`, "content-length: 0") + text,
    "a list of lengths": head(`content-length: 0, ${all}`) + text,
    "a length with a sign": head(`content-length: +${all}`) + text,
    "a negative length": head("content-length: -1") + text,
    "a hexadecimal length": head("content-length: 0x0") + text,
    "a length of no digits": head("content-length: ") + text,
    "an unknown coding": head("transfer-encoding: xchunked", `content-length: ${chunks.length}`) + chunks,
    "an unknown coding alone": head("transfer-encoding: identity") + text,
    "a coding behind chunks": head("transfer-encoding: chunked, identity", `content-length: ${chunks.length}`) + chunks,
    "two codings": head("transfer-encoding: chunked", "transfer-encoding: identity") + chunks.slice(0, 3),
    "a coding with a control character": head("transfer-encoding: \u000bchunked", `content-length: ${all}`) + text,
    "a folded line": head("x: y", ` content-length: 0`, `content-length: ${all}`) + text,
    "a folded coding": head("transfer-encoding:", " chunked", `content-length: ${chunks.length}`) + chunks,
    "a space before the colon": head("content-length : 0", `content-length: ${all}`) + text,
    "a bare line feed": head(`x: y\ncontent-length: 0`, `content-length: ${all}`) + text,
    "a bare carriage return": head(`x: y\rcontent-length: 0`, `content-length: ${all}`) + text,
    "a zero byte": head(`x: \u0000`, "content-length: 0") + text,
    "a chunk with a wrong size": `${head("transfer-encoding: chunked")}0x0\r\n\r\n${text}`,
    "a chunk that is longer than its size": `${head("transfer-encoding: chunked")}1\r\n{}0\r\n\r\n${text}`,
    "a chunk with a line feed in its extension": `${head("transfer-encoding: chunked")}0;a\nb\r\n\r\n${text}`
  }
}

/** Requests that are refused before their body is read, which looks like a request. */
const unread = (text: string): Readonly<Record<string, string>> => {
  const request = (line: string, ...more: ReadonlyArray<string>) =>
    [line, ...more, `content-length: ${text.length}`, "", text].join("\r\n")
  const typed = "content-type: application/json"
  return {
    "a body that is a request": head(`content-length: ${text.length}`) + text,
    "no token": request("POST /threads/front/steer HTTP/1.1", "host: localhost", typed),
    "another host": request("POST /threads/front/steer HTTP/1.1", "host: evil.test", typed, eve),
    "another type": request("POST /threads/front/steer HTTP/1.1", "host: localhost", "content-type: text/plain", eve),
    "no such route": request("POST /nothing HTTP/1.1", "host: localhost", typed, eve),
    "a read with a body": request("GET /threads HTTP/1.1", "host: localhost", eve),
    "a read of everybody with a body": request("GET /health HTTP/1.1", "host: localhost"),
    "a deletion with a body": request("DELETE /threads/front HTTP/1.1", "host: localhost", eve),
    "a body that is too large": head("content-length: 99999999") + text
  }
}

describe("smuggling", () => {
  live("starts nothing: a request has one end, or none", (url) =>
    Effect.gen(function* () {
      const attacks = Object.entries({ ...disputed(hidden("ID")), ...unread(hidden("ID")) })
      const answers = yield* Effect.forEach(
        attacks,
        ([name, bytes], index) =>
          Effect.map(
            sendRaw(url, bytes.replaceAll("/ID/", `/${String(index).padStart(2, "0")}/`)),
            (text) => [name, text] as const
          ),
        { concurrency: 8 }
      )
      for (const [name, text] of answers) {
        const statuses = answersIn(text)
        assert.isAtMost(statuses.length, 1, `${name}: ${text}`)
        assert.notInclude(statuses, 202, name)
        assert.notInclude(text, "isNew", name)
      }
      for (const [name] of Object.entries(disputed(""))) {
        const text = answers.find(([one]) => one === name)?.[1] ?? ""
        assert.isTrue(
          answersIn(text).every((status) => status === 400),
          `${name}: ${text}`
        )
      }
      assert.strictEqual((yield* ask(`${url}/threads`)).at("threads", "length"), 0)
      // Requests that follow each other are two.
      const two = yield* sendRaw(url, hidden("one") + hidden("two"), {
        silence: 20_000,
        isEnough: (text) => text.split("isNew").length === 3
      })
      assert.deepStrictEqual(answersIn(two), [202, 202])
    })
  )

  live("by the target or the host opens nothing", (url) =>
    Effect.gen(function* () {
      yield* ask(`${url}/threads/mine/runs`, { body: { agent: "helper", input: "secret" } })
      const line = (target: string, host = "host: localhost", method = "GET") =>
        sendRaw(url, `${method} ${target} HTTP/1.1\r\n${host}\r\n${ada}\r\nconnection: close\r\n\r\n`, {
          silence: 10_000
        })
      const served = yield* line("/threads")
      assert.deepStrictEqual(answersIn(served), [200])
      for (const [target, host, method] of [
        ["http://evil.test/threads"],
        ["http://evil.test:80/threads"],
        ["https://localhost@evil.test/threads"],
        ["//evil.test/threads"],
        ["threads"],
        ["*", "host: localhost", "OPTIONS"],
        ["localhost:80", "host: localhost", "CONNECT"],
        ["/threads/../threads"],
        ["/threads", "host: localhost\r\nhost: evil.test"],
        ["/threads", "host: evil.test\r\nhost: localhost"],
        ["/threads", "host: localhost, evil.test"],
        ["/threads", "host: localhost@evil.test"],
        ["/threads", "host: localhost:80:evil.test"],
        ["/threads", "host: "],
        ["/threads", "x: no-host"],
        ["/threads", "host: localhost", "TRACE"],
        ["/threads", "host: localhost", "GET\u000b"]
      ] as const) {
        const text = yield* line(target, host, method)
        const name = `${method ?? "GET"} ${target} ${host ?? ""}: ${text}`
        for (const status of answersIn(text)) assert.isAtLeast(status, 400, name)
        assert.notInclude(text, "mine", name)
      }
      // No text of a client becomes a header.
      for (const path of [
        "/threads/x%0d%0aset-cookie:%20evil=1",
        "/langgraph/threads/x%0d%0aset-cookie:%20evil=1/runs/y%0d%0aset-cookie:%20evil=1/stream",
        "/v1/responses/resp_x%0d%0aset-cookie:%20evil=1",
        "/threads/mine/events?after=x%0d%0aset-cookie:%20evil=1"
      ]) {
        assert.notMatch(yield* line(path), /^set-cookie/mu, path)
      }
    })
  )
})

describe("slow clients", () => {
  live("that never end their heads and bodies keep nobody from an answer", (url) =>
    Effect.gen(function* () {
      const count = scaled(800)
      const sockets = Array.from({ length: count }, (_, index) =>
        open(
          url,
          index % 2 === 0
            ? `GET /threads HTTP/1.1\r\nhost: localhost\r\nx-${index}: `
            : `${head("content-length: 5000")}{"input":"`
        )
      )
      yield* Effect.addFinalizer(() => Effect.sync(() => sockets.forEach((one) => one.destroy())))
      for (let round = 0; round < 5; round++) {
        for (const socket of sockets) socket.write("x")
        const answer = yield* Effect.timeout(ask(`${url}/threads`), "10 seconds")
        assert.strictEqual(answer.status, 200)
      }
      yield* ask(`${url}/threads/t/runs`, { body: { agent: "helper", input: "Hi" } })
      assert.include((yield* Effect.timeout(ask(`${url}/threads/t/events`), "10 seconds")).text, "Hello, Hi.")
    })
  )
})

describe("a reader that does not read", () => {
  const count = 12
  it.live(
    `slows none of ${count} runs, and has all of the thread in the end, from the store`,
    () =>
      Effect.gen(function* () {
        const long = TestChatModel.reactive(() => TestChatModel.text("sixcha".repeat(5_000), { chunkSize: 6 }))
        const url = yield* serve(Server.layer({ helper }, { keep: 1 << 16 }).pipe(Layer.provide(long)))
        const runs = Array.from({ length: count }, (_, index) => String(index))
        const start = (id: string) => ask(`${url}/threads/t/runs`, { body: { agent: "helper", input: "Go on", id } })
        yield* start("first")
        const reader = yield* Effect.callback<IncomingMessage>((resume) => {
          const headers = { authorization: "Bearer token-of-ada" }
          get(`${url}/threads/t/events?follow=true`, { headers, agent: false }, (response) => {
            response.pause()
            resume(Effect.succeed(response))
          })
        })
        // More than the buffers of the connection hold. Somebody else reads, and is told of each end.
        for (const id of runs) {
          yield* start(id)
          assert.include((yield* ask(`${url}/threads/t/events`)).text, `"id":"input:${id}"`)
        }
        const whole = showState(foldFrames((yield* readFrames(`${url}/threads/t/events`)).frames))
        assert.strictEqual(whole.end, "RunCompleted completed")
        let text = ""
        reader.setEncoding("utf8").on("data", (piece) => (text += String(piece)))
        reader.resume()
        const last = `"id":"input:${runs.at(-1)}"`
        const isEnd = () =>
          text.endsWith("\n\n") &&
          text.includes(last) &&
          text.lastIndexOf('"_tag":"RunCompleted"') > text.lastIndexOf(last)
        while (!isEnd()) yield* Effect.sleep("50 millis")
        reader.destroy()
        assert.include(text, "event: reset")
        assert.deepStrictEqual(showState(foldFrames(framesIn(text))), whole)
      }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services))),
    120_000
  )
})

/** Holds readers of a thread in a process of their own: `up` when each has its first bytes, `told` when each saw an end. */
const readers = `
const { connect } = require("node:net")
const [port, count] = process.argv.slice(1, 3).map(Number)
const word = process.argv[3]
let [up, told, begun] = [0, 0, 0]
const next = () => {
  if (begun++ >= count) return
  let isUp = false
  const socket = connect(port, "127.0.0.1", () => socket.write("GET /threads/t/events?follow=true HTTP/1.1\\r\\nhost: localhost\\r\\n${ada}\\r\\n\\r\\n"))
  socket.on("error", (error) => { console.log("failed " + error); process.exit(1) })
  socket.on("data", (data) => {
    const text = data.toString()
    if (!isUp && text.includes(": beat")) { isUp = true; next(); if (++up === count) console.log("up") }
    if (text.includes("Hello, " + word) && ++told === count) console.log("told")
  })
}
for (let one = 0; one < 50; one++) next()
`

setFlagsFromString("--expose-gc")
const collect: () => void = runInNewContext("gc")

const heapUsed = Effect.gen(function* () {
  yield* Effect.sleep("20 millis")
  collect()
  return process.memoryUsage().heapUsed
})

const connections = (): number => process.getActiveResourcesInfo().filter((one) => one === "TCPSocketWrap").length

/** Holds readers of a thread, tells them of a run, and kills them. Gives the bytes that each costs. */
const holdReaders = Effect.fnUntraced(function* (url: string, count: number, input: string) {
  const [before, open] = [yield* heapUsed, connections()]
  const child = yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn(process.execPath, ["-e", readers, new URL(url).port, String(count), input], {
        stdio: ["ignore", "pipe", "inherit"]
      })
    ),
    (one) => Effect.sync(() => one.kill("SIGKILL"))
  )
  let said = ""
  child.stdout.on("data", (data) => (said += String(data)))
  const awaitWord = Effect.fnUntraced(function* (word: string) {
    while (!said.includes(word)) {
      assert.notInclude(said, "failed")
      yield* Effect.sleep("20 millis")
    }
  })
  yield* awaitWord("up")
  const each = ((yield* heapUsed) - before) / count
  assert.isAtLeast(connections(), count)
  yield* ask(`${url}/threads/t/runs`, { body: { agent: "helper", input } })
  yield* awaitWord("told")
  child.kill("SIGKILL")
  while (connections() > open + 5) yield* Effect.sleep("50 millis")
  return each
}, Effect.scoped)

describe("idle readers", () => {
  const count = scaled(10_000)
  live(
    `${count} of them cost at most 25 kB each, are all told, and leave nothing behind`,
    (url) =>
      Effect.gen(function* () {
        yield* ask(`${url}/threads/t/runs`, { body: { agent: "helper", input: "One" } })
        yield* ask(`${url}/threads/t/events`)
        const before = yield* heapUsed
        assert.isBelow(yield* holdReaders(url, count, "Two"), 25 * 1_024)
        // Compiled code and larger tables stay.
        assert.isBelow(((yield* heapUsed) - before) / count, 3 * 1_024)
      }),
    120_000
  )
})

describe("packets and decisions of hostile clients", () => {
  live("frames that are none end their own connection alone", (url) =>
    Effect.gen(function* () {
      yield* ask(`${url}/threads/t/runs`, { body: { agent: "helper", input: "Hi" } })
      const handshake = `GET /threads/t/socket HTTP/1.1\r\nhost: localhost\r\n${ada}\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`
      const masked = (first: number, payload: Buffer, length = payload.length) =>
        Buffer.concat([
          Buffer.from([first, ...(length > 125 ? [0xfe, length >> 8, length & 255] : [0x80 | length]), 0, 0, 0, 0]),
          payload
        ])
      const cancel = Buffer.from(JSON.stringify({ type: "cancel", ref: "a" }))
      const frames: Readonly<Record<string, Buffer>> = {
        "no mask": Buffer.concat([Buffer.from([0x81, cancel.length]), cancel]),
        "no text": masked(0x81, Buffer.from([0xff, 0xfe, 0xc0])),
        "a reserved bit": masked(0xc1, cancel),
        "a reserved kind": masked(0x83, cancel),
        "a long ping": masked(0x89, Buffer.alloc(200)),
        "a piece of nothing": masked(0x80, cancel),
        "a text in a text": Buffer.concat([masked(0x01, cancel), masked(0x81, cancel)]),
        "a length of 2^63": Buffer.from([0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]),
        bytes: masked(0x82, cancel)
      }
      const good = yield* Effect.forkChild(
        sendRaw(url, Buffer.concat([Buffer.from(handshake), masked(0x81, cancel)]), {
          silence: 20_000,
          isEnough: (text) => text.includes('"ack"')
        })
      )
      for (const [name, frame] of Object.entries(frames)) {
        const text = yield* sendRaw(url, Buffer.concat([Buffer.from(handshake), frame]), {
          silence: 20_000,
          isEnough: (got) => got.includes("\u0088")
        })
        assert.deepStrictEqual(answersIn(text), [101], name)
        assert.notInclude(text, '"ack"', name)
      }
      assert.include(yield* Fiber.join(good), "ack")
      // Upgrades to other protocols stay requests.
      for (const protocol of ["h2c", "TLS/1.2", "websocket, h2c", "x"]) {
        const text = yield* sendRaw(url, handshake.replace("upgrade: websocket", `upgrade: ${protocol}`))
        assert.notInclude(answersIn(text), 101, protocol)
      }
      assert.strictEqual((yield* ask(`${url}/health`)).status, 200)
    })
  )

  live("one of many decisions at once counts, and a replay of it anywhere counts for nothing", (url) =>
    Effect.gen(function* () {
      paid = 0
      yield* ask(`${url}/threads/t/runs`, { body: { agent: "helper", input: "pay" } })
      yield* ask(`${url}/threads/t/events`)
      const id = (yield* ask(`${url}/threads/t/state`)).at("pending", 0, "id")
      const decide = (tag: "Approve" | "Reject", thread = "t", token = "token-of-ada") =>
        ask(`${url}/threads/${thread}/decisions`, { token, body: { decisions: [{ _tag: tag, id }] } })
      const all = yield* Effect.all(
        Array.from({ length: 40 }, () => decide("Approve")),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(new Set(all.map(({ status }) => status)), new Set([202]))
      assert.lengthOf(
        all.filter((one) => one.at("isNew") === true),
        1
      )
      yield* readFrames(`${url}/threads/t/events`)
      assert.strictEqual(paid, 1)
      // Recorded requests, sent again to the thread, its fork, another thread and by another tenant.
      assert.strictEqual((yield* decide("Reject")).at("isNew"), false)
      const fork = yield* ask(`${url}/threads/t/fork`, { body: {} })
      const replayed = yield* decide("Approve", String(fork.at("id")))
      assert.strictEqual(replayed.at("isNew"), false)
      yield* ask(`${url}/threads/other/runs`, { body: { agent: "helper", input: "pay" } })
      yield* ask(`${url}/threads/other/events`)
      assert.strictEqual((yield* decide("Approve", "other")).status, 404)
      assert.strictEqual((yield* decide("Approve", "t", "token-of-eve")).status, 404)
      yield* ask(`${url}/threads/t/events`)
      yield* ask(`${url}/threads/other/events`)
      assert.strictEqual(paid, 1)
      assert.strictEqual((yield* ask(`${url}/threads/other/state`)).at("state"), "waiting")
    })
  )
})
