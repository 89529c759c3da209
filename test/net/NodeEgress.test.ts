import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { type OutgoingHttpHeaders, request } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Sandbox } from "effect-deepagents"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import { Secrets } from "effect-deepagents/net"
import * as NodeEgress from "effect-deepagents/net/NodeEgress"
import * as NodeNetwork from "effect-deepagents/net/NodeNetwork"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { serve } from "./servers.ts"

const value = 'top "secret"/1'

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "egress-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** The script of the command: one request by Node's own fetch, printed. */
const script = `
const [path, header, body] = process.argv.slice(2)
const answer = await fetch(process.env.EGRESS_URL + "/" + path, { method: body === undefined ? "GET" : "POST", headers: header ? { "x-key": header } : {}, body })
console.log(answer.status, await answer.text())
`

const echo = serve((incoming, response, body) => {
  response.end(JSON.stringify({ url: incoming.url, key: incoming.headers["x-key"] ?? "", body }))
})

describe("egress", () => {
  it.live("fills secrets in for commands of a sandbox, which never get them", () =>
    Effect.gen(function* () {
      const server = yield* echo
      const other = yield* echo
      const root = yield* folder
      writeFileSync(join(root, "get.mjs"), script)
      const rules = { allowPrivate: ["127.0.0.1"] }
      const web = Layer.merge(
        NodeNetwork.layer(rules),
        Secrets.layer({ KEY: { value: Redacted.make(value), hosts: [`127.0.0.1:${server.port}`] } })
      )
      yield* Effect.gen(function* () {
        const { env } = yield* NodeEgress.start({ rules })
        yield* Effect.gen(function* () {
          const sandbox = yield* Sandbox.Sandbox
          const node = JSON.stringify(process.execPath)
          const run = (args: string) =>
            Effect.map(sandbox.execute(`env; ${node} get.mjs ${args}`), ({ output }) => output)
          const filled = yield* run(
            `'${server.url}/a?k={{secret:KEY}}&b=1' 'Bearer {{secret:KEY}}' 'body {{secret:KEY}}'`
          )
          const [sent] = server.seen
          // A header is sent as the bytes of its text.
          assert.strictEqual(sent?.body, `body ${value}`)
          assert.strictEqual(new URL(sent?.url ?? "", server.url).searchParams.get("k"), value)
          assert.match(filled, /200 .*\[secret KEY\]/)
          assert.notInclude(filled, "top ")
          const refused = yield* run(`'${other.url}/' 'Bearer {{secret:KEY}}'`)
          assert.match(refused, /403 the secret "KEY" is for 127/)
          assert.match(yield* run(`'http://10.0.0.1/'`), /502 10\.0\.0\.1 is an address of this machine/)
          assert.match(yield* run(`'not-an-address'`), /400 write the whole address/)
          assert.strictEqual(other.seen.length, 0)
        }).pipe(Effect.provide(LocalShell.layer({ root, env: { set: env } })))
      }).pipe(Effect.provide(web))
    })
  )

  it.live("serves clients with its password, and the proxy keeps the rules", () =>
    Effect.gen(function* () {
      const server = yield* echo
      const secret = yield* echo
      const rules = { allowPrivate: [`127.0.0.1:${server.port}`] }
      yield* Effect.gen(function* () {
        const { env, url } = yield* NodeEgress.start({ rules })
        const { origin } = new URL(url)
        const stranger = yield* Effect.promise(() => fetch(`${origin}/guess/${server.url}/`))
        assert.strictEqual(stranger.status, 403)
        const { password, port, username } = new URL(env["HTTP_PROXY"] ?? "")
        const through = (path: string, auth: string | undefined, method = "GET", more: Record<string, string> = {}) =>
          Effect.callback<number>((resume) => {
            const asked = request({
              host: "127.0.0.1",
              port,
              path,
              method,
              headers: {
                ...more,
                ...(auth === undefined
                  ? {}
                  : { "proxy-authorization": `Basic ${Buffer.from(auth).toString("base64")}` })
              }
            })
            asked.on("response", (answer) => resume(Effect.succeed(answer.resume().statusCode ?? 0)))
            asked.on("connect", (answer, socket) => {
              socket.destroy()
              resume(Effect.succeed(answer.statusCode ?? 0))
            })
            asked.on("error", () => resume(Effect.succeed(-1)))
            asked.end()
          })
        const auth = `${username}:${password}`
        assert.strictEqual(yield* through(`${server.url}/`, auth), 200)
        // The judged host is the named one: several may share an address.
        assert.strictEqual(yield* through(`${server.url}/`, auth, "GET", { host: "denied.example" }), 200)
        assert.strictEqual(server.seen.at(-1)?.headers.host, `127.0.0.1:${server.port}`)
        assert.strictEqual(yield* through(`${server.url}/`, undefined), 407)
        assert.strictEqual(yield* through(`${secret.url}/`, auth), 403)
        assert.strictEqual(yield* through(`127.0.0.1:${server.port}`, auth, "CONNECT"), 200)
        assert.strictEqual(yield* through(`127.0.0.1:${secret.port}`, auth, "CONNECT"), 403)
        assert.strictEqual(yield* through(`127.0.0.1:${server.port}`, "a:b", "CONNECT"), 407)
        assert.strictEqual(secret.seen.length, 0)
      }).pipe(Effect.provide(Layer.merge(NodeNetwork.layer(rules), Secrets.layer({}))))
    })
  )

  it.live("fills forms and JSON as their writers encode them, and never reveals a value", () =>
    Effect.gen(function* () {
      const secret = `zoë+&"'`
      const server = yield* echo
      const rules = { allowPrivate: ["127.0.0.1"] }
      yield* Effect.gen(function* () {
        const { url } = yield* NodeEgress.start({ rules })
        const post = (type: string, body: string, query = "") =>
          Effect.promise(async () => {
            const init = { method: "POST", headers: { "content-type": type }, body }
            const text = await (await fetch(`${url}/${server.url}/${query}`, init)).text()
            assert.notMatch(text, /zo(?!\w)|%C3%AB/i)
            return server.seen.at(-1)
          })
        const form = yield* post("application/x-www-form-urlencoded", "a=1&k=%7B%7Bsecret%3AKEY%7D%7D&b=%ff")
        assert.match(form?.body ?? "", /^a=1&k=.*&b=%ff$/)
        assert.strictEqual(new URLSearchParams(form?.body).get("k"), secret)
        const json = yield* post("application/json", '{"k":"é {{secret:KEY}}"}')
        assert.deepStrictEqual(JSON.parse(json?.body ?? ""), { k: `é ${secret}` })
        const asked = yield* post("text/plain", "é {{secret:KEY}}", "?k={{secret:KEY}}")
        assert.strictEqual(asked?.body, `é ${secret}`)
        assert.strictEqual(new URL(asked?.url ?? "", server.url).searchParams.get("k"), secret)
      }).pipe(
        Effect.provide(
          Layer.merge(
            NodeNetwork.layer(rules),
            Secrets.layer({ KEY: { value: Redacted.make(secret), hosts: ["127.0.0.1"] } })
          )
        )
      )
    })
  )

  const body = "GET /own HTTP/1.1\r\nHost: denied.example\r\n\r\n"

  /** Sends requests like programs that build their own, and returns the requests as the server saw them. */
  const sendRaw = (requests: ReadonlyArray<{ readonly method: string; readonly headers: OutgoingHttpHeaders }>) =>
    Effect.gen(function* () {
      const server = yield* echo
      const rules = { allowPrivate: ["127.0.0.1"] }
      const { env } = yield* Effect.provide(
        NodeEgress.start({ rules }),
        Layer.merge(NodeNetwork.layer(rules), Secrets.layer({}))
      )
      const { password, port, username } = new URL(env["HTTP_PROXY"] ?? "")
      const auth = `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`
      for (const { headers, method } of requests) {
        const all = { ...headers, "proxy-authorization": auth }
        yield* Effect.callback<void>((resume) => {
          const asked = request({ host: "127.0.0.1", port, path: `${server.url}/${method}`, method, headers: all })
          asked.on("response", (answer) => answer.resume().on("end", () => resume(Effect.void)))
          asked.on("error", () => resume(Effect.void))
          asked.end(body)
        })
      }
      return server.seen
    })

  it.live("passes on the body of a request with any method, and never as a second request", () =>
    Effect.gen(function* () {
      const methods = ["GET", "DELETE", "OPTIONS", "POST"]
      const seen = yield* sendRaw(methods.map((method) => ({ method, headers: { "transfer-encoding": "chunked" } })))
      assert.deepStrictEqual(
        seen.map((one) => [one.url, one.body]),
        methods.map((method) => [`/${method}`, body])
      )
    })
  )

  it.live("keeps headers of its own connection to itself, but passes on the length of a body", () =>
    Effect.gen(function* () {
      const headers = {
        connection: "close, X-Key, Content-Length",
        "x-key": "for the proxy alone",
        "x-other": "for the server",
        "content-length": body.length
      }
      const seen = yield* sendRaw([{ method: "DELETE", headers }])
      assert.deepStrictEqual(
        seen.map((one) => [one.url, one.body, one.headers["x-key"], one.headers["x-other"]]),
        [["/DELETE", body, undefined, "for the server"]]
      )
    })
  )
})
