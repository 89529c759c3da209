import { Message } from "effect-deepagents"

const usage = (inputTokens: number, outputTokens: number) => ({
  inputTokens,
  outputTokens,
  cacheReadTokens: 40,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  cost: 0.01
})

/** A conversation with two calls at once, of which one fails. The fixtures are this conversation in other formats. */
export const conversation = [
  Message.system("Be brief."),
  Message.human("Where does the Danube begin, and what is 2 + 2?"),
  Message.ai("I look it up.", {
    model: "m-1",
    usage: usage(100, 20),
    toolCalls: [
      { id: "call_1", name: "look", arguments: { about: "Danube" } },
      { id: "call_2", name: "add", arguments: { a: 2, b: 2 } }
    ]
  }),
  Message.tool('In the "Black Forest"\nnear Donaueschingen', { toolCallId: "call_1", toolName: "look" }),
  Message.tool("no such tool", { toolCallId: "call_2", toolName: "add", isError: true }),
  Message.ai("In the Black Forest; I could not add. 🏞", { usage: usage(150, 10) }),
  Message.human("Thanks"),
  Message.ai("You are welcome.")
]

/** The facts that another format keeps of a message. */
export const factsOf = (message: Message.Message) => ({
  role: message.role,
  text: Message.text(message),
  ...(message.role === "ai" && message.toolCalls.length > 0
    ? { calls: message.toolCalls.map(({ arguments: given, id, name }) => ({ given, id, name })) }
    : {}),
  ...(message.role === "tool" ? { callId: message.toolCallId, name: message.toolName } : {})
})
