/**
 * Provides an `HttpClient` on Node under the rules of `Network`, which also judges the address of each connection.
 *
 * Needs the package `@effect/platform-node`.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { HttpClient } from "effect/http"
 * import * as NodeNetwork from "effect-deepagents/net/NodeNetwork"
 *
 * const program = HttpClient.get("https://example.com/").pipe(
 *   Effect.flatMap((response) => response.text),
 *   Effect.provide(NodeNetwork.layer({ deny: ["*.example.org"], maxBytes: 5_000_000 }))
 * )
 * ```
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import Undici, { type buildConnector } from "@effect/platform-node/Undici"
import type { HttpClient } from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import type { Persistence } from "effect/persistence/Persistence"
import { guardedLookup, type Resolve } from "../support/http/connect.ts"
import * as judging from "../support/http/rules.ts"
import { makeLayerCheck } from "../support/options/check.ts"
import type { CacheOptions } from "./internal/cache.ts"
import * as shapes from "./internal/shapes.ts"
import * as Network from "./Network.ts"

/** Time limit of a connection, in milliseconds. */
const connectTimeout = 10_000

const layerClient = (rules: Network.Rules, resolve: Resolve | undefined): Layer.Layer<HttpClient> => {
  const judge = judging.judge(rules)
  const connect: buildConnector.connector = (to, callback) => {
    const port = Number(to.port === "" ? (to.protocol === "https:" ? 443 : 80) : to.port)
    const lookup = guardedLookup(judge, port, resolve)
    Undici.buildConnector({ timeout: connectTimeout, lookup })(to, callback)
  }
  return NodeHttpClient.layerUndiciOptions({ connect })
}

const refuseLayer = makeLayerCheck("NodeNetwork.layer", shapes.nodeNetworkLayer)

/**
 * Provides an `HttpClient` under the rules. It judges the address of each connection, so that no name reaches a private
 * address, even with DNS rebinding. It uses no proxy, because a proxy would resolve the names.
 *
 * `resolve` replaces `dns.lookup`.
 */
export const layer = (
  rules: Network.Rules,
  options: {
    /** Replaces `dns.lookup`. */
    readonly resolve?: Resolve | undefined
  } = {}
): Layer.Layer<HttpClient> =>
  refuseLayer(options) ?? Layer.provide(Network.layer(rules), layerClient(rules, options.resolve))

const refuseLayerCached = makeLayerCheck("NodeNetwork.layerCached", shapes.nodeNetworkLayerCached)

/** Adds the cache of `Network.layerCached` to {@link layer}. */
export const layerCached = (
  rules: Network.Rules,
  options: CacheOptions & {
    /** Replaces `dns.lookup`. */
    readonly resolve?: Resolve | undefined
  } = {}
): Layer.Layer<HttpClient, never, Persistence> =>
  refuseLayerCached(options) ??
  Layer.provide(
    Network.layerCached(rules, { maxBytes: options.maxBytes, timeToLive: options.timeToLive }),
    layerClient(rules, options.resolve)
  )
