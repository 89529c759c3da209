// A deep agent of effect-deepagents with the whole stack that it has by default, as built into dist/.
import assert from "node:assert/strict"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { MemoryBackend } from "../../../dist/backends/index.js"
import { DeepAgent } from "../../../dist/deep/index.js"
import { Agent, ChatModel, Message, Middleware } from "../../../dist/index.js"
import { longHistoryOf, makeScript, prompt, sleep, summary } from "../script.mjs"
import { consume, fromTurn, modelOf, stepOf } from "./ours.mjs"

export { history } from "./ours.mjs"

/** What most models have. Its trigger is at 170,000 tokens, as that of deepagents is. */
export const contextWindowTokens = 200_000

const surroundings = (model) =>
  Layer.merge(MemoryBackend.layer(), Layer.succeed(ChatModel.ChatModel, { ...model, contextWindowTokens }))

export const agentOf = (tools, more) => DeepAgent.make({ name: "bench", prompt, tools, maxRounds: 100_000, ...more })

const run = (agent, model, before = []) =>
  Effect.runPromise(Effect.provide(consume(Agent.stream(agent, "go", { history: before })), surroundings(model)))

export const make = (script) => {
  const agent = agentOf([stepOf(script)], { toolConcurrency: 50 })
  return (before) => run(agent, modelOf(script), before)
}

const byOption = ["Skills", "BackgroundSubagents", "Memory", "HumanInTheLoop"]

/** What an agent without options has in its stack, and its file tools. */
export const parts = [...DeepAgent.parts.filter((part) => !byOption.includes(part)), "file tools"]

/** Makes the agent of a script without some of the parts: what does nothing takes their place. */
export const makeWithout = (left) => (script) => {
  const middleware = left.filter((part) => DeepAgent.parts.includes(part)).map((name) => Middleware.make({ name }))
  const files = left.includes("file tools") ? { files: [] } : {}
  const agent = agentOf([stepOf(script)], { toolConcurrency: 50, middleware, ...files })
  return (before) => run(agent, modelOf(script), before)
}

/** A run on a conversation that does not fit: its old part is summarised first. Gives how often that was. */
export const compaction = (length) => {
  const before = longHistoryOf(length, Message.human, Message.ai)
  const agent = agentOf([])
  return async () => {
    const script = makeScript()
    const { makeSession, ...model } = modelOf(script)
    let summaries = 0
    const session = Effect.map(makeSession, ({ nextTurn }) => ({
      nextTurn: (request) => {
        if (request.purpose === "turn") return nextTurn(request)
        summaries++
        return fromTurn(async function* () {
          yield summary
        })
      }
    }))
    script.verify(await run(agent, { ...model, makeSession: session }, before))
    return summaries
  }
}

/**
 * A run of many rounds in which the conversation outgrows its window: 50 ms a turn, 250 ms a summary. Gives the longest
 * time from the end of a turn to the beginning of the next, in milliseconds.
 */
export const outgrowing = (background) => {
  // What the model says is not cut by the cheap steps, as results are.
  const script = makeScript({ rounds: 160, latency: 50, texts: 300 })
  const agent = agentOf([stepOf(script)], {
    summarization: { background, trigger: { tokens: 50_000 }, tail: { tokens: 5_000 } }
  })
  return async () => {
    const { makeSession, ...model } = modelOf(script)
    let [asked, ended, longest, summaries] = [0, 0, 0, 0]
    const session = Effect.map(makeSession, ({ nextTurn }) => ({
      nextTurn: (request) => {
        if (request.purpose !== "turn") {
          summaries++
          return fromTurn(async function* () {
            await sleep(250)
            yield summary
          })
        }
        if (asked++ > 0) longest = Math.max(longest, performance.now() - ended)
        const turn = () => script.turn(script.before + 2 * asked)
        return Stream.ensuring(
          fromTurn(turn),
          Effect.sync(() => (ended = performance.now()))
        )
      }
    }))
    script.verify(await run(agent, { ...model, makeSession: session }))
    assert.ok(summaries > 0, "the conversation did not outgrow its window")
    return longest
  }
}

/** A run that has sub-agents work at once. */
export const fan = (script) => {
  const agent = agentOf([], { toolConcurrency: script.count })
  const nextTurn = ({ messages }) => fromTurn(() => script.turn(Message.text(messages[0]), messages.length))
  const model = { ...modelOf(script), makeSession: Effect.succeed({ nextTurn }) }
  return () => run(agent, model)
}

/** Fails unless what goes in front of every request is the same, byte by byte, in all rounds of all runs. */
export const stable = async () => {
  const fronts = new Set()
  const tools = new Set()
  for (let time = 0; time < 3; time++) {
    const script = makeScript({ rounds: 20 })
    const { makeSession, ...model } = modelOf(script)
    const session = Effect.map(makeSession, ({ nextTurn }) => ({
      nextTurn: (request) => {
        fronts.add(request.systemPrompt)
        tools.add(JSON.stringify(request.tools))
        return nextTurn(request)
      }
    }))
    script.verify(await run(agentOf([stepOf(script)]), { ...model, makeSession: session }))
  }
  assert.equal(fronts.size, 1, "the system prompt is the same in all rounds of all runs")
  assert.equal(tools.size, 1, "so is the list of tools")
  const [front, list] = [[...fronts][0], [...tools][0]]
  return { prompt: front.length, tools: list.length }
}
