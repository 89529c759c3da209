/**
 * A chat that survives a restart: what was said is on the disk before it is answered, a new process goes on with it, and
 * a fork tries another way without touching it.
 */
import assert from "node:assert/strict"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Console, Effect, FileSystem, Layer } from "effect"
import { Agent, Message } from "effect-deepagents"
import { Chat, JsonlSessions, SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"

const agent = Agent.make({ name: "companion", prompt: "You remember what you are told." })

/** What a process does: it opens the store, goes on with the chat, and ends. */
const process = (folder: string, question: string, answer: string) =>
  Effect.gen(function* () {
    const chat = yield* Chat.make(agent, "ada", { metadata: { title: "Ada's chat" } })
    yield* chat.send(question)
    return yield* chat.history
  }).pipe(Effect.provide([JsonlSessions.layer({ folder, fsync: true }), TestChatModel.script([answer])]))

const program = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const folder = yield* fs.makeTempDirectoryScoped()

  yield* process(folder, "My name is Ada.", "Nice to meet you, Ada.")
  const history = yield* process(folder, "What is my name?", "You are Ada.")
  for (const message of history) yield* Console.log(`${message.role}: ${Message.text(message)}`)
  assert.equal(history.length, 4)

  const forked = Effect.gen(function* () {
    const store = yield* SessionStore.SessionStore
    const [thread] = (yield* store.list({ where: { title: "Ada's chat" } })).items
    assert.ok(thread !== undefined)
    const fork = yield* store.fork(thread.threadId, { metadata: { title: "Another way" } })
    yield* Agent.run(agent, "Call me Countess.", { threadId: fork.threadId })
    const found = yield* store.search("ada")
    yield* Console.log(`${found.items.length} messages have "ada"; the first: ${found.items[0]?.excerpt}`)
    return yield* Effect.all([SessionStore.checkpoint(fork.threadId), SessionStore.checkpoint("ada")])
  })
  const sessions = SessionStore.journal.pipe(Layer.provideMerge(JsonlSessions.layer({ folder })))
  const [fork, original] = yield* forked.pipe(
    Effect.provide([sessions, TestChatModel.script(["As you wish, Countess."])])
  )
  // The fork has all of the chat and more; the chat is what it was.
  assert.equal(fork?.messages.length, 6)
  assert.deepEqual(original?.messages, history)
})

NodeRuntime.runMain(program.pipe(Effect.scoped, Effect.provide(NodeServices.layer)))
