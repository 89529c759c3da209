/**
 * Signing in to a protected MCP server, against a real authorisation server.
 */
import { createServer } from "node:net"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Layer, Redacted, Scope } from "effect"
import { type McpConfig, McpOAuth, McpServers } from "effect-deepagents/mcp"
import * as LoopbackRedirect from "effect-deepagents/net/LoopbackRedirect"
import { guarded as world, ownCredentials, signingIn } from "../servers/guarded.ts"
import { browse } from "../servers/oidc.ts"
import { until } from "./servers.ts"

type Page = Parameters<McpOAuth.Options["open"]>[0]

const isCallback = (url: URL) => url.pathname === "/callback"

/** The layers of a client whose user signs in at once, by `change` of the address that the browser ends at. */
const client = (
  url: string,
  pages: Array<Page>,
  change = (callback: string) => callback,
  oauth: McpConfig.OAuth = {},
  credentials = ownCredentials
) =>
  signingIn(
    { url, connectTimeout: 20_000, oauth },
    {
      redirect: LoopbackRedirect.redirect,
      open: (page) =>
        Effect.gen(function* () {
          pages.push(page)
          const callback = change(yield* browse(page.url, isCallback))
          yield* Effect.promise(() => fetch(callback).then((response) => response.text()))
        })
    },
    undefined,
    credentials
  )

const call = (tool: string, text = "hello") =>
  McpServers.McpServers.use((servers) => servers.call({ server: "guarded", tool }, { text }))

it.live(
  "signs in, renews once for all calls, and widens in the middle of a call",
  () =>
    Effect.gen(function* () {
      const { dead, issuer, requests, seen, url } = yield* world
      const pages: Array<Page> = []
      const count = (path: string) => requests.filter((one) => one === `POST ${path}`).length
      yield* Effect.gen(function* () {
        assert.include(JSON.stringify(yield* call("look")), "hello")
        assert.lengthOf(pages, 1)
        assert.strictEqual(pages[0]?.origin, issuer)
        assert.strictEqual(pages[0]?.server, "guarded")
        const first = count("/token")
        for (const bearer of seen) dead.add(bearer)
        const results = yield* Effect.all(
          Array.from({ length: 20 }, (_, index) => call("look", `${index}`)),
          { concurrency: "unbounded" }
        )
        assert.lengthOf(results, 20)
        assert.strictEqual(count("/token"), first + 1)
        assert.lengthOf(pages, 1)
        assert.include(JSON.stringify(yield* call("write", "written")), "written")
        assert.isAtLeast(pages.length, 2)
        const asked = new URL(pages.at(-1)?.url ?? "").searchParams.get("scope")?.split(" ") ?? []
        assert.includeMembers(asked, ["read", "write"])
      }).pipe(Effect.provide(client(url, pages)))
    }),
  30_000
)

it.live(
  "takes no callback of another state or another server",
  () =>
    Effect.gen(function* () {
      const { requests, url } = yield* world
      const bad: ReadonlyArray<readonly [string, string]> = [
        ["state", "other"],
        ["iss", "https://evil.example"]
      ]
      const tryChange = Effect.fnUntraced(function* ([name, value]: (typeof bad)[number]) {
        const change = (callback: string) => {
          const changed = new URL(callback)
          changed.searchParams.set(name, value)
          return changed.href
        }
        const pages: Array<Page> = []
        yield* Effect.gen(function* () {
          const [first, second] = yield* Effect.all([Effect.flip(call("look")), Effect.flip(call("look"))]).pipe(
            // Nobody waits for what only a person can mend.
            Effect.timeout("5 seconds")
          )
          assert.strictEqual(first.reason, "Unauthorized", name)
          assert.strictEqual(second.reason, "Unauthorized", name)
          assert.lengthOf(pages, 1, "the page is shown once")
          const servers = yield* McpServers.McpServers
          const [status] = yield* servers.status
          assert.strictEqual(status?.state, "failed")
          assert.notProperty(status, "retryAt")
          yield* servers.reconnect("guarded")
          yield* until("guarded", () => pages.length === 2)
        }).pipe(Effect.provide(client(url, pages, change)))
      })
      yield* Effect.forEach(bad, tryChange, { concurrency: 2 })
      assert.isFalse(requests.includes("POST /token"))
    }),
  30_000
)

const freePort = Effect.callback<number>((resume) => {
  const server = createServer()
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    server.close(() => resume(Effect.succeed(typeof address === "object" ? (address?.port ?? 0) : 0)))
  })
})

it.live(
  "uses the port and the metadata of the configuration",
  () =>
    Effect.gen(function* () {
      const { issuer, requests, url } = yield* world
      const callbackPort = yield* freePort
      const pages: Array<Page> = []
      const authServerMetadataUrl = `${issuer}/.well-known/openid-configuration`
      const result = yield* Effect.provide(
        call("look"),
        client(url, pages, undefined, { authServerMetadataUrl, callbackPort })
      )
      assert.include(JSON.stringify(result), "hello")
      const redirect = new URL(pages[0]?.url ?? "").searchParams.get("redirect_uri")
      assert.strictEqual(redirect, `http://127.0.0.1:${callbackPort}/callback`)
      assert.isFalse(requests.some((one) => one.includes("oauth-authorization-server")))
      const elsewhere = yield* Effect.flip(
        Effect.provide(call("look"), client(url, pages, undefined, { authServerMetadataUrl: "http://example.com/m" }))
      )
      assert.match(elsewhere.message, /authServerMetadataUrl must be an address of https/)
    }),
  30_000
)

it.live(
  "leaves no listener behind when it is given up at the page",
  () =>
    Effect.gen(function* () {
      const { url } = yield* world
      const shown = yield* Deferred.make<Page>()
      const servers = signingIn(
        { url },
        { redirect: LoopbackRedirect.redirect, open: (page) => Effect.asVoid(Deferred.succeed(shown, page)) }
      )
      const scope = yield* Scope.make()
      yield* Layer.buildWithScope(servers, scope)
      const page = yield* Deferred.await(shown)
      const back = new URL(page.url).searchParams.get("redirect_uri") ?? ""
      assert.strictEqual((yield* Effect.promise(() => fetch(new URL("/favicon.ico", back)))).status, 404)
      yield* Scope.close(scope, Exit.void)
      yield* Effect.flip(Effect.tryPromise(() => fetch(back)))
    }),
  30_000
)

it.live(
  "tells a secret to the authorisation server alone that it is for",
  () =>
    Effect.gen(function* () {
      const { requests, url } = yield* world
      const pages: Array<Page> = []
      const oauth = { clientId: "ours", clientSecret: "hunter2", issuer: "https://login.example" }
      for (const grant of ["authorization_code", "client_credentials"] as const) {
        const error = yield* Effect.flip(
          Effect.provide(call("look"), client(url, pages, undefined, { ...oauth, grant }))
        )
        assert.strictEqual(error.reason, "Unauthorized")
        assert.match(error.message, /its client is one of https:\/\/login\.example, but it sends to http:\/\/127/)
        assert.notInclude(error.message, "hunter2")
      }
      assert.lengthOf(pages, 0)
      assert.isFalse(requests.some((one) => one.startsWith("POST")))
    }),
  30_000
)

it.live(
  "tells a secret to no authorisation server that it signed in to before the secret was one of another",
  () =>
    Effect.gen(function* () {
      const { dead, requests, seen, url } = yield* world
      const credentials = Layer.succeedContext(yield* Layer.build(ownCredentials))
      const pages: Array<Page> = []
      yield* Effect.provide(call("look"), client(url, pages, undefined, {}, credentials))
      for (const bearer of seen) dead.add(bearer)
      const before = requests.filter((one) => one === "POST /token").length
      const oauth = { clientId: "ours", clientSecret: "hunter2", issuer: "https://login.example" }
      const error = yield* Effect.flip(Effect.provide(call("look"), client(url, pages, undefined, oauth, credentials)))
      assert.match(error.message, /its client is one of https:\/\/login\.example/)
      assert.lengthOf(
        requests.filter((one) => one === "POST /token"),
        before
      )
    }),
  30_000
)

it.live(
  "shows a token of somebody else to no other authorisation server, and says what is missing",
  () =>
    Effect.gen(function* () {
      const { requests, url } = yield* world
      const shown: Array<Parameters<McpOAuth.Assertion>[0]> = []
      const idToken = Effect.succeed(Redacted.make("hunter2"))
      const assertions: ReadonlyArray<readonly [McpOAuth.Assertion | undefined, McpConfig.OAuth, RegExp]> = [
        [undefined, {}, /jwt-bearer needs a clientId, and the `assertion` of McpOAuth\.layer/],
        [
          (to) =>
            Effect.as(
              Effect.sync(() => shown.push(to)),
              Redacted.make("hunter2")
            ),
          { issuer: "https://login.example" },
          /its client is one of https:\/\/login\.example/
        ],
        [() => Effect.fail(new Error("no token on this machine")), {}, /no token on this machine/],
        [
          McpOAuth.byIdentityProvider({
            issuer: "https://idp.example",
            tokenEndpoint: "http://idp.example/token",
            clientId: "agents",
            idToken
          }),
          {},
          /https:\/\/idp\.example has no token endpoint of https/
        ]
      ]
      for (const [assertion, oauth, message] of assertions) {
        const config = {
          url,
          connectTimeout: 20_000,
          oauth: { clientId: "ours", grant: "jwt-bearer" as const, ...oauth }
        }
        const layer = signingIn(config, { open: () => Effect.die("nobody sees a page"), assertion })
        const error = yield* Effect.flip(Effect.provide(call("look"), layer))
        assert.strictEqual(error.reason, "Unauthorized")
        assert.match(error.message, message)
        assert.notInclude(error.message, "hunter2")
      }
      assert.lengthOf(shown, 0)
      assert.isFalse(requests.some((one) => one === "POST /token"))
    }),
  60_000
)
