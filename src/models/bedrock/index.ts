/**
 * Claude on Amazon Bedrock. Needs the package `@anthropic-ai/bedrock-sdk`.
 */
export * as BedrockChatModel from "./BedrockChatModel.ts"
