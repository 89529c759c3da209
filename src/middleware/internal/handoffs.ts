/** The conversation of several agents: each one's messages, without the calls that handed it over. */
import * as Schema from "effect/Schema"
import * as AgentState from "../../core/AgentState.ts"
import * as Message from "../../core/Message.ts"

/** Messages of other agents in one turn of the agent that started the conversation. */
export interface TurnMessages {
  readonly callId: string
  readonly messages: ReadonlyArray<Message.Message>
}

const prefix = "handoffs.spoken."

/** One slot a turn, by the id of its message: each is written once, however long the conversation gets. */
export const speechSlot = AgentState.family(prefix, {
  schema: Schema.Struct({ callId: Schema.String, messages: Schema.Array(Message.Message) }),
  initial: { callId: "", messages: [] }
})

/** The ids of the turns in which others spoke. */
export const turnsIn = (names: ReadonlyArray<string>): ReadonlyArray<string> =>
  names.map((name) => name.slice(prefix.length))

export const slotPrefix = prefix

/** Removes one call from a turn; `undefined` if the turn is then empty. Provider signatures no longer apply. */
const withoutCall = (message: Message.AiMessage, callId: string): Message.AiMessage | undefined => {
  const toolCalls = message.toolCalls.filter((call) => call.id !== callId)
  if (toolCalls.length === message.toolCalls.length) return message
  const content = message.content.filter((block) => block.type !== "reasoning")
  if (toolCalls.length + message.malformedToolCalls.length === 0 && Message.text(message).trim() === "")
    return undefined
  const { providerData: _signed, ...rest } = message
  return {
    ...rest,
    content,
    toolCalls,
    stopReason: toolCalls.length + message.malformedToolCalls.length === 0 ? "stop" : message.stopReason
  }
}

/**
 * Reconstructs the conversation: without the handover calls, and with the other agents' messages in their place. `said`
 * has these by the id of the turn with the call.
 */
export const conversation = (
  history: ReadonlyArray<Message.Message>,
  speeches: ReadonlyMap<string, TurnMessages>
): ReadonlyArray<Message.Message> => {
  if (speeches.size === 0) return history
  const all: Array<Message.Message> = []
  let current: TurnMessages | undefined
  const close = () => {
    if (current !== undefined) all.push(...current.messages)
    current = undefined
  }
  for (const message of history) {
    if (message.role === "tool") {
      if (message.toolCallId !== current?.callId) all.push(message)
      continue
    }
    close()
    current = message.role === "ai" ? speeches.get(message.id) : undefined
    const rest = message.role === "ai" && current !== undefined ? withoutCall(message, current.callId) : message
    if (rest !== undefined) all.push(rest)
  }
  close()
  return all
}

/** The conversation without the current turn, whose calls have no answers yet. */
export const withoutOpenTurn = (messages: ReadonlyArray<Message.Message>): ReadonlyArray<Message.Message> => {
  const last = messages.findLastIndex((message) => message.role === "ai")
  return last < 0 ? messages : messages.slice(0, last)
}
