/** What all processes of the cluster know: the agent, and where the cluster is. */
import { NodeClusterSocket } from "@effect/platform-node"
import * as PgClient from "@effect/sql-pg/PgClient"
import { Effect, Layer, Option, Redacted, Schema } from "effect"
import { Agent, Tool } from "effect-deepagents"
import { AgentEntity } from "effect-deepagents/durable"
import * as SqlSessions from "effect-deepagents/sessions/SqlSessions"
import { TestChatModel } from "effect-deepagents/testing"
import { RunnerAddress } from "effect/cluster"

const say = (line: string) => Effect.sync(() => process.stdout.write(`runner ${process.pid}: ${line}\n`))

const look = Tool.make("find_order", {
  description: "Finds an order",
  parameters: { order: Schema.String },
  annotations: { readOnly: true },
  execute: ({ order }) => Effect.as(say(`finds order ${order}`), `Order ${order}: two books, not shipped`)
})

const pack = Tool.make("pack", {
  description: "Packs an order",
  parameters: { order: Schema.String },
  annotations: { idempotent: true },
  execute: ({ order }) =>
    say(`begins to pack order ${order}`).pipe(Effect.andThen(Effect.sleep("2 seconds")), Effect.as("packed"))
})

/** A model that needs no key: it finds, packs and answers. */
const model = TestChatModel.reactive(({ messages }) => {
  const asked = messages.findLastIndex((message) => message.role === "human")
  const answers = messages.slice(asked).filter((message) => message.role === "tool").length
  if (answers === 0) return TestChatModel.calls([{ name: "find_order", arguments: { order: "42" } }])
  if (answers === 1) return TestChatModel.calls([{ name: "pack", arguments: { order: "42" } }])
  return "Your two books are packed."
})

const agent = Agent.make({ name: "shop", prompt: "You run a shop.", tools: [look, pack] }).pipe(Agent.provide(model))

export const shop = AgentEntity.make({ name: "shop", agent })

/** The cluster, for a runner at a port, or for a client. In production, leave the settings as they are. */
export const cluster = (url: string, port?: number) => {
  const address = port === undefined ? Option.none() : Option.some(RunnerAddress.make("127.0.0.1", port))
  return NodeClusterSocket.layer({
    storage: "sql",
    clientOnly: port === undefined,
    shardingConfig: {
      runnerAddress: address,
      runnerListenAddress: address,
      shardsPerGroup: 30,
      entityMessagePollInterval: "300 millis",
      refreshAssignmentsInterval: "300 millis",
      runnerHealthCheckInterval: "500 millis",
      shardLockRefreshInterval: "1 second",
      shardLockExpiration: "4 seconds"
    }
  }).pipe(Layer.provideMerge(SqlSessions.layer), Layer.provide(PgClient.layer({ url: Redacted.make(url) })))
}
