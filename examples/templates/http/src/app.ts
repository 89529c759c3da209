/** POST /threads/:id with a text: the events of the answer, as server-sent events. The thread is kept. */
import { Effect, Layer, Stream } from "effect"
import { type Agent, AgentEvent } from "effect-deepagents"
import { Chat } from "effect-deepagents/sessions"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { agent } from "./agent.ts"

/** Who may ask is yours to check: put it before this, as a middleware of the router. */
const ask = HttpRouter.add(
  "POST",
  "/threads/:id",
  Effect.gen(function* () {
    const { id } = yield* HttpRouter.params
    const request = yield* HttpServerRequest.HttpServerRequest
    const chat = yield* Chat.make(agent, id ?? "nobody", { busy: "queue" })
    const events = chat.stream(yield* request.text).pipe(
      Stream.map((event) => `id: ${event.seq}\ndata: ${JSON.stringify(AgentEvent.encode(event))}\n\n`),
      Stream.encodeText
    )
    const context = yield* Effect.context<Agent.Services<typeof agent>>()
    return HttpServerResponse.stream(Stream.provideContext(events, context), {
      contentType: "text/event-stream",
      headers: { "cache-control": "no-cache" }
    })
  })
)

const health = HttpRouter.add("GET", "/health", Effect.succeed(HttpServerResponse.text("ok")))

export const app = HttpRouter.serve(Layer.merge(ask, health))
