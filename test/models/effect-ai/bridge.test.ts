import { expect, it } from "@effect/vitest"
import { Effect, Layer, Schema, Stream } from "effect"
import { Agent, type AgentEvent, Content, Message, Tool } from "effect-deepagents"
import * as EffectAiChatModel from "effect-deepagents/models/bridges/EffectAiChatModel"
import * as Toolkit from "effect-deepagents/models/bridges/EffectAiToolkit"
import * as LanguageModelFromChatModel from "effect-deepagents/models/bridges/LanguageModelFromChatModel"
import { TestChatModel } from "effect-deepagents/testing"

const twice = Tool.make("twice", {
  description: "Doubles",
  parameters: { of: Schema.Finite },
  execute: ({ of }) => (of < 0 ? Effect.fail("negative") : Effect.succeed(String(of * 2)))
})

/** The tool of an agent, through a toolkit of effect/ai and back. */
const bridgedTools = Toolkit.toToolkit([twice])

const turns: ReadonlyArray<TestChatModel.Turn> = [
  TestChatModel.calls(
    [
      { id: "a", name: "twice", arguments: { of: 21 } },
      { id: "b", name: "twice", arguments: { of: -1 } },
      { id: "c", name: "twice", arguments: { of: "many" } },
      { id: "d", name: "nothing" },
      { id: "e", name: "twice", raw: `{"of": 1` }
    ],
    { text: "Let me see 👀", reasoning: "Hm", chunkSize: 3, usage: { inputTokens: 9, outputTokens: 4 } }
  ),
  TestChatModel.message(
    Message.ai([Content.reasoning("done", { acme: { signature: "s" } }), Content.text("42, and four errors")])
  )
]

const describeEvent = (event: AgentEvent.AgentEvent) => [
  event._tag,
  ...("text" in event ? [event.text] : []),
  ...("callId" in event ? [event.callId] : [])
]

/** The outcome of a run: its events, and the words of model and tools. */
const outcome = (tools: ReadonlyArray<Tool.Tool>) =>
  Effect.gen(function* () {
    const agent = Agent.make({ name: "doubler", prompt: "Double.", tools, toolConcurrency: 1 })
    const events = yield* Stream.runCollect(Agent.stream(agent, "21?"))
    const requests = yield* TestChatModel.requests
    return {
      events: events.map(describeEvent),
      messages: requests
        .at(-1)
        ?.messages.map(({ content, role, ...rest }) => [
          role,
          content.map((block) => ("text" in block ? [block.type, block.text] : block.type)),
          "toolCalls" in rest ? rest.toolCalls.map((call) => [call.id, call.name, call.arguments]) : [],
          "malformedToolCalls" in rest ? rest.malformedToolCalls.map((call) => [call.id, call.raw]) : [],
          "toolCallId" in rest ? [rest.toolCallId, rest.toolName, rest.isError] : []
        ])
    }
  })

it.effect("an agent does the same through effect/ai and back as without it", () =>
  Effect.gen(function* () {
    const direct = yield* outcome([twice]).pipe(Effect.provide(TestChatModel.script(turns)))
    const handlers = yield* Effect.provide(bridgedTools.toolkit, bridgedTools.layer)
    const bridged = yield* outcome(Toolkit.fromHandlers(handlers)).pipe(
      Effect.provide(
        EffectAiChatModel.layer().pipe(
          Layer.provide(LanguageModelFromChatModel.layer),
          Layer.provideMerge(TestChatModel.script(turns))
        )
      )
    )
    expect(direct.messages).toHaveLength(7)
    expect(bridged).toEqual(direct)
  })
)
