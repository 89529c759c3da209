/** Models by name, of whichever provider. */
export * as ChatModels from "./ChatModels.ts"
export * as Logprobs from "./Logprobs.ts"
export * as ToolSchema from "./ToolSchema.ts"
