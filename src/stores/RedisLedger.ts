/**
 * The ledger of accounts in Redis, by Effect's `Redis` service.
 *
 * Every change is one Lua script. Run Redis with `appendonly yes`: without it, a restart takes sums back to the last
 * snapshot, and accounts can spend more than their caps. It needs Redis 6.2 or later, with `maxmemory-policy noeviction`.
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
import { type ConfigOptions, fromConfigured } from "../core/configured.ts"
import { Ledger } from "../core/Ledger.ts"
import { makeLayerCheck } from "../support/options/check.ts"
import { make } from "./internal/ledger/make.ts"
import * as Tables from "./internal/ledger/redis.ts"
import * as shapes from "./internal/shapes.ts"

/** The options of this module. */
type Options = {
  /**
   * The beginning of all keys (default `"{ledger}:"`). The braces keep the keys on one node of a Redis cluster, as scripts
   * require.
   */
  readonly prefix?: string | undefined
}

const refuseLayer = makeLayerCheck("RedisLedger.layer", shapes.redisLedgerLayer)

/** Keeps a ledger in the server of the `Redis` service. */
export const layer = (options?: Options): Layer.Layer<Ledger, never, Redis> =>
  refuseLayer(options) ??
  Layer.effect(
    Ledger,
    Effect.map(Redis, (redis) => make(Tables.make(redis, options?.prefix ?? "{ledger}:")))
  )

/** Like {@link layer}. Each option may be a `Config`. */
export const layerConfig = (options: ConfigOptions<Options>): Layer.Layer<Ledger, Config.ConfigError, Redis> =>
  Layer.unwrap(Effect.map(fromConfigured<Options>(options), layer))
