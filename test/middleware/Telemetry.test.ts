import { assert, describe, it } from "@effect/vitest"
import { Data, Effect, Exit, Fiber, Metric, Schema, Stream, Tracer } from "effect"
import { Agent, Message, Middleware, Tool, ToolError, ToolOutput } from "effect-deepagents"
import { ModelFallback, ModelRetry, Telemetry } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import * as TestJournal from "../core/journal.ts"
import { makeSpanRecorder } from "../spans.ts"
import { agentWith, inBackground, prompt } from "./run.ts"

/** Runs with a tracer that keeps its spans, and metrics of its own. */
const traced = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const { spans, tracer } = makeSpanRecorder()
    const registry: Metric.MetricRegistry = new Map()
    const exit = yield* Effect.exit(effect).pipe(
      Effect.provideService(Tracer.Tracer, tracer),
      Effect.provideService(Metric.MetricRegistry, registry)
    )
    const metrics = yield* Effect.provideService(Metric.snapshot, Metric.MetricRegistry, registry)
    return { exit, spans, metrics }
  })

const findSpan = (spans: ReadonlyArray<Tracer.NativeSpan>, name: string) => {
  const found = spans.filter((span) => span.name === name)
  assert.lengthOf(found, 1, `${name} of ${spans.map((span) => span.name).join(", ")}`)
  return found[0] as Tracer.NativeSpan
}

const parentName = (span: Tracer.NativeSpan) =>
  span.parent._tag === "Some" && span.parent.value._tag === "Span" ? span.parent.value.name : undefined

const attributesOf = (span: Tracer.NativeSpan) => Object.fromEntries(span.attributes)

const secondsOf = (span: Tracer.NativeSpan) =>
  span.status._tag === "Ended" ? Number(span.status.endTime - span.status.startTime) / 1e9 : undefined

class Broken extends Data.TaggedError("Broken")<{}> {}

const lookup = Tool.make("lookup", {
  description: "Looks up",
  parameters: { id: Schema.Finite },
  execute: ({ id }) =>
    id === 1
      ? Effect.delay(Effect.succeed("found"), "2 seconds")
      : id === 2
        ? Effect.fail(ToolError.make("there is none"))
        : Effect.succeed(ToolOutput.make("wrong", { isError: true }))
})

const looking = (...ids: ReadonlyArray<number>) =>
  TestChatModel.calls(
    ids.map((id) => ({ name: "lookup", id: `c${id}`, arguments: { id } })),
    { usage: { inputTokens: 10, outputTokens: 5 }, delay: "1 second" }
  )

const agent = Agent.make({
  name: "support",
  prompt: "You help.",
  tools: [lookup],
  middleware: [Telemetry.make()],
  parameters: { temperature: 0.5, effort: "high" }
})

describe("Telemetry", () => {
  it.effect("a run, its model calls and its tools are spans, with the attributes of the conventions", () =>
    Effect.gen(function* () {
      const run = yield* inBackground(
        traced(Agent.run(agent, prompt, { threadId: "t1" }).pipe(Effect.provide(TestJournal.layer({}))))
      )
      yield* TestClock.adjust("10 seconds")
      const { spans } = yield* run.result
      assert.deepStrictEqual(
        spans.map((span) => [span.name, span.kind, parentName(span), secondsOf(span)]),
        [
          ["invoke_agent support", "internal", undefined, 3],
          ["chat scripted", "client", "invoke_agent support", 1],
          ["execute_tool lookup", "internal", "invoke_agent support", 2],
          ["chat scripted", "client", "invoke_agent support", 0]
        ]
      )
      const [invoke, chat, tool] = spans.map(attributesOf)
      const common = {
        "gen_ai.provider.name": "test",
        "gen_ai.agent.name": "support",
        "gen_ai.conversation.id": "t1"
      }
      const usage = {
        "gen_ai.usage.cache_read.input_tokens": 0,
        "gen_ai.usage.cache_creation.input_tokens": 0,
        "gen_ai.usage.reasoning.output_tokens": 0
      }
      assert.deepStrictEqual(invoke, {
        ...common,
        ...usage,
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.request.model": "scripted",
        "gen_ai.usage.input_tokens": 17,
        "gen_ai.usage.output_tokens": 8
      })
      assert.deepStrictEqual(chat, {
        ...common,
        ...usage,
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "scripted",
        "gen_ai.request.stream": true,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.output.type": "text",
        "gen_ai.response.model": "scripted",
        "gen_ai.response.finish_reasons": ["tool_call"],
        "gen_ai.response.time_to_first_chunk": 1,
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5
      })
      assert.deepStrictEqual(tool, {
        ...common,
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "lookup",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "c1"
      })
    }).pipe(
      Effect.provide(
        TestChatModel.script([looking(1), TestChatModel.text("ok", { usage: { inputTokens: 7, outputTokens: 3 } })])
      )
    )
  )

  it.effect("content is in the spans only on request", () =>
    Effect.gen(function* () {
      const talk = (captureContent: boolean) =>
        traced(
          Agent.run(
            Agent.make({
              name: "support",
              prompt: "secret prompt",
              tools: [lookup],
              middleware: [Telemetry.make({ captureContent })]
            }),
            [
              Message.human("secret question", {
                images: [{ url: "https://example.com/a.png" }, { base64: "AAAA", mimeType: "image/png" }]
              })
            ]
          )
        )
      const silent = yield* talk(false)
      const everything = JSON.stringify(silent.spans.map(attributesOf))
      for (const secret of ["secret", "wrong", "example"]) assert.notInclude(everything, secret)
      const { spans } = yield* talk(true)
      const parse = (span: Tracer.NativeSpan | undefined, key: string) =>
        JSON.parse(String(span?.attributes.get(key))) as unknown
      const chats = spans.filter((span) => span.name === "chat scripted")
      assert.deepStrictEqual(parse(chats[0], "gen_ai.system_instructions"), [
        { type: "text", content: "secret prompt" }
      ])
      assert.deepStrictEqual(parse(chats[1], "gen_ai.input.messages"), [
        {
          role: "user",
          parts: [
            { type: "text", content: "secret question" },
            { type: "uri", modality: "image", uri: "https://example.com/a.png" },
            { type: "blob", modality: "image", mime_type: "image/png", content: "" }
          ]
        },
        { role: "assistant", parts: [{ type: "tool_call", id: "c3", name: "lookup", arguments: { id: 3 } }] },
        {
          role: "tool",
          parts: [{ type: "tool_call_response", id: "c3", response: [{ type: "text", content: "wrong" }] }]
        }
      ])
      assert.deepStrictEqual(parse(chats[1], "gen_ai.output.messages"), [
        { role: "assistant", parts: [{ type: "text", content: "secret answer" }], finish_reason: "stop" }
      ])
      const tool = findSpan(spans, "execute_tool lookup")
      assert.deepStrictEqual(parse(tool, "gen_ai.tool.call.arguments"), { id: 3 })
      assert.strictEqual(tool.attributes.get("gen_ai.tool.call.result"), "wrong")
    }).pipe(
      Effect.provide(
        TestChatModel.reactive((request) => {
          const turn = TestChatModel.calls([{ name: "lookup", id: "c3", arguments: { id: 3 } }])
          return request.messages.length === 1 ? turn : "secret answer"
        })
      )
    )
  )

  it.effect("a sub-agent's run is a child of the tool call that began it", () =>
    Effect.gen(function* () {
      const helper = Agent.make({ name: "helper", description: "Helps", prompt: "" })
      const boss = Agent.make({
        name: "boss",
        prompt: "",
        tools: [Agent.asTool(helper)],
        middleware: [Telemetry.make()]
      })
      const { spans } = yield* traced(Effect.withSpan(Agent.run(boss, prompt), "request"))
      assert.deepStrictEqual(
        spans.map((span) => [span.name, parentName(span)]),
        [
          ["request", undefined],
          ["invoke_agent boss", "request"],
          ["chat scripted", "invoke_agent boss"],
          ["execute_tool helper", "invoke_agent boss"],
          ["invoke_agent helper", "execute_tool helper"],
          ["chat scripted", "invoke_agent helper"],
          ["chat scripted", "invoke_agent boss"]
        ]
      )
    }).pipe(
      Effect.provide(
        TestChatModel.script([TestChatModel.calls([{ name: "helper", arguments: { task: "t" } }]), "found", "done"])
      )
    )
  )

  it.effect("spans of tools, and of the model's adapter, are inside", () =>
    Effect.gen(function* () {
      const spy = Middleware.make({
        name: "adapter",
        wrapModelCall: (request, next) => Stream.withSpan(next(request), "http")
      })
      const tool = Tool.make("query", {
        description: "Asks the database",
        parameters: {},
        execute: () => Effect.withSpan(Effect.succeed("rows"), "sql")
      })
      const { spans } = yield* traced(
        Agent.run(Agent.make({ name: "a", prompt: "", tools: [tool], middleware: [Telemetry.make(), spy] }), prompt)
      )
      assert.strictEqual(parentName(findSpan(spans, "sql")), "execute_tool query")
      const requests = spans.filter(({ name }) => name === "http")
      assert.deepStrictEqual(requests.map(parentName), ["chat scripted", "chat scripted"])
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.calls([{ name: "query" }]), "ok"])))
  )

  it.effect("a failed run ends all of its spans with the error", () =>
    Effect.gen(function* () {
      const { exit, metrics, spans } = yield* traced(Agent.run(agentWith(Telemetry.make()), prompt))
      assert.isTrue(Exit.isFailure(exit))
      for (const name of ["invoke_agent agent", "chat scripted"]) {
        const span = findSpan(spans, name)
        assert.strictEqual(span.attributes.get("error.type"), "Overloaded")
        assert.isTrue(span.status._tag === "Ended" && Exit.isFailure(span.status.exit))
      }
      const duration = metrics.find((metric) => metric.id === "gen_ai.client.operation.duration")
      assert.strictEqual(duration?.attributes?.["error.type"], "Overloaded")
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.fail({ _tag: "Overloaded" })])))
  )

  it.effect("a failure of a middleware is the run's error", () =>
    Effect.gen(function* () {
      const breaks = Middleware.make({ name: "breaks", afterModel: () => Effect.fail(new Broken()) })
      const { spans } = yield* traced(Agent.run(agentWith(Telemetry.make(), breaks), prompt))
      assert.strictEqual(findSpan(spans, "invoke_agent agent").attributes.get("error.type"), "Broken")
      assert.isFalse(findSpan(spans, "chat scripted").attributes.has("error.type"))
    }).pipe(Effect.provide(TestChatModel.script(["hi"])))
  )

  it.effect("9: an interrupted run ends all of its spans", () =>
    Effect.gen(function* () {
      const { spans } = yield* traced(
        Effect.gen(function* () {
          const { fiber } = yield* inBackground(Agent.run(agentWith(Telemetry.make()), prompt))
          yield* Fiber.interrupt(fiber)
        })
      )
      for (const name of ["invoke_agent agent", "chat scripted"]) {
        assert.strictEqual(findSpan(spans, name).attributes.get("error.type"), "interrupted")
      }
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.hang])))
  )

  it.effect("a tool's failure is on its span, and not on the run's", () =>
    Effect.gen(function* () {
      const { spans } = yield* traced(Agent.run(agent, prompt))
      const types = spans.map((span) => [span.name, span.attributes.get("error.type")])
      assert.deepStrictEqual(types, [
        ["invoke_agent support", undefined],
        ["chat scripted", undefined],
        ["execute_tool lookup", "Failed"],
        ["execute_tool lookup", "Failed"],
        ["chat scripted", undefined]
      ])
    }).pipe(
      Effect.provide(
        TestChatModel.script([TestChatModel.calls([2, 3].map((id) => ({ name: "lookup", arguments: { id } }))), "ok"])
      )
    )
  )

  it.effect("tokens and durations are histograms, in tokens and seconds", () =>
    Effect.gen(function* () {
      const run = yield* inBackground(traced(Agent.run(agent, prompt)))
      yield* TestClock.adjust("10 seconds")
      const { metrics } = yield* run.result
      const read = metrics.flatMap((metric) =>
        metric.type === "Histogram"
          ? [[metric.id, metric.attributes?.["gen_ai.token.type"], metric.state.count, metric.state.sum]]
          : []
      )
      assert.deepStrictEqual(
        read.toSorted((left, right) => (String(left) < String(right) ? -1 : 1)),
        [
          ["gen_ai.client.operation.duration", undefined, 2, 1],
          ["gen_ai.client.token.usage", "input", 2, 17],
          ["gen_ai.client.token.usage", "output", 2, 8],
          ["gen_ai.execute_tool.duration", undefined, 1, 2],
          ["gen_ai.invoke_agent.duration", undefined, 1, 3]
        ]
      )
      const tokens = metrics.find((metric) => metric.id === "gen_ai.client.token.usage")
      assert.deepInclude(tokens?.attributes, {
        unit: "{token}",
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "test",
        "gen_ai.request.model": "scripted",
        "gen_ai.response.model": "scripted"
      })
    }).pipe(
      Effect.provide(
        TestChatModel.script([looking(1), TestChatModel.text("ok", { usage: { inputTokens: 7, outputTokens: 3 } })])
      )
    )
  )

  it.effect("a call without usage counts no tokens", () =>
    Effect.gen(function* () {
      const { metrics, spans } = yield* traced(Agent.run(agentWith(Telemetry.make()), prompt))
      assert.notInclude(
        metrics.map((metric) => metric.id),
        "gen_ai.client.token.usage"
      )
      assert.isFalse(findSpan(spans, "chat scripted").attributes.has("gen_ai.usage.input_tokens"))
    }).pipe(Effect.provide(TestChatModel.script(["hi"])))
  )

  it.effect("before a retry there is one span for all tries, behind it one for each", () =>
    Effect.gen(function* () {
      const chats = (...stack: ReadonlyArray<Middleware.Middleware>) =>
        Effect.gen(function* () {
          const run = yield* inBackground(traced(Agent.run(agentWith(...stack), prompt)))
          yield* TestClock.adjust("1 minute")
          const { spans } = yield* run.result
          return spans.flatMap((span) =>
            span.name === "chat scripted" ? [span.attributes.get("error.type") ?? "fine"] : []
          )
        })
      assert.deepStrictEqual(yield* chats(Telemetry.make(), ModelRetry.make()), ["fine"])
      assert.deepStrictEqual(yield* chats(ModelRetry.make(), Telemetry.make()), ["Overloaded", "fine"])
    }).pipe(
      Effect.provide(
        TestChatModel.reactive((_, index) => (index % 2 === 0 ? TestChatModel.fail({ _tag: "Overloaded" }) : "hi"))
      )
    )
  )

  it.effect("behind a fallback the span names the model that was asked", () =>
    Effect.gen(function* () {
      const second = TestChatModel.script(["hi"], { modelId: "second", provider: "other" })
      const agent = agentWith(ModelFallback.make([second]), Telemetry.make())
      const { spans } = yield* traced(Agent.run(agent, prompt))
      assert.strictEqual(attributesOf(findSpan(spans, "chat second"))["gen_ai.provider.name"], "other")
      findSpan(spans, "chat scripted")
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.fail({ _tag: "QuotaExhausted" })])))
  )

  it.effect("a turn that was voided inside a call counts too", () =>
    Effect.gen(function* () {
      const twice = Middleware.make<never>({
        name: "twice",
        wrapModelCall: (request, next) =>
          next(request).pipe(
            Stream.concat(Stream.succeed({ _tag: "TurnRestarted", reason: "again" } as const)),
            Stream.concat(next(request))
          )
      })
      const { spans } = yield* traced(Agent.run(agentWith(Telemetry.make(), twice), prompt))
      assert.strictEqual(findSpan(spans, "chat scripted").attributes.get("gen_ai.usage.input_tokens"), 10)
    }).pipe(Effect.provide(TestChatModel.reactive(() => TestChatModel.text("hi", { usage: { inputTokens: 5 } }))))
  )

  it.effect("with tracing off there are no spans, and nothing else changes", () =>
    Effect.gen(function* () {
      const { exit, metrics, spans } = yield* traced(Effect.withTracerEnabled(Agent.run(agent, prompt), false))
      assert.isTrue(Exit.isSuccess(exit))
      assert.deepStrictEqual(spans, [])
      assert.isAbove(metrics.length, 0)
    }).pipe(Effect.provide(TestChatModel.script(["hi"])))
  )
})
