/** The program `deepagents`, and what a page or an editor shares with it: the view of a run. */
export * as AgentFile from "./AgentFile.ts"
export * as Doctor from "./Doctor.ts"
export * as Prompts from "./Prompts.ts"
export * as View from "./View.ts"
