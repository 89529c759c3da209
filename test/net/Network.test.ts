import type { LookupAddress } from "node:dns"
import { gzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Network } from "effect-deepagents/net"
import * as NodeNetwork from "effect-deepagents/net/NodeNetwork"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as Persistence from "effect/persistence/Persistence"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { judge } from "../../src/support/http/rules.ts"
import { hosts, urls } from "./hosts.ts"
import { serve } from "./servers.ts"

/** A client that counts its requests. */
const counting = (sent: Array<string>) =>
  Layer.succeed(
    HttpClient.HttpClient,
    HttpClient.make((request, url) =>
      Effect.sync(() => {
        sent.push(url.href)
        return HttpClientResponse.fromWeb(request, new Response("reached"))
      })
    )
  )

const ruleOf = <A>(effect: Effect.Effect<A, unknown, HttpClient.HttpClient>) =>
  Effect.map(Effect.flip(effect), (error) => Network.refusalOf(error)?.rule)

const text = (url: string, headers: Record<string, string> = {}) =>
  Effect.flatMap(HttpClient.get(url, { headers }), (response) => response.text)

const here: Network.Rules = { allowPrivate: ["127.0.0.1"] }

/** The network that may reach the servers of a test. */
const local = (rules: Network.Rules = {}) => NodeNetwork.layer({ ...here, ...rules })

/** A resolver that gives one answer after the other. */
const resolving = (answers: ReadonlyArray<string>) => {
  let at = 0
  const asked: Array<string> = []
  const resolve = (
    host: string,
    _options: unknown,
    callback: (error: NodeJS.ErrnoException | null, addresses: Array<LookupAddress>) => void
  ) => {
    asked.push(host)
    const address = answers[Math.min(at++, answers.length - 1)] ?? ""
    callback(null, [{ address, family: address.includes(":") ? 6 : 4 }])
  }
  return { asked, resolve: resolve as never }
}

describe("hosts", () => {
  it("has at least 200 spellings", () => assert.isAtLeast(new Set([...hosts, ...urls]).size, 200))

  it.effect("lets no spelling of a private host through", () =>
    Effect.gen(function* () {
      const sent: Array<string> = []
      const through: Array<string> = []
      yield* Effect.forEach(
        [...hosts.map((host) => `http://${host}/`), ...hosts.map((host) => `https://${host}/x?y`), ...urls],
        (url) => Effect.match(text(url), { onFailure: () => undefined, onSuccess: () => through.push(url) })
      ).pipe(Effect.provide(Layer.provide(Network.layer({}), counting(sent))))
      assert.deepStrictEqual(through, [])
      assert.deepStrictEqual(sent, [])
    })
  )

  it.effect("lets no redirect to a private host through", () =>
    Effect.gen(function* () {
      const sent: Array<string> = []
      const redirecting = Layer.succeed(
        HttpClient.HttpClient,
        HttpClient.make((request, url) =>
          Effect.sync(() => {
            if (url.host !== "example.com") sent.push(url.href)
            return HttpClientResponse.fromWeb(
              request,
              new Response(null, {
                status: 302,
                headers: { location: encodeURI(decodeURIComponent(url.searchParams.get("to") ?? "")) }
              })
            )
          })
        )
      )
      yield* Effect.forEach([...hosts.map((host) => `http://${host}/`), ...urls], (url) =>
        Effect.exit(HttpClient.get(`https://example.com/?to=${encodeURIComponent(encodeURIComponent(url))}`))
      ).pipe(Effect.provide(Layer.provide(Network.layer({}), redirecting)))
      assert.deepStrictEqual(sent, [])
    })
  )

  it.effect("reaches public hosts", () =>
    Effect.gen(function* () {
      const sent: Array<string> = []
      const open = ["http://example.com/", "https://8.8.8.8/", "https://[2606:4700::1111]/", "https://münchen.example/"]
      yield* Effect.forEach(open, (url) => text(url)).pipe(
        Effect.provide(Layer.provide(Network.layer({}), counting(sent)))
      )
      assert.strictEqual(sent.length, open.length)
    })
  )

  it.effect("keeps lists of hosts and ports", () =>
    Effect.gen(function* () {
      const rule = (rules: Network.Rules, url: string) => judge(rules).url(new URL(url))?.rule
      const allow = ["example.com", "*.example.org", "example.net:8443", "MÜNCHEN.example"]
      assert.isUndefined(rule({ allow }, "https://example.com/"))
      assert.isUndefined(rule({ allow }, "https://example.com./"))
      assert.isUndefined(rule({ allow }, "https://a.b.example.org/"))
      assert.isUndefined(rule({ allow }, "https://xn--mnchen-3ya.example/"))
      assert.isUndefined(rule({ allow }, "https://example.net:8443/"))
      for (const host of [
        "example.net",
        "example.org",
        "www.example.com",
        "example.com.evil.test",
        "evilexample.org"
      ]) {
        assert.strictEqual(rule({ allow }, `https://${host}/`), "host", host)
      }
      assert.strictEqual(rule({ deny: ["*.example.com"] }, "https://a.example.com/"), "host")
      assert.strictEqual(rule({ allow: ["*"], deny: ["a.test"] }, "https://a.test/"), "host")
      assert.strictEqual(rule({ deny: ["*"] }, "https://b.test/"), "host")
      assert.strictEqual(rule({ ports: [443] }, "https://a.test:444/"), "port")
      assert.strictEqual(rule({ schemes: ["https"] }, "http://a.test/"), "scheme")
      const allowPrivate = ["localhost:3000", "10.0.0.0/8", "[::1]"]
      assert.isUndefined(rule({ allowPrivate }, "http://localhost:3000/"))
      assert.isUndefined(rule({ allowPrivate }, "http://10.9.9.9/"))
      assert.isUndefined(rule({ allowPrivate }, "http://[::1]:99/"))
      assert.strictEqual(rule({ allowPrivate }, "http://localhost:3001/"), "address")
      assert.strictEqual(rule({ allowPrivate }, "http://127.0.0.1:3000/"), "address")
      yield* Effect.void
    })
  )

  it("refuses misspelt rules", () => {
    const decode = Schema.decodeUnknownExit(Network.Rules)
    for (const rules of [
      { allow: ["https://example.com/path"] },
      { allow: ["a.*.com"] },
      { allowPrivate: ["10.0.0.0/99"] },
      { ports: [0] },
      { maxBytes: -1 },
      { deny: ["user@host"] }
    ]) {
      assert.isTrue(Exit.isFailure(decode(rules)), JSON.stringify(rules))
    }
    assert.isTrue(Exit.isSuccess(decode({ allow: ["*.example.com", "*"], allowPrivate: ["127.0.0.1", "::1"] })))
  })
})

describe("invalid rules", () => {
  it.effect.each<Network.Rules>([
    { deny: ["https://127.0.0.1"] },
    { deny: ["127.0.0.1/8"] },
    { deny: ["a b"] },
    { maxBytes: NaN },
    { timeout: NaN }
  ])("let nothing through, and say so: %j", (rules) =>
    Effect.gen(function* () {
      const server = yield* serve((_, response) => response.end("there"))
      const error = yield* Effect.flip(Effect.provide(text(server.url), local(rules)))
      assert.strictEqual(Network.refusalOf(error)?.rule, "rules")
      assert.match(
        Network.describe(error),
        /^the rules of the network can't be kept: (?:deny\[0\]|maxBytes|timeout) is /
      )
      assert.strictEqual(server.seen.length, 0)
    })
  )
})

describe("addresses", () => {
  it.effect("judges the addresses of a name at each request", () =>
    Effect.gen(function* () {
      const server = yield* serve((_, response) => response.end("private"))
      const bad = ["127.0.0.1", "::ffff:127.0.0.1", "::1", "169.254.169.254", "10.0.0.1", "64:ff9b::7f00:1"]
      for (const address of bad) {
        const { resolve } = resolving([address])
        const rule = yield* ruleOf(text(`http://name.example:${server.port}/`)).pipe(
          Effect.provide(NodeNetwork.layer({}, { resolve }))
        )
        assert.strictEqual(rule, "address", address)
      }
      assert.strictEqual(server.seen.length, 0)
    })
  )

  it.effect("does not connect to the new address of a rebound name", () =>
    Effect.gen(function* () {
      const server = yield* serve((_, response) => response.writeHead(200, { connection: "close" }).end("once"))
      const other = yield* serve((_, response) => response.end("private"))
      const { asked, resolve } = resolving(["127.0.0.1", "127.0.0.2"])
      const network = NodeNetwork.layer({ allowPrivate: ["127.0.0.1/32"] }, { resolve })
      yield* Effect.gen(function* () {
        assert.strictEqual(yield* text(`http://name.example:${server.port}/`), "once")
        assert.strictEqual(yield* ruleOf(text(`http://name.example:${other.port}/`)), "address")
      }).pipe(Effect.provide(network))
      assert.strictEqual(asked.length, 2)
      assert.strictEqual(other.seen.length, 0)
    })
  )

  it.effect("allows a name on its port alone", () =>
    Effect.gen(function* () {
      const server = yield* serve((_, response) => response.end("private"))
      const { resolve } = resolving(["127.0.0.1"])
      const allowed = NodeNetwork.layer({ allowPrivate: [`localhost:${server.port}`] }, { resolve })
      const other = NodeNetwork.layer({ allowPrivate: [`name.example:1`] }, { resolve })
      assert.strictEqual(yield* Effect.provide(text(`http://localhost:${server.port}/`), allowed), "private")
      assert.strictEqual(yield* Effect.provide(ruleOf(text(`http://name.example:${server.port}/`)), other), "address")
    })
  )
})

describe("redirects", () => {
  it.effect("sends only harmless headers to another origin", () =>
    Effect.gen(function* () {
      const other = yield* serve((_, response) => response.end("there"))
      const first = yield* serve((request, response) =>
        response.writeHead(302, { location: request.url === "/same" ? "/away" : `${other.url}/` }).end()
      )
      const headers = {
        authorization: "Bearer s",
        cookie: "a=b",
        "x-api-key": "s",
        "x-own": "1",
        "x-kept": "2",
        accept: "a/b"
      }
      const network = local({ keepHeaders: ["X-Kept"] })
      assert.strictEqual(yield* Effect.provide(text(`${first.url}/same`, headers), network), "there")
      const [hop] = other.seen
      assert.strictEqual(first.seen[1]?.headers["x-api-key"], "s")
      assert.deepInclude(hop?.headers, { "x-kept": "2", accept: "a/b" })
      for (const name of ["authorization", "cookie", "x-api-key", "x-own"]) assert.notProperty(hop?.headers, name)
    })
  )

  it.effect("sends no body to another origin, and turns POST into GET where HTTP says so", () =>
    Effect.gen(function* () {
      const other = yield* serve((_, response) => response.end("there"))
      const first = yield* serve((request, response) =>
        response.writeHead(Number(request.url?.slice(1)), { location: `${other.url}/` }).end()
      )
      const post = (status: number) =>
        HttpClient.execute(HttpClientRequest.bodyText(HttpClientRequest.post(`${first.url}/${status}`), "secret"))
      const network = local()
      assert.strictEqual(yield* Effect.provide(ruleOf(post(307)), network), "redirect")
      assert.strictEqual(yield* Effect.provide(ruleOf(post(308)), network), "redirect")
      assert.strictEqual(other.seen.length, 0)
      yield* Effect.provide(post(302), network)
      yield* Effect.provide(post(303), network)
      assert.deepStrictEqual(
        other.seen.map(({ body, method }) => [method, body]),
        [
          ["GET", ""],
          ["GET", ""]
        ]
      )
    })
  )

  it.effect("follows so many and no more, over any client", () =>
    Effect.gen(function* () {
      const server = yield* serve((_, response) => response.writeHead(302, { location: "/again" }).end())
      const rules = { allowPrivate: ["127.0.0.1"], maxRedirects: 3 }
      for (const network of [NodeNetwork.layer(rules), Layer.provide(Network.layer(rules), FetchHttpClient.layer)]) {
        const before = server.seen.length
        assert.strictEqual(yield* Effect.provide(ruleOf(text(server.url)), network), "redirect")
        assert.strictEqual(server.seen.length - before, 4)
      }
    })
  )

  it.effect("does not let fetch walk past the rules", () =>
    Effect.gen(function* () {
      const inner = yield* serve((_, response) => response.end("private"))
      const server = yield* serve((_, response) => response.writeHead(302, { location: inner.url }).end())
      const network = Layer.provide(
        Network.layer({ allowPrivate: [`127.0.0.1:${server.port}`] }),
        FetchHttpClient.layer
      )
      assert.strictEqual(yield* Effect.provide(ruleOf(text(server.url)), network), "address")
      assert.strictEqual(inner.seen.length, 0)
    })
  )
})

describe("bodies", () => {
  it.effect("unpacks, and gives up a bomb", () =>
    Effect.gen(function* () {
      const bomb = gzipSync(Buffer.alloc(100_000_000))
      const server = yield* serve((request, response) => {
        assert.strictEqual(request.headers["accept-encoding"], "gzip")
        response.writeHead(200, { "content-encoding": request.url === "/odd" ? "br" : "gzip" })
        response.end(request.url === "/bomb" ? bomb : gzipSync("unpacked"))
      })
      yield* Effect.gen(function* () {
        assert.strictEqual(yield* text(server.url), "unpacked")
        assert.strictEqual(yield* ruleOf(text(`${server.url}/odd`)), "encoding")
        const before = process.memoryUsage().rss
        assert.strictEqual(yield* ruleOf(text(`${server.url}/bomb`)), "bytes")
        assert.isBelow(process.memoryUsage().rss - before, 100_000_000)
      }).pipe(Effect.provide(local({ maxBytes: 1_000_000 })))
    })
  )

  it.effect("reads all members of a gzip body", () =>
    Effect.gen(function* () {
      const members = Buffer.concat([gzipSync("first, "), gzipSync("second, "), gzipSync("third")])
      const bombs = Buffer.concat([gzipSync("first"), gzipSync(Buffer.alloc(100_000_000))])
      const server = yield* serve((request, response) => {
        response.writeHead(200, { "content-encoding": "gzip" })
        const body = request.url === "/bomb" ? bombs : members
        response.write(body.subarray(0, 30))
        response.end(request.url === "/half" ? undefined : body.subarray(30))
      })
      yield* Effect.gen(function* () {
        assert.strictEqual(yield* text(server.url), "first, second, third")
        assert.strictEqual((yield* Effect.flip(text(`${server.url}/half`))).reason._tag, "DecodeError")
        assert.strictEqual(yield* ruleOf(text(`${server.url}/bomb`)), "bytes")
      }).pipe(Effect.provide(local({ maxBytes: 1_000_000 })))
    })
  )

  it.effect.each([
    ["utf-8", undefined],
    ["none", undefined],
    ["aws-chunked", undefined],
    ["identity, UTF-8", undefined],
    ["br", "encoding"],
    ["zstd", "encoding"],
    ["compress", "encoding"],
    ["gzip, gzip", "encoding"]
  ] as const)("takes an answer for packed where it is said to be, and not by another word: %s", ([word, expected]) =>
    Effect.gen(function* () {
      const server = yield* serve((_, response) => response.writeHead(200, { "content-encoding": word }).end("plain"))
      const answer = yield* Effect.provide(Effect.result(text(server.url)), local())
      if (expected === undefined) assert.deepStrictEqual(answer, Result.succeed("plain"))
      else assert.strictEqual(yield* Effect.provide(ruleOf(text(server.url)), local()), expected)
    })
  )

  it.effect("takes an answer that fetch has unpacked without unpacking it again, and keeps its address", () =>
    Effect.gen(function* () {
      const server = yield* serve((request, response) => {
        if (request.url === "/") response.writeHead(302, { location: "/packed" }).end()
        else {
          response.writeHead(200, { "content-encoding": "gzip", "content-type": "text/plain" })
          response.end(gzipSync(request.url === "/bomb" ? Buffer.alloc(100_000_000) : "unpacked"))
        }
      })
      yield* Effect.gen(function* () {
        const response = yield* HttpClient.get(server.url)
        assert.strictEqual(yield* response.text, "unpacked")
        assert.strictEqual(response.url, `${server.url}/packed`)
        assert.notProperty(response.headers, "content-encoding")
        assert.strictEqual(yield* ruleOf(text(`${server.url}/bomb`)), "bytes")
      }).pipe(Effect.provide(Layer.provide(Network.layer({ ...here, maxBytes: 1_000_000 }), FetchHttpClient.layer)))
    })
  )

  it.effect("unpacks no plain bytes, also if they are declared as packed, and fails for half a stream", () =>
    Effect.gen(function* () {
      const packed = gzipSync("x".repeat(1000))
      const server = yield* serve((request, response) => {
        response.writeHead(200, { "content-encoding": "gzip" })
        response.end(request.url === "/nothing" ? undefined : packed.subarray(0, 20))
      })
      yield* Effect.gen(function* () {
        assert.strictEqual(yield* text(`${server.url}/nothing`), "")
        assert.strictEqual((yield* Effect.flip(text(`${server.url}/half`))).reason._tag, "DecodeError")
        assert.strictEqual(
          yield* Effect.provide(ruleOf(text(`${server.url}/half`)), local({ maxRawBytes: 5 })),
          "bytes"
        )
      }).pipe(Effect.provide(local()))
    })
  )

  it.effect("gives up answers that no server means: heads without an end, two lengths, none of HTTP", () =>
    Effect.gen(function* () {
      const answers = {
        "/heads": `HTTP/1.1 200 OK\r\n${`x-a: ${"a".repeat(1000)}\r\n`.repeat(100)}\r\n`,
        "/lengths": "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "/none": "SSH-2.0-x\r\n",
        "/short": "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort"
      }
      for (const [path, answer] of Object.entries(answers)) {
        const server = yield* serve((_, response) => response.socket?.end(answer))
        const exit = yield* Effect.exit(Effect.provide(text(server.url), local()))
        assert.isTrue(Exit.isFailure(exit), path)
      }
    })
  )

  it.effect("leads nowhere that only the page says, by Refresh or by meta", () =>
    Effect.gen(function* () {
      const inner = yield* serve((_, response) => response.end("private"))
      const page = `<meta http-equiv="refresh" content="0;url=${inner.url}">`
      const server = yield* serve((_, response) => response.writeHead(200, { refresh: `0;url=${inner.url}` }).end(page))
      assert.strictEqual(yield* Effect.provide(text(server.url), local()), page)
      assert.strictEqual(inner.seen.length, 0)
    })
  )

  it.effect("cuts a body without end, and closes its connection", () =>
    Effect.gen(function* () {
      const closed = yield* Deferred.make<void>()
      const server = yield* serve((_, response) => {
        const write = () => {
          while (!response.destroyed && response.write(Buffer.alloc(65_536)));
        }
        response.on("drain", write).on("close", () => Effect.runSync(Deferred.succeed(closed, undefined)))
        write()
      })
      assert.strictEqual(yield* Effect.provide(ruleOf(text(server.url)), local({ maxBytes: 5_000_000 })), "bytes")
      yield* Deferred.await(closed)
    })
  )

  it.live("gives up an answer that drips, or never begins", () =>
    Effect.gen(function* () {
      const server = yield* serve((request, response) => {
        if (request.url === "/never") return
        response.write("a")
        const timer = setInterval(() => response.write("a"), 20)
        response.on("close", () => clearInterval(timer))
      })
      yield* Effect.gen(function* () {
        assert.strictEqual(yield* ruleOf(text(`${server.url}/drips`)), "time")
        assert.strictEqual(yield* ruleOf(text(`${server.url}/never`)), "time")
      }).pipe(Effect.provide(local({ timeout: 300 })))
    })
  )

  it.effect("lets allowed streams of events last", () =>
    Effect.gen(function* () {
      const server = yield* serve((_, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" }).end(`data: ${"x".repeat(2000)}\n\n`)
      })
      const rules = { maxBytes: 1000 }
      assert.strictEqual(yield* Effect.provide(ruleOf(text(server.url)), local(rules)), "bytes")
      assert.isAbove((yield* Effect.provide(text(server.url), local({ ...rules, streams: true }))).length, 2000)
    })
  )

  it.effect("closes the connection of a reader that leaves", () =>
    Effect.gen(function* () {
      const closed = yield* Deferred.make<void>()
      const server = yield* serve((_, response) => {
        response.write("first")
        response.on("close", () => Effect.runSync(Deferred.succeed(closed, undefined)))
      })
      yield* Effect.gen(function* () {
        const response = yield* HttpClient.get(server.url)
        const first = yield* Stream.runCollect(Stream.take(response.stream, 1))
        assert.strictEqual(first.length, 1)
        yield* Deferred.await(closed)
      }).pipe(Effect.provide(local()))
    })
  )

  it.effect("closes the connection of an asker that is interrupted", () =>
    Effect.gen(function* () {
      const came = yield* Deferred.make<void>()
      const closed = yield* Deferred.make<void>()
      const server = yield* serve((_, response) => {
        Effect.runSync(Deferred.succeed(came, undefined))
        response.on("close", () => Effect.runSync(Deferred.succeed(closed, undefined)))
      })
      const fiber = yield* Effect.forkChild(Effect.provide(text(server.url), local()))
      yield* Deferred.await(came)
      yield* Fiber.interrupt(fiber)
      yield* Deferred.await(closed)
    })
  )
})

describe("limits of a host", () => {
  it.effect("lets requests beyond the rate wait", () =>
    Effect.gen(function* () {
      const sent: Array<string> = []
      const network = Layer.provide(Network.layer({ rate: { requests: 2, window: 1000 } }), counting(sent))
      const fiber = yield* Effect.forkChild(
        Effect.provide(
          Effect.forEach(["a", "a", "a", "b"], (host) => text(`https://${host}.test/`), { concurrency: 4 }),
          network
        )
      )
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(sent.toSorted(), ["https://a.test/", "https://a.test/", "https://b.test/"])
      yield* TestClock.adjust(1000)
      yield* Fiber.join(fiber)
      assert.strictEqual(sent.length, 4)
    })
  )

  it.effect("leaves a host alone that fails, and comes back to it", () =>
    Effect.gen(function* () {
      let sent = 0
      const failing = Layer.succeed(
        HttpClient.HttpClient,
        HttpClient.make((request) =>
          Effect.sync(() => HttpClientResponse.fromWeb(request, new Response(null, { status: ++sent > 3 ? 200 : 503 })))
        )
      )
      yield* Effect.gen(function* () {
        for (let time = 0; time < 3; time++) yield* text("https://a.test/")
        assert.strictEqual(yield* ruleOf(text("https://a.test/")), "breaker")
        assert.strictEqual(sent, 3)
        yield* TestClock.adjust("1 minute")
        assert.strictEqual((yield* HttpClient.get("https://a.test/")).status, 200)
      }).pipe(Effect.provide(Layer.provide(Network.layer({ breaker: { failures: 3, openFor: 30_000 } }), failing)))
    })
  )
})

describe("cache", () => {
  it.effect("asks again by the tag, and not at all while an answer is fresh", () =>
    Effect.gen(function* () {
      const server = yield* serve((request, response) => {
        if (request.headers["if-none-match"] === '"1"') {
          response.writeHead(304, { etag: '"1"' }).end()
          return
        }
        if (request.url === "/fresh") response.setHeader("cache-control", "max-age=60")
        if (request.url === "/tagged") response.setHeader("etag", '"1"')
        response.end(`answer ${server.seen.length}`)
      })
      const network = NodeNetwork.layerCached(here).pipe(Layer.provide(Persistence.layerMemory))
      yield* Effect.gen(function* () {
        assert.strictEqual(yield* text(`${server.url}/fresh`), "answer 1")
        assert.strictEqual(yield* text(`${server.url}/fresh`), "answer 1")
        assert.strictEqual(server.seen.length, 1)
        yield* TestClock.adjust("2 minutes")
        assert.strictEqual(yield* text(`${server.url}/fresh`), "answer 2")
        assert.strictEqual(yield* text(`${server.url}/tagged`), "answer 3")
        assert.strictEqual(yield* text(`${server.url}/tagged`), "answer 3")
        assert.strictEqual(server.seen.length, 4)
        assert.strictEqual(server.seen[3]?.headers["if-none-match"], '"1"')
        assert.strictEqual(yield* text(`${server.url}/plain`), "answer 5")
        assert.strictEqual(yield* text(`${server.url}/plain`), "answer 6")
        // A personal answer is for nobody else.
        assert.strictEqual(yield* text(`${server.url}/tagged`, { authorization: "Bearer s" }), "answer 7")
      }).pipe(Effect.provide(network))
    })
  )

  it.effect("returns nothing that the rules refuse, whoever fetched it, also behind a redirect", () =>
    Effect.gen(function* () {
      const server = yield* serve((request, response) => {
        if (request.url === "/away") response.writeHead(302, { location: `http://site.test:${server.port}/` })
        else response.setHeader("cache-control", "max-age=3600")
        response.end(`answer ${server.seen.length}`)
      })
      const other = `http://site.test:${server.port}/`
      const { resolve } = resolving(["127.0.0.1"])
      const under = (rules: Network.Rules) =>
        Effect.provide(
          NodeNetwork.layerCached(rules, { resolve }).pipe(Layer.provide(Layer.succeed(Persistence.Persistence, store)))
        )
      const store = yield* Effect.provide(Persistence.Persistence, Persistence.layerMemory)
      const open = { allowPrivate: ["127.0.0.0/8"] }
      const url = `${server.url}/a`
      assert.deepStrictEqual(yield* under(open)(Effect.all([text(url), text(other)])), ["answer 1", "answer 2"])
      assert.deepStrictEqual(yield* under(open)(Effect.all([text(url), text(other)])), ["answer 1", "answer 2"])
      assert.strictEqual(server.seen.length, 2)
      assert.strictEqual(yield* under({ ...open, deny: ["127.0.0.1"] })(ruleOf(text(url))), "host")
      assert.strictEqual(yield* under({})(ruleOf(text(url))), "address")
      // The name says nothing: it is the address behind it that may not be reached.
      assert.strictEqual(yield* under({})(ruleOf(text(other))), "address")
      assert.strictEqual(server.seen.length, 2)
      const denied = under({ ...open, deny: ["site.test"] })
      assert.strictEqual(yield* denied(ruleOf(text(`${server.url}/away`))), "host")
      assert.strictEqual(server.seen.length, 3)
    })
  )

  it.effect("keeps packed answers", () =>
    Effect.gen(function* () {
      const server = yield* serve((request, response) => {
        const isKnown = request.headers["if-none-match"] === '"1"'
        response.writeHead(isKnown ? 304 : 200, { etag: '"1"', "content-encoding": "gzip" })
        response.end(isKnown ? undefined : gzipSync("x".repeat(10_000)))
      })
      const network = NodeNetwork.layerCached(here).pipe(Layer.provide(Persistence.layerMemory))
      yield* Effect.gen(function* () {
        const again = Effect.map(text(server.url), (found) => found.length)
        assert.deepStrictEqual(yield* Effect.all([again, again]), [10_000, 10_000])
        assert.strictEqual(server.seen[1]?.headers["if-none-match"], '"1"')
      }).pipe(Effect.provide(network))
    })
  )
})
