/** An endpoint that streams, by Effect's router. */
import { createServer } from "node:http"
import { NodeHttpServer, NodeRuntime } from "@effect/platform-node"
import { Effect, Layer, Stream } from "effect"
import { Agent, AgentEvent } from "effect-deepagents"
import { ChatModels } from "effect-deepagents/models"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"

const agent = Agent.make({ name: "helper", prompt: "You help." })

const ask = HttpRouter.add(
  "POST",
  "/ask",
  Effect.gen(function* () {
    const { text } = yield* HttpServerRequest.HttpServerRequest
    const events = Stream.map(Agent.stream(agent, yield* text), (event) => JSON.stringify(AgentEvent.encode(event)))
    const body = Stream.encodeText(Stream.map(events, (data) => `data: ${data}\n\n`))
    const context = yield* Effect.context<Agent.Services<typeof agent>>()
    return HttpServerResponse.stream(Stream.provideContext(body, context), { contentType: "text/event-stream" })
  })
)

const server = NodeHttpServer.layer(createServer, { port: Number(process.env["PORT"]) })
const model = ChatModels.resolve("anthropic:claude-sonnet-5-5")
NodeRuntime.runMain(Layer.launch(HttpRouter.serve(ask).pipe(Layer.provide([server, model]))))
