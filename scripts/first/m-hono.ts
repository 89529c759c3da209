/** An agent behind Hono, without Effect in the routes. */
import { serve } from "@hono/node-server"
import { Agent, AgentEvent, AgentPromise } from "effect-deepagents"
import { ChatModels } from "effect-deepagents/models"
import { Hono } from "hono"

const agent = Agent.make({ name: "helper", prompt: "You help." })
const helper = AgentPromise.make(agent, ChatModels.resolve("anthropic:claude-sonnet-5-5"))

const respond = (events: AsyncIterable<AgentEvent.AgentEvent>) => {
  const iterator = events[Symbol.asyncIterator]()
  const encoder = new TextEncoder()
  const body = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const { done, value } = await iterator.next()
      if (done === true) controller.close()
      else controller.enqueue(encoder.encode(`data: ${JSON.stringify(AgentEvent.encode(value))}\n\n`))
    },
    cancel: async () => void (await iterator.return?.())
  })
  return new Response(body, { headers: { "content-type": "text/event-stream" } })
}

const app = new Hono()
app.post("/ask", async (c) => respond(helper.stream(await c.req.text())))
serve({ fetch: app.fetch, port: Number(process.env["PORT"] ?? 3000) }, ({ port }) =>
  console.log(`listening on ${port}`)
)
