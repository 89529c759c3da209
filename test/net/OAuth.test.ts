/**
 * Signing in by OAuth, against a real authorisation server.
 */
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Redacted, Result, Stream } from "effect"
import { Agent, Approval, Checkpoint, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { OAuth } from "effect-deepagents/net"
import * as LoopbackRedirect from "effect-deepagents/net/LoopbackRedirect"
import { CredentialKey, CredentialStore, Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { FetchHttpClient } from "effect/http"
import { TestClock } from "effect/testing"
import { browse, confirmDevice, oidc } from "../servers/oidc.ts"
import { layer } from "../web/pages.ts"

const server = oidc(() => ({
  scopes: ["openid", "offline_access", "read", "write"],
  clients: [
    {
      client_id: "app",
      application_type: "native",
      redirect_uris: ["http://127.0.0.1/callback", "http://127.0.0.1:9/app"],
      token_endpoint_auth_method: "none",
      grant_types: ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
      response_types: ["code"]
    }
  ],
  features: {
    devInteractions: { enabled: false },
    deviceFlow: { enabled: true, successSource: (context) => void (context.body = "done") },
    revocation: { enabled: true, allowedPolicy: () => true },
    userinfo: { enabled: true }
  },
  rotateRefreshToken: () => true
}))

const providerAt = (issuer: string, more: Partial<OAuth.Provider> = {}): OAuth.Provider => ({
  name: "service",
  server: issuer,
  clientId: "app",
  scopes: ["openid", "read"],
  ...more
})
const ada: Parameters<typeof OAuth.begin>[1] = { tenant: "user/ada" }

const services = (
  redirect: ReturnType<typeof OAuth.redirectTo> = LoopbackRedirect.redirect,
  http = FetchHttpClient.layer
) =>
  OAuth.layer({ redirect }).pipe(
    Layer.provideMerge(CredentialStore.layer),
    Layer.provideMerge(Layer.mergeAll(Storage.layerMemory, CredentialKey.layerRandom, http))
  )

const isCallback = (url: URL) => url.pathname === "/callback"
const visit = (url: string) =>
  Effect.promise(async () => {
    const response = await fetch(url)
    return { status: response.status, text: await response.text() }
  })
const signIn = Effect.fnUntraced(function* (url: string) {
  return yield* visit(yield* browse(url, isCallback))
})

const pageOf = ({ arguments: given }: Approval.Request): string =>
  typeof given["url"] === "string" ? given["url"] : ""

const reasonOf = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flip(effect), (error) =>
    error instanceof Error && "reason" in error ? (error.reason as { readonly _tag: string })._tag : String(error)
  )

const connected = Effect.fnUntraced(function* (provider: OAuth.Provider) {
  const { finished, url } = yield* OAuth.begin(provider, ada)
  const page = yield* signIn(url)
  yield* finished
  return page
})

const works = Effect.fnUntraced(function* (issuer: string, token: Redacted.Redacted) {
  const response = yield* Effect.promise(() =>
    fetch(`${issuer}/me`, { headers: { authorization: `Bearer ${Redacted.value(token)}` } })
  )
  return response.ok
})

const lookup = (provider: OAuth.Provider) =>
  Tool.make("lookup", {
    description: "Looks something up",
    parameters: {},
    execute: () => Effect.map(OAuth.connect(provider, ada), (token) => `a token of ${Redacted.value(token).length}`)
  })
const script = TestChatModel.script([
  TestChatModel.calls([{ name: "lookup", arguments: {} }]),
  TestChatModel.text("ok")
])

it.live("signs in over loopback, and keeps a token that works", () =>
  Effect.gen(function* () {
    const { issuer } = yield* server
    const provider = providerAt(issuer)
    assert.strictEqual(yield* reasonOf(OAuth.accessToken(provider, ada)), "NotConnected")
    const page = yield* connected(provider)
    assert.strictEqual(page.status, 200)
    assert.include(page.text, "signed in to service")
    const token = yield* OAuth.accessToken(provider, ada)
    assert.isTrue(yield* works(issuer, token))
    // Of another account, another server and another client it is not.
    const others: ReadonlyArray<readonly [OAuth.Provider, Parameters<typeof OAuth.begin>[1]]> = [
      [provider, { tenant: "user/ada", account: "work" }],
      [provider, { tenant: "user/bob" }],
      [{ ...provider, server: "https://elsewhere.example" }, ada],
      [{ ...provider, clientId: "other" }, ada],
      [{ ...provider, scopes: ["write"] }, ada]
    ]
    for (const [of, whose] of others) assert.strictEqual(yield* reasonOf(OAuth.accessToken(of, whose)), "NotConnected")
  }).pipe(Effect.provide(services()))
)

it.live("asks in the middle of a tool, and takes the question back when the person has signed in", () =>
  Effect.gen(function* () {
    const { issuer } = yield* server
    const agent = Agent.make({ name: "helper", prompt: "Help.", tools: [lookup(providerAt(issuer))] })
    const asked: Array<Approval.Request> = []
    const decide = (request: Approval.Request) => {
      asked.push(request)
      return Effect.andThen(signIn(pageOf(request)), Effect.never)
    }
    const events = yield* Stream.runCollect(Agent.stream(agent, "Go")).pipe(
      Effect.provide([script, Layer.succeed(Approval.Approvals, { decide })])
    )
    assert.strictEqual(asked.length, 1)
    assert.strictEqual(asked[0]?.arguments["origin"], issuer)
    assert.include(asked[0]?.description, issuer)
    assert.include(JSON.stringify(events), "a token of ")
    assert.isTrue(events.some((event) => event._tag === "ApprovalResolved" && event.decision === "void"))
    const credential = yield* CredentialStore.CredentialStore.use((store) =>
      store.get("user/ada", "oauth service default")
    )
    const secrets = credential?._tag === "OAuthToken" ? [credential.accessToken, credential.refreshToken] : []
    assert.lengthOf(secrets, 2)
    for (const secret of secrets)
      assert.notInclude(JSON.stringify(events), Redacted.value(secret ?? Redacted.make("?")))
  }).pipe(Effect.provide(services()))
)

it.live("suspends the run, and goes on with the same page when the person answers", () =>
  Effect.gen(function* () {
    const { issuer, requests } = yield* server
    const agent = Agent.make({
      name: "helper",
      prompt: "Help.",
      tools: [lookup(providerAt(issuer))],
      middleware: [HumanInTheLoop.make({ tools: { lookup: false } })]
    })
    const first = yield* Agent.run(agent, "Go")
    assert.strictEqual(first.stopReason, "suspended")
    const [request] = first.pending
    if (request === undefined) return assert.fail("nothing is asked")
    yield* signIn(pageOf(request))
    const checkpoint = yield* Checkpoint.decode(Checkpoint.encode(first))
    const result = yield* Agent.resume(agent, { checkpoint, decisions: [Approval.respond(request, true)] })
    assert.strictEqual(result.text, "ok")
    assert.lengthOf(
      requests.filter((one) => one === "POST /token"),
      1
    )
  }).pipe(Effect.provide([services(), script]))
)

it.live("lets a person decline: the model is told, and the listener is gone", () =>
  Effect.gen(function* () {
    const { issuer } = yield* server
    const agent = Agent.make({ name: "helper", prompt: "Help.", tools: [lookup(providerAt(issuer))] })
    let url = ""
    const decide = (request: Approval.Request) => {
      url = pageOf(request)
      return Effect.succeed(Approval.respond(request, false))
    }
    const result = yield* Agent.run(agent, "Go").pipe(
      Effect.provide([script, Layer.succeed(Approval.Approvals, { decide })])
    )
    assert.include(JSON.stringify(result.messages), "was declined")
    const back = new URL(url).searchParams.get("redirect_uri") ?? ""
    assert.isTrue(Result.isFailure(yield* Effect.result(Effect.tryPromise(() => fetch(back)))))
  }).pipe(Effect.provide(services()))
)

it.live("refuses a callback of another state, of another server, and a repeated one", () =>
  Effect.gen(function* () {
    const { issuer, requests } = yield* server
    const provider = providerAt(issuer)
    const change = (url: string, name: string, value: string) => {
      const changed = new URL(url)
      changed.searchParams.set(name, value)
      return changed.href
    }
    const bad: ReadonlyArray<readonly [string, string]> = [
      ["state", "zzzzzzzz.AAAAAAAAAAAAAAAAAAAAAAAAAAAA"],
      ["state", "../../x"],
      ["iss", "https://evil.example"]
    ]
    for (const [name, value] of bad) {
      const { finished, url } = yield* OAuth.begin(provider, ada)
      const page = yield* visit(change(yield* browse(url, isCallback), name, value))
      assert.include(page.text, "That did not work")
      assert.strictEqual(yield* reasonOf(finished), "InvalidResponse")
    }
    assert.lengthOf(
      requests.filter((one) => one === "POST /token"),
      0
    )
    const { finished, url } = yield* OAuth.begin(provider, ada)
    const callback = yield* browse(url, isCallback)
    yield* OAuth.complete(callback)
    yield* finished
    assert.strictEqual(yield* reasonOf(OAuth.complete(callback)), "InvalidResponse")
  }).pipe(Effect.provide(services()))
)

it.live("reports the server's words when the person declines there", () =>
  Effect.gen(function* () {
    const { issuer } = yield* server
    const { finished, url } = yield* OAuth.begin(providerAt(issuer), ada)
    const asked = new URL(url).searchParams
    const back = `${asked.get("redirect_uri")}?error=access_denied&state=${asked.get("state")}&iss=${encodeURIComponent(issuer)}`
    yield* visit(back)
    assert.strictEqual(yield* reasonOf(finished), "Declined")
  }).pipe(Effect.provide(services()))
)

it.live("finishes over the application's own address, in another process", () => {
  const storage = Layer.mergeAll(Storage.layerMemory, CredentialKey.layerRandom, FetchHttpClient.layer)
  const own = "http://127.0.0.1:9/app"
  return Effect.gen(function* () {
    const { issuer } = yield* server
    const provider = providerAt(issuer)
    const here = yield* Layer.build(Layer.fresh(OAuth.layer({ redirect: OAuth.redirectTo(own) })))
    const there = yield* Layer.build(Layer.fresh(OAuth.layer()))
    const { url } = yield* Effect.provide(OAuth.begin(provider, ada), here)
    const callback = yield* browse(url, ({ pathname }) => pathname === "/app")
    // Of two that come at once, one is taken.
    const both = yield* Effect.all([OAuth.complete(callback), OAuth.complete(callback)].map(Effect.result), {
      concurrency: 2
    }).pipe(Effect.provide(there))
    assert.lengthOf(both.filter(Result.isSuccess), 1)
    const token = yield* Effect.provide(OAuth.accessToken(provider, ada), here)
    assert.isTrue(yield* works(issuer, token))
  }).pipe(Effect.provide(Layer.provideMerge(CredentialStore.layer, storage)))
})

it.live("renews once for all that ask at once, and the winner's token lives", () =>
  Effect.gen(function* () {
    const { issuer, requests } = yield* server
    const provider = providerAt(issuer, {
      scopes: ["openid", "offline_access", "read"],
      parameters: { prompt: "consent" }
    })
    yield* connected(provider)
    const refused = yield* OAuth.accessToken(provider, ada)
    const before = requests.filter((one) => one === "POST /token").length
    const tokens = yield* Effect.all(
      [0, 1, 2].map(() => OAuth.accessToken(provider, ada, { refused })),
      { concurrency: 3 }
    )
    assert.lengthOf(
      requests.filter((one) => one === "POST /token"),
      before + 1
    )
    assert.lengthOf(new Set(tokens.map(Redacted.value)), 1)
    assert.isTrue(yield* works(issuer, tokens[0] ?? refused))
    // And its refresh token is taken once more.
    const [next = refused] = tokens
    const later = yield* OAuth.accessToken(provider, ada, { refused: next })
    assert.isTrue(yield* works(issuer, later))
  }).pipe(Effect.provide(services()))
)

it.live("renews once for three processes that ask at once", () => {
  const shared = Layer.mergeAll(Storage.layerMemory, CredentialKey.layerRandom, FetchHttpClient.layer)
  const redirect = LoopbackRedirect.redirect
  return Effect.gen(function* () {
    const { issuer, requests } = yield* server
    const provider = providerAt(issuer, {
      scopes: ["openid", "offline_access", "read"],
      parameters: { prompt: "consent" }
    })
    const processes = yield* Effect.forEach([0, 1, 2], () =>
      Layer.build(Layer.fresh(Layer.provideMerge(OAuth.layer({ redirect }), Layer.fresh(CredentialStore.layer))))
    )
    const [first] = processes
    if (first === undefined) return assert.fail("there are none")
    yield* Effect.provide(connected(provider), first)
    const refused = yield* Effect.provide(OAuth.accessToken(provider, ada), first)
    const before = requests.filter((one) => one === "POST /token").length
    const tokens = yield* Effect.forEach(
      processes,
      (process) => Effect.provide(OAuth.accessToken(provider, ada, { refused }), process),
      { concurrency: 3 }
    )
    assert.lengthOf(
      requests.filter((one) => one === "POST /token"),
      before + 1
    )
    assert.lengthOf(new Set(tokens.map(Redacted.value)), 1)
    assert.isTrue(yield* works(issuer, tokens[0] ?? refused))
  }).pipe(Effect.provide(shared))
})

it.live("shares one sign-in between calls that begin at once", () =>
  Effect.gen(function* () {
    const { issuer } = yield* server
    const begun = yield* Effect.all(
      [0, 1, 2].map(() => OAuth.begin(providerAt(issuer), ada)),
      { concurrency: 3 }
    )
    assert.lengthOf(new Set(begun.map(({ url }) => url)), 1)
  }).pipe(Effect.provide(services()))
)

it.live("asks for the union of scopes when more are needed", () =>
  Effect.gen(function* () {
    const { issuer } = yield* server
    yield* connected(providerAt(issuer, { scopes: ["openid", "read"] }))
    const { url } = yield* OAuth.begin(providerAt(issuer, { scopes: ["write"] }), ada)
    assert.strictEqual(new URL(url).searchParams.get("scope"), "openid read write")
  }).pipe(Effect.provide(services()))
)

it.effect("signs in by a device's code", () =>
  Effect.gen(function* () {
    const { issuer } = yield* server
    const provider = providerAt(issuer, { flow: "device" })
    const { finished, url, userCode } = yield* OAuth.begin(provider, ada)
    assert.isString(userCode)
    yield* confirmDevice(url)
    yield* TestClock.adjust("5 seconds")
    yield* finished
    assert.isTrue(yield* works(issuer, yield* OAuth.accessToken(provider, ada)))
  }).pipe(Effect.provide(services()))
)

it.effect("ends a sign-in after 300 seconds, and closes its listener", () =>
  Effect.gen(function* () {
    const { issuer } = yield* server
    const { finished, url } = yield* OAuth.begin(providerAt(issuer), ada)
    const callback = yield* browse(url, isCallback)
    yield* TestClock.adjust("301 seconds")
    assert.strictEqual(yield* reasonOf(finished), "Expired")
    assert.isTrue(Result.isFailure(yield* Effect.result(Effect.tryPromise(() => fetch(callback)))))
    assert.strictEqual(yield* reasonOf(OAuth.complete(callback)), "InvalidResponse")
  }).pipe(Effect.provide(services()))
)

it.live("listens for one GET of its own path and host", () =>
  Effect.gen(function* () {
    const { issuer } = yield* server
    const { url } = yield* OAuth.begin(providerAt(issuer), ada)
    const back = new URL(new URL(url).searchParams.get("redirect_uri") ?? "")
    assert.strictEqual(back.hostname, "127.0.0.1")
    assert.strictEqual((yield* visit(new URL("/favicon.ico", back).href)).status, 404)
    assert.strictEqual((yield* visit(back.href.replace("127.0.0.1", "localhost"))).status, 404)
    assert.strictEqual((yield* signIn(url)).status, 200)
  }).pipe(Effect.provide(services()))
)

it.live("reads no answer without an end", () =>
  Effect.gen(function* () {
    let sent = 0
    const endless = () =>
      new ReadableStream<Uint8Array>({
        pull: (controller) => {
          sent += 65_536
          controller.enqueue(new Uint8Array(65_536).fill(0x20))
        }
      })
    const http = layer(() => new Response(endless(), { headers: { "content-type": "application/json" } }))
    const failure = yield* Effect.flip(OAuth.begin(providerAt("https://accounts.example.com"), ada)).pipe(
      Effect.provide(services(undefined, http))
    )
    assert.include(failure.message, "JSON")
    // Two kinds of metadata are asked for, each up to its bound, and a little is on its way.
    assert.isBelow(sent, 3 * 1024 * 1024)
  })
)

it.live("sends nothing to a server that is not https", () =>
  Effect.gen(function* () {
    const { error } = yield* Effect.map(
      Effect.flip(OAuth.begin(providerAt("http://accounts.example.com"), ada)),
      (failure) => ({ error: failure.message })
    )
    assert.include(error, "is not https")
  }).pipe(Effect.provide(services()))
)

it.live("revokes at the server, and forgets", () =>
  Effect.gen(function* () {
    const { issuer } = yield* server
    const provider = providerAt(issuer)
    assert.strictEqual(yield* OAuth.revoke(provider, ada), "none")
    yield* connected(provider)
    const token = yield* OAuth.accessToken(provider, ada)
    assert.strictEqual(yield* OAuth.revoke(provider, ada), "revoked")
    assert.isFalse(yield* works(issuer, token))
    assert.strictEqual(yield* reasonOf(OAuth.accessToken(provider, ada)), "NotConnected")
  }).pipe(Effect.provide(services()))
)
