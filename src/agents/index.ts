/** Agents as files, their prompts, and a check of their surroundings. */
export * as AgentFile from "./AgentFile.ts"
export * as Doctor from "./Doctor.ts"
export * as Prompts from "./Prompts.ts"
