// Measures events over HTTP, from the sources: node test/bench/server.mjs
// The server, its run and its store in memory included, against a bare loop of node:http that writes the same bytes; then
// idle readers, the process that serves them, 1,000 runs at once, and the events over a WebSocket.
import { fork } from "node:child_process"
import { createServer, get } from "node:http"
import { loadavg } from "node:os"
import { NodeHttpServer, NodeRuntime } from "@effect/platform-node"
import { Effect, Layer, Redacted } from "effect"
import { HttpRouter } from "effect/http"
import { Agent } from "../../src/index.ts"
import { Server } from "../../src/server/index.ts"
import { MemorySessions } from "../../src/sessions/index.ts"
import { Storage } from "../../src/stores/index.ts"
import { TestChatModel } from "../../src/testing/index.ts"

const count = Number(process.env["EVENTS"] ?? 20_000)
const idle = Number(process.env["READERS"] ?? 2_000)
const port = 18_437

const frame = `id: 12.1oz63ry.cab85422.1234\nevent: event\ndata: {"v":1,"_tag":"TextDelta","seq":1234,"runId":"45b4d044-6e42-404b-b07a-4c1d8772d31c","path":["helper"],"at":1795916125316,"text":"sixcha"}\n\n`

const report = () => {
  globalThis.gc?.()
  process.send?.({ rss: process.memoryUsage().rss, heap: process.memoryUsage().heapUsed })
}

const serveOurs = () => {
  // The reader is there when the first words come: else it would get them from the store, as one message.
  const model = TestChatModel.reactive(({ messages }) => {
    const isShort = JSON.stringify(messages).includes("short")
    const text = TestChatModel.text("sixcha".repeat(isShort ? 10 : count), { chunkSize: 6 })
    return () => Effect.as(Effect.sleep("50 millis"), text)
  })
  const helper = Agent.make({ name: "helper", prompt: "" })
  const runs = Server.layer({ helper }, { keep: 1 << 20 }).pipe(
    Layer.provide([Storage.layerMemory, model]),
    Layer.provideMerge(MemorySessions.layer)
  )
  const auth = Server.loopback({ token: Redacted.make("token") })
  const app = Server.http().pipe(Layer.provide(runs), Layer.provide(auth))
  const server = HttpRouter.serve(app, { disableLogger: true, disableListenLog: true }).pipe(
    Layer.provideMerge(NodeHttpServer.layer(createServer, { port, host: "127.0.0.1" }))
  )
  NodeRuntime.runMain(
    Effect.scoped(
      Effect.andThen(
        Layer.build(server),
        Effect.andThen(
          Effect.sync(() => process.send?.("ready")),
          Effect.never
        )
      )
    )
  )
}

const serveBare = () => {
  createServer((request, response) => {
    if (request.method === "POST") return response.writeHead(202).end("{}")
    response.writeHead(200, { "content-type": "text/event-stream" })
    if (request.url?.includes("follow") === true) return response.write(": here\n\n")
    let left = count
    const push = () => {
      while (left > 0) {
        left--
        if (!response.write(frame)) return response.once("drain", push)
      }
      response.end()
    }
    push()
  }).listen(port, "127.0.0.1", () => process.send?.("ready"))
}

const headers = { authorization: "Bearer token", "content-type": "application/json" }
const url = `http://127.0.0.1:${port}/threads`

const readAll = async (thread, input = "go") => {
  const began = performance.now()
  await fetch(`${url}/${thread}/runs`, { method: "POST", headers, body: JSON.stringify({ agent: "helper", input }) })
  const response = await fetch(`${url}/${thread}/events`, { headers })
  let first = 0
  let bytes = 0
  let events = 0
  for await (const chunk of response.body ?? []) {
    if (first === 0) first = performance.now() - began
    bytes += chunk.length
    for (const byte of chunk) if (byte === 0x0a) events++
  }
  const took = performance.now() - began
  return { first, perSecond: (events / 4 / took) * 1_000, bytes: bytes / (events / 4) }
}

/** Reads the events of a thread over a WebSocket, and sends its beats back. */
const readSocket = async (thread, input = "go") => {
  const began = performance.now()
  await fetch(`${url}/${thread}/runs`, { method: "POST", headers, body: JSON.stringify({ agent: "helper", input }) })
  const socket = new WebSocket(`${url.replace("http", "ws")}/${thread}/socket`, { headers })
  let first = 0
  let events = 0
  await new Promise((resolve, reject) => {
    socket.addEventListener("error", reject)
    socket.addEventListener("message", ({ data }) => {
      if (first === 0) first = performance.now() - began
      if (data.startsWith('{"type":"beat"')) return socket.send(data)
      events++
      if (data.includes('"_tag":"RunCompleted"')) resolve()
    })
  })
  const took = performance.now() - began
  socket.close()
  return { first, perSecond: (events / took) * 1_000 }
}

const runCount = Number(process.env["RUNS"] ?? 1_000)

/** Starts runs at once, and reads each to its end. */
const runMany = async () => {
  const began = performance.now()
  let accepted = 0
  const run = async (index) => {
    const body = JSON.stringify({ agent: "helper", input: "short" })
    const response = await fetch(`${url}/many${index}/runs`, { method: "POST", headers, body })
    if (response.status !== 202) throw new Error(await response.text())
    await response.text()
    accepted = performance.now() - began
    const text = await (await fetch(`${url}/many${index}/events`, { headers })).text()
    if (!text.includes('"_tag":"RunCompleted"')) throw new Error("a run has no end")
  }
  await Promise.all(Array.from({ length: runCount }, (_, index) => run(index)))
  return { accepted, took: performance.now() - began }
}

const hold = (thread) =>
  new Promise((resolve, reject) => {
    const request = get(`${url}/${thread}/events?follow=true`, { headers, agent: false }, (response) => {
      response.resume()
      resolve(() => request.destroy())
    })
    request.on("error", reject)
  })

const median = (all) => all.toSorted((left, right) => left - right)[Math.floor(all.length / 2)] ?? 0

const measure = async (kind) => {
  const child = fork(new URL(import.meta.url), [kind], { execArgv: [...process.execArgv, "--expose-gc"] })
  const next = () => new Promise((resolve) => child.once("message", resolve))
  await next()
  const rounds = []
  for (let index = 0; index < 5; index++) rounds.push(await readAll(`t${index}`))
  const ask = () => {
    const answer = next()
    child.send("report")
    return answer
  }
  if (kind === "ours") {
    const sockets = []
    for (let index = 0; index < 5; index++) sockets.push(await readSocket(`s${index}`))
    console.log(
      `WebSocket ${Math.round(median(sockets.map(({ perSecond }) => perSecond))).toLocaleString("en")} events/s,`,
      `first packet ${median(sockets.map(({ first }) => first)).toFixed(1)} ms`
    )
    const { accepted, took } = await runMany()
    console.log(
      `${runCount} runs at once: the last one taken after ${accepted.toFixed(0)} ms, all read after ${took.toFixed(0)} ms`
    )
  }
  await readAll("idle", "short")
  const before = await ask()
  const readers = []
  for (let index = 0; index < idle; index += 50) {
    readers.push(...(await Promise.all(Array.from({ length: Math.min(50, idle - index) }, () => hold("idle")))))
  }
  const after = await ask()
  for (const leave of readers) leave()
  child.kill("SIGKILL")
  console.log(
    kind.padEnd(6),
    `${Math.round(median(rounds.map(({ perSecond }) => perSecond))).toLocaleString("en")} events/s,`,
    `first byte ${median(rounds.map(({ first }) => first)).toFixed(1)} ms,`,
    `${Math.round(median(rounds.map(({ bytes }) => bytes)))} bytes an event,`,
    `${((after.rss - before.rss) / idle / 1_024).toFixed(1)} kB RSS and ${((after.heap - before.heap) / idle / 1_024).toFixed(1)} kB heap an idle reader`
  )
}

const [kind] = process.argv.slice(2)
process.on("message", (message) => message === "report" && report())
if (kind === "ours") serveOurs()
else if (kind === "bare") serveBare()
else {
  await measure("bare")
  await measure("ours")
  console.log(
    "load",
    loadavg()
      .map((one) => one.toFixed(1))
      .join(" ")
  )
}
