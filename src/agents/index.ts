/** Agents as files, their prompts, and a look at what is missing. */
export * as AgentFile from "./AgentFile.ts"
export * as Doctor from "./Doctor.ts"
export * as Prompts from "./Prompts.ts"
