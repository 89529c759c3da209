/** WebSockets at the door: a real client's view after any cut, admission, and dropped clients. */
import { get } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Queue, Schema, type Scope } from "effect"
import { Agent, AgentEvent, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { Server } from "effect-deepagents/server"
import { MemorySessions } from "effect-deepagents/sessions"
import { Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { Socket } from "effect/socket"
import { TestClock } from "effect/testing"
import { converse } from "../../src/server/internal/http/socket.ts"
import { scaled } from "../scale.ts"
import { ask, readFrames, serve } from "./door.ts"
import { foldFrames, showState, type State } from "./reader.ts"

let paid: Array<number> = []

const pay = Tool.make("pay", {
  description: "Pays",
  parameters: { n: Schema.Finite },
  execute: ({ n }) =>
    Effect.sync(() => {
      paid.push(n)
      return `paid ${n}`
    })
})
const helper = Agent.make({
  name: "helper",
  prompt: "",
  tools: [pay],
  middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
})

const model = TestChatModel.reactive(({ messages }) => {
  const last = messages.at(-1)
  const since = messages.slice(messages.findLastIndex(({ role }) => role === "human"))
  const round = since.filter(({ role }) => role === "ai").length
  const options = { text: `This is round ${round}.`, chunkSize: 4 }
  if (JSON.stringify(last?.content).includes("hang")) return TestChatModel.hangAfter("One moment")
  return round < 2
    ? TestChatModel.calls([{ name: "pay", arguments: { n: round } }], options)
    : TestChatModel.text("That is all of it.", { chunkSize: 4 })
})

const runs = Server.layer({ helper }).pipe(Layer.provide(model))
const services = Layer.mergeAll(MemorySessions.layer, Storage.layerMemory)

const Packet = Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown))
const readPacket = Schema.decodeSync(Packet)
type Packet = typeof Packet.Type

interface Client {
  readonly packets: Queue.Queue<Packet>
  readonly send: (packet: object | string) => void
  readonly close: () => void
  /** The code with which the connection ended. */
  readonly closed: Promise<number>
  readonly opened: Promise<boolean>
}

/** Opens a connection of Node's own client, which sends beats back. */
const connect = (
  url: string,
  options: { readonly token?: string; readonly headers?: Record<string, string>; readonly answers?: boolean } = {}
) =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      const { answers = true, headers = {}, token = "token-of-ada" } = options
      const packets = yield* Queue.unbounded<Packet>()
      // The types are for browsers, whose client sends no headers.
      const socket: WebSocket = Reflect.construct(WebSocket, [
        url.replace("http", "ws"),
        { headers: { ...(token === "" ? {} : { authorization: `Bearer ${token}` }), ...headers } }
      ])
      const closed = new Promise<number>((done) => socket.addEventListener("close", ({ code }) => done(code)))
      const opened = new Promise<boolean>((done) => {
        socket.addEventListener("open", () => done(true))
        socket.addEventListener("error", () => done(false))
      })
      socket.addEventListener("message", ({ data }) => {
        const packet = readPacket(String(data))
        if (packet["type"] === "beat" && answers) socket.send(JSON.stringify(packet))
        Queue.offerUnsafe(packets, packet)
      })
      const client: Client = {
        packets,
        closed,
        opened,
        send: (packet) => socket.send(typeof packet === "string" ? packet : JSON.stringify(packet)),
        close: () => socket.close()
      }
      yield* Effect.promise(() => opened)
      return client
    }),
    ({ close }) => Effect.sync(close)
  )

/** Asks for a connection by another host, and gives the status of the answer. */
const upgradeAt = (url: string, host: string): Effect.Effect<number | undefined> =>
  Effect.callback((resume) => {
    const headers = {
      host,
      authorization: "Bearer token-of-ada",
      connection: "upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ=="
    }
    get(url, { headers }, (response) => {
      response.resume()
      resume(Effect.succeed(response.statusCode))
    })
  })

/** Takes packets until one of a type comes. */
const next = (client: Client, type: string): Effect.Effect<Packet> =>
  Effect.flatMap(Queue.take(client.packets), (packet) =>
    packet["type"] === type ? Effect.succeed(packet) : next(client, type)
  ).pipe(Effect.timeout("10 seconds"), Effect.orDie)

const frameOf = (packet: Packet): Server.Frame | undefined => {
  const position = Server.Position.make(String(packet["position"]))
  if (packet["type"] === "reset") {
    return { _tag: "Reset", position, to: packet["to"] === "beginning" ? "beginning" : "checkpoint" }
  }
  return packet["type"] === "event"
    ? { _tag: "Event", position, event: Effect.runSync(AgentEvent.decode(packet["event"])) }
    : undefined
}

const live = (name: string, test: (url: string) => Effect.Effect<void, unknown, Scope.Scope>) =>
  it.live(
    name,
    () => Effect.flatMap(serve(runs), test).pipe(Effect.scoped, Effect.provide(Layer.fresh(services))),
    60_000
  )

describe("a WebSocket", () => {
  live("that is cut at any event has the whole thread in the end, and each input and decision counts once", (url) =>
    Effect.gen(function* () {
      for (let round = 0; round < scaled(24); round++) {
        paid = []
        const at = `${url}/threads/t${round}`
        let state: State | undefined
        let after = ""
        let isTaken = false
        const seen = new Set<string>()
        const due = new Map<string, object>()
        const isOver = () => state !== undefined && showState(state).end === "RunCompleted completed"
        for (let connection = 0; !isOver(); connection++) {
          assert.isBelow(connection, 500)
          yield* Effect.scoped(
            Effect.gen(function* () {
              const client = yield* connect(`${at}/socket?after=${after}`)
              if (!isTaken) client.send({ type: "input", ref: "input", agent: "helper", input: "go", id: "1" })
              for (const packet of due.values()) client.send(packet)
              // Later connections live longer, so that each run ends.
              let left = 1 + ((round * 7 + connection * 5) % 11) + connection
              while (left-- > 0 && !isOver()) {
                const packet = yield* Effect.timeoutOption(Queue.take(client.packets), "2 seconds")
                if (packet._tag === "None") break
                const { ref, type } = packet.value
                if (type === "ack" && ref === "input") isTaken = true
                else if (type === "ack") due.delete(String(ref))
                const frame = frameOf(packet.value)
                if (frame === undefined) continue
                // Nothing of the log comes twice, unless the server says so.
                if (frame._tag === "Reset") seen.clear()
                assert.isFalse(seen.has(frame.position) && !frame.position.includes(".s."), frame.position)
                seen.add(frame.position)
                after = frame.position
                state = foldFrames([frame], state)
                if (frame._tag !== "Event" || frame.event._tag !== "ApprovalRequested") continue
                const { id } = frame.event
                const decide = { type: "decide", ref: id, decisions: [{ _tag: "Approve", id }] }
                due.set(id, decide)
                client.send(decide)
              }
            })
          )
        }
        const { frames } = yield* readFrames(`${at}/events`)
        assert.deepStrictEqual(state === undefined ? undefined : showState(state), showState(foldFrames(frames)))
        assert.deepStrictEqual(paid, [0, 1])
      }
    })
  )

  live("takes steering and cancels, and refuses what it can't read by its name", (url) =>
    Effect.gen(function* () {
      const client = yield* connect(`${url}/threads/t/socket`)
      client.send({ type: "steer", ref: "a", input: "early" })
      assert.deepNestedInclude(yield* next(client, "refused"), { ref: "a", "problem.code": "NotRunning" })
      client.send({ type: "input", ref: "b", agent: "helper", input: "hang" })
      assert.propertyVal(yield* next(client, "ack"), "isNew", true)
      while (JSON.stringify(yield* next(client, "event")).includes("One moment") === false);
      client.send({ type: "steer", ref: "c", input: "left" })
      assert.deepStrictEqual(yield* next(client, "ack"), { type: "ack", ref: "c" })
      client.send({ type: "cancel", ref: "d" })
      assert.deepStrictEqual(yield* next(client, "ack"), { type: "ack", ref: "d", isCancelled: true })
      const wrong: ReadonlyArray<readonly [object | string, string]> = [
        [{ type: "input", ref: "e", agent: "none", input: "x" }, "InvalidInput"],
        [{ type: "decide", ref: "e", decisions: [{ _tag: "Approve", id: "none" }] }, "NotFound"],
        [{ type: "other", ref: "e" }, "InvalidBody"],
        [{ type: "cancel", ref: "e", more: true }, "InvalidBody"],
        [`{"type":"cancel","ref":"e","x":${"[".repeat(300)}${"]".repeat(300)}}`, "InvalidBody"]
      ]
      for (const [packet, code] of wrong) {
        client.send(packet)
        assert.deepNestedInclude(yield* next(client, "refused"), { ref: "e", "problem.code": code })
      }
      client.send("no JSON")
      assert.notProperty(yield* next(client, "refused"), "ref")
    })
  )

  live("opens for those whom the guard lets in, and shows a tenant its own threads alone", (url) =>
    Effect.gen(function* () {
      const own = yield* connect(`${url}/threads/t/socket`)
      own.send({ type: "input", ref: "a", agent: "helper", input: "secret" })
      yield* next(own, "event")
      for (const options of [
        { token: "" },
        { token: "token-of-mallory" },
        { headers: { origin: "https://evil.test" } }
      ]) {
        const refused = yield* connect(`${url}/threads/t/socket`, options)
        assert.isFalse(yield* Effect.promise(() => refused.opened), JSON.stringify(options))
      }
      assert.strictEqual(yield* upgradeAt(`${url}/threads/t/socket`, "evil.test"), 421)
      const forged = yield* connect(`${url}/threads/t/socket?after=x`)
      assert.isFalse(yield* Effect.promise(() => forged.opened))
      assert.strictEqual((yield* ask(`${url}/threads/t/socket`)).status, 426)
      const other = yield* connect(`${url}/threads/t/socket`, { token: "token-of-eve" })
      other.send({ type: "cancel", ref: "b" })
      assert.deepStrictEqual(yield* next(other, "ack"), { type: "ack", ref: "b", isCancelled: false })
      yield* Effect.sleep("100 millis")
      assert.strictEqual(yield* Queue.size(other.packets), 0)
      // A thread that is deleted ends its connections.
      while ((yield* ask(`${url}/threads/t/state`)).at("state") === "working") yield* Effect.sleep("10 millis")
      assert.strictEqual((yield* ask(`${url}/threads/t`, { method: "DELETE" })).status, 204)
      assert.deepNestedInclude(yield* next(own, "refused"), { "problem.status": 404 })
      assert.strictEqual(yield* Effect.promise(() => own.closed), 1011)
    })
  )
})

/** A connection whose client is the test. */
const makeSocket = Effect.gen(function* () {
  const sent = yield* Queue.unbounded<string>()
  const got: Array<string | Socket.CloseEvent> = []
  const write = (text: string | Uint8Array | Socket.CloseEvent) =>
    Effect.sync(() => {
      if (!(text instanceof Uint8Array)) got.push(text)
    })
  const socket = Socket.make({
    reader: Effect.succeed({
      pull: Effect.map(Queue.take(sent), (text) => [text] as const),
      upgrade: Socket.SocketUpgradeError.unsupported
    }),
    writer: Effect.succeed({ write, writeAll: () => Effect.void })
  })
  return { socket, got, send: (packet: object) => Queue.offerUnsafe(sent, JSON.stringify(packet)) }
})

const codeOf = (got: ReadonlyArray<string | Socket.CloseEvent>) => {
  const last = got.at(-1)
  return Socket.isCloseEvent(last) ? last.code : undefined
}

describe("a client of a WebSocket", () => {
  it.effect("that does not read has 1 MiB on the way at most, and is dropped after 30 seconds", () =>
    Effect.gen(function* () {
      for (const isReading of [false, true]) {
        const { got, send, socket } = yield* makeSocket
        let [told, seen] = [0, 0]
        const piece = "x".repeat(64 << 10)
        const talk = yield* Effect.forkChild(
          converse(
            socket,
            (tell) =>
              Effect.forever(
                Effect.andThen(
                  tell(piece),
                  Effect.sync(() => ++told)
                )
              ),
            () => Effect.succeed({})
          ),
          { startImmediately: true }
        )
        for (let step = 0; step < 14; step++) {
          yield* TestClock.adjust("5 seconds")
          if (!isReading) continue
          for (const one of got.slice(seen)) {
            const beat = typeof one === "string" && one.length < 100 ? readPacket(one) : undefined
            if (beat?.["type"] === "beat") send(beat)
          }
          seen = got.length
        }
        if (isReading) {
          assert.isAbove(told * piece.length, 1.5 * 1024 * 1024)
          assert.isUndefined(codeOf(got))
        } else {
          assert.isBelow(told * piece.length, 1.4 * 1024 * 1024)
          assert.strictEqual(codeOf(got), 4408)
        }
        yield* Fiber.interrupt(talk)
      }
    })
  )

  it.effect("is asked for a sign of life each 15 seconds, and dropped without one", () =>
    Effect.gen(function* () {
      const { got, send, socket } = yield* makeSocket
      yield* Effect.forkChild(
        converse(
          socket,
          () => Effect.never,
          () => Effect.succeed({})
        ),
        { startImmediately: true }
      )
      for (let n = 1; n <= 4; n++) {
        yield* TestClock.adjust("15 seconds")
        assert.deepStrictEqual(readPacket(String(got.at(-1))), { type: "beat", n })
        send({ type: "beat", n })
        // An answer without a question counts for nothing.
        send({ type: "beat", n: 1e9 })
      }
      yield* TestClock.adjust("61 seconds")
      assert.strictEqual(codeOf(got), 4408)
    })
  )

  it.effect("that floods the server is dropped", () =>
    Effect.gen(function* () {
      const { got, send, socket } = yield* makeSocket
      yield* Effect.forkChild(
        converse(
          socket,
          () => Effect.never,
          () => Effect.never
        ),
        { startImmediately: true }
      )
      for (let index = 0; index < 100; index++) send({ type: "cancel", ref: String(index) })
      yield* TestClock.adjust("1 second")
      assert.strictEqual(codeOf(got), 4429)
    })
  )
})
