/** Hostile corners of every route: each gets an answer, none is a failure of the server, and none reaches another thread. */
import { request } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Agent } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { Server } from "effect-deepagents/server"
import { MemorySessions } from "effect-deepagents/sessions"
import { Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { ask, readFrames, serve } from "./door.ts"
import { foldFrames, showState } from "./reader.ts"

const helper = Agent.make({ name: "helper", prompt: "" })
const runs = Server.layer({ helper }).pipe(Layer.provide(TestChatModel.reactive(() => "Hello.")))
const services = Layer.mergeAll(MemorySessions.layer, Storage.layerMemory)
const options = {
  protocols: ["aiSdk", "agUi", "openAi", "langGraph", "a2a"],
  files: () => MemoryBackend.make({ files: { "/a.txt": "a" } })
} as const

interface Sent {
  readonly method: string
  /** The path as it is: `fetch` would make it harmless. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** Sends a request, and gives the status of its whole answer; 0 for a connection that broke, or had none in time. */
const send = (url: string, { body, headers = {}, method, path }: Sent): Effect.Effect<number> =>
  Effect.callback((resume) => {
    const { hostname, port } = new URL(url)
    const typed = body === undefined ? {} : { "content-type": "application/json" }
    const all = { authorization: "Bearer token-of-ada", ...typed, ...headers }
    const one = request({ hostname, port, method, path, agent: false, headers: all }, (response) => {
      response.on("close", () => resume(Effect.succeed(response.statusCode ?? 0)))
      response.resume()
    })
    one.on("error", () => resume(Effect.succeed(0)))
    one.setTimeout(20_000, () => one.destroy())
    one.end(body)
  })

const ids = ["..", ".", "%2e%2e", "%00", "a%00b", "%ED%A0%80", "%", "%zz", "a%2f..%2fb", "__proto__", "a%0d%0ab", "%20"]

/** Bodies of no form, of the form of a protocol with hostile values, and with keys that are none of an object's own. */
const bodies = [
  "null",
  "[]",
  "1",
  "{",
  "",
  "\u0000",
  '{"__proto__":{"polluted":1}}',
  '{"constructor":{"prototype":{"polluted":1}}}',
  `${"[".repeat(5_000)}${"]".repeat(5_000)}`,
  `${'{"a":'.repeat(300)}1${"}".repeat(300)}`,
  '{"agent":"helper","agent":"__proto__","input":"x"}',
  '{"agent":"constructor","input":"x"}',
  '{"agent":"helper","input":"x","id":"\\ud800"}',
  '{"agent":"helper","input":"\\ud800 \\u0000","id":"half"}',
  '{"agent":"helper","input":{"content":[{"type":"text","text":"x","__proto__":{"polluted":1}}]},"id":"keys"}',
  '{"entry":"\\u0000"}',
  '{"entry":"__proto__"}',
  '{"decisions":[{"_tag":"Edit","id":"__proto__","arguments":{"__proto__":{"polluted":1}}}]}',
  '{"threadId":"\\ud800","runId":"r","messages":[{"id":"m","role":"user","content":"x"}]}',
  '{"threadId":"t","runId":"\\ud800","messages":[{"id":"\\ud800","role":"user","content":"x"}]}',
  '{"threadId":"t","runId":"r","messages":[],"resume":[{"interruptId":"__proto__","status":"resolved"}]}',
  '{"id":"\\u0000","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"x"}]}]}',
  '{"id":"t","messages":[{"id":"\\ud800","role":"user","parts":[{"type":"text","text":"x"}]}]}',
  '{"model":"helper","input":"x","conversation":"\\ud800"}',
  '{"model":"__proto__","input":"x"}',
  '{"model":"helper","input":"x","previous_response_id":"resp_../.."}',
  '{"assistant_id":"__proto__","input":{"messages":[{"role":"user","content":"x"}]}}',
  '{"assistant_id":"helper","command":{"resume":{"__proto__":true}}}',
  '{"thread_id":"\\ud800"}',
  '{"metadata":{"__proto__":{"polluted":1}},"limit":1000,"offset":1000}',
  '{"jsonrpc":"2.0","id":1,"method":"__proto__"}',
  '{"jsonrpc":"2.0","id":"\\ud800","method":"GetTask","params":{"id":"..."}}',
  '{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"\\ud800","contextId":"\\u0000","role":"ROLE_USER","parts":[{"text":"x"}]}}}',
  '{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"pageSize":-1,"pageToken":"\\ud800","contextId":"__proto__"}}',
  '[{"jsonrpc":"2.0","id":1,"method":"GetTask"}]'
]

const queries = [
  "after=999999999999.zz.s.999999999999",
  "after=%00",
  "cursor=%00",
  "cursor=__proto__",
  "before=%ED%A0%80",
  "limit=-1&limit=1e309",
  "search=%22",
  "search=NEAR(%22a",
  "search=%ED%A0%80%00",
  "with=%00",
  "path=%00",
  "path=../../etc/passwd",
  "path=%ED%A0%80&line=1e99&column=-1",
  "agent=__proto__",
  "stream=true&starting_after=999999999",
  "stream_mode=__proto__",
  "__proto__=x&a[__proto__]=x"
]

const heads: ReadonlyArray<Readonly<Record<string, string>>> = [
  { range: "bytes=0-1" },
  { "content-encoding": "gzip" },
  { "last-event-id": "999999999999.zz.s.999999999999" },
  { "last-event-id": "\u00ff" },
  { "x-thread": "\u00ff" },
  { expect: "nothing" }
]

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null

/** The requests of a route. */
const requestsOf = (path: string, methods: ReadonlyArray<string>): ReadonlyArray<Sent> => {
  const withId = (id: string) => path.replaceAll(/\{\w+\}/g, id)
  const own = withId("t")
  return [
    ...["HEAD", "OPTIONS", "PUT", "TRACE"].map((method) => ({ method, path: own })),
    ...methods.flatMap((method): ReadonlyArray<Sent> => {
      const body = method === "GET" ? {} : { body: "{}" }
      return [
        ...(own === path ? [] : ids.map((id) => ({ method, path: withId(id), ...body }))),
        ...(method === "POST" ? bodies.map((one) => ({ method, path: own, body: one })) : []),
        ...(method === "GET" ? queries.map((query) => ({ method, path: `${own}?${query}` })) : []),
        ...heads.map((headers) => ({ method, path: own, headers, ...body }))
      ]
    })
  ]
}

describe("hostile requests", () => {
  it.live(
    "get an answer on every route, which is no failure of the server, and leave nothing to others",
    () =>
      Effect.gen(function* () {
        const url = yield* serve(runs, options)
        yield* ask(`${url}/threads/t/runs`, { body: { agent: "helper", input: "x" } })
        yield* ask(`${url}/threads/t/events`)
        const paths = (yield* ask(`${url}/openapi.json`)).at("paths")
        const routes = isRecord(paths) ? Object.entries(paths) : []
        const requests = routes.flatMap(([path, methods]) =>
          requestsOf(path, isRecord(methods) ? Object.keys(methods).map((one) => one.toUpperCase()) : [])
        )
        assert.isAbove(requests.length, 1_000)
        const failed = yield* Effect.forEach(
          requests,
          (one) => Effect.map(send(url, one), (status) => (status >= 200 && status < 500 ? [] : [{ status, ...one }])),
          { concurrency: 8 }
        )
        assert.deepStrictEqual(failed.flat(), [])
        assert.notProperty({}, "polluted")
        assert.strictEqual((yield* ask(`${url}/threads`, { token: "token-of-eve" })).at("threads", "length"), 0)
        const large = { method: "GET", path: "/threads", headers: { "x-large": "x".repeat(1 << 20) } }
        assert.oneOf(yield* send(url, large), [0, 431])
        assert.strictEqual((yield* ask(`${url}/health`)).status, 200)
      }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services))),
    120_000
  )

  it.live("by positions of other threads, of other tenants and of the future tell the thread from its beginning", () =>
    Effect.gen(function* () {
      const url = yield* serve(runs, options)
      const begin = (thread: string, inputs: ReadonlyArray<string>, token: string) =>
        Effect.forEach(inputs, (input) =>
          Effect.andThen(
            ask(`${url}/threads/${thread}/runs`, { token, body: { agent: "helper", input } }),
            ask(`${url}/threads/${thread}/events`, { token })
          )
        )
      yield* begin("t", ["One", "Two"], "token-of-ada")
      yield* begin("other", ["Three", "Four"], "token-of-ada")
      yield* begin("t", ["Secret", "Secret"], "token-of-eve")
      const readThread = (thread: string, after?: string, token = "token-of-ada") =>
        Effect.map(readFrames(`${url}/threads/${thread}/events`, { token, after }), ({ frames }) => frames)
      const whole = showState(foldFrames(yield* readThread("t")))
      const foreign = [...(yield* readThread("other")), ...(yield* readThread("t", undefined, "token-of-eve"))]
      const positions = [...foreign.map(({ position }) => String(position)), "999999999999.zz.s.999999999999"]
      for (const after of new Set(positions)) {
        assert.deepStrictEqual(showState(foldFrames(yield* readThread("t", after))), whole, after)
      }
      // Entries of others are no place in the thread.
      const entry = (yield* ask(`${url}/threads/other/history`)).at("messages", 1, "entry")
      for (const path of ["fork", "rewind"]) {
        const refused = yield* ask(`${url}/threads/t/${path}`, { body: { entry } })
        assert.strictEqual(refused.status, 400, path)
      }
      assert.strictEqual((yield* ask(`${url}/threads/t/history?before=${String(entry)}`)).status, 400)
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )
})
