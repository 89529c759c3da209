/**
 * Cache breakpoints in Claude's form, for gateways that hand them on: at the end of the system prompt, which covers the
 * tools, at the end of the conversation, and at the end of the request before.
 */
import type { ChatCompletionMessageParam } from "openai/resources/chat/completions/completions"

const control = { cache_control: { type: "ephemeral" } } as const

const writeMark = (message: ChatCompletionMessageParam): ChatCompletionMessageParam | undefined => {
  const { content } = message
  if (typeof content === "string") {
    if (content === "") return undefined
    return { ...message, content: [{ type: "text", text: content, ...control }] } as ChatCompletionMessageParam
  }
  if (!Array.isArray(content)) return undefined
  const at = content.findLastIndex((part) => part.type === "text" && part.text !== "")
  if (at < 0) return undefined
  const marked = content.map((one, index) => (index === at ? { ...one, ...control } : one))
  return { ...message, content: marked } as ChatCompletionMessageParam
}

const marked = new WeakMap<ChatCompletionMessageParam, ChatCompletionMessageParam | undefined>()

/** Marks the last text of a message, once. `undefined` for one without text. */
const markMessage = (message: ChatCompletionMessageParam): ChatCompletionMessageParam | undefined => {
  if (!marked.has(message)) marked.set(message, writeMark(message))
  return marked.get(message)
}

/** The places whose end the next request, and this one, find in the cache. */
const placesOf = (messages: ReadonlyArray<ChatCompletionMessageParam>): ReadonlyArray<number> => {
  const system = messages[0]?.role === "system" ? [0] : []
  const answer = messages.findLastIndex(({ role }) => role === "assistant")
  return [...system, answer - 1, messages.length - 1].filter((at) => at >= 0)
}

/** Marks a conversation. A message without text passes its mark to the message before. */
export const markConversation = (
  messages: ReadonlyArray<ChatCompletionMessageParam>
): Array<ChatCompletionMessageParam> => {
  const marked = [...messages]
  for (const place of new Set(placesOf(messages))) {
    for (let at = place; at >= 0; at--) {
      const one = messages[at]
      const own = one === undefined ? undefined : markMessage(one)
      if (own === undefined) continue
      marked[at] = own
      break
    }
  }
  return marked
}
