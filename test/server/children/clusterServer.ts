import { appendFileSync, existsSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
/**
 * One of several servers of a cluster: the database, the port of the runner and a folder as arguments. Its tool notes each
 * effect in the file `effects`, with the process that did it, and waits for the file `go` before the second one.
 */
import { NodeHttpServer, NodeRuntime } from "@effect/platform-node"
import { Effect, Layer, Redacted, Schema } from "effect"
import { Agent, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { Server } from "effect-deepagents/server"
import { Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { HttpRouter } from "effect/http"
import { cluster } from "../../durable/children/cluster.ts"

const [url = "", port = "0", folder = ""] = process.argv.slice(2)

const note = Tool.make("note", {
  description: "Notes a number",
  parameters: { n: Schema.Finite },
  annotations: { idempotent: true },
  execute: Effect.fnUntraced(function* ({ n }) {
    const { id } = yield* Server.Caller
    while (n === 1 && !existsSync(join(folder, "go"))) yield* Effect.sleep("10 millis")
    appendFileSync(join(folder, "effects"), `${n} ${process.pid} ${id}\n`)
    return `noted ${n}`
  })
})
const pay = Tool.make("pay", {
  description: "Pays",
  parameters: {},
  execute: () =>
    Effect.sync(() => {
      appendFileSync(join(folder, "paid"), `${process.pid}\n`)
      return "paid"
    })
})

const rounds = 3

const model = TestChatModel.reactive(({ messages }) => {
  const since = messages.slice(messages.findLastIndex(({ role }) => role === "human"))
  const round = since.filter(({ role }) => role === "ai").length
  const words = JSON.stringify(since[0]?.content)
  const options = { chunkSize: 4 }
  if (words.includes("Pay") && round === 0) return TestChatModel.calls([{ name: "pay", arguments: {} }], options)
  return round < rounds && words.includes("Note all")
    ? TestChatModel.calls([{ name: "note", arguments: { n: round } }], { text: `This is round ${round}.`, ...options })
    : TestChatModel.text("All of it is done.", options)
})

const helper = Agent.make({
  name: "helper",
  prompt: "You help.",
  tools: [note, pay],
  middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
})
const runs = Server.layerCluster({ helper }).pipe(
  Layer.provide([Storage.layerSql, model]),
  Layer.provideMerge(cluster(url, Number(port)))
)
const auth = Server.loopback({ token: Redacted.make("token") })

const server = HttpRouter.serve(Server.http().pipe(Layer.provide([runs, auth])), { disableLogger: true }).pipe(
  Layer.provide(
    NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1", gracefulShutdownTimeout: "100 millis" })
  )
)

NodeRuntime.runMain(Layer.launch(server))
