/** Writes a request in the provider's format. */
import type { ModelRequest } from "../../../src/core/ChatModel.ts"
import type { JsonObject } from "../../../src/core/Json.ts"
import * as Message from "../../../src/core/Message.ts"

/** Writes the body. Test each role, block and option against the provider's document. */
export const toBody = (model: string, { messages, parameters, systemPrompt, tools }: ModelRequest): JsonObject => ({
  ...parameters,
  model,
  system: systemPrompt,
  messages: messages.map((message) => ({ role: message.role, text: Message.text(message) })),
  tools: tools.map(({ description, name, parameters: schema }) => ({ name, description, schema }))
})
