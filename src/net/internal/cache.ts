/** A cache of responses, revalidated by their `ETag` or date. */
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
import { joinBytes } from "../../support/http/body.ts"
import { sha256 } from "../../support/store/hash.ts"
import { withStream } from "./bounds.ts"

export interface CacheOptions {
  readonly maxBytes?: number | undefined
  readonly timeToLive?: Duration.Input | undefined
}

/** A cached response. `wishes` are the headers that it may vary by. */
const Kept = Schema.Struct({
  url: Schema.String,
  wishes: Schema.String,
  headers: Schema.Record(Schema.String, Schema.String),
  body: Schema.Uint8ArrayFromBase64,
  freshUntil: Schema.Number
})
type Kept = typeof Kept.Type

const Nothing = Schema.TaggedStruct("Nothing", {})
const nothing = Nothing.make({})

const Page = Persistable.Class<{ payload: { readonly key: string } }>()("effect-deepagents/Network/Page", {
  primaryKey: ({ key }) => key,
  success: Kept,
  error: Nothing
})
type Page = InstanceType<typeof Page>

const directives = (header: string | undefined): ReadonlyMap<string, string> =>
  new Map(
    (header ?? "").split(",").map((part): [string, string] => {
      const [name = "", value = ""] = part.trim().toLowerCase().split("=")
      return [name, value.replaceAll('"', "")]
    })
  )

/** Request headers that a cached response may vary by. */
const wishes = new Set(["accept", "accept-encoding", "accept-language"])

/** The lifetime of a response in milliseconds; `undefined` if it can't be cached, or to no use. */
const freshness = (headers: Headers.Headers): number | undefined => {
  const control = directives(headers["cache-control"])
  const vary = (headers["vary"] ?? "").toLowerCase()
  const age = Math.max(0, Number(headers["age"] ?? 0) || 0)
  if (control.has("no-store") || control.has("private") || headers["set-cookie"] !== undefined) return undefined
  if (vary !== "" && !vary.split(",").every((name) => wishes.has(name.trim()))) {
    return undefined
  }
  const seconds = control.has("no-cache") ? 0 : Number(control.get("max-age") ?? 0) - age
  const canBeAsked = headers["etag"] !== undefined || headers["last-modified"] !== undefined
  if (Number.isFinite(seconds) && seconds > 0) return seconds * 1000
  return canBeAsked ? 0 : undefined
}

/** Request headers without an identity. */
const common = new Set([
  ..."accept accept-encoding accept-language user-agent".split(" "),
  ..."b3 traceparent tracestate".split(" ")
])

const isCommon = (request: HttpClientRequest.HttpClientRequest): boolean =>
  request.method === "GET" &&
  request.body._tag === "Empty" &&
  Object.keys(request.headers).every((name) => common.has(name))

/** Methods that change nothing, by RFC 9110. */
const safe = new Set(["GET", "HEAD", "OPTIONS", "TRACE"])

const wishesOf = ({ headers }: HttpClientRequest.HttpClientRequest): string =>
  [headers["accept"], headers["accept-language"]].join("\n")

const bare = (tag: string): string => tag.replace(/^W\//, "")

/** Updates cached headers by those of a 304, except for the headers of a body. */
const renewHeaders = (kept: Kept["headers"], answer: Headers.Headers): Headers.Headers => {
  const own = Object.keys(answer).filter((name) => name.startsWith("content-") || name === "transfer-encoding")
  return Headers.setAll(Headers.remove(Headers.fromInput(kept), "age"), Headers.removeMany(answer, own))
}

/** Sends one judged request. */
export type Ask = (
  request: HttpClientRequest.HttpClientRequest,
  url: URL
) => Effect.Effect<HttpClientResponse.HttpClientResponse, HttpClientError, Scope.Scope>

/** Caches responses, and revalidates stale ones. Each `realm` has its own. */
export const cached = (
  ask: Ask,
  realm: string,
  options: CacheOptions
): Effect.Effect<Ask, never, Persistence.Persistence | Scope.Scope> =>
  Effect.gen(function* () {
    const maxBytes = options.maxBytes ?? 5_000_000
    const timeToLive = Duration.fromInputUnsafe(options.timeToLive ?? "1 day")
    // New pages, which the lookup of the cache finds here and then keeps.
    const arrived = new Map<string, Kept>()
    const forHits = (exit: Exit.Exit<unknown, unknown>) => (Exit.isSuccess(exit) ? timeToLive : Duration.zero)
    const pages = yield* PersistedCache.make(
      (page: Page) => {
        const kept = arrived.get(page.key)
        return kept === undefined ? Effect.fail(nothing) : Effect.succeed(kept)
      },
      { storeId: "effect-deepagents-network", timeToLive: forHits, inMemoryTTL: forHits, inMemoryCapacity: 64 }
    )

    const keep = (key: string, kept: Kept) =>
      Effect.suspend(() => {
        arrived.set(key, kept)
        const page = new Page({ key })
        return Effect.andThen(pages.invalidate(page), pages.get(page))
      }).pipe(
        Effect.ensuring(Effect.sync(() => arrived.delete(key))),
        Effect.catchCause((cause) => Effect.logDebug("an answer could not be kept", cause))
      )

    /** Finds a page. A cache that can't be read has no pages. */
    const find = (key: string) => Effect.option(pages.get(new Page({ key })))

    const replay = (request: HttpClientRequest.HttpClientRequest, kept: Kept) =>
      Object.assign(
        withStream(
          HttpClientResponse.fromWeb(request, new Response(null, { status: 200, headers: kept.headers })),
          Headers.fromInput(kept.headers),
          Stream.succeed(kept.body)
        ),
        { url: kept.url }
      )

    const forget = (key: string) => Effect.ignore(pages.invalidate(new Page({ key })))

    /** Passes a response on, and caches it once its reader has read all of it. */
    const keeping = (
      key: string,
      request: HttpClientRequest.HttpClientRequest,
      response: HttpClientResponse.HttpClientResponse,
      now: number
    ) => {
      const fresh = response.status === 200 ? freshness(response.headers) : undefined
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
              : keep(key, {
                  url: response.url,
                  wishes: wishesOf(request),
                  headers: { ...Headers.remove(response.headers, "content-length") },
                  body: joinBytes(chunks),
                  freshUntil: now + fresh
                })
          )
        )
      )
      return withStream(response, response.headers, tapped)
    }

    return (request, url) =>
      Effect.gen(function* () {
        const key = yield* sha256(`${realm}\n${url.href.split("#")[0]}`)
        if (!safe.has(request.method)) {
          const response = yield* ask(request, url)
          // The cached page may have changed (RFC 9111, 4.4).
          if (response.status < 400) yield* forget(key)
          return response
        }
        if (!isCommon(request)) return yield* ask(request, url)
        const now = yield* Clock.currentTimeMillis
        const anew = Effect.map(ask(request, url), (response) => keeping(key, request, response, now))
        const kept = Option.getOrUndefined(yield* find(key))
        if (kept === undefined || kept.wishes !== wishesOf(request)) return yield* anew
        if (kept.freshUntil > now) return replay(request, kept)
        const { etag, "last-modified": modified } = kept.headers
        if (etag === undefined && modified === undefined) return yield* anew
        const response = yield* ask(
          etag === undefined
            ? HttpClientRequest.setHeader(request, "if-modified-since", modified ?? "")
            : HttpClientRequest.setHeader(request, "if-none-match", etag),
          url
        )
        if (response.status !== 304) return keeping(key, request, response, now)
        yield* Effect.ignore(Stream.runDrain(response.stream))
        const { etag: said } = response.headers
        // The 304 is about another response than the cached one.
        if (said !== undefined && etag !== undefined && bare(said) !== bare(etag)) return yield* anew
        const headers = renewHeaders(kept.headers, response.headers)
        const fresh = freshness(headers)
        const still = { ...kept, headers: { ...headers }, freshUntil: now + (fresh ?? 0) }
        yield* fresh === undefined ? forget(key) : keep(key, still)
        return replay(request, still)
      })
  })
