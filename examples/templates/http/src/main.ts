/** Serves the agent on PORT (3000). */
import { createServer } from "node:http"
import { NodeHttpServer, NodeRuntime } from "@effect/platform-node"
import { Config, Console, Effect, Layer } from "effect"
import { ChatModels } from "effect-deepagents/models"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { app } from "./app.ts"

const model = Layer.unwrap(
  Effect.map(Config.String("MODEL").pipe(Config.withDefault("anthropic:claude-sonnet-5-5")), (spec) =>
    ChatModels.resolve(spec)
  )
)

const server = Layer.unwrap(
  Effect.map(Config.Port("PORT").pipe(Config.withDefault(3000)), (port) =>
    NodeHttpServer.layer(createServer, { port, host: "127.0.0.1" })
  )
)

const program = Layer.launch(
  app.pipe(Layer.provide([model, SqliteSessions.layer({ file: "threads.db" }), server]))
).pipe(Effect.tapError((error) => Console.error(error._tag === "ServeError" ? String(error.cause) : error.message)))

NodeRuntime.runMain(program, { disableErrorReporting: true })
