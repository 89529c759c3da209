// effect-deepagents, as built into dist/.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Agent, ChatModel, Message, Tool, Usage } from "../../../dist/index.js"
import { description, historyOf, prompt } from "../script.mjs"

export const history = (length) =>
  historyOf(length, {
    user: Message.human,
    ai: Message.ai,
    call: ({ args, id, name }, text) => Message.ai(text, { toolCalls: [{ id, name, arguments: args }] }),
    answer: ({ id, name }, text) => Message.tool(text, { toolCallId: id, toolName: name })
  })

const usage = Usage.make({ inputTokens: 1, outputTokens: 1 })
const done = (text, toolCalls) => ({
  _tag: "TurnDone",
  message: Message.ai(text, { toolCalls, usage, model: "scripted" })
})

/** The parts of a turn, as a model layer of one's own makes them by the docs. */
const parts = async function* (source) {
  const toolCalls = []
  let text = ""
  for await (const part of source) {
    if (typeof part === "string") {
      text += part
      yield { _tag: "TextDelta", text: part }
    } else {
      toolCalls.push({ id: part.id, name: part.name, arguments: JSON.parse(part.json) })
      yield { _tag: "ToolCallStart", id: part.id, name: part.name }
      yield { _tag: "ToolCallDelta", id: part.id, delta: part.json }
    }
  }
  yield done(text, toolCalls)
}

const batches = async function* (source) {
  let text = ""
  for await (const batch of source) {
    for (const part of batch) text += part
    yield batch.map((part) => ({ _tag: "TextDelta", text: part }))
  }
  yield [done(text, [])]
}

const onError = (cause) => {
  throw cause
}

/** A turn of what an iterable says. */
export const fromTurn = (said) => ChatModel.fromAsyncIterable(() => parts(said()), onError)

/** The model of a script. */
export const modelOf = (script) => {
  const nextTurn = ({ messages }) =>
    script.batch === 0
      ? fromTurn(() => script.turn(messages.length))
      : Stream.flattenArray(ChatModel.fromAsyncIterable(() => batches(script.batches()), onError))
  return {
    modelId: "scripted",
    provider: "scripted",
    supportsVision: true,
    contextWindowTokens: undefined,
    makeSession: Effect.succeed({ nextTurn })
  }
}

/** The tool of a script. */
export const stepOf = (script) =>
  Tool.make("step", {
    description,
    parameters: { n: Schema.Finite },
    execute: ({ n }) => (script.toolTime > 0 ? Effect.promise(() => script.step(n)) : Effect.succeed(script.step(n)))
  })

/** Reads the events of a run to their end. Gives what was streamed. */
export const consume = (events) => {
  let streamed = ""
  let end
  const read = Stream.runForEachArray(events, (events) => {
    for (const event of events) {
      if (event._tag === "TextDelta") streamed += event.text
      else if (event._tag === "RunCompleted") end = event.stopReason
    }
    return Effect.void
  })
  return Effect.flatMap(read, () =>
    end === "completed" ? Effect.succeed(streamed) : Effect.die(new Error(`the run ended with ${end}`))
  )
}

export const make = (script) => {
  const model = modelOf(script)
  const tools = [stepOf(script)]
  const agent = Agent.make({ name: "bench", prompt, tools, maxRounds: 100_000, toolConcurrency: 50 })

  return (before = []) =>
    Effect.runPromise(
      Effect.provideService(consume(Agent.stream(agent, "go", { history: before })), ChatModel.ChatModel, model)
    )
}
