import { isStepCount, tool, ToolLoopAgent } from "ai"
import { z } from "zod"
import { description, historyOf, prompt } from "../script.mjs"

const user = (content) => ({ role: "user", content })
const ai = (text) => ({ role: "assistant", content: [{ type: "text", text }] })

const call = ({ args, id, name }, text) => ({
  role: "assistant",
  content: [
    { type: "text", text },
    { type: "tool-call", toolCallId: id, toolName: name, input: args }
  ]
})
const answer = ({ id, name }, value) => ({
  role: "tool",
  content: [{ type: "tool-result", toolCallId: id, toolName: name, output: { type: "text", value } }]
})

export const history = (length) => historyOf(length, { user, ai, call, answer })

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 }
}

const parts = async function* (source) {
  let isCalling = false
  yield { type: "stream-start", warnings: [] }
  yield { type: "text-start", id: "0" }
  for await (const part of source) {
    if (typeof part === "string") yield { type: "text-delta", id: "0", delta: part }
    else {
      if (!isCalling) yield { type: "text-end", id: "0" }
      isCalling = true
      yield { type: "tool-input-start", id: part.id, toolName: part.name }
      yield { type: "tool-input-delta", id: part.id, delta: part.json }
      yield { type: "tool-input-end", id: part.id }
      yield { type: "tool-call", toolCallId: part.id, toolName: part.name, input: part.json }
    }
  }
  if (!isCalling) yield { type: "text-end", id: "0" }
  yield { type: "finish", usage, finishReason: { unified: isCalling ? "tool-calls" : "stop", raw: undefined } }
}

const modelOf = (turn) => ({
  specificationVersion: "v4",
  provider: "scripted",
  modelId: "scripted",
  supportedUrls: {},
  doStream: async ({ prompt }) => ({ stream: ReadableStream.from(parts(turn(prompt))) })
})

const consume = async (result) => {
  let streamed = ""
  for await (const part of result.stream) {
    if (part.type === "text-delta") streamed += part.text
    else if (part.type === "error") throw part.error
  }
  return streamed
}

export const make = (script) => {
  const model = modelOf((prompt) => script.turn(prompt.length))
  const step = tool({ description, inputSchema: z.object({ n: z.number() }), execute: async ({ n }) => script.step(n) })
  const agent = new ToolLoopAgent({ model, instructions: prompt, tools: { step }, stopWhen: isStepCount(100_000) })

  return async (before = []) => consume(await agent.stream({ messages: [...before, user("go")] }))
}

/** A run that has sub-agents work at once: a tool that runs another agent. */
export const fan = (script) => {
  const model = modelOf((prompt) => {
    const { content } = prompt.find(({ role }) => role === "user")
    // All results of a round are one message.
    const length = prompt.reduce((sum, { content, role }) => sum + (role === "tool" ? content.length : 1), 0)
    return script.turn(content[0].text, length)
  })
  const child = new ToolLoopAgent({ model, instructions: prompt })
  const task = tool({
    description: "Has an agent do a task",
    inputSchema: z.object({ description: z.string(), subagent_type: z.string() }),
    execute: async ({ description }) => consume(await child.stream({ messages: [user(description)] }))
  })
  const agent = new ToolLoopAgent({ model, instructions: prompt, tools: { task } })
  return async () => consume(await agent.stream({ messages: [user("go")] }))
}
