import { appendFileSync, existsSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
/**
 * A server that is killed: a folder and a port as arguments. Its tool notes each effect in the file `effects`. Odd numbers
 * wait for a file, so that the server is killed at work.
 */
import { NodeHttpServer, NodeRuntime, NodeServices } from "@effect/platform-node"
import { Effect, Layer, Redacted, Schema } from "effect"
import { Agent, Tool } from "effect-deepagents"
import { Server } from "effect-deepagents/server"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { HttpRouter } from "effect/http"

const [folder = "", port = "0"] = process.argv.slice(2)

const note = Tool.make("note", {
  description: "Notes a number",
  parameters: { n: Schema.Finite },
  annotations: { idempotent: true },
  execute: Effect.fnUntraced(function* ({ n }) {
    while (n % 2 === 1 && !existsSync(join(folder, `go-${n}`))) yield* Effect.sleep("10 millis")
    appendFileSync(join(folder, "effects"), `${n}\n`)
    return `noted ${n}`
  })
})

const rounds = 6

/** Each run notes six numbers. */
const model = TestChatModel.reactive(({ messages }) => {
  const since = messages.slice(messages.findLastIndex(({ role }) => role === "human"))
  const round = since.filter(({ role }) => role === "ai").length
  const options = { chunkSize: 4 }
  return round < rounds
    ? TestChatModel.calls([{ name: "note", arguments: { n: round } }], { text: `This is round ${round}.`, ...options })
    : TestChatModel.text("All of it is noted.", options)
})

const helper = Agent.make({ name: "helper", prompt: "You help.", tools: [note] })
const runs = Server.layer({ helper }, { takeOver: true }).pipe(
  Layer.provide([Layer.provide(Storage.layerFile({ folder: join(folder, "mail") }), NodeServices.layer), model]),
  Layer.provideMerge(SqliteSessions.layer({ file: join(folder, "threads.db") }))
)
const auth = Server.loopback({ token: Redacted.make("token") })

const server = HttpRouter.serve(Server.http().pipe(Layer.provide([runs, auth])), { disableLogger: true }).pipe(
  Layer.provide(NodeHttpServer.layer(createServer, { port: Number(port), host: "127.0.0.1" }))
)

NodeRuntime.runMain(Layer.launch(server))
