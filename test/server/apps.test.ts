/** MCP Apps at the server's door: their owners, their reach, and the gates of their calls. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Scope } from "effect"
import { MemorySessions } from "effect-deepagents/sessions"
import { Storage } from "effect-deepagents/stores"
import { ask, serve } from "./door.ts"
import { makeShop } from "./shop.ts"

const services = Layer.mergeAll(MemorySessions.layer, Storage.layerMemory)

const start = (url: string, id = "1") =>
  Effect.andThen(
    ask(`${url}/threads/t/runs`, { body: { agent: "helper", input: "show", id } }),
    ask(`${url}/threads/t/events`)
  )

/** The id of the call that the model made. */
const callOf = (url: string) =>
  Effect.map(ask(`${url}/threads/t/history`), ({ text }) => /"toolCalls":\[\{"id":"([^"]+)"/u.exec(text)?.[1] ?? "")

const callApp = (url: string, call: string, tool: string, id: string, args: object = {}) =>
  ask(`${url}/threads/t/app`, { body: { call, agent: "helper", tool, arguments: args, id } })

const live = (name: string, test: Effect.Effect<void, unknown, Layer.Success<typeof services> | Scope.Scope>) =>
  it.live(name, () => test.pipe(Effect.scoped, Effect.provide(Layer.fresh(services))), 60_000)

describe("apps of MCP servers", () => {
  live(
    "are there for calls of threads of one's own only, in a frame that reaches what a person allowed",
    Effect.gen(function* () {
      const wanted = [
        "https://api.example.com",
        "http://plain.example.com",
        "https://a.example; script-src *",
        "*",
        "https://*"
      ]
      const { options, requests, runs } = yield* makeShop("<p title='\"&amp;'>Shop</p>", wanted)
      const url = yield* serve(runs, options)
      assert.isTrue((yield* ask(`${url}/agents`)).at("apps"))
      yield* start(url)
      assert.deepStrictEqual((yield* ask(`${url}/threads/t/apps`)).at("tools"), ["shop__show", "other__show"])
      // Tools for interfaces are not for models.
      const offered = requests[0]?.tools.map(({ name }) => name) ?? []
      assert.include(offered, "shop__secret")
      assert.notInclude(offered, "shop__refresh")
      const call = yield* callOf(url)
      const app = yield* ask(`${url}/threads/t/app?call=${call}`)
      assert.deepInclude(app.json, {
        server: "shop",
        tool: "show",
        arguments: { size: 3 },
        origins: ["https://api.example.com"]
      })
      assert.include(String(app.at("result", "text")), "io.modelcontextprotocol/ui")
      const frame = `${url}/threads/t/app/frame?call=${call}`
      const policy = (address: string) =>
        Effect.promise(async () => {
          const response = await fetch(address, { headers: { authorization: "Bearer token-of-ada" } })
          return { text: await response.text(), csp: response.headers.get("content-security-policy") ?? "" }
        })
      const closed = yield* policy(frame)
      // The guard comes before the app.
      assert.match(closed.text, /srcdoc="<!doctype html><script>[^"]*RTCPeerConnection/)
      assert.include(closed.text, `</script><p title='&quot;&amp;amp;'>Shop</p>"`)
      assert.include(closed.csp, "sandbox allow-scripts; default-src 'none'")
      assert.include(closed.csp, "connect-src 'none'; frame-src 'none'")
      assert.notInclude(closed.csp, "example")
      const opened = yield* policy(`${frame}&allow=https://api.example.com&allow=https://evil.example&allow=*`)
      assert.include(opened.csp, "connect-src https://api.example.com;")
      assert.notInclude(opened.csp, "evil")
      assert.notInclude(opened.csp, "*")
      for (const path of ["app?call=none", "app", "app/frame?call=none", `app/frame?call=${call}0`]) {
        assert.strictEqual((yield* ask(`${url}/threads/t/${path}`)).status, 404, path)
      }
      for (const path of [`app?call=${call}`, `app/frame?call=${call}`]) {
        assert.strictEqual((yield* ask(`${url}/threads/t/${path}`, { token: "token-of-eve" })).status, 404, path)
        assert.strictEqual((yield* ask(`${url}/threads/t/${path}`, { token: "" })).status, 401, path)
      }
    })
  )

  for (const [listing, allowed] of [
    ["listed", ["https://api.example.com"]],
    ["endless", []]
  ] as const) {
    live(
      `reach what a later page of their server's list of resources says: ${listing}`,
      Effect.gen(function* () {
        const { options, runs } = yield* makeShop("<p>Shop</p>", ["https://api.example.com"], listing)
        const url = yield* serve(runs, options)
        yield* start(url)
        const app = yield* ask(`${url}/threads/t/app?call=${yield* callOf(url)}`)
        assert.deepStrictEqual([app.status, app.at("origins")], [200, allowed])
      })
    )
  }

  const gated = (isClustered: boolean) =>
    Effect.gen(function* () {
      const { clusteredRuns, options, requests, runs } = yield* makeShop("<p>Shop</p>")
      const url = yield* serve(isClustered ? clusteredRuns : runs, options)
      yield* start(url)
      const call = yield* callOf(url)
      const asked = requests.length
      // It needs no decision, and models don't have it.
      assert.strictEqual((yield* callApp(url, call, "refresh", "a", { at: 1 })).status, 202)
      const first = yield* ask(`${url}/threads/t/events`)
      assert.match(first.text, /"callId":"app:a"[^\n]*refresh/u)
      for (const [tool, from] of [
        ["secret", call],
        ["shop__buy", call],
        ["nothing", call],
        ["buy", "none"],
        ["buy", "app:a"]
      ] as const) {
        assert.strictEqual((yield* callApp(url, from, tool, "b")).status, 404, tool)
      }
      // It needs one, and nothing else of the app may come between.
      assert.strictEqual((yield* callApp(url, call, "buy", "c", { n: 2 })).status, 202)
      yield* ask(`${url}/threads/t/events`)
      const state = yield* ask(`${url}/threads/t/state`)
      assert.strictEqual(state.at("state"), "waiting")
      assert.deepStrictEqual(state.at("pending", 0, "arguments"), { n: 2 })
      assert.strictEqual((yield* callApp(url, call, "refresh", "d")).status, 409)
      const stolen = { call, agent: "helper", tool: "refresh", arguments: {}, id: "e" }
      assert.strictEqual((yield* ask(`${url}/threads/t/app`, { token: "token-of-eve", body: stolen })).status, 404)
      const decisions = [{ _tag: "Approve", id: state.at("pending", 0, "id") }]
      yield* ask(`${url}/threads/t/decisions`, { body: { decisions } })
      yield* ask(`${url}/threads/t/events`)
      const { text } = yield* ask(`${url}/threads/t/history`)
      assert.match(text, /"source":"app:shop"/u)
      assert.match(text, /"toolCallId":"app:c"[^}]*/u)
      assert.include(text, String.raw`{\"tool\":\"buy\",\"arguments\":{\"n\":2}`)
      assert.strictEqual((yield* callApp(url, call, "buy", "e")).status, 202)
      yield* ask(`${url}/threads/t/events`)
      const rejected = [{ _tag: "Reject", id: (yield* ask(`${url}/threads/t/state`)).at("pending", 0, "id") }]
      yield* ask(`${url}/threads/t/decisions`, { body: { decisions: rejected } })
      assert.match((yield* ask(`${url}/threads/t/events`)).text, /app:e.*was refused/u)
      // The model was asked for none of it, and hears of it in its next turn.
      assert.strictEqual(requests.length, asked)
      yield* start(url, "2")
      assert.isTrue(requests.at(-1)?.messages.some(({ role, id }) => role === "tool" && id !== ""))
      assert.notInclude(requests.at(-1)?.tools.map(({ name }) => name) ?? [], "shop__refresh")
    })

  live(
    "have their call done by the next process, when it waits for a decision or was cut off, and without the model",
    Effect.gen(function* () {
      const { options, requests, runs } = yield* makeShop("<p>Shop</p>")
      const [call, asked] = yield* Effect.scoped(
        Effect.gen(function* () {
          const url = yield* serve(runs, options)
          yield* start(url)
          const call = yield* callOf(url)
          assert.strictEqual((yield* callApp(url, call, "buy", "c", { n: 2 })).status, 202)
          yield* ask(`${url}/threads/t/events`)
          return [call, requests.length] as const
        })
      )
      yield* Effect.scoped(
        Effect.gen(function* () {
          const url = yield* serve(runs, options)
          const decisions = [{ _tag: "Approve", id: (yield* ask(`${url}/threads/t/state`)).at("pending", 0, "id") }]
          while ((yield* ask(`${url}/threads/t/decisions`, { body: { decisions } })).status === 503)
            yield* Effect.sleep("50 millis")
          yield* ask(`${url}/threads/t/events`)
          // The next one is cut off at once.
          assert.strictEqual((yield* callApp(url, call, "refresh", "d")).status, 202)
        })
      )
      const url = yield* serve(runs, options)
      while ((yield* ask(`${url}/threads/t/state`)).at("state") !== "idle") yield* Effect.sleep("50 millis")
      const { text } = yield* ask(`${url}/threads/t/history`)
      assert.include(text, String.raw`{\"tool\":\"buy\",\"arguments\":{\"n\":2}`)
      assert.lengthOf(text.match(/"toolCallId":"app:c"/gu) ?? [], 1)
      assert.lengthOf(text.match(/"toolCallId":"app:d"/gu) ?? [], 1)
      assert.strictEqual(requests.length, asked)
    })
  )

  live(
    "are shown by a process that stands by, and their call counts once, at the process that has the mailbox",
    Effect.gen(function* () {
      const { options, requests, runs } = yield* makeShop("<p>Shop</p>")
      const scope = yield* Effect.scope
      const [standby, call, asked] = yield* Effect.scoped(
        Effect.gen(function* () {
          const owner = yield* serve(runs, options)
          yield* start(owner)
          const call = yield* callOf(owner)
          const standby = yield* Scope.provide(serve(runs, options), scope)
          const app = yield* ask(`${standby}/threads/t/app?call=${call}`)
          assert.deepInclude(app.json, { server: "shop", tool: "show", arguments: { size: 3 } })
          assert.strictEqual((yield* ask(`${standby}/threads/t/app/frame?call=${call}`)).status, 200)
          const foreign = yield* ask(`${standby}/threads/t/app?call=${call}`, { token: "token-of-eve" })
          assert.strictEqual(foreign.status, 404)
          const refused = yield* callApp(standby, call, "refresh", "a")
          assert.deepStrictEqual([refused.status, refused.at("code")], [503, "Unavailable"])
          assert.match(refused.header("retry-after") ?? "", /^\d+$/u)
          // The page sends it again, to any of them.
          assert.strictEqual((yield* callApp(owner, call, "refresh", "a")).at("isNew"), true)
          yield* ask(`${owner}/threads/t/events`)
          assert.deepInclude((yield* callApp(standby, call, "refresh", "a")).json, { isNew: false })
          return [standby, call, requests.length] as const
        })
      )
      while ((yield* callApp(standby, call, "refresh", "b")).status === 503) yield* Effect.sleep("50 millis")
      yield* ask(`${standby}/threads/t/events`)
      const { text } = yield* ask(`${standby}/threads/t/history`)
      for (const id of ["a", "b"]) assert.lengthOf(text.match(new RegExp(`"toolCallId":"app:${id}"`, "gu")) ?? [], 1)
      assert.strictEqual(requests.length, asked)
    })
  )

  live("call tools of their own server through the gates of the agent, and the thread tells so", gated(false))
  live("do the same on a cluster", gated(true))
})
