import { assert, describe, it } from "@effect/vitest"
import { Agent, Approval, Tool, ToolOutput } from "effect-deepagents"
import { Secrets } from "effect-deepagents/net"
import * as NodeNetwork from "effect-deepagents/net/NodeNetwork"
import { TestChatModel } from "effect-deepagents/testing"
import { HttpRequest } from "effect-deepagents/web"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as Tracer from "effect/Tracer"
import { serve } from "../net/servers.ts"

const value = 'top "secret"/1'
const tool = HttpRequest.make()

const approvals = Layer.succeed(Approval.Approvals, { decide: (request) => Effect.succeed(Approval.approve(request)) })

const webFor = (host: string) =>
  Layer.mergeAll(
    approvals,
    NodeNetwork.layer({ allowPrivate: ["127.0.0.1"] }),
    Secrets.layer({ KEY: { value: Redacted.make(value), hosts: [host] } })
  )

/** Says what it was asked, as services for testing do. */
const echo = serve((request, response, body) => {
  response.setHeader("x-other", "1")
  if (request.url === "/away") response.writeHead(302, { location: "http://localhost:1/" })
  response.end(JSON.stringify({ url: request.url, method: request.method, headers: request.headers, body }))
})

describe("http_request", () => {
  it.effect("sends methods, headers, parameters and bodies", () =>
    Effect.gen(function* () {
      const server = yield* echo
      const text = yield* Effect.map(
        Tool.run(tool, {
          url: `${server.url}/a?x=1`,
          method: "PUT",
          headers: { "X-Own": "2" },
          params: { y: "a b", z: 3 },
          body: { deep: [1] }
        }),
        ToolOutput.text
      ).pipe(Effect.provide(webFor("none.test")))
      const [sent] = server.seen
      assert.strictEqual(sent?.url, "/a?x=1&y=a+b&z=3")
      assert.strictEqual(sent?.method, "PUT")
      assert.strictEqual(sent?.body, '{"deep":[1]}')
      assert.deepInclude(sent?.headers, { "x-own": "2", "content-type": "application/json" })
      assert.match(text, /^Status 200[^]*\n> \{"url"/)
    })
  )

  it.effect("sends a non-text address as it is, and refuses an address with a secret", () =>
    Effect.gen(function* () {
      const server = yield* echo
      const run = (url: string) => Effect.provide(Tool.run(tool, { url }), webFor("none.test"))
      yield* run(`${server.url}/%ff%`)
      assert.strictEqual(server.seen[0]?.url, "/%ff%")
      for (const mark of ["{{secret:KEY}}", "%7B%7Bsecret%3AKEY%7D%7D", "{{%73ecret:KEY}}"]) {
        assert.match((yield* Effect.flip(run(`${server.url}/${mark}`))).message, /may not be a part of url/)
      }
    })
  )

  it.effect("refuses unsendable headers by name, and leaves headers of the connection to the client", () =>
    Effect.gen(function* () {
      const server = yield* echo
      const run = (headers: Record<string, string>) =>
        Effect.provide(Tool.run(tool, { url: server.url, method: "POST", headers, body: "hello" }), webFor("none.test"))
      for (const [name, given] of [
        ["x-a", "a\r\nx-evil: 1"],
        ["x-a", "日本"],
        ["x a", "1"],
        ["", "1"]
      ] as const) {
        const { message } = yield* Effect.flip(run({ [name]: given }))
        assert.match(message, /the header x-a has|is no name of a header/)
        assert.notInclude(message, "evil")
      }
      assert.lengthOf(server.seen, 0)
      yield* run({ "Transfer-Encoding": "chunked", "content-length": "3", expect: "100-continue", Host: "evil.test" })
      const [sent] = server.seen
      assert.strictEqual(sent?.body, "hello")
      assert.deepInclude(sent?.headers, { "content-length": "5", host: `127.0.0.1:${server.port}` })
    })
  )

  it.effect("a redirect takes no secret, cookie or body along to another origin", () =>
    Effect.gen(function* () {
      const other = yield* echo
      const server = yield* serve((request, response) => {
        const status = Number(request.url?.slice(1, 4))
        response.writeHead(status, { location: `http://localhost:${other.port}/there`, "set-cookie": "sid=1" }).end()
      })
      const web = Layer.mergeAll(
        approvals,
        NodeNetwork.layer({ allowPrivate: ["127.0.0.1", "localhost"] }),
        Secrets.layer({ KEY: { value: Redacted.make(value), hosts: [`127.0.0.1:${server.port}`] } })
      )
      for (const status of [301, 302, 303, 307, 308]) {
        for (const method of ["GET", "POST"] as const) {
          yield* Tool.run(tool, {
            url: `${server.url}/${status}`,
            method,
            headers: { "x-key": "{{secret:KEY}}", cookie: "a=b", authorization: "Bearer {{secret:KEY}}" },
            params: { key: "{{secret:KEY}}" },
            ...(method === "POST" ? { body: { key: "{{secret:KEY}}" } } : {})
          }).pipe(Effect.exit, Effect.provide(web))
        }
      }
      assert.isAtLeast(other.seen.length, 5)
      assert.deepStrictEqual(
        [...new Set(other.seen.map(({ body, method, url }) => `${method} ${url} ${body}`))],
        ["GET /there "]
      )
      for (const { headers } of other.seen) {
        for (const name of ["x-key", "cookie", "authorization"]) assert.notProperty(headers, name)
      }
    })
  )

  it.effect("a redirect takes no secret along in a header that would go on without one", () =>
    Effect.gen(function* () {
      const other = yield* echo
      const server = yield* serve((_, response) => response.writeHead(302, { location: `${other.url}/` }).end())
      const web = Layer.mergeAll(
        approvals,
        NodeNetwork.layer({ allowPrivate: ["127.0.0.1"], keepHeaders: ["x-kept"] }),
        Secrets.layer({ KEY: { value: Redacted.make(value), hosts: [`127.0.0.1:${server.port}`] } })
      )
      yield* Tool.run(tool, {
        url: server.url,
        headers: {
          "User-Agent": "{{secret:KEY}}",
          "accept-language": "de {{secret:KEY}}",
          "x-kept": "{{secret:KEY}}",
          accept: "a/b"
        }
      }).pipe(Effect.provide(web))
      assert.strictEqual(server.seen[0]?.headers["user-agent"], value)
      assert.strictEqual(server.seen[0]?.headers["x-kept"], value)
      const [hop] = other.seen
      assert.strictEqual(hop?.headers.accept, "a/b")
      assert.notInclude(JSON.stringify(hop), "top ")
    })
  )

  it.effect("fills secrets in on the way out, and removes them from answers", () =>
    Effect.gen(function* () {
      const server = yield* echo
      const output = yield* Tool.run(tool, {
        url: server.url,
        method: "POST",
        headers: { "x-api-key": "{{secret:KEY}}" },
        params: { key: "{{ secret:KEY }}" },
        body: "key={{secret:KEY}}"
      }).pipe(Effect.provide(webFor(`127.0.0.1:${server.port}`)))
      const [sent] = server.seen
      assert.strictEqual(sent?.headers["x-api-key"], value)
      assert.strictEqual(sent?.body, `key=${value}`)
      assert.strictEqual(new URL(sent?.url ?? "", server.url).searchParams.get("key"), value)
      const text = JSON.stringify(output)
      assert.include(text, "[secret KEY]")
      assert.notInclude(text, "top ")
      assert.notInclude(text, "top+")
    })
  )

  it.effect("fills a secret into JSON as JSON", () =>
    Effect.gen(function* () {
      const server = yield* echo
      yield* Tool.run(tool, { url: server.url, method: "POST", body: { key: "a {{secret:KEY}}" } }).pipe(
        Effect.provide(webFor("127.0.0.1"))
      )
      assert.deepStrictEqual(JSON.parse(server.seen[0]?.body ?? ""), { key: `a ${value}` })
    })
  )

  it.effect("fills a secret into a text as its type has it, and shows it in none", () =>
    Effect.gen(function* () {
      const secret = `a+b&c="d'%é\\`
      const server = yield* echo
      const send = (type: string, body: string) =>
        Effect.map(
          Tool.run(tool, { url: server.url, method: "POST", headers: { "Content-Type": type }, body }),
          (output) => {
            assert.notMatch(ToolOutput.text(output), /a\+b|a%2[Bb]|d'|d&|d%/)
            return server.seen.at(-1)?.body ?? ""
          }
        ).pipe(
          Effect.provide(
            Layer.mergeAll(
              approvals,
              NodeNetwork.layer({ allowPrivate: ["127.0.0.1"] }),
              Secrets.layer({ KEY: { value: Redacted.make(secret), hosts: ["127.0.0.1"] } })
            )
          )
        )
      const form = "application/x-www-form-urlencoded; charset=utf-8"
      for (const asked of ["{{secret:KEY}}", "%7B%7Bsecret%3AKEY%7D%7D", "{{+Secret%3a+KEY}}"]) {
        const sent = yield* send(form, `x=%ff&key=${asked}&z=1=2`)
        assert.strictEqual(new URLSearchParams(sent).get("key"), secret)
        assert.isTrue(sent.startsWith("x=%ff&key=") && sent.endsWith("&z=1=2"), sent)
      }
      const json = yield* send("application/vnd.api+json", '{"key":"{{secret:KEY}}"}')
      assert.deepStrictEqual(JSON.parse(json), { key: secret })
      assert.strictEqual(yield* send("text/plain", "{{secret:KEY}}"), secret)
    })
  )

  it.effect("shows no secret that the host sends unasked, in any encoding or inside of another secret", () =>
    Effect.gen(function* () {
      const values = { SHORT: "s3cr/t&", LONG: "s3cr/t&longer=", ODD: `s3cr'é"\\&`, OTHER: "for another host" }
      const server = yield* serve((_, response) => {
        const ways = Object.values(values).flatMap((secret) => [
          secret,
          JSON.stringify(secret).replaceAll("/", "\\/"),
          encodeURIComponent(secret).toLowerCase(),
          JSON.stringify(secret).replaceAll("&", "\\u0026"),
          JSON.stringify(secret).replaceAll("é", "\\u00e9").replaceAll("/", "\\/"),
          JSON.stringify(JSON.stringify(secret)),
          encodeURIComponent(secret).replaceAll("'", "%27"),
          secret.replaceAll("&", "&amp;").replaceAll("'", "&#39;"),
          secret.replaceAll("&", "&amp;").replaceAll("'", "&#x27;").replaceAll('"', "&#34;"),
          secret.replaceAll("&", "&amp;"),
          Buffer.from(secret).toString("base64")
        ])
        response.end(ways.join("\n"))
      })
      const text = yield* Effect.map(Tool.run(tool, { url: server.url }), ToolOutput.text).pipe(
        Effect.provide(
          Layer.mergeAll(
            approvals,
            NodeNetwork.layer({ allowPrivate: ["127.0.0.1"] }),
            Secrets.layer({
              SHORT: { value: Redacted.make(values.SHORT), hosts: ["127.0.0.1"] },
              LONG: { value: Redacted.make(values.LONG), hosts: ["127.0.0.1"] },
              ODD: { value: Redacted.make(values.ODD), hosts: ["127.0.0.1"] },
              OTHER: { value: Redacted.make(values.OTHER), hosts: ["api.example.com"] }
            })
          )
        )
      )
      for (const part of ["s3cr", "longer", "czNjc", "S3CR"]) assert.notInclude(text, part)
      assert.include(text, "for another host")
    })
  )

  it.effect("shows no beginning of a secret where an answer is cut off", () =>
    Effect.gen(function* () {
      const server = yield* serve((request, response) => response.end(`key: ${String(request.headers["x-key"])}`))
      const short = HttpRequest.make({ maxBytes: 15 })
      const args = { url: server.url, headers: { "x-key": "{{secret:KEY}}" } }
      const output = yield* Effect.provide(Tool.run(short, args), webFor("127.0.0.1"))
      assert.include(ToolOutput.text(output), "the first 15 bytes")
      assert.notInclude(ToolOutput.text(output), "top")
    })
  )

  it.effect.each([
    [{ method: "GET" }, false],
    [{ headers: { accept: "a/b" } }, false],
    [{ method: "HEAD" }, false],
    [{ method: "DELETE" }, true],
    [{ method: "GET", headers: { "X-HTTP-Method-Override": "DELETE" } }, true],
    [{ headers: { "x-method-override": "PUT" } }, true]
  ] as const)("asks where a request may change something, by whichever way it says so: %j", ([args, expected]) =>
    Effect.gen(function* () {
      const prepared = tool.prepare({ url: "https://api.example.com/", ...args })
      const one = yield* Effect.isEffect(prepared) ? prepared : Effect.fromResult(prepared)
      const asks = yield* one.needsApproval ?? Effect.succeed(true)
      assert.strictEqual(asks, expected)
    }).pipe(Effect.provide(webFor("api.example.com")))
  )

  it.effect("gives a secret to no other host, by no other way, and no name away", () =>
    Effect.gen(function* () {
      const server = yield* echo
      const run = (args: Parameters<typeof Tool.run>[1], host = `127.0.0.1:${server.port}`) =>
        Effect.map(Effect.flip(Effect.provide(Tool.run(tool, args), webFor(host))), ({ message }) => message)
      const headers = { authorization: "Bearer {{secret:KEY}}" }
      assert.match(yield* run({ url: server.url, headers }, "api.example.com"), /is for api.example.com, not for 127/)
      assert.match(yield* run({ url: server.url, headers }, `127.0.0.1:${server.port + 1}`), /not for 127/)
      assert.match(yield* run({ url: server.url, headers: { a: "{{secret:NO}}" } }), /no secret "NO"; there is KEY/)
      assert.match(yield* run({ url: `${server.url}/{{secret:KEY}}` }), /may not be a part of url/)
      assert.match(yield* run({ url: `${server.url}/%7B%7Bsecret%3AKEY%7D%7D` }), /may not be a part of url/)
      assert.match(yield* run({ url: "http://api.example.com/", headers }, "api.example.com"), /https only/)
      const refused = yield* run({ url: `${server.url}/away`, headers })
      assert.match(refused, /localhost/)
      assert.strictEqual(server.seen.length, 1)
    })
  )

  it.effect("shows a secret in no case, encoding or order, alone or within base64, and not in parts by a range", () =>
    Effect.gen(function* () {
      const secret = "Tk-9f3a77QzR.51/b"
      const percentAll = Buffer.from(secret).toString("hex").replaceAll(/../g, "%$&")
      const echoed = [
        secret.toUpperCase(),
        secret.toLowerCase(),
        [...secret].toReversed().join(""),
        Buffer.from(secret).toString("hex"),
        Buffer.from(secret).toString("hex").toUpperCase(),
        Buffer.from(secret).toString("base64"),
        Buffer.from(secret).toString("base64url"),
        percentAll,
        encodeURIComponent(secret).toLowerCase()
      ]
      const within = ["", "u:", "me:"].map((user) => Buffer.from(`${user}${secret}:${user}`).toString("base64"))
      const server = yield* serve((_, response) => response.end([...echoed, ...within].join("\n")))
      const run = (headers: Record<string, string>) =>
        Effect.provide(
          Tool.run(tool, { url: server.url, headers }),
          Layer.mergeAll(
            approvals,
            NodeNetwork.layer({ allowPrivate: ["127.0.0.1"] }),
            Secrets.layer({ KEY: { value: Redacted.make(secret), hosts: ["127.0.0.1"] } })
          )
        )
      const lines = ToolOutput.text(yield* run({ "x-key": "{{secret:KEY}}" }))
        .split("\n")
        .filter((line) => line.includes("[secret KEY]"))
      assert.deepStrictEqual(
        lines.slice(0, echoed.length),
        echoed.map(() => "> [secret KEY]")
      )
      assert.strictEqual(lines.length, echoed.length + within.length)
      // No digit of base64 that the value alone decides is left.
      assert.isTrue(lines.slice(echoed.length).every((line) => line.replace("[secret KEY]", "").length <= 14))
      const refused = yield* Effect.flip(run({ "x-key": "{{secret:KEY}}", Range: "bytes=0-5" }))
      assert.match(refused.message, /range is not sent to a host that a secret is for/)
      assert.match((yield* Effect.flip(run({ range: "bytes=0-5" }))).message, /range is not sent/)
      assert.strictEqual(server.seen.length, 1)
    })
  )

  it.effect("shows a secret in no transcript, event, log or span", () =>
    Effect.gen(function* () {
      const server = yield* echo
      const seen: Array<unknown> = []
      const tracer = Tracer.make({
        span: (options) => {
          const span = new Tracer.NativeSpan(options)
          seen.push(span.attributes, span.name)
          return span
        }
      })
      const logger = Logger.make((options) => seen.push(options))
      const model = TestChatModel.script([
        TestChatModel.calls([
          {
            name: "http_request",
            arguments: {
              url: server.url,
              method: "POST",
              headers: { "x-token": "{{secret:KEY}}" },
              params: { k: "{{secret:KEY}}" },
              body: "{{secret:KEY}}"
            }
          },
          { name: "http_request", arguments: { url: "http://127.0.0.1:1/", headers: { "x-token": "{{secret:KEY}}" } } }
        ]),
        "done"
      ])
      const agent = Agent.make({ name: "a", prompt: "p", tools: [tool] })
      const asked: Array<unknown> = []
      const asking = Layer.succeed(Approval.Approvals, {
        decide: (request) =>
          Effect.sync(() => {
            asked.push(request)
            return Approval.approve(request)
          })
      })
      const exit = yield* Stream.runCollect(Agent.stream(agent, "go")).pipe(
        Effect.provide([asking, model]),
        Effect.provide(webFor("127.0.0.1")),
        Effect.withTracer(tracer),
        Effect.provide(Logger.layer([logger])),
        Effect.exit
      )
      assert.isTrue(Exit.isSuccess(exit), String(exit))
      assert.strictEqual(server.seen[0]?.headers["x-token"], value)
      const all = JSON.stringify([exit, asked, seen.map((one) => (one instanceof Map ? [...one] : String(one)))])
      assert.include(all, "{{secret:KEY}}")
      assert.notInclude(all, "top ")
      assert.notInclude(all, "top+")
      assert.notInclude(all, "top%20")
    })
  )
})
