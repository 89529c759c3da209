import { once } from "node:events"
import { createServer } from "node:http"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientError from "effect/http/HttpClientError"
import { type FetchLike, fetchLike } from "../../src/support/http/fetchLike.ts"

/** A server that says what it was asked, and when somebody left. */
const server = Effect.gen(function* () {
  const left = yield* Deferred.make<void>()
  const http = createServer((request, response) => {
    response.on("close", () => {
      if (!response.writableFinished) Effect.runSync(Effect.ignore(Deferred.succeed(left, undefined)))
    })
    if (request.url === "/endless") return void response.write("first")
    if (request.url === "/silent") return
    if (request.url === "/empty") return void response.writeHead(204).end()
    if (request.url === "/away") return void response.writeHead(302, { location: "/echo" }).end()
    const parts: Array<Buffer> = []
    request.on("data", (part: Buffer) => parts.push(part))
    request.on("end", () => {
      const { headers, method } = request
      response.setHeader("x-seen", "yes")
      response.end(JSON.stringify({ method, body: Buffer.concat(parts).toString(), headers }))
    })
  })
  http.listen(0, "127.0.0.1")
  yield* Effect.promise(() => once(http, "listening"))
  yield* Effect.addFinalizer(() => Effect.sync(() => http.closeAllConnections() ?? http.close()))
  const address = http.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  return { url: `http://127.0.0.1:${port}`, left: Deferred.await(left) }
})

interface Seen {
  readonly method: string
  readonly body: string
  readonly headers: { readonly [name: string]: string }
}

const json = (response: Response) => Effect.promise((): Promise<Seen> => response.json() as Promise<Seen>)
const sendRequest = (fetch: FetchLike, ...request: Parameters<FetchLike>) => Effect.promise(() => fetch(...request))
const failRequest = (fetch: FetchLike, ...request: Parameters<FetchLike>) =>
  Effect.flip(Effect.tryPromise({ try: () => fetch(...request), catch: (error) => error }))

describe.each([
  ["undici", NodeHttpClient.layerUndici],
  ["fetch", FetchHttpClient.layer]
])("fetchLike over %s", (_name, layer) => {
  it.effect("sends what fetch would, and gives what came", () =>
    Effect.gen(function* () {
      const { url } = yield* server
      const fetch = yield* fetchLike
      const get = yield* sendRequest(fetch, `${url}/echo`)
      assert.strictEqual(get.headers.get("x-seen"), "yes")
      assert.strictEqual((yield* json(get)).method, "GET")
      const form = yield* json(
        yield* sendRequest(fetch, new URL(`${url}/echo`), { method: "post", body: new URLSearchParams({ a: "1 2" }) })
      )
      assert.deepInclude(form, { method: "POST", body: "a=1+2" })
      assert.match(form.headers["content-type"] ?? "", /x-www-form-urlencoded/)
      const whole = new Request(`${url}/echo`, {
        method: "PUT",
        body: "ü".repeat(100_000),
        headers: { "content-type": "text/x", authorization: "Bearer x" }
      })
      const put = yield* json(yield* sendRequest(fetch, whole))
      assert.strictEqual(put.body.length, 100_000)
      assert.deepInclude(put.headers, { "content-type": "text/x", authorization: "Bearer x" })
      const empty = yield* sendRequest(fetch, `${url}/empty`, { method: "DELETE" })
      assert.strictEqual(empty.status, 204)
      assert.isNull(empty.body)
    }).pipe(Effect.provide(layer))
  )

  it.effect("follows no redirect that is not wanted", () =>
    Effect.gen(function* () {
      const { url } = yield* server
      const fetch = yield* fetchLike
      const response = yield* sendRequest(fetch, `${url}/away`, { redirect: "manual" })
      assert.strictEqual(response.status, 302)
      assert.strictEqual(response.headers.get("location"), "/echo")
    }).pipe(Effect.provide(layer))
  )

  it.live("an abort ends the connection, before the answer and in the middle of it", () =>
    Effect.gen(function* () {
      for (const path of ["silent", "endless"]) {
        const { left, url } = yield* server
        const fetch = yield* fetchLike
        const aborting = new AbortController()
        const reason = new Error("enough")
        if (path === "silent") {
          const answer = fetch(`${url}/${path}`, { signal: aborting.signal })
          setTimeout(() => aborting.abort(reason), 20)
          assert.strictEqual(
            yield* Effect.flip(Effect.tryPromise({ try: () => answer, catch: (error) => error })),
            reason
          )
        } else {
          const answer = yield* sendRequest(fetch, `${url}/${path}`, { signal: aborting.signal })
          const reader = answer.body!.getReader()
          yield* Effect.promise(() => reader.read())
          aborting.abort(reason)
          yield* Effect.flip(Effect.tryPromise(() => reader.read()))
        }
        yield* Effect.timeout(left, "5 seconds")
      }
      const { url } = yield* server
      const fetch = yield* fetchLike
      assert.strictEqual(yield* failRequest(fetch, url, { signal: AbortSignal.abort("at once") }), "at once")
    }).pipe(Effect.scoped, Effect.provide(layer))
  )

  it.live("a reader that leaves ends the connection", () =>
    Effect.gen(function* () {
      const { left, url } = yield* server
      const fetch = yield* fetchLike
      const answer = yield* sendRequest(fetch, `${url}/endless`)
      yield* Effect.promise(() => answer.body!.cancel())
      yield* Effect.timeout(left, "5 seconds")
    }).pipe(Effect.scoped, Effect.provide(layer))
  )

  it.effect("leaves nothing at a signal that outlives many requests", () =>
    Effect.gen(function* () {
      const { url } = yield* server
      const fetch = yield* fetchLike
      const { signal } = new AbortController()
      let listeners = 0
      const { addEventListener, removeEventListener } = signal
      signal.addEventListener = (...given: Parameters<typeof addEventListener>) => {
        listeners++
        addEventListener.apply(signal, given)
      }
      signal.removeEventListener = (...given: Parameters<typeof removeEventListener>) => {
        listeners--
        removeEventListener.apply(signal, given)
      }
      for (let i = 0; i < 5; i++) yield* json(yield* sendRequest(fetch, `${url}/echo`, { signal }))
      assert.strictEqual(listeners, 0)
    }).pipe(Effect.provide(layer))
  )
})

it.effect("a failure of the client is the cause of the rejection", () =>
  Effect.gen(function* () {
    const problem = (request: Parameters<HttpClient.HttpClient["execute"]>[0]) =>
      new HttpClientError.HttpClientError({ reason: new HttpClientError.TransportError({ request, cause: "blocked" }) })
    const client = HttpClient.make((request) => Effect.fail(problem(request)))
    const fetch = yield* Effect.provideService(fetchLike, HttpClient.HttpClient, client)
    const error = yield* failRequest(fetch, "http://example.invalid/")
    assert.instanceOf(error, TypeError)
    assert.isTrue(HttpClientError.isHttpClientError(error instanceof TypeError ? error.cause : undefined))
    assert.instanceOf(yield* failRequest(fetch, "no url"), TypeError)
  })
)
