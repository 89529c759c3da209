/** The cache of `layerCached`, by RFC 9111: stored answers, their lifetimes and their validation. */
import type { IncomingHttpHeaders } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Network } from "effect-deepagents/net"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as Persistence from "effect/persistence/Persistence"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"

type Answer = readonly [status: number, headers: Readonly<Record<string, string>>, body?: string]

const url = "https://example.com/page"

/** A network with a cache, whose server gives one answer after the other, and the requests that came to it. */
const inCache = <A, E>(
  answers: ReadonlyArray<Answer>,
  test: (seen: ReadonlyArray<IncomingHttpHeaders>) => Effect.Effect<A, E, HttpClient.HttpClient>
) =>
  Effect.suspend(() => {
    const seen: Array<IncomingHttpHeaders> = []
    const server = HttpClient.make((request) =>
      Effect.sync(() => {
        const [status, headers, body] = answers[seen.length] ?? [500, {}, "asked too often"]
        seen.push({ ...request.headers })
        return HttpClientResponse.fromWeb(request, new Response(status === 304 ? null : body, { status, headers }))
      })
    )
    return test(seen).pipe(
      Effect.provide(
        Network.layerCached({}).pipe(
          Layer.provide([Persistence.layerMemory, Layer.succeed(HttpClient.HttpClient, server)])
        )
      )
    )
  })

const get = (headers: Readonly<Record<string, string>> = {}) =>
  Effect.flatMap(HttpClient.get(url, { headers }), (response) => response.text)

const tag = { etag: '"1"' }

const date = "Mon, 23 Nov 2026 08:00:00 GMT"

describe("requests uncacheable answers each time, without a tag", () => {
  const refused: ReadonlyArray<readonly [name: string, headers: Readonly<Record<string, string>>]> = [
    ["no-store", { ...tag, "cache-control": "no-store, max-age=60" }],
    ["private", { ...tag, "cache-control": "Private, max-age=60" }],
    ["a cookie", { ...tag, "cache-control": "max-age=60", "set-cookie": "who=me" }],
    ["Vary: *", { ...tag, "cache-control": "max-age=60", vary: "*" }],
    ["Vary: Cookie", { ...tag, "cache-control": "max-age=60", vary: "accept, cookie" }],
    ["neither a time nor a tag", {}]
  ]
  for (const [name, headers] of refused) {
    it.effect(name, () =>
      inCache(
        [
          [200, headers, "one"],
          [200, headers, "two"]
        ],
        (seen) =>
          Effect.gen(function* () {
            assert.deepStrictEqual([yield* get(), yield* get()], ["one", "two"])
            assert.isUndefined(seen[1]?.["if-none-match"])
          })
      )
    )
  }

  it.effect("an answer that failed", () =>
    inCache(
      [
        [503, { ...tag, "cache-control": "max-age=60" }, "down"],
        [200, {}, "up"]
      ],
      () => Effect.map(Effect.all([get(), get()]), (said) => assert.deepStrictEqual(said, ["down", "up"]))
    )
  )

  it.effect("an answer that its reader left before its end", () =>
    Effect.suspend(() => {
      const body = () => new ReadableStream({ pull: (to) => to.enqueue(new Uint8Array(1000)) }, { highWaterMark: 0 })
      const bodies = [body(), "whole"]
      const server = HttpClient.make((request) =>
        Effect.sync(() =>
          HttpClientResponse.fromWeb(
            request,
            new Response(bodies.shift() ?? "again", { headers: { ...tag, "cache-control": "max-age=60" } })
          )
        )
      )
      return Effect.gen(function* () {
        const response = yield* HttpClient.get(url)
        yield* Stream.runDrain(Stream.take(response.stream, 1))
        assert.strictEqual(yield* get(), "whole")
        assert.strictEqual(yield* get(), "whole")
      }).pipe(
        Effect.provide(
          Network.layerCached({}).pipe(
            Layer.provide([Persistence.layerMemory, Layer.succeed(HttpClient.HttpClient, server)])
          )
        )
      )
    })
  )
})

describe("validates stale answers by tag or date", () => {
  const stale: ReadonlyArray<
    readonly [name: string, headers: Readonly<Record<string, string>>, asked: Readonly<Record<string, string>>]
  > = [
    ...(
      [
        ["no time at all", {}],
        ["max-age=0", { "cache-control": "max-age=0" }],
        ["a max-age that is no number", { "cache-control": "max-age=soon" }],
        ["no-cache", { "cache-control": "no-cache, max-age=60" }],
        ["an age beyond its time", { "cache-control": "max-age=60", age: "61" }],
        ["Expires, which is not gone by", { expires: "Thu, 01 Dec 2099 16:00:00 GMT" }]
      ] as const
    ).map(([name, headers]) => [name, { ...tag, ...headers }, { "if-none-match": '"1"' }] as const),
    ["a weak tag goes back as it came", { etag: 'W/"1"' }, { "if-none-match": 'W/"1"' }],
    ["a date", { "last-modified": date }, { "if-modified-since": date }]
  ]
  for (const [name, headers, asked] of stale) {
    it.effect(name, () =>
      inCache(
        [
          [200, headers, "one"],
          [304, "etag" in headers ? tag : {}]
        ],
        (seen) =>
          Effect.gen(function* () {
            assert.deepStrictEqual([yield* get(), yield* get()], ["one", "one"])
            assert.deepInclude(seen[1], asked)
          })
      )
    )
  }

  it.effect("replaces a stored answer by a changed one", () =>
    inCache(
      [
        [200, tag, "one"],
        [200, { etag: '"2"' }, "two"],
        [304, { etag: '"2"' }]
      ],
      (seen) =>
        Effect.gen(function* () {
          assert.deepStrictEqual([yield* get(), yield* get(), yield* get()], ["one", "two", "two"])
          assert.strictEqual(seen[2]?.["if-none-match"], '"2"')
        })
    )
  )
})

describe("a 304", () => {
  it.effect("renews the lifetime of a stored answer", () =>
    inCache(
      [
        [200, { ...tag, "cache-control": "max-age=10", age: "9" }, "one"],
        [304, { "cache-control": "max-age=100", "x-now": "2" }],
        [304, tag]
      ],
      (seen) =>
        Effect.gen(function* () {
          yield* get()
          yield* TestClock.adjust("2 seconds")
          const renewed = yield* HttpClient.get(url)
          assert.strictEqual(yield* renewed.text, "one")
          assert.strictEqual(renewed.status, 200)
          assert.strictEqual(renewed.headers["x-now"], "2")
          yield* TestClock.adjust("99 seconds")
          assert.strictEqual(yield* get(), "one")
          assert.strictEqual(seen.length, 2)
          yield* TestClock.adjust("2 seconds")
          assert.strictEqual(yield* get(), "one")
          assert.strictEqual(seen.length, 3)
        })
    )
  )

  it.effect("keeps the stored lifetime if a 304 has none", () =>
    inCache(
      [
        [200, { ...tag, "cache-control": "max-age=10" }, "one"],
        [304, {}]
      ],
      (seen) =>
        Effect.gen(function* () {
          yield* get()
          yield* TestClock.adjust("11 seconds")
          assert.deepStrictEqual([yield* get(), yield* get()], ["one", "one"])
          assert.strictEqual(seen.length, 2)
        })
    )
  )

  it.effect("that forbids to keep it is obeyed", () =>
    inCache(
      [
        [200, tag, "one"],
        [304, { "cache-control": "no-store" }],
        [200, {}, "two"]
      ],
      (seen) =>
        Effect.gen(function* () {
          assert.deepStrictEqual([yield* get(), yield* get(), yield* get()], ["one", "one", "two"])
          assert.isUndefined(seen[2]?.["if-none-match"])
        })
    )
  )

  it.effect("ignores a 304 for another answer than the stored one", () =>
    inCache(
      [
        [200, tag, "one"],
        [304, { etag: '"9"' }],
        [200, { etag: '"9"' }, "nine"]
      ],
      (seen) =>
        Effect.gen(function* () {
          assert.deepStrictEqual([yield* get(), yield* get()], ["one", "nine"])
          assert.isUndefined(seen[2]?.["if-none-match"])
        })
    )
  )

  it.effect("that nobody asked for is handed on", () =>
    inCache([[304, tag]], () => Effect.map(HttpClient.get(url), ({ status }) => assert.strictEqual(status, 304)))
  )
})

describe("requests no fresh answers", () => {
  it.effect("until its time is over, of which its age is a part", () =>
    inCache(
      [
        [200, { "cache-control": "max-age=60", age: "50" }, "one"],
        [200, {}, "two"]
      ],
      () =>
        Effect.gen(function* () {
          yield* get()
          yield* TestClock.adjust("9 seconds")
          assert.strictEqual(yield* get(), "one")
          yield* TestClock.adjust("2 seconds")
          assert.strictEqual(yield* get(), "two")
        })
    )
  )

  it.effect("in the language that was asked for, and in no other", () =>
    inCache(
      [
        [200, { "cache-control": "max-age=60", vary: "Accept-Language" }, "one"],
        [200, { "cache-control": "max-age=60", vary: "Accept-Language" }, "eins"]
      ],
      () =>
        Effect.gen(function* () {
          assert.strictEqual(yield* get({ "accept-language": "en" }), "one")
          assert.strictEqual(yield* get({ "accept-language": "de" }), "eins")
          assert.strictEqual(yield* get({ "accept-language": "de" }), "eins")
        })
    )
  )

  it.effect("unless it was changed from here meanwhile", () =>
    inCache(
      [
        [200, { "cache-control": "max-age=60" }, "one"],
        [409, {}, "refused"],
        [201, {}, "done"],
        [200, {}, "two"]
      ],
      () =>
        Effect.gen(function* () {
          const put = HttpClient.execute(HttpClientRequest.bodyText(HttpClientRequest.put(url), "two"))
          yield* get()
          yield* put
          assert.strictEqual(yield* get(), "one")
          yield* put
          assert.strictEqual(yield* get(), "two")
        })
    )
  )
})
