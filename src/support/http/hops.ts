/** Redirects, followed hop by hop under the rules of the caller. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { RequestInit } from "effect/http/FetchHttpClient"
import * as Headers from "effect/http/Headers"
import * as HttpBody from "effect/http/HttpBody"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as UrlParams from "effect/http/UrlParams"
import * as Option from "effect/Option"

/** One request on the way. */
export interface Hop {
  readonly url: URL
  readonly method: string
  /** The number of redirects before it. */
  readonly redirects: number
  /** True while no hop has left the first origin. Secrets may be sent only then, and not after a return to it. */
  readonly isHome: boolean
  /** True once a redirect has turned the request into a GET, which has no body. */
  readonly isBodyDropped: boolean
}

/** The status of a response, and its `Location` header. */
interface Head {
  readonly status: number
  readonly location: string | null | undefined
}

/** Returns the URL that a response redirects to. */
export const redirectTarget = ({ location, status }: Head, from: URL): URL | undefined =>
  [301, 302, 303, 307, 308].includes(status) && typeof location === "string"
    ? (URL.parse(location, from.href) ?? undefined)
    : undefined

const nextHop = (hop: Hop, status: number, url: URL): Hop => {
  const becomesGet =
    ((status === 301 || status === 302) && hop.method === "POST") ||
    (status === 303 && hop.method !== "GET" && hop.method !== "HEAD")
  return {
    url,
    method: becomesGet ? "GET" : hop.method,
    redirects: hop.redirects + 1,
    isHome: hop.isHome && hop.url.origin === url.origin,
    isBodyDropped: hop.isBodyDropped || becomesGet
  }
}

/**
 * Sends a request, and follows its redirects. `allow` decides on each one: `false` returns the redirect response itself,
 * a failure fails the request.
 */
export const followRedirects = <A, E, R>(
  first: Pick<Hop, "url" | "method">,
  rules: {
    readonly send: (hop: Hop) => Effect.Effect<A, E, R>
    readonly headOf: (response: A) => Head
    readonly allow: (next: Hop) => boolean | Effect.Effect<void, E>
    /** Closes a redirect response that is followed or refused. */
    readonly close?: ((response: A) => Effect.Effect<void>) | undefined
  }
): Effect.Effect<A, E, R> =>
  Effect.gen(function* () {
    let hop: Hop = { ...first, redirects: 0, isHome: true, isBodyDropped: false }
    for (;;) {
      const response = yield* rules.send(hop)
      const head = rules.headOf(response)
      const url = redirectTarget(head, hop.url)
      if (url === undefined) return response
      const next = nextHop(hop, head.status, url)
      const allowed = rules.allow(next)
      if (allowed === false) return response
      yield* rules.close?.(response) ?? Effect.void
      if (allowed !== true) yield* allowed
      hop = next
    }
  })

/** Sends by a client that may be fetch, with the redirects of fetch turned off: each request has one response. */
export const withoutRedirects = <A, E, R>(request: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Effect.serviceOption(RequestInit), (init) =>
    Effect.provideService(request, RequestInit, { ...Option.getOrUndefined(init), redirect: "manual" })
  )

/** Headers that say nothing of who asks. Every other one stays with its origin. */
const harmless = new Set([
  ..."accept accept-encoding accept-language cache-control content-type content-language".split(" "),
  ..."if-modified-since if-none-match pragma range user-agent".split(" ")
])

const none: ReadonlySet<string> = new Set()

/** Names of headers (in lower case) that hold a secret. They are sent only to the first origin. */
export const Tied = Context.Reference<ReadonlySet<string>>("effect-deepagents/net/Network/Tied", {
  defaultValue: () => none
})

const bodyHeaders = ["content-encoding", "content-language", "content-length", "content-location", "content-type"]

/**
 * Makes the request of a hop after a redirect. To another origin it sends only harmless headers and the headers of
 * `keep`, without the secret ones of `tied`.
 */
export const requestOf = (
  request: HttpClientRequest.HttpClientRequest,
  hop: Hop,
  keep: ReadonlyArray<string>,
  tied: ReadonlySet<string>
): HttpClientRequest.HttpClientRequest => {
  const keptNames = new Set(keep.map((name) => name.toLowerCase()))
  const leaves = (name: string) => !tied.has(name) && (harmless.has(name) || keptNames.has(name))
  const dropped = Object.keys(request.headers).filter(
    (name) => (!hop.isHome && !leaves(name)) || (hop.isBodyDropped && bodyHeaders.includes(name))
  )
  const url = new URL(hop.url)
  url.hash = ""
  return HttpClientRequest.makeWith(
    hop.isBodyDropped ? "GET" : request.method,
    // As the response has it: a URL that is taken apart and put together again may be written otherwise.
    url.href,
    UrlParams.empty,
    hop.url.hash === "" ? Option.none() : Option.some(hop.url.hash.slice(1)),
    Headers.removeMany(request.headers, dropped),
    hop.isBodyDropped ? HttpBody.empty : request.body
  )
}
