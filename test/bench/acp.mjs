/**
 * Chunks of text a second through the Agent Client Protocol, to the package's own client over pipes of this process,
 * beside the same run as a stream of events; and the time to the first `initialize` of `deepagents acp`, beside a bare
 * `node`: of the first start on a machine, and of starts after one that ended by itself. Interleaved, the median of the
 * rounds.
 * Run: `npm run build && node test/bench/acp.mjs`
 */
import { spawn } from "node:child_process"
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import * as acp from "@agentclientprotocol/sdk"
import { Effect, Layer, Sink, Stdio, Stream } from "effect"
import { AcpServer } from "../../src/acp/index.ts"
import { Agent } from "../../src/index.ts"
import { MemorySessions } from "../../src/sessions/index.ts"
import { TestChatModel } from "../../src/testing/index.ts"

const count = 20_000
const word = "word, "
const rounds = 7
const folder = mkdtempSync(join(tmpdir(), "deepagents-bench-"))
const model = TestChatModel.reactive(() => TestChatModel.text(Array.from({ length: count }, () => word)))
const agent = Agent.make({ name: "talker", prompt: "You talk." })

const inProcess = () =>
  Agent.stream(agent, "Talk.").pipe(Stream.runCount, Effect.provide([model, MemorySessions.layer]), Effect.runPromise)

/** Counts the characters that a client has read. */
const makeClient = (output, input) => {
  let characters = 0
  let done
  const over = new Promise((resolve) => (done = resolve))
  const connection = acp
    .client({ name: "bench" })
    .onNotification("session/update", ({ params: { update } }) => {
      if (update.sessionUpdate !== "agent_message_chunk") return
      characters += update.content.text.length
      if (characters === count * word.length) done()
    })
    .connect(acp.ndJsonStream(output, input))
  return { connection, over }
}

/** The same words by an agent of the package alone. */
const byPackage = async () => {
  const toServer = new TransformStream()
  const toClient = new TransformStream()
  const served = acp
    .agent({ name: "bench" })
    .onRequest("initialize", () => ({ protocolVersion: acp.PROTOCOL_VERSION }))
    .onRequest("session/new", () => ({ sessionId: "one" }))
    .onRequest("session/prompt", async ({ client }) => {
      for (let index = 0; index < count; index++) {
        const update = { sessionUpdate: "agent_message_chunk", content: { type: "text", text: word } }
        await client.notify("session/update", { sessionId: "one", update })
      }
      return { stopReason: "end_turn" }
    })
    .connect(acp.ndJsonStream(toClient.writable, toServer.readable))
  const { connection, over } = makeClient(toServer.writable, toClient.readable)
  await connection.agent.request("initialize", { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} })
  await connection.agent.request("session/new", { cwd: folder, mcpServers: [] })
  const begin = performance.now()
  await connection.agent.request("session/prompt", { sessionId: "one", prompt: [{ type: "text", text: "Talk." }] })
  await over
  const took = performance.now() - begin
  connection.close()
  served.close()
  return took
}

const overProtocol = async () => {
  const toServer = new TransformStream()
  const toClient = new TransformStream()
  const writer = toClient.writable.getWriter()
  const stdio = Stdio.make({
    args: Effect.succeed([]),
    stdin: Stream.orDie(Stream.fromReadableStream({ evaluate: () => toServer.readable, onError: String })),
    stdout: () => Sink.forEach((chunk) => Effect.promise(() => writer.write(chunk))),
    stderr: () => Sink.drain
  })
  const { connection, over } = makeClient(toServer.writable, toClient.readable)
  const server = Layer.launch(AcpServer.layer({ agents: { agent } })).pipe(
    Effect.provide([Layer.succeed(Stdio.Stdio, stdio), model, MemorySessions.layer])
  )
  const served = Effect.runPromise(server).catch(() => {})
  await connection.agent.request("initialize", { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} })
  const { sessionId } = await connection.agent.request("session/new", { cwd: folder, mcpServers: [] })
  const begin = performance.now()
  await connection.agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text: "Talk." }] })
  await over
  const took = performance.now() - begin
  connection.close()
  await toServer.writable.close().catch(() => {})
  await served
  return took
}

const timed = (work) => async () => {
  const begin = performance.now()
  await work()
  return performance.now() - begin
}

const startProgram = (args, home) =>
  spawn(process.execPath, args, {
    stdio: ["pipe", "pipe", "ignore"],
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: home }
  })

/** The time from the start of a program to the first byte of its output. */
const firstByte =
  (args, said, home = () => folder) =>
  () =>
    new Promise((resolve) => {
      const begin = performance.now()
      const child = startProgram(args, home())
      child.stdout.once("data", () => {
        resolve(performance.now() - begin)
        child.kill("SIGKILL")
      })
      child.stdin.write(said)
    })

/** Starts a program that keeps its compiled code at its end. */
const endByItself = (args, said) =>
  new Promise((resolve) => {
    const child = startProgram(args, folder)
    child.once("close", resolve)
    child.stdout.once("data", () => child.stdin.end())
    child.stdin.write(said)
  })

const initialize = JSON.stringify({ jsonrpc: "2.0", id: 0, method: "initialize", params: { protocolVersion: 1 } })
const server = [resolve("dist/cli/program/deepagents.js"), "acp"]
const runs = {
  "stream in process": timed(inProcess),
  "package alone over the protocol": byPackage,
  "agent over the protocol": overProtocol,
  "bare node": firstByte(["-e", "process.stdin.once('data', () => process.stdout.write('{}'))"], "{}\n"),
  "deepagents acp, initialize": firstByte(server, `${initialize}\n`),
  "deepagents acp, the first start of a machine": firstByte(server, `${initialize}\n`, () =>
    mkdtempSync(join(tmpdir(), "deepagents-bench-"))
  )
}
await endByItself(server, `${initialize}\n`)
const times = new Map(Object.keys(runs).map((name) => [name, []]))
for (let round = 0; round < rounds + 1; round++) {
  for (const [name, run] of Object.entries(runs)) {
    const took = await run()
    if (round > 0) times.get(name).push(took)
  }
}
for (const [name, took] of times) {
  const sorted = took.toSorted((left, right) => left - right)
  console.log(`${name}: ${sorted[Math.floor(sorted.length / 2)].toFixed(0)} ms`)
}
process.exit(0)
