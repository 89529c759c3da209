/** A `fetch` for other libraries over Effect's `HttpClient`, whose rules, limits and spans apply. It sends no trace headers. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { identity } from "effect/Function"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpBody from "effect/http/HttpBody"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpMethod from "effect/http/HttpMethod"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { observed } from "../effect/observed.ts"
import { untraced } from "./untraced.ts"

/** The type of `fetch`. */
export type FetchLike = (input: string | URL | Request, init?: RequestInit) => Promise<Response>

/** Statuses of responses without a body, for which `Response` refuses one. */
const withoutBody = new Set([101, 103, 204, 205, 304])

const encode = (source: Request): Effect.Effect<HttpClientRequest.HttpClientRequest, unknown> =>
  Effect.gen(function* () {
    const { headers, method, url } = source
    if (!HttpMethod.isHttpMethod(method)) return yield* Effect.fail(new TypeError(`there is no HTTP method ${method}`))
    const request = HttpClientRequest.make(method)(url, { headers: Object.fromEntries(headers) })
    if (source.body === null) return request
    const bytes = yield* Effect.tryPromise({ try: () => source.arrayBuffer(), catch: identity })
    const type = headers.get("content-type") ?? "application/octet-stream"
    return HttpClientRequest.setBody(request, HttpBody.uint8Array(new Uint8Array(bytes), type))
  })

/** Passes the redirect mode of a request on to a client that may be `FetchHttpClient`. */
const redirecting = <A, E, R>(effect: Effect.Effect<A, E, R>, { redirect }: Request): Effect.Effect<A, E, R> =>
  redirect === "follow"
    ? effect
    : Effect.flatMap(Effect.serviceOption(FetchHttpClient.RequestInit), (init) =>
        Effect.provideService(effect, FetchHttpClient.RequestInit, { ...Option.getOrUndefined(init), redirect })
      )

/** Sends a request. Its signal, its reader and the end of its scope abort it. */
const exchange = (request: Request, scope: Scope.Closeable) =>
  Effect.gen(function* () {
    const client = HttpClient.withScope(untraced(yield* HttpClient.HttpClient))
    const response = yield* redirecting(client.execute(yield* encode(request)), request)
    const headers = new Headers({ ...response.headers })
    const { status } = response
    if (withoutBody.has(status)) {
      yield* Scope.close(scope, Exit.void)
      return new Response(null, { status, headers })
    }
    const body = Stream.ensuring(response.stream, Scope.close(scope, Exit.void))
    return new Response(yield* Stream.toReadableStreamEffect(body), { status, headers })
  })

/**
 * Makes a `fetch` of the current client. It rejects with the reason of the signal, or with a `TypeError` whose `cause` is
 * the failure of the client.
 */
export const fetchLike: Effect.Effect<FetchLike, never, HttpClient.HttpClient> = Effect.map(
  Effect.context<HttpClient.HttpClient>(),
  (context): FetchLike =>
    async (input, init) => {
      // A `Request` stops passing its signal on once it is garbage collected.
      const request = new Request(input, { ...init, signal: null })
      const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined)
      const scope = Scope.makeUnsafe()
      const close = () => void Effect.runForkWith(context)(Scope.close(scope, Exit.void))
      const program = exchange(request, scope).pipe(
        Effect.provideService(Scope.Scope, scope),
        Effect.onError(() => Scope.close(scope, Exit.void))
      )
      const exit = await observed(Effect.runPromiseExitWith(context)(program, { signal }))
      if (Exit.isFailure(exit)) {
        const failed = () => new TypeError("fetch failed", { cause: Cause.squash(exit.cause) })
        return Promise.reject(signal?.aborted === true ? signal.reason : failed())
      }
      if (signal?.aborted === true) close()
      signal?.addEventListener("abort", close, { once: true })
      const forget = Effect.sync(() => signal?.removeEventListener("abort", close))
      Effect.runSyncWith(context)(Scope.addFinalizer(scope, forget))
      return exit.value
    }
)
