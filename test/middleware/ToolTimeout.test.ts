import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Layer, Stream } from "effect"
import { Agent, Approval, Message, Question, Tool, ToolContext } from "effect-deepagents"
import { ToolTimeout } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import { inBackground, prompt } from "./run.ts"

/** An agent whose model calls each of these tools once, all at once. */
const calling = (
  options: Parameters<typeof ToolTimeout.make>[0],
  tools: ReadonlyArray<Tool.Tool<ToolContext.ToolContext>>
) =>
  Agent.run(
    Agent.make({ name: "agent", prompt: "You are tested.", tools, middleware: [ToolTimeout.make(options)] }),
    prompt
  ).pipe(
    Effect.map(({ messages }) =>
      messages.flatMap((message) => (message.role === "tool" ? [[message.toolName, Message.text(message)]] : []))
    ),
    Effect.provide(TestChatModel.script([TestChatModel.calls(tools.map(({ name }) => ({ name }))), "done"]))
  )

const tool = (name: string, execute: Effect.Effect<string>) =>
  Tool.make(name, { description: "A tool", parameters: {}, execute: () => execute })

const hanging = (name: string) => tool(name, Effect.never)

describe("ToolTimeout", () => {
  it.effect("a tool that is not done in time is a ToolError that says how long it was given", () =>
    Effect.gen(function* () {
      const run = yield* inBackground(calling({ default: "90 seconds" }, [hanging("slow")]))
      yield* TestClock.adjust("89999 millis")
      assert.isFalse(yield* run.isDone)
      yield* TestClock.adjust("1 millis")
      const [answer] = yield* run.result
      assert.include(answer?.[1], 'The tool "slow" was given 1m 30s and was stopped')
    })
  )

  it.effect("the event says that it timed out", () =>
    Effect.gen(function* () {
      const agent = Agent.make({
        name: "agent",
        prompt: "You are tested.",
        tools: [hanging("slow")],
        middleware: [ToolTimeout.make({ default: "1 second" })]
      })
      const handle = yield* Agent.start(agent, prompt)
      const reasons: Array<string> = []
      yield* inBackground(
        Stream.runForEach(handle.events, (event) =>
          Effect.sync(() => {
            if (event._tag === "ToolFailed") reasons.push(event.reason)
          })
        )
      )
      yield* TestClock.adjust("1 second")
      yield* handle.await
      assert.deepStrictEqual(reasons, ["TimedOut"])
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.calls([{ name: "slow" }]), "done"])))
  )

  it.effect("9: it is interrupted, and its finalizers have run when the model is told", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const note = (what: string) => Effect.sync(() => void log.push(what))
      const careful = tool(
        "careful",
        Effect.scoped(
          Effect.andThen(
            Effect.acquireRelease(note("open"), () => Effect.andThen(Effect.sleep("1 second"), note("close"))),
            Effect.onInterrupt(Effect.never, () => note("interrupted"))
          )
        )
      )
      const run = yield* inBackground(Effect.tap(calling({ default: "10 seconds" }, [careful]), note("told")))
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(log, ["open", "interrupted"])
      yield* TestClock.adjust("1 second")
      yield* run.result
      assert.deepStrictEqual(log, ["open", "interrupted", "close", "told"])
    })
  )

  it.effect("a tool may have a limit of its own, or none", () =>
    Effect.gen(function* () {
      const started = yield* Clock.currentTimeMillis
      const run = yield* inBackground(
        calling({ default: "10 seconds", tools: { long: "1 hour", endless: "Infinity" } }, [
          hanging("long"),
          tool("endless", Effect.as(Effect.sleep("2 hours"), "finally")),
          hanging("constructor")
        ])
      )
      yield* TestClock.adjust("2 hours")
      const [long, endless, other] = yield* run.result
      assert.include(long?.[1], "1h")
      assert.deepStrictEqual(endless, ["endless", "finally"])
      assert.include(other?.[1], "10s")
      assert.strictEqual((yield* Clock.currentTimeMillis) - started, 7_200_000)
    })
  )

  it.effect("without a default only the named tools have a limit", () =>
    Effect.gen(function* () {
      const run = yield* inBackground(
        calling({ tools: { named: "1 second" } }, [
          hanging("named"),
          tool("free", Effect.as(Effect.sleep("1 day"), "done"))
        ])
      )
      yield* TestClock.adjust("1 day")
      const [named, free] = yield* run.result
      assert.include(named?.[1], "was given 1s")
      assert.deepStrictEqual(free, ["free", "done"])
    })
  )

  it.effect("a tool that is done in time is left alone", () =>
    Effect.gen(function* () {
      const answers = yield* calling({ default: "1 second" }, [tool("quick", Effect.succeed("done"))])
      assert.deepStrictEqual(answers, [["quick", "done"]])
    })
  )
})

describe("ToolTimeout and people", () => {
  const asking = (work: number) =>
    calling({ default: "50 millis" }, [
      Tool.make("asks", {
        description: "Asks, then works",
        parameters: {},
        execute: Effect.fnUntraced(function* () {
          const { ask } = yield* ToolContext.ToolContext
          yield* ask(Question.confirm("Go on?"))
          yield* Effect.sleep(work)
          return "done"
        })
      })
    ]).pipe(
      Effect.provide(
        Layer.succeed(Approval.Approvals, {
          decide: (request) => Effect.as(Effect.sleep(200), Approval.respond(request, true))
        })
      )
    )

  for (const [work, expected] of [
    [40, "done"],
    [60, "was given 50ms and was stopped"]
  ] as const) {
    it.effect(`the time that a person thinks does not count, ${work} ms of work do`, () =>
      Effect.gen(function* () {
        const run = yield* inBackground(asking(work))
        yield* TestClock.adjust(200)
        assert.isFalse(yield* run.isDone)
        yield* TestClock.adjust(100)
        const [answer] = yield* run.result
        assert.include(answer?.[1], expected)
      })
    )
  }
})
