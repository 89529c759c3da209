/**
 * Refuses a process whose cluster has another number of shards than the first process that used the database.
 *
 * The number of shards decides where messages of a thread are stored (`SHARDS_PER_GROUP`, 300). A runner or a client with
 * another number reads and writes other shards, so messages would wait for ever. Provide this layer to every runner and
 * every client, over the database of the cluster.
 *
 * ```ts
 * import { Layer } from "effect"
 * import { AgentEntity, ShardCount } from "effect-deepagents/durable"
 *
 * declare const support: AgentEntity.AgentEntity<string, never, never>
 *
 * const runner = AgentEntity.layer(support).pipe(Layer.provide(ShardCount.layer))
 * ```
 */
import * as EntityId from "effect/cluster/EntityId"
import * as Sharding from "effect/cluster/Sharding"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { TaggedError } from "../support/effect/taggedError.ts"

/** The cluster of the database has `stored` shards in a group, and this process has `configured`. */
export class ShardCountChanged extends TaggedError<ShardCountChanged>()("ShardCountChanged", {
  group: Schema.String,
  stored: Schema.Number,
  configured: Schema.Number
}) {
  override get message(): string {
    return `This process has ${this.configured} shards in the group ${JSON.stringify(this.group)}, and the cluster of this database began with ${this.stored}; set SHARDS_PER_GROUP=${this.stored}`
  }
}

/** Enough ids to hit all shards: of 1,000 shards, at most one in 20,000 starts misses one. */
const probes = 20_000

/** Finds the number of shards of a group. Effect keeps its configuration private, but says the shard of an id. */
const countShards = (sharding: Sharding.Sharding["Service"], group: string): number => {
  let highest = 0
  for (let n = 0; n < probes; n++)
    highest = Math.max(highest, sharding.getShardId(EntityId.make(`probe-${n}`), group).id)
  return highest
}

/** Checks the group of an agent's threads. The first process stores its number in the table `deepagents_shards`. */
const check = (
  group: string
): Effect.Effect<void, ShardCountChanged | SqlError, Sharding.Sharding | SqlClient.SqlClient> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const configured = countShards(yield* Sharding.Sharding, group)
    // Processes that start at once may both make the table; Postgres fails one of them.
    yield* Effect.retry(
      sql`CREATE TABLE IF NOT EXISTS deepagents_shards (name TEXT PRIMARY KEY, shards INTEGER NOT NULL)`,
      { times: 3 }
    )
    yield* sql`INSERT INTO deepagents_shards (name, shards) VALUES (${group}, ${configured}) ON CONFLICT (name) DO NOTHING`
    const [row] = yield* sql<{ shards: number }>`SELECT shards FROM deepagents_shards WHERE name = ${group}`
    const storedCount = row?.shards ?? configured
    if (storedCount !== configured) return yield* new ShardCountChanged({ group, stored: storedCount, configured })
  })

/** Fails with `ShardCountChanged`, before any thread is read, in a process with another number of shards. */
export const layer: Layer.Layer<never, ShardCountChanged | SqlError, Sharding.Sharding | SqlClient.SqlClient> =
  Layer.effectDiscard(check("default"))
