/**
 * The network on Node under the rules of `Network`, down to the address of each connection.
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
import * as rules from "../support/http/rules.ts"
import * as Network from "./Network.ts"

export type { Resolve }

/** The longest time to connect, in milliseconds. */
const patience = 10_000

const client = (given: Network.Rules, resolve: Resolve | undefined): Layer.Layer<HttpClient> => {
  const judge = rules.judge(given)
  const connect: buildConnector.connector = (to, callback) => {
    const port = Number(to.port === "" ? (to.protocol === "https:" ? 443 : 80) : to.port)
    const lookup = guardedLookup(judge, port, resolve)
    Undici.buildConnector({ timeout: patience, lookup })(to, callback)
  }
  return NodeHttpClient.layerUndiciOptions({ connect })
}

/**
 * An `HttpClient` under the rules. It judges the address of each connection, so that no name leads to a private address,
 * not even on its second lookup (DNS rebinding). It uses no proxy, because a proxy would resolve the names.
 *
 * `resolve` replaces `dns.lookup`.
 */
export const layer = (
  given: Network.Rules,
  options: { readonly resolve?: Resolve | undefined } = {}
): Layer.Layer<HttpClient> => Layer.provide(Network.layer(given), client(given, options.resolve))

/** {@link layer} with the cache of `Network.layerCached`. */
export const layerCached = (
  given: Network.Rules,
  options: Network.CacheOptions & { readonly resolve?: Resolve | undefined } = {}
): Layer.Layer<HttpClient, never, Persistence> =>
  Layer.provide(Network.layerCached(given, options), client(given, options.resolve))
