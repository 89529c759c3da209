/**
 * Threads in Redis, by Effect's `Redis` service: for many machines that need no SQL.
 *
 * Every change is one Lua script, so it happens at once or not at all, and an append is one round trip. What survives
 * the end of the server is what the server is told to keep: with `appendonly yes` and `appendfsync always`, all that
 * was acknowledged; with `appendfsync everysec` (Redis' usual), all but the last second; without `appendonly`, what the
 * last snapshot had. Redis 6.2 or later. Keep `maxmemory-policy` at `noeviction`: any other lets Redis remove parts of
 * threads.
 *
 * Lists read the threads that they pass, and searches the messages; take SQL where people search a lot.
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
import { type Configured, fromConfigured } from "../core/configured.ts"
import { SessionStore } from "../core/SessionStore.ts"
import * as Tables from "./internal/redis/tables.ts"
import { make } from "./internal/store.ts"

/**
 * `prefix` is what all keys begin with (default `"{sessions}:"`). What is in braces keeps them on one node of a Redis
 * cluster, which scripts need.
 */
export interface Options {
  readonly prefix?: string | undefined
}

/** A store in the server of the `Redis` service. */
export const layer = (options?: Options): Layer.Layer<SessionStore, never, Redis> =>
  Layer.effect(
    SessionStore,
    Effect.map(Redis, (redis) => make(Tables.make(redis, options?.prefix ?? "{sessions}:")))
  )

/** As {@link layer}, with options of which any may be a `Config`. */
export const layerConfig = (options: Configured<Options>): Layer.Layer<SessionStore, Config.ConfigError, Redis> =>
  Layer.unwrap(Effect.map(fromConfigured<Options>(options), layer))
