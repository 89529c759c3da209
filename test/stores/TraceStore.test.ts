/** Traces: the events of runs, the same on every storage, and the exported spans. */
import { assert } from "@effect/vitest"
import { Effect, Layer, Result, Schema, Stream } from "effect"
import { Agent, AgentEvent, Tool, ToolContext, ToolError, ToolOutput } from "effect-deepagents"
import { Storage, TraceExport, TraceStore } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { HttpClient, HttpClientResponse } from "effect/http"
import { TestClock } from "effect/testing"
import { onAll } from "./places.ts"

const failure = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.map(Effect.result(effect), Result.getFailure)

const worker = Agent.make({ name: "worker", prompt: "" })
const ask = Agent.asTool(Agent.provide(worker, TestChatModel.script(["the confidential answer"])), {
  name: "ask",
  description: "asks"
})
const fails = Tool.make("fails", { description: "", parameters: {}, execute: () => Effect.fail(ToolError.make("no")) })
const slow = Tool.make("slow", {
  description: "",
  parameters: { n: Schema.Finite },
  execute: () => Effect.as(TestClock.adjust("2 seconds"), "done")
})
const lead = Agent.make({ name: "lead", prompt: "", tools: [ask, fails, slow], toolConcurrency: 1 })

const script = TestChatModel.script([
  TestChatModel.calls([
    { name: "slow", arguments: { n: 1 }, id: "c1" },
    { name: "ask", arguments: { task: "confidential task" }, id: "c2" },
    { name: "fails", arguments: {}, id: "c3" }
  ]),
  TestChatModel.text(["well ", "done"], { usage: { inputTokens: 7, outputTokens: 2 } })
])

/** A run that is recorded; its events. */
const recorded = (options?: { readonly deltas?: boolean }) =>
  Agent.stream(lead, "confidential question").pipe(
    TraceStore.record(options),
    Stream.runCollect,
    Effect.provide(script)
  )

const makeStarted = (runId: string, at: number, agent: string): AgentEvent.Of<"RunStarted"> => ({
  _tag: "RunStarted",
  seq: 0,
  runId,
  path: [agent],
  at,
  agent,
  model: "m",
  provider: "p"
})
const warning = (runId: string, seq: number, at = 0): AgentEvent.AgentEvent => ({
  _tag: "Warning",
  seq,
  runId,
  path: ["a"],
  at,
  code: `w${seq}`,
  message: ""
})

let count = 0
const fresh = () => `run-${++count}`

const span = Schema.Struct({
  traceId: Schema.String,
  spanId: Schema.String,
  parentSpanId: Schema.optionalKey(Schema.String),
  name: Schema.String,
  startTimeUnixNano: Schema.String,
  endTimeUnixNano: Schema.String,
  status: Schema.Struct({ code: Schema.Finite, message: Schema.optionalKey(Schema.String) })
})
const Sent = Schema.Struct({
  resourceSpans: Schema.Tuple([
    Schema.Struct({
      resource: Schema.Unknown,
      scopeSpans: Schema.Tuple([Schema.Struct({ spans: Schema.Array(span) })])
    })
  ])
})

/** A collector that keeps its requests, and answers with these codes one after the other. */
const collector = (
  sent: Array<{ readonly url: string; readonly headers: unknown; readonly body: string }>,
  codes: Array<number>
) =>
  Layer.succeed(
    HttpClient.HttpClient,
    HttpClient.make((request, url) =>
      Effect.sync(() => {
        const body = request.body._tag === "Uint8Array" ? new TextDecoder().decode(request.body.body) : ""
        sent.push({ url: url.toString(), headers: request.headers, body })
        return HttpClientResponse.fromWeb(request, new Response("{}", { status: codes.shift() ?? 200 }))
      })
    )
  )

onAll((it) => {
  const test = (name: string, body: () => Effect.Effect<unknown, unknown, TraceStore.TraceStore | Storage.Storage>) =>
    it.effect(name, () => Effect.provide(body(), TraceStore.layer))

  test("records events without deltas, with a sub-agent's events in the trace", () =>
    Effect.gen(function* () {
      const events = yield* recorded()
      const runId = events[0]?.runId ?? ""
      const store = yield* TraceStore.TraceStore
      const kept = yield* Stream.runCollect(store.stream(runId))
      assert.deepStrictEqual(
        kept,
        events.filter((event) => !event._tag.endsWith("Delta"))
      )
      assert.isTrue(kept.some((event) => event.path.length === 2))
      assert.isBelow(kept.length, events.length)
      assert.deepStrictEqual(AgentEvent.transcript(kept), AgentEvent.transcript(events))
      assert.deepStrictEqual(AgentEvent.usageOf(kept), AgentEvent.usageOf(events))
      // However it comes, it is the trace of the run that it begins with.
      const single = kept.map((event) => ({ ...event, runId: event.runId === runId ? "whole" : event.runId }))
      yield* Stream.fromIterable(single).pipe(Stream.rechunk(1), TraceStore.record(), Stream.runDrain)
      assert.deepStrictEqual(yield* Stream.runCollect(store.stream("whole")), single)
      const whole = yield* recorded({ deltas: true })
      assert.deepStrictEqual(yield* Stream.runCollect(store.stream(whole[0]?.runId ?? "")), whole)
    }))

  test("fails as a value for an event that is too deep or too large, so that a run may go on without its trace", () =>
    Effect.gen(function* () {
      const store = yield* TraceStore.TraceStore
      const runId = fresh()
      const event = (name: string, payload: unknown): AgentEvent.AgentEvent =>
        // As from a caller who ignores the types.
        ({ _tag: "Custom", seq: 1, runId, path: ["a"], at: 0, name, payload }) as AgentEvent.AgentEvent
      let deep: unknown = []
      for (let depth = 0; depth < 50_000; depth++) deep = [deep]
      const values = { deep, large: "x".repeat(16_000_000) }
      for (const [name, payload] of Object.entries(values)) {
        const bad = event(name, { payload })
        const error = yield* Effect.flip(store.append(runId, [makeStarted(runId, 0, "a"), bad]))
        assert.strictEqual(error.reason._tag, "InvalidValue", name)
        assert.include(error.message, "event 1 (Custom)")
        const seen = yield* Stream.make(bad).pipe(
          Stream.tap((one) => Effect.ignore(store.append(runId, [one]))),
          Stream.runCollect
        )
        assert.strictEqual(seen.length, 1)
        const recording = yield* Effect.flip(Stream.make(bad).pipe(TraceStore.record(), Stream.runDrain))
        assert.strictEqual(recording._tag, "StoreError")
      }
      assert.deepStrictEqual((yield* store.events(runId)).items, [], "nothing of it is stored")
      const odd = { nan: Number.NaN, big: 1n, date: new Date(0), none: undefined }
      yield* store.append(runId, [event("odd", odd)])
      assert.deepInclude((yield* store.events(runId)).items[0], {
        payload: { nan: null, big: "1", date: "1970-01-01T00:00:00.000Z" }
      })
    }))

  test("events are found by tag, agent and time, in pages by their sequence", () =>
    Effect.gen(function* () {
      const events = yield* recorded()
      const runId = events[0]?.runId ?? ""
      const store = yield* TraceStore.TraceStore
      const all = yield* Stream.runCollect(store.stream(runId))
      const find = (query: Parameters<TraceStore.TraceStore["Service"]["stream"]>[1]) =>
        Stream.runCollect(store.stream(runId, query))
      assert.deepStrictEqual(
        (yield* find({ tags: ["ToolFailed", "RunCompleted"] })).map(({ _tag }) => _tag),
        ["RunCompleted", "ToolFailed", "RunCompleted"]
      )
      assert.deepStrictEqual(
        yield* find({ agent: "worker" }),
        all.filter(({ path }) => path.at(-1) === "worker")
      )
      const middle = all[Math.floor(all.length / 2)]?.at ?? 0
      assert.deepStrictEqual(
        yield* find({ since: middle }),
        all.filter(({ at }) => at >= middle)
      )
      assert.deepStrictEqual(
        yield* find({ until: middle }),
        all.filter(({ at }) => at < middle)
      )
      const paged: Array<AgentEvent.AgentEvent> = []
      let from: number | undefined = 0
      while (from !== undefined) {
        const page: Effect.Success<ReturnType<typeof store.events>> = yield* store.events(runId, { from, limit: 4 })
        assert.isAtMost(page.items.length, 4)
        paged.push(...page.items)
        from = page.next
      }
      assert.deepStrictEqual(paged, all)
      assert.deepStrictEqual((yield* store.events(runId, { from: 1e6 })).items, [])
      assert.deepStrictEqual((yield* store.events("nobody")).items, [])
    }))

  test("runs are listed by agent, thread and time, the latest first, in pages", () =>
    Effect.gen(function* () {
      const store = yield* TraceStore.TraceStore
      const runs: Array<string> = []
      const agents = [fresh(), fresh()]
      for (let n = 0; n < 7; n++) {
        const runId = fresh()
        runs.unshift(runId)
        const event = makeStarted(runId, 1000 + n * 10, agents[n % 2] ?? "")
        yield* store.append(runId, [n % 3 === 0 ? { ...event, threadId: `t/${agents[0]}` } : event])
      }
      const ids = (query: Parameters<TraceStore.TraceStore["Service"]["runs"]>[0]) =>
        Effect.map(store.runs(query), ({ items }) => items.map(({ runId }) => runId))
      assert.deepStrictEqual(
        (yield* ids({})).filter((id) => runs.includes(id)),
        runs
      )
      const even = runs.filter((_, index) => index % 2 === 0)
      const [agent = ""] = agents
      assert.deepStrictEqual(yield* ids({ agent }), even)
      assert.deepStrictEqual(yield* ids({ threadId: `t/${agent}` }), [runs[0], runs[3], runs[6]])
      assert.deepStrictEqual(yield* ids({ threadId: `t/${agent}`, agent }), [runs[0], runs[6]])
      assert.deepStrictEqual(yield* ids({ agent, since: 1020, until: 1060 }), [even[1], even[2]])
      const first = yield* store.runs({ agent, limit: 3 })
      assert.isString(first.next)
      const second = yield* store.runs({ agent, limit: 3, cursor: first.next ?? "" })
      assert.deepStrictEqual(
        [...first.items, ...second.items].map(({ runId }) => runId),
        even
      )
      assert.isUndefined(second.next)
    }))

  test("an event that is appended again takes its own place; a trace that is removed is listed nowhere", () =>
    Effect.gen(function* () {
      const store = yield* TraceStore.TraceStore
      const [runId, agent] = [fresh(), fresh()]
      const events = [makeStarted(runId, 5, agent), warning(runId, 1), warning(runId, 2), warning(runId, 10)]
      yield* store.append(runId, events)
      yield* store.append(runId, events.slice(1, 3))
      yield* store.append(runId, [])
      assert.deepStrictEqual(yield* Stream.runCollect(store.stream(runId)), events)
      yield* store.remove(runId)
      yield* store.remove(runId)
      assert.deepStrictEqual(yield* Stream.runCollect(store.stream(runId)), [])
      assert.deepStrictEqual((yield* store.runs({ agent })).items, [])
      assert.isFalse((yield* store.runs()).items.some((run) => run.runId === runId))
    }))

  test("refuses invalid names, and reports unreadable rows", () =>
    Effect.gen(function* () {
      const store = yield* TraceStore.TraceStore
      for (const name of ["", "a\u0000", "x".repeat(600)]) {
        assert.include(String(yield* failure(store.append(name, [warning("x", 1)]))), "no name")
        assert.include(String(yield* failure(store.events(name))), "no name")
        assert.include(String(yield* failure(store.remove(name))), "no name")
      }
      assert.include(String(yield* failure(store.append("ok", [makeStarted("ok", 1, "a\u0000b")]))), "no name")
      const { table } = yield* Storage.Storage
      for (const value of ["no JSON", "{}", `{"v":1,"_tag":"Nobody"}`]) {
        const runId = fresh()
        yield* table("traces").put(runId, [{ key: "0", value }])
        assert.include(String(yield* failure(store.events(runId))), "can't be read")
      }
    }))

  test("sends a run as spans: callers, durations and failures, without the content of messages", () =>
    Effect.gen(function* () {
      const events = yield* recorded()
      const runId = events[0]?.runId ?? ""
      const sent: Array<{ readonly url: string; readonly headers: unknown; readonly body: string }> = []
      const options = { url: "http://collector:4318/v1/traces", serviceName: "shop", headers: { authorization: "k" } }
      const send = TraceExport.send(runId, options).pipe(Effect.provide(collector(sent, [503])))
      const sending = yield* Effect.forkChild(Effect.andThen(send, send))
      while (sending.pollUnsafe() === undefined) {
        yield* TestClock.adjust("1 second")
        yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 1)))
      }
      assert.strictEqual(sent.length, 3, "the one that was refused was sent again")
      assert.strictEqual(sent[0]?.url, options.url)
      assert.include(JSON.stringify(sent[0]?.headers), "authorization")
      const body = sent[1]?.body ?? ""
      assert.strictEqual(sent[2]?.body, body, "the same run is the same trace")
      assert.notInclude(body, "confidential")
      assert.include(body, `{"key":"service.name","value":{"stringValue":"shop"}}`)
      const {
        resourceSpans: [
          {
            scopeSpans: [{ spans }]
          }
        ]
      } = Schema.decodeUnknownSync(Schema.fromJsonString(Sent))(body)
      const nameOf = new Map(spans.map(({ name, spanId }) => [spanId, name]))
      assert.deepStrictEqual(
        spans.map(({ name, parentSpanId, status }) => [name, nameOf.get(parentSpanId ?? ""), status.code]),
        [
          ["invoke_agent lead", undefined, 1],
          ["chat scripted", "invoke_agent lead", 1],
          ["execute_tool slow", "invoke_agent lead", 1],
          ["execute_tool ask", "invoke_agent lead", 1],
          ["invoke_agent worker", "execute_tool ask", 1],
          ["chat scripted", "invoke_agent worker", 1],
          ["execute_tool fails", "invoke_agent lead", 2],
          ["chat scripted", "invoke_agent lead", 1]
        ]
      )
      assert.strictEqual(new Set(spans.map(({ spanId }) => spanId)).size, spans.length)
      for (const { spanId, traceId } of spans) assert.match(`${traceId} ${spanId}`, /^[0-9a-f]{32} [0-9a-f]{16}$/)
      const took = (index: number) =>
        Number(BigInt(spans[index]?.endTimeUnixNano ?? 0) - BigInt(spans[index]?.startTimeUnixNano ?? 0)) / 1e6
      assert.strictEqual(took(2), 2000)
      assert.include(body, `{"key":"gen_ai.usage.input_tokens","value":{"intValue":7}}`)

      const refused = yield* failure(TraceExport.send(runId, options).pipe(Effect.provide(collector([], [401]))))
      assert.include(String(refused), "401")
      const unknown = yield* failure(TraceExport.send("nobody", options).pipe(Effect.provide(collector([], []))))
      assert.include(String(unknown), "nothing of this name")
    }))

  test("a run that never came to an end is sent as failed, up to its last event", () =>
    Effect.gen(function* () {
      const store = yield* TraceStore.TraceStore
      const runId = fresh()
      const round: AgentEvent.AgentEvent = { _tag: "RoundStarted", seq: 1, runId, path: ["a"], at: 20, round: 1 }
      yield* store.append(runId, [makeStarted(runId, 10, "a"), round, warning(runId, 2, 50)])
      const spans = yield* TraceExport.spans(runId)
      assert.deepStrictEqual(
        spans.map(({ endTimeUnixNano, events, name, startTimeUnixNano, status }) => [
          name,
          startTimeUnixNano,
          endTimeUnixNano,
          status.message,
          events.map((event) => event.name).join()
        ]),
        [
          ["invoke_agent a", "10000000", "50000000", "unfinished", "Warning"],
          ["chat", "20000000", "50000000", "unfinished", ""]
        ]
      )
    }))

  test("a tool result that is no JSON ends neither the run nor its trace", () =>
    Effect.gen(function* () {
      const odd = { percent: 0 / 0, more: Number.POSITIVE_INFINITY, nothing: undefined, at: new Date(0) }
      const says = Tool.make("says", {
        description: "",
        parameters: {},
        execute: Effect.fnUntraced(function* () {
          const context = yield* ToolContext.ToolContext
          yield* context.emit(odd as never)
          yield* context.run.custom("odd", odd as never)
          return ToolOutput.make("said", { details: odd as never })
        })
      })
      const events = yield* Agent.stream(Agent.make({ name: "odd", prompt: "", tools: [says] }), "go").pipe(
        TraceStore.record(),
        Stream.runCollect,
        Effect.provide(TestChatModel.script([TestChatModel.calls([{ name: "says", arguments: {} }]), "done"]))
      )
      assert.strictEqual(events.at(-1)?._tag, "RunCompleted")
      const store = yield* TraceStore.TraceStore
      const { items } = yield* store.events(events[0]?.runId ?? "", { limit: 100 })
      const json = { percent: null, more: null, at: "1970-01-01T00:00:00.000Z" }
      const told = items.flatMap((event) =>
        event._tag === "ToolProgress"
          ? [event.progress]
          : event._tag === "Custom"
            ? [event.payload]
            : event._tag === "ToolCompleted"
              ? [event.details]
              : []
      )
      assert.deepStrictEqual(told, [json, json, json])
    }))
})
