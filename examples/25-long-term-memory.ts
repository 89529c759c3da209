/**
 * Data that outlives a conversation: facts that an agent remembers for a user, the trace of what it did, and a token that is
 * refreshed when it is needed. All of it in one SQLite file.
 */
import assert from "node:assert/strict"
import { join } from "node:path"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Clock, Console, Context, Effect, FileSystem, Layer, Redacted, Schema, Stream } from "effect"
import { Agent, Tool, ToolError } from "effect-deepagents"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
import { CredentialKey, CredentialStore, MemoryStore, MemoryTools, Storage, TraceStore } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"

/** Who asks. A server sets it for each request, from what it has checked itself; never from what a model says. */
class User extends Context.Service<User, string>()("examples/User") {}

/** The calendar's server, as far as this example needs it. */
const planned = (token: string) =>
  token === "a-new-token" ? Effect.succeed("tea with Charles") : Effect.fail(ToolError.make("The calendar said 401"))

/** A tool that uses a token and never tells it. */
const calendar = Tool.make("calendar", {
  description: "What the user has planned for a day",
  parameters: { day: Schema.String },
  execute: ({ day }) =>
    Effect.gen(function* () {
      const user = yield* User
      const credentials = yield* CredentialStore.CredentialStore
      const now = yield* Clock.currentTimeMillis
      const token = yield* credentials.refreshed(user, "calendar", {
        // Here the token endpoint of the calendar is asked, with the refresh token of the old one.
        refresh: () =>
          Effect.as(
            Console.log("refreshed the token"),
            CredentialStore.OAuthToken.make({
              accessToken: Redacted.make("a-new-token"),
              expiresAt: now + 3_600_000
            })
          )
      })
      if (token._tag !== "OAuthToken") return yield* ToolError.make("The calendar is not connected")
      return `${day}: ${yield* planned(Redacted.value(token.accessToken))}`
    })
})

const agent = Agent.make({
  name: "companion",
  prompt: "You know the user. Recall what you know before you answer, and remember what will matter later.",
  tools: [...MemoryTools.make({ namespace: User }), calendar]
})

/** A conversation of its own; all that it has of the ones before is what was remembered. */
const converse = (user: string, question: string, turns: ReadonlyArray<TestChatModel.Turn>) =>
  Agent.stream(agent, question).pipe(
    TraceStore.record(),
    Stream.runCollect,
    Effect.provideService(User, user),
    Effect.provide(TestChatModel.script(turns))
  )

const program = Effect.gen(function* () {
  const memory = yield* MemoryStore.MemoryStore
  const credentials = yield* CredentialStore.CredentialStore
  const traces = yield* TraceStore.TraceStore

  yield* credentials.set(
    "ada",
    "calendar",
    CredentialStore.OAuthToken.make({ accessToken: Redacted.make("an-old-token"), expiresAt: 0 })
  )

  yield* converse("ada", "I prefer tea. What have I planned for Monday?", [
    TestChatModel.calls([
      { name: "remember", arguments: { text: "Ada prefers tea to coffee", category: "preference" } },
      { name: "calendar", arguments: { day: "Monday" } }
    ]),
    "Tea with Charles, which suits you."
  ])

  // Days later, in another conversation: the same user, and another one.
  const told = yield* Effect.forEach(["ada", "bob"], (user) =>
    Effect.map(
      converse(user, "What shall I drink?", [
        TestChatModel.calls([{ name: "recall", arguments: { query: "drink: tea or coffee" } }]),
        "Tea."
      ]),
      (events) => events.flatMap((event) => (event._tag === "ToolCompleted" ? [event.text] : [])).join()
    )
  )
  for (const text of told) yield* Console.log(text)
  assert.match(told[0] ?? "", /> Ada prefers tea to coffee/)
  assert.equal(told[1], "Nothing is remembered that fits.")
  assert.equal((yield* memory.search("bob", {})).length, 0)

  // What was done is still known, and no token is in it.
  const runs = (yield* traces.runs({ agent: "companion" })).items
  assert.equal(runs.length, 3)
  const first = yield* Stream.runCollect(traces.stream(runs[2]?.runId ?? ""))
  assert.match(JSON.stringify(first), /Monday: tea with Charles/)
  const calls = first.flatMap((event) => (event._tag === "ToolCalled" ? [event.toolName] : []))
  yield* Console.log(`The first run called ${calls.join(" and ")}`)
  assert.deepEqual(calls, ["remember", "calendar"])
  assert.doesNotMatch(JSON.stringify(first), /a-new-token|an-old-token/)
})

const stores = Layer.mergeAll(MemoryStore.layer, TraceStore.layer, CredentialStore.layer)

const main = Effect.gen(function* () {
  const folder = yield* Effect.flatMap(FileSystem.FileSystem, (fs) => fs.makeTempDirectoryScoped())
  const storage = Layer.provide(Storage.layerSql, SqliteClient.layer({ file: join(folder, "stores.db") }))
  // An application takes CredentialKey.layerKeychain or layerConfig: what a random key sealed, nobody reads tomorrow.
  yield* Effect.provide(program, Layer.provide(stores, [storage, CredentialKey.layerRandom]))
})

NodeRuntime.runMain(main.pipe(Effect.scoped, Effect.provide(NodeServices.layer)))
