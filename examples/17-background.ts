/**
 * Sub-agents in the background: one in this process, one on a server. The first run ends while they work; the next run of
 * the thread is told that they are done.
 */
import assert from "node:assert/strict"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Layer, Redacted, Result } from "effect"
import { Agent, Message } from "effect-deepagents"
import { BackgroundSubagents, BackgroundTasks, RemoteAgents } from "effect-deepagents/middleware"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"
import { FetchHttpClient } from "effect/http"

/** As much of a LangGraph server as one task needs: a thread, a run on it, and what its agent said. */
const answers: Readonly<Record<string, unknown>> = {
  "POST /threads": { thread_id: "t-1" },
  "POST /threads/t-1/runs": { run_id: "r-1", status: "pending" },
  "GET /threads/t-1/runs/r-1": { run_id: "r-1", status: "success" },
  "GET /threads/t-1": { values: { messages: [{ type: "ai", content: "Bern has 146,348 inhabitants." }] } }
}

const server = Effect.map(
  Effect.acquireRelease(
    Effect.callback<http.Server>((resume) => {
      const listening = http.createServer((request, response) => {
        const isKnown = request.headers["x-api-key"] === "secret"
        response.writeHead(isKnown ? 200 : 401, { "content-type": "application/json" })
        response.end(JSON.stringify(isKnown ? answers[`${request.method} ${request.url}`] : {}))
      })
      listening.listen(0, "127.0.0.1", () => resume(Effect.succeed(listening)))
    }),
    (listening) => Effect.sync(() => listening.close())
  ),
  // A server that listens on a port has an address with one.
  (listening) => `http://127.0.0.1:${(listening.address() as AddressInfo).port}`
)

const historian = Agent.provide(
  Agent.make({ name: "historian", description: "Knows the history of cities", prompt: "You know history." }),
  TestChatModel.script([TestChatModel.text("Bern was founded in 1191.", { delay: "50 millis" })])
)

const program = Effect.gen(function* () {
  const analyst = RemoteAgents.make({
    name: "analyst",
    description: "Knows the figures of cities",
    url: yield* server,
    agentId: "analyst",
    headers: { "x-api-key": Redacted.make("secret") },
    pollInterval: "20 millis"
  })
  const agent = Agent.make({
    name: "guide",
    prompt: "You answer questions about cities.",
    middleware: [BackgroundSubagents.make({ agents: [historian, analyst] })]
  })
  const chat = (input: string) => Agent.run(agent, input, { threadId: "ada" })

  const first = yield* chat("What should I know of Bern? Take your time.")
  yield* Console.log(`guide: ${first.text}`)

  // A program can look at the tasks, too. Here it waits for them between two runs.
  const tasks = yield* BackgroundTasks.BackgroundTasks
  for (const { agent: name, key } of yield* tasks.list()) {
    const { status } = yield* tasks.check(key, 5_000)
    yield* Console.log(`(${name} is ${status})`)
  }

  const second = yield* chat("And?")
  const notices = second.messages.filter(({ source }) => source === BackgroundSubagents.source).map(Message.text)
  for (const notice of notices) yield* Console.log(notice)
  yield* Console.log(`guide: ${second.text}`)

  // Each is told once, wherever the model was asked next.
  assert.equal(notices.join("\n").match(/is completed/g)?.length, 2)
  assert.deepEqual(
    Result.getOrThrow(BackgroundSubagents.tasks(second.state)).map(({ id, status }) => `${id} ${status}`),
    ["task-1 completed", "task-2 completed"]
  )
  const results = second.messages.filter(({ role }) => role === "tool").map(Message.text)
  assert.match(results.join("\n"), /founded in 1191[\s\S]*146,348 inhabitants/)
})

const model = TestChatModel.script([
  TestChatModel.calls([
    { name: "start_task", arguments: { subagent_type: "historian", description: "When was Bern founded?" } },
    { name: "start_task", arguments: { subagent_type: "analyst", description: "How many people live in Bern?" } }
  ]),
  "I am having it looked up.",
  TestChatModel.calls([
    { name: "check_task", arguments: { task_id: "task-1" } },
    { name: "check_task", arguments: { task_id: "task-2" } }
  ]),
  "Bern is from 1191 and has 146,348 inhabitants."
])

const sessions = SessionStore.journal.pipe(Layer.provideMerge(MemorySessions.layer))

NodeRuntime.runMain(
  program.pipe(Effect.scoped, Effect.provide([model, sessions, BackgroundTasks.layer(), FetchHttpClient.layer]))
)
