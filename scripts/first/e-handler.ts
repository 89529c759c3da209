/** The same for a framework with promises: a handler, as of Express. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { text } from "node:stream/consumers"
import { Effect, ManagedRuntime, Stream } from "effect"
import { Agent, AgentEvent } from "effect-deepagents"
import { ChatModels } from "effect-deepagents/models"

const runtime = ManagedRuntime.make(ChatModels.resolve("anthropic:claude-sonnet-5-5"))
const agent = Agent.make({ name: "helper", prompt: "You help." })

const handler = async (request: IncomingMessage, response: ServerResponse) => {
  const left = new AbortController()
  response.on("close", () => left.abort())
  response.writeHead(200, { "content-type": "text/event-stream" })
  const run = Stream.runForEach(Agent.stream(agent, await text(request)), (event) =>
    Effect.sync(() => response.write(`data: ${JSON.stringify(AgentEvent.encode(event))}\n\n`))
  )
  await runtime.runPromiseExit(run, { signal: left.signal })
  response.end()
}

createServer((request, response) => void handler(request, response)).listen(Number(process.env["PORT"]), () =>
  console.log("listening")
)
