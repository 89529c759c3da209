/**
 * Rules for everything that opens a URL: which hosts, how many redirects, how many bytes, how long, how often.
 *
 * Whatever takes an `HttpClient` (web tools, connectors, MCP over HTTP) keeps these rules when it is given the client
 * of {@link layer}. On Node, use `NodeNetwork.layer`, which also looks at the address that a connection is made to:
 * a name can lead to a private address, and to another one each time it is asked for.
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
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import type * as Persistence from "effect/persistence/Persistence"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as body from "../support/http/body.ts"
import * as describing from "../support/http/describe.ts"
import * as hops from "../support/http/hops.ts"
import * as rules from "../support/http/rules.ts"
import { untraced } from "../support/http/untraced.ts"
import { type Ask, type CacheOptions, cached } from "./internal/cache.ts"
import { byHand } from "./internal/fetch.ts"
import { hostLimits } from "./internal/limits.ts"

/**
 * The rules as data, for a file or a store. Every one may be left out.
 *
 * - `schemes`: those that are allowed; both, if nothing is said
 * - `allow`: hosts, and no others: `example.com`, `*.example.com` (all names below), `example.com:8443`
 * - `deny`: hosts that are refused, also among those of `allow`
 * - `ports`: those that are allowed
 * - `allowPrivate`: hosts (`localhost:3000`), addresses and networks (`10.0.0.0/8`) that are reached although they are
 *   of this machine, of the network around it, or reserved; such are refused otherwise
 * - `keepHeaders`: headers that follow a redirect to another origin; others than the usual harmless ones don't
 * - `maxRedirects`: 10; `maxBytes` of an answer when it is unpacked: 50,000,000; `maxRawBytes` as it comes: the same
 * - `timeout`: 120,000 milliseconds, from the request to the end of the answer
 * - `streams`: answers of the type `text/event-stream` may last and be as long as they like (MCP over HTTP)
 * - `rate`: so many requests in a window of so many milliseconds a host; more of them wait
 * - `breaker`: after so many failures in a row, a host is left alone for so many milliseconds
 */
export const Rules = rules.Rules

/** Rules of the network. */
export type Rules = rules.Rules

/**
 * A rule refused a request, or gave its answer up: the `cause` in the reason of the `HttpClientError`. `rule` says which
 * one, `message` what is wrong; neither has a secret in it.
 */
export { Refused } from "../support/http/rules.ts"
export type { CacheOptions }

/** The rule that made a request fail, if it was one. */
export const refusalOf: (error: unknown) => rules.Refused | undefined = describing.refusalOf

/**
 * Judges a URL by the rules, before anything is sent there: gives why it is refused, or `undefined`. What its name leads
 * to is judged when a connection is made.
 */
export const check = (given: Rules, url: URL): rules.Refused | undefined => rules.judge(given).url(url)

const failed = (request: HttpClientRequest.HttpClientRequest, why: rules.Refused): HttpClientError.HttpClientError =>
  new HttpClientError.HttpClientError({
    reason: new HttpClientError.InvalidUrlError({ request, cause: why, description: why.message })
  })

/** A failure that a rule is behind, told as such: nobody should try it again. */
const explained = (error: HttpClientError.HttpClientError): HttpClientError.HttpClientError => {
  const why = refusalOf(error)
  return why === undefined || error.reason._tag === "DecodeError" ? error : failed(error.request, why)
}

const defaults = { maxBytes: 50_000_000, maxRedirects: 10, timeout: 120_000 }

const isStream = (response: HttpClientResponse.HttpClientResponse): boolean =>
  /^text\/event-stream\b/i.test(response.headers["content-type"] ?? "")

const around = <R>(
  given: Rules,
  wrap: (ask: Ask) => Effect.Effect<Ask, never, R>
): Layer.Layer<HttpClient.HttpClient, never, HttpClient.HttpClient | Exclude<R, Scope.Scope>> =>
  Layer.effect(
    HttpClient.HttpClient,
    Effect.gen(function* () {
      const outside = HttpClient.withScope(yield* HttpClient.HttpClient)
      const judge = rules.judge(given)
      const limits = yield* hostLimits(given)
      const timeout = given.timeout ?? defaults.timeout
      const maxBytes = given.maxBytes ?? defaults.maxBytes
      const maxRawBytes = given.maxRawBytes ?? maxBytes
      const late = (request: HttpClientRequest.HttpClientRequest) =>
        failed(request, rules.refused("time", `there was no answer within ${timeout} ms`))

      const ask = yield* wrap((request, url) => limits(request, url.host, byHand(outside.execute(request))))

      /** One hop: the answer, and the end of its connection. */
      const send = (request: HttpClientRequest.HttpClientRequest, url: URL, signal: AbortSignal) =>
        Effect.gen(function* () {
          const scope = yield* Scope.make()
          const close = Scope.close(scope, Exit.void)
          const onAbort = () => void Effect.runFork(close)
          signal.addEventListener("abort", onAbort, { once: true })
          const response = yield* Scope.provide(ask(request, url), scope).pipe(
            Effect.mapError(explained),
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
          const begin = yield* Clock.currentTimeMillis
          const tied = yield* hops.Tied
          if (request.headers["upgrade"] !== undefined) {
            return yield* Effect.fail(
              failed(request, rules.refused("upgrade", "connections that stay open are not made"))
            )
          }
          let at = url
          // Of the encodings that are unpacked here the one that all servers mean alike, whatever else the asker could read.
          let current = HttpClientRequest.setHeader(request, "accept-encoding", "gzip")
          for (let hop = 0; ; hop++) {
            const why = judge.url(at)
            if (why !== undefined) return yield* Effect.fail(failed(current, why))
            const left = timeout - ((yield* Clock.currentTimeMillis) - begin)
            const sent = yield* Effect.timeoutOrElse(send(current, at, signal), {
              duration: Duration.millis(Math.max(0, left)),
              orElse: () => Effect.fail(late(request))
            })
            const to = hops.target(sent.response, at)
            if (to === undefined) {
              const endless = given.streams === true && isStream(sent.response)
              const remaining = timeout - ((yield* Clock.currentTimeMillis) - begin)
              return body.bound(
                sent.response,
                endless
                  ? { maxBytes: Infinity, maxRawBytes: Infinity, remaining: undefined, timeout }
                  : { maxBytes, maxRawBytes, remaining: Duration.millis(Math.max(0, remaining)), timeout },
                sent.close
              )
            }
            yield* sent.close
            if (hop >= (given.maxRedirects ?? defaults.maxRedirects)) {
              return yield* Effect.fail(
                failed(current, rules.refused("redirect", `it was redirected more than ${hop} times`))
              )
            }
            const next = hops.next(current, sent.response.status, at, to, given.keepHeaders ?? [], tied)
            if (Result.isFailure(next)) return yield* Effect.fail(failed(current, next.failure))
            current = next.success
            at = to
          }
        })
      )
      return untraced(client)
    })
  )

/**
 * Puts the rules around a client: a transformer of whichever `HttpClient` it is provided with. It sends no request whose
 * URL is refused, and follows redirects itself, hop by hop under the same rules: other headers than harmless ones stay
 * with their origin, and no body goes to another one. Answers are unpacked here, and given up once they are too long or
 * last too long. Connections that stay open (upgrades) are refused. Requests are spans here, but no header of them
 * (`traceparent`, `b3`) goes out: strangers learn nothing of your traces.
 *
 * A request fails with `HttpClientError`; {@link refusalOf} says if a rule was the reason.
 */
export const layer = (given: Rules): Layer.Layer<HttpClient.HttpClient, never, HttpClient.HttpClient> =>
  around(given, Effect.succeed)

/** Rules that say what may be reached: what was fetched under some is not shown under others. */
const realmOf = ({ allow, allowPrivate, deny, ports, schemes }: Rules): string =>
  JSON.stringify([schemes, allow, deny, ports, allowPrivate])

/**
 * The rules of {@link layer}, and below them a cache, in a `Persistence`: answers that say how long they are good for, or
 * how to ask whether they still are (`ETag`, `Last-Modified`). One that is fresh is given again, a stale one is asked for
 * anew (a 304 costs no body). Every request and every hop is judged first, and what was fetched under other rules on what
 * may be reached is not found. Only GET requests without credentials are kept, and only answers of at most `maxBytes` as
 * they come (5,000,000), for `timeToLive` (a day) at most.
 */
export const layerCached = (
  given: Rules,
  options: CacheOptions = {}
): Layer.Layer<HttpClient.HttpClient, never, HttpClient.HttpClient | Persistence.Persistence> =>
  around(given, (ask) => cached(ask, realmOf(given), options))

/** Says why a request failed, for a person or a model: what a rule had against it, or what became of the connection. */
export const describe: (error: HttpClientError.HttpClientError) => string = describing.describe
