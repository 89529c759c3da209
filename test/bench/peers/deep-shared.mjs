// Deep agents of one program, which share their layers: their files are in the state of their runs.
import * as Effect from "effect/Effect"
import * as ManagedRuntime from "effect/ManagedRuntime"
import { MemoryBackend } from "../../../dist/backends/index.js"
import { Agent, ChatModel } from "../../../dist/index.js"
import { agentOf, contextWindowTokens } from "./deep.mjs"
import { consume, modelOf, stepOf } from "./ours.mjs"

export { history } from "./ours.mjs"

const runtime = ManagedRuntime.make(MemoryBackend.layerState)

export const make = (script) => {
  const agent = agentOf([stepOf(script)], { toolConcurrency: 50 })
  const model = { ...modelOf(script), contextWindowTokens }
  return (before = []) =>
    runtime.runPromise(
      Effect.provideService(consume(Agent.stream(agent, "go", { history: before })), ChatModel.ChatModel, model)
    )
}
