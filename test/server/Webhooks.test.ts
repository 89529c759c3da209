/** Webhooks out: each end and each request is told, signed, until it is taken, also by the next process. */
import { createHmac } from "node:crypto"
import { createServer } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Redacted, Schema } from "effect"
import { Agent, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { Server, Webhooks } from "effect-deepagents/server"
import { MemorySessions } from "effect-deepagents/sessions"
import { Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { FetchHttpClient } from "effect/http"

const pay = Tool.make("pay", {
  description: "Pays",
  parameters: { n: Schema.Finite },
  execute: ({ n }) => Effect.succeed(`paid ${n}`)
})
const helper = Agent.make({
  name: "helper",
  prompt: "You help.",
  tools: [pay],
  middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
})
const model = TestChatModel.reactive(({ messages }) => {
  const last = messages.at(-1)
  return last?.role === "human" && JSON.stringify(last.content).includes("pay")
    ? TestChatModel.calls([{ name: "pay", arguments: { n: 7 } }])
    : "The secret word is swordfish."
})

const key = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
const secret = Redacted.make(`whsec_${key}`)

interface Got {
  readonly id: string
  readonly body: string
  readonly isSigned: boolean
}

/** A receiver that takes deliveries while `isUp` says so. */
const receiver = (isUp: () => boolean) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly url: string; readonly got: Array<Got>; readonly close: () => void }>((resume) => {
      const got: Array<Got> = []
      const server = createServer((request, response) => {
        let body = ""
        request.on("data", (chunk) => (body += String(chunk)))
        request.on("end", () => {
          const id = String(request.headers["webhook-id"])
          const time = String(request.headers["webhook-timestamp"])
          const tag = createHmac("sha256", Buffer.from(key, "base64")).update(`${id}.${time}.${body}`).digest("base64")
          if (request.url === "/moved") response.writeHead(307, { location: "/hook" })
          else {
            if (isUp()) got.push({ id, body, isSigned: request.headers["webhook-signature"] === `v1,${tag}` })
            response.writeHead(isUp() ? 204 : 500)
          }
          response.end()
        })
      }).listen(0, "127.0.0.1", () => {
        const address = server.address()
        const port = typeof address === "object" ? address?.port : 0
        resume(Effect.succeed({ url: `http://127.0.0.1:${port}`, got, close: () => server.close() }))
      })
    }),
    ({ close }) => Effect.sync(close)
  )

const build = (options: Webhooks.Options) =>
  Effect.map(
    Layer.build(
      Layer.fresh(
        Server.layer({ helper }).pipe(
          Layer.provide([Webhooks.layer(options).pipe(Layer.provide(FetchHttpClient.layer)), model])
        )
      )
    ),
    (context) => Context.get(context, Server.Runs)
  )

const threadOf = (tenant: string, id: string) =>
  Effect.flatMap(Server.tenant({ tenant, id: "ada", roles: [] }), (own) => own.thread(id))

const until = (isTrue: () => boolean) =>
  Effect.repeat(Effect.delay(Effect.sync(isTrue), "20 millis"), { until: Boolean })

const queued = Effect.flatMap(Storage.Storage, (storage) => storage.table("webhooks").count("queue"))

const services = Layer.mergeAll(MemorySessions.layer, Storage.layerMemory)
const allowPrivate = ["127.0.0.1"]

describe("Webhooks", () => {
  it.live("tell the tenant's endpoint of a request and of an end, signed, without a word of the conversation", () =>
    Effect.gen(function* () {
      const { got, url } = yield* receiver(() => true)
      const runs = yield* build({
        endpoints: [
          { name: "desk", tenant: "acme", url: `${url}/hook`, secret },
          { name: "other", tenant: "other", url: `${url}/other`, secret }
        ],
        allowPrivate
      })
      const thread = yield* threadOf("acme", "t")
      yield* runs.start(thread, { agent: "helper", input: "Please pay.", id: "1" })
      yield* until(() => got.length === 1)
      const { pending } = yield* runs.status(thread)
      yield* runs.decide(
        thread,
        pending.map(({ id }) => ({ _tag: "Approve" as const, id }))
      )
      yield* until(() => got.length === 2)
      assert.isTrue(got.every(({ isSigned }) => isSigned))
      assert.notInclude(JSON.stringify(got), "swordfish")
      const [first, second] = got.map(({ body }) => JSON.parse(body))
      assert.deepStrictEqual(
        [first.type, first.data],
        [
          "approval.needed",
          { thread: "t", input: "1", agent: "helper", requests: [{ id: pending[0]?.id, tool: "pay" }] }
        ]
      )
      assert.deepStrictEqual([second.type, second.data.thread, second.data.outcome], ["run.ended", "t", "completed"])
      while ((yield* queued) > 0) yield* Effect.sleep("10 millis")
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )

  it.live("are kept while the endpoint is down, and sent by the next process", () =>
    Effect.gen(function* () {
      let isUp = false
      const { got, url } = yield* receiver(() => isUp)
      const options = { endpoints: [{ name: "desk", tenant: "acme", url: `${url}/hook`, secret }], allowPrivate }
      const thread = yield* threadOf("acme", "t")
      yield* Effect.scoped(
        Effect.gen(function* () {
          const runs = yield* build(options)
          yield* runs.start(thread, { agent: "helper", input: "Hello.", id: "1" })
          while ((yield* queued) === 0) yield* Effect.sleep("10 millis")
          yield* Effect.sleep("100 millis")
        })
      )
      assert.strictEqual(yield* queued, 1)
      const storage = yield* Storage.Storage
      const [row] = yield* storage.table("webhooks").scan("queue", { limit: 1 })
      const { attempts, next, ...rest } = JSON.parse(row?.value ?? "{}")
      assert.strictEqual(attempts, 1)
      assert.isAtLeast(next, Date.now() + 5_000)
      // Its time has come.
      yield* storage
        .table("webhooks")
        .put("queue", [{ key: row?.key ?? "", value: JSON.stringify({ ...rest, attempts, next: Date.now() }) }])
      isUp = true
      yield* Effect.all([build(options), build(options)], { concurrency: 2 })
      yield* until(() => got.length > 0)
      while ((yield* queued) > 0) yield* Effect.sleep("10 millis")
      yield* Effect.sleep("100 millis")
      assert.lengthOf(got, 1)
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )

  it.live("reach no private address and follow no redirect", () =>
    Effect.gen(function* () {
      const { got, url } = yield* receiver(() => true)
      const attempt = (path: string, more: object) =>
        Effect.gen(function* () {
          const runs = yield* build({
            endpoints: [{ name: path, tenant: "acme", url: `${url}${path}`, secret }],
            ...more
          })
          yield* runs.start(yield* threadOf("acme", path.slice(1)), { agent: "helper", input: "Hello.", id: "1" })
          while ((yield* queued) === 0) yield* Effect.sleep("10 millis")
          yield* Effect.sleep("200 millis")
          assert.strictEqual(yield* queued, 1)
        }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
      yield* attempt("/hook", {})
      yield* attempt("/moved", { allowPrivate })
      assert.deepStrictEqual(got, [])
    }).pipe(Effect.scoped)
  )

  it.effect("refuse secrets that sign nothing, and names twice", () =>
    Effect.gen(function* () {
      const endpoint = { name: "desk", tenant: "acme", url: "https://example.com", secret }
      const short = yield* Effect.flip(build({ endpoints: [{ ...endpoint, secret: Redacted.make("whsec_AAAA") }] }))
      assert.include(short.message, "at least 8 bytes")
      const twice = yield* Effect.flip(build({ endpoints: [endpoint, endpoint] }))
      assert.include(twice.message, "two endpoints")
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )
})
