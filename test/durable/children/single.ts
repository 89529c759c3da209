/** A machine of its own, all in one SQLite file: `argv` is the folder, and whether it only posts or waits for the outcome. */
import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Agent, Message } from "effect-deepagents"
import { AgentClient, AgentEntity, AgentWorker } from "effect-deepagents/durable"
import { BackgroundSubagents, BackgroundTasks } from "effect-deepagents/middleware"
import { SessionStore } from "effect-deepagents/sessions"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
import * as SqlSessions from "effect-deepagents/sessions/SqlSessions"
import { TestChatModel } from "effect-deepagents/testing"
import { SingleRunner } from "effect/cluster"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { teller } from "./agents.ts"

const [folder = "", what = ""] = process.argv.slice(2)

const machine = AgentEntity.layer(teller(folder)).pipe(
  Layer.provideMerge(
    SingleRunner.layer({
      runnerStorage: "memory",
      shardingConfig: { entityMessagePollInterval: "200 millis", refreshAssignmentsInterval: "200 millis" }
    })
  ),
  Layer.provideMerge(SqlSessions.layer),
  Layer.provide([SqliteClient.layer({ file: `${folder}/all.db` }), NodeCrypto.layerDigest])
)

const lead = Agent.make({
  name: "lead",
  prompt: "lead",
  middleware: [BackgroundSubagents.make({ agents: [AgentWorker.make(teller(folder))] })]
}).pipe(
  Agent.provide(
    TestChatModel.reactive(({ messages }) => {
      const last = messages.at(-1) ?? Message.human("")
      if (last.role === "tool") return Message.text(last)
      return TestChatModel.calls([
        Message.text(last) === "start"
          ? { name: "start_task", arguments: { description: "pay 1", subagent_type: "teller" } }
          : { name: "check_task", arguments: { task_id: "task-1", wait_seconds: 30 } }
      ])
    })
  )
)

/** Begins a task of a thread, or asks how it stands. */
const leading = Effect.gen(function* () {
  const { text } = yield* Agent.run(lead, what.slice("lead ".length), { threadId: "lead" })
  process.stdout.write(`${JSON.stringify(text)}\n`)
  if (what === "lead start") yield* Effect.never
}).pipe(Effect.provide([BackgroundTasks.layer(), SessionStore.journal]))

const program = Effect.gen(function* () {
  if (what.startsWith("lead")) return yield* leading
  const client = yield* AgentClient.of(teller(folder), "t")
  if (what === "post") {
    yield* client.post("pay 1", { id: "1" })
    return yield* Effect.never
  }
  const { text } = yield* client.send("pay 1", { id: "1" })
  process.stdout.write(`${JSON.stringify({ text, history: (yield* client.history).map(({ role }) => role) })}\n`)
})

NodeRuntime.runMain(Effect.provide(program, machine))
