/**
 * A fork of a conversation: two ways go on from one point, each without the other; and a way that is left, with a summary
 * of it where the conversation goes on.
 */
import assert from "node:assert/strict"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Console, Effect, FileSystem, Layer } from "effect"
import { Agent, Message } from "effect-deepagents"
import { Branch, Chat, SessionStore } from "effect-deepagents/sessions"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { TestChatModel } from "effect-deepagents/testing"

const agent = Agent.make({ name: "planner", prompt: "You plan trips." })

const model = TestChatModel.script([
  "Three days: which way do you like to travel?",
  "By train: Lyon, then Marseille.",
  "By bike: along the canal.",
  "## Found out\nThe train by Lyon is sold out on Friday.",
  "Then a car, over the Alps."
])

const show = (title: string, messages: ReadonlyArray<Message.Message>) =>
  Console.log(`${title}: ${messages.map(Message.text).join(" | ")}`)

const program = Effect.gen(function* () {
  const store = yield* SessionStore.SessionStore
  const chat = yield* Chat.make(agent, "trip")
  yield* chat.send("Plan a trip to the sea.")
  const { id: point } = yield* store.leaf("trip")
  yield* store.label("trip", "how to travel", point)
  yield* chat.send("By train.")

  // The fork has the same past up to the label, and a future of its own.
  const at = (yield* store.labels("trip")).get("how to travel") ?? null
  const fork = yield* store.fork("trip", { at, threadId: "trip by bike" })
  const other = yield* Chat.make(agent, fork.threadId)
  yield* other.send("By bike.")
  const [train, bike] = [yield* chat.history, yield* other.history]
  yield* show("train", train)
  yield* show("bike", bike)
  assert.deepEqual(bike.slice(0, 2), train.slice(0, 2))
  assert.equal(Message.text(bike[2] ?? Message.human("")), "By bike.")

  // Back to the point in the same conversation, but not with empty hands.
  const { summary } = yield* Branch.leave("trip", { to: at, summarizer: Branch.summarizer })
  yield* chat.send("Another idea?")
  const history = yield* chat.history
  yield* show("after going back", history)
  assert.deepEqual(history[2], summary)
  assert.equal(history.length, 5)
  // What was left is still there, and so is the fork.
  assert.equal((yield* store.search("Marseille", { threadId: "trip" })).items.length, 1)
  assert.deepEqual(yield* other.history, bike)
})

const sessions = Layer.unwrap(
  FileSystem.FileSystem.use((fs) =>
    Effect.map(fs.makeTempDirectoryScoped(), (folder) => SqliteSessions.layer({ file: `${folder}/trips.db` }))
  )
)

NodeRuntime.runMain(program.pipe(Effect.provide([sessions, model]), Effect.provide(NodeServices.layer)))
