import { Agent, run, setTracingDisabled, tool, Usage } from "@openai/agents"
import { z } from "zod"
import { description, historyOf, prompt } from "../script.mjs"

setTracingDisabled(true)

const user = (content) => ({ role: "user", content })
const ai = (text) => ({ role: "assistant", status: "completed", content: [{ type: "output_text", text }] })

const call = ({ id, json, name }, text) => [
  ai(text),
  { type: "function_call", callId: id, name, arguments: json, status: "completed" }
]
const answer = ({ id, name }, text) => ({
  type: "function_call_result",
  callId: id,
  name,
  status: "completed",
  output: { type: "text", text }
})

export const history = (length) => historyOf(length, { user, ai, call, answer })

const events = async function* (source) {
  let text = ""
  const calls = []
  yield { type: "response_started" }
  for await (const part of source) {
    if (typeof part === "string") {
      text += part
      yield { type: "output_text_delta", delta: part }
    } else {
      calls.push({
        type: "function_call",
        callId: part.id,
        name: part.name,
        arguments: part.json,
        status: "completed"
      })
    }
  }
  const output = [{ type: "message", ...ai(text) }, ...calls]
  yield { type: "response_done", response: { id: "response", usage: new Usage(), output } }
}

export const make = (script) => {
  const model = {
    getResponse: () => Promise.reject(new Error("not streamed")),
    getStreamedResponse: ({ input }) => events(script.turn(input.length))
  }
  const step = tool({
    name: "step",
    description,
    parameters: z.object({ n: z.number() }),
    execute: async ({ n }) => script.step(n)
  })
  const agent = new Agent({ name: "bench", instructions: prompt, model, tools: [step] })

  return async (before = []) => {
    const result = await run(agent, [...before, user("go")], { stream: true, maxTurns: 100_000 })
    let streamed = ""
    for await (const event of result) {
      if (event.type !== "raw_model_stream_event") continue
      if (event.data.type === "output_text_delta") streamed += event.data.delta
    }
    await result.completed
    return streamed
  }
}
