/** Runs a thread with a model in batches, for the test that kills it. */
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer, Redacted, Stream } from "effect"
import { Agent, Middleware } from "effect-deepagents"
import * as AnthropicChatModel from "effect-deepagents/models/AnthropicChatModel"
import * as OpenAiChatModel from "effect-deepagents/models/OpenAiChatModel"
import { JsonlSessions, SessionStore } from "effect-deepagents/sessions"
import { KeyValueStore } from "effect/persistence"

const [, , url = "", folder = "", provider, diesAt] = process.argv

/** Dies with the id of a new batch in its hands, before anybody else has it. */
const fetch: typeof globalThis.fetch = async (input, init) => {
  const response = await globalThis.fetch(input, init)
  const isBatch = init?.method?.toUpperCase() === "POST" && response.url.endsWith("/batches")
  if (diesAt === "begun" && isBatch) process.kill(process.pid, "SIGKILL")
  return response
}

const dying = Middleware.make({
  name: "dying",
  wrapModelCall: (request, next) =>
    // All of the batch was read, and the thread is slow.
    Stream.tap(next(request), ({ _tag }) =>
      _tag === "TurnDone" && diesAt === "answer"
        ? Effect.delay(
            Effect.sync(() => process.kill(process.pid, "SIGKILL")),
            300
          )
        : Effect.void
    )
})

const agent = Agent.make({ name: "speaker", prompt: "You speak.", middleware: [dying] })

const options = { apiKey: Redacted.make("sk-canary"), window: 10, interval: 10, fetch }

const model =
  provider === "OpenAI"
    ? OpenAiChatModel.layerBatch({ ...options, model: "gpt-5.4", baseURL: `${url}/v1` })
    : AnthropicChatModel.layerBatch({ ...options, model: "claude-opus-5-5", baseURL: url })

const program = Effect.gen(function* () {
  const run = diesAt === "never" ? Agent.resume(agent, { threadId: "t" }) : Agent.run(agent, "say a", { threadId: "t" })
  const { text } = yield* Effect.provide(run, model)
  return `${text}, ${yield* (yield* KeyValueStore.KeyValueStore).size} kept`
}).pipe(
  Effect.provide(
    Layer.mergeAll(
      KeyValueStore.layerFileSystem(join(folder, "batches")),
      Layer.provideMerge(SessionStore.journal, JsonlSessions.layer({ folder: join(folder, "threads") }))
    ).pipe(Layer.provideMerge(NodeServices.layer))
  )
)

Effect.runPromise(program).then(
  (text) => console.log(text),
  (error: unknown) => console.log(String(error))
)
