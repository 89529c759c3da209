/** The client of a server: its transcript after cuts, and its treatment of a hostile server's answers. */
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http"
import { createServer as createSecureServer } from "node:https"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted, Schema, Stream } from "effect"
import { Agent, Approval, Message, Tool } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { Server, ServerClient } from "effect-deepagents/server"
import { MemorySessions } from "effect-deepagents/sessions"
import { Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { Transcript } from "effect-deepagents/view"
import { FetchHttpClient } from "effect/http"
import { isFull } from "../scale.ts"
import { serve } from "./door.ts"

const pay = Tool.make("pay", {
  description: "Pays",
  parameters: { n: Schema.Finite },
  execute: ({ n }) => Effect.succeed(`paid ${n}`)
})
const note = Tool.make("note", {
  description: "Notes",
  parameters: { n: Schema.Finite },
  annotations: { idempotent: true },
  execute: ({ n }) => Effect.succeed(`noted ${n}`)
})
const helper = Agent.make({
  name: "helper",
  prompt: "You help.",
  tools: [pay, note],
  middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
})

const model = TestChatModel.reactive(({ messages }) => {
  const round = messages.filter(({ role }) => role === "ai").length
  const options = { text: `This is **round** ${round}.\n\nIt has two paragraphs.`, chunkSize: 6 }
  return round < 3
    ? TestChatModel.calls([{ name: round === 1 ? "pay" : "note", arguments: { n: round } }], options)
    : TestChatModel.text("That is all of it.", { chunkSize: 6 })
})

const runs = Server.layer({ helper }).pipe(Layer.provide(model))
const services = Layer.mergeAll(MemorySessions.layer, Storage.layerMemory, FetchHttpClient.layer)

const connect = (url: string, token = "token-of-ada") => ServerClient.make({ url, token: Redacted.make(token) })

/** The content of a transcript, without the live reader's additions. */
const showMoment = ({ count, items, requests, view }: Transcript.Moment) => ({
  parts: items.slice(0, count).flatMap(({ part }) => {
    if (part.kind === "tool") return [`${part.name} ${part.output}`]
    if (part.kind === "text") return [part.markdown]
    if (part.kind === "user") return [part.text]
    if (part.kind === "decision") return [`${part.toolName} ${part.decision}`]
    return part.kind === "turnEnd" && part.stopReason !== "suspended" ? [part.stopReason] : []
  }),
  pending: [...requests.keys()],
  status: view.status
})

/** Reads with a reader of its own until a moment. */
const readUntil = Effect.fnUntraced(function* (
  client: ServerClient.ServerClient,
  isEnough: (moment: Transcript.Moment) => boolean,
  reader = Transcript.makeReader()
) {
  yield* client
    .observe("t", { follow: true })
    .pipe(Stream.runForEachWhile((frame) => Effect.sync(() => !isEnough(reader.read(frame)))))
  return reader
})

const isDone = ({ items }: Transcript.Moment) =>
  items.some(({ part }) => part.kind === "turnEnd" && part.stopReason === "completed")

/** Cuts connections of events behind some bytes: each next one is longer. */
const cutting = (target: string, step: number) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      let most = step
      const paths: Array<string> = []
      const pass = async (request: IncomingMessage, response: ServerResponse) => {
        paths.push(request.url ?? "")
        const abort = new AbortController()
        response.on("close", () => abort.abort())
        const headers = { authorization: request.headers.authorization ?? "" }
        const answer = await fetch(`${target}${request.url}`, { headers, signal: abort.signal })
        response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" })
        let left = most
        for await (const bytes of answer.body ?? []) {
          response.write(bytes.subarray(0, left))
          left -= bytes.length
          if (left <= 0) break
        }
        most += step
        // The bytes before the cut arrive.
        setTimeout(() => response.destroy(), 50)
      }
      const server = createServer((request, response) => void pass(request, response).catch(() => response.destroy()))
      await new Promise<void>((done) => server.listen(0, "127.0.0.1", () => done()))
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      return { url: `http://127.0.0.1:${port}`, paths, server }
    }),
    ({ server }) =>
      Effect.sync(() => {
        server.closeAllConnections()
        server.close()
      })
  )

describe("stored messages", () => {
  it.live("are read page by page, and threads go back and into copies by their entries, for their tenant alone", () =>
    Effect.gen(function* () {
      const plain = Agent.make({ name: "helper", prompt: "" })
      const greeting = Server.layer({ helper: plain }).pipe(Layer.provide(TestChatModel.reactive(() => "Hello.")))
      const url = yield* serve(greeting, { files: () => MemoryBackend.make({ files: { "/a b.txt": "of acme" } }) })
      const [ada, eve] = [yield* connect(url), yield* connect(url, "token-of-eve")]
      for (const input of ["One", "Two"]) {
        yield* ada.start("t", { agent: "helper", input })
        yield* Stream.runDrain(ada.observe("t"))
      }
      const wordsOf = ({ messages }: ServerClient.History) =>
        messages.map(({ message }) => (message === undefined ? "" : Message.text(message)))
      const last = yield* ada.history("t", { limit: 3 })
      assert.deepStrictEqual(wordsOf(last), ["Hello.", "Two", "Hello."])
      const first = yield* ada.history("t", { before: last.next })
      assert.deepStrictEqual([wordsOf(first), first.next], [["One"], undefined])
      const end = last.messages[0]?.entry ?? ""
      const copy = yield* ada.fork("t", end)
      assert.deepStrictEqual(wordsOf(yield* ada.history(copy)), ["One", "Hello."])
      assert.deepStrictEqual(wordsOf(yield* ada.history(yield* ada.fork("t"))), ["One", "Hello.", "Two", "Hello."])
      for (const foreign of [eve.history("t"), eve.fork("t"), eve.rewind("t", null)]) {
        assert.deepInclude(yield* Effect.flip(foreign), { reason: "Refused", status: 404 })
      }
      assert.isUndefined(yield* eve.file("t", "/a b.txt"))
      assert.strictEqual(new TextDecoder().decode(yield* ada.file("t", "/a b.txt")), "of acme")
      assert.isUndefined(yield* ada.file("t", "/none"))
      assert.deepInclude(yield* Effect.flip(ada.file("t", "/../a b.txt")), { reason: "Refused", status: 400 })
      yield* ada.rewind("t", end)
      assert.deepStrictEqual(wordsOf(yield* ada.history("t")), ["One", "Hello."])
      yield* ada.rewind("t", null)
      assert.deepStrictEqual(wordsOf(yield* ada.history("t")), [])
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )
})

describe("the client of a server", () => {
  it.live("has behind each cut what an uncut one has, and decides a request once with another one", () =>
    Effect.gen(function* () {
      const url = yield* serve(runs)
      const [ada, bob] = [yield* connect(url), yield* connect(url)]
      assert.deepStrictEqual(yield* ada.offers, { agents: [{ name: "helper" }] })
      const input = { agent: "helper", input: "go", id: "1" }
      assert.isTrue((yield* ada.start("t", input)).isNew)
      assert.isFalse((yield* ada.start("t", input)).isNew)
      const waiting = yield* readUntil(ada, ({ requests }) => requests.size === 1)
      const [request] = waiting.now().requests.values()
      if (request === undefined) return assert.fail("no request")
      yield* Effect.andThen(Effect.sleep("50 millis"), ada.status("t")).pipe(
        Effect.repeat({ until: ({ state }) => state === "waiting" })
      )
      const watching = yield* Effect.forkChild(readUntil(bob, isDone))
      // Both press the key at the same time.
      const decided = yield* Effect.all(
        [ada.decide("t", [Approval.approve(request)]), bob.decide("t", [Approval.reject(request)])],
        { concurrency: 2 }
      )
      assert.strictEqual(decided.filter(({ isNew }) => isNew).length, 1)
      yield* Fiber.join(watching)
      const whole = showMoment((yield* readUntil(ada, isDone)).now())
      assert.strictEqual(whole.parts.filter((part) => /^pay (?:approve|reject)$/.test(part)).length, 1)
      assert.strictEqual(whole.parts.at(-1), "completed")
      assert.deepStrictEqual(whole.pending, [])
      const frames = yield* Stream.runCollect(ada.observe("t"))
      for (const [index, { position: after }] of frames.entries()) {
        if (!isFull && index % 4 !== 0) continue
        const reader = Transcript.makeReader()
        for (const frame of frames.slice(0, index + 1)) reader.read(frame)
        yield* Stream.runForEach(ada.observe("t", { after }), (frame) => Effect.sync(() => reader.read(frame)))
        assert.deepStrictEqual(showMoment(reader.now()), whole, `cut behind ${index}`)
      }
      // Cuts within events, behind which the client comes again by itself.
      const proxy = yield* cutting(url, 2_003)
      const links: Array<string> = []
      const onLink = ({ _tag }: ServerClient.Link) => Effect.sync(() => links.push(_tag))
      const reader = Transcript.makeReader()
      yield* (yield* connect(proxy.url))
        .observe("t", { follow: true, onLink })
        .pipe(Stream.runForEachWhile((frame) => Effect.sync(() => !isDone(reader.read(frame)))))
      assert.deepStrictEqual(showMoment(reader.now()), whole)
      const [first, ...later] = proxy.paths
      assert.notInclude(first, "after=")
      assert.isAtLeast(later.length, 1)
      for (const path of later) assert.include(path, "after=")
      assert.include(links, "Lost")
      assert.strictEqual(links.at(-1), "Live")
      assert.isFalse(yield* ada.cancel("t"))
      const { threads } = yield* ada.threads({ search: "round" })
      assert.deepStrictEqual(
        threads.map(({ id, title }) => [id, title]),
        [["t", "go"]]
      )
      const refused = yield* Effect.flip(ada.steer("t", "more"))
      assert.strictEqual(refused.status, 409)
      const foreign = yield* connect(url, "token-of-eve")
      const missing = yield* Effect.flip(Stream.runDrain(foreign.observe("t", { follow: true })))
      assert.deepStrictEqual([missing.reason, missing.status], ["Refused", 404])
      const unknown = yield* Effect.flip((yield* connect(url, "token-of-nobody")).offers)
      assert.strictEqual(unknown.reason, "Unauthorized")
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )
})

const listen = (listener: RequestListener, tls?: { readonly key: string; readonly cert: string }) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const server = tls === undefined ? createServer(listener) : createSecureServer(tls, listener)
      await new Promise<void>((done) => server.listen(0, "127.0.0.1", () => done()))
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      return { server, url: `${tls === undefined ? "http" : "https"}://127.0.0.1:${port}` }
    }),
    ({ server }) =>
      Effect.sync(() => {
        server.closeAllConnections()
        server.close()
      })
  )

/** A certificate of nobody, for 127.0.0.1. */
const key = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgmJ2LMjEvf+xR9Z5G
KaSN0UzbEt8Xel6l2aIIqBoJbimhRANCAATo1cuJWBQBeDvvB3N84oaDOMl1bopg
WzYeZ9e9hHwpCIicqzDswtKIh6SfnloAh0/14kiY2OUuKGacol5uwNx0
-----END PRIVATE KEY-----`
const cert = `-----BEGIN CERTIFICATE-----
MIIBkTCCATagAwIBAgIUA9d6vP+42aRBaofgNl1wVIa5CDAwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJMTI3LjAuMC4xMCAXDTI2MTEyOTE5MTAwOFoYDzIxMjYxMTA1
MTkxMDA4WjAUMRIwEAYDVQQDDAkxMjcuMC4wLjEwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAATo1cuJWBQBeDvvB3N84oaDOMl1bopgWzYeZ9e9hHwpCIicqzDswtKI
h6SfnloAh0/14kiY2OUuKGacol5uwNx0o2QwYjAdBgNVHQ4EFgQUSnTEKbLZM6UK
j2pYIBCPuF+CyPgwHwYDVR0jBBgwFoAUSnTEKbLZM6UKj2pYIBCPuF+CyPgwDwYD
VR0TAQH/BAUwAwEB/zAPBgNVHREECDAGhwR/AAABMAoGCCqGSM49BAMCA0kAMEYC
IQDHemiQXX66LeFwehwxueK0QF0ZrPwjXonUUYMTTCLH+QIhAPTsUCheWFaSxR1w
rMeYmaylxJOEJZtbi5Xl6UMIWfAP
-----END CERTIFICATE-----`

const escapes = "\u001b]0;owned\u0007\u001b[2J\u202e"

describe("a hostile server", () => {
  const answers: Readonly<Record<string, RequestListener>> = {
    "another shape": (_, response) => void response.end('{"agents": 1}'),
    "no JSON": (_, response) => void response.end("<html>"),
    "a deep shape": (_, response) => void response.end(`${"[".repeat(200_000)}`),
    "an endless answer": (_, response) => {
      const more = (): void => {
        if (!response.destroyed) response.write("x".repeat(1 << 20), () => setImmediate(more))
      }
      more()
    }
  }
  for (const [name, listener] of Object.entries(answers)) {
    it.live(`gets no further with ${name}`, () =>
      Effect.gen(function* () {
        const { url } = yield* listen(listener)
        const error = yield* Effect.flip((yield* connect(url)).offers)
        assert.strictEqual(error.reason, "Malformed")
      }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
    )
  }

  it.live("gets the token to no other host by a redirect", () =>
    Effect.gen(function* () {
      const seen: Array<string | undefined> = []
      const other = yield* listen((request, response) => {
        seen.push(request.headers.authorization)
        response.end("{}")
      })
      for (const status of [301, 302, 303, 307, 308]) {
        const { url } = yield* listen((_, response) => void response.writeHead(status, { location: other.url }).end())
        const client = yield* connect(url)
        const errors = [
          yield* Effect.flip(client.offers),
          yield* Effect.flip(client.cancel("t")),
          yield* Effect.flip(Stream.runDrain(client.observe("t", { follow: true })))
        ]
        for (const { message, reason } of errors) {
          assert.strictEqual(reason, "Malformed")
          assert.include(message, "redirects")
        }
      }
      assert.deepStrictEqual(seen, [])
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
  )

  it.live("writes nothing to the terminal by its refusals, and no event without an end", () =>
    Effect.gen(function* () {
      const { url } = yield* listen((request, response) => {
        if (request.url?.includes("events") !== true) {
          response.writeHead(400, { "content-type": "application/problem+json" })
          return void response.end(JSON.stringify({ detail: `${escapes}${"no ".repeat(1_000)}` }))
        }
        response.writeHead(200, { "content-type": "text/event-stream" })
        const more = (): void => {
          if (!response.destroyed) response.write("x".repeat(1 << 20), () => setImmediate(more))
        }
        response.write('id: 1\nevent: event\ndata: {"_tag":"Later"}\n\ndata: ')
        more()
      })
      const client = yield* connect(url)
      const refused = yield* Effect.flip(client.offers)
      assert.isFalse(
        [...escapes].some((one) => refused.message.includes(one) && one < " "),
        refused.message
      )
      assert.notInclude(refused.message, "\u202e")
      assert.isBelow(refused.message.length, 600)
      const endless = yield* Effect.flip(Stream.runDrain(client.observe("t", { follow: true })))
      assert.strictEqual(endless.reason, "Malformed")
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
  )

  it.live("is refused by its certificate, with a way out", () =>
    Effect.gen(function* () {
      const { url } = yield* listen((_, response) => void response.end("{}"), { key, cert })
      const error = yield* Effect.flip((yield* connect(url)).offers)
      assert.strictEqual(error.reason, "Certificate")
      assert.match(error.message, /DEPTH_ZERO_SELF_SIGNED_CERT.*NODE_EXTRA_CA_CERTS/)
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
  )

  it.effect("asks for nothing by an id that is no name, and fails as a value", () =>
    Effect.gen(function* () {
      const client = yield* connect("http://127.0.0.1:9")
      for (const thread of ["", ".", "..", "a\ud800", "a\nb", "x".repeat(256)]) {
        const asked = [client.status(thread), client.steer(thread, "x"), Stream.runDrain(client.observe(thread))]
        for (const request of asked) {
          const { message, reason } = yield* Effect.flip(request)
          assert.deepStrictEqual([reason, message.slice(0, 26)], ["Refused", "This is no id of a thread:"])
        }
      }
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("is refused by its address: plain HTTP beyond this machine, and anything but HTTP", () =>
    Effect.gen(function* () {
      for (const url of ["http://10.0.0.7", "http://localhost.evil.example", "ftp://a", "nothing", "https://a:b@c"]) {
        const error = yield* Effect.flip(connect(url))
        assert.strictEqual(error.reason, "Address", url)
      }
      for (const url of ["http://127.0.0.1:1", "http://localhost", "http://[::1]:3/a/", "https://10.0.0.7"]) {
        yield* connect(url)
      }
      const gone = yield* Effect.flip((yield* connect("http://127.0.0.1:1")).offers)
      assert.strictEqual(gone.reason, "Unreachable")
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )
})
