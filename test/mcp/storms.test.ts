/** Servers that repeat an action without end. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { McpServers } from "../../src/mcp/index.ts"
import { scaled } from "../scale.ts"
import { type Behaviour, plain, scripted, turns } from "./scripted.ts"

const { McpServers: Servers } = McpServers

const tool = (name: string) => ({ server: "s", tool: name })

const echo: Behaviour = ({ id, method }, { reply, say }) =>
  method === "tools/call"
    ? reply({ content: [{ type: "text", text: "here" }] })
    : id === undefined
      ? undefined
      : say({ id, error: { code: -32601, message: "Method not found" } })

/** Advances the clock second by second, with turns of the event loop in between. */
const pass = (seconds: number) =>
  Effect.forEach(Array.from({ length: seconds }), () => Effect.andThen(turns, TestClock.adjust("1 second")), {
    discard: true
  })

describe("storms", { timeout: 120_000 }, () => {
  it.effect.each([
    ["in the handshake", "initialize"],
    ["once it is connected", "tools/list"]
  ] as const)("a server that dies 100 times, %s, is started with longer and longer pauses", ([, at]) => {
    const dying = plain(false, () => ["echo"], echo)
    const { counts, layer } = scripted((message, side, start) => {
      if (start <= 100 && message.method === at) {
        if (at === "tools/list") dying(message, side, start)
        return void setImmediate(side.die)
      }
      return dying(message, side, start)
    })
    return Effect.gen(function* () {
      const servers = yield* Servers
      const broken: Array<number> = []
      yield* servers.changes.pipe(
        Stream.runForEach(([status]) =>
          Effect.sync(() => {
            const { retryAt } = status ?? {}
            if (retryAt !== undefined && retryAt !== broken.at(-1)) broken.push(retryAt)
          })
        ),
        Effect.forkScoped
      )
      // 250 ms, 500, 1 s … 30 s: a hundred attempts take 47 minutes.
      yield* pass(25)
      assert.isAtMost(counts.started, 9)
      for (let minute = 0; minute < 60 && counts.started <= 100; minute++) {
        for (let half = 0; half < 2; half++) {
          yield* turns
          yield* TestClock.adjust("30 seconds")
        }
      }
      let [status] = yield* servers.status
      for (let more = 0; more < 100 && status?.state !== "connected"; more++) {
        yield* turns
        status = (yield* servers.status)[0]
      }
      assert.strictEqual(status?.state, "connected")
      assert.strictEqual(counts.started - counts.running, counts.started - 1, "one runs, the others are reaped")
      assert.isAtMost(status?.log.length ?? 0, 16_384)
      assert.isAtLeast(broken.length, 90)
      assert.isAtMost(broken.length, 101)
      const pauses = broken.slice(1).map((time, index) => time - (broken[index] ?? 0))
      assert.isTrue(pauses.slice(10).every((pause) => pause >= 30_000))
      assert.deepStrictEqual((yield* servers.call(tool("echo"), {})).content, [{ type: "text", text: "here" }])
    }).pipe(Effect.provide(layer))
  })

  it.effect("a server that can't be reached says why, also while it is tried again", () => {
    let hangs = false
    const { layer } = scripted(
      (message, { die }) => {
        if (message.method === "initialize" && !hangs) die("Error: set KEY\n")
        else if (message.method === "server/discover") die()
      },
      { connectTimeout: 5000 }
    )
    return Effect.gen(function* () {
      const servers = yield* Servers
      yield* servers.tools
      const [failed] = yield* servers.status
      assert.strictEqual(failed?.state, "failed")
      assert.match(failed?.error?.message ?? "", /it said: Error: set KEY \(/)
      hangs = true
      yield* TestClock.adjust("300 millis")
      const [again] = yield* servers.status
      assert.strictEqual(again?.state, "connecting")
      assert.strictEqual(again?.error, failed?.error)
    }).pipe(Effect.provide(layer))
  })

  it.live("asking to connect anew many times at once makes one connection, and leaves one process", () => {
    const { counts, layer } = scripted(plain(false, () => ["echo"], echo))
    return Effect.gen(function* () {
      const servers = yield* Servers
      yield* servers.tools
      yield* Effect.all(
        Array.from({ length: 20 }, () => servers.reconnect("s")),
        { concurrency: "unbounded" }
      )
      yield* servers.call(tool("echo"), {})
      assert.strictEqual(counts.running, 1)
      assert.isAtMost(counts.started, 4)
    }).pipe(Effect.provide(layer))
  })

  const words = scaled(100_000)

  it.live(`${words} words of changed lists cost a few lists, and calls go on`, () => {
    let lists = 0
    const { layer } = scripted((message, side, start) => {
      if (message.method === "tools/list") lists++
      if (message.method === "tools/call" && lists === 1) {
        for (let n = 0; n < words; n++) side.say({ method: "notifications/tools/list_changed" })
      }
      return plain(false, () => ["echo"], echo)(message, side, start)
    })
    return Effect.gen(function* () {
      const servers = yield* Servers
      yield* servers.tools
      yield* servers.call(tool("echo"), {})
      yield* servers.call(tool("echo"), {})
      yield* Effect.repeat(turns, { until: () => lists > 1 })
      yield* Effect.repeat(turns, { times: 50 })
      assert.isAtMost(lists, 20)
    }).pipe(Effect.provide(layer))
  })

  it.live("answers that come twice, are of no call, or are no answers leave the others as they are", () => {
    const given: { said: ReadonlyArray<unknown> } = { said: [] }
    const { counts, layer } = scripted(
      plain(
        false,
        () => ["echo"],
        (message, side, start) => {
          if (message.method !== "tools/call") return echo(message, side, start)
          const result = { content: [{ type: "text", text: "here" }] }
          for (const one of given.said) side.say(typeof one === "object" && one !== null ? one : { method: one })
          side.say({ id: 999_999, result })
          side.say({ id: null, result })
          side.say({ id: null, error: { code: -32700, message: "Parse error" } })
          side.reply(result)
          side.reply({ content: [{ type: "text", text: "twice" }] })
        }
      )
    )
    const json = fc.oneof(
      fc.record({ id: fc.jsonValue(), result: fc.jsonValue() }),
      fc.record({ id: fc.jsonValue(), method: fc.string(), params: fc.jsonValue() }),
      fc.record({ id: fc.jsonValue(), error: fc.jsonValue() }),
      fc.record({
        method: fc.constantFrom(
          "notifications/progress",
          "notifications/message",
          "elicitation/create",
          "notifications/cancelled"
        ),
        params: fc.jsonValue()
      }),
      fc.dictionary(fc.constantFrom("id", "method", "params", "result", "error", "__proto__"), fc.jsonValue())
    )
    return Effect.gen(function* () {
      const servers = yield* Servers
      yield* servers.tools
      const context = yield* Effect.context()
      // Any message with an id of ours is an answer.
      const isOurs = (one: object) => "id" in one && (typeof one.id === "number" || typeof one.id === "string")
      const property = fc.asyncProperty(fc.array(json, { maxLength: 20 }), async (said) => {
        given.said = said.filter((one) => !isOurs(one))
        const called = servers.call(tool("echo"), {})
        const answers = await Effect.runPromiseWith(context)(Effect.all([called, called], { concurrency: 2 }))
        for (const { content } of answers) assert.deepStrictEqual(content, [{ type: "text", text: "here" }])
      })
      yield* Effect.promise(() => fc.assert(property, { numRuns: scaled(200) }))
      assert.strictEqual(counts.started, 1)
    }).pipe(Effect.provide(layer))
  })

  it.live("a call that asks without an end is given up, with a failure that says so", () => {
    let cancelled = 0
    let replies = 0
    const { layer } = scripted(
      plain(
        false,
        () => ["echo", "ask"],
        (message, side, start) => {
          if (message.method === "notifications/cancelled") cancelled++
          if (message.method === undefined) replies++
          if (message.method !== "tools/call" || message.params?.["name"] !== "ask") return echo(message, side, start)
          const requestedSchema = { type: "object", properties: {} }
          for (let n = 0; n < 1_000; n++) {
            side.say({ id: 10_000 + n, method: "elicitation/create", params: { message: `${n}`, requestedSchema } })
          }
        }
      )
    )
    return Effect.gen(function* () {
      const servers = yield* Servers
      yield* servers.tools
      let asked = 0
      const onQuestion = () => Effect.sync(() => ({ action: "decline" as const, n: ++asked }))
      const failed = yield* Effect.flip(servers.call(tool("ask"), {}, { onQuestion }))
      assert.strictEqual(failed.reason, "Invalid")
      assert.match(failed.message, /a call of "ask" asked more than 100 times/)
      assert.isAtMost(asked, 100)
      // The older protocol does not say which call a question is of: they would be the next one's.
      yield* Effect.repeat(turns, { until: () => replies === 1_000, times: 1_000 })
      yield* servers.call(tool("echo"), {})
      assert.strictEqual(cancelled, 1)
    }).pipe(Effect.provide(layer))
  })

  it.effect("a stream of changes that the server ends is asked for again, with longer and longer pauses", () => {
    const listens: Array<string> = []
    let names = ["echo"]
    let isEnding = true
    const { layer } = scripted(
      plain(
        true,
        () => names,
        (message, side, start) => {
          if (message.method !== "subscriptions/listen") return echo(message, side, start)
          const _meta = { "io.modelcontextprotocol/subscriptionId": message.id }
          listens.push(JSON.stringify(message.params?.["notifications"]))
          side.say({
            method: "notifications/subscriptions/acknowledged",
            params: { _meta, notifications: message.params?.["notifications"] }
          })
          if (isEnding) setImmediate(() => side.reply({ resultType: "complete", _meta }))
        }
      )
    )
    return Effect.gen(function* () {
      const servers = yield* Servers
      const first = yield* servers.tools
      const [status] = yield* servers.status
      assert.strictEqual(status?.protocolVersion, "2026-07-28")
      assert.deepStrictEqual(
        first.map(({ name }) => name),
        ["s__echo"]
      )
      const changes: Array<number> = []
      const reader = yield* servers.updates("s", "a:b").pipe(
        Stream.runForEach(() => Effect.sync(() => changes.push(1))),
        Effect.forkScoped
      )
      names = ["echo", "more"]
      yield* pass(60)
      const lists = listens.filter((one) => one.includes("toolsListChanged")).length
      const resources = listens.filter((one) => one.includes("a:b")).length
      // 250 ms, 500, 1 s, 2, 4, 8, 16, 30.
      for (const count of [lists, resources]) {
        assert.isAtLeast(count, 5)
        assert.isAtMost(count, 9)
      }
      assert.isAtLeast(changes.length, 1, "what changed while nobody listened is not known")
      assert.deepStrictEqual(
        (yield* servers.tools).map(({ name }) => name),
        ["s__echo", "s__more"]
      )
      isEnding = false
      yield* pass(60)
      const before = listens.length
      yield* pass(120)
      assert.strictEqual(listens.length, before, "one that stays is not asked for again")
      yield* Fiber.interrupt(reader)
    }).pipe(Effect.provide(layer))
  })
})
