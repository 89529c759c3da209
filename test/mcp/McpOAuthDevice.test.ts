/**
 * Signing in to an MCP server by a code that is typed in on another device.
 */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber, Layer } from "effect"
import { type McpConfig, type McpOAuth, McpServers } from "effect-deepagents/mcp"
import { CredentialStore } from "effect-deepagents/stores"
import { FetchHttpClient, HttpClient, HttpClientResponse } from "effect/http"
import { TestClock } from "effect/testing"
import { guarded as world, signingIn } from "../servers/guarded.ts"
import { confirmDevice } from "../servers/oidc.ts"
import { turns } from "./scripted.ts"

type Page = Parameters<McpOAuth.Options["open"]>[0]

const client = (
  url: string,
  http: Layer.Layer<HttpClient.HttpClient>,
  open: (page: Page) => Effect.Effect<unknown>,
  oauth: McpConfig.OAuth = {}
) => signingIn({ url, connectTimeout: 1_000_000_000, oauth }, { open: (page) => Effect.asVoid(open(page)) }, http)

/** Real time for real requests, while the test clock goes on. */
const turn = TestClock.withLive(Effect.sleep(100))

it.effect(
  "signs in where no browser can come back to, renews, and widens",
  () =>
    Effect.gen(function* () {
      const { dead, issuer, requests, seen, url } = yield* world
      const pages: Array<Page> = []
      const open = (page: Page) =>
        Effect.andThen(
          Effect.sync(() => pages.push(page)),
          confirmDevice(page.url)
        )
      const call = (tool: string) =>
        McpServers.McpServers.use((servers) => servers.call({ server: "guarded", tool }, { text: "hello" }))
      yield* Effect.gen(function* () {
        yield* Effect.forkScoped(Effect.forever(Effect.andThen(turn, TestClock.adjust("1 second"))))
        yield* McpServers.McpServers.use(({ tools }) => tools)
        assert.include(JSON.stringify(yield* call("look")), "hello")
        assert.lengthOf(pages, 1)
        assert.strictEqual(pages[0]?.origin, issuer)
        assert.match(pages[0]?.userCode ?? "", /^[A-Z]{4}-[A-Z]{4}$/)
        for (const bearer of seen) dead.add(bearer)
        assert.include(JSON.stringify(yield* call("look")), "hello")
        assert.lengthOf(pages, 1, "a token that can be renewed is")
        assert.include(JSON.stringify(yield* call("write")), "hello")
        assert.isAtLeast(pages.length, 2)
        assert.isFalse(requests.some((one) => one.startsWith("GET /auth")))
      }).pipe(Effect.provide(client(url, FetchHttpClient.layer, open)))
    }),
  60_000
)

interface Script {
  readonly device?: object
  readonly metadata?: object
  /** The answers to questions for the token, the last of them again and again. */
  readonly tokens: ReadonlyArray<object | "down">
}

const origin = "https://login.example"
const good = { access_token: "good", token_type: "Bearer" }
const error = (word: string) => ({ error: word })

/** A server and its authorisation server, in this process. `times` are the moments of the token requests. */
const scripted = ({ device, metadata, tokens }: Script) => {
  const times: Array<number> = []
  const json = (body: object, status = 200, headers = {}) =>
    new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json", ...headers } })
  const answers: { readonly [path: string]: (headers: Readonly<Record<string, string>>, body: string) => Response } = {
    "/mcp": (headers, body) => {
      if (headers["authorization"] !== "Bearer good") {
        const challenge = `Bearer resource_metadata="https://mcp.example/metadata"`
        return json({}, 401, { "www-authenticate": challenge })
      }
      const asked: unknown = JSON.parse(body === "" ? "{}" : body)
      const { id, method } = asked as { readonly id?: number; readonly method?: string }
      if (id === undefined) return new Response(null, { status: body === "" ? 405 : 202 })
      const serverInfo = { name: "scripted", version: "1" }
      if (method === "initialize") {
        const result = { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo }
        return json({ jsonrpc: "2.0", id, result })
      }
      if (method === "tools/list") return json({ jsonrpc: "2.0", id, result: { tools: [] } })
      return json({ jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } })
    },
    "/metadata": () => json({ resource: "https://mcp.example/mcp", authorization_servers: [origin] }),
    "/.well-known/oauth-authorization-server": () =>
      json({
        issuer: origin,
        authorization_endpoint: `${origin}/authorize`,
        token_endpoint: `${origin}/token`,
        device_authorization_endpoint: `${origin}/device`,
        response_types_supported: ["code"],
        code_challenge_methods_supported: ["S256"],
        ...metadata
      }),
    "/device": () =>
      json({
        device_code: "secret-of-the-device",
        user_code: "ABCD-EFGH",
        verification_uri: `${origin}/activate`,
        expires_in: 1_800,
        ...device
      })
  }
  const http = HttpClient.make((request) =>
    Effect.gen(function* () {
      const { pathname } = new URL(request.url)
      const { body } = request
      const text = body._tag === "Uint8Array" ? new TextDecoder().decode(body.body) : ""
      if (pathname !== "/token") {
        const answer = answers[pathname]?.(request.headers, text) ?? json({}, 404)
        return HttpClientResponse.fromWeb(request, answer)
      }
      const next = tokens[Math.min(times.length, tokens.length - 1)]
      times.push(yield* Clock.currentTimeMillis)
      assert.include(text, "device_code=secret-of-the-device")
      const response =
        next === "down" || next === undefined
          ? new Response("", { status: 503 })
          : json(next, "error" in next ? 400 : 200)
      return HttpClientResponse.fromWeb(request, response)
    })
  )
  return { http: Layer.succeed(HttpClient.HttpClient, http), times }
}

/** The result of a sign-in, and the pauses between its token requests in seconds. */
const runSignIn = Effect.fnUntraced(function* (script: Script) {
  const { http, times } = scripted(script)
  const shown = yield* Deferred.make<Page>()
  const open = (page: Page) => Deferred.succeed(shown, page)
  return yield* Effect.gen(function* () {
    const servers = yield* McpServers.McpServers
    const settled = yield* Effect.forkScoped(servers.tools)
    const begun = Effect.raceFirst(Effect.asVoid(Fiber.await(settled)), Effect.asVoid(Deferred.await(shown)))
    yield* TestClock.withLive(Effect.timeout(begun, "20 seconds"))
    const from = yield* Clock.currentTimeMillis
    for (let second = 0; second < 400 && settled.pollUnsafe() === undefined; second++) {
      yield* turns
      yield* TestClock.adjust("1 second")
    }
    yield* TestClock.withLive(Effect.timeout(Fiber.join(settled), "20 seconds"))
    const [status] = yield* servers.status
    const page = yield* Deferred.poll(shown)
    const pauses = times.map((time, index) => Math.round((time - (times[index - 1] ?? from)) / 1000))
    const tenant = yield* CredentialStore.CredentialStore.use(({ names }) => names("ada"))
    return { page, status, pauses, tenant, seconds: ((yield* Clock.currentTimeMillis) - from) / 1000 }
    // A client that is known needs no store, whose sealing takes real time.
  }).pipe(Effect.provide(client("https://mcp.example/mcp", http, open, { clientId: "ours" })))
})

describe("servers of codes", { timeout: 60_000 }, () => {
  it.effect("are asked as often as they say, and less often where they ask for that or are down", () =>
    Effect.gen(function* () {
      const slow = yield* runSignIn({
        device: { interval: 2 },
        tokens: [error("authorization_pending"), error("slow_down"), error("slow_down"), "down", good]
      })
      assert.deepStrictEqual(slow.pauses, [2, 2, 7, 12, 24])
      assert.strictEqual(slow.status?.state, "connected")
      const none = yield* runSignIn({ tokens: [error("authorization_pending"), good] })
      assert.deepStrictEqual(none.pauses, [5, 5])
      for (const interval of [0, -1, 1e-9]) {
        const busy = yield* runSignIn({ device: { interval }, tokens: [error("authorization_pending"), good] })
        assert.deepStrictEqual(busy.pauses, [1, 1], String(interval))
      }
      const huge = yield* runSignIn({ device: { interval: 1e12 }, tokens: [good] })
      assert.deepStrictEqual(huge.pauses, [60])
    })
  )

  it.effect("end a sign-in by their words, or after 300 seconds, and no token is kept", () =>
    Effect.gen(function* () {
      const declined = yield* runSignIn({ tokens: [error("authorization_pending"), error("access_denied")] })
      assert.match(declined.status?.error?.message ?? "", /the sign-in was refused: access_denied/)
      const expired = yield* runSignIn({ tokens: [error("expired_token")] })
      assert.match(expired.status?.error?.message ?? "", /nobody typed the code in within 300 seconds/)
      const pending = yield* runSignIn({ device: { expires_in: 1e15 }, tokens: [error("authorization_pending")] })
      assert.match(pending.status?.error?.message ?? "", /nobody typed the code in within 300 seconds/)
      assert.isAtMost(pending.seconds, 301)
      const short = yield* runSignIn({ device: { expires_in: 20 }, tokens: [error("authorization_pending")] })
      assert.match(short.status?.error?.message ?? "", /within 20 seconds/)
      assert.isAtMost(short.pauses.length, 4)
      for (const { status, tenant } of [declined, expired, pending, short]) {
        assert.strictEqual(status?.error?.reason, "Unauthorized")
        assert.notProperty(status, "retryAt", "nobody is shown another code by itself")
        assert.isFalse(tenant.some((name) => name.endsWith(" tokens")))
        assert.notInclude(JSON.stringify(status), "secret-of-the-device")
      }
    })
  )

  it.effect("can show no page that is not https, and need not give codes out", () =>
    Effect.gen(function* () {
      for (const verification_uri of [
        "javascript:alert(1)",
        "http://login.example/activate",
        "file:///etc/passwd",
        "?"
      ]) {
        const { page, status } = yield* runSignIn({ device: { verification_uri }, tokens: [good] })
        assert.match(status?.error?.message ?? "", /the page for the code .*(is no URL|is not https)/)
        assert.strictEqual(page._tag, "None")
      }
      const strange = yield* runSignIn({ device: { device_code: 7 }, tokens: [good] })
      assert.match(strange.status?.error?.message ?? "", /"device_code" property must be a string/)
      const without = yield* runSignIn({ metadata: { device_authorization_endpoint: undefined }, tokens: [good] })
      assert.match(without.status?.error?.message ?? "", /gives out no codes to type in elsewhere/)
      const plain = yield* runSignIn({
        metadata: { device_authorization_endpoint: "http://login.example/d" },
        tokens: [good]
      })
      assert.match(plain.status?.error?.message ?? "", /the device flow of its server, "http:.*", is not https/)
      const words = yield* runSignIn({ device: { user_code: `A\u001b[2J\n${"B".repeat(5_000)}` }, tokens: [good] })
      const shown = words.page._tag === "Some" ? ((yield* words.page.value).userCode ?? "") : ""
      assert.isAtMost(shown.length, 120)
      assert.notInclude(shown, "\u001b")
      assert.notInclude(shown, "\n")
    })
  )
})
