/** Agents as files, their prompts, extensions of the program, and a check of their surroundings. */
export * as AgentFile from "./AgentFile.ts"
export * as Doctor from "./Doctor.ts"
export * as Extension from "./Extension.ts"
export * as Prompts from "./Prompts.ts"
