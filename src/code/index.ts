/** Scripts over tools and agents: a model writes one program in place of many calls. */
export * as Adaptive from "./Adaptive.ts"
export * as CodeMode from "./CodeMode.ts"
export * as Scripts from "./Scripts.ts"
export * as Workflow from "./Workflow.ts"
