import { Agent, ChatModel, Message, Tool, Usage } from "effect-deepagents"
import * as MemoryBackend from "effect-deepagents/backends/MemoryBackend"
import { DeepAgent } from "effect-deepagents/deep"
/**
 * Runs an agent again and again, and says how many bytes a round leaves to a full collection: what collections of young
 * memory alone don't free, although its run is over. `node garbage.child.mjs plain|deep`.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"

const rounds = 20
const runs = 200

const tool = Tool.make("step", {
  description: "Do one step",
  parameters: { n: Schema.Finite },
  execute: ({ n }) => Effect.succeed(`ok ${n}`)
})

const usage = Usage.make({ inputTokens: 1, outputTokens: 1 })

// Written once: V8 keeps something of each generator function that is made in a function.
const turn = async function* (said) {
  const toolCalls = said > 2 * rounds ? [] : [{ id: `call_${said}`, name: "step", arguments: { n: said } }]
  for (const text of ["one ", "two ", "three "]) yield { _tag: "TextDelta", text }
  yield { _tag: "TurnDone", message: Message.ai("one two three ", { toolCalls, usage, model: "scripted" }) }
}

const nextTurn = ({ messages }) =>
  ChatModel.fromAsyncIterable(
    () => turn(messages.length),
    (cause) => cause
  )

const model = {
  modelId: "scripted",
  provider: "scripted",
  supportsVision: true,
  contextWindowTokens: undefined,
  makeSession: Effect.succeed({ nextTurn })
}

const options = { name: "bench", prompt: "You count.", tools: [tool], maxRounds: 100 }
const agent = process.argv[2] === "deep" ? DeepAgent.make(options) : Agent.make(options)

const once = () =>
  Effect.runPromise(
    Stream.runDrain(Agent.stream(agent, "go")).pipe(
      Effect.provide(MemoryBackend.layer()),
      Effect.provideService(ChatModel.ChatModel, model)
    )
  )

const young = () => globalThis.gc({ type: "minor" })

/** Node holds what ran last until the next turn of its event loop. */
const turned = () => new Promise((go) => setImmediate(go))

for (let run = 0; run < runs; run++) await once()
globalThis.gc()
const before = process.memoryUsage().heapUsed
for (let run = 0; run < runs; run++) {
  await once()
  await turned()
  // Twice: what lived through one is only then old.
  young()
  young()
}
console.log((process.memoryUsage().heapUsed - before) / (runs * rounds))
