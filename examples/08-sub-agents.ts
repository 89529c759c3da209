/**
 * Agents as tools of another agent: each with a model of its own, both at work at the same time, their events inline.
 */
import assert from "node:assert/strict"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Stream } from "effect"
import { Agent, AgentEvent } from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"

const expert = (name: string, answer: string) =>
  // With a model of its own it needs none from outside.
  Agent.provide(
    Agent.make({ name, description: `Knows all about ${name}`, prompt: `You know all about ${name}.` }),
    TestChatModel.script([TestChatModel.text(answer, { delay: "20 millis", usage: { outputTokens: 5 } })], {
      modelId: `small-${name}`
    })
  )

const agent = Agent.make({
  name: "host",
  prompt: "Ask your experts.",
  tools: [
    Agent.asTool(expert("history", "The city was founded in 1191.")),
    Agent.asTool(expert("food", "Try the onion market."))
  ]
})

const model = TestChatModel.script([
  TestChatModel.calls(
    [
      { name: "history", arguments: { task: "When was Bern founded?" } },
      { name: "food", arguments: { task: "What should I eat in Bern?" } }
    ],
    { usage: { outputTokens: 20 } }
  ),
  TestChatModel.text("Bern is from 1191, and you should try its onion market.", { usage: { outputTokens: 10 } })
])

const program = Effect.gen(function* () {
  const events = yield* Stream.runCollect(Agent.stream(agent, "Tell me about Bern."))
  for (const event of events) {
    const who = event.path.join(" > ")
    if (event._tag === "RunStarted") yield* Console.log(`${who}: asks ${event.model}`)
    if (event._tag === "TextDelta") yield* Console.log(`${who}: ${event.text}`)
  }
  const order = events.map((event) => event._tag).filter((tag) => tag.startsWith("Subagent"))
  assert.deepEqual(order, ["SubagentStarted", "SubagentStarted", "SubagentCompleted", "SubagentCompleted"])
  // What sub-agents spend counts for their parent.
  assert.equal(AgentEvent.usageOf(events).outputTokens, 40)
})

NodeRuntime.runMain(program.pipe(Effect.provide(model)))
