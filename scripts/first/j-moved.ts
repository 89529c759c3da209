/** What a program on another library has: a zod tool with promises, a sub-agent with its model, an edit, a typed answer. */
import { Effect, Layer, Schema } from "effect"
import { Agent, Approval, Tool } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { DeepAgent } from "effect-deepagents/deep"
import { ChatModels } from "effect-deepagents/models"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { z } from "zod"

const book = Tool.make("book", {
  description: "Books a table",
  parameters: z.object({ restaurant: z.string(), people: z.number() }),
  needsApproval: true,
  execute: ({ people, restaurant }) => Effect.tryPromise(async () => `${restaurant}: a table for ${people}`)
})

const critic = DeepAgent.subagent({
  name: "critic",
  description: "Knows restaurants",
  prompt: "You name one restaurant."
}).pipe(Agent.provide(ChatModels.resolve("anthropic:claude-haiku-4-5")))

const agent = DeepAgent.make({
  name: "concierge",
  prompt: "You ask the critic, and book.",
  tools: [book],
  subagents: [critic],
  approvals: {},
  output: Schema.Struct({ restaurant: Schema.String, people: Schema.Finite })
})

const program = Effect.gen(function* () {
  const { pending } = yield* Agent.run(agent, "Dinner for two.", { threadId: "ada" })
  const decisions = pending.map((request) => Approval.edit(request, { ...request.arguments, people: 3 }))
  const { output } = yield* Agent.resume(agent, { threadId: "ada", decisions })
  return output
})

const threads = SessionStore.journal.pipe(Layer.provideMerge(MemorySessions.layer))
const model = ChatModels.resolve("anthropic:claude-sonnet-5-5")
console.log(await Effect.runPromise(program.pipe(Effect.provide([threads, model, MemoryBackend.layer()]))))
