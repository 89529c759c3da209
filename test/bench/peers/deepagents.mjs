import { BaseChatModel } from "@langchain/core/language_models/chat_models"
import { AIMessage, AIMessageChunk, HumanMessage } from "@langchain/core/messages"
import { ChatGenerationChunk } from "@langchain/core/outputs"
import { tool } from "@langchain/core/tools"
import { createDeepAgent } from "deepagents"
import { z } from "zod"
import { description, historyOf, prompt } from "../script.mjs"

// By default LangChain calls its handlers from one background queue, and a stream that ends while that queue is busy
// loses text: with ten agents at once about half of it. So they are awaited; that is no slower.
process.env.LANGCHAIN_CALLBACKS_BACKGROUND = "false"

const user = (content) => new HumanMessage(content)
const ai = (content) => new AIMessage(content)

export const history = (length) => historyOf(length, user, ai)

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

class ScriptedChatModel extends BaseChatModel {
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
  async *_streamResponseChunks(messages, _options, runManager) {
    let index = 0
    for await (const part of this.script.turn(messages.length)) {
      const chunk = chunkOf(part, typeof part === "string" ? 0 : index++)
      yield chunk
      await runManager?.handleLLMNewToken(chunk.text, undefined, undefined, undefined, undefined, { chunk })
    }
  }
}

export const make = (script) => {
  const step = tool(async ({ n }) => script.step(n), { name: "step", description, schema: z.object({ n: z.number() }) })
  const agent = createDeepAgent({ model: new ScriptedChatModel(script), tools: [step], systemPrompt: prompt })

  return async (before = []) => {
    const input = { messages: [...before, user("go")] }
    let streamed = ""
    for await (const [message] of await agent.stream(input, { streamMode: "messages", recursionLimit: 1_000_000 })) {
      if (message.tool_call_id === undefined) streamed += message.content
    }
    return streamed
  }
}
