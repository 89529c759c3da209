/** Messages without what differs from run to run. */
import type { JsonObject } from "../Json.ts"
import type { Message } from "../Message.ts"

/**
 * A message as a provider gets it, with its calls named by `callName`: ids of messages and calls, usage and labels
 * differ from run to run, and no answer depends on them. For fingerprints of requests.
 */
export const anonymous = (message: Message, callName: (id: string) => string): JsonObject => {
  const { content, providerData, providerOptions, role } = message
  const common = {
    role,
    content,
    ...(providerData === undefined ? {} : { providerData }),
    ...(providerOptions === undefined ? {} : { providerOptions })
  }
  switch (message.role) {
    case "ai":
      return {
        ...common,
        toolCalls: message.toolCalls.map((call) => ({ ...call, id: callName(call.id) })),
        malformedToolCalls: message.malformedToolCalls.map((call) => ({ ...call, id: callName(call.id) }))
      }
    case "tool":
      return { ...common, answers: callName(message.toolCallId), toolName: message.toolName, isError: message.isError }
    case "human":
    case "system":
      return common
  }
}
