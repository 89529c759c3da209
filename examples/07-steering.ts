/**
 * Talking to a run that is under way: steer it, put a follow-up behind its answer, interrupt it and go on later.
 */
import assert from "node:assert/strict"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Deferred, Effect, Stream } from "effect"
import { Agent, Message, Tool } from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"

const said = (messages: ReadonlyArray<Message.Message>) =>
  messages.map((message) => `${message.role}: ${Message.text(message)}`)

const model = TestChatModel.script([
  TestChatModel.calls([{ name: "search", arguments: {} }], { text: "Searching." }),
  "Only trains, then: there are three.",
  "The first leaves at 7:10.",
  TestChatModel.hangAfter("The last one leaves")
])

const program = Effect.gen(function* () {
  const searching = yield* Deferred.make<void>()
  const steered = yield* Deferred.make<void>()
  const search = Tool.make("search", {
    description: "Searches connections",
    parameters: {},
    execute: () =>
      Deferred.succeed(searching, undefined).pipe(Effect.andThen(Deferred.await(steered)), Effect.as("9 found"))
  })
  const agent = Agent.make({ name: "travel", prompt: "You plan journeys.", tools: [search] })

  const run = yield* Agent.start(agent, "How do I get to Bern?")
  yield* Deferred.await(searching)
  yield* run.steer("No planes, please.")
  yield* run.followUp("Which one is the first?")
  yield* Deferred.succeed(steered, undefined)
  const result = yield* run.await
  yield* Effect.forEach(said(result.messages), (line) => Console.log(line))
  assert.deepEqual(said(result.messages), [
    "human: How do I get to Bern?",
    "ai: Searching.",
    "tool: 9 found",
    "human: No planes, please.",
    "ai: Only trains, then: there are three.",
    "human: Which one is the first?",
    "ai: The first leaves at 7:10."
  ])

  const second = yield* Agent.start(agent, "And the last?", { history: result.messages })
  yield* second.events.pipe(
    Stream.takeUntil((event) => event._tag === "TextDelta"),
    Stream.runDrain
  )
  yield* second.interrupt
  const last = (yield* second.messages).at(-1)
  assert(last?.role === "ai")
  yield* Console.log(`${last.stopReason}: ${Message.text(last)} …`)
  assert.deepEqual([last.stopReason, Message.text(last)], ["interrupted", "The last one leaves"])
})

NodeRuntime.runMain(program.pipe(Effect.scoped, Effect.provide(model)))
