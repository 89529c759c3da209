/**
 * The network on Node, under the rules of `Network`, down to the addresses that connections are made to.
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

/** The time that a connection may take to come about, in milliseconds. */
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
 * An `HttpClient` that keeps the rules. The address is judged that a connection is made to, so that a name which leads to
 * a private address is refused, also one that leads there only the second time (DNS rebinding). It uses no proxy:
 * through one, the proxy would resolve names.
 *
 * `resolve` takes the place of `dns.lookup`.
 */
export const layer = (
  given: Network.Rules,
  options: { readonly resolve?: Resolve | undefined } = {}
): Layer.Layer<HttpClient> => Layer.provide(Network.layer(given), client(given, options.resolve))

/** The same with a cache, as `Network.layerCached` has it. */
export const layerCached = (
  given: Network.Rules,
  options: Network.CacheOptions & { readonly resolve?: Resolve | undefined } = {}
): Layer.Layer<HttpClient, never, Persistence> =>
  Layer.provide(Network.layerCached(given, options), client(given, options.resolve))
