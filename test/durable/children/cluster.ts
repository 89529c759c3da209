/** A cluster that its tests share with its children: settings that take seconds in place of minutes, one Postgres for everything. */
import * as NodeClusterSocket from "@effect/platform-node/NodeClusterSocket"
import * as PgClient from "@effect/sql-pg/PgClient"
import { ShardCount } from "effect-deepagents/durable"
import * as SqlSessions from "effect-deepagents/sessions/SqlSessions"
import { ClusterWorkflowEngine, RunnerAddress } from "effect/cluster"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"

const settings = {
  shardsPerGroup: 30,
  entityMessagePollInterval: "300 millis",
  entityReplyPollInterval: "50 millis",
  entityTerminationTimeout: "2 seconds",
  refreshAssignmentsInterval: "300 millis",
  runnerHealthCheckInterval: "500 millis",
  shardLockRefreshInterval: "1 second",
  shardLockExpiration: "4 seconds",
  sendRetryInterval: "100 millis"
} as const

/** Cluster, workflow engine and threads. Without a port it takes part as a client only. */
export const cluster = (url: string, port?: number) => {
  const address = port === undefined ? Option.none() : Option.some(RunnerAddress.make("127.0.0.1", port))
  return Layer.merge(ClusterWorkflowEngine.layer, ShardCount.layer).pipe(
    Layer.provideMerge(
      NodeClusterSocket.layer({
        storage: "sql",
        clientOnly: port === undefined,
        shardingConfig: { ...settings, runnerAddress: address, runnerListenAddress: address }
      })
    ),
    Layer.provideMerge(SqlSessions.layer),
    Layer.provideMerge(PgClient.layer({ url: Redacted.make(url), maxConnections: 20 }))
  )
}
