/** Serves the agent on PORT (3000): curl -N http://127.0.0.1:3000/threads/ada -d "Hello" */
import { createServer } from "node:http"
import { NodeHttpServer, NodeRuntime } from "@effect/platform-node"
import { Config, Effect, Layer } from "effect"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { Printer } from "effect-deepagents/view"
import { app } from "./app.ts"
import { model } from "./model.ts"

const program = Effect.gen(function* () {
  const port = yield* Config.withDefault(Config.Port("PORT"), 3000)
  const server = NodeHttpServer.layer(createServer, { port, host: "127.0.0.1" })
  yield* Layer.launch(Layer.provide(app, [model, SqliteSessions.layer({ file: "threads.db" }), server]))
}).pipe(Printer.orExit)

NodeRuntime.runMain(program)
