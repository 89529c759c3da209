import { mkdtempSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
/** The server of one person: its tokens, its cookies, its page. */
import { NodeHttpServer } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Redacted } from "effect"
import { Agent } from "effect-deepagents"
import { Server } from "effect-deepagents/server"
import { MemorySessions } from "effect-deepagents/sessions"
import { Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { HttpRouter, HttpServer, HttpServerRequest } from "effect/http"
import { NetAddress } from "effect/net"
import { TestClock } from "effect/testing"
import { ask } from "./door.ts"

const runs = Server.layer({ helper: Agent.make({ name: "helper", prompt: "" }) }).pipe(
  Layer.provide([Storage.layerMemory, TestChatModel.script([])]),
  Layer.provideMerge(MemorySessions.layer)
)

const nodeServer = (host: string) =>
  NodeHttpServer.layer(createServer, { port: 0, host, gracefulShutdownTimeout: "50 millis" })

/** Serves one person, and gives the address and `Auth`. */
const serve = Effect.fnUntraced(function* (token: string | undefined, page?: string) {
  const auth = Server.loopback(token === undefined ? {} : { token: Redacted.make(token) })
  const app = Server.http({ page: page ?? true }).pipe(Layer.provide(runs), Layer.provideMerge(auth))
  const context = yield* Layer.build(
    HttpRouter.serve(app, { disableLogger: true, disableListenLog: true }).pipe(
      Layer.provideMerge(Layer.fresh(nodeServer("127.0.0.1")))
    )
  )
  const { address } = Context.get(context, HttpServer.HttpServer)
  const url = `http://127.0.0.1:${NetAddress.isInetAddress(address) ? address.port : 0}`
  return { url, auth: Context.get(context, Server.Auth) }
})

const exchange = (url: string, token: string, headers: Record<string, string> = {}) =>
  Effect.promise(() =>
    fetch(`${url}/session`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ token })
    })
  )

const cookieOf = (response: Response): string => response.headers.get("set-cookie")?.split(";")[0] ?? ""

describe("a server of one person", () => {
  it.live("knows programs by the token, and pages by a cookie for a token that counts once", () =>
    Effect.gen(function* () {
      const { auth, url } = yield* serve("a token of this machine")
      const programs = yield* serve("second")
      assert.strictEqual((yield* ask(`${url}/agents`, { token: "" })).status, 401)
      assert.strictEqual((yield* ask(`${programs.url}/agents`, { token: "second" })).status, 200)
      assert.strictEqual((yield* ask(`${programs.url}/agents`, { token: "secon" })).status, 401)
      const token = Redacted.value(yield* auth.issue ?? Effect.die("no tokens"))
      assert.strictEqual((yield* exchange(url, token)).status, 204)
      assert.strictEqual((yield* exchange(url, token)).status, 401)
      const next = Redacted.value(yield* auth.issue ?? Effect.die("no tokens"))
      assert.strictEqual((yield* exchange(url, next, { origin: "http://evil.test" })).status, 403)
      const opened = yield* exchange(url, next)
      assert.strictEqual(opened.status, 204)
      const cookie = cookieOf(opened)
      const attributes = opened.headers.get("set-cookie") ?? ""
      for (const part of ["HttpOnly", "SameSite=Strict", "Path=/", new URL(url).port]) assert.include(attributes, part)
      const withCookie = (value: string, at = url) => ask(`${at}/agents`, { token: "", headers: { cookie: value } })
      assert.strictEqual((yield* withCookie(cookie)).status, 200)
      for (const forged of [
        cookie.slice(0, -1),
        cookie.replace("=", "=x"),
        `${cookie.split(".")[0]}.`,
        "deepagents-0=x"
      ]) {
        assert.strictEqual((yield* withCookie(forged)).status, 401, forged)
      }
      // Nobody else's token opens anything, and a page's token is no program's.
      for (const wrong of ["", "a token of this machine", next]) {
        assert.strictEqual((yield* exchange(url, wrong)).status, 401)
      }
      assert.strictEqual((yield* ask(`${url}/agents`, { token: next })).status, 401)
    }).pipe(Effect.scoped)
  )

  it.effect("forgets a token of a page after a minute, and knows a session again after a restart", () =>
    Effect.gen(function* () {
      const build = (port: number) =>
        Layer.build(
          Layer.fresh(Server.loopback({ token: Redacted.make("one") })).pipe(
            Layer.provide(
              Layer.succeed(HttpServer.HttpServer, {
                address: NetAddress.inetAddressFromIpStringUnsafe("127.0.0.1", port),
                serve: () => Effect.void
              })
            )
          )
        ).pipe(Effect.map((context) => Context.get(context, Server.Auth)))
      const auth = yield* build(4_000)
      const { exchange, issue } = auth
      if (issue === undefined || exchange === undefined) return assert.fail("no sessions")
      const late = yield* issue
      yield* TestClock.adjust("61 seconds")
      assert.strictEqual((yield* Effect.flip(exchange(late)))._tag, "Unauthorized")
      const { name, value } = yield* exchange(yield* issue)
      const next = yield* build(4_000)
      const request = HttpServerRequest.fromWeb(
        new Request("http://127.0.0.1:4000/", { headers: { cookie: `${name}=${Redacted.value(value)}` } })
      )
      assert.strictEqual((yield* next.authenticate(request)).tenant, "local")
      const longer = value.pipe(Redacted.value, (text) => text.replace(/~[0-9a-z]+/, "~zzzzzzzzz"))
      const forged = HttpServerRequest.fromWeb(
        new Request("http://127.0.0.1:4000/", { headers: { cookie: `${name}=${longer}` } })
      )
      assert.strictEqual((yield* Effect.flip(next.authenticate(forged)))._tag, "Unauthorized")
      yield* TestClock.adjust("30 days")
      assert.strictEqual((yield* Effect.flip(next.authenticate(request)))._tag, "Unauthorized")
    }).pipe(Effect.scoped)
  )

  it.live("is not built where other machines reach it", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Layer.build(Server.loopback().pipe(Layer.provide(nodeServer("0.0.0.0")))))
      assert.strictEqual(error._tag, "NotLoopback")
      assert.match(error.message, /listens on 0\.0\.0\.0/)
    }).pipe(Effect.scoped)
  )

  it.live("serves the files of the page and no others, under a policy", () =>
    Effect.gen(function* () {
      const folder = mkdtempSync(join(tmpdir(), "page-"))
      for (const name of ["index.html", "app-1a.js", "app-1a.css", "secret.txt"])
        writeFileSync(join(folder, name), name)
      const { url } = yield* serve(undefined, folder)
      const get = (path: string) => Effect.promise(() => fetch(url + path))
      const page = yield* get("/")
      assert.strictEqual(yield* Effect.promise(() => page.text()), "index.html")
      assert.match(page.headers.get("content-security-policy") ?? "", /default-src 'none'; script-src 'self'/)
      assert.include((yield* get("/app-1a.js")).headers.get("content-type"), "text/javascript")
      assert.include((yield* get("/app-1a.css")).headers.get("content-type"), "text/css")
      for (const path of ["/secret.txt", "/app-2.js", "/app-..%2Fsecret.txt", "/%2e%2e/secret.txt", "/app-1a.js%00"]) {
        assert.strictEqual((yield* get(path)).status, 404, path)
      }
      const empty = yield* serve(undefined, join(folder, "nothing"))
      const response = yield* Effect.promise(() => fetch(empty.url))
      assert.strictEqual(response.status, 404)
      assert.include(yield* Effect.promise(() => response.text()), "The page is not built")
    }).pipe(Effect.scoped)
  )
})
