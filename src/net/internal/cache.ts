/** Caches responses, and revalidates them by `ETag` or date. */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Headers from "effect/http/Headers"
import type { HttpClientError } from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"
import * as Persistable from "effect/persistence/Persistable"
import * as PersistedCache from "effect/persistence/PersistedCache"
import type * as Persistence from "effect/persistence/Persistence"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { sha256 } from "../../support/store/hash.ts"
import { joinBytes } from "../../support/store/joinBytes.ts"
import { replaceBody } from "./bounds.ts"

export interface CacheOptions {
  /** The largest response that is kept, in bytes. Default: 5,000,000. */
  readonly maxBytes?: number | undefined
  /** The time that a response is kept. Default: 1 day. */
  readonly timeToLive?: Duration.Input | undefined
}

/** A cached response. `wishes` are the request headers that it may vary by. */
const CacheEntry = Schema.Struct({
  url: Schema.String,
  wishes: Schema.String,
  headers: Schema.Record(Schema.String, Schema.String),
  body: Schema.Uint8ArrayFromBase64,
  freshUntil: Schema.Number
})
type CacheEntry = typeof CacheEntry.Type

const Nothing = Schema.TaggedStruct("Nothing", {})
const nothing = Nothing.make({})

const Page = Persistable.Class<{ payload: { readonly key: string } }>()("effect-deepagents/Network/Page", {
  primaryKey: ({ key }) => key,
  success: CacheEntry,
  error: Nothing
})
type Page = InstanceType<typeof Page>

const parseDirectives = (header: string | undefined): ReadonlyMap<string, string> =>
  new Map(
    (header ?? "").split(",").map((part): [string, string] => {
      const [name = "", value = ""] = part.trim().toLowerCase().split("=")
      return [name, value.replaceAll('"', "")]
    })
  )

/** Request headers that a cached response may vary by. */
const wishes = new Set(["accept", "accept-encoding", "accept-language"])

/** Computes the lifetime of a response in milliseconds. `undefined` if caching is forbidden or useless. */
const lifetimeOf = (headers: Headers.Headers): number | undefined => {
  const control = parseDirectives(headers["cache-control"])
  const vary = (headers["vary"] ?? "").toLowerCase()
  const age = Math.max(0, Number(headers["age"] ?? 0) || 0)
  if (control.has("no-store") || control.has("private") || headers["set-cookie"] !== undefined) return undefined
  if (vary !== "" && !vary.split(",").every((name) => wishes.has(name.trim()))) {
    return undefined
  }
  const seconds = control.has("no-cache") ? 0 : Number(control.get("max-age") ?? 0) - age
  const canRevalidate = headers["etag"] !== undefined || headers["last-modified"] !== undefined
  if (Number.isFinite(seconds) && seconds > 0) return seconds * 1000
  return canRevalidate ? 0 : undefined
}

/** Request headers that identify nobody. */
const commonHeaders = new Set([
  ..."accept accept-encoding accept-language user-agent".split(" "),
  ..."b3 traceparent tracestate".split(" ")
])

const isCommon = (request: HttpClientRequest.HttpClientRequest): boolean =>
  request.method === "GET" &&
  request.body._tag === "Empty" &&
  Object.keys(request.headers).every((name) => commonHeaders.has(name))

/** Safe methods by RFC 9110. */
const safe = new Set(["GET", "HEAD", "OPTIONS", "TRACE"])

const wishesOf = ({ headers }: HttpClientRequest.HttpClientRequest): string =>
  [headers["accept"], headers["accept-language"]].join("\n")

const removeWeakMark = (tag: string): string => tag.replace(/^W\//, "")

/** Updates cached headers by those of a 304, except for headers of the body. */
const renewHeaders = (cachedHeaders: CacheEntry["headers"], answer: Headers.Headers): Headers.Headers => {
  const own = Object.keys(answer).filter((name) => name.startsWith("content-") || name === "transfer-encoding")
  return Headers.setAll(Headers.remove(Headers.fromInput(cachedHeaders), "age"), Headers.removeMany(answer, own))
}

/** Sends one judged request. */
export type Ask = (
  request: HttpClientRequest.HttpClientRequest,
  url: URL
) => Effect.Effect<HttpClientResponse.HttpClientResponse, HttpClientError, Scope.Scope>

/** Caches responses, and revalidates stale ones. Each `realm` has its own. */
export const cacheResponses = (
  ask: Ask,
  realm: string,
  options: CacheOptions
): Effect.Effect<Ask, never, Persistence.Persistence | Scope.Scope> =>
  Effect.gen(function* () {
    const maxBytes = options.maxBytes ?? 5_000_000
    const timeToLive = Duration.fromInputUnsafe(options.timeToLive ?? "1 day")
    // Fetched pages, until the lookup of the cache stores them.
    const arrived = new Map<string, CacheEntry>()
    const timeToLiveOf = (exit: Exit.Exit<unknown, unknown>) => (Exit.isSuccess(exit) ? timeToLive : Duration.zero)
    const pages = yield* PersistedCache.make(
      (page: Page) => {
        const cachedPage = arrived.get(page.key)
        return cachedPage === undefined ? Effect.fail(nothing) : Effect.succeed(cachedPage)
      },
      {
        storeId: "effect-deepagents-network",
        timeToLive: timeToLiveOf,
        inMemoryTTL: timeToLiveOf,
        inMemoryCapacity: 64
      }
    )

    const storePage = (key: string, cachedPage: CacheEntry) =>
      Effect.suspend(() => {
        arrived.set(key, cachedPage)
        const page = new Page({ key })
        return Effect.andThen(pages.invalidate(page), pages.get(page))
      }).pipe(
        Effect.ensuring(Effect.sync(() => arrived.delete(key))),
        Effect.catchCause((cause) => Effect.logDebug("an answer could not be kept", cause))
      )

    /** Finds a page. A cache that can't be read has no pages. */
    const findPage = (key: string) => Effect.option(pages.get(new Page({ key })))

    const replay = (request: HttpClientRequest.HttpClientRequest, cachedPage: CacheEntry) =>
      Object.assign(
        replaceBody(
          HttpClientResponse.fromWeb(request, new Response(null, { status: 200, headers: cachedPage.headers })),
          Headers.fromInput(cachedPage.headers),
          Stream.succeed(cachedPage.body)
        ),
        { url: cachedPage.url }
      )

    const removePage = (key: string) => Effect.ignore(pages.invalidate(new Page({ key })))

    /** Passes a response on, and caches it once its reader has read all of it. */
    const cacheResponse = (
      key: string,
      request: HttpClientRequest.HttpClientRequest,
      response: HttpClientResponse.HttpClientResponse,
      now: number
    ) => {
      const fresh = response.status === 200 ? lifetimeOf(response.headers) : undefined
      if (fresh === undefined) return response
      const chunks: Array<Uint8Array> = []
      let length = 0
      const tapped = response.stream.pipe(
        Stream.tap((chunk) =>
          Effect.sync(() => {
            length += chunk.length
            if (length <= maxBytes) chunks.push(chunk)
            else chunks.length = 0
          })
        ),
        Stream.onEnd(
          Effect.suspend(() =>
            length > maxBytes
              ? Effect.void
              : storePage(key, {
                  url: response.url,
                  wishes: wishesOf(request),
                  headers: { ...Headers.remove(response.headers, "content-length") },
                  body: joinBytes(chunks),
                  freshUntil: now + fresh
                })
          )
        )
      )
      return replaceBody(response, response.headers, tapped)
    }

    return (request, url) =>
      Effect.gen(function* () {
        const key = yield* sha256(`${realm}\n${url.href.split("#")[0]}`)
        if (!safe.has(request.method)) {
          const response = yield* ask(request, url)
          // An unsafe method may change the page (RFC 9111, 4.4).
          if (response.status < 400) yield* removePage(key)
          return response
        }
        if (!isCommon(request)) return yield* ask(request, url)
        const now = yield* Clock.currentTimeMillis
        const fetchAnew = Effect.map(ask(request, url), (response) => cacheResponse(key, request, response, now))
        const cachedPage = Option.getOrUndefined(yield* findPage(key))
        if (cachedPage === undefined || cachedPage.wishes !== wishesOf(request)) return yield* fetchAnew
        if (cachedPage.freshUntil > now) return replay(request, cachedPage)
        const { etag, "last-modified": modified } = cachedPage.headers
        if (etag === undefined && modified === undefined) return yield* fetchAnew
        const response = yield* ask(
          etag === undefined
            ? HttpClientRequest.setHeader(request, "if-modified-since", modified ?? "")
            : HttpClientRequest.setHeader(request, "if-none-match", etag),
          url
        )
        if (response.status !== 304) return cacheResponse(key, request, response, now)
        yield* Effect.ignore(Stream.runDrain(response.stream))
        const { etag: freshTag } = response.headers
        // The 304 belongs to another response than the cached one.
        if (freshTag !== undefined && etag !== undefined && removeWeakMark(freshTag) !== removeWeakMark(etag))
          return yield* fetchAnew
        const headers = renewHeaders(cachedPage.headers, response.headers)
        const fresh = lifetimeOf(headers)
        const still = { ...cachedPage, headers: { ...headers }, freshUntil: now + (fresh ?? 0) }
        yield* fresh === undefined ? removePage(key) : storePage(key, still)
        return replay(request, still)
      })
  })
