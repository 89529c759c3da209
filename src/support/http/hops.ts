/** The way of a request over redirects: each hop is judged, and what is secret stays with the first origin. */
import * as Context from "effect/Context"
import * as Headers from "effect/http/Headers"
import * as HttpBody from "effect/http/HttpBody"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as UrlParams from "effect/http/UrlParams"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { type Refused, refused } from "./rules.ts"

/** Headers that say nothing of who asks. Every other one stays with its origin. */
const harmless = new Set([
  ..."accept accept-encoding accept-language cache-control content-type content-language".split(" "),
  ..."if-modified-since if-none-match pragma range user-agent".split(" ")
])

const none: ReadonlySet<string> = new Set()

/** Names of headers (in lower case) that stay with their origin whatever they are called: there is a secret in them. */
export const Tied = Context.Reference<ReadonlySet<string>>("effect-deepagents/net/Network/Tied", {
  defaultValue: () => none
})

const bodyHeaders = ["content-encoding", "content-language", "content-length", "content-location", "content-type"]

/** The URL that an answer leads on to; `undefined` for one that leads nowhere. */
export const target = (response: HttpClientResponse.HttpClientResponse, from: URL): URL | undefined => {
  const { location } = response.headers
  return [301, 302, 303, 307, 308].includes(response.status) && location !== undefined
    ? Result.getOrUndefined(Result.try(() => new URL(location, from)))
    : undefined
}

/** The request of the next hop. */
export const next = (
  request: HttpClientRequest.HttpClientRequest,
  status: number,
  from: URL,
  to: URL,
  keepHeaders: ReadonlyArray<string>,
  tied: ReadonlySet<string>
): Result.Result<HttpClientRequest.HttpClientRequest, Refused> => {
  const becomesGet =
    ((status === 301 || status === 302) && request.method === "POST") ||
    (status === 303 && request.method !== "GET" && request.method !== "HEAD")
  const leaves = from.origin !== to.origin
  if (leaves && !becomesGet && request.body._tag !== "Empty") {
    return Result.fail(refused("redirect", `a redirect to ${to.origin} would hand it the body of the request`))
  }
  if (!becomesGet && (request.body._tag === "Stream" || request.body._tag === "Raw")) {
    return Result.fail(refused("redirect", "a redirect asks for the body again, which can't be sent twice"))
  }
  const kept = new Set(keepHeaders.map((name) => name.toLowerCase()))
  const stays = (name: string) => tied.has(name) || !(harmless.has(name) || kept.has(name))
  const left = Object.keys(request.headers).filter(
    (name) => (leaves && stays(name)) || (becomesGet && bodyHeaders.includes(name))
  )
  const hash = to.hash === "" ? Option.none() : Option.some(to.hash.slice(1))
  const url = new URL(to)
  url.hash = ""
  return Result.succeed(
    HttpClientRequest.makeWith(
      becomesGet ? "GET" : request.method,
      // As the answer said it: what is taken apart and put together again may be written otherwise.
      url.href,
      UrlParams.empty,
      hash,
      Headers.removeMany(request.headers, left),
      becomesGet ? HttpBody.empty : request.body
    )
  )
}
