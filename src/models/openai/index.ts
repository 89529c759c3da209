/**
 * Chat models of OpenAI and of everything that speaks its APIs: `effect-deepagents/openai`.
 */
export * as OpenAiChatModel from "./OpenAiChatModel.ts"
export * as OpenAiCompatibleChatModel from "./OpenAiCompatibleChatModel.ts"
