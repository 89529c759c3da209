/** An approval in another process: `ask` ends while the call waits, `decide` answers and resumes. */
import { Console, Effect, Layer, Schema } from "effect"
import { Agent, Approval, Checkpoint, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { ChatModels } from "effect-deepagents/models"
import { SessionStore } from "effect-deepagents/sessions"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"

const refund = Tool.make("refund", {
  description: "Pays an order back",
  parameters: { order: Schema.String },
  execute: ({ order }) => Effect.as(Console.log(`paid back: ${order}`), "done")
})

const middleware = [HumanInTheLoop.make({ tools: { refund: true } })]
const agent = Agent.make({ name: "support", prompt: "You help.", tools: [refund], middleware })
const threadId = "ada"

const ask = Agent.run(agent, "Pay order 7 back.", { threadId })

const decide = Effect.gen(function* () {
  const checkpoint = yield* SessionStore.checkpoint(threadId)
  const pending = checkpoint === undefined ? [] : yield* Checkpoint.pending(checkpoint)
  yield* Console.log(pending.map(({ description }) => description).join("\n"))
  return yield* Agent.resume(agent, { threadId, decisions: pending.map((request) => Approval.approve(request)) })
})

const threads = SessionStore.journal.pipe(Layer.provideMerge(SqliteSessions.layer({ file: "threads.db" })))
const result = (process.argv[2] === "decide" ? decide : ask).pipe(
  Effect.provide([threads, ChatModels.resolve("anthropic:claude-sonnet-5-5")])
)
console.log((await Effect.runPromise(result)).stopReason)
