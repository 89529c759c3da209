/**
 * Messages of an agent as an `effect/ai` prompt, and a prompt as messages.
 *
 * ```ts
 * import { Prompt } from "effect/ai"
 * import { Message } from "effect-deepagents"
 * import * as EffectAiPrompt from "effect-deepagents/models/bridges/EffectAiPrompt"
 *
 * const prompt = EffectAiPrompt.fromMessages([Message.human("What is in this picture?")])
 * const messages = EffectAiPrompt.toMessages(Prompt.make("What time is it?"))
 * ```
 */
import * as AiPrompt from "effect/ai/Prompt"
import type { Message } from "../../core/Message.ts"
import { decode } from "./internal/effectAi/decode.ts"
import { encode } from "./internal/effectAi/encode.ts"

/**
 * Messages as a prompt that is valid for any provider: every call has its result behind it, nothing is empty, reasoning
 * that came from elsewhere than `effect/ai` is left out. Ids of messages, usage and stop reasons have no place in a
 * prompt. A malformed call is shown to the model as it wrote it.
 */
export const fromMessages = (messages: ReadonlyArray<Message>): AiPrompt.Prompt =>
  AiPrompt.fromMessages(encode(messages))

/**
 * A prompt as messages, with fresh ids. Options of parts become `providerData`, so that {@link fromMessages} gives them
 * back; options of messages and approval parts have no place in messages.
 */
export const toMessages = (prompt: AiPrompt.Prompt): ReadonlyArray<Message> => decode(prompt)
