/**
 * Claude, over Anthropic's Messages API. Needs the package `@anthropic-ai/sdk`.
 */
export * as AnthropicChatModel from "./AnthropicChatModel.ts"
