/**
 * Enforces rules on all HTTP requests: hosts, redirects, bytes, time, rate.
 *
 * {@link layer} applies them to every user of `HttpClient`: web tools, connectors, MCP over HTTP. On Node, use
 * `NodeNetwork.layer`. It also judges the address of each connection, because a name can resolve to a private address,
 * and to another address each time.
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { FetchHttpClient, HttpClient } from "effect/http"
 * import { Network } from "effect-deepagents/net"
 *
 * const network = Network.layer({ allow: ["*.example.com"] }).pipe(Layer.provide(FetchHttpClient.layer))
 *
 * const program = HttpClient.get("https://www.example.com/").pipe(
 *   Effect.flatMap((response) => response.text),
 *   Effect.provide(network)
 * )
 * ```
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import type * as Persistence from "effect/persistence/Persistence"
import * as Scope from "effect/Scope"
import { startDeadline } from "../support/http/deadline.ts"
import * as describing from "../support/http/describe.ts"
import * as hops from "../support/http/hops.ts"
import * as rules from "../support/http/rules.ts"
import { untraced } from "../support/http/untraced.ts"
import { makeLayerCheck } from "../support/options/check.ts"
import { boundResponse } from "./internal/bounds.ts"
import { type Ask, type CacheOptions, cacheResponses } from "./internal/cache.ts"
import { sendPlain } from "./internal/fetch.ts"
import { makeHostLimits } from "./internal/limits.ts"
import * as shapes from "./internal/shapes.ts"

export type { CacheOptions } from "./internal/cache.ts"

export type { Refused } from "../support/http/rules.ts"

/**
 * The rules as data, for a file or a store. All of them are optional.
 *
 * - `schemes`: the allowed schemes, by default `https` and `http`
 * - `allow`: the only allowed hosts: `example.com`, `*.example.com` (all names below), `example.com:8443`
 * - `deny`: refused hosts; `deny` wins over `allow`
 * - `ports`: the allowed ports
 * - `allowPrivate`: allowed exceptions among private and reserved addresses, which are refused by default: hosts
 *   (`localhost:3000`), addresses and networks (`10.0.0.0/8`)
 * - `keepHeaders`: more headers that follow a redirect to another origin; by default only harmless ones do
 * - `maxRedirects`: 10; `maxBytes` of an unpacked response: 50,000,000; `maxRawBytes` before unpacking: the same
 * - `timeout`: 120,000 milliseconds, from the request to the end of the response
 * - `streams`: no bounds on the time and size of `text/event-stream` responses (MCP over HTTP)
 * - `rate`: a number of requests in a window of milliseconds per host; further requests wait
 * - `breaker`: after a number of failures in a row, a host gets no requests for some milliseconds
 */
export const Rules = rules.Rules

/** Rules of the network. */
export type Rules = rules.Rules

/** Finds the rule that made a request fail. The `message` of a refusal contains no secret. */
export const refusalOf: (error: unknown) => rules.Refused | undefined = describing.refusalOf

const failWith = (request: HttpClientRequest.HttpClientRequest, why: rules.Refused): HttpClientError.HttpClientError =>
  new HttpClientError.HttpClientError({
    reason: new HttpClientError.InvalidUrlError({ request, cause: why, description: why.message })
  })

/** Converts a refusal of an inner layer to an invalid request, which is never retried. */
const explainRefusal = (error: HttpClientError.HttpClientError): HttpClientError.HttpClientError => {
  const why = refusalOf(error)
  return why === undefined || error.reason._tag === "DecodeError" ? error : failWith(error.request, why)
}

const defaults = { maxBytes: 50_000_000, maxRedirects: 10, timeout: 120_000 }

const isStream = (response: HttpClientResponse.HttpClientResponse): boolean =>
  /^text\/event-stream\b/i.test(response.headers["content-type"] ?? "")

const applyRules = <R>(
  allRules: Rules,
  wrap: (ask: Ask) => Effect.Effect<Ask, never, R>
): Layer.Layer<HttpClient.HttpClient, never, HttpClient.HttpClient | Exclude<R, Scope.Scope>> =>
  Layer.effect(
    HttpClient.HttpClient,
    Effect.gen(function* () {
      const outside = HttpClient.withScope(yield* HttpClient.HttpClient)
      const judge = rules.judge(allRules)
      const limits = yield* makeHostLimits(allRules)
      const timeout = allRules.timeout ?? defaults.timeout
      const maxBytes = allRules.maxBytes ?? defaults.maxBytes
      const maxRawBytes = allRules.maxRawBytes ?? maxBytes
      const timeoutError = (request: HttpClientRequest.HttpClientRequest) =>
        failWith(request, rules.makeRefused("time", `there was no answer within ${timeout} ms`))

      const judgeHop = (request: HttpClientRequest.HttpClientRequest, next: hops.Hop): rules.Refused | undefined => {
        const isBodySent = !next.isBodyDropped && request.body._tag !== "Empty"
        return next.redirects > (allRules.maxRedirects ?? defaults.maxRedirects)
          ? rules.makeRefused("redirect", `it was redirected more than ${next.redirects - 1} times`)
          : isBodySent && !next.isHome
            ? rules.makeRefused("redirect", `a redirect to ${next.url.origin} would hand it the body of the request`)
            : isBodySent && (request.body._tag === "Stream" || request.body._tag === "Raw")
              ? rules.makeRefused("redirect", "a redirect asks for the body again, which can't be sent twice")
              : judge.url(next.url)
      }

      const ask = yield* wrap((request, url) => limits(request, url.host, sendPlain(outside.execute(request))))

      /** Sends one hop. `close` ends its connection. */
      const send = (request: HttpClientRequest.HttpClientRequest, url: URL, signal: AbortSignal) =>
        Effect.gen(function* () {
          const scope = yield* Scope.make()
          const close = Scope.close(scope, Exit.void)
          const onAbort = () => void Effect.runFork(close)
          signal.addEventListener("abort", onAbort, { once: true })
          const response = yield* Scope.provide(ask(request, url), scope).pipe(
            Effect.mapError(explainRefusal),
            Effect.onExit((exit) => (Exit.isSuccess(exit) ? Effect.void : close))
          )
          return {
            response,
            close: Effect.andThen(
              Effect.sync(() => signal.removeEventListener("abort", onAbort)),
              close
            )
          }
        })

      const client = HttpClient.make((request, url, signal) =>
        Effect.gen(function* () {
          const timeLeft = yield* startDeadline(timeout)
          const tied = yield* hops.Tied
          if (request.headers["upgrade"] !== undefined) {
            return yield* Effect.fail(
              failWith(request, rules.makeRefused("upgrade", "connections that stay open are not made"))
            )
          }
          const why = judge.url(url)
          if (why !== undefined) return yield* Effect.fail(failWith(request, why))
          // Servers disagree on `deflate`, so only gzip is requested.
          const first = HttpClientRequest.setHeader(request, "accept-encoding", "gzip")
          const { close, response } = yield* hops.followRedirects(
            { url, method: request.method },
            {
              send: (hop) => {
                const current =
                  hop.redirects === 0 ? first : hops.requestOf(first, hop, allRules.keepHeaders ?? [], tied)
                return Effect.flatMap(timeLeft, (duration) =>
                  Effect.timeoutOrElse(send(current, hop.url, signal), {
                    duration,
                    orElse: () => Effect.fail(timeoutError(request))
                  })
                )
              },
              headOf: ({ response: { headers, status } }) => ({ status, location: headers["location"] }),
              close: (exchange) => exchange.close,
              allow: (next) => {
                const refusal = judgeHop(first, next)
                return refusal === undefined || Effect.fail(failWith(request, refusal))
              }
            }
          )
          const isEndless = allRules.streams === true && isStream(response)
          return boundResponse(
            response,
            isEndless
              ? { maxBytes: Infinity, maxRawBytes: Infinity, remaining: undefined, timeout }
              : { maxBytes, maxRawBytes, remaining: yield* timeLeft, timeout },
            close
          )
        })
      )
      return untraced(client)
    })
  )

/**
 * Applies the rules to an `HttpClient`. Every redirect is judged like a first request; a redirect to another origin gets
 * only harmless headers and no body. Responses are decompressed, and fail when they are too long or too slow. Upgrades
 * are rejected. Requests are spans, but send no trace headers (`traceparent`, `b3`).
 *
 * A request fails with `HttpClientError`; {@link refusalOf} finds the rule behind it.
 */
export const layer = (allRules: Rules): Layer.Layer<HttpClient.HttpClient, never, HttpClient.HttpClient> =>
  applyRules(allRules, Effect.succeed)

/** Identifies the rules on hosts. A cached response is visible only under equal rules. */
const realmOf = ({ allow, allowPrivate, deny, ports, schemes }: Rules): string =>
  JSON.stringify([schemes, allow, deny, ports, allowPrivate])

const refuseLayerCached = makeLayerCheck("Network.layerCached", shapes.networkLayerCached)

/**
 * Adds a cache in a `Persistence` to {@link layer}. It stores responses to GET requests without credentials that have a
 * lifetime or a validator (`ETag`, `Last-Modified`), up to `maxBytes` (5,000,000), for up to `timeToLive` (a day). Stale
 * responses are revalidated. Every request and redirect is judged first. Other rules on hosts have their own cache.
 */
export const layerCached = (
  allRules: Rules,
  options: CacheOptions = {}
): Layer.Layer<HttpClient.HttpClient, never, HttpClient.HttpClient | Persistence.Persistence> =>
  refuseLayerCached(options) ?? applyRules(allRules, (ask) => cacheResponses(ask, realmOf(allRules), options))

/** Describes a failed request for a person or a model. */
export const describe: (error: HttpClientError.HttpClientError) => string = describing.describe
