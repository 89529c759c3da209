/**
 * Threads in Redis, by Effect's `Redis` service: for many machines that need no SQL.
 *
 * Every change is one Lua script, so an append is one round trip. Redis 6.2 or later decides about a crash of the server:
 * `appendonly yes` with `appendfsync always` keeps all acknowledged appends, `appendfsync everysec` (the usual) all but
 * those of the last second, and without `appendonly` the last snapshot. Set `maxmemory-policy` to `noeviction`: any other
 * removes parts of threads.
 *
 * Lists and searches read threads and messages one by one. Use SQL where people search often.
 *
 * ```ts
 * import { NodeRedis } from "@effect/platform-node"
 * import { Effect, Layer } from "effect"
 * import { Agent } from "effect-deepagents"
 * import * as RedisSessions from "effect-deepagents/sessions/RedisSessions"
 * import { SessionStore } from "effect-deepagents/sessions"
 *
 * const agent = Agent.make({ name: "helper", prompt: "You help." })
 * const sessions = SessionStore.journal.pipe(
 *   Layer.provideMerge(RedisSessions.layer()),
 *   Layer.provide(NodeRedis.layer({ url: "redis://localhost:6379" }))
 * )
 *
 * const program = Agent.run(agent, "Hello", { threadId: "ada" }).pipe(Effect.provide(sessions))
 * ```
 */
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Redis } from "effect/persistence/Redis"
import { type ConfigOptions, fromConfigured } from "../core/configured.ts"
import { SessionStore } from "../core/SessionStore.ts"
import { makeLayerCheck } from "../support/options/check.ts"
import * as Tables from "./internal/redis/tables.ts"
import * as shapes from "./internal/shapes.ts"
import { make } from "./internal/store.ts"

/** The options of this module. */
export interface Options {
  /**
   * The beginning of all keys (default `"{sessions}:"`). The braces keep the keys on one node of a Redis cluster, as
   * scripts require.
   */
  readonly prefix?: string | undefined
}

const refuseLayer = makeLayerCheck("RedisSessions.layer", shapes.redisSessionsLayer)

/**
 * Keeps threads in the server of the `Redis` service. An operation without a response fails with `Unavailable` after 20
 * seconds.
 */
export const layer = (options?: Options): Layer.Layer<SessionStore, never, Redis> =>
  refuseLayer(options) ??
  Layer.effect(
    SessionStore,
    Effect.map(Redis, (redis) => make(Tables.make(redis, options?.prefix ?? "{sessions}:")))
  )

/** Like {@link layer}. Each option may be a `Config`. */
export const layerConfig = (options: ConfigOptions<Options>): Layer.Layer<SessionStore, Config.ConfigError, Redis> =>
  Layer.unwrap(Effect.map(fromConfigured<Options>(options), layer))
