/** A machine of its own, all in one SQLite file: `argv` is the folder, and whether it only posts or waits for the outcome. */
import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { AgentClient, AgentEntity } from "effect-deepagents/durable"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
import * as SqlSessions from "effect-deepagents/sessions/SqlSessions"
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

const program = Effect.gen(function* () {
  const client = yield* AgentClient.of(teller(folder), "t")
  if (what === "post") {
    yield* client.post("pay 1", { id: "1" })
    return yield* Effect.never
  }
  const { text } = yield* client.send("pay 1", { id: "1" })
  process.stdout.write(`${JSON.stringify({ text, history: (yield* client.history).map(({ role }) => role) })}\n`)
})

NodeRuntime.runMain(Effect.provide(program, machine))
