/**
 * The ledger of accounts in Redis, by Effect's `Redis` service.
 *
 * Every change is one Lua script. What survives the end of the server is what the server is told to keep: without
 * `appendonly yes`, sums go back to the last snapshot, and more can be spent than the caps allow. Redis 6.2 or later, with
 * `maxmemory-policy noeviction`.
 *
 * ```ts
 * import { NodeRedis } from "@effect/platform-node"
 * import { Layer } from "effect"
 * import * as RedisLedger from "effect-deepagents/stores/RedisLedger"
 *
 * const ledger = RedisLedger.layer().pipe(Layer.provide(NodeRedis.layer({ url: "redis://localhost:6379" })))
 * ```
 */
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Redis } from "effect/persistence/Redis"
import { type Configured, fromConfigured } from "../core/configured.ts"
import { Ledger } from "../core/Ledger.ts"
import { make } from "./internal/ledger/make.ts"
import * as Tables from "./internal/ledger/redis.ts"

/** Options of the layer. */
export interface Options {
  /**
   * The beginning of all keys (default `"{ledger}:"`). What is in braces keeps them on one node of a Redis cluster, which
   * scripts need.
   */
  readonly prefix?: string | undefined
}

/** A ledger in the server of the `Redis` service. */
export const layer = (options?: Options): Layer.Layer<Ledger, never, Redis> =>
  Layer.effect(
    Ledger,
    Effect.map(Redis, (redis) => make(Tables.make(redis, options?.prefix ?? "{ledger}:")))
  )

/** As {@link layer}, with options of which any may be a `Config`. */
export const layerConfig = (options: Configured<Options>): Layer.Layer<Ledger, Config.ConfigError, Redis> =>
  Layer.unwrap(Effect.map(fromConfigured<Options>(options), layer))
