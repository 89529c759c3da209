/**
 * The bridge to `effect/ai`: its models for agents, models of ours for its programs, toolkits and prompts both ways.
 */
export * as EffectAiChatModel from "./EffectAiChatModel.ts"
export * as LanguageModelFromChatModel from "./LanguageModelFromChatModel.ts"
export * as Prompt from "./Prompt.ts"
export * as Toolkit from "./Toolkit.ts"
