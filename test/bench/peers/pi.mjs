import { Agent } from "@earendil-works/pi-agent-core"
import { createAssistantMessageEventStream, Type } from "@earendil-works/pi-ai"
import { description, historyOf, prompt } from "../script.mjs"

const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }
const usage = { ...cost, totalTokens: 0, cost: { ...cost, total: 0 } }
const model = {
  id: "scripted",
  name: "scripted",
  api: "scripted",
  provider: "scripted",
  baseUrl: "",
  reasoning: false,
  input: ["text"],
  cost,
  contextWindow: 1_000_000,
  maxTokens: 100_000
}

const timestamp = Date.now()
const user = (content) => ({ role: "user", content, timestamp })
const ai = (content, stopReason = "stop") => ({
  role: "assistant",
  content,
  api: model.api,
  provider: model.provider,
  model: model.id,
  usage,
  stopReason,
  timestamp
})

const call = ({ args, id, name }, text) =>
  ai(
    [
      { type: "text", text },
      { type: "toolCall", id, name, arguments: args }
    ],
    "toolUse"
  )
const answer = ({ id, name }, text) => ({
  role: "toolResult",
  toolCallId: id,
  toolName: name,
  content: [{ type: "text", text }],
  isError: false,
  timestamp
})

export const history = (length) => historyOf(length, { user, ai: (text) => ai([{ type: "text", text }]), call, answer })

/** As pi's own providers do: the partial message is one object that grows. */
const pump = async (source, stream) => {
  const partial = ai([])
  const { content } = partial
  const push = (type, more) => stream.push({ type, contentIndex: content.length - 1, partial, ...more })
  const endText = () => content.at(-1)?.type === "text" && push("text_end", { content: content.at(-1).text })
  stream.push({ type: "start", partial })
  for await (const part of source) {
    if (typeof part === "string") {
      if (content.at(-1)?.type !== "text") {
        content.push({ type: "text", text: "" })
        push("text_start")
      }
      content.at(-1).text += part
      push("text_delta", { delta: part })
    } else {
      endText()
      const toolCall = { type: "toolCall", id: part.id, name: part.name, arguments: JSON.parse(part.json) }
      content.push(toolCall)
      push("toolcall_start")
      push("toolcall_delta", { delta: part.json })
      push("toolcall_end", { toolCall })
    }
  }
  endText()
  partial.stopReason = content.some(({ type }) => type === "toolCall") ? "toolUse" : "stop"
  stream.push({ type: "done", reason: partial.stopReason, message: partial })
  stream.end(partial)
}

export const make = (script) => {
  const step = {
    name: "step",
    label: "step",
    description,
    parameters: Type.Object({ n: Type.Number() }),
    execute: async (_id, { n }) => ({ content: [{ type: "text", text: await script.step(n) }], details: undefined })
  }
  const streamFn = (_model, { messages }) => {
    const stream = createAssistantMessageEventStream()
    void pump(script.turn(messages.length), stream)
    return stream
  }

  // An agent of pi holds one conversation, so each run makes its own.
  return async (before = []) => {
    const agent = new Agent({
      initialState: { systemPrompt: prompt, model, tools: [step], messages: before },
      streamFn
    })
    let streamed = ""
    agent.subscribe((event) => {
      if (event.type !== "message_update") return
      const { assistantMessageEvent: part } = event
      if (part.type === "text_delta") streamed += part.delta
    })
    await agent.prompt("go")
    if (agent.state.errorMessage) throw new Error(agent.state.errorMessage)
    return streamed
  }
}
