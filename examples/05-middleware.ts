/**
 * Middleware: values around every model and tool call. Here retries, a second model, a budget, and one of our own; the
 * first in the list is the outermost.
 */
import assert from "node:assert/strict"
import { NodeRuntime } from "@effect/platform-node"
import { Clock, Console, Effect, Schedule, Schema, Stream } from "effect"
import { Agent, Middleware, Tool } from "effect-deepagents"
import { Budget, ModelFallback, ModelRetry } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"

const timing = Middleware.make({
  name: "timing",
  wrapToolCall: Effect.fnUntraced(function* (call, next, run) {
    const start = yield* Clock.currentTimeMillis
    const output = yield* next(call)
    yield* run.custom("timing", { tool: call.name, millis: (yield* Clock.currentTimeMillis) - start })
    return output
  })
})

const secondModel = TestChatModel.script(["Tea is from China."], { modelId: "second" })

const search = Tool.make("search", {
  description: "Searches the web",
  parameters: { query: Schema.String },
  execute: ({ query }) => Effect.succeed(`1 result for ${query}`)
})

const agent = Agent.make({
  name: "reader",
  prompt: "You search and answer.",
  tools: [search],
  middleware: [
    Budget.make({ toolCalls: 2, onExhausted: "finalAnswer" }),
    ModelFallback.make([secondModel]),
    ModelRetry.make({ schedule: Schedule.spaced("10 millis").pipe(Schedule.upTo({ times: 3 })) }),
    timing
  ]
})

const model = TestChatModel.script(
  [
    TestChatModel.fail({ _tag: "Overloaded" }, { after: "Let me" }),
    TestChatModel.calls(
      ["tea", "origin of tea", "tea history"].map((query) => ({ name: "search", arguments: { query } }))
    ),
    TestChatModel.fail({ _tag: "QuotaExhausted" })
  ],
  { modelId: "first" }
)

const program = Effect.gen(function* () {
  const events = yield* Stream.runCollect(Agent.stream(agent, "Where is tea from?"))
  for (const event of events) {
    if (event._tag === "TurnRestarted") yield* Console.log(`again   ${event.reason}`)
    if (event._tag === "Warning") yield* Console.log(`warning ${event.message}`)
    if (event._tag === "Custom") yield* Console.log(`${event.name}  ${JSON.stringify(event.payload)}`)
    if (event._tag === "ToolFailed") yield* Console.log(`refused ${event.text}`)
    if (event._tag === "TextDelta") yield* Console.log(`text    ${event.text}`)
  }
  const last = events.at(-1)
  assert(last?._tag === "RunCompleted")
  yield* Console.log(`end     ${last.stopReason}`)
  assert.equal(last.stopReason, "budget:toolCalls")
  assert.equal(events.filter((event) => event._tag === "TurnRestarted").length, 1)
  assert.equal(events.filter((event) => event._tag === "Custom").length, 2)
})

NodeRuntime.runMain(program.pipe(Effect.provide(model)))
