import { BaseChatModel } from "@langchain/core/language_models/chat_models"
import { AIMessage, AIMessageChunk, HumanMessage, ToolMessage } from "@langchain/core/messages"
import { ChatGenerationChunk } from "@langchain/core/outputs"
import { tool } from "@langchain/core/tools"
import { createDeepAgent } from "deepagents"
import { z } from "zod"
import { description, historyOf, longHistoryOf, makeScript, prompt, summary } from "../script.mjs"

// By default LangChain calls its handlers from one background queue, and a stream that ends while that queue is busy
// loses text: with ten agents at once about half of it. So they are awaited; that is no slower.
process.env.LANGCHAIN_CALLBACKS_BACKGROUND = "false"

export const user = (content) => new HumanMessage(content)
const ai = (content) => new AIMessage(content)

const call = ({ args, id, name }, content) => new AIMessage({ content, tool_calls: [{ id, name, args }] })
const answer = ({ id, name }, content) => new ToolMessage({ content, name, tool_call_id: id })

export const history = (length) => historyOf(length, { user, ai, call, answer })

const chunkOf = (part, index) =>
  typeof part === "string"
    ? new ChatGenerationChunk({ text: part, message: new AIMessageChunk(part) })
    : new ChatGenerationChunk({
        text: "",
        message: new AIMessageChunk({
          content: "",
          tool_call_chunks: [{ type: "tool_call_chunk", index, id: part.id, name: part.name, args: part.json }]
        })
      })

export class ScriptedChatModel extends BaseChatModel {
  constructor(script) {
    super({})
    this.script = script
  }
  _llmType() {
    return "scripted"
  }
  bindTools() {
    return this
  }
  _generate() {
    throw new Error("not streamed")
  }
  /** What the model says to these messages. */
  turn(messages) {
    return this.script.turn(messages.length)
  }
  async *_streamResponseChunks(messages, _options, runManager) {
    let index = 0
    for await (const part of this.turn(messages)) {
      const chunk = chunkOf(part, typeof part === "string" ? 0 : index++)
      yield chunk
      await runManager?.handleLLMNewToken(chunk.text, undefined, undefined, undefined, undefined, { chunk })
    }
  }
}

/** The tool of a script. */
export const stepOf = (script) =>
  tool(async ({ n }) => script.step(n), { name: "step", description, schema: z.object({ n: z.number() }) })

/** Reads a stream of messages to its end. Gives what was streamed. */
export const consume = async (messages) => {
  let streamed = ""
  for await (const [message] of messages) if (message.tool_call_id === undefined) streamed += message.content
  return streamed
}

/** How an agent is run: its messages are streamed, however many rounds it takes. */
export const streaming = { streamMode: "messages", recursionLimit: 1_000_000 }

export const make = (script) => {
  const agent = createDeepAgent({ model: new ScriptedChatModel(script), tools: [stepOf(script)], systemPrompt: prompt })

  return async (before = []) => consume(await agent.stream({ messages: [...before, user("go")] }, streaming))
}

const isSummary = (messages) =>
  messages.length === 1 && messages[0].text.startsWith("You are a conversation summarizer")

class SummarisingChatModel extends ScriptedChatModel {
  summaries = 0
  turn(messages) {
    if (!isSummary(messages)) return super.turn(messages)
    this.summaries++
    return [summary]
  }
  async _generate(messages) {
    const [text] = this.turn(messages)
    return { generations: [{ text, message: new AIMessage(text) }] }
  }
}

/** A run on a conversation that does not fit: its old part is summarised first. Gives how often that was. */
export const compaction = (length) => {
  const before = longHistoryOf(length, user, ai)
  return async () => {
    const script = makeScript()
    const model = new SummarisingChatModel(script)
    const agent = createDeepAgent({ model, systemPrompt: prompt })
    // The summary is streamed among the messages, too.
    const text = await consume(await agent.stream({ messages: [...before, user("go")] }, streaming))
    script.verify(text.replace(summary, ""))
    return model.summaries
  }
}

class FanChatModel extends ScriptedChatModel {
  turn(messages) {
    return this.script.turn(messages.find((message) => message.type === "human").text, messages.length)
  }
}

/** A run that has sub-agents work at once. */
export const fan = (script) => {
  const agent = createDeepAgent({ model: new FanChatModel(script), systemPrompt: prompt })
  return async () => consume(await agent.stream({ messages: [user("go")] }, streaming))
}
