import { appendFileSync, existsSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
/**
 * One of several servers on one SQLite file: a folder and a port as arguments. Its tool notes each effect in the file
 * `effects`, with the process that did it, and waits for the file `go` before the second one.
 */
import { NodeHttpServer, NodeRuntime } from "@effect/platform-node"
import { Effect, Layer, Redacted, Schema } from "effect"
import { Agent, Tool } from "effect-deepagents"
import { Schedules, Server } from "effect-deepagents/server"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
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
    while (n === 1 && !existsSync(join(folder, "go"))) yield* Effect.sleep("10 millis")
    appendFileSync(join(folder, "effects"), `${n} ${process.pid}\n`)
    return `noted ${n}`
  })
})

const rounds = 3

const model = TestChatModel.reactive(({ messages }) => {
  const since = messages.slice(messages.findLastIndex(({ role }) => role === "human"))
  const round = since.filter(({ role }) => role === "ai").length
  return round < rounds && JSON.stringify(since[0]?.content).includes("Note all")
    ? TestChatModel.calls([{ name: "note", arguments: { n: round } }])
    : "All of it is done."
})

const file = join(folder, "threads.db")
const helper = Agent.make({ name: "helper", prompt: "You help.", tools: [note] })
const runs = Server.layer({ helper }, { lease: "2 seconds" }).pipe(
  Layer.provideMerge(Storage.layerSql.pipe(Layer.provide(SqliteClient.layer({ file })))),
  Layer.provide(model),
  Layer.provideMerge(SqliteSessions.layer({ file }))
)
const auth = Server.loopback({ token: Redacted.make("token") })

const server = HttpRouter.serve(Layer.merge(Server.http(), Schedules.layer).pipe(Layer.provide([runs, auth])), {
  disableLogger: true
}).pipe(
  Layer.provide(
    NodeHttpServer.layer(createServer, {
      port: Number(port),
      host: "127.0.0.1",
      gracefulShutdownTimeout: "100 millis"
    })
  )
)

NodeRuntime.runMain(Layer.launch(server))
